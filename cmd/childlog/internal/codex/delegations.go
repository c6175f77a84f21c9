package codex

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/policy"
	"childlog/replay"
)

// effective folds the session's policy events with the fold that every reader
// uses, and reports what it finds. In a dry run nothing is in the store, and
// the answer is the same.
func (r *run) effective(ctx context.Context, f *file, n *notes, stored bool) (importer.Effective, error) {
	if n.overflow {
		r.find(f, codeTooMuch, 0, fmt.Sprintf("more than %d policy changes; this report folds only those", maxPolicy))
	}
	var e replay.Effective
	var err error
	if n.overflow {
		stored = r.w != nil
		if err := r.flush(ctx); err != nil {
			return importer.Effective{}, err
		}
	}
	if stored { // the store knows all of it, or more than this file
		e, err = replay.Policy(ctx, r.S, f.Session, 0)
	} else {
		e, err = replay.Fold(n.policy)
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

// delegation reports a child: who delegated it under what, and its drift.
func (r *run) delegation(ctx context.Context, o *outcome) error {
	f := o.f
	if !f.Child {
		return nil
	}
	d := importer.Delegation{Child: f.Session, ChildExternal: f.Key, Parent: f.Parent, ParentExternal: f.h.parent, ParentMark: f.ParentMark, Depth: f.Depth,
		Label: f.h.label(), Provider: f.h.origin, Sandbox: fact(o.notes.born[0]), Approvals: fact(o.notes.born[1]), Effective: o.effective,
		Call: importer.Fact{Mark: importer.Absent}, ParentSandbox: importer.Fact{Mark: importer.Absent},
		Told: importer.Told{Sandbox: importer.Fact{Mark: importer.Absent}, Approvals: importer.Fact{Mark: importer.Absent}}}
	for i := range r.Report.SessionList {
		if s := &r.Report.SessionList[i]; s.ID == f.Session {
			d.Seed = uint64(s.Inherited)
		}
	}
	if f.Parent != uuid.Nil {
		_, err := r.S.Row(f.Parent)
		d.ParentKnown = err == nil || r.done[f.Parent] != nil
		if err != nil && !importer.Gone(err) {
			r.find(f, importer.CodeDamaged, 0, "the parent's state can't be read: "+err.Error())
		}
	}
	c, err := r.callOf(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		r.find(f, importer.CodeDamaged, 0, "the parent's log can't be read: "+err.Error())
	}
	at := [2]*setting{o.notes.born[0], o.notes.born[1]}
	if c != nil {
		d.Tool, d.Call = c.tool, importer.Fact{Value: importer.Code(c.id), Mark: importer.Recorded, Seq: c.seq}
		d.ParentSandbox = fact(c.sandbox)
		for i, s := range []*setting{c.sandbox, c.approvals} {
			if at[i] == nil && s != nil { // imported before its parent's log was
				at[i] = &setting{raw: s.raw, value: s.value, mark: importer.Inferred}
			}
		}
		if d.Sandbox.Mark == importer.Absent {
			d.Sandbox = fact(at[0])
		}
		if d.Approvals.Mark == importer.Absent {
			d.Approvals = fact(at[1])
		}
	}
	r.Report.DelegationList = append(r.Report.DelegationList, d)
	r.drift(f, o.notes, at, &d)
	return nil
}

// callOf finds the parent's call that made this child: where the child's first
// event says, else in what is known of the parent's log.
func (r *run) callOf(ctx context.Context, o *outcome) (c *call, err error) {
	f := o.f
	if f.Parent == uuid.Nil {
		return nil, nil
	}
	n := (*notes)(nil)
	if parent := r.done[f.Parent]; parent != nil {
		n = parent.notes
	} else if n, err = storedNotes(ctx, r.S, f.Parent); importer.Gone(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	c = n.callOf(&f.h)
	switch {
	case c != nil || !n.stored:
		return c, nil
	case o.notes.parentSeq != 0:
		return storedCall(ctx, r.S, f.Parent, o.notes.parentSeq, n)
	}
	if err := n.spawns(ctx, r.S, f.Parent); err != nil { // the child was imported before its parent
		return nil, err
	}
	n.stored = false
	return n.callOf(&f.h), nil
}

func fact(s *setting) importer.Fact {
	if s == nil {
		return importer.Fact{Mark: importer.Absent}
	}
	return importer.Fact{Value: s.raw, Mark: s.mark, Seq: s.seq}
}

// maxDrift bounds the differences that are listed of one child.
const maxDrift = 20

// drift reports where a child's policy at work is not the one of its
// delegation. What childlog counts is in every case the narrower.
func (r *run) drift(f *file, n *notes, at [2]*setting, d *importer.Delegation) {
	listed := 0
	add := func(field, counts string, before, after *setting, detail string) {
		if listed++; listed <= maxDrift {
			r.Report.Drift = append(r.Report.Drift, importer.Drift{Session: f.Session, External: f.Key, Field: field,
				AtDelegation: fact(before), AtWork: fact(after), Counts: counts, Detail: detail})
		}
	}
	if at[0] != nil {
		for i := range n.sandboxes {
			if s := &n.sandboxes[i]; !same(s.value, at[0].value) {
				add("sandbox", d.Effective.Sandbox, at[0], s, sandboxDrift(at[0].value, s.value))
			}
		}
	}
	if at[1] != nil {
		for i := range n.approvals {
			if s := &n.approvals[i]; s.raw != at[1].raw {
				detail := "the child worked under another approval policy than its parent had"
				if policy.Approval(s.raw).Effective() != policy.Never {
					detail += "; a child's approvals count as never"
				}
				add("approvals", d.Effective.Approvals, at[1], s, detail)
			}
		}
	}
	if listed > maxDrift {
		r.find(f, codeTooMuch, 0, fmt.Sprintf("%d differences between the policy at delegation and at work; %d are listed", listed, maxDrift))
	}
}

// sandboxDrift says in what two sandboxes differ.
func sandboxDrift(before, after policy.Sandbox) string {
	switch {
	case !after.Mode.Known():
		return "can't be compared, and counts as read-only"
	case after.Within(before):
		return "narrower than the delegation"
	case before.Within(after):
		return "wider than the delegation, which is kept: " + after.String()
	}
	return "other than the delegation, and only what both permit counts: " + after.String()
}
