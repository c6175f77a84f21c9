package eventlog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// variedStore has what a copy must carry: several sessions, units of many
// frames, contents of no byte, of one chunk and of many, more frames and bytes
// than one page of a copy, and free pages.
func variedStore(t testing.TB) *testStore {
	ts := newStore(t)
	ts.busy(3)
	id := ts.root(sid(50))
	_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text(""), octets(noise(1, chunkSize)), octets(noise(2, 3*chunkSize+7)), octets(bytes.Repeat([]byte("x"), 200_000))}})
	require.NoError(t, err)
	for i := range 3 { // 6 MiB: more than a page
		_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{octets(noise(uint64(i), 2<<20))}})
		require.NoError(t, err)
	}
	ts.say(id, numbers(copyPageFrames+100)...)
	ts.child(id, sid(51), "late")
	return ts
}

// steppedStore is variedStore for tests that go through it many times.
func steppedStore(t testing.TB) *testStore {
	if !testing.Short() {
		return variedStore(t)
	}
	ts := newStore(t)
	ts.busy(2)
	return ts
}

// contentsOf are all stored bytes of a journal, by bucket and key.
func contentsOf(t require.TestingT, dir string) map[string]string {
	out := map[string]string{}
	db, err := bolt.Open(filepath.Join(dir, journalFile), 0o600, &bolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			out[fmt.Sprintf("%s sequence", name)] = fmt.Sprint(b.Sequence())
			return b.ForEach(func(k, v []byte) error {
				out[fmt.Sprintf("%s %x", name, k)] = string(v)
				return nil
			})
		})
	}))
	return out
}

// filesOf lists the names in a directory.
func filesOf(t require.TestingT, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func compact(t require.TestingT, dir string) Compacted {
	out, err := Compact(ctx, dir, CompactOptions{})
	require.NoError(t, err)
	return out
}

// TestCompact: the same frames at the same positions, in a smaller file. The
// index goes on being used as it is.
func TestCompact(t *testing.T) {
	ts := variedStore(t)
	ts.flushIndex()
	require.NoError(t, ts.Close())
	dir := ts.dir
	before := contentsOf(t, dir)
	index, err := os.ReadFile(filepath.Join(dir, indexFile))
	require.NoError(t, err)
	report := requireSound(t, dir)
	var last, of int
	out, err := Compact(ctx, dir, CompactOptions{Progress: func(done, n int) {
		require.GreaterOrEqual(t, done, last)
		last, of = done, n
	}})
	require.NoError(t, err)
	require.Equal(t, before, contentsOf(t, dir))
	require.Equal(t, report.Totals, out.Totals)
	require.Equal(t, report.Contents, out.Contents)
	require.Zero(t, out.Erased)
	require.Zero(t, out.Tombstones)
	require.EqualValues(t, report.Frames, last)
	require.Equal(t, last, of)
	fi, err := os.Stat(filepath.Join(dir, journalFile))
	require.NoError(t, err)
	require.Equal(t, fi.Size(), out.Bytes)
	require.Less(t, out.Bytes, out.Before)
	require.Equal(t, os.FileMode(0o600), fi.Mode())
	require.Equal(t, []string{checkpointFile, identityFile, keyFile, lockFile, indexFile, journalFile}, filesOf(t, dir))
	same, err := os.ReadFile(filepath.Join(dir, indexFile))
	require.NoError(t, err)
	require.True(t, bytes.Equal(index, same), "the index is not touched")

	ts.open()
	require.Empty(t, ts.Notices(), "and is used")
	require.Equal(t, journalPageSize, ts.journal.pageSize)
	st, err := ts.Stats()
	require.NoError(t, err)
	require.Less(t, st.FreePages*st.PageSize, 512<<10, "what the last leaves with long contents took before")
	ts.say(sid(50), "more")
	again := compactAgain(t, ts)
	require.LessOrEqual(t, again.Bytes, out.Bytes+int64(8*journalPageSize), "there is nothing left to gain")
}

func compactAgain(t *testing.T, ts *testStore) Compacted {
	require.NoError(t, ts.Close())
	out := compact(t, ts.dir)
	ts.open()
	return out
}

// TestCompactAnEmptyStore: there may be nothing to copy.
func TestCompactAnEmptyStore(t *testing.T) {
	dir := emptyStore(t)
	out := compact(t, dir)
	require.Zero(t, out.Frames)
	ts := useStore(t, dir)
	ts.root(sid(1))
}

// erase deletes what redaction and purge will delete: a content with its
// chunks, and a frame for a tombstone.
func erase(t *testing.T, dir string, content, frame uint64) {
	changeDB(t, filepath.Join(dir, journalFile), func(tx *bolt.Tx) error {
		contents := tx.Bucket(bucketContents)
		for c := contents.Cursor(); ; {
			k, _ := c.Seek(positionKey(content))
			if !bytes.HasPrefix(k, positionKey(content)) {
				break
			}
			if err := contents.Delete(k); err != nil {
				return err
			}
		}
		if err := contents.Delete(contentKey(frame, 0, 0)); err != nil {
			return err
		}
		leaf, _, err := frameLeaf(tx.Bucket(bucketJournal).Get(positionKey(frame)), nil)
		require.NoError(t, err)
		if err := tx.Bucket(bucketJournal).Delete(positionKey(frame)); err != nil {
			return err
		}
		return tx.Bucket(bucketTombstones).Put(positionKey(frame), leaf[:])
	})
}

// markedStore holds a secret in a content that was erased and in a frame that
// was purged; both are still in the file.
func markedStore(t *testing.T) (ts *testStore, secrets []string) {
	ts = newStore(t)
	ts.root(sid(1))
	ts.say(sid(1), "before", "first secret 8437261", "after")
	created := Created{Kind: KindRoot, Root: sid(9), MaxDepth: 3, Mode: ModeContinuable, Defaults: readOnlyDefaults(), WorkspaceRoot: "/second-secret-5529", PathStyle: "posix"}
	_, err := ts.transact(EntryCreate, Batch{Session: sid(9), Events: []NewEvent{{Type: TypeSessionCreated, Facts: created.Facts(), Media: MediaText, Content: []byte("third secret 6610")}}})
	require.NoError(t, err)
	ts.say(sid(1), "the last")
	ts.expectDamage() // a content without a redaction that explains it
	require.NoError(t, ts.Close())
	require.NoError(t, removeIndex(ts.dir))
	erase(t, ts.dir, 2, 4)
	return ts, []string{"first secret 8437261", "/second-secret-5529", "third secret 6610"}
}

// held lists the files below dir that hold a text.
func held(t require.TestingT, dir, secret string) (names []string) {
	for path, b := range snapshotDir(t, dir) {
		if strings.Contains(b, secret) {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}

// TestCompactDropsDeletedBytes: bbolt leaves what was deleted in the file. The
// new file has not one byte of it, and otherwise says what the old one said.
func TestCompactDropsDeletedBytes(t *testing.T) {
	ts, secrets := markedStore(t)
	for _, s := range secrets {
		require.Equal(t, []string{journalFile}, held(t, ts.dir, s), "the file still has it")
	}
	before, report := contentsOf(t, ts.dir), checkStore(t, ts.dir)
	out := compact(t, ts.dir)
	for _, s := range secrets {
		require.Empty(t, held(t, ts.dir, s))
	}
	require.EqualValues(t, 1, out.Erased)
	require.EqualValues(t, 1, out.Tombstones)
	require.EqualValues(t, 5, out.Frames)
	require.Equal(t, before, contentsOf(t, ts.dir))
	require.Equal(t, report, checkStore(t, ts.dir))
}

// TestCase27_CompactNamesTheDamagedOne: of 100 children one is damaged. The
// compaction refuses, says which, and changes nothing.
func TestCase27_CompactNamesTheDamagedOne(t *testing.T) {
	for name, c := range map[string]struct {
		bucket []byte
		key    func(position uint64) []byte
		seq    uint64
		kind   string
	}{
		"its frame":   {bucketJournal, positionKey, 5, FindFrame},
		"its content": {bucketContents, func(p uint64) []byte { return contentKey(p, 0, 0) }, 5, FindContent},
	} {
		t.Run(name, func(t *testing.T) {
			ts := newStore(t)
			ts.root(sid(0))
			for i := 1; i <= 100; i++ {
				ts.child(sid(0), sid(i), fmt.Sprint(i))
				ts.say(sid(i), fmt.Sprintf("result %d", i))
			}
			row, err := ts.Row(sid(42))
			require.NoError(t, err)
			ts.change(c.bucket, c.key(row.LastPos), flip(-1))
			report := checkStore(t, ts.dir)
			require.Equal(t, sid(42), report.Findings[0].Session)
			require.Equal(t, c.kind, report.Findings[0].Kind)
			requireUntouched(t, filepath.Join(ts.dir, journalFile), func() {
				_, err = Compact(ctx, ts.dir, CompactOptions{})
			})
			var ce *CorruptError
			require.ErrorAs(t, err, &ce)
			require.Equal(t, sid(42), ce.Session)
			require.Equal(t, c.seq, ce.Seq)
			require.Equal(t, row.LastPos, ce.Position)
			require.NotContains(t, filesOf(t, ts.dir), compactFile)
		})
	}
}

// TestCompactOfALink: the file that a link leads to would stay, with all that
// was to be gone.
func TestCompactOfALink(t *testing.T) {
	dir := emptyStore(t)
	path := filepath.Join(dir, journalFile)
	require.NoError(t, os.Rename(path, dir+".db"))
	require.NoError(t, os.Symlink(dir+".db", path))
	_, err := Compact(ctx, dir, CompactOptions{})
	require.ErrorIs(t, err, ErrInvalid)
	require.NoError(t, useStore(t, dir).Close())
}

// TestCompactAGoldenStore: what an earlier version wrote moves to the pages of
// this one and says what it said.
func TestCompactAGoldenStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	unpackStore(t, filepath.Join("..", "testdata", filepath.FromSlash(goldenStore)), dir)
	raw, err := os.ReadFile(filepath.Join(dir, journalFile))
	require.NoError(t, err)
	require.Equal(t, 4096, pageSizeOf(raw))
	require.Equal(t, journalPageSize, compact(t, dir).PageSize)
	golden(t, "stores/v1.golden", describe(t, useStore(t, dir)))
}

// TestCopiesAreBoundedInMemory: what a copy keeps while it runs does not grow
// with the store.
func TestCopiesAreBoundedInMemory(t *testing.T) {
	batches := 2000
	if testing.Short() {
		batches = 300
	}
	ts := newStore(t)
	fillBatches(t, ts, batches)
	backup := aside(ts, "backup")
	var base, peak uint64
	watch := func(step string) error {
		if step == "created" || step == "page" {
			runtime.GC()
			runtime.GC() // the first only ages what pools keep
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if step == "created" {
				base = m.HeapAlloc
			}
			peak = max(peak, m.HeapAlloc-min(base, m.HeapAlloc))
		}
		return nil
	}
	const bound = 16 << 20 // of a page, what proves it, and a reading of leaves
	_, err := ts.Backup(ctx, backup, BackupOptions{at: watch})
	require.NoError(t, err)
	require.Less(t, peak, uint64(bound), "backup")
	require.NoError(t, ts.Close())
	peak = 0
	_, err = Compact(ctx, ts.dir, CompactOptions{at: watch})
	require.NoError(t, err)
	require.Less(t, peak, uint64(bound), "compact")
	peak = 0
	_, err = Restore(ctx, backup, aside(ts, "restored"), RestoreOptions{at: watch})
	require.NoError(t, err)
	require.Less(t, peak, uint64(bound), "restore")
}

// fillBatches appends batches of 100 events of 300 bytes.
func fillBatches(t testing.TB, ts *testStore, batches int) {
	id := ts.root(sid(1))
	facts := mustFacts(map[string]any{"call": "call-17", "tool": "read"})
	events := make([]NewEvent, 100)
	for i := range events {
		events[i] = NewEvent{Type: TypeToolCall, Facts: facts, Media: MediaOctets, Content: noise(uint64(i), 300)}
	}
	var pending []*Pending
	for range batches {
		p, err := ts.AppendAsync(ctx, Batch{Session: id, Expect: Any(), Events: events})
		require.NoError(t, err)
		if pending = append(pending, p); len(pending) == 256 {
			_, err := pending[0].Wait(ctx)
			require.NoError(t, err)
			pending = pending[1:]
		}
	}
	for _, p := range pending {
		_, err := p.Wait(ctx)
		require.NoError(t, err)
	}
}

// TestCopiesCarryMarks: what a salvage stated as lost stays stated, and is not
// found to be damage of its own.
func TestCopiesCarryMarks(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	ts.say(sid(1), "a", "b", "c")
	ts.change(bucketJournal, positionKey(2), func([]byte) []byte { return appendMark(nil, lostName{session: sid(1), first: 3}) })
	changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error { return tx.Bucket(bucketContents).Delete(contentKey(2, 0, 0)) })
	require.NoError(t, removeIndex(ts.dir))
	unsign(t, ts.dir)
	before, report := contentsOf(t, ts.dir), checkStore(t, ts.dir)
	require.NotEmpty(t, report.Findings)
	out := compact(t, ts.dir)
	require.EqualValues(t, 1, out.Lost)
	require.Equal(t, before, contentsOf(t, ts.dir))
	require.Equal(t, report, checkStore(t, ts.dir))
	ts.open(Options{ReadOnly: true})
	backup, _ := ts.backup("backup")
	require.Equal(t, report, checkStore(t, backup))
}

// TestCompactKnowsEveryBucket: what a later version keeps is not dropped.
func TestCompactKnowsEveryBucket(t *testing.T) {
	dir := emptyStore(t)
	changeDB(t, filepath.Join(dir, journalFile), func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("later")); return err })
	_, err := Compact(ctx, dir, CompactOptions{})
	require.ErrorIs(t, err, ErrNewerFormat)
	require.ErrorContains(t, err, `"later"`)
}
