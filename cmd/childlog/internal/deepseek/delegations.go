package deepseek

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// effective folds the session's policy events with the fold that every reader
// uses, and reports what it finds. In a dry run nothing is in the store, and
// the answer is the same.
func (r *run) effective(ctx context.Context, f *file, sc *scan) (importer.Effective, error) {
	n := sc.notes
	if n.overflow {
		r.find(f, codeTooMuchPolicy, 0, fmt.Sprintf("more than %d policy events; this report folds only those", maxPolicy))
	}
	e, err := replay.Fold(n.policy)
	if sc.beyond > 0 { // the store knows more than this file
		e, err = replay.Policy(ctx, r.S, f.Session, 0)
	}
	if err != nil {
		if ctx.Err() != nil {
			return importer.Effective{}, ctx.Err()
		}
		r.find(f, importer.CodeMalformed, 0, "the policy can't be folded, and nothing may be granted: "+err.Error())
		return importer.Effective{Sandbox: "unreadable", Approvals: string(policy.Never)}, nil
	}
	for _, found := range e.Findings {
		r.Findings.Add(importer.Finding{Code: found.Code, File: f.path, Line: n.policyLine[found.Seq], Session: f.Session, Seq: found.Seq, Detail: found.Detail})
	}
	return importer.Effective{Sandbox: e.Sandbox.Value.String(), Approvals: string(e.Approvals)}, nil
}

// delegations reports a child: who delegated it under what, and its drift.
func (r *run) delegations(o *outcome) {
	f, n := o.f, o.notes
	if !f.h.isChild() {
		return
	}
	d := importer.Delegation{Child: f.Session, ChildExternal: f.Key, Parent: f.Parent, ParentExternal: f.h.parent, ParentMark: f.ParentMark,
		Depth: f.Depth, Label: n.displayLabel(), Provider: n.provider, Mode: n.mode, Seed: f.h.seed,
		Sandbox: n.delegatedSandbox(), Approvals: n.pin(), Told: n.told, Effective: o.effective,
		Call: importer.Fact{Mark: importer.Absent}, ParentSandbox: importer.Fact{Mark: importer.Absent}}
	if f.Parent != uuid.Nil {
		_, err := r.S.Row(f.Parent)
		d.ParentKnown = err == nil || r.done[f.Parent] != nil
		if err != nil && !importer.Gone(err) {
			r.find(f, importer.CodeDamaged, 0, "the parent's state can't be read: "+err.Error())
		}
	}
	call, mark := r.callOf(f, n)
	if mark != importer.Absent {
		d.Tool, d.Call = call.tool, importer.Fact{Value: importer.Code(call.id), Mark: mark, Seq: call.seq}
	}
	if parent := r.done[f.Parent]; parent != nil {
		d.ParentSandbox = parent.notes.sandboxAt(call.seq)
	}
	r.Report.DelegationList = append(r.Report.DelegationList, d)
	r.drift(f, n, &d)
}

// callOf finds the parent's call that made this child: one whose result names
// the child, else the only one with the child's label.
func (r *run) callOf(f *file, n *notes) (call, string) {
	if r.done[f.Parent] == nil {
		return call{}, importer.Absent
	}
	parent := r.done[f.Parent].notes
	if !f.h.placeholder() {
		for _, c := range parent.calls {
			if importer.Mentions(c.result, f.h.id) {
				return c, importer.Recorded
			}
		}
	}
	var found *call
	for i := range parent.calls {
		if c := &parent.calls[i]; n.label != "" && c.description == n.label {
			if found != nil {
				return call{}, importer.Absent // two calls of one label: no telling which
			}
			found = c
		}
	}
	if found == nil {
		return call{}, importer.Absent
	}
	return *found, importer.Inferred
}

// delegatedSandbox is what the delegation captured: the first sandbox of
// source delegation before the pin. None means that the parent had no
// override; what counted then is the default, which no log records.
func (n *notes) delegatedSandbox() importer.Fact {
	if s := n.captured(); s != nil {
		return importer.Fact{Value: s.raw, Mark: importer.Recorded, Seq: s.seq}
	}
	return importer.Fact{Mark: importer.Absent}
}

func (n *notes) captured() *setting {
	pin := n.pin().Seq
	for i := range n.sandboxes {
		if s := &n.sandboxes[i]; s.claimed == eventlog.ClaimedDelegation && (pin == 0 || s.seq < pin) {
			return s
		}
	}
	return nil
}

// pin is the approval pin of the delegation.
func (n *notes) pin() importer.Fact {
	for _, a := range n.approvals {
		if a.claimed == eventlog.ClaimedDelegation {
			return importer.Fact{Value: a.raw, Mark: importer.Recorded, Seq: a.seq}
		}
	}
	return importer.Fact{Mark: importer.Absent}
}

// sandboxAt is what a session's own log had last set before seq; seq 0 is the
// log's end, and then the answer is inferred.
func (n *notes) sandboxAt(seq uint64) importer.Fact {
	out := importer.Fact{Mark: importer.Absent}
	for _, s := range n.sandboxes {
		if seq != 0 && s.seq > seq {
			break
		}
		out = importer.Fact{Value: s.raw, Mark: importer.Recorded, Seq: s.seq}
	}
	if seq == 0 && out.Mark == importer.Recorded {
		out.Mark = importer.Inferred
	}
	return out
}
