package policy_test

import (
	"errors"
	"fmt"

	"childlog/policy"

	"github.com/google/uuid"
)

// A root works in its workspace, an operator narrows it, and a switch back is
// refused with the event to look at.
func ExampleLedger() {
	session := uuid.MustParse("0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f")
	cause := func(source policy.Source, seq uint64) policy.Cause {
		return policy.Cause{Source: source, Origin: policy.Origin{Session: session, Seq: seq}}
	}
	workspace, err := policy.Setting{Mode: policy.WorkspaceWrite}.Resolve("/w")
	if err != nil {
		fmt.Println(err)
		return
	}

	l := policy.RootLedger(workspace, cause(policy.SourceDefault, 1))
	fmt.Println(l.Effective().Value)

	l.Narrow(policy.Sandbox{Mode: policy.ReadOnly}, cause(policy.SourceNarrowing, 5))
	fmt.Println(l.Effective().Value, "by", l.Effective().Cause())

	err = l.Switch(workspace, cause(policy.SourceSwitch, 6))
	fmt.Println(errors.Is(err, policy.ErrWidening), err)

	// Output:
	// workspace-write /w (network off)
	// read-only (network off) by narrowing 0a1b2c3d@5
	// true widening: sandbox: got workspace-write /w (network off), want within read-only (network off), set by narrowing 0a1b2c3d@5
}

// An explorer delegates to a worker, which tries to write and to run a command:
// nobody gets more than the explorer had.
func ExampleAuthorize() {
	receipt := policy.Origin{Session: uuid.MustParse("0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"), Seq: 3}
	explorer, err := policy.Derive(policy.TopAuthority(), policy.DeriveInput{Depth: 1}, policy.Request{Role: "explore"})
	if err != nil {
		fmt.Println(err)
		return
	}
	worker, err := policy.Derive(explorer.Granted, policy.DeriveInput{Depth: 2, Receipt: receipt}, policy.Request{Role: "implement"})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := policy.Subject{
		Session: receipt.Session, Child: true,
		Authority: worker.Granted, Causes: policy.BirthCauses(worker.Granted, worker.Ceiling, worker.Choices.Role, worker.Cuts, receipt),
		Sandbox: policy.Trace(policy.Top(), policy.Cause{Source: policy.SourceDelegation, Origin: receipt}), Bound: policy.Top(),
	}
	for _, call := range []policy.Call{
		policy.NewCall("call-1", "Read", map[string]any{"file_path": "main.go"}),
		policy.NewCall("call-2", "Write", map[string]any{"file_path": "main.go"}),
		policy.NewCall("call-3", "exec_command", map[string]any{"cmd": "touch x"}),
	} {
		d := policy.Authorize(p, call, policy.Moment{})
		fmt.Println(d.Reason())
		if !d.Allowed() {
			fmt.Println("  to change it:", d.Change(&p))
		}
	}

	// Output:
	// allow: allowed: "Read"
	// deny: files: "Write" by parent_delegable, session 0a1b2c3d@3
	//   to change it: delegate again with files write instead of read
	// deny: shell: "exec_command" by parent_delegable, session 0a1b2c3d@3
	//   to change it: classify the command as needing at most inspect, or delegate again with more shell than that
}
