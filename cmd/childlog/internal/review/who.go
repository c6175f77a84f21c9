package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// Where a trace of who is answerable ends.
const (
	EndsPrincipal = "principal" // whom the root worked for
	EndsUnnamed   = "unnamed"   // at a root that records no principal
	EndsClaimed   = "claimed"   // at a session whose authority is another system's word
	EndsBroken    = "broken"    // where two logs do not agree, or one can't be read
)

// Who says who is answerable for one event, as far as the logs tell.
type Who struct {
	Session   wire.Session           `json:"session"`
	Event     WhoEvent               `json:"event"`
	Operator  *string                `json:"operator"` // who did it in place of the session, as the event says; null: no operator did
	Answer    string                 `json:"answer"`   // who answers for the session, in one sentence
	Ends      string                 `json:"ends"`     // see the constants
	Principal *wire.Principal        `json:"principal"`
	Chain     []Link                 `json:"chain"`    // from the session up, as far as it goes
	Decision  *wire.RecordedDecision `json:"decision"` // null: none is recorded, see note
	Reason    *string                `json:"reason"`   // of the decision, in one line
	Origin    *string                `json:"origin_text"`
	Asked     *Answered              `json:"asked"` // the question that the event belongs to
	Note      *string                `json:"note"`  // why there is no decision
	Unknown   []string               `json:"unknown"`
}

// WhoEvent is the event that was asked about.
type WhoEvent struct {
	Seq       uint64       `json:"seq"`
	Time      string       `json:"time"`
	Type      string       `json:"type"`
	Source    string       `json:"source"`
	By        *string      `json:"by"` // as the event itself says
	Call      *string      `json:"call"`
	What      string       `json:"what"`
	Inherited *wire.Origin `json:"inherited"`
}

// Answered is a decision on a question.
type Answered struct {
	Seq     uint64  `json:"seq"`
	Ask     string  `json:"ask"`
	Outcome string  `json:"outcome"`
	Decider string  `json:"decider"`
	Rule    *string `json:"rule"`
}

// Trace follows an event up to whoever is answerable for it: the decision on the
// call that it belongs to, with its rule; then receipt by receipt to the root and
// its principal. It stops where the logs stop. Errors: ErrNotFound, ErrCorrupt
// (the event can't be read), ErrInvalid for the store's own session, a canceled
// context.
func Trace(ctx context.Context, s *eventlog.Store, session uuid.UUID, seq uint64) (Who, error) {
	if session == eventlog.StoreSession {
		return Who{}, fmt.Errorf("%w: the store's own session is no agent; its events are an operator's", eventlog.ErrInvalid)
	}
	row, err := s.Row(session)
	if err != nil {
		return Who{}, err
	}
	x, err := replay.ExplainEvent(ctx, s, session, seq)
	if err != nil {
		return Who{}, err
	}
	ev := &x.Event
	w := Who{Session: wire.SessionOf(&row, s.Boot()), Event: WhoEvent{Seq: ev.Seq, Time: wire.Time(ev.Time), Type: ev.Type, Source: ev.Source.String(),
		By: optional(ev.Facts.Str("by")), Call: optional(ev.Facts.Str("call")), What: x.What}}
	if ev.Inherited != nil {
		w.Event.Inherited = &wire.Origin{Session: ev.Inherited.Session.String(), Seq: ev.Inherited.Seq}
	}
	if ev.Source == eventlog.SourceOperator {
		by := cmp.Or(ev.Facts.Str("by"), "operator")
		w.Operator = &by
	}
	if err := w.decided(ctx, s, session, &x); err != nil {
		return Who{}, err
	}
	if w.Chain, err = chainOf(ctx, s, session); err != nil {
		return Who{}, err
	}
	e, policyErr := replay.Policy(ctx, s, session, 0)
	if policyErr == nil && !e.Principal.IsZero() {
		w.Principal = &wire.Principal{Kind: e.Principal.Kind, Ref: e.Principal.Ref}
	}
	w.answer(policyErr)
	return w, ctx.Err()
}

// decided finds the decision that an event rests on.
func (w *Who) decided(ctx context.Context, s *eventlog.Store, session uuid.UUID, x *replay.EventExplanation) error {
	ev := &x.Event
	note := func(text string) { w.Note = &text }
	switch {
	case ev.Inherited != nil:
		note(fmt.Sprintf("it was copied from seq %d of %s: ask there", ev.Inherited.Seq, ev.Inherited.Session))
		return nil
	case ev.Type == eventlog.TypeApprovalDecided:
		w.Asked = answeredBy(ev)
		return nil
	case x.Decision != nil:
		w.recorded(x.Decision)
		return w.approved(ctx, s, session, &x.Decision.Recorded)
	case w.Event.Call == nil:
		note("no decision belongs to an event of this type")
		return nil
	}
	// A call has one id and may be decided twice: once that it needs an approval,
	// and once more relying on it. A result rests on the last before it.
	at := uint64(0)
	err := replay.Decisions(ctx, s, session, replay.DecisionFilter{Call: *w.Event.Call}, func(r replay.Recorded) error {
		if ev.Type == eventlog.TypeToolResult && r.Seq < ev.Seq || ev.Type != eventlog.TypeToolResult && at == 0 && r.Seq > ev.Seq {
			at = r.Seq
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case at == 0 && errors.Is(err, eventlog.ErrCorrupt):
		note("no decision can be found: a part of the log can't be read")
		return nil
	case err != nil && !errors.Is(err, eventlog.ErrCorrupt):
		return err
	case at == 0 && w.Session.Evidence:
		note("no decision is recorded: the log was imported")
		return nil
	case at == 0:
		note("no decision is recorded: the harness did not ask, or does not say")
		return nil
	}
	d, err := replay.ExplainEvent(ctx, s, session, at)
	if err != nil {
		return err
	}
	w.recorded(d.Decision)
	return w.approved(ctx, s, session, &d.Decision.Recorded)
}

func (w *Who) recorded(d *replay.RecordedExplanation) {
	r := wire.RecordedDecisionOf(&d.Recorded)
	w.Decision, w.Reason, w.Origin = &r, &d.Reason, &d.Origin
}

// approved finds the answer that a decision relied on; of one that an approval was
// needed for, what came of the question that its harness put itself.
func (w *Who) approved(ctx context.Context, s *eventlog.Store, session uuid.UUID, d *replay.Recorded) error {
	id, from, to := d.Ask, uint64(1), d.Seq
	if d.Verdict == policy.VerdictNeedsApproval {
		from, to = d.Seq+1, w.Session.Events
	} else if id == "" {
		return nil
	}
	for from != 0 && from <= to {
		page, err := s.Read(ctx, session, eventlog.ReadOptions{From: from, To: to, MaxEvents: 1024})
		if err != nil {
			return err
		}
		for i := range page.Events {
			ev := &page.Events[i]
			switch {
			case ev.Inherited != nil:
			case ev.Type == eventlog.TypeApprovalAsked && ev.Facts.Str("elsewhere") != "" && ev.Facts.Str("call") == d.Call:
				id = ev.Facts.Str("ask")
			case ev.Type == eventlog.TypeApprovalDecided && id != "" && ev.Facts.Str("ask") == id:
				w.Asked = answeredBy(ev)
				return nil
			}
		}
		from = page.Next
	}
	return nil
}

func answeredBy(ev *eventlog.Event) *Answered {
	return &Answered{Seq: ev.Seq, Ask: ev.Facts.Str("ask"), Outcome: ev.Facts.Str("outcome"), Decider: ev.Facts.Str("decider"), Rule: optional(ev.Facts.Str("rule"))}
}

// answer says how far the chain goes, and what nobody can know from it.
func (w *Who) answer(policyErr error) {
	w.Unknown = []string{
		"childlog authenticates nobody: that a principal or an operator is who the log says is the word of whoever wrote it",
		"it sees what the harness reported: not whether a call was made, nor what it did",
	}
	if w.Asked != nil && w.Asked.Outcome == string(eventlog.AskAllowedElsewhere) {
		w.Unknown = append(w.Unknown, "that the call was allowed is the word of its harness, which asked by itself; childlog granted nothing")
	}
	if w.Asked != nil && w.Asked.Decider == string(eventlog.DeciderHuman) {
		w.Unknown = append(w.Unknown, "that a person answered is the word of the harness that asked")
	}
	down := func(n int) string { return plural(uint64(n), "delegation") }
	for i := range w.Chain {
		l := &w.Chain[i]
		switch {
		case l.Claimed:
			w.Ends, w.Principal = EndsClaimed, nil
			w.Answer = fmt.Sprintf("Nobody who is known here: the trace stops at %s, and what stands above it is a claim (%s).", name(&l.Party), l.Note)
			if i == 0 {
				w.Answer = fmt.Sprintf("Nobody who is known here: %s is a claim itself (%s).", name(&l.Party), l.Note)
			}
			return
		case !l.Agrees:
			w.Ends, w.Principal = EndsBroken, nil
			w.Answer = fmt.Sprintf("Nobody can be named: the trace breaks at %s (%s).", name(&l.Party), l.Note)
			return
		}
	}
	root := &w.Chain[len(w.Chain)-1]
	through := fmt.Sprintf("for whom the root %s worked, through %s", name(&root.Party), down(len(w.Chain)-1))
	if len(w.Chain) == 1 {
		through = fmt.Sprintf("for whom the root %s works", name(&root.Party))
	}
	switch {
	case policyErr != nil:
		w.Ends, w.Answer = EndsBroken, "Nobody can be named: the policy can't be read ("+policyErr.Error()+")."
	case w.Principal == nil:
		w.Ends = EndsUnnamed
		w.Answer = fmt.Sprintf("Nobody is named: the root %s records no principal. Whoever started it is answerable.", name(&root.Party))
	default:
		w.Ends = EndsPrincipal
		w.Answer = fmt.Sprintf("%s %s, %s.", title(w.Principal.Kind), w.Principal.Ref, through)
	}
}

// title begins a sentence with a kind of principal.
func title(kind string) string {
	if kind == "" || kind[0] < 'a' || kind[0] > 'z' {
		return kind
	}
	return string(kind[0]-'a'+'A') + kind[1:]
}
