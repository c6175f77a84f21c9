package eventlog

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// dropIndex deletes the index of a closed store.
func (ts *testStore) dropIndex() {
	require.NoError(ts.t, ts.Close())
	require.NoError(ts.t, removeIndex(ts.dir))
}

// withAndWithoutIndex runs a test on a store whose index covers everything and
// on one that has lost its index: damage is found either way. open brings the
// store back with or without it.
func withAndWithoutIndex(t *testing.T, fn func(t *testing.T, indexed bool, ts *testStore, open func(Options))) {
	for _, indexed := range []bool{true, false} {
		name := "with the index"
		if !indexed {
			name = "without the index"
		}
		t.Run(name, func(t *testing.T) {
			ts := newStore(t)
			fn(t, indexed, ts, func(o Options) {
				require.NoError(t, ts.Close())
				if !indexed {
					require.NoError(t, removeIndex(ts.dir))
				}
				ts.open(o)
			})
		})
	}
}

// flushIndex brings index.db up to date now.
func (ts *testStore) flushIndex() { require.NoError(ts.t, ts.st.flush(ts.Store)) }

// TestCase29_MissingEvent: the head says 20, seq 13 is gone. All others are
// shown with the hole marked; a policy that would be read off such a log is
// refused.
func TestCase29_MissingEvent(t *testing.T) {
	withAndWithoutIndex(t, func(t *testing.T, indexed bool, ts *testStore, open func(Options)) {
		id := ts.root(sid(1))
		ts.say(id, numbers(19)...)
		ts.flushIndex()
		ts.change(bucketJournal, positionKey(12), gone)
		open(Options{ReadOnly: true})

		seqs, holes := ts.seqs(id)
		require.Equal(t, append(upTo(12), 14, 15, 16, 17, 18, 19, 20), seqs)
		require.Equal(t, []string{"13-13"}, holes)
		for _, r := range []struct {
			from, to uint64
			seqs     []uint64
			holes    []Hole
		}{
			{13, 13, nil, []Hole{{From: 13, To: 13}}},
			{12, 13, []uint64{12}, []Hole{{From: 13, To: 13}}},
			{13, 14, []uint64{14}, []Hole{{From: 13, To: 13}}},
			{14, 14, []uint64{14}, nil},
			{1, 1, []uint64{1}, nil},
		} {
			page, err := ts.Read(ctx, id, ReadOptions{From: r.from, To: r.to})
			require.NoError(t, err)
			require.Equal(t, r.seqs, seqsOf(page.Events), "%d to %d", r.from, r.to)
			for i := range page.Holes {
				require.Error(t, page.Holes[i].Err)
				page.Holes[i].Err = nil
			}
			require.Equal(t, r.holes, page.Holes)
			require.Zero(t, page.Next)
		}
		n := 0
		err := ts.Replay(ctx, id, false, func(*Event) error { n++; return nil })
		require.ErrorIs(t, err, ErrCorrupt)
		require.Equal(t, 12, n, "what came before is sound")
		require.ErrorContains(t, err, "seq 13 to 13")
		n = 0
		err = ts.Tail(ctx, id, 1, func(*Event) error { n++; return nil })
		require.ErrorIs(t, err, ErrCorrupt)
		require.Equal(t, 12, n)

		report, err := ts.Check(ctx, CheckOptions{})
		require.NoError(t, err)
		require.Equal(t, FindMissing, report.Findings[0].Kind)
		require.Equal(t, uint64(12), report.Findings[0].Position)
		require.Contains(t, report.kinds(), FindMissing)

		_, _, err = ts.Policy(ctx, id, 0)
		if indexed { // the chain from the head does not pass the hole
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrPolicyUnreadable)
			row, err := ts.Row(id)
			require.NoError(t, err)
			require.Equal(t, []Damage{{From: 13, To: 13, Reason: "missing events"}}, row.Damage)
		}
		open(Options{})
		_, err = ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("more")}})
		require.Equal(t, indexed, err == nil, "a log with a known hole takes nothing: %v", err)
	})
}

// TestCase21_DamagedFrame: 12 events, seq 7 damaged. It is never a log of 6:
// 8 to 12 are there and the damage has its place.
func TestCase21_DamagedFrame(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"a flipped byte in an event":         flip(-20),
		"a flipped byte in the session's id": flip(12),
		"a flipped byte in the first seq":    flip(frameHead + 2 + 16),
		"a flipped byte in the magic":        flip(0),
		"a flipped byte in the checksum":     flip(-1),
		"zeros":                              func(b []byte) []byte { return make([]byte, len(b)) },
		"cut short":                          func(b []byte) []byte { return b[:len(b)/2] },
		"cut to nothing":                     func([]byte) []byte { return []byte{} },
	} {
		t.Run(name, func(t *testing.T) {
			withAndWithoutIndex(t, func(t *testing.T, indexed bool, ts *testStore, open func(Options)) {
				id, other := ts.root(sid(1)), ts.root(sid(2))
				ts.say(id, numbers(11)...) // seq 7 is at position 7
				ts.say(other, "x")         // behind the damage
				ts.flushIndex()
				ts.change(bucketJournal, positionKey(7), change)
				open(Options{ReadOnly: true})
				seqs, holes := ts.seqs(id)
				require.Equal(t, append(upTo(6), 8, 9, 10, 11, 12), seqs)
				require.Equal(t, []string{"7-7"}, holes)
				row, err := ts.Row(id)
				require.NoError(t, err)
				require.Equal(t, uint64(12), row.Head)
				err = ts.Replay(ctx, id, false, func(ev *Event) error { require.LessOrEqual(t, ev.Seq, uint64(6)); return nil })
				require.ErrorIs(t, err, ErrCorrupt)

				report, err := ts.Check(ctx, CheckOptions{})
				require.NoError(t, err)
				require.Equal(t, FindFrame, report.Findings[0].Kind)
				require.Equal(t, uint64(7), report.Findings[0].Position)

				_, _, err = ts.Policy(ctx, other, 0)
				require.NoError(t, err, "one session's damage does not stop the others")
				require.Equal(t, []string{"x"}, ts.texts(other, 2))
				_, _, err = ts.Policy(ctx, id, 0)
				require.Equal(t, indexed, err == nil, "%v", err)
			})
		})
	}
}

// TestDamagedHeadFrame: the newest frame can't be read. Whose it was decides
// whose policy is refused: if its bytes still say so, that one session's, else
// everybody's who has nothing newer.
func TestDamagedHeadFrame(t *testing.T) {
	for _, c := range []struct {
		name     string
		named    bool
		position uint64
		change   func([]byte) []byte
	}{
		{"its header names the session", true, 4, flip(-20)},
		{"its header names nobody", false, 4, flip(12)},
		{"its header names another session", false, 4, func(b []byte) []byte {
			a, b2 := sid(1), sid(2)
			return bytes.Replace(b, b2[:], a[:], 1)
		}},
		{"it is gone", false, 4, gone},
	} {
		t.Run(c.name, func(t *testing.T) {
			withAndWithoutIndex(t, func(t *testing.T, indexed bool, ts *testStore, open func(Options)) {
				a, b, later := ts.root(sid(1)), ts.root(sid(2)), ts.root(sid(3)) // positions 0, 1, 2
				ts.say(a, "x")                                                   // 3
				ts.narrow(b)                                                     // 4: lost
				ts.say(later, "y")                                               // 5
				ts.flushIndex()
				ts.change(bucketJournal, positionKey(4), c.change)
				for _, opts := range []Options{{ReadOnly: true}, {}, {}} { // the doubt is not forgotten by writing or by reopening
					open(opts)
					_, _, err := ts.Policy(ctx, b, 0)
					require.ErrorIs(t, err, ErrPolicyUnreadable, "it was narrowed, and nobody may read it as if it were not")
					if indexed || c.named {
						seqs, holes := ts.seqs(b)
						require.Equal(t, upTo(1), seqs)
						require.Equal(t, []string{"2-2"}, holes, "it is no log of one event")
					}
					require.ErrorIs(t, ts.Replay(ctx, b, false, func(*Event) error { return nil }), ErrCorrupt)
					_, _, err = ts.Policy(ctx, later, 0)
					require.NoError(t, err)
					_, _, err = ts.Policy(ctx, a, 0)
					require.Equal(t, indexed || c.named, err == nil, "%v", err)
					if opts.ReadOnly {
						continue
					}
					ts.say(later, "and more")
					if !indexed {
						for _, id := range []uuid.UUID{a, b} {
							_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("bury it")}})
							require.Equal(t, id == a && c.named, err == nil, "%v", err)
						}
					}
					ts.flushIndex()
					indexed = indexed || c.named // what was rebuilt stays
				}
			})
		})
	}
}

// TestCutInsideAUnit: the last frame of a delegation is gone and every count
// put right. The half that is left is found.
func TestCutInsideAUnit(t *testing.T) {
	ts := newStore(t)
	parent := ts.root(sid(1))
	ts.child(parent, sid(2), "k") // positions 1, 2
	ts.expectDamage()
	require.NoError(t, ts.Close())
	changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketJournal)
		require.NoError(t, b.Delete(positionKey(2)))
		return b.SetSequence(2)
	})
	report := checkStore(t, ts.dir)
	require.Equal(t, []string{FindUnit, FindDelegation, FindRollback}, report.kinds())
	require.Contains(t, report.Findings[0].Detail, "the journal ends inside a unit: 1 frames are missing")
	_, err := Open(ctx, ts.dir, Options{})
	require.ErrorIs(t, err, ErrRollback)

	unsign(t, ts.dir)
	ts.open()
	ts.say(parent, "on top of it")
	require.NoError(t, ts.Close())
	report = checkStore(t, ts.dir)
	require.Equal(t, FindUnit, report.Findings[0].Kind)
	require.Contains(t, report.Findings[0].Detail, "the unit before wants 1 more frames")
}

// TestFramesOutOfPlace: whole, sound frames that stand where they don't belong.
func TestFramesOutOfPlace(t *testing.T) {
	swapped := func(ts *testStore, a, b uint64) {
		ts.expectDamage()
		require.NoError(ts.t, ts.Close())
		changeDB(ts.t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error {
			j := tx.Bucket(bucketJournal)
			x, y := bytes.Clone(j.Get(positionKey(a))), bytes.Clone(j.Get(positionKey(b)))
			require.NoError(ts.t, j.Put(positionKey(a), y))
			return j.Put(positionKey(b), x)
		})
	}
	withAndWithoutIndex(t, func(t *testing.T, indexed bool, ts *testStore, open func(Options)) {
		id, other := ts.root(sid(1)), ts.root(sid(2))
		ts.narrow(id)     // 2
		ts.say(other, "") // 3
		ts.narrow(id)     // 4
		ts.say(id, "")    // 5
		ts.flushIndex()
		swapped(ts, 2, 4)
		unsign(t, ts.dir)
		open(Options{ReadOnly: true})
		_, _, err := ts.Policy(ctx, id, 0)
		require.ErrorIs(t, err, ErrPolicyUnreadable)
		report, err := ts.Check(ctx, CheckOptions{})
		require.NoError(t, err)
		require.Contains(t, report.kinds(), FindMissing)
		_, _, err = ts.Policy(ctx, other, 0)
		require.NoError(t, err)
	})
}

// TestForgedFrame: somebody rewrites a frame with a right checksum. The chain
// finds it.
func TestForgedFrame(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, "a")
	ts.say(id, "b")
	ts.flushIndex()
	ts.change(bucketJournal, positionKey(1), func(raw []byte) []byte {
		return reseal(bytes.Replace(raw, []byte("assistant/message"), []byte("assistant/massage"), 1))
	})
	ts.open(Options{ReadOnly: true})
	report, err := ts.Check(ctx, CheckOptions{})
	require.NoError(t, err)
	require.Contains(t, report.kinds(), FindChain)
	err = ts.Replay(ctx, id, false, func(*Event) error { return nil })
	require.ErrorContains(t, err, "chain: previous hash differs")

	require.NoError(t, ts.Close())
	require.NoError(t, removeIndex(ts.dir))
	ts.open(Options{ReadOnly: true})
	_, _, err = ts.Policy(ctx, id, 0)
	require.ErrorIs(t, err, ErrPolicyUnreadable)
}

// TestManyHolesArePaged: a log of nothing but damage is read in pages too.
func TestManyHolesArePaged(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, numbers(200)...)
	ts.flushIndex()
	ts.expectDamage()
	require.NoError(t, ts.Close())
	changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketJournal)
		for p := uint64(50); p < 150; p++ {
			require.NoError(t, b.Put(positionKey(p), []byte("damaged")))
		}
		return nil
	})
	ts.open(Options{ReadOnly: true})
	page, err := ts.Read(ctx, id, ReadOptions{From: 51, MaxEvents: 30})
	require.NoError(t, err)
	require.Len(t, page.Holes, 30)
	require.Equal(t, uint64(81), page.Next)
	seqs, holes := ts.seqs(id)
	require.Len(t, holes, 100)
	require.Len(t, seqs, 101)
}

// TestManyLostFrames: more than the list keeps. The newest decides who is in
// doubt.
func TestManyLostFrames(t *testing.T) {
	ts := newStore(t)
	a := ts.root(sid(1))
	ts.say(a, numbers(maxLost+9)...)
	b, c := ts.root(sid(2)), ts.root(sid(3))
	ts.narrow(b)
	ts.say(c, "x")
	ts.expectDamage()
	require.NoError(t, ts.Close())
	require.NoError(t, removeIndex(ts.dir))
	changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error {
		j := tx.Bucket(bucketJournal)
		for p := uint64(1); p < maxLost+9; p++ {
			require.NoError(t, j.Delete(positionKey(p)))
		}
		return j.Delete(positionKey(maxLost + 12)) // the narrowing of b
	})
	ts.open(Options{ReadOnly: true})
	_, _, err := ts.Policy(ctx, b, 0)
	require.ErrorIs(t, err, ErrPolicyUnreadable)
	_, _, err = ts.Policy(ctx, c, 0)
	require.NoError(t, err)
	require.Len(t, ts.st.lost, maxLost)
}

// TestFrameOfThePast: a sound frame stands where another one belongs. It does
// not take its session back to where it was, and the lost one, which was a
// narrowing, is not forgotten: nobody knows whose it was, so nothing is granted.
func TestFrameOfThePast(t *testing.T) {
	ts := newStore(t)
	id, other := ts.root(sid(1)), ts.root(sid(2))
	ts.say(id, "one", "two")
	ts.narrow(other)
	require.NoError(t, ts.Close())
	changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketJournal)
		_, first := b.Cursor().First()
		last, _ := b.Cursor().Last()
		return b.Put(bytes.Clone(last), bytes.Clone(first))
	})
	ts.expectDamage()
	ts.open(Options{ReadOnly: true})
	row, err := ts.Row(id)
	require.NoError(t, err)
	require.Equal(t, uint64(3), row.Head)
	seqs, _ := ts.seqs(id)
	require.Equal(t, upTo(3), seqs, "all of it can be read")
	for _, session := range []uuid.UUID{id, other} {
		_, _, err = ts.Policy(ctx, session, 0)
		require.ErrorIs(t, err, ErrPolicyUnreadable)
	}
}
