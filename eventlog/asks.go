package eventlog

import (
	"fmt"
	"slices"

	"github.com/google/uuid"

	"childlog/policy"
)

// OnceGrant is an allowed-once as the row keeps it. It says where to look, and
// what ended it; what it grants is read from the log.
type OnceGrant struct {
	_msgpack       struct{} `msgpack:",as_array"` //nolint:unused
	Ask, Call      string
	Asked, Decided uint64 // seqs of the question and of its decision
	Ended          uint64 // seq of the event that used it up or made it void; 0: in force
}

// grantWindow bounds the allowed-onces that a row keeps. One that is pushed
// out is void: the harness has to ask again.
const grantWindow = 16

// grant notes an allowed-once. Ended ones, kept only to say why they are void,
// make room first.
func (r *Row) grant(ask OpenAsk, decided uint64) {
	grants := append(slices.Clone(r.Grants), OnceGrant{Ask: ask.Ask, Call: ask.Call, Asked: ask.Seq, Decided: decided})
	if len(grants) > grantWindow {
		oldest := max(0, slices.IndexFunc(grants, func(g OnceGrant) bool { return g.Ended != 0 }))
		grants = slices.Delete(grants, oldest, oldest+1)
	}
	r.Grants = grants
}

// endGrants ends those in force that of selects, at an event's seq.
func (r *Row) endGrants(seq uint64, of func(OnceGrant) bool) {
	inForce := func(g OnceGrant) bool { return g.Ended == 0 && of(g) }
	if !slices.ContainsFunc(r.Grants, inForce) {
		return
	}
	grants := slices.Clone(r.Grants)
	for i := range grants {
		if inForce(grants[i]) {
			grants[i].Ended = seq
		}
	}
	r.Grants = grants
}

func everyGrant(OnceGrant) bool { return true }

// endsGrants folds what ends an allowed-once: any change of the policy, the
// end of its turn, of its activation or of the session's run, the decision
// that used it, the result of its call.
func (r *Row) endsGrants(ev *Event) {
	f := ev.Facts
	switch ev.Type {
	case TypeTurnStart, TypeTurnEnd, TypeActivationStarted, TypeActivationEnded, TypeSessionSettled, TypeSessionClosed:
		r.endGrants(ev.Seq, everyGrant)
	case TypeToolDecision:
		if ask := f.Str("ask"); ask != "" && f.Str("verdict") == string(policy.VerdictAllow) {
			r.endGrants(ev.Seq, func(g OnceGrant) bool { return g.Ask == ask })
		}
	case TypeToolResult:
		call := f.Str("call")
		r.endGrants(ev.Seq, func(g OnceGrant) bool { return g.Call == call })
	default:
		if ev.PolicyBearing {
			r.endGrants(ev.Seq, everyGrant)
		}
	}
}

// checkAsks holds every native log to one decision for each question, whoever
// writes: an ask id is used once; a decision needs its open question; who
// decided fits the source; a child is never allowed anything; a question that a
// harness puts itself is answered by its word and never by an allowed-once; a
// recorded allow that rests on an ask needs an allowed-once that is in force. The events are
// folded one by one, so that a batch is judged as its events would be alone.
func (st *stage) checkAsks(row *Row, events []pending) error {
	if !slices.ContainsFunc(events, func(p pending) bool {
		return p.inherited == nil && (p.typ == TypeApprovalAsked || p.typ == TypeApprovalDecided || p.typ == TypeToolDecision)
	}) {
		return nil
	}
	now := *row // apply replaces slices and changes none
	asked := map[string]string{}
	for i := range events {
		ev := events[i].event(now.Session, now.Head+1, now.LastPolicy, 0)
		if ev.Inherited == nil {
			if err := st.checkAsk(&now, ev, asked); err != nil {
				return err
			}
		}
		now.apply(ev, Hash{})
	}
	return nil
}

func (st *stage) checkAsk(now *Row, ev *Event, asked map[string]string) error {
	ask := ev.Facts.Str("ask")
	refuse := func(kind error, format string, args ...any) error {
		return fmt.Errorf("%w: session %s: ask %s: %s", kind, now.Session, ask, fmt.Sprintf(format, args...))
	}
	switch ev.Type {
	case TypeApprovalAsked:
		q, err := ParseAsked(ev)
		if err != nil {
			return refuse(ErrInvalid, "%v", err)
		}
		by, err := st.byName(codeName(nameAsk, now.Session, ask))
		if err != nil {
			return err
		}
		if _, twice := asked[ask]; twice || by != uuid.Nil {
			return refuse(ErrConflict, "was asked before; one id stands for one question")
		}
		asked[ask] = q.Elsewhere
	case TypeApprovalDecided:
		d, err := ParseDecided(ev)
		switch {
		case err != nil:
			return refuse(ErrInvalid, "%v", err)
		case !slices.ContainsFunc(now.OpenAsks, func(a OpenAsk) bool { return a.Ask == ask }):
			return refuse(ErrConflict, "was not asked, or is decided already")
		case !d.Outcome.Known() || !d.Decider.Known():
			return refuse(ErrInvalid, "outcome %s by decider %s is not known", d.Outcome, d.Decider)
		case d.Decider.Answers() == (ev.Source == SourceStore):
			return refuse(ErrUnauthorized, "decider %s does not write with source %s", d.Decider, ev.Source)
		case d.Outcome != AskAllowedOnce && d.Outcome != AskAllowedElsewhere:
			return nil
		case now.Kind == KindChild || !d.Decider.Answers():
			return refuse(ErrUnauthorized, "decider %s allows nothing in a %s", d.Decider, now.Kind)
		}
		elsewhere, err := st.putElsewhere(now.Session, ask, asked)
		switch {
		case err != nil:
			return err
		case (elsewhere != "") != (d.Outcome == AskAllowedElsewhere):
			return refuse(ErrUnauthorized, "outcome %s does not answer a question that is answered by %q", d.Outcome, elsewhere)
		}
	case TypeToolDecision:
		if _, err := ParseDecision(ev); err != nil {
			return refuse(ErrInvalid, "%v", err)
		}
		call := ev.Facts.Str("call")
		if ask != "" && ev.Facts.Str("verdict") == string(policy.VerdictAllow) &&
			!slices.ContainsFunc(now.Grants, func(g OnceGrant) bool { return g.Ended == 0 && g.Ask == ask && g.Call == call }) {
			return refuse(ErrUnauthorized, "no allowed-once for call %s is in force", call)
		}
	}
	return nil
}

// putElsewhere is the harness that puts a question itself, "" for one that is
// answered here. asked are those of this batch.
func (st *stage) putElsewhere(session uuid.UUID, ask string, asked map[string]string) (string, error) {
	if elsewhere, here := asked[ask]; here {
		return elsewhere, nil
	}
	ev, _, err := (&View{st: st}).AskOf(session, ask)
	if err != nil {
		return "", err
	}
	q, err := ParseAsked(&ev)
	return q.Elsewhere, err
}
