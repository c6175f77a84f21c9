package eventlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// What bbolt does not notice. Each of these leaves a file that it opens without
// a word and that would be written to, or read as a shorter log.

// narrowedLast makes a store whose last commit narrowed session 1.
func narrowedLast(t *testing.T) *testStore {
	ts := newStore(t)
	ts.root(sid(1))
	ts.say(sid(1), numbers(5)...)
	ts.narrow(sid(1))
	return ts
}

// requireNoPolicy opens the damaged store: to write it is refused; to read it
// is served, except for the policy of any session.
func (ts *testStore) requireNoPolicy(t *testing.T) {
	for _, indexed := range []bool{true, false} {
		if !indexed {
			require.NoError(t, removeIndex(ts.dir))
		}
		_, err := Open(ctx, ts.dir, Options{})
		require.ErrorIs(t, err, ErrCorrupt)
		_, err = Reindex(ctx, ts.dir, Options{})
		require.ErrorIs(t, err, ErrCorrupt)
		requireUntouched(t, ts.dir, func() {
			ts.open(Options{ReadOnly: true})
			_, _, err = ts.Policy(ctx, sid(1), 0)
			require.ErrorIs(t, err, ErrPolicyUnreadable)
			seqs, _ := ts.seqs(sid(1))
			require.Subset(t, upTo(7), seqs)
			require.NotEmpty(t, ts.Notices())
			report, err := ts.Check(ctx, CheckOptions{})
			require.NoError(t, err)
			require.False(t, report.OK())
			require.NoError(t, ts.Close())
		})
	}
}

// TestShortenedJournal: a leaf that lost its last entry hides the newest
// frame. The journal's sequence remembers it.
func TestShortenedJournal(t *testing.T) {
	ts := narrowedLast(t)
	ts.change(bucketJournal, positionKey(6), gone)
	ts.requireNoPolicy(t)
}

// TestKeysOutOfOrder: a flipped bit in the key of the last frame makes it look
// like an early one, and the journal like a short one; in the key of another,
// it leads searches for those behind it astray. The log is as long as it was,
// with holes.
func TestKeysOutOfOrder(t *testing.T) {
	for position, want := range map[uint64][]uint64{6: upTo(6), 3: upTo(3)} {
		ts := narrowedLast(t)
		ts.expectDamage()
		require.NoError(t, ts.Close())
		require.NoError(t, removeIndex(ts.dir))
		path := filepath.Join(ts.dir, journalFile)
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		key := append(positionKey(position), frameMagic...)
		require.Positive(t, bytes.Count(raw, key))
		wrong := append(positionKey(position^4), frameMagic...) // 6 becomes 2, 3 becomes 7
		require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(raw, key, wrong), 0o600))
		if position == 6 {
			_, err = Open(ctx, ts.dir, Options{})
			require.ErrorIs(t, err, ErrCorrupt)
		}
		ts.open(Options{ReadOnly: true})
		seqs, holes := ts.seqs(sid(1))
		require.Equal(t, want, seqs)
		if position == 3 {
			require.Equal(t, []string{"4-4", "5-5", "6-6", "7-7"}, holes)
		}
		_, _, err = ts.Policy(ctx, sid(1), 0)
		require.ErrorIs(t, err, ErrPolicyUnreadable)
		report, err := ts.Check(ctx, CheckOptions{})
		require.NoError(t, err)
		require.Contains(t, report.kinds(), FindMissing)
	}
}

// TestWrongSequence: frames that the sequence does not know of, or far fewer
// frames than it says.
func TestWrongSequence(t *testing.T) {
	for _, sequence := range []uint64{0, 3, 8, maxSearched * 4} {
		ts := narrowedLast(t)
		ts.expectDamage()
		require.NoError(t, ts.Close())
		changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error { return tx.Bucket(bucketJournal).SetSequence(sequence) })
		ts.requireNoPolicy(t)
	}
}

// TestOneMetaPageInvalid: bbolt then uses the other one. If the invalid one
// was the newer, the last acknowledged commit is silently gone.
func TestOneMetaPageInvalid(t *testing.T) {
	for page := range 2 {
		for name, offset := range map[string]int{"checksum": 16 + 56, "root page": 16 + 16, "transaction": 16 + 48} {
			ts := narrowedLast(t)
			ts.expectDamage()
			require.NoError(t, ts.Close())
			flipFile(t, filepath.Join(ts.dir, journalFile), page*journalPageSize+offset)
			t.Run(name, ts.requireNoPolicy)
		}
	}
}

func flipFile(t require.TestingT, path string, offset int) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], int64(offset))
	require.NoError(t, err)
	b[0] ^= 0x10
	_, err = f.WriteAt(b[:], int64(offset))
	require.NoError(t, err)
}

// TestMissingBucket is no empty store.
func TestMissingBucket(t *testing.T) {
	for _, bucket := range [][]byte{bucketJournal, bucketContents, bucketTombstones, bucketMeta} {
		ts := narrowedLast(t)
		ts.expectDamage()
		require.NoError(t, ts.Close())
		changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error { return tx.DeleteBucket(bucket) })
		for _, opts := range []Options{{}, {ReadOnly: true}} {
			_, err := Open(ctx, ts.dir, opts)
			require.ErrorIs(t, err, ErrCorrupt, "%s", bucket)
		}
	}
}

// TestDamagedFreelist: a page in use that is listed as free would be
// overwritten by the next commits.
func TestDamagedFreelist(t *testing.T) {
	ts := narrowedLast(t)
	ts.expectDamage()
	require.NoError(t, ts.Close())
	path := filepath.Join(ts.dir, journalFile)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	size := pageSizeOf(raw)
	meta := raw[:size]
	if binary.LittleEndian.Uint64(raw[size+16+48:]) > binary.LittleEndian.Uint64(raw[16+48:]) {
		meta = raw[size:]
	}
	list := int(binary.LittleEndian.Uint64(meta[16+32:])) * size
	root := binary.LittleEndian.Uint64(meta[16+16:])
	require.NotZero(t, binary.LittleEndian.Uint16(raw[list+10:]), "the list holds a page")
	binary.LittleEndian.PutUint64(raw[list+16:], root)
	require.NoError(t, os.WriteFile(path, raw, 0o600))

	_, err = Open(ctx, ts.dir, Options{})
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "freelist")
	ts.open(Options{ReadOnly: true})
	events, _, err := ts.Policy(ctx, sid(1), 0)
	require.NoError(t, err, "a reader takes nothing from the freelist")
	require.Equal(t, []uint64{1, 7}, seqsOf(events))
}

// TestFileVanishesUnderTheHandle: reading through the memory map then faults.
// Every call fails, none panics, and none waits for a lock that a fault left.
func TestFileVanishesUnderTheHandle(t *testing.T) {
	for _, opts := range []Options{{}, {ReadOnly: true}} {
		ts := narrowedLast(t)
		ts.reopen(opts)
		ts.expectDamage()
		require.NoError(t, os.Truncate(filepath.Join(ts.dir, journalFile), 0))
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 3 {
				_, err := ts.Read(ctx, sid(1), ReadOptions{})
				requireError(t, err, ErrCorrupt)
				_, _, err = ts.Policy(ctx, sid(1), 0)
				requireError(t, err, ErrCorrupt)
				_, err = ts.Append(ctx, Batch{Session: sid(1), Expect: Any(), Events: []NewEvent{text("x")}})
				if err == nil {
					t.Error("an append to a file that is gone was acknowledged")
				}
			}
			_ = ts.Close()
		}()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Fatal("a call waits for ever")
		}
	}
}

func requireError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("want %v, got %v", want, err)
	}
}
