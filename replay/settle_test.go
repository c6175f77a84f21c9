package replay_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

func (f *fixture) notices(parent uuid.UUID) []replay.Notice {
	f.t.Helper()
	out, err := replay.Notices(f.ctx, f.Store, parent)
	require.NoError(f.t, err)
	return out
}

// TestSettleCounts: denials by code and usage are counted by the fold, seeds
// excluded, one usage id once, and stand in the event and in the notice.
func TestSettleCounts(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	f.say(root, 0, event(t, "user/message"), event(t, "usage/recorded", "usage", "parents-own", "input", 999))
	child := f.childOf(root, materialize.Request{Fork: f.row(root).Head}).ID
	a := f.activate(child)
	for _, ask := range []string{"a1", "a2"} {
		f.asks(child, a.Epoch, ask, "c-"+ask, "exec_shell")
		f.decides(child, a.Epoch, ask, "rejected", "pin")
	}
	f.asks(child, a.Epoch, "a3", "", "exec_shell")
	f.decides(child, a.Epoch, "a3", "rejected", "rule")
	f.asks(child, a.Epoch, "a4", "", "exec_shell")
	f.decides(child, a.Epoch, "a4", "cancelled", "human")
	usage := event(t, "usage/recorded", "usage", "u1", "input", 10, "output", 3, "cache_read", 7, "cache_write", 2, "cost_micros", 1200)
	f.say(child, a.Epoch, usage, usage, event(t, "usage/recorded", "usage", "u2", "input", 5))
	f.say(child, a.Epoch, usage) // streamed once more

	r := f.settle(child, a.Epoch, "completed")
	want := replay.Notice{Child: child, SettledSeq: r.LastSeq, Outcome: "completed", Denied: 3,
		Denials: map[string]uint64{"approval_pin": 2, "approval_rule": 1},
		Usage:   map[string]uint64{"input": 15, "output": 3, "cache_read": 7, "cache_write": 2, "cost_micros": 1200}}
	require.Equal(t, []replay.Notice{want}, f.notices(root))
	row := f.row(child)
	require.Equal(t, eventlog.StatusSettled, row.Status(f.Store.Boot()))
	require.False(t, row.Open, "the activation ended with it")

	t.Run("the counts of the event stand when the child goes on", func(t *testing.T) {
		b := f.activate(child)
		f.asks(child, b.Epoch, "a5", "", "exec_shell")
		f.decides(child, b.Epoch, "a5", "rejected", "pin")
		require.Equal(t, []replay.Notice{want}, f.notices(root))
		f.settle(child, b.Epoch, "failed")
		require.Len(t, f.notices(root), 2)
		require.Equal(t, uint64(4), f.notices(root)[1].Denied)
	})
}

// TestSettleWithHugeUsage: numbers beyond what a fact may hold must not make a
// session that can never settle.
func TestSettleWithHugeUsage(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.child(root).ID
	a := f.activate(child)
	for _, id := range []string{"u1", "u2", "u3"} {
		f.say(child, a.Epoch, event(t, "usage/recorded", "usage", id, "input", 1<<53, "cost_micros", 1<<53))
	}
	f.settle(child, a.Epoch, "completed")
	require.Equal(t, uint64(1<<53), f.notices(root)[0].Usage["input"])
}

// TestSettleOnce: settling ends a run once; a one-shot is closed by it; an
// operator may settle what nobody runs, and what somebody runs.
func TestSettleOnce(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.child(root).ID
	f.settle(child, 0, "cancelled") // never ran
	for _, epoch := range []uint64{0, 1} {
		_, err := replay.Settle(f.ctx, f.Store, child, epoch, "completed")
		require.ErrorIs(t, err, eventlog.ErrConflict)
	}
	a := f.activate(child)
	f.settle(child, 0, "cancelled")
	require.False(t, f.row(child).Open)
	_, err := f.Store.Append(f.ctx, eventlog.Batch{Session: child, Expect: eventlog.Any(), Epoch: a.Epoch, Events: []eventlog.NewEvent{{Type: "user/message"}}})
	require.ErrorIs(t, err, eventlog.ErrFenced, "the harness learns that it was ended")

	oneShot := f.childOf(root, materialize.Request{Mode: eventlog.ModeOneShot}).ID
	b := f.activate(oneShot)
	r := f.settle(oneShot, b.Epoch, "completed")
	types := f.types(oneShot)
	require.Equal(t, []string{"activation/ended", "session/settled", "session/closed"}, types[len(types)-3:])
	row := f.row(oneShot)
	require.Equal(t, eventlog.StatusClosed, row.Status(f.Store.Boot()))
	require.Equal(t, r.LastSeq, row.Head)
	_, err = replay.Settle(f.ctx, f.Store, oneShot, 0, "completed")
	require.ErrorIs(t, err, eventlog.ErrSessionClosed)
	_, err = replay.Close(f.ctx, f.Store, oneShot)
	require.ErrorIs(t, err, eventlog.ErrSessionClosed)

	f.settle(root, 0, "completed") // a root is continuable
	require.Zero(t, f.row(root).ClosedSeq)
	f.activate(root)

	evidence := f.evidence(eventlog.KindChild, root)
	_, err = replay.Settle(f.ctx, f.Store, evidence, 0, "completed")
	require.ErrorIs(t, err, eventlog.ErrEvidence)
	_, err = replay.Close(f.ctx, f.Store, evidence)
	require.ErrorIs(t, err, eventlog.ErrEvidence)
	for _, outcome := range []string{"", "free text", "x\x00"} {
		before := f.row(root).Hash
		_, err = replay.Settle(f.ctx, f.Store, root, 0, outcome)
		require.ErrorIs(t, err, eventlog.ErrInvalid, "%q", outcome)
		require.Equal(t, before, f.row(root).Hash)
	}
}

// TestCase20_ACrashRightAfterSettle: the notice is pending exactly once, over
// any number of crashes and a later activation, until the parent consumes it,
// and then never again.
func TestCase20_ACrashRightAfterSettle(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.child(root).ID
	f.settle(child, f.activate(child).Epoch, "completed")
	for range 3 {
		f.reopen(eventlog.Options{})
		require.Len(t, f.notices(root), 1)
	}
	f.dropIndexAndReopen()
	require.Len(t, f.notices(root), 1)
	f.activate(child)
	require.Len(t, f.notices(root), 1, "going on does not take it back")
	pending := f.notices(root)[0]

	_, err := replay.Consume(f.ctx, f.Store, root, child)
	require.NoError(t, err)
	for range 3 {
		require.Empty(t, f.notices(root))
		before := f.row(root).Hash
		_, err = replay.Consume(f.ctx, f.Store, root, child)
		require.ErrorIs(t, err, eventlog.ErrNotFound)
		_, err = replay.ConsumeThrough(f.ctx, f.Store, root, child, pending.SettledSeq)
		require.ErrorIs(t, err, eventlog.ErrNotFound)
		require.Equal(t, before, f.row(root).Hash)
		f.dropIndexAndReopen()
	}
	last := f.log(root)[f.row(root).Head-1]
	require.Equal(t, eventlog.TypeNoticeConsumed, last.Type)
	require.Equal(t, pending.SettledSeq, last.Facts.Uint("settled_seq"))
}

// dropIndexAndReopen is a start in which everything derived is gone.
func (f *fixture) dropIndexAndReopen() {
	f.t.Helper()
	require.NoError(f.t, f.Store.Close())
	f.dropIndex()
	f.open(eventlog.Options{})
}

// TestConsumeThroughLeavesTheNewer: a parent that handles one notice while the
// child settles again must not lose the second one.
func TestConsumeThroughLeavesTheNewer(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.child(root).ID
	f.settle(child, f.activate(child).Epoch, "first")
	seen := f.notices(root)[0]
	f.settle(child, f.activate(child).Epoch, "second") // before the parent is done

	_, err := replay.ConsumeThrough(f.ctx, f.Store, root, child, seen.SettledSeq)
	require.NoError(t, err)
	left := f.notices(root)
	require.Len(t, left, 1)
	require.Equal(t, "second", left[0].Outcome)
	_, err = replay.ConsumeThrough(f.ctx, f.Store, root, child, left[0].SettledSeq-1)
	require.ErrorIs(t, err, eventlog.ErrNotFound, "the child did not settle there")
	_, err = replay.ConsumeThrough(f.ctx, f.Store, root, child, 0)
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	_, err = replay.ConsumeThrough(f.ctx, f.Store, root, child, left[0].SettledSeq)
	require.NoError(t, err)
	require.Empty(t, f.notices(root))
}

// TestNoticesOfOthers: they belong to the recorded parent, also a closed one;
// imported logs give none.
func TestNoticesOfOthers(t *testing.T) {
	f := newFixture(t)
	root, other := f.rootWith(policy.WorkspaceWrite), f.rootWith(policy.WorkspaceWrite)
	child := f.child(root).ID
	f.settle(child, 0, "completed")
	evidence := f.evidence(eventlog.KindChild, root, eventlog.NewEvent{Type: eventlog.TypeSessionSettled, Facts: facts(t, "outcome", "forged")})
	require.Empty(t, f.notices(other))
	require.Len(t, f.notices(root), 1)
	_, err := replay.Consume(f.ctx, f.Store, other, child)
	require.ErrorIs(t, err, eventlog.ErrUnauthorized)
	_, err = replay.Consume(f.ctx, f.Store, root, evidence)
	require.ErrorIs(t, err, eventlog.ErrEvidence)
	_, err = replay.Consume(f.ctx, f.Store, root, other)
	require.ErrorIs(t, err, eventlog.ErrUnauthorized)
	_, err = replay.Notices(f.ctx, f.Store, uuid.MustParse("99999999-9999-4999-8999-999999999999"))
	require.ErrorIs(t, err, eventlog.ErrNotFound)

	_, err = replay.Close(f.ctx, f.Store, root)
	require.NoError(t, err)
	require.Len(t, f.notices(root), 1)
	_, err = replay.Consume(f.ctx, f.Store, root, child)
	require.NoError(t, err, "a closed parent still takes what its children left")
}

// TestADamagedChildKeepsNoNoticeBack: one child's log is damaged where it
// settled; the parent still learns of the others, and that this one settled.
func TestADamagedChildKeepsNoNoticeBack(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	sound, hurt := f.child(root).ID, f.child(root).ID
	f.settle(sound, 0, "completed")
	f.settle(hurt, 0, "failed")
	f.fillIndex(root) // so that it knows of the settling
	f.damaged = true
	f.rewrite(hurt, flip("session/settled"))
	f.open(eventlog.Options{})
	byChild := map[uuid.UUID]replay.Notice{}
	for _, n := range f.notices(root) {
		byChild[n.Child] = n
	}
	require.Len(t, byChild, 2)
	require.Equal(t, "completed", byChild[sound].Outcome)
	require.Empty(t, byChild[sound].Unread)
	require.Equal(t, "failed", byChild[hurt].Outcome)
	require.NotEmpty(t, byChild[hurt].Unread)
}
