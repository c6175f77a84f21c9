package replay_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// TestHandLogsFold: the logs that the tables below break fold when they are
// whole. Without this every refusal could have another reason.
func TestHandLogsFold(t *testing.T) {
	for _, l := range []*handLog{rootLog(t), childLog(t, nil), childLog(t, fullAccess()), evidenceLog(t, eventlog.KindChild), evidenceLog(t, eventlog.KindRoot)} {
		_, err := l.fold()
		require.NoError(t, err)
	}
}

// TestFoldRefusesABrokenDelegation: a delegation is written in one unit, so
// whatever is missing, doubled, moved or contradicted was not written by us.
// There is no default to fall back to.
func TestFoldRefusesABrokenDelegation(t *testing.T) {
	d := eventlog.SourceDelegation
	never, ask := eventlog.ApprovalFacts(policy.Never), eventlog.ApprovalFacts(policy.Ask)
	top := eventlog.SandboxFacts(policy.Top())
	for name, break_ := range map[string]func() *handLog{
		"no events":                  func() *handLog { return childLog(t, nil).cut(1, 2, 3) },
		"created alone":              func() *handLog { return childLog(t, nil).cut(2, 3) },
		"not beginning with created": func() *handLog { return childLog(t, nil).cut(1) },
		"created at seq 2":           func() *handLog { l := childLog(t, nil); l.at(1).Seq = 2; l.at(2).Seq = 3; l.at(3).Seq = 4; return l },
		"created is a seed copy": func() *handLog {
			l := childLog(t, nil)
			l.at(1).Inherited = &eventlog.Ref{Session: handParent, Seq: 1}
			return l
		},
		"missing receipt":               func() *handLog { return childLog(t, nil).cut(2) },
		"missing receipt, with sandbox": func() *handLog { return childLog(t, fullAccess()).cut(2) },
		"missing sandbox":               func() *handLog { return childLog(t, fullAccess()).cut(3) },
		"missing pin":                   func() *handLog { return childLog(t, nil).cut(3) },
		"missing pin, with sandbox":     func() *handLog { return childLog(t, fullAccess()).cut(4) },
		"second pin":                    func() *handLog { return childLog(t, nil).add(eventlog.TypeApprovalPolicy, d, never) },
		"pin before receipt": func() *handLog {
			l := childLog(t, nil)
			l.events[1], l.events[2] = l.events[2], l.events[1]
			l.at(2).Seq, l.at(3).Seq = 2, 3
			return l
		},
		"pin before sandbox": func() *handLog {
			l := childLog(t, fullAccess())
			l.events[2], l.events[3] = l.events[3], l.events[2]
			l.at(3).Seq, l.at(4).Seq = 3, 4
			return l
		},
		"sandbox before receipt": func() *handLog {
			l := childLog(t, fullAccess())
			l.events[1], l.events[2] = l.events[2], l.events[1]
			l.at(2).Seq, l.at(3).Seq = 2, 3
			return l
		},
		"second receipt": func() *handLog {
			l := childLog(t, nil)
			return l.add(eventlog.TypeDelegationGranted, d, l.at(2).Facts)
		},
		"a sandbox the receipt does not name": func() *handLog {
			l := childLog(t, nil).cut(3)
			return l.add(eventlog.TypeSandboxMode, d, top).add(eventlog.TypeApprovalPolicy, d, never)
		},
		"another sandbox than the receipt's": func() *handLog {
			l := childLog(t, ptr(readOnly()))
			l.at(3).Facts = top
			return l
		},
		"a second delegated sandbox": func() *handLog {
			l := childLog(t, fullAccess()).cut(4)
			return l.add(eventlog.TypeSandboxMode, d, top).add(eventlog.TypeApprovalPolicy, d, never)
		},
		"a delegated sandbox after the pin": func() *handLog { return childLog(t, fullAccess()).add(eventlog.TypeSandboxMode, d, top) },
		"pin with ask":                      func() *handLog { l := childLog(t, nil); l.at(3).Facts = ask; return l },
		"pin with a foreign value": func() *handLog {
			l := childLog(t, nil)
			l.at(3).Facts = eventlog.ApprovalFacts("on-request")
			return l
		},
		"a receipt that says ask":     func() *handLog { return childLog(t, nil).set(2, "approvals", "ask") },
		"a receipt without approvals": func() *handLog { return childLog(t, nil).set(2, "approvals", nil) },
		"a switch inside the delegation": func() *handLog {
			l := childLog(t, fullAccess())
			tail := append([]eventlog.Event(nil), l.events[2:]...)
			l.events = l.events[:2]
			l.add(eventlog.TypeSandboxMode, eventlog.SourceRuntime, eventlog.SandboxFacts(readOnly()))
			for _, ev := range tail {
				l.add(ev.Type, ev.Source, ev.Facts)
			}
			return l
		},
		"a narrowing inside the delegation": func() *handLog {
			l := childLog(t, fullAccess())
			tail := append([]eventlog.Event(nil), l.events[2:]...)
			l.events = l.events[:2]
			l.add(eventlog.TypePolicyNarrowed, eventlog.SourceOperator, eventlog.NarrowedFacts(readOnly(), "operator"))
			for _, ev := range tail {
				l.add(ev.Type, ev.Source, ev.Facts)
			}
			return l
		},
		"events out of order": func() *handLog {
			l := childLog(t, nil).add(eventlog.TypeSandboxMode, eventlog.SourceRuntime, eventlog.SandboxFacts(readOnly()))
			l.at(4).Seq = 2
			return l
		},
		"a seq twice": func() *handLog {
			l := childLog(t, nil).add(eventlog.TypePolicyNarrowed, eventlog.SourceOperator, eventlog.NarrowedFacts(readOnly(), "operator"))
			l.at(4).Seq = 3
			return l
		},
		"created twice": func() *handLog { l := childLog(t, nil); return l.add(eventlog.TypeSessionCreated, d, l.at(1).Facts) },
		"a child with a profile": func() *handLog {
			return childLog(t, nil).add(eventlog.TypePolicyProfile, eventlog.SourceOperator, facts(t))
		},
		"an event of another session": func() *handLog {
			l := childLog(t, nil).add(eventlog.TypeSandboxMode, eventlog.SourceRuntime, eventlog.SandboxFacts(readOnly()))
			l.at(4).Session = handRoot
			return l
		},
		"an unmarked policy event": func() *handLog {
			l := childLog(t, fullAccess()).add(eventlog.TypePolicyNarrowed, eventlog.SourceOperator, eventlog.NarrowedFacts(readOnly(), "operator"))
			l.at(5).PolicyBearing = false
			return l
		},
		"a message marked as policy": func() *handLog {
			l := childLog(t, nil).add(eventlog.TypeUserMessage, eventlog.SourceUser, nil)
			l.at(4).PolicyBearing = true
			return l
		},
		"the child is its own parent": func() *handLog { return childLog(t, nil).set(1, "parent", handChild).set(2, "parent", handChild) },
		"the child is its own root":   func() *handLog { return childLog(t, nil).set(1, "root", handChild).set(2, "root", handChild) },
		"a child of depth 0":          func() *handLog { return childLog(t, nil).set(1, "depth", 0).set(2, "depth", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			e, err := break_().fold()
			require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
			require.Equal(t, replay.Effective{}, e, "a refusal grants nothing")
		})
	}
}

// TestFoldRefusesADisagreeingReceipt: each field that stands both in the
// receipt and in session/created must be the same in both.
func TestFoldRefusesADisagreeingReceipt(t *testing.T) {
	other := uuid.MustParse("44444444-4444-4444-8444-444444444444")
	for field, value := range map[string]any{
		"parent": other, "child": other, "root": other, "depth": 1, "max_depth": 8, "parent_seq": 6, "parent_head": eventlog.Digest([]byte("another")),
		"defaults": map[string]any{"sandbox": map[string]any{"mode": "danger-full-access", "network": true, "exclude_tmpdir_env_var": false, "exclude_slash_tmp": false}, "approvals": "ask"},
	} {
		t.Run(field, func(t *testing.T) {
			_, err := childLog(t, nil).set(2, field, value).fold()
			require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
			require.ErrorIs(t, err, eventlog.ErrCorrupt)
		})
	}
	t.Run("workspace", func(t *testing.T) {
		_, err := childLog(t, nil).set(2, "workspace_root", "/elsewhere").fold()
		require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
	})
	t.Run("seed", func(t *testing.T) {
		_, err := childLog(t, nil).set(2, "seed", map[string]any{"length": 3, "digest": eventlog.Digest()}).fold()
		require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
	})
	t.Run("the created side", func(t *testing.T) {
		_, err := childLog(t, nil).set(1, "max_depth", 8).fold()
		require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
	})
}

// TestFoldRefusesAWrongSource: the source is what makes an event believable,
// and only one entry point can have written each.
func TestFoldRefusesAWrongSource(t *testing.T) {
	all := []eventlog.Source{0, eventlog.SourceDelegation, eventlog.SourceOperator, eventlog.SourceImport, eventlog.SourceStore, eventlog.SourceUser, eventlog.SourceRuntime, 99}
	grown := func() *handLog {
		return childLog(t, fullAccess()).add(eventlog.TypeSandboxMode, eventlog.SourceRuntime, eventlog.SandboxFacts(readOnly())).
			add(eventlog.TypeApprovalPolicy, eventlog.SourceRuntime, eventlog.ApprovalFacts(policy.Never)).
			add(eventlog.TypePolicyNarrowed, eventlog.SourceOperator, eventlog.NarrowedFacts(readOnly(), "operator"))
	}
	rooted := func() *handLog { return rootLog(t).add(eventlog.TypePolicyProfile, eventlog.SourceOperator, facts(t)) }
	for _, c := range []struct {
		name string
		log  func() *handLog
		seq  int
		good []eventlog.Source
	}{
		{"child created", grown, 1, []eventlog.Source{eventlog.SourceDelegation}},
		{"receipt", grown, 2, []eventlog.Source{eventlog.SourceDelegation}},
		{"delegated sandbox", grown, 3, []eventlog.Source{eventlog.SourceDelegation}},
		{"pin", grown, 4, []eventlog.Source{eventlog.SourceDelegation}},
		{"switch", grown, 5, []eventlog.Source{eventlog.SourceRuntime, eventlog.SourceOperator}},
		{"approval switch", grown, 6, []eventlog.Source{eventlog.SourceRuntime, eventlog.SourceOperator}},
		{"narrowing", grown, 7, []eventlog.Source{eventlog.SourceOperator}},
		{"root created", rooted, 1, []eventlog.Source{eventlog.SourceOperator}},
		{"profile", rooted, 2, []eventlog.Source{eventlog.SourceOperator}},
		{"evidence created", func() *handLog { return evidenceLog(t, eventlog.KindChild) }, 1, []eventlog.Source{eventlog.SourceImport}},
		{"evidence sandbox", func() *handLog {
			return evidenceLog(t, eventlog.KindRoot).add(eventlog.TypeSandboxMode, 0, eventlog.ImportedSandboxFacts(readOnly(), eventlog.ClaimedSwitch))
		}, 2, []eventlog.Source{eventlog.SourceImport}},
	} {
		for _, src := range all {
			l := c.log()
			l.at(c.seq).Source = src
			_, err := l.fold()
			if contains(c.good, src) {
				require.NoError(t, err, "%s with source %s", c.name, src)
				continue
			}
			require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable, "%s with source %s (%d)", c.name, src, src)
		}
	}
}

// TestFoldRefusesAKindThatDoesNotFit: kind, parent, root and depth are one
// statement.
func TestFoldRefusesAKindThatDoesNotFit(t *testing.T) {
	for name, l := range map[string]*handLog{
		"root with a parent":       rootLog(t).set(1, "parent", handParent),
		"stub with a parent":       rootLog(t).set(1, "kind", "stub").set(1, "parent", handParent),
		"child without a parent":   childLog(t, nil).set(1, "parent", nil),
		"unknown kind":             rootLog(t).set(1, "kind", "grandparent"),
		"kind of another type":     rootLog(t).set(1, "kind", 7),
		"no kind":                  rootLog(t).set(1, "kind", nil),
		"no root":                  rootLog(t).set(1, "root", nil),
		"a root of another tree":   rootLog(t).set(1, "root", handChild),
		"a root with a depth":      rootLog(t).set(1, "depth", 1),
		"root that was delegated":  rootLog(t).add(eventlog.TypeDelegationGranted, eventlog.SourceDelegation, childLog(t, nil).at(2).Facts),
		"root with a pin":          rootLog(t).add(eventlog.TypeApprovalPolicy, eventlog.SourceDelegation, eventlog.ApprovalFacts(policy.Never)),
		"root with a delegated sb": rootLog(t).add(eventlog.TypeSandboxMode, eventlog.SourceDelegation, eventlog.SandboxFacts(policy.Top())),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := l.fold()
			require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
		})
	}
}

// TestFoldRefusesWhatItCantRead: an unknown ceiling, an unknown type of a
// closed family, a newer schema and a widening in the log itself.
func TestFoldRefusesWhatItCantRead(t *testing.T) {
	narrowing := func(ceiling map[string]any) *handLog {
		return childLog(t, fullAccess()).add(eventlog.TypePolicyNarrowed, eventlog.SourceOperator, facts(t, "ceiling", ceiling, "by", "operator"))
	}
	sandbox := map[string]any{"mode": "read-only"}
	t.Run("ceilings", func(t *testing.T) {
		_, err := narrowing(map[string]any{"sandbox": sandbox}).fold()
		require.NoError(t, err)
		for name, ceiling := range map[string]map[string]any{
			"unknown kind":      {"budget": map[string]any{"usd": 5}},
			"known and unknown": {"sandbox": sandbox, "budget": map[string]any{"usd": 5}},
			"empty":             {},
			"not a map":         {"sandbox": "read-only"},
			"without a mode":    {"sandbox": map[string]any{"network": false}},
		} {
			_, err := narrowing(ceiling).fold()
			require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable, name)
		}
	})
	t.Run("unknown types", func(t *testing.T) {
		for _, typ := range []string{"policy/budget", "sandbox/profile", "session/paused", "delegation/revoked", "approval/delegated", "content/replaced"} {
			for _, bearing := range []bool{true, false} {
				l := childLog(t, fullAccess()).add(typ, eventlog.SourceOperator, facts(t))
				l.at(5).PolicyBearing = bearing
				_, err := l.fold()
				require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable, "%s, bearing %t", typ, bearing)
				require.ErrorIs(t, err, eventlog.ErrUnknownType, "%s, bearing %t", typ, bearing)
			}
		}
	})
	t.Run("newer schema", func(t *testing.T) {
		for seq := 1; seq <= 4; seq++ {
			l := childLog(t, fullAccess())
			l.at(seq).Version++
			_, err := l.fold()
			require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
			require.ErrorIs(t, err, eventlog.ErrUnknownType)
		}
	})
	t.Run("a widening in the log", func(t *testing.T) {
		_, err := childLog(t, ptr(readOnly())).add(eventlog.TypeSandboxMode, eventlog.SourceRuntime, eventlog.SandboxFacts(policy.Top())).fold()
		require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
		_, err = childLog(t, nil).add(eventlog.TypeApprovalPolicy, eventlog.SourceRuntime, eventlog.ApprovalFacts(policy.Ask)).fold()
		require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
		_, err = rootLog(t).add(eventlog.TypePolicyNarrowed, eventlog.SourceOperator, eventlog.NarrowedFacts(readOnly(), "operator")).
			add(eventlog.TypeSandboxMode, eventlog.SourceOperator, eventlog.SandboxFacts(policy.Top())).fold()
		require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
	})
	t.Run("a native switch to a foreign mode", func(t *testing.T) {
		_, err := rootLog(t).add(eventlog.TypeSandboxMode, eventlog.SourceOperator, eventlog.SandboxFacts(policy.Sandbox{Mode: "external-sandbox"})).fold()
		require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
	})
}

func contains[T comparable](list []T, v T) bool {
	for _, e := range list {
		if e == v {
			return true
		}
	}
	return false
}

func ptr[T any](v T) *T { return &v }
