package replay_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// TestSubtreeNarrowingGoesThroughALostChild: one flipped bit takes the first
// frame of the session in the middle, and the index is rebuilt without it. The
// grandchild is sound and can be granted things, so the narrowing must still
// reach it: the parent's own log names the lost child, whose log names it. And
// the key that made the lost child must not make a second one.
func TestSubtreeNarrowingGoesThroughALostChild(t *testing.T) {
	f := newFixture(t)
	f.damaged = true
	root := f.rootWith(policy.DangerFullAccess)
	r := materialize.Request{Key: "run 4, call 7"}
	child := f.childOf(root, r).ID
	grandchild := f.child(child).ID
	f.rewrite(child, func(frame []byte) bool {
		if frame[26] != 1 { // first seq
			return false
		}
		frame[60] ^= 1
		return true
	})
	f.dropIndex()
	f.open(eventlog.Options{})

	done, err := replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: root, Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Reason: "incident", Subtree: true})
	require.NoError(t, err)
	said := map[uuid.UUID]string{}
	for _, d := range done {
		said[d.Session] = d.Skipped
	}
	require.Equal(t, map[uuid.UUID]string{root: "", child: replay.SkipUnreadable, grandchild: ""}, said)
	require.Equal(t, policy.ReadOnly, f.policy(grandchild).Sandbox.Value.Mode)

	_, err = materialize.Delegate(f.ctx, f.Store, root, snapshot.Options{}, r)
	require.ErrorIs(t, err, eventlog.ErrCorrupt, "the child may be there")
}
