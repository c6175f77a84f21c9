package replay_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// TestPropertyHistories draws histories of roots, captures, children (forked
// or not), switches, narrowings, activations, messages, settles and closes in
// any order, on a store and on the model of model_test.go, and holds at the
// end:
//
//  1. Every answer, refusal and intermediate state was the model's; a key led
//     to its child or, with another request, to a conflict.
//  2. As of every seq the policy is the model's, and is the fold of the log's
//     events up to there: incremental and whole folds agree at every cut.
//  3. The policy found by links is the policy of the full replay.
//  4. The effective value is within the bound at every seq, and a bound never
//     grows; a child's is within what it was born with for ever, and that is
//     within what its parent held at the capture.
//  5. A child's approvals are never anything but never.
//  6. Without index.db every answer is the same, to the byte.
//  7. The store is sound (the fixture's check), its rows the folds of its logs.
func TestPropertyHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{fixture: fixtureIn(rt, t.TempDir()), t: rt, keyed: map[key]keyed{}}
		w.root()
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			w.step()
			m := w.pick()
			w.agrees(m, m.head, w.policy(m.id))
		}
		for _, m := range w.sessions {
			w.everyCut(m)
		}
		before := w.answers()
		w.reopen(eventlog.Options{ReadOnly: true})
		require.Equal(rt, before, w.answers(), "after a restart")
		require.NoError(rt, w.Store.Close())
		w.dropIndex()
		w.open(eventlog.Options{ReadOnly: true})
		require.Equal(rt, before, w.answers(), "without the index")
	})
}

// agrees compares a policy with the model's state at a seq.
func (w *world) agrees(m *msession, seq uint64, e replay.Effective) {
	want, ok := m.states[seq]
	require.True(w.t, ok, "the model knows seq %d", seq)
	require.Equal(w.t, seq, e.Seq)
	require.Equal(w.t, want.effective, permitted(e.Sandbox.Value), "seq %d: %v", seq, e.Sandbox.Value)
	require.Equal(w.t, want.bound, permitted(e.Bound.Value), "seq %d: %v", seq, e.Bound.Value)
	require.Equal(w.t, want.asks, e.Approvals == policy.Ask)
	require.Equal(w.t, want.explicit, e.Explicit)
	require.Equal(w.t, m.def, permitted(e.Defaults.Sandbox))
	require.Equal(w.t, m.depth, e.Depth)
	require.Equal(w.t, m.maxDepth, e.MaxDepth)
	if m.parent != nil {
		require.Equal(w.t, policy.Never, e.Approvals)
		require.Equal(w.t, m.parent.id, e.Parent)
	}
}

func (w *world) everyCut(m *msession) {
	all := w.log(m.id)
	require.Equal(w.t, m.head, uint64(len(all)))
	var before *replay.Effective
	for seq := m.born; seq <= m.head; seq++ {
		asOf, err := replay.Policy(w.ctx, w.Store, m.id, seq)
		require.NoError(w.t, err)
		w.agrees(m, seq, asOf)
		folded, err := replay.Fold(all[:seq])
		require.NoError(w.t, err)
		require.Equal(w.t, rendered(&folded), rendered(&asOf))
		require.True(w.t, asOf.Sandbox.Value.Within(asOf.Bound.Value))
		if before != nil {
			require.True(w.t, asOf.Bound.Value.Within(before.Bound.Value))
		}
		before = &asOf
	}
	for seq := range m.born - 1 {
		if _, err := replay.Fold(all[:seq]); err == nil {
			w.t.Fatalf("the first %d events of a child fold to a policy", seq)
		}
	}
	events, _, err := w.Store.Policy(w.ctx, m.id, 0)
	require.NoError(w.t, err)
	linked, err := replay.Fold(events)
	require.NoError(w.t, err)
	linked.Seq = m.head
	require.Equal(w.t, rendered(before), rendered(&linked))
	if m.parent != nil {
		born, err := replay.Policy(w.ctx, w.Store, m.id, m.born)
		require.NoError(w.t, err)
		at, err := replay.Policy(w.ctx, w.Store, m.parent.id, born.ParentSeq)
		require.NoError(w.t, err)
		require.True(w.t, born.Bound.Value.Within(at.Sandbox.Value))
		require.True(w.t, before.Sandbox.Value.Within(born.Bound.Value))
	}
}

// answers is everything that the store says: what renderStore computes, the
// rows, the children of each session.
func (w *world) answers() string {
	var out bytes.Buffer
	require.NoError(w.t, renderStore(w.Store, out.WriteString))
	for _, m := range w.sessions {
		children, err := w.Store.Children(m.id)
		require.NoError(w.t, err)
		require.ElementsMatch(w.t, idsOf(m.children), children)
		row := w.row(m.id)
		raw, err := json.Marshal(map[string]any{"row": row, "children": children})
		require.NoError(w.t, err)
		out.Write(raw)
		require.Equal(w.t, m.closed, row.ClosedSeq != 0)
		require.Equal(w.t, m.settled, row.SettledSeq != 0)
	}
	return out.String()
}

func idsOf(list []*msession) []uuid.UUID {
	out := []uuid.UUID{}
	for _, m := range list {
		out = append(out, m.id)
	}
	return out
}
