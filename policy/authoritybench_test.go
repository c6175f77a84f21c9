package policy_test

import (
	"testing"

	"childlog/policy"
)

// The largest request that is accepted, under a parent with as much of
// everything: what a hostile manifest can make one derivation cost.
func BenchmarkDeriveLargest(b *testing.B) {
	a := policy.TopAuthority()
	a.Delegable.Profile.Denied = denying(b, numbered("parent%d*", 500)...)
	a.Delegable.Profile.Tools = toolsOf(b, numbered("t%d", 1024)...)
	in := input()
	in.Operator = operatorRules(b, numbered("operator%d", 24), numbered("p/%d", 900))
	r := policy.Request{Role: "implement", MergePolicy: policy.MergeTransactionalWrite, Wish: policy.Wish{
		Tools: toolsOf(b, numbered("t%d", 1024)...), DeniedTools: numbered("r%d", 500), WriteScope: ptr(numbered("s/%d", 16)),
	}, Delegable: &policy.Wish{}}
	for b.Loop() {
		if _, err := policy.Derive(a, in, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDerive(b *testing.B) {
	a := policy.TopAuthority()
	for b.Loop() {
		if _, err := policy.Derive(a, input(), policy.Request{Role: "explore"}); err != nil {
			b.Fatal(err)
		}
	}
}
