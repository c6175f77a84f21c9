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

// A history lists each policy event with what it changed, and says what Diff says
// of the seqs before and after it.
func TestHistory(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.child(root).ID
	f.switchTo(child, policy.ReadOnly)
	f.say(child, 0, event(t, "a/b"))
	f.switchTo(child, policy.WorkspaceWrite)
	f.narrow(child, policy.ReadOnly, false)
	f.narrow(child, policy.WorkspaceWrite, false) // skipped: it holds less
	for _, session := range []uuid.UUID{root, child} {
		list, left, err := replay.History(f.ctx, f.Store, session, 0)
		require.NoError(t, err)
		require.Zero(t, left)
		e := f.policy(session)
		seqs := []uint64{}
		for i, m := range list {
			seqs = append(seqs, m.Event.Seq)
			require.NotEmpty(t, m.What)
			require.Equal(t, m.Event.Seq <= e.WholeSeq, m.Born)
			if m.Born {
				require.Empty(t, m.Changes)
				continue
			}
			_, _, changes, err := replay.Diff(f.ctx, f.Store, session, list[i-1].Event.Seq, m.Event.Seq)
			require.NoError(t, err)
			require.Equal(t, changes, m.Changes, "seq %d", m.Event.Seq)
			require.NotEmpty(t, m.Changes)
		}
		require.Equal(t, e.Seqs(), seqs)

		for most := 1; most <= len(list); most++ {
			part, left, err := replay.History(f.ctx, f.Store, session, most)
			require.NoError(t, err)
			require.Equal(t, len(list)-most, left)
			require.Equal(t, list[left:], part, "the last %d", most)
		}
	}
	_, _, err := replay.History(f.ctx, f.Store, uuid.New(), 0)
	require.ErrorIs(t, err, eventlog.ErrNotFound)
}

// The drift of a session is the same whether or not it can be resumed.
func TestDriftOfWhatNobodyResumes(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.childOf(root, materialize.Request{Mode: eventlog.ModeOneShot}).ID
	e := f.policy(child)
	list, err := replay.DriftOf(f.ctx, f.Store, &e)
	require.NoError(t, err)
	require.Empty(t, list)
	f.switchTo(root, policy.ReadOnly)
	list, err = replay.DriftOf(f.ctx, f.Store, &e)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, replay.DriftParentTightened, list[0].Kind)
	_, err = replay.Resume(f.ctx, f.Store, replay.Request{Session: child, By: replay.AsParent(root)})
	require.ErrorIs(t, err, eventlog.ErrNotResumable)
	r := f.policy(root)
	list, err = replay.DriftOf(f.ctx, f.Store, &r)
	require.NoError(t, err)
	require.Empty(t, list, "nobody is above a root")
}
