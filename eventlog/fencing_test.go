package eventlog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// as appends to session 1 with an epoch.
func (ts *testStore) as(epoch uint64, expect Expect, events ...NewEvent) (Result, error) {
	return ts.Append(ctx, Batch{Session: sid(1), Expect: expect, Epoch: epoch, Events: events})
}

// TestCase23_OlderActivationIsFenced: two activations of one session in turn.
// The older one's next append is refused and the seqs stay gapless.
func TestCase23_OlderActivationIsFenced(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	_, err := ts.as(0, Any(), text("nobody holds it"))
	require.NoError(t, err)
	ts.activate(id, 1)
	held, err := ts.as(1, Any(), named(eid(1), "from the first"))
	require.NoError(t, err)
	ts.activate(id, 2)

	for name, attempt := range map[string]func() (Result, error){
		"at the head":         func() (Result, error) { return ts.as(1, At(5), text("late")) },
		"at any place":        func() (Result, error) { return ts.as(1, Any(), text("late")) },
		"with a wrong place":  func() (Result, error) { return ts.as(1, At(2), text("late")) },
		"the same id, longer": func() (Result, error) { return ts.as(1, Any(), named(eid(2), "new")) },
	} {
		ts.unchanged(t, func() {
			_, err := attempt()
			require.Equal(t, &FencedError{Session: id, Got: 1, Open: 2}, err, name)
			require.ErrorIs(t, err, ErrFenced)
		})
	}
	ts.unchanged(t, func() {
		_, err := ts.as(0, Any(), text("nameless"))
		require.Equal(t, &FencedError{Session: id, Open: 2}, err, "while it is held, an append has to say as whom")
		_, err = ts.as(3, Any(), text("early"))
		require.ErrorIs(t, err, ErrFenced, "nor may one be ahead")
	})
	_, err = ts.as(2, At(5), text("from the second"))
	require.NoError(t, err)

	// What the older one had committed, it had committed.
	held.Replayed = true
	for name, expect := range map[string]Expect{"at its place": At(3), "without a place": Any()} {
		res, err := ts.as(1, expect, named(eid(1), "from the first"))
		require.NoError(t, err, name)
		require.Equal(t, held, res, name)
	}
	_, err = ts.as(1, At(3), named(eid(1), "something else"))
	require.ErrorIs(t, err, ErrDuplicate, "the duplicate is found before the fence")

	seqs, holes := ts.seqs(id)
	require.Equal(t, upTo(6), seqs)
	require.Empty(t, holes)
}

// TestFenceLetsOutsidersIn: an operator and the parent's messages come from
// outside of the activation.
func TestFenceLetsOutsidersIn(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.activate(id, 1)
	outside := []struct {
		via   Entry
		event NewEvent
	}{
		{EntryRuntime, NewEvent{Type: TypeInboxQueued, Facts: mustFacts(map[string]any{"message": eid(7)})}},
		{EntryRuntime, NewEvent{Type: TypeControlInterrupt, Facts: mustFacts(map[string]any{"by": "parent", "keep_inbox": true})}},
		{EntryOperator, NewEvent{Type: TypeSessionTitled}},
	}
	for _, o := range outside {
		_, err := ts.transact(o.via, Batch{Session: id, Expect: Any(), Events: []NewEvent{o.event}})
		require.NoError(t, err, o.event.Type)
	}
	ts.narrow(id)
	ts.child(id, sid(2), "k")

	inside := []NewEvent{
		{Type: TypeInboxClaimed, Facts: mustFacts(map[string]any{"messages": []any{eid(7)}, "epoch": 1})},
		{Type: TypeSessionSettled, Facts: mustFacts(map[string]any{"outcome": "completed"})},
		{Type: TypeActivationEnded, Facts: mustFacts(map[string]any{"epoch": 1, "reason": "done"})},
	}
	for _, ev := range inside {
		_, err := ts.transact(EntryRuntime, Batch{Session: id, Expect: Any(), Events: []NewEvent{ev}})
		require.ErrorIs(t, err, ErrFenced, "%s without an epoch", ev.Type)
		_, err = ts.transact(EntryRuntime, Batch{Session: id, Expect: Any(), Epoch: 1, Events: []NewEvent{ev}})
		require.NoError(t, err, ev.Type)
	}
	_, err := ts.as(1, Any(), text("x"))
	require.ErrorIs(t, err, ErrFenced, "an activation that ended holds nothing")
	_, err = ts.as(0, Any(), text("x"))
	require.NoError(t, err)
}

// TestNewActivationClosesWhatTheOldOneLeft: in its own batch, with source
// store.
func TestNewActivationClosesWhatTheOldOneLeft(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.activate(id, 1)
	_, err := ts.as(1, Any(), NewEvent{Type: TypeTurnStart, Facts: mustFacts(map[string]any{"turn": 1})},
		NewEvent{Type: TypeToolCall, Facts: mustFacts(map[string]any{"call": "c1", "tool": "read"})})
	require.NoError(t, err)
	row, err := ts.Row(id)
	require.NoError(t, err)
	require.Equal(t, []OpenCall{{Call: "c1", Tool: "read", Seq: 4, Started: true}}, row.OpenCalls)
	require.Equal(t, StatusRunning, row.Status(ts.Boot()))
	ts.reopen()
	require.Equal(t, StatusInterrupted, row.Status(ts.Boot()), "its process is gone")

	closing := []NewEvent{
		{Type: TypeActivationStarted, Facts: mustFacts(map[string]any{"epoch": 2, "boot": ts.Boot()})},
		{Type: TypeToolResult, Source: SourceStore, Facts: mustFacts(map[string]any{"call": "c1", "outcome": "unknown"})},
		{Type: TypeTurnEnd, Source: SourceStore, Facts: mustFacts(map[string]any{"turn": 1, "reason": "interrupted"})},
	}
	_, err = ts.transact(EntryRuntime, Batch{Session: id, Expect: Any(), Events: closing[1:]})
	require.ErrorIs(t, err, ErrFenced, "nobody closes what another activation has open")
	_, err = ts.transact(EntryRuntime, Batch{Session: id, Expect: Any(), Events: closing})
	require.NoError(t, err)
	row, err = ts.Row(id)
	require.NoError(t, err)
	require.Empty(t, row.OpenCalls)
	require.Zero(t, row.Turn)
	require.Equal(t, uint64(2), row.Epoch)
	require.Equal(t, StatusRunning, row.Status(ts.Boot()))
}
