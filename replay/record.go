package replay

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/policy/objection"
)

// decisionTexts is the JSON content of tool/decision: the texts that its facts
// commit to. It can be redacted; the facts stay bound to what was there.
type decisionTexts struct {
	Salt    string         `json:"salt"`
	Tool    string         `json:"tool"` // as given, whatever it is
	Targets []string       `json:"targets"`
	Outside []outside      `json:"outside,omitzero"`
	Before  jsontext.Value `json:"before,omitzero"`  // the arguments before amendments
	Ask     string         `json:"ask,omitzero"`     // the approval that the call named, whatever it was worth
	Request string         `json:"request,omitzero"` // see commitRequest
	Found   string         `json:"found,omitzero"`   // what a classifier says of the command, in words
}

type outside struct {
	Path string `json:"path"`
	Want string `json:"want"`
}

// Record decides a call and records it with its decision, both in one commit:
// tool/call with the final arguments, tool/decision with the rule. The decision
// is made inside the commit, on the policy that is in force there, so nothing
// can come between. A needed allowed-once is used up by it.
//
// A call that was recorded is not recorded again: whoever lost the answer asks
// again with the same call and gets what stands in the log, marked Existing, and
// never more than holds now; see retry.go for the rules. Two that race with one
// call id write one record.
//
// What can't be recorded is still answered, as a denial, with the error beside
// it: a closed session, a superseded activation, an imported log, a policy that
// can't be read. Nothing may be done on an answer that came with an error.
//
// Errors: ErrNotFound, ErrInvalid (no call id, or arguments that are no JSON),
// ErrSessionClosed, ErrFenced, ErrEvidence, ErrPolicyUnreadable, *CallError (the
// id stands for another call) and those of a commit.
func (a *Authorizer) Record(ctx context.Context, r CallRequest) (Judgement, error) {
	args, err := exactArgs(r.Args)
	if err != nil {
		return Judgement{}, err
	}
	before, err := exactArgs(r.Before)
	if err != nil {
		return Judgement{}, err
	}
	if r.Call.ID == "" {
		return Judgement{}, fmt.Errorf("%w: a call that is recorded needs an id", eventlog.ErrInvalid)
	}
	admitted, err := a.admitted(ctx, &r)
	if err != nil {
		return Judgement{}, err
	}
	var out Judgement
	var c *compiled
	results, err := a.s.Transact(ctx, eventlog.EntryRuntime, func(v *eventlog.View) ([]eventlog.Batch, error) {
		out = Judgement{}
		row, now, err := a.compiledIn(v)
		if err != nil {
			return nil, err
		}
		c = now
		if was, found, err := c.again(v, &row, &r, admitted, args, before); err != nil {
			return nil, err
		} else if found {
			out = was
			return nil, nil
		}
		out = Judgement{Moment: moment(&row, v.Now().UnixMilli(), r.Epoch, true)}
		out.Moment.Admitted = admitted
		if r.Ask != "" && c.failure == nil {
			g, err := OnceIn(v, r.use(a.session))
			if out.Grant, err = unlessVoid(g, err); err != nil {
				return nil, err
			}
		}
		out = c.answer(out, &r)
		if err := c.recordable(&row); err != nil {
			return nil, err
		}
		events, err := c.events(v, &row, &out, &r, args, before)
		if err != nil {
			return nil, err
		}
		return []eventlog.Batch{{Session: a.session, Expect: eventlog.At(row.Head), Epoch: r.Epoch, Events: events}}, nil
	})
	if errors.Is(err, eventlog.ErrOutcomeUnknown) { // the plan may be at work on out
		out := Judgement{Session: a.session}
		out.Verdict, out.Code, out.Rule = policy.VerdictDeny, policy.CodePolicyUnreadable, policy.RuleUnrecorded
		return out, err
	}
	if err != nil {
		if out.Verdict != policy.VerdictDeny { // decided and not durable: nothing may rest on it
			out.Verdict, out.Code, out.Rule, out.Grant = policy.VerdictDeny, policy.CodePolicyUnreadable, policy.RuleUnrecorded, nil
		}
		return out, err
	}
	a.keep(c)
	if !out.Existing {
		out.CallSeq, out.DecisionSeq = results[0].FirstSeq, results[0].LastSeq
	}
	return out, nil
}

// Denies reports whether what came with an error of [Authorizer.Record] is a
// denial to be told: the session takes no decisions any more, which is itself the
// reason. With any other error there is no answer at all.
func (j *Judgement) Denies(err error) bool {
	if err == nil || j.Verdict != policy.VerdictDeny || j.Rule == policy.RuleUnrecorded {
		return false
	}
	for _, is := range []error{eventlog.ErrSessionClosed, eventlog.ErrFenced, eventlog.ErrEvidence, eventlog.ErrPolicyUnreadable} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// compiledIn is compiled inside a commit.
func (a *Authorizer) compiledIn(v *eventlog.View) (eventlog.Row, *compiled, error) {
	row, err := v.Row(a.session)
	if err != nil {
		return row, nil, err
	}
	rulesHead := uint64(0)
	if rules, err := v.Row(eventlog.StoreSession); err == nil {
		rulesHead = rules.LastPolicy
	}
	c, err := a.compiled(row.LastPolicy, rulesHead, func() (Effective, policy.OperatorRules, error) {
		_, e, err := View(v, a.session)
		if err != nil || e.keepsRules() {
			return e, policy.OperatorRules{}, err
		}
		rules, err := RulesIn(v)
		return e, rules, err
	})
	return row, c, err
}

// recordable says why an answer can't be written into the session's log.
func (c *compiled) recordable(row *eventlog.Row) error {
	switch {
	case c.failure != nil:
		return c.failure
	case c.subject.Evidence:
		return fmt.Errorf("%w: session %s was imported", eventlog.ErrEvidence, row.Session)
	case row.ClosedSeq != 0:
		return fmt.Errorf("%w: session %s was closed at seq %d", eventlog.ErrSessionClosed, row.Session, row.ClosedSeq)
	}
	return nil // a superseded activation is refused by the writer
}

func (c *compiled) events(v *eventlog.View, row *eventlog.Row, out *Judgement, r *CallRequest, args, before []byte) ([]eventlog.NewEvent, error) {
	salt, err := v.NewSalt()
	if err != nil {
		return nil, err
	}
	texts := decisionTexts{Salt: hex.EncodeToString(salt[:]), Tool: r.Call.Tool, Targets: append([]string{}, out.Targets...), Before: before,
		Ask: r.Ask, Request: commitRequest(salt, r), Found: out.Classified.Text}
	for _, o := range out.Outside {
		texts.Outside = append(texts.Outside, outside(o))
	}
	targets, err := json.Marshal(texts.Targets)
	if err != nil {
		return nil, fmt.Errorf("%w: targets: %w", eventlog.ErrInvalid, err)
	}
	content, err := json.Marshal(texts)
	if err != nil {
		return nil, fmt.Errorf("%w: decision: %w", eventlog.ErrInvalid, err)
	}
	d := eventlog.Decision{Session: row.Session, Root: row.Root, Epoch: r.Epoch, Receipt: c.e.Receipt, Call: r.Call.ID, Tool: out.Tool,
		ArgsAfter: eventlog.CommitArgs(salt, args), TargetCount: uint64(len(texts.Targets)), Targets: eventlog.CommitArgs(salt, targets),
		Classified: out.Classified, Verdict: out.Verdict, Code: out.Code, Rule: out.Rule, Origin: out.Origin, Also: out.AlsoDeniedBy, Ref: r.Ref,
		EvaluatedSeq: out.EvaluatedSeq, Policy: c.digest, EvaluatedMS: uint64(max(0, out.Moment.NowMS)), Steps: out.Moment.Steps, Engine: policy.EngineVersion,
		Enforcement: eventlog.Enforced}
	if !eventlog.IsCode(d.Classified.Why) { // facts hold no free text
		d.Classified.Why = ""
	}
	if d.ArgsBefore = d.ArgsAfter; before != nil {
		d.ArgsBefore = eventlog.CommitArgs(salt, before)
	}
	if r.Outcome != nil {
		d.Objections = r.Outcome.Record
	} else {
		d.Objections = objection.Record{}
	}
	if r.Advisory || !c.e.Enforced() {
		d.Enforcement = eventlog.Advisory
	}
	if d.Decider = out.Decider(); out.Grant != nil {
		d.Ask = out.Grant.Ask
	}
	facts, err := d.Facts()
	if err != nil {
		return nil, err
	}
	tool := r.Call.Tool
	if policy.CheckToolName(tool) != nil {
		tool = eventlog.InvalidTool
	}
	callFacts, err := eventlog.MakeFacts(map[string]any{"call": r.Call.ID, "tool": tool})
	if err != nil {
		return nil, err
	}
	call := eventlog.NewEvent{Type: eventlog.TypeToolCall, Source: eventlog.SourceRuntime, Facts: callFacts}
	if args != nil {
		call.Media, call.Content = eventlog.MediaJSON, args
	}
	return []eventlog.NewEvent{call, {Type: eventlog.TypeToolDecision, Source: eventlog.SourceStore, Facts: facts, Media: eventlog.MediaJSON, Content: content}}, nil
}

// maxAdmitted bounds the targets that a recovery call is held against.
const maxAdmitted = 4096

// admitted collects, for a recovery call, the targets of the session's allowed
// calls, newest last: what was written may be undone even after a narrowing.
// A redacted record gives none. Other calls make no use of it and cost nothing.
func (a *Authorizer) admitted(ctx context.Context, r *CallRequest) ([]string, error) {
	if !policy.IsRecovery(r.Call.Tool) {
		return nil, nil
	}
	row, err := a.s.Row(a.session)
	if err != nil {
		return nil, err
	}
	var out []string
	seen := map[string]bool{}
	for from := uint64(1); from != 0 && from <= row.Head; {
		page, err := a.s.Read(ctx, a.session, eventlog.ReadOptions{From: from, To: row.Head, Contents: true})
		if err != nil {
			return nil, err
		}
		for i := range page.Events {
			ev := &page.Events[i]
			if ev.Type != eventlog.TypeToolDecision || ev.Inherited != nil || ev.ContentErr != nil || ev.Facts.Str("verdict") != string(policy.VerdictAllow) {
				continue
			}
			var texts decisionTexts
			if json.Unmarshal(ev.Content, &texts) != nil {
				continue
			}
			for _, t := range texts.Targets {
				if !seen[t] && len(out) < maxAdmitted {
					seen[t], out = true, append(out, t)
				}
			}
		}
		from = page.Next
	}
	return out, nil
}
