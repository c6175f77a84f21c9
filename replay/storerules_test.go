package replay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

func (f *fixture) rules(tools ...string) {
	f.t.Helper()
	_, err := replay.SetRules(f.ctx, f.Store, replay.RuleFile{DenyTools: tools, Text: []byte("a rule file")})
	require.NoError(f.t, err)
}

// TestStoreRulesUnreadable: one flipped bit in the rules of the store. What is
// denied is not known any more, so no root may do anything and nothing can be
// captured, nor materialized from a capture taken before. A child has its own
// copy and goes on.
func TestStoreRulesUnreadable(t *testing.T) {
	f := newFixture(t)
	f.damaged = true
	f.rules("chmod")
	root := f.rootWith(policy.DangerFullAccess)
	child := f.child(root).ID
	f.rewrite(eventlog.StoreSession, flip(eventlog.TypeStoreRules))
	f.dropIndex()
	f.open(eventlog.Options{})

	_, err := replay.Rules(f.ctx, f.Store)
	require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
	for _, id := range []uuid.UUID{root, child} {
		_, err = snapshot.Take(f.ctx, f.Store, id, snapshot.Options{})
		require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
	}
	call := replay.CallRequest{Call: policy.Call{ID: "c1", Tool: "read"}}
	j, err := replay.NewAuthorizer(f.Store, root).Decide(f.ctx, call)
	require.NoError(t, err)
	require.Equal(t, policy.CodePolicyUnreadable, j.Code)
	j, err = replay.NewAuthorizer(f.Store, child).Decide(f.ctx, call)
	require.NoError(t, err)
	require.Equal(t, policy.VerdictAllow, j.Verdict, "%s", j.Code)
	j, err = replay.NewAuthorizer(f.Store, child).Record(f.ctx, call)
	require.NoError(t, err)
	require.Equal(t, policy.VerdictAllow, j.Verdict, "%s", j.Code)
	_, err = replay.Resume(f.ctx, f.Store, replay.Request{Session: child, By: replay.AsParent(root)})
	require.NoError(t, err)
	_, err = replay.SetRules(f.ctx, f.Store, replay.RuleFile{DenyTools: []string{"curl"}})
	require.Error(t, err)
	_, err = replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: child, Rules: true, Reason: "r"})
	require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
	f.narrow(child, policy.ReadOnly, false)
}

// TestStoreSessionIsNoSession: the store's own session plays no part of one,
// whether there are rules or not.
func TestStoreSessionIsNoSession(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	for range 2 {
		id := eventlog.StoreSession
		for name, err := range map[string]error{
			"root":     second(materialize.Root(f.ctx, f.Store, materialize.RootRequest{ID: id})),
			"child":    second(materialize.Delegate(f.ctx, f.Store, root, snapshot.Options{}, materialize.Request{ID: id})),
			"parent":   second(materialize.Delegate(f.ctx, f.Store, id, snapshot.Options{}, materialize.Request{})),
			"narrow":   second(replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: id, Rules: true, Reason: "r"})),
			"settle":   second(replay.Settle(f.ctx, f.Store, id, 0, "completed")),
			"activate": second(replay.Activate(f.ctx, f.Store, id, replay.AsOperator())),
			"resume":   second(replay.Resume(f.ctx, f.Store, replay.Request{Session: id, By: replay.AsOperator()})),
			"policy":   second(replay.Policy(f.ctx, f.Store, id, 0)),
			"append":   second(f.Store.Append(f.ctx, eventlog.Batch{Session: id, Expect: eventlog.Any(), Events: []eventlog.NewEvent{event(t, "user/message")}})),
		} {
			require.Error(t, err, name)
		}
		_, _, err := replay.Switch(f.ctx, f.Store, id, replay.Change{Approvals: policy.Never})
		require.Error(t, err)
		f.rules("chmod")
	}
	all, err := replay.Narrow(f.ctx, f.Store, replay.Narrowing{All: true, Rules: true, Reason: "r"})
	require.NoError(t, err)
	require.Len(t, all, 1, "nor is it one of all")
}

func second[T any](_ T, err error) error { return err }

// TestCase7_AnAuthorityCeiling: a narrowing of the authority reaches the child
// and the grandchild, names what they lost and binds from its seq on; an
// ordinary change of the parent's reaches nobody and shows as drift.
func TestCase7_AnAuthorityCeiling(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	child := f.child(root).ID
	grandchild := f.child(child).ID
	ceiling := &policy.Wish{Shell: new(policy.ShellReadOnly), WriteScope: &[]string{"src"}}
	_, err := replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: root, Authority: ceiling, Reason: "r"})
	require.NoError(t, err)
	require.Equal(t, policy.GrantFull, f.policy(child).Authority.Own.Grant.Shell)
	kinds := map[string]bool{}
	for _, d := range f.resume(child, replay.AsParent(root)).Drift {
		kinds[d.Kind+" "+d.Field] = true
	}
	require.True(t, kinds["parent-tightened grant.shell"] && kinds["parent-tightened grant.write_scope"], "%v", kinds)

	done, err := replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: root, Authority: ceiling, Reason: "r", Subtree: true})
	require.NoError(t, err)
	require.Equal(t, replay.SkipNarrower, done[0].Skipped)
	for i, id := range []uuid.UUID{child, grandchild} {
		e := f.policy(id)
		require.Equal(t, policy.GrantInspect, e.Authority.Own.Grant.Shell)
		require.Equal(t, []string{"src"}, e.Authority.Delegable.Grant.Scope.Entries())
		require.NotEmpty(t, done[i+1].Lost)
		was, err := replay.Policy(f.ctx, f.Store, id, done[i+1].Seq-1)
		require.NoError(t, err)
		require.Equal(t, policy.GrantFull, was.Authority.Own.Grant.Shell)
	}
	require.Empty(t, f.resume(child, replay.AsParent(root)).Drift)
}

// TestCase45_TheRecordedScopeConfines: the scope in a child's receipt is what
// its guard is held to, and a shell call under it is a violation of the scope,
// whatever else would refuse it (case 43).
func TestCase45_TheRecordedScopeConfines(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.childOf(root, materialize.Request{Want: policy.Request{Wish: policy.Wish{WriteScope: &[]string{"src/a"}}}}).ID
	f.reopen(eventlog.Options{})
	declared := f.policy(child).Authority.Own.Grant.Scope
	for _, c := range []struct {
		guard []string
		runs  bool
	}{{[]string{"src/a"}, true}, {[]string{"src/a/b"}, true}, {[]string{}, true}, {[]string{"src"}, false}, {[]string{"src/a", "docs"}, false}} {
		guard := must(policy.ParseScope(c.guard))
		require.Equal(t, c.runs, policy.Confine(declared, &guard) == nil, "%v", c.guard)
	}
	require.ErrorIs(t, policy.Confine(declared, nil), policy.ErrUnconfined)
	j, err := replay.NewAuthorizer(f.Store, child).Decide(f.ctx, replay.CallRequest{Call: policy.NewCall("c1", "bash", map[string]any{"command": "touch src/a/x"})})
	require.NoError(t, err)
	require.Equal(t, policy.Code(policy.CodeWriteScopeViolation), j.Code)
}

// TestNarrowingsOfManySessions: all of a store and a whole subtree at once, and
// a ceiling as large as facts may be, over a thousand sessions.
func TestNarrowingsOfManySessions(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 2,000 sessions")
	}
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	for range 2000 {
		f.child(root)
	}
	var deny []string
	for i := range 700 {
		deny = append(deny, fmt.Sprintf("tool-%d", i))
	}
	for _, n := range []replay.Narrowing{
		{Session: root, Subtree: true, Authority: &policy.Wish{Shell: new(policy.ShellReadOnly)}, Reason: "r"},
		{All: true, Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Reason: "r"},
		{All: true, Authority: &policy.Wish{DeniedTools: deny}, Reason: "r"},
	} {
		start := time.Now()
		out, err := replay.Narrow(f.ctx, f.Store, n)
		require.NoError(t, err)
		require.Len(t, out, 2001)
		for _, d := range out {
			require.Empty(t, d.Skipped)
		}
		t.Logf("%d sessions in %s", len(out), time.Since(start))
	}
}
