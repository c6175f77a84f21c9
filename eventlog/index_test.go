package eventlog

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// busy makes a history in which every kind of event occurs, over sessions 0 to
// n: sid(0) is their root.
func (ts *testStore) busy(n int) {
	facts := func(m map[string]any) Facts { return mustFacts(m) }
	ts.root(sid(0))
	for i := 1; i <= n; i++ {
		id := ts.child(sid(0), sid(i), fmt.Sprint(i))
		ts.activate(id, 1)
		ask, call := fmt.Sprintf("a%d", i), fmt.Sprintf("c%d", i)
		for _, step := range []struct {
			via    Entry
			epoch  uint64
			events []NewEvent
		}{
			{entryHarness, 1, []NewEvent{{Type: TypeTurnStart, Facts: facts(map[string]any{"turn": 1})}, {Type: TypeStepStart, Facts: facts(map[string]any{"turn": 1, "step": 1})}}},
			{entryHarness, 1, []NewEvent{{Type: TypeToolCall, Facts: facts(map[string]any{"call": call, "tool": "read"})}, text("working")}},
			{EntryRuntime, 1, []NewEvent{{Type: TypeApprovalAsked, Facts: facts(map[string]any{"ask": ask, "tool": "write", "call": call + "w"})}}},
			{EntryRuntime, 0, []NewEvent{{Type: TypeInboxQueued, Facts: facts(map[string]any{"message": eid(i), "from": sid(0)})}}},
			{entryHarness, 1, []NewEvent{{Type: TypeUsageRecorded, Facts: facts(map[string]any{"usage": "u1", "input": 10, "output": 1})}, {Type: TypeUsageRecorded, Facts: facts(map[string]any{"usage": "u1", "input": 10, "output": 1})}}},
			{EntryRuntime, 1, []NewEvent{{Type: TypeApprovalDecided, Source: SourceStore, Facts: facts(map[string]any{"ask": ask, "outcome": "rejected", "decider": "pin"})}}},
			{EntryRuntime, 1, []NewEvent{{Type: TypeInboxClaimed, Facts: facts(map[string]any{"messages": []any{eid(i)}, "epoch": 1})}}},
			{EntryOperator, 0, []NewEvent{{Type: TypeSessionTitled, Media: MediaText, Content: fmt.Appendf(nil, "title %d", i)}}},
			{entryHarness, 1, []NewEvent{{Type: TypeToolResult, Facts: facts(map[string]any{"call": call, "outcome": "ok"})}, {Type: TypeHistoryCompacted, Facts: facts(map[string]any{"from": 1, "to": 5})}}},
			{EntryRuntime, 1, []NewEvent{{Type: TypeSessionSettled, Facts: facts(map[string]any{"outcome": "completed"})}, {Type: TypeActivationEnded, Facts: facts(map[string]any{"epoch": 1, "reason": "done"})}}},
		} {
			b := Batch{Session: id, Expect: Any(), Epoch: step.epoch, Events: step.events}
			var err error
			if step.via == entryHarness {
				_, err = ts.Append(ctx, b)
			} else {
				_, err = ts.transact(step.via, b)
			}
			require.NoError(ts.t, err)
		}
		ts.narrow(sid(0))
		row, err := ts.Row(id)
		require.NoError(ts.t, err)
		_, err = ts.transact(EntryRuntime, Batch{Session: sid(0), Expect: Any(), Events: []NewEvent{{Type: TypeNoticeConsumed, Facts: facts(map[string]any{"child": id, "settled_seq": row.SettledSeq})}}})
		require.NoError(ts.t, err)
	}
}

// TestIndexChangesNoAnswer: without an index, with one that is behind, foreign,
// of another fold, or no database at all, a store answers the same.
func TestIndexChangesNoAnswer(t *testing.T) {
	ts := newStore(t)
	ts.busy(3)
	ts.flushIndex()
	require.NoError(t, ts.Close())
	early := filepath.Join(t.TempDir(), "early")
	copyDir(t, ts.dir, early)
	ts.open()
	ts.say(sid(1), numbers(5)...)
	ts.child(sid(0), sid(4), "4")
	ts.flushIndex()
	ts.reopen(Options{ReadOnly: true})
	want := answers(ts.Store, 5)
	require.NoError(t, ts.Close())

	other := newStore(t)
	other.root(sid(1))
	other.flushIndex()
	require.NoError(t, other.Close())

	db := filepath.Join(ts.dir, indexFile)
	sound := filepath.Join(t.TempDir(), indexFile)
	copyFile(t, db, sound)
	for _, c := range []struct {
		name   string
		notice string
		change func()
	}{
		{"as it is", "", func() {}},
		{"gone", "", func() { require.NoError(t, os.Remove(db)) }},
		{"empty", "", func() { require.NoError(t, os.Truncate(db, 0)) }},
		{"behind", "", func() { copyFile(t, filepath.Join(early, indexFile), db) }},
		{"without the word on what it covers", "index not used: index damaged; run reindex: corrupt: index: rows: want 0 rows, got 5", func() {
			changeDB(t, db, func(tx *bolt.Tx) error { return tx.DeleteBucket(bucketMeta) })
		}},
		{"no database", "index not used: ", func() { require.NoError(t, os.WriteFile(db, make([]byte, 100_000), 0o600)) }},
		{"foreign", "index not used: it belongs to store ", func() { copyFile(t, filepath.Join(other.dir, indexFile), db) }},
		{"of another fold", fmt.Sprintf("index not used: its fold is version 0, want %d", foldVersion), func() { ts.cover(func(c *cover) { c.Fold = 0 }) }},
		{"of another history", "index not used: the frame at position", func() { ts.cover(func(c *cover) { c.Last[0]++ }) }},
		{"short of a row", "index not used: index damaged; run reindex: corrupt: index: rows: want 5 rows, got 4", func() {
			id := sid(4)
			changeDB(t, db, func(tx *bolt.Tx) error { return tx.Bucket(bucketRows).Delete(id[:]) })
		}},
		{"with a row under another key", "index not used: index damaged", func() {
			id, wrong := sid(4), sid(9)
			changeDB(t, db, func(tx *bolt.Tx) error {
				b := tx.Bucket(bucketRows)
				if err := b.Put(wrong[:], append([]byte(nil), b.Get(id[:])...)); err != nil {
					return err
				}
				return b.Delete(id[:])
			})
		}},
	} {
		for _, opts := range []Options{{ReadOnly: true}, {}} {
			t.Run(fmt.Sprintf("%s, read only %t", c.name, opts.ReadOnly), func(t *testing.T) {
				copyFile(t, sound, db)
				c.change()
				check := func() {
					ts.open(opts)
					require.Equal(t, want, answers(ts.Store, 5))
					if c.notice == "" {
						require.Empty(t, ts.Notices())
					} else {
						require.Len(t, ts.Notices(), 1)
						require.Contains(t, ts.Notices()[0], c.notice)
					}
				}
				if !opts.ReadOnly {
					check()
					ts.flushIndex()
					require.NoError(t, ts.Close())
					requireSound(t, ts.dir)
					return
				}
				requireUntouched(t, ts.dir, func() {
					check()
					report, err := ts.Check(ctx, CheckOptions{})
					require.NoError(t, err)
					require.Equal(t, c.notice == "", report.OK())
					require.NoError(t, ts.Close())
				})
			})
		}
	}

	// An older store.db under a newer index: the index has seen what is gone.
	copyFile(t, filepath.Join(early, journalFile), filepath.Join(ts.dir, journalFile))
	unsign(t, ts.dir)
	_, err := Open(ctx, ts.dir, Options{})
	re := (*RollbackError)(nil)
	require.ErrorAs(t, err, &re)
	require.Equal(t, RolledBackIndex, re.Evidence)
	// Once it is older than the journal it is only behind.
	copyFile(t, filepath.Join(early, indexFile), db)
	ts.open()
	require.Empty(t, ts.Notices())
	_, err = ts.Row(sid(4))
	require.ErrorIs(t, err, ErrNotFound)
}

// cover rewrites what the index says that it covers.
func (ts *testStore) cover(change func(*cover)) {
	changeDB(ts.t, filepath.Join(ts.dir, indexFile), func(tx *bolt.Tx) error {
		c, ok, err := readCover(tx)
		require.NoError(ts.t, err)
		require.True(ts.t, ok)
		change(&c)
		return writeCover(tx, c)
	})
}

// TestCase64_PolicyWithoutTheIndex: a row of positions is gone, and the count
// of rows with it. The chain of policy seqs misses it and the journal is
// scanned: the policy is whole, never a wider one. The check reports the row.
func TestCase64_PolicyWithoutTheIndex(t *testing.T) {
	ts := newStore(t)
	id, other := ts.root(sid(1)), ts.root(sid(2))
	narrowed := ts.narrow(id)
	ts.say(id, numbers(2*positionsChunk)...)
	want, _, err := ts.Policy(ctx, id, 0)
	require.NoError(t, err)
	require.Equal(t, []uint64{1, narrowed}, seqsOf(want))
	ts.flushIndex()
	ts.expectDamage()
	require.NoError(t, ts.Close())
	changeDB(t, filepath.Join(ts.dir, indexFile), func(tx *bolt.Tx) error {
		return tx.Bucket(bucketPos).Delete(posRow(id, 0)) // the first 64 frames, the narrowing among them
	})
	ts.cover(func(c *cover) { c.Counts[1]-- })

	requireUntouched(t, ts.dir, func() {
		ts.open(Options{ReadOnly: true})
		got, row, err := ts.Policy(ctx, id, 0)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, uint64(2*positionsChunk+2), row.Head)
		_, err = ts.Read(ctx, id, ReadOptions{})
		require.ErrorIs(t, err, ErrCorrupt, "what rests on the row is an error")
		_, err = ts.Read(ctx, id, ReadOptions{From: 100})
		require.NoError(t, err, "what does not is not")
		report, err := ts.Check(ctx, CheckOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{FindIndex}, report.kinds())
		require.Equal(t, id, report.Findings[0].Session)
		_, _, err = ts.Policy(ctx, other, 0)
		require.NoError(t, err)
		require.NoError(t, ts.Close())
	})
	_, err = Reindex(ctx, ts.dir, Options{})
	require.NoError(t, err)
	requireSound(t, ts.dir)
}

// TestPolicyWithADamagedRow: the session's own row can't be read. The journal
// has its policy all the same.
func TestPolicyWithADamagedRow(t *testing.T) {
	defer func(was int64) { verifyAtOpen = was }(verifyAtOpen)
	verifyAtOpen = 0
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.narrow(id)
	ts.flushIndex()
	ts.expectDamage()
	require.NoError(t, ts.Close())
	changeDB(t, filepath.Join(ts.dir, indexFile), func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketRows)
		return b.Put(id[:], flip(20)(append([]byte(nil), b.Get(id[:])...)))
	})
	ts.open(Options{ReadOnly: true})
	_, err := ts.Row(id)
	require.ErrorIs(t, err, ErrCorrupt)
	events, row, err := ts.Policy(ctx, id, 0)
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 2}, seqsOf(events))
	require.Equal(t, uint64(2), row.Head)
}

// TestHiddenRowIsNoNewSession: a session whose row is hidden by damage must
// not be created a second time, nor a key used twice.
func TestHiddenRowIsNoNewSession(t *testing.T) {
	defer func(was int64) { verifyAtOpen = was }(verifyAtOpen)
	for name, hide := range map[string]func(*bolt.Tx) error{
		"its row": func(tx *bolt.Tx) error { id := sid(2); return tx.Bucket(bucketRows).Delete(id[:]) },
		"its key": func(tx *bolt.Tx) error {
			return tx.Bucket(bucketNames).Delete(nameRow(name{nameKey, KeyHash(sid(1), "k")}))
		},
		"its link": func(tx *bolt.Tx) error {
			return tx.Bucket(bucketLinks).Delete(linkRow(linkKey{parent: sid(1), child: sid(2)}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			verifyAtOpen = 0
			ts := newStore(t)
			parent := ts.root(sid(1))
			ts.child(parent, sid(2), "k")
			ts.flushIndex()
			require.NoError(t, ts.Close())
			changeDB(t, filepath.Join(ts.dir, indexFile), hide)
			ts.open()
			_, err := ts.Transact(ctx, EntryDelegation, func(v *View) ([]Batch, error) {
				found, err := v.ByKey(KeyHash(parent, "k"))
				if err != nil || found != uuid.Nil {
					return nil, err
				}
				row, err := v.Row(parent)
				return childBatches(&row, sid(2), "k"), err
			})
			if name == "its key" {
				require.ErrorIs(t, err, ErrCorrupt)
			}
			_, err = ts.transact(EntryCreate, Batch{Session: sid(2), Events: rootEvents(sid(2), "again")})
			require.Error(t, err)
			_, err = ts.Children(parent)
			require.ErrorIs(t, err, ErrCorrupt)
			ts.reopen()
			children, err := ts.Children(parent)
			require.NoError(t, err, "the next open has built the index anew")
			require.Equal(t, []uuid.UUID{sid(2)}, children)
			row, err := ts.Row(sid(2))
			require.NoError(t, err)
			require.Equal(t, uint64(4), row.Head)
		})
	}
}

// TestFoldIsTheSameAtEveryCut: an index that covers the history up to any
// position, brought up to date, is the fold of the whole history.
func TestFoldIsTheSameAtEveryCut(t *testing.T) {
	ts := newStore(t)
	ts.busy(3)
	ts.say(sid(1), numbers(2*positionsChunk+3)...)
	next := ts.st.durable()
	whole := &Store{journal: ts.journal, identity: ts.identity, opts: Options{ReadOnly: true}}
	whole.startState(nil, cover{})
	require.NoError(t, whole.catchUp(ctx, next))
	step := uint64(1)
	if testing.Short() {
		step = 13
	}
	for cut := uint64(0); cut <= next; cut += step {
		ix, err := openIndex(t.TempDir(), false)
		require.NoError(t, err)
		part := &Store{journal: ts.journal, identity: ts.identity}
		part.startState(ix, cover{})
		for _, upTo := range []uint64{cut / 2, cut, next} {
			require.NoError(t, part.catchUp(ctx, upTo))
			if upTo < next {
				require.NoError(t, part.st.flush(part))
			}
		}
		require.Equal(t, whole.st.totals, part.st.totals)
		for id, want := range whole.st.over.rows {
			got, err := part.st.lookup(id)
			require.NoError(t, err)
			require.True(t, sameRow(&want.row, &got.row), "cut %d: want %+v, got %+v", cut, want.row, got.row)
			for _, from := range []uint64{1, 5, 64, 65, 100} {
				a, err := whole.st.frames(want, from, 10)
				require.NoError(t, err)
				b, err := part.st.frames(got, from, 10)
				require.NoError(t, err)
				require.Equal(t, a, b, "cut %d: frames of %s from %d", cut, id, from)
			}
		}
		for n, id := range whole.st.over.names {
			got, err := part.st.byName(n)
			require.NoError(t, err)
			require.Equal(t, id, got)
		}
		for k, l := range whole.st.over.links {
			got, err := part.st.link(k)
			require.NoError(t, err)
			require.Equal(t, l, got)
		}
		require.NoError(t, ix.verify())
		require.NoError(t, ix.close())
	}
}
