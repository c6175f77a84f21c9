package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// Caller says in whose name a call is made: an operator, or the parent
// session. childlog authenticates nobody; the harness must have.
type Caller struct {
	Operator bool
	Parent   uuid.UUID
}

// AsOperator is the operator's Caller.
func AsOperator() Caller { return Caller{Operator: true} }

// AsParent is a parent session's Caller.
func AsParent(id uuid.UUID) Caller { return Caller{Parent: id} }

// String is the stable code recorded in facts.
func (c Caller) String() string {
	if c.Operator {
		return "operator"
	}
	return "parent"
}

// allow refuses a caller that is neither an operator nor the recorded parent.
func (c Caller) allow(row *eventlog.Row) error {
	if c.Operator || c.Parent != uuid.Nil && c.Parent == row.Parent {
		return nil
	}
	return fmt.Errorf("%w: session %s was delegated by %s, not by %s", eventlog.ErrUnauthorized, row.Session, name(row.Parent), name(c.Parent))
}

func name(id uuid.UUID) string {
	if id == uuid.Nil {
		return "nobody"
	}
	return id.String()
}

// Request asks for a cold resume.
type Request struct {
	Session uuid.UUID
	By      Caller
	Policy  *policy.Setting  // a wish for another policy: always refused
	Role    string           // the role the harness means to resume it in; another than the recorded one is refused
	Present *policy.Defaults // the reader's deployment default, compared and reported, never used
	Known   []string         // types of open families that the harness knows; nil: it takes any
}

// Resumption is a session rebuilt from its log.
type Resumption struct {
	Policy    Effective
	Row       eventlog.Row
	Status    string
	Drift     []Drift
	OpenCalls []eventlog.OpenCall
	Inbox     []eventlog.Message
	Steps     uint64 // used by the session itself
	From      uint64 // the conversation goes from here to the head: the last history/compacted, else 1
	Skipped   []Skipped
	Redacted  []RedactedEvent // contents of the log that were erased on record
	Context   string          // the runtime-context sentence for the model
}

// RedactedEvent is an event whose content was erased. In the conversation it
// stands at its place without one.
type RedactedEvent struct {
	Seq  uint64
	Type string
	eventlog.Redaction
}

// Skipped lists events of a type that this version gives no meaning to. They
// are kept as they are.
type Skipped struct {
	Type     string
	Required bool // not marked ignorable by its writer
	Count    uint64
	FirstSeq uint64
}

// Resume rebuilds a session for going on with it, and appends nothing,
// whatever the environment, the clock, the directory, the reader's defaults or
// the parent's present policy are. It reads and verifies the whole log.
//
// Errors: ErrNotFound; ErrUnauthorized: not the recorded parent;
// ErrNotResumable: one-shot, closed, or another role or policy was asked for;
// ErrEvidence; ErrPolicyUnreadable; ErrUnknownType: a required type that the
// harness does not know (all of package eventlog).
func Resume(ctx context.Context, s *eventlog.Store, r Request) (Resumption, error) {
	row, err := s.Row(r.Session)
	if err != nil {
		return Resumption{}, err
	}
	if err := resumable(&row, r); err != nil {
		return Resumption{}, err
	}
	// As of the row's head: one cut, even if the log goes on meanwhile.
	linked, err := Policy(ctx, s, r.Session, row.Head)
	if err != nil {
		return Resumption{}, err
	}
	// What the log says of the session's identity decides, not the row, which
	// was only asked first so that a refusal needs no readable policy.
	if linked.overrule(&row); resumable(&row, r) != nil {
		return Resumption{}, resumable(&row, r)
	}
	if err := linked.plays(r.Role); err != nil {
		return Resumption{}, err
	}
	out := Resumption{Policy: linked, Row: row, Status: row.Status(s.Boot()), OpenCalls: slices.Clone(row.OpenCalls),
		Inbox: slices.Clone(row.Inbox), Steps: row.Steps, From: 1}
	if err := out.readAll(ctx, s, r.Known); err != nil {
		return Resumption{}, err
	}
	if out.Drift, err = drift(ctx, s, &linked, r.Present); err != nil {
		return Resumption{}, err
	}
	out.Context = RuntimeContext(&linked)
	return out, nil
}

func resumable(row *eventlog.Row, r Request) error {
	switch {
	case row.Evidence:
		return fmt.Errorf("%w: session %s was imported; it can be read, not resumed", eventlog.ErrEvidence, row.Session)
	case r.Policy != nil:
		return fmt.Errorf("%w: session %s keeps the policy of its delegation; re-delegate for another", eventlog.ErrNotResumable, row.Session)
	}
	if err := r.By.allow(row); err != nil {
		return err
	}
	switch {
	case row.ClosedSeq != 0:
		return fmt.Errorf("%w: session %s was closed at seq %d", eventlog.ErrNotResumable, row.Session, row.ClosedSeq)
	case row.Kind == eventlog.KindChild && row.Mode != eventlog.ModeContinuable:
		return fmt.Errorf("%w: session %s is one-shot", eventlog.ErrNotResumable, row.Session)
	}
	return nil
}

// plays refuses a role other than the recorded one, whatever name it goes by.
func (e *Effective) plays(role string) error {
	if role == "" {
		return nil
	}
	want, err := policy.ParseRole(role)
	if err != nil {
		return err
	}
	if want != e.Choices.Role {
		return fmt.Errorf("%w: session %s was delegated as %s, got role %s; re-delegate for another role", eventlog.ErrNotResumable, e.Session, or(string(e.Choices.Role), "no role"), want)
	}
	return nil
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// readAll verifies the log from its first event on, folds its policy anew and
// compares it with the one found by links, and lists unknown types.
func (out *Resumption) readAll(ctx context.Context, s *eventlog.Store, known []string) error {
	var f folder
	type kind struct {
		typ       string
		ignorable bool
	}
	skipped := map[kind]*Skipped{}
	var last eventlog.Hash
	err := s.ReplayBorrowed(ctx, out.Row.Session, true, func(ev *eventlog.Event) error {
		if ev.Seq > out.Row.Head {
			return nil // appended since
		}
		if ev.ContentErr != nil {
			return ev.ContentErr
		}
		if ev.Redacted != nil { // policy is facts, which nobody erases
			out.Redacted = append(out.Redacted, RedactedEvent{Seq: ev.Seq, Type: ev.Type, Redaction: *ev.Redacted})
		}
		last = ev.Hash
		if ev.PolicyBearing {
			ev = ev.Clone() // the fold keeps it
		}
		if err := f.event(ev); err != nil {
			return err
		}
		if ev.Type == eventlog.TypeHistoryCompacted {
			out.From = ev.Seq // in a seed too: the parent's summary stands for its range
		}
		if eventlog.IsCore(ev.Type) {
			return nil
		}
		if known != nil && !slices.Contains(known, ev.Type) && !ev.Ignorable {
			return fmt.Errorf("%w: %s at seq %d is required and the harness does not know it", eventlog.ErrUnknownType, ev.Type, ev.Seq)
		}
		key := kind{ev.Type, ev.Ignorable}
		if skipped[key] == nil {
			skipped[key] = &Skipped{Type: ev.Type, Required: !ev.Ignorable, FirstSeq: ev.Seq}
		}
		skipped[key].Count++
		return nil
	})
	if err != nil {
		return unreadable(err)
	}
	full, err := f.finish()
	if err != nil {
		return err
	}
	if last != out.Row.Hash || !slices.Equal(full.Seqs(), out.Policy.Seqs()) {
		return unreadable(&eventlog.CorruptError{Session: out.Row.Session, Reason: "the policy found by links and that of the whole log differ"})
	}
	for _, sk := range skipped {
		out.Skipped = append(out.Skipped, *sk)
	}
	slices.SortFunc(out.Skipped, func(a, b Skipped) int { return int(a.FirstSeq) - int(b.FirstSeq) })
	return nil
}

// Conversation calls fn with the events since the last history/compacted, or
// since the session's beginning, seed included, with their contents. Of a content
// that was erased the event says so at its place (Event.Redacted).
func (out *Resumption) Conversation(ctx context.Context, s *eventlog.Store, fn func(*eventlog.Event) error) error {
	for from := out.From; from != 0 && from <= out.Row.Head; {
		page, err := s.Read(ctx, out.Row.Session, eventlog.ReadOptions{From: from, To: out.Row.Head, Contents: true})
		if err != nil {
			return err
		}
		if len(page.Holes) > 0 {
			return unreadable(page.Holes[0].Err)
		}
		for i := range page.Events {
			if ev := &page.Events[i]; !eventlog.IsClosed(ev.Type) {
				if err := fn(ev); err != nil {
					return err
				}
			}
		}
		from = page.Next
	}
	return nil
}
