package ops

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// Narrowed converts what a narrowing did to one session.
func Narrowed(d *replay.Narrowed) wire.Narrowed {
	v := wire.Narrowed{Session: d.Session.String(), Seq: d.Seq, Changed: d.Skipped == "", Lost: wire.CutsOf(d.Lost), Unread: d.Unread}
	if d.Skipped != "" {
		v.Skipped = &d.Skipped
	}
	if PolicyRead(d) {
		before, after := wire.SandboxOf(d.Before.Canonical()), wire.SandboxOf(d.After.Canonical())
		v.Before, v.After = &before, &after
	}
	return v
}

// PolicyRead reports whether a narrowing knew what its session held.
func PolicyRead(d *replay.Narrowed) bool {
	return !d.Unread && d.Skipped != replay.SkipUnreadable && d.Skipped != replay.SkipEvidence
}

// FieldLines puts explanations of all fields, in their order, into their groups.
func FieldLines(list []replay.Explanation) []wire.FieldLine {
	out := make([]wire.FieldLine, 0, len(list))
	for _, g := range replay.FieldGroups {
		for range g.Fields {
			x := &list[len(out)]
			out = append(out, wire.FieldLine{Group: g.Name, Field: wire.Field{Field: x.Field, Value: x.Value, Cause: wire.CauseOf(x.By)}})
		}
	}
	return out
}

// ExplainCall explains how a call is decided.
func ExplainCall(ctx context.Context, s *eventlog.Store, id uuid.UUID, m *manifest.Call, at uint64) (replay.CallExplanation, error) {
	row, err := s.Row(id)
	if err != nil {
		return replay.CallExplanation{}, err
	}
	call, err := m.Policy(row.WorkspaceRoot)
	if err != nil {
		return replay.CallExplanation{}, err
	}
	return replay.ExplainCall(ctx, s, id, call, at)
}

// Diff converts the comparison of a policy as of two seqs.
func Diff(before, after *replay.Effective, changes []replay.FieldChange) wire.Diff {
	v := wire.Diff{Session: after.Session.String(), From: before.Seq, To: after.Seq, Changes: []wire.FieldChange{}}
	for _, c := range changes {
		v.Changes = append(v.Changes, wire.FieldChange{Field: c.Field, From: c.From, To: c.To, Cause: wire.CauseOf(c.By)})
	}
	return v
}

// RuleSet is an event that set the operator rules, and what it set.
type RuleSet struct {
	Event eventlog.Event
	Rules policy.OperatorRules
}

// RuleHistory reads every set of rules, oldest first.
func RuleHistory(ctx context.Context, s *eventlog.Store) ([]RuleSet, error) {
	events, _, err := s.Policy(ctx, eventlog.StoreSession, 0)
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil, nil
	}
	var sets []RuleSet
	for i := range events {
		if events[i].Type != eventlog.TypeStoreRules {
			continue
		}
		rules, err := eventlog.ParseStoreRules(&events[i])
		if err != nil {
			return nil, err
		}
		sets = append(sets, RuleSet{events[i], rules})
	}
	return sets, err
}

// RulesNow are the rules that the store has, with the history of them.
func RulesNow(ctx context.Context, s *eventlog.Store) (wire.Rules, policy.OperatorRules, []RuleSet, error) {
	rules, err := replay.Rules(ctx, s)
	if err != nil {
		return wire.Rules{}, rules, nil, err
	}
	sets, err := RuleHistory(ctx, s)
	return rulesOf(rules, sets), rules, sets, err
}

// SetRules replaces the operator rules.
func SetRules(ctx context.Context, s *eventlog.Store, f replay.RuleFile) (wire.RulesSet, policy.OperatorRules, error) {
	before, err := RuleHistory(ctx, s)
	if err != nil {
		return wire.RulesSet{}, policy.OperatorRules{}, err
	}
	rules, err := replay.SetRules(ctx, s, f)
	if err != nil {
		return wire.RulesSet{}, rules, err
	}
	after, err := RuleHistory(ctx, s)
	if err != nil {
		return wire.RulesSet{}, rules, err
	}
	return wire.RulesSet{Rules: rulesOf(rules, after), Changed: len(after) > len(before)}, rules, nil
}

func rulesOf(rules policy.OperatorRules, sets []RuleSet) wire.Rules {
	v := wire.Rules{Operator: wire.OperatorOf(rules)}
	if n := len(sets); n > 0 {
		v.Event = &wire.Origin{Session: eventlog.StoreSession.String(), Seq: sets[n-1].Event.Seq}
	}
	return v
}
