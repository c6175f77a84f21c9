package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/replay"
)

// Guard answers the hooks of one harness. It keeps nothing between two events;
// what it has to know is in the store.
type Guard struct {
	Harness Harness
	Policy  Policy // of a root that has to be made; the project's files narrow it
	Observe bool   // decide and record as usual, and let everything through
	Project []Project
	Files   Files
}

// Handle records an event and says what is answered. An error means that the
// guard could not do its work, and nothing may be done on it; see [Failed].
func (g *Guard) Handle(ctx context.Context, s *eventlog.Store, ev *Event) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	switch ev.Kind {
	case KindCall:
		return g.call(ctx, s, ev)
	case KindPermission:
		return g.permission(ctx, s, ev)
	case KindResult, KindFailure:
		return Outcome{}, g.result(ctx, s, ev)
	case KindStart:
		return g.start(ctx, s, ev)
	case KindEnd:
		return Outcome{}, g.end(ctx, s, ev)
	case KindPrompt:
		return g.prompt(ctx, s, ev)
	case KindStop:
		return Outcome{}, g.stop(ctx, s, ev)
	case KindAgentStart:
		return g.agentStart(ctx, s, ev)
	case KindAgentStop:
		return Outcome{}, g.agentStop(ctx, s, ev)
	}
	return g.other(ctx, s, ev)
}

// start makes the root, or goes on with it.
func (g *Guard) start(ctx context.Context, s *eventlog.Store, ev *Event) (Outcome, error) {
	row, notice, err := g.root(ctx, s, ev)
	if err != nil {
		return Outcome{}, err
	}
	// After a compaction the session goes on in the middle of a turn. A cleared
	// one has another id, so this root is new.
	waited := ""
	if ev.Source != "compact" && leftOpen(&row) {
		if row, waited, err = g.reopen(ctx, s, row); err != nil {
			return Outcome{}, err
		}
	}
	return Outcome{Notice: notice, Context: waited}, g.note(ctx, s, row, ev)
}

// leftOpen reports whether a run ended, or was cut off, before this one began.
func leftOpen(row *eventlog.Row) bool {
	return row.SettledSeq != 0 || len(row.OpenCalls) > 0 || row.TurnSeq != 0
}

// end settles the root and what still runs below it: the harness ends its agents
// with the session. A root that was never made is not made to be settled.
func (g *Guard) end(ctx context.Context, s *eventlog.Store, ev *Event) error {
	id, err := s.ByExternal(g.Harness.System(), ev.Session)
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	row, err := native(s, id)
	if err != nil {
		return err
	}
	live, err := g.live(s, row)
	if err != nil {
		return err
	}
	if row, err = g.leave(ctx, s, row); err != nil {
		return err
	}
	reason := ev.Reason
	if !eventlog.IsCode(reason) {
		reason = "ended"
	}
	if err := g.note(ctx, s, row, ev); err != nil {
		return err
	}
	for i := len(live) - 1; i >= 0; i-- { // children first
		outcome := "interrupted"
		if live[i].Session == row.Session {
			outcome = reason
		}
		if err := g.settle(ctx, s, live[i], outcome); err != nil {
			return err
		}
	}
	return nil
}

// other records an event that asks for nothing. One that this version does not
// know, and that is about a call which has not been made, may be a question to
// which silence is a yes: that is refused, by exit 2, which both harnesses read as
// a block wherever an event can block.
func (g *Guard) other(ctx context.Context, s *eventlog.Store, ev *Event) (Outcome, error) {
	row, notice, err := g.actor(ctx, s, ev)
	if err != nil {
		return Outcome{}, err
	}
	if ev.Kind == KindDenied {
		if err := g.refused(ctx, s, &row, ev); err != nil {
			return Outcome{}, err
		}
	}
	if err := g.note(ctx, s, row, ev); err != nil {
		return Outcome{}, err
	}
	if ev.Kind == KindUnknown && ev.Tool != "" && !strings.HasPrefix(ev.Name, "Post") && !strings.HasSuffix(ev.Name, "Denied") {
		return Outcome{Verb: Deny, Reason: fmt.Sprintf("childlog: denied: this version does not know the event %.60q, and it is about a call of %.60q; take a version that does", ev.Name, ev.Tool)}, nil
	}
	return Outcome{Notice: notice}, nil
}

// maxNoted bounds the inputs that are kept of events that a guard has no other
// use for, bytes.
const maxNoted = 256 << 10

// typeNote is the type of the events that a guard writes of its own.
const typeNote = "guard/event"

// note records that an event came. Its input is content: it can be redacted.
func (g *Guard) note(ctx context.Context, s *eventlog.Store, row eventlog.Row, ev *Event, ask ...string) error {
	f := map[string]any{"harness": string(g.Harness), "event": code(ev.Name)}
	for _, ask := range ask { // the question that the event shows
		if ask != "" {
			f["ask"] = ask
		}
	}
	for name, value := range map[string]string{"source": ev.Source, "reason": ev.Reason, "turn_id": ev.Turn} {
		if eventlog.IsCode(value) {
			f[name] = value
		}
	}
	if g.Observe {
		f["observe"] = true
	}
	e := eventlog.NewEvent{Type: typeNote, Ignorable: true}
	if len(ev.Raw) <= maxNoted {
		e.Media, e.Content = eventlog.MediaJSON, ev.Raw
	}
	return g.append(ctx, s, row, fact(e, f))
}

// fact puts facts into an event. They are codes, numbers and booleans, which
// can't fail; a mistake would be refused by the writer as an event without facts.
func fact(e eventlog.NewEvent, f map[string]any) eventlog.NewEvent {
	e.Facts, _ = eventlog.MakeFacts(f)
	return e
}

// append writes into the session that row is of, at its head. A guard has no
// process that could hold an activation, so it writes in whichever is open.
func (g *Guard) append(ctx context.Context, s *eventlog.Store, row eventlog.Row, events ...eventlog.NewEvent) error {
	b := eventlog.Batch{Session: row.Session, Expect: eventlog.Any(), Events: events}
	for range 2 { // once more where an activation began or ended meanwhile
		if b.Epoch = 0; row.Open {
			b.Epoch = row.Epoch
		}
		_, err := s.Append(ctx, b)
		if !errors.Is(err, eventlog.ErrFenced) {
			return err
		}
		if row, err = s.Row(row.Session); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: session %s changes hands too fast", eventlog.ErrFenced, row.Session)
}

// settle ends a run. What the harness left open ends with it.
func (g *Guard) settle(ctx context.Context, s *eventlog.Store, row eventlog.Row, outcome string) error {
	if row.SettledSeq != 0 || row.ClosedSeq != 0 {
		return nil
	}
	epoch := uint64(0)
	if len(row.Inbox) == 0 { // an activation would take the messages and nobody would get them
		a, err := replay.Activate(ctx, s, row.Session, caller(&row))
		if err != nil {
			return err
		}
		epoch = a.Epoch
	} else if row.Open {
		epoch = row.Epoch
	}
	_, err := replay.Settle(ctx, s, row.Session, epoch, outcome)
	if errors.Is(err, eventlog.ErrConflict) || errors.Is(err, eventlog.ErrFenced) { // another hook of the same end was first
		return nil
	}
	return err
}

// reopen goes on with a session that may have settled: it closes what a run left
// open and begins another one. The activation ends at once, because no process
// stays to hold it. The messages that waited for the session are claimed by it,
// so whoever calls has to pass them on.
func (g *Guard) reopen(ctx context.Context, s *eventlog.Store, row eventlog.Row) (eventlog.Row, string, error) {
	if row.ClosedSeq != 0 {
		return row, "", fmt.Errorf("%w: session %s was closed at seq %d", eventlog.ErrSessionClosed, row.Session, row.ClosedSeq)
	}
	a, err := replay.Activate(ctx, s, row.Session, caller(&row))
	if err != nil {
		return row, "", err
	}
	if _, err := replay.End(ctx, s, row.Session, a.Epoch, "handed-on"); err != nil && !errors.Is(err, eventlog.ErrFenced) {
		return row, "", err
	}
	var texts []string
	for _, m := range a.Inbox {
		page, err := s.Read(ctx, row.Session, eventlog.ReadOptions{From: m.Seq, To: m.Seq, Contents: true})
		if err != nil {
			return row, "", err
		}
		for i := range page.Events { // a message that was redacted has no text any more
			if ev := &page.Events[i]; ev.ContentErr == nil && ev.Redacted == nil {
				texts = append(texts, "A message that waited for you: "+string(ev.Content))
			}
		}
	}
	row, err = s.Row(row.Session)
	return row, strings.Join(texts, "\n\n"), err
}

// goOn is reopen for a session that has settled, and nothing for another one. A
// closed one is left as it is: whoever decides about it says so best.
func (g *Guard) goOn(ctx context.Context, s *eventlog.Store, row eventlog.Row) (eventlog.Row, string, error) {
	if row.SettledSeq == 0 || row.ClosedSeq != 0 {
		return row, "", nil
	}
	return g.reopen(ctx, s, row)
}

// caller is in whose name a guard acts on a session.
func caller(row *eventlog.Row) replay.Caller {
	if row.Parent == uuid.Nil {
		return replay.AsOperator()
	}
	return replay.AsParent(row.Parent)
}
