package eventlog

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"childlog/policy"
)

// inOneGroup makes the committer wait while queue fills the queue, so that all
// of it is written in one transaction.
func (ts *testStore) inOneGroup(queue func()) { ts.group(queue)() }

// group is inOneGroup for a group whose outcome comes later: it returns what
// waits for it.
func (ts *testStore) group(queue func()) (wait func()) {
	entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := ts.Transact(ctx, EntryCreate, func(*View) ([]Batch, error) {
			close(entered)
			<-leave
			return nil, nil
		})
		done <- err
	}()
	<-entered
	queue()
	close(leave)
	return func() { <-done } // it shares the group's outcome
}

// async queues a unit and returns a function that waits for it.
func (ts *testStore) async(via Entry, plan Plan) func() ([]Result, error) {
	u := &unit{via: via, plan: plan}
	require.NoError(ts.t, ts.submit(ctx, u))
	return func() ([]Result, error) { return u.wait(ctx) }
}

func batches(list ...Batch) Plan { return func(*View) ([]Batch, error) { return list, nil } }

// frames decodes every stored frame in order, nil where there is none.
func (ts *testStore) frames() (out []*frame) {
	require.NoError(ts.t, ts.eachFrame(ctx, 0, ts.st.durable(), func(_ *bolt.Tx, _ uint64, raw []byte) error {
		f, err := decodeFrame(raw)
		if err != nil {
			out = append(out, nil)
			return nil
		}
		f.headers = nil
		out = append(out, &f)
		return nil
	}))
	return out
}

// TestUnitIsOneOverSeveralSessions: parent and child of a delegation.
func TestUnitIsOneOverSeveralSessions(t *testing.T) {
	ts := newStore(t)
	parent := ts.root(sid(1))
	results, err := ts.transact(EntryDelegation, ts.delegation(parent, sid(2), "k")...)
	require.NoError(t, err)
	require.Len(t, results, 2)
	require.Equal(t, sid(2), results[0].Session)
	require.Equal(t, [2]uint64{1, 4}, [2]uint64{results[0].FirstSeq, results[0].LastSeq})
	require.Equal(t, parent, results[1].Session)
	require.Equal(t, [2]uint64{2, 2}, [2]uint64{results[1].FirstSeq, results[1].LastSeq})

	children, err := ts.Children(parent)
	require.NoError(t, err)
	require.Equal(t, []uuid.UUID{sid(2)}, children)
	found, err := ts.ByKey(parent, "k")
	require.NoError(t, err)
	require.Equal(t, sid(2), found)
	_, err = ts.ByKey(sid(2), "k")
	require.ErrorIs(t, err, ErrNotFound, "a key belongs to its parent")

	unit := ts.frames()[1:]
	require.Len(t, unit, 2, "the child's policy events share a frame")
	require.Equal(t, [2]any{false, uint64(1)}, [2]any{unit[0].continues, unit[0].framesLeft})
	require.Equal(t, [2]any{true, uint64(0)}, [2]any{unit[1].continues, unit[1].framesLeft})
}

// TestRefusedUnitLeavesNothing, however far it came, and what follows in the
// same transaction does not see it.
func TestRefusedUnitLeavesNothing(t *testing.T) {
	refuse := map[string]func(parent uuid.UUID) Batch{
		"a wrong place":   func(p uuid.UUID) Batch { return Batch{Session: p, Expect: At(77), Events: []NewEvent{text("x")}} },
		"no such session": func(uuid.UUID) Batch { return Batch{Session: sid(404), Expect: Any(), Events: []NewEvent{text("x")}} },
		"a session twice": func(uuid.UUID) Batch { return Batch{Session: sid(2), Expect: Any(), Events: []NewEvent{text("x")}} },
		"an id in use":    func(p uuid.UUID) Batch { return Batch{Session: sid(3), Expect: Any(), Events: rootEvents(sid(3), "x")} },
		"an event too much": func(p uuid.UUID) Batch {
			return Batch{Session: p, Expect: Any(), Events: []NewEvent{{Type: TypePolicyNarrowed}}}
		},
	}
	for name, bad := range refuse {
		t.Run(name, func(t *testing.T) {
			ts := newStore(t)
			parent := ts.root(sid(1))
			ts.root(sid(3))
			var before, refused, after func() ([]Result, error)
			ts.inOneGroup(func() {
				before = ts.async(EntryOperator, batches(Batch{Session: parent, Expect: Any(), Events: []NewEvent{{Type: TypeSessionTitled}}}))
				refused = ts.async(EntryDelegation, batches(append(ts.delegation(parent, sid(2), "k")[:1], bad(parent))...))
				after = ts.async(EntryDelegation, func(v *View) ([]Batch, error) {
					_, err := v.Row(sid(2))
					found, err2 := v.ByKey(KeyHash(parent, "k"))
					children, err3 := v.Children(parent)
					if !errors.Is(err, ErrNotFound) || err2 != nil || found != uuid.Nil || err3 != nil || len(children) > 0 {
						return nil, fmt.Errorf("a trace is left: %v, %s %v, %v %v", err, found, err2, children, err3)
					}
					row, err := v.Row(parent)
					return childBatches(&row, sid(2), "k"), err
				})
			})
			_, err := before()
			require.NoError(t, err)
			_, err = refused()
			require.Error(t, err)
			_, err = after()
			require.NoError(t, err)
			var positions []uint64
			for i, f := range ts.frames() {
				require.NotNil(t, f, "position %d", i)
				positions = append(positions, uint64(i))
			}
			require.Equal(t, []uint64{0, 1, 2, 3, 4}, positions, "no position is skipped")
		})
	}
}

// TestUnitSeesEarlierUnitsOfItsGroup: rows, keys, children, events and policy
// of what is staged but not yet written.
func TestUnitSeesEarlierUnitsOfItsGroup(t *testing.T) {
	ts := newStore(t)
	parent := ts.root(sid(1))
	external := Created{Kind: KindRoot, Root: sid(5), Mode: ModeOneShot, External: &External{System: "codex", IDHash: ExternalHash("codex", "abc")}, Defaults: readOnlyDefaults()}
	var seen func() ([]Result, error)
	var got struct {
		row           Row
		key, external uuid.UUID
		descendants   []uuid.UUID
		consumed      uint64
		policy        []Event
		event         Event
	}
	ts.inOneGroup(func() {
		ts.async(EntryDelegation, batches(ts.delegation(parent, sid(2), "k")...))
		ts.async(EntryOperator, batches(Batch{Session: sid(2), Expect: At(4), Events: []NewEvent{
			{Type: TypeSessionTitled, Media: MediaText, Content: []byte("renamed")},
			{Type: TypePolicyNarrowed, Facts: NarrowedFacts(policy.Top(), "operator")}}}))
		ts.async(EntryCreate, batches(Batch{Session: sid(5), Events: []NewEvent{{Type: TypeSessionCreated, Facts: external.Facts()}}}))
		ts.async(EntryRuntime, batches(Batch{Session: parent, Expect: Any(), Events: []NewEvent{{Type: TypeNoticeConsumed, Facts: mustFacts(map[string]any{"child": sid(2), "settled_seq": 9})}}}))
		seen = ts.async(EntryCreate, func(v *View) ([]Batch, error) {
			var errs [9]error
			got.row, errs[0] = v.Row(sid(2))
			got.key, errs[1] = v.ByKey(KeyHash(parent, "k"))
			got.external, errs[2] = v.ByExternal(ExternalHash("codex", "abc"))
			got.descendants, errs[3] = v.Descendants(parent)
			got.consumed, errs[4] = v.Consumed(parent, sid(2))
			got.policy, errs[5] = v.Policy(sid(2))
			got.event, errs[6] = v.Event(sid(2), 5)
			if _, err := v.Event(sid(2), 7); !errors.Is(err, ErrNotFound) {
				errs[7] = fmt.Errorf("event 7: %w", err)
			}
			if v.Boot() != ts.Boot() {
				errs[8] = errors.New("another boot")
			}
			return nil, errors.Join(errs[:]...)
		})
	})
	results, err := seen()
	require.NoError(t, err)
	require.Empty(t, results)
	require.Equal(t, uint64(6), got.row.Head)
	require.Equal(t, "renamed", got.row.Label)
	require.Equal(t, sid(2), got.key)
	require.Equal(t, sid(5), got.external)
	require.Equal(t, []uuid.UUID{sid(2)}, got.descendants)
	require.Equal(t, uint64(9), got.consumed)
	require.Equal(t, []uint64{1, 2, 3, 4, 6}, seqsOf(got.policy))
	require.Equal(t, "renamed", string(got.event.Content))
}

// TestPanickingPlanFailsAlone: not its group, and not the store.
func TestPanickingPlanFailsAlone(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	var before, broken, after func() ([]Result, error)
	titled := batches(Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: TypeSessionTitled}}})
	ts.inOneGroup(func() {
		before = ts.async(EntryOperator, titled)
		broken = ts.async(EntryOperator, func(*View) ([]Batch, error) { var m map[string]int; m["x"]++; return nil, nil })
		after = ts.async(EntryOperator, titled)
	})
	_, err := broken()
	require.ErrorContains(t, err, "plan: assignment to entry in nil map")
	for _, wait := range []func() ([]Result, error){before, after} {
		_, err := wait()
		require.NoError(t, err)
	}
	ts.say(id, "and on")
}

func seqsOf(events []Event) (seqs []uint64) {
	for _, ev := range events {
		seqs = append(seqs, ev.Seq)
	}
	return seqs
}

// TestUnitFrameLimit: the cap is on frames, so it bounds sessions too.
func TestUnitFrameLimit(t *testing.T) {
	ts := newStore(t, Options{Limits: Limits{UnitFrames: 5}})
	roots := func(from, n int) (list []Batch) {
		for i := range n {
			list = append(list, Batch{Session: sid(from + i), Events: rootEvents(sid(from+i), "x")})
		}
		return list
	}
	_, err := ts.transact(EntryCreate, roots(0, 5)...)
	require.NoError(t, err)
	_, err = ts.transact(EntryCreate, roots(10, 6)...)
	require.Equal(t, &TooLargeError{What: "frames of an atomic unit", Limit: 5, Size: 6}, err)
	require.Len(t, ts.rows(), 5)
}

// TestLargestUnit: ten thousand frames are one unit, and one more is refused.
func TestLargestUnit(t *testing.T) {
	ts := newStore(t)
	frames := func(session, n int) Batch { // events that alternate have a frame each
		kinds := []NewEvent{{Type: TypeSessionTitled}, {Type: TypePolicyNarrowed, Facts: NarrowedFacts(policy.Top(), "operator")}}
		b := Batch{Session: ts.root(sid(session)), Expect: Any()}
		for i := range n {
			b.Events = append(b.Events, kinds[i%2])
		}
		return b
	}
	unit := []Batch{frames(1, 4000), frames(2, 4000), frames(3, 2001)}
	_, err := ts.transact(EntryOperator, unit...)
	require.Equal(t, &TooLargeError{What: "frames of an atomic unit", Limit: 10000, Size: 10001}, err)
	unit[2].Events = unit[2].Events[1:]
	_, err = ts.transact(EntryOperator, unit...)
	require.NoError(t, err)
	require.Equal(t, uint64(MaxUnitFrames-1), ts.frames()[3].framesLeft)
	row, err := ts.Row(sid(3))
	require.NoError(t, err)
	require.Equal(t, uint64(2001), row.Head)
}

// TestLargeBatchIsSplit: facts of 4,096 events don't fit a frame. The batch
// is a unit of several frames and reads back as one.
func TestLargeBatchIsSplit(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	events := make([]NewEvent, MaxBatchEvents)
	for i := range events {
		codes := map[string]any{"n": i}
		for k := range 3 {
			codes[fmt.Sprintf("code%d", k)] = fmt.Sprintf("%0200d", i)
		}
		events[i] = NewEvent{Type: "plugin/note", Facts: goldenFacts(t, codes), Media: MediaText, Content: fmt.Append(nil, i)}
	}
	events[0].ID = eid(1) // so that it can be retried
	res, err := ts.Append(ctx, Batch{Session: id, Expect: At(1), Events: events})
	require.NoError(t, err)
	require.Equal(t, uint64(MaxBatchEvents+1), res.LastSeq)

	unit := ts.frames()[1:]
	require.Greater(t, len(unit), 2)
	next := uint64(2)
	for i, f := range unit {
		require.Equal(t, i > 0, f.continues)
		require.Equal(t, uint64(len(unit)-1-i), f.framesLeft)
		require.Equal(t, next, f.first)
		next += f.count
	}
	require.NoError(t, ts.journal.view(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketJournal).ForEach(func(_, raw []byte) error {
			require.LessOrEqual(t, len(raw), maxFrame)
			return nil
		})
	}))
	n := 0
	require.NoError(t, ts.Replay(ctx, id, true, func(ev *Event) error {
		if ev.Seq > 1 {
			require.Equal(t, uint64(n), ev.Facts.Uint("n"))
			require.Equal(t, fmt.Sprint(n), string(ev.Content))
			n++
		}
		return nil
	}))
	require.Equal(t, MaxBatchEvents, n)

	again, err := ts.Append(ctx, Batch{Session: id, Expect: At(1), Events: events[:1]})
	require.NoError(t, err)
	require.True(t, again.Replayed)
	_, err = ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: append(events, text("one more"))})
	require.ErrorIs(t, err, ErrTooLarge)
}

// TestPolicyEventsHaveFramesOfTheirOwn, so that reading the policy reads no
// conversation.
func TestPolicyEventsHaveFramesOfTheirOwn(t *testing.T) {
	ts := newStore(t)
	id := sid(1)
	narrowed := NewEvent{Type: TypePolicyNarrowed, Facts: NarrowedFacts(policy.Top(), "operator")}
	titled := NewEvent{Type: TypeSessionTitled}
	_, err := ts.transact(EntryCreate, Batch{Session: id, Events: rootEvents(id, "x")})
	require.NoError(t, err)
	_, err = ts.transact(EntryOperator, Batch{Session: id, Expect: At(1), Events: []NewEvent{titled, titled, narrowed, narrowed, titled, narrowed}})
	require.NoError(t, err)
	var got []string
	for _, f := range ts.frames() {
		got = append(got, fmt.Sprintf("%d+%d last policy %d, %d left", f.first, f.count, f.lastPolicy, f.framesLeft))
	}
	require.Equal(t, []string{"1+1 last policy 1, 0 left", "2+2 last policy 1, 3 left", "4+2 last policy 5, 2 left", "6+1 last policy 5, 1 left", "7+1 last policy 7, 0 left"}, got)
	events, _, err := ts.Policy(ctx, id, 0)
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 4, 5, 7}, seqsOf(events))
	events, _, err = ts.Policy(ctx, id, 4)
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 4}, seqsOf(events))
	_, _, err = ts.Policy(ctx, id, 8)
	require.ErrorIs(t, err, ErrNotFound)
	_, _, err = ts.Policy(ctx, sid(9), 0)
	require.ErrorIs(t, err, ErrNotFound)
}
