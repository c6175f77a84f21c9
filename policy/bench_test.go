package policy_test

import (
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/require"
)

// busySubject is a child with a hundred deny rules, sixteen places to write in
// and an operator who closed some.
func busySubject(t require.TestingT) policy.Subject {
	h := scoped(t, append(numbered("src/part%d", 15), "docs")...)
	h.Profile.Denied = denying(t, append(append(numbered("tool%d", 50), numbered("server%d*", 48)...), "chmod", "mcp__*")...)
	a := halved(h).Under(operatorRules(t, []string{"deploy"}, []string{"secrets", "src/part3/generated"}))
	s := childSubject(t, policy.Derived{Granted: a})
	s = under(s, write(t, "/w"))
	s.Protected = []string{"/w/.childlog"}
	return s
}

// BenchmarkDecide is an edit with two paths, a shell call and a read, in turn;
// and the same one by one.
func BenchmarkDecide(b *testing.B) {
	calls := map[string]policy.Call{
		"edit":  callOf("MultiEdit", "src/part14/handler.go", "/w/docs/guide/index.md"),
		"shell": inspected("Bash"),
		"read":  callOf("Read", "src/part1/main.go"),
	}
	p := policy.Compile(busySubject(b))
	m := policy.Moment{NowMS: nowMS, Steps: 12}
	b.Run("all", func(b *testing.B) {
		edit, shell, read := calls["edit"], calls["shell"], calls["read"]
		var d policy.Decision
		b.ReportAllocs()
		for b.Loop() {
			p.Decide(&d, &edit, &m)
			p.Decide(&d, &shell, &m)
			p.Decide(&d, &read, &m)
		}
	})
	for name, c := range calls {
		b.Run(name, func(b *testing.B) {
			var d policy.Decision
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(&d, &c, &m)
			}
		})
	}
	b.Run("plain", func(b *testing.B) {
		s := busySubject(b)
		for b.Loop() {
			policy.Authorize(s, calls["edit"], m)
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	s := busySubject(b)
	for b.Loop() {
		policy.Compile(s)
	}
}

// BenchmarkCompileLargest is what the longest lists can make a compilation cost.
func BenchmarkCompileLargest(b *testing.B) {
	h := policy.TopHalf()
	h.Profile.Denied = denying(b, numbered("server%d*", 1024)...)
	h.Profile.Tools = toolsOf(b, numbered("T%d", 1024)...)
	s := rootSubject(b, halved(h))
	var err error
	s.Palette, err = policy.NewPalette(manyEntries(1024)...)
	require.NoError(b, err)
	for b.Loop() {
		policy.Compile(s)
	}
}

// BenchmarkRecovery undoes all that a long session has written.
func BenchmarkRecovery(b *testing.B) {
	p := policy.Compile(rootSubject(b, halved(scoped(b))))
	c, m := callOf("rollback"), policy.Moment{Admitted: numbered("src/dir/file%d", 10_000)}
	var d policy.Decision
	for b.Loop() {
		p.Decide(&d, &c, &m)
	}
	require.True(b, d.Allowed())
}

// The calls of a session allocate nothing once its decision has grown: a
// decision is made for each of them.
func TestDecideAllocatesNothing(t *testing.T) {
	p := policy.Compile(busySubject(t))
	m := policy.Moment{NowMS: nowMS}
	var d policy.Decision
	for _, c := range []policy.Call{
		callOf("MultiEdit", "src/part14/handler.go", "/w/docs/index.md"), inspected("Bash"), callOf("Bash"), callOf("Read"), callOf("WebFetch"), callOf("Task"),
	} {
		require.Zero(t, testing.AllocsPerRun(100, func() { p.Decide(&d, &c, &m) }), c.Tool)
	}
}

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
