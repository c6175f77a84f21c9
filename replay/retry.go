package replay

import (
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// This file answers a call that was recorded before. A call id names one call of
// its session, for ever: whoever lost an answer asks again, with the same call,
// and gets the decision that stands in the log instead of a second one.
//
// What is given back is never more than what holds now:
//
//   - a denial, and that an approval is needed, are given back as recorded,
//     whatever changed since;
//   - an allow is given back as long as it is what would be answered now, under
//     the very policy that it was recorded under, and one that rests on an
//     approval only in the turn and the activation of that. Else the call is
//     decided again and recorded as another one of this id;
//   - across a takeover the same holds: the decision was made before it. To write
//     anything new the superseded harness is fenced, as always;
//   - a call that needed an approval and comes again with one is a new question.
//
// The same id with another tool, other arguments, another escalation or another
// verdict that the caller brings is a conflict, and so is one whose recorded texts were redacted: nothing can be
// compared any more, and a call that might be another one gets no answer.

// CallError says that a call id stands for another call already. It unwraps to
// eventlog.ErrConflict.
type CallError struct {
	Session uuid.UUID
	Call    string
	Seq     uint64 // of the decision on the call that has the id
	Other   string // the first part that differs, in words
}

// Error names the place and the part.
func (e *CallError) Error() string {
	return fmt.Sprintf("conflict: session %s: call %s was decided at seq %d with %s", e.Session, e.Call, e.Seq, e.Other)
}

// Unwrap returns eventlog.ErrConflict.
func (e *CallError) Unwrap() error { return eventlog.ErrConflict }

// commitRequest is the commitment to what a call says beside its tool and its
// arguments, "" if it says nothing.
func commitRequest(salt eventlog.Salt, r *CallRequest) string {
	c, said := &r.Call, r.Call.Verdict
	if r.Found {
		said = policy.Classified{}
	}
	if c.Escalation == nil && said.By == "" && said.Need == "" {
		return ""
	}
	parts := [][]byte{[]byte(said.By), []byte(said.Need)}
	if e := c.Escalation; e != nil {
		s := &e.Sandbox
		flags := fmt.Sprint(s.Network, s.ExcludeTmpdirEnvVar, s.ExcludeSlashTmp, s.Roots.Recorded())
		parts = append(parts, []byte(e.Justification), []byte(s.Mode), []byte(flags))
		for _, dir := range s.Roots.List() {
			parts = append(parts, []byte(dir))
		}
	}
	all := eventlog.Digest(parts...)
	sum := eventlog.CommitArgs(salt, all[:])
	return hex.EncodeToString(sum[:])
}

// again returns the judgement that was recorded on the call, if it answers r;
// false: the call is to be decided. Errors: ErrConflict (another call of this
// id), ErrCorrupt.
func (c *compiled) again(v *eventlog.View, row *eventlog.Row, r *CallRequest, admitted []string, args, before []byte) (Judgement, bool, error) {
	ev, found, err := v.DecisionOf(row.Session, r.Call.ID)
	if err != nil || !found {
		return Judgement{}, false, err
	}
	rec, err := recorded(&ev)
	if err != nil {
		return Judgement{}, false, err
	}
	var texts decisionTexts
	readable := ev.ContentErr == nil && json.Unmarshal(ev.Content, &texts) == nil
	other := "a record that was redacted and can't be compared"
	if readable {
		other = texts.differs(&rec, r, args, before)
	}
	if rec.Verdict == policy.VerdictNeedsApproval && r.Ask != "" && (other != "" || texts.Ask != r.Ask) {
		return Judgement{}, false, nil // the approval came, and the call is held against what was asked
	}
	if other != "" {
		return Judgement{}, false, &CallError{Session: row.Session, Call: r.Call.ID, Seq: ev.Seq, Other: other}
	}
	out := Judgement{Decision: rec.Decided(), Session: row.Session, EvaluatedSeq: rec.EvaluatedSeq, Subject: c.subject, Existing: true,
		Moment: moment(row, v.Now().UnixMilli(), r.Epoch, true), CallSeq: ev.Seq - 1, DecisionSeq: ev.Seq}
	out.Moment.Admitted, out.Moment.Fenced = admitted, false
	if rec.Ask != "" {
		out.Grant = &OnceGrant{Ask: rec.Ask, Decider: rec.Decider, Origin: rec.Decision.Origin.At, Policy: rec.EvaluatedSeq}
	}
	if rec.Verdict != policy.VerdictAllow {
		return out, true, nil
	}
	holds, err := c.holds(v, row, r, &rec, out)
	return out, holds, err
}

// differs names the first part in which a call is another one than the recorded.
func (t *decisionTexts) differs(rec *Recorded, r *CallRequest, args, before []byte) string {
	salt, ok := parseSalt(t.Salt)
	if !ok {
		return "a record without its salt"
	}
	if before == nil {
		before = args
	}
	switch {
	case t.Tool != r.Call.Tool:
		return "another tool"
	case eventlog.CommitArgs(salt, args) != rec.ArgsAfter:
		return "other arguments"
	case eventlog.CommitArgs(salt, before) != rec.ArgsBefore:
		return "other arguments before amendments"
	case t.Request != commitRequest(salt, r):
		return "another escalation or another classifier's verdict"
	}
	return ""
}

// holds reports whether a recorded allow is what would be answered now.
func (c *compiled) holds(v *eventlog.View, row *eventlog.Row, r *CallRequest, rec *Recorded, now Judgement) (bool, error) {
	if c.failure != nil || rec.EvaluatedSeq != c.policyHead || rec.Policy != c.digest {
		return false, nil
	}
	if rec.Ask != "" {
		// Used once: by the call as it was recorded, while that is open.
		if row.TurnSeq == 0 || row.TurnSeq > rec.Seq || rec.Epoch != r.Epoch || !started(row, rec.Call) {
			return false, nil
		}
		asked, _, err := v.AskOf(row.Session, rec.Ask)
		if err != nil {
			return false, err
		}
		a, err := eventlog.ParseAsked(&asked)
		if err != nil {
			return false, err
		}
		g := *now.Grant
		g.Sandbox = a.Escalation
		now.Grant = &g
	}
	now = c.answer(now, r)
	// Targets are part of what was allowed; a caller that gives no arguments
	// names them itself.
	return now.Allowed() && now.Code == rec.Code && slices.Equal(now.Targets, rec.Targets), nil
}

// started reports whether a call was recorded as made and has no result.
func started(row *eventlog.Row, call string) bool {
	return slices.ContainsFunc(row.OpenCalls, func(o eventlog.OpenCall) bool { return o.Call == call && o.Started })
}
