package deepseek

import (
	"fmt"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
)

// drift reports where a child's policy at work is not the one of its
// delegation. What childlog counts is in every case the narrower.
func (r *run) drift(f *file, n *notes, d *importer.Delegation) {
	add := func(field string, before, after importer.Fact, detail string) {
		counts := d.Effective.Sandbox
		if field == "approvals" {
			counts = d.Effective.Approvals
		}
		r.Report.Drift = append(r.Report.Drift, importer.Drift{Session: f.Session, External: f.Key, Field: field,
			AtDelegation: before, AtWork: after, Counts: counts, Detail: detail})
	}
	if d.ParentSandbox.Mark == importer.Recorded && d.ParentSandbox.Value != d.Sandbox.Value {
		detail := "the parent's log had this set when it delegated, and the child's log holds another value"
		if d.Sandbox.Mark == importer.Absent {
			detail = "the parent's log had this set when it delegated, and the child's log holds nothing of it"
		}
		add("sandbox", d.ParentSandbox, d.Sandbox, detail)
		r.Findings.Add(importer.Finding{Code: codeCapture, File: f.path, Session: f.Session, Seq: d.Sandbox.Seq, Detail: "sandbox " + d.ParentSandbox.String() + " in the parent, " + d.Sandbox.String() + " in the child"})
	}
	n.sandboxDrift(d, add)
	n.approvalDrift(d, add)
}

type addDrift func(field string, before, after importer.Fact, detail string)

func (n *notes) sandboxDrift(d *importer.Delegation, add addDrift) {
	captured := n.captured()
	var last *setting
	switches := 0
	for i := range n.sandboxes {
		if s := &n.sandboxes[i]; captured == nil || s.seq != captured.seq {
			last = s
			switches++
		}
	}
	force := d.Sandbox // what the log itself says is in force at its end
	if last != nil && (captured == nil || last.seq > captured.seq) {
		force = importer.Fact{Value: last.raw, Mark: importer.Recorded, Seq: last.seq}
		switch {
		case captured == nil:
			add("sandbox", d.Sandbox, force, plural(switches, "switch", "switches")+" from a default that was not recorded")
		case !last.value.Equal(captured.value):
			detail := "narrower than the delegation"
			if !last.value.Within(captured.value) {
				detail = "wider than the delegation, which is kept"
			}
			add("sandbox", d.Sandbox, force, plural(switches, "switch", "switches")+"; "+detail)
		}
	}
	if told := n.told.Sandbox; told.Mark == importer.Inferred && force.Mark == importer.Recorded && told.Value != force.Value && told.Seq > force.Seq {
		add("sandbox", force, told, "the model was told another mode than its log had in force")
	}
}

func (n *notes) approvalDrift(d *importer.Delegation, add addDrift) {
	before := d.Approvals
	if k := len(n.approvals); k > 0 {
		last := n.approvals[k-1]
		if last.claimed != eventlog.ClaimedDelegation && policy.Approval(last.raw).Effective() != policy.Never {
			add("approvals", before, importer.Fact{Value: last.raw, Mark: importer.Recorded, Seq: last.seq}, "a child's approvals are never, whatever its log says later")
		}
	}
	if told := n.told.Approvals; told.Value == string(policy.Ask) {
		add("approvals", before, told, "the model was told that it may ask")
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
