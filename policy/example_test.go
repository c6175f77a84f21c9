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
