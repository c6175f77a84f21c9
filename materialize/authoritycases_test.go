package materialize_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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

// coordinator is a root that may only read, and hand on writing in src.
func (f *fixture) coordinator(grants ...policy.ExplicitGrant) uuid.UUID {
	f.t.Helper()
	p := &materialize.Profile{Own: policy.Wish{Permissions: &policy.Permissions{}}}
	if len(grants) > 0 {
		p.Delegable, p.Explicit = &policy.Wish{WriteScope: &[]string{"src"}}, grants
	}
	made, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{Workspace: workspace, Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}, MaxDepth: 8, Profile: p})
	require.NoError(f.t, err)
	return made.ID
}

var editSrc = materialize.Request{Want: policy.Request{Wish: policy.Wish{WriteScope: &[]string{"src"}}}}

// TestCase3_AnExplicitGrant: a parent restricted to delegating has the explicit
// grant that its worker may edit src. The receipt names ceiling, requested and
// granted apart; without the grant, or when it is used up or over, the same
// request is refused, and who relies on it further down counts too.
func TestCase3_AnExplicitGrant(t *testing.T) {
	f := newFixture(t)
	made := f.made(f.coordinator(policy.ExplicitGrant{ID: "worker"}), editSrc)
	g, _ := f.receipt(made.ID)
	require.Equal(t, policy.FilesRead, g.Ceiling.Own.Grant.Files)
	require.Equal(t, policy.FilesWrite, g.Ceiling.Delegable.Grant.Files)
	require.Equal(t, []string{"src"}, g.Requested.Own.Grant.Scope.Entries())
	require.Equal(t, policy.FilesWrite, g.Granted.Own.Grant.Files)
	require.Len(t, g.Relied, 1)

	var re *policy.RefusedError
	_, err := f.delegate(f.coordinator(), editSrc)
	require.ErrorIs(t, err, eventlog.ErrWidening)
	require.ErrorAs(t, err, &re)
	require.Equal(t, policy.RuleParent, re.Rule)

	once := f.coordinator(policy.ExplicitGrant{ID: "worker", Uses: 1})
	f.made(once, editSrc)
	_, err = f.delegate(once, editSrc)
	require.ErrorAs(t, err, &re)
	require.Equal(t, policy.RuleGrantSpent, re.Rule)
	less := f.made(once, materialize.Request{})
	require.Equal(t, policy.FilesRead, less.Policy.Authority.Own.Grant.Files, "without the wish to write there is a child, and it reads")
	require.Empty(t, less.Policy.Granted.Relied)

	twice := f.coordinator(policy.ExplicitGrant{ID: "worker", Uses: 2})
	middle := f.made(twice, materialize.Request{Want: policy.Request{Wish: policy.Wish{Permissions: &policy.Permissions{}}, Delegable: &policy.Wish{WriteScope: &[]string{"src"}}}})
	require.Equal(t, policy.FilesRead, middle.Policy.Authority.Own.Grant.Files)
	require.Len(t, middle.Policy.Authority.Explicit, 1, "the terms go down with what they are terms of")
	f.made(middle.ID, editSrc)
	for _, parent := range []uuid.UUID{middle.ID, twice} {
		_, err = f.delegate(parent, editSrc)
		require.ErrorAs(t, err, &re)
		require.Equal(t, policy.RuleGrantSpent, re.Rule, "the grandchild's use counts")
	}

	over := f.coordinator(policy.ExplicitGrant{ID: "worker", ExpiresMS: 1})
	_, err = f.delegate(over, editSrc)
	require.ErrorAs(t, err, &re)
	require.Equal(t, policy.RuleGrantExpired, re.Rule)
}

// TestCase61_AnExpiredGrantStaysExpired: a clock that is set back revives no
// grant: the parent's log knows of a later time.
func TestCase61_AnExpiredGrantStaysExpired(t *testing.T) {
	f := newFixture(t)
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	f.reopen(eventlog.Options{Clock: func() time.Time { return now }})
	root := f.coordinator(policy.ExplicitGrant{ID: "worker", ExpiresMS: now.Add(time.Minute).UnixMilli()})
	f.made(root, editSrc)
	now = now.Add(2 * time.Minute)
	f.made(root, materialize.Request{}) // the parent's log is at the later time
	now = now.Add(-2 * time.Minute)
	var re *policy.RefusedError
	_, err := f.delegate(root, editSrc)
	require.ErrorAs(t, err, &re)
	require.Equal(t, policy.RuleGrantExpired, re.Rule)
}

// TestCase4_AnOperatorsRuleTwoLevelsDown: the store denies chmod at the
// delegation. A child and a grandchild that ask for it are denied, with the
// operator's rule as origin, also after the store dropped it.
func TestCase4_AnOperatorsRuleTwoLevelsDown(t *testing.T) {
	f := newFixture(t)
	f.rules([]string{"chmod"}, nil)
	child := f.made(f.rootWith(policy.DangerFullAccess), materialize.Request{}).ID
	f.rules(nil, nil)
	grandchild := f.made(child, materialize.Request{}).ID
	for _, id := range []uuid.UUID{child, grandchild} {
		for _, name := range []string{"chmod", "CHMOD"} {
			j, err := replay.NewAuthorizer(f.Store, id).Decide(f.ctx, replay.CallRequest{Call: policy.Call{ID: "c1", Tool: name}})
			require.NoError(t, err)
			require.Equal(t, policy.VerdictDeny, j.Verdict)
			require.Equal(t, policy.OriginOperator, j.Origin.Kind)
			require.Equal(t, policy.Origin{Session: eventlog.StoreSession, Seq: 2}, j.Origin.At)
		}
	}
	require.Zero(t, f.made(f.rootWith(policy.DangerFullAccess), materialize.Request{}).Policy.Authority.Operator.Len())
}

// TestCase9_AStatedDepth: a request that wants a tree of depth 2 gets one, also
// in a new process: the child of its child is refused, and no log made.
func TestCase9_AStatedDepth(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.made(root, materialize.Request{Want: policy.Request{Wish: policy.Wish{MaxDepth: new(2)}}})
	require.Equal(t, 2, child.Policy.MaxDepth)
	grandchild := f.made(child.ID, materialize.Request{}).ID
	f.reopen(eventlog.Options{})
	n := f.sessions()
	_, err := f.delegate(grandchild, materialize.Request{})
	require.ErrorIs(t, err, eventlog.ErrDepth)
	require.ErrorContains(t, err, "attempted depth 3, allowed 2")
	for _, depth := range []int{0, 1} {
		_, err = f.delegate(child.ID, materialize.Request{Want: policy.Request{Wish: policy.Wish{MaxDepth: &depth}}})
		require.ErrorIs(t, err, eventlog.ErrDepth)
	}
	require.Equal(t, n, f.sessions())
}

// TestCase12_TheRoleIsAnotherToday: a stored receipt in which an explorer may
// write, as if the role had been defined so when it was made. What it was
// granted counts, and a resume takes it for the explorer that it is.
func TestCase12_TheRoleIsAnotherToday(t *testing.T) {
	f := newForger(t)
	wide := f.policy(f.like)
	id, err := f.write(true, func(all map[string]map[string]any) { all[eventlog.TypeDelegationGranted]["role"] = "explore" })
	require.NoError(t, err)
	for range 2 {
		e := f.policy(id)
		require.Equal(t, policy.RoleExplore, e.Choices.Role)
		require.Equal(t, wide.Authority.Own.Grant, e.Authority.Own.Grant, "not what the table says of an explorer today")
		r, err := replay.Resume(f.ctx, f.Store, replay.Request{Session: id, By: replay.AsParent(f.parent), Role: "scout"})
		require.NoError(t, err)
		require.True(t, r.Policy.Authority.Equal(e.Authority))
		_, err = replay.Resume(f.ctx, f.Store, replay.Request{Session: id, By: replay.AsParent(f.parent), Role: "implement"})
		require.ErrorIs(t, err, eventlog.ErrNotResumable, "case 8")
		require.ErrorContains(t, err, "re-delegate")
		f.reopen(eventlog.Options{})
	}
}

// TestCase47_LimitsThroughTheStore: steps, a deadline that only the parent has,
// and a wall time that becomes a deadline once, when the child is made.
func TestCase47_LimitsThroughTheStore(t *testing.T) {
	f := newFixture(t)
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	f.reopen(eventlog.Options{Clock: func() time.Time { return now }})
	steps := func(n uint64) materialize.Request {
		return materialize.Request{Want: policy.Request{Wish: policy.Wish{MaxSteps: &n}}}
	}
	root := f.rootWith(policy.WorkspaceWrite)
	five := f.made(root, steps(5))
	require.Equal(t, uint64(5), five.Policy.Authority.Own.Profile.Limits.MaxSteps)
	require.Equal(t, uint64(5), f.made(five.ID, steps(0)).Policy.Authority.Own.Profile.Limits.MaxSteps)

	start := now.UnixMilli()
	wall := f.made(root, materialize.Request{Want: policy.Request{WallMS: new(int64(60_000))}})
	deadline := func(e replay.Effective) int64 { return e.Authority.Own.Profile.Limits.DeadlineMS }
	require.Equal(t, start+60_000, deadline(wall.Policy))
	now = now.Add(50 * time.Second)
	require.Equal(t, start+60_000, deadline(f.made(wall.ID, materialize.Request{}).Policy), "the parent's, inherited")
	require.Equal(t, start+60_000, deadline(f.made(wall.ID, materialize.Request{Want: policy.Request{WallMS: new(int64(60_000))}}).Policy), "and nobody outlives him")
	for range 2 { // a continuation does not restart it
		a, err := replay.Activate(f.ctx, f.Store, wall.ID, replay.AsParent(root))
		require.NoError(t, err)
		require.Equal(t, start+60_000, deadline(a.Policy))
		_, err = replay.Settle(f.ctx, f.Store, wall.ID, a.Epoch, "completed")
		require.NoError(t, err)
	}

	// Case 61: past it once, past it for ever, whatever the clock says then.
	now = time.UnixMilli(start + 60_000)
	call := replay.CallRequest{Call: policy.Call{ID: "c1", Tool: "read"}}
	j, err := replay.NewAuthorizer(f.Store, wall.ID).Record(f.ctx, call)
	require.NoError(t, err)
	require.Equal(t, policy.CodeExpired, j.Code)
	now = time.UnixMilli(start)
	f.reopen(eventlog.Options{Clock: func() time.Time { return now }})
	j, err = replay.NewAuthorizer(f.Store, wall.ID).Decide(f.ctx, call)
	require.NoError(t, err)
	require.Equal(t, policy.CodeExpired, j.Code)
}

// TestCase51_BornUnderANarrowedAuthority: a capture, then a ceiling of the
// authority over the subtree, then the child: it is born within, also under
// rules set in between, and so is everybody below it.
func TestCase51_BornUnderANarrowedAuthority(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	c, err := snapshot.Take(f.ctx, f.Store, root, snapshot.Options{})
	require.NoError(t, err)
	inspect := policy.ShellReadOnly
	_, err = replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: root, Authority: &policy.Wish{Shell: &inspect, DeniedTools: []string{"rm"}}, Reason: "r", Subtree: true})
	require.NoError(t, err)
	f.rules([]string{"curl"}, []string{"secrets"})
	child, err := materialize.Child(f.ctx, f.Store, c, materialize.Request{})
	require.NoError(t, err)
	for _, e := range []replay.Effective{child.Policy, f.made(child.ID, materialize.Request{}).Policy} {
		for _, h := range []policy.Half{e.Authority.Own, e.Authority.Delegable} {
			require.Equal(t, policy.GrantInspect, h.Grant.Shell)
			require.Len(t, h.Profile.Denied.Entries(), 2)
		}
		require.Equal(t, 2, e.Authority.Operator.Len())
	}
	_, err = materialize.Child(f.ctx, f.Store, c, materialize.Request{})
	require.ErrorIs(t, err, eventlog.ErrStaleCapture)
}

// TestCase52_ChildrenWhileTheAuthorityIsNarrowed: children are created while
// their subtree is narrowed and the store's rules are set. Every one ends
// within the ceiling; one already tighter is skipped, and none born after the
// rules lacks them.
func TestCase52_ChildrenWhileTheAuthorityIsNarrowed(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	none := policy.ShellNone
	tight := f.made(root, materialize.Request{Want: policy.Request{Wish: policy.Wish{Shell: &none, Permissions: &policy.Permissions{}}}}).ID
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 25 {
				_, err := materialize.Delegate(f.ctx, f.Store, root, snapshot.Options{}, materialize.Request{})
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	f.rules([]string{"curl"}, nil)
	after := f.made(root, materialize.Request{})
	out, err := replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: root, Authority: &policy.Wish{Shell: new(policy.ShellReadOnly)}, Reason: "r", Subtree: true})
	require.NoError(t, err)
	wg.Wait()
	skipped := map[uuid.UUID]string{}
	for _, n := range out {
		skipped[n.Session] = n.Skipped
	}
	require.Equal(t, replay.SkipNarrower, skipped[tight])
	require.Equal(t, 1, after.Policy.Authority.Operator.Len())
	require.NoError(t, f.EachRow(f.ctx, func(row *eventlog.Row) (bool, error) {
		if row.Kind == eventlog.KindChild {
			e := f.policy(row.Session)
			require.True(t, e.Authority.Delegable.Grant.Shell.Within(policy.GrantInspect))
			require.True(t, e.Authority.Own.Grant.Shell.Within(policy.GrantInspect))
		}
		return true, nil
	}))
	require.Equal(t, uint64(202), f.row(root).Delegations)
}

// TestMaxChildrenIsNeverPassed: many delegate at once from a parent that may
// start five.
func TestMaxChildrenIsNeverPassed(t *testing.T) {
	f := newFixture(t)
	parent := f.made(f.rootWith(policy.DangerFullAccess), materialize.Request{Want: policy.Request{Wish: policy.Wish{MaxChildren: new(5)}}}).ID
	var wg sync.WaitGroup
	var made atomic.Int64
	for i := range 32 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, err := materialize.Delegate(f.ctx, f.Store, parent, snapshot.Options{}, materialize.Request{Key: fmt.Sprint(i % 16)})
			var re *policy.RefusedError
			switch {
			case err == nil:
				made.Add(1)
			default:
				if !f.refusedBy(err, &re) {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	require.Equal(t, uint64(5), f.row(parent).Delegations)
	require.GreaterOrEqual(t, made.Load(), int64(5))
}

func (f *fixture) refusedBy(err error, re **policy.RefusedError) bool {
	return err != nil && refused(err) && strings.Contains(err.Error(), "max_children")
}

// TestReceiptThatIsTooLarge: what does not fit into facts is refused with limit
// and size before anything is written, and its parent goes on.
func TestReceiptThatIsTooLarge(t *testing.T) {
	f := newFixture(t)
	parent, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{Workspace: workspace, MaxDepth: 8, Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}})
	require.NoError(t, err)
	last := parent.ID
	for range 7 {
		last = f.made(last, materialize.Request{}).ID
	}
	var deny, scopes []string
	for i := range 1024 {
		deny = append(deny, fmt.Sprintf("%0120d", i))
	}
	for i := range 16 {
		scopes = append(scopes, strings.Repeat("é", 200)+fmt.Sprintf("%040d", i))
	}
	for name, want := range map[string]policy.Wish{"deny": {DeniedTools: deny}, "both": {DeniedTools: deny[:200], WriteScope: &scopes}} {
		n := f.sessions()
		before := f.row(last).Hash
		_, err := f.delegate(last, materialize.Request{Want: policy.Request{Wish: want}})
		require.ErrorIs(t, err, eventlog.ErrTooLarge, name)
		var tooLarge *eventlog.TooLargeError
		require.ErrorAs(t, err, &tooLarge)
		require.Greater(t, tooLarge.Size, uint64(tooLarge.Limit))
		require.Equal(t, n, f.sessions())
		require.Equal(t, before, f.row(last).Hash)
	}
	_, err = materialize.Root(f.ctx, f.Store, materialize.RootRequest{Profile: &materialize.Profile{Own: policy.Wish{DeniedTools: deny}}})
	require.ErrorIs(t, err, eventlog.ErrTooLarge)
	_, err = replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: last, Authority: &policy.Wish{DeniedTools: deny}, Reason: "r"})
	require.ErrorIs(t, err, eventlog.ErrTooLarge)
	g, ev := f.receipt(f.made(last, materialize.Request{Want: policy.Request{Wish: policy.Wish{WriteScope: new(scopes[:8])}}}).ID)
	require.Len(t, g.Granted.Own.Grant.Scope.Entries(), 8)
	t.Logf("receipt of 8 long scopes: %d bytes", len(ev.Facts))
}
