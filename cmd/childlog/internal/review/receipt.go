package review

import (
	"context"
	"errors"
	"strings"
	"time"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// receiptFields are the fields of a half in the order of a receipt: what decides
// calls first.
var receiptFields = []string{
	policy.FieldFiles, policy.FieldGrantShell, policy.FieldGrantNetwork, policy.FieldScope, policy.FieldTools, policy.FieldDenied,
	policy.FieldSurface, policy.FieldSpawn, policy.FieldMaxChildren, policy.FieldMaxDepth, policy.FieldDeadline, policy.FieldMaxSteps,
	policy.FieldWrite, policy.FieldNetwork, policy.FieldShell, policy.FieldProviders, policy.FieldCapabilities, policy.FieldDesktop,
}

// delegable is the prefix of a cut of the delegable half.
const delegable = "delegable."

// receipt shows what was asked, what was granted and what was cut; nil if nobody
// delegated to the session or its receipt can't be read.
func (b *builder) receipt() *Receipt {
	g := b.policy.Granted
	if b.policyErr != nil || g == nil {
		return nil
	}
	r := &Receipt{Seq: b.policy.ReceiptSeq, Digest: wire.Hex(b.policy.Receipt), Parent: g.Parent.String(), ParentSeq: g.ParentSeq, ToolCall: optional(g.ToolCall),
		Role: string(g.Choices.Role), NotBefore: wire.MilliTime(int64(min(g.NotBefore, policy.MaxNumber))), Deadline: wire.MilliTime(g.Granted.Own.Profile.Limits.DeadlineMS),
		Approvals: policy.Never.Meaning(), Fields: []ReceiptField{}, Handed: []ReceiptField{}, Relied: wire.ExplicitGrantsOf(g.Relied),
		Operator: wire.OperatorOf(g.Granted.Operator), Lockdown: append([]string{}, g.Lockdown...), MergePolicy: optional(string(g.Merge)),
		Evidence: map[string]string{}}
	f := policy.FingerprintOf(g.Choices.Role, g.Granted)
	r.Fingerprint = wire.Fingerprint{Line: f.Line, SHA256: f.String()}
	if g.Sandbox != nil {
		v := wire.SandboxOf(g.Sandbox.Canonical())
		r.Sandbox = &v
	}
	for field, how := range g.Evidence {
		r.Evidence[field] = how
	}
	cuts := map[string][]policy.Cut{}
	for _, c := range g.Cuts {
		cuts[c.Field] = append(cuts[c.Field], c)
	}
	// The ceiling is what could be handed on: the parent's delegable half.
	for _, name := range receiptFields {
		own := fieldOf(name, g.Ceiling.Delegable, g.Requested.Own, g.Granted.Own, cuts[name])
		r.Fields = append(r.Fields, own)
		handed := fieldOf(name, g.Ceiling.Delegable, g.Requested.Delegable, g.Granted.Delegable, cuts[delegable+name])
		if handed.Granted != own.Granted {
			r.Handed = append(r.Handed, handed)
		}
	}
	return r
}

func fieldOf(name string, ceiling, requested, granted policy.Half, cuts []policy.Cut) ReceiptField {
	text := func(h policy.Half) string {
		if name == policy.FieldDeadline {
			if t := wire.MilliTime(h.Profile.Limits.DeadlineMS); t != nil {
				return *t
			}
		}
		v, _ := h.FieldText(name)
		if name == policy.FieldTools && h.Profile.Tools.Inherits() { // "absent" would read as none
			v = "inherited"
		}
		return v
	}
	f := ReceiptField{Field: name, Ceiling: text(ceiling), Requested: text(requested), Granted: text(granted), Rules: []string{}}
	for i, c := range cuts {
		if f.Rules = append(f.Rules, string(c.Rule)); i == 0 && f.Requested == f.Granted {
			f.Requested = c.From // the request itself lost it, such as network by denying a tool
		}
	}
	return f
}

// history is the policy over time.
func (b *builder) history(ctx context.Context) (PolicyHistory, error) {
	out := PolicyHistory{Events: []PolicyChange{}}
	if b.policyErr != nil {
		text := b.policyErr.Error()
		out.Error = &text
		return out, nil
	}
	now := wire.PolicyOf(&b.policy)
	out.Now = &now
	list, left, err := replay.History(ctx, b.s, b.row.Session, maxHistory)
	if errors.Is(err, eventlog.ErrPolicyUnreadable) { // it was readable a moment ago
		text := err.Error()
		out.Error = &text
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.LeftOut = uint64(left)
	for i := range list {
		m := &list[i]
		change := PolicyChange{Seq: m.Event.Seq, Time: wire.Time(m.Event.Time), Type: m.Event.Type, Source: m.Event.Source.String(), What: m.What, Creation: m.Born, Changes: []FieldChange{}}
		var sandbox FieldChange
		for _, c := range m.Changes {
			f := FieldChange{c.Field, c.From, c.To}
			switch {
			case strings.HasPrefix(c.Field, "sandbox."): // a part of the line before
				continue
			case c.Field == "sandbox":
				sandbox = f
			case c.Field == "bound" && f.From == sandbox.From && f.To == sandbox.To: // the same once more
				continue
			}
			change.Changes = append(change.Changes, f)
		}
		out.Events = append(out.Events, change)
	}
	return out, nil
}

// shortTime is for sentences: UTC, to the second.
func shortTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
