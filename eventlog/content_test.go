package eventlog

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// TestContentOfEverySize: around the chunks and up to the cap, of bytes that
// shrink and of such that don't.
func TestContentOfEverySize(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	var want [][]byte
	for _, n := range []int{0, 1, zstdMinLen - 1, zstdMinLen, chunkSize - 1, chunkSize, chunkSize + 1, 3 * chunkSize, 3*chunkSize + 1, MaxContent} {
		want = append(want, noise(uint64(n), n), []byte(strings.Repeat("a line\n", n/7+1)[:n]))
	}
	for i, c := range want {
		_, err := ts.Append(ctx, Batch{Session: id, Expect: At(uint64(i + 1)), Events: []NewEvent{octets(c)}})
		require.NoError(t, err)
	}
	ts.reopen()
	seq := uint64(2)
	require.NoError(t, ts.Replay(ctx, id, true, func(ev *Event) error {
		if ev.Seq > 1 {
			require.NoError(t, ev.ContentErr)
			require.True(t, bytes.Equal(want[seq-2], ev.Content), "%d bytes", len(want[seq-2]))
			require.Equal(t, uint64(len(ev.Content)), ev.ContentLen)
			seq++
		}
		return nil
	}))
	require.Equal(t, uint64(len(want)+2), seq)
	st, err := ts.Stats()
	require.NoError(t, err)
	require.Less(t, st.JournalBytes, int64(2*MaxContent), "what shrinks is compressed")
}

// TestEmptyContentIsNotNone: both, and null facts, stay what they were.
func TestEmptyContentIsNotNone(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: "user/message", Media: MediaText}, {Type: "user/message"}}})
	require.NoError(t, err)
	page, err := ts.Read(ctx, id, ReadOptions{From: 2, Contents: true})
	require.NoError(t, err)
	require.True(t, page.Events[0].HasContent)
	require.Equal(t, []byte{}, page.Events[0].Content)
	require.NotZero(t, page.Events[0].Commitment)
	require.False(t, page.Events[1].HasContent)
	require.Nil(t, page.Events[1].Content)
	require.Zero(t, page.Events[1].Commitment)
	page, err = ts.Read(ctx, id, ReadOptions{From: 2})
	require.NoError(t, err)
	require.Nil(t, page.Events[0].Content, "not asked for")
}

// TestSaltsDiffer: equal contents have unequal commitments, else a redacted
// one could be found by comparing it with candidates.
func TestSaltsDiffer(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("4711"), text("4711")}})
	require.NoError(t, err)
	page, err := ts.Read(ctx, id, ReadOptions{From: 2})
	require.NoError(t, err)
	require.NotEqual(t, page.Events[0].Commitment, page.Events[1].Commitment)
}

// TestCase28_LargeContentIsRefused: a 5 MB tool output under a 1 MB limit, and
// nothing of it is written.
func TestCase28_LargeContentIsRefused(t *testing.T) {
	ts := newStore(t, Options{Limits: Limits{Content: 1 << 20}})
	id := ts.root(sid(1))
	ts.unchanged(t, func() {
		_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{octets(make([]byte, 5<<20))}})
		require.Equal(t, &TooLargeError{What: "content in bytes", Limit: 1 << 20, Size: 5 << 20}, err)
		require.EqualError(t, err, "too large: content in bytes: limit 1048576, got 5242880")
	})
	ts.reopen()
	id2 := ts.root(sid(2))
	_, err := ts.Append(ctx, Batch{Session: id2, Expect: Any(), Events: []NewEvent{octets(make([]byte, MaxContent+1))}})
	require.Equal(t, &TooLargeError{What: "content in bytes", Limit: MaxContent, Size: MaxContent + 1}, err, "the cap without an option")
}

// TestCase28_PagesGoByBytes: a page holds what fits, at least one event, and
// every page advances.
func TestCase28_PagesGoByBytes(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	sizes := []int{10, 10, 900_000, 10, 400_000, 400_000, 400_000, 10, 10}
	for i, n := range sizes {
		_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{octets(noise(uint64(i), n))}})
		require.NoError(t, err)
	}
	pages := func(o ReadOptions) (out []string) {
		for o.From = 2; o.From != 0; {
			page, err := ts.Read(ctx, id, o)
			require.NoError(t, err)
			require.NotEmpty(t, page.Events)
			require.True(t, page.Next == 0 || page.Next > o.From, "a page that does not advance is read for ever")
			require.Equal(t, uint64(len(sizes)+1), page.Head)
			out = append(out, fmt.Sprintf("%d-%d", page.Events[0].Seq, page.Events[len(page.Events)-1].Seq))
			o.From = page.Next
		}
		return out
	}
	require.Equal(t, []string{"2-3", "4-4", "5-7", "8-10"}, pages(ReadOptions{Contents: true, MaxBytes: 850_000}))
	require.Equal(t, []string{"2-10"}, pages(ReadOptions{MaxBytes: 850_000}), "contents that are not loaded don't count")
	require.Equal(t, []string{"2-2", "3-3", "4-4", "5-5", "6-6", "7-7", "8-8", "9-9", "10-10"}, pages(ReadOptions{Contents: true, MaxBytes: 1}))
	require.Equal(t, []string{"2-5", "6-9", "10-10"}, pages(ReadOptions{MaxEvents: 4}))
	require.Equal(t, []string{"2-5"}, pages(ReadOptions{To: 5, MaxEvents: 4}), "a full page at the end is the last one")

	page, err := ts.Read(ctx, id, ReadOptions{From: 11})
	require.NoError(t, err)
	require.Equal(t, Page{Head: 10}, page, "beyond the head there is nothing")
}

// change rewrites a value of store.db, past everything that watches over it.
// fn returns the new value; nil deletes it.
func (ts *testStore) change(bucket, key []byte, fn func([]byte) []byte) {
	ts.expectDamage()
	require.NoError(ts.t, ts.Close())
	changeDB(ts.t, ts.dir+"/"+journalFile, func(tx *bolt.Tx) error {
		b := tx.Bucket(bucket)
		was := b.Get(key)
		require.NotNil(ts.t, was)
		if now := fn(bytes.Clone(was)); now != nil {
			return b.Put(key, now)
		}
		return b.Delete(key)
	})
}

func changeDB(t require.TestingT, path string, fn func(*bolt.Tx) error) {
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(fn))
	require.NoError(t, db.Close())
}

func flip(offset int) func([]byte) []byte {
	return func(b []byte) []byte {
		b[(offset+len(b))%len(b)] ^= 0x10
		return b
	}
}

func gone([]byte) []byte { return nil }

// TestDamagedContent: it is reported where it is, for that event; all others
// are read.
func TestDamagedContent(t *testing.T) {
	for _, c := range []struct {
		name, want string
		chunk      uint32
		change     func([]byte) []byte
	}{
		{"a flipped byte in the first chunk", "content: chunk 0: chunk: checksum: want", 0, flip(500)},
		{"a flipped byte in the last chunk", "content: chunk 2: chunk: checksum: want", 2, flip(500)},
		{"a flipped byte in the salt", "content: chunk 0: chunk: checksum", 0, flip(3)},
		{"a chunk that is gone", "content: missing: chunk 1 of 3", 1, gone},
		{"a chunk cut short, with a right checksum", "content: chunk 1: chunk: want 65536 bytes of content, got 65535", 1, func(b []byte) []byte { return resealChunk(b[:len(b)-5]) }},
		{"another content, with a right checksum", "content: commitment: want", 1, func(b []byte) []byte { return resealChunk(flip(500)(b)[:len(b)-4]) }},
		{"no bytes at all", "content: chunk 1: chunk: want at least 5 bytes, got 0", 1, func([]byte) []byte { return []byte{} }},
		{"flags of another version", "chunk: flags: unknown bits in 0x80", 1, func(b []byte) []byte { b[0] = 0x80; return resealChunk(b[:len(b)-4]) }},
		{"zstd that is none", "chunk: zstd: ", 1, func(b []byte) []byte { b[0] = flagZstd; return resealChunk(b[:len(b)-4]) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			ts := newStore(t)
			id := ts.root(sid(1))
			res, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("before"), octets(noise(1, 3*chunkSize-100)), text("after")}})
			require.NoError(t, err)
			ts.change(bucketContents, contentKey(res.Position, 1, c.chunk), c.change)
			ts.open(Options{ReadOnly: true})

			page, err := ts.Read(ctx, id, ReadOptions{From: 2, Contents: true})
			require.NoError(t, err)
			require.Equal(t, "before", string(page.Events[0].Content))
			require.Equal(t, "after", string(page.Events[2].Content))
			require.Nil(t, page.Events[1].Content)
			var where *CorruptError
			require.ErrorAs(t, page.Events[1].ContentErr, &where)
			require.Equal(t, id, where.Session)
			require.Equal(t, uint64(3), where.Seq)
			require.Equal(t, res.Position, where.Position)
			require.ErrorContains(t, page.Events[1].ContentErr, c.want)

			report, err := ts.Check(ctx, CheckOptions{})
			require.NoError(t, err)
			require.Len(t, report.Findings, 1)
			require.Equal(t, FindContent, report.Findings[0].Kind)
			require.Equal(t, [2]any{id, uint64(3)}, [2]any{report.Findings[0].Session, report.Findings[0].Seq})
			report, err = ts.Check(ctx, CheckOptions{Session: uuid.New()})
			require.NoError(t, err)
			require.True(t, report.OK(), "the damage is another session's")
			_, _, err = ts.Policy(ctx, id, 0)
			require.NoError(t, err, "policy rests on no content")
		})
	}
}

func resealChunk(body []byte) []byte {
	return seal(nil, bytes.Clone(body))
}

// TestRetryOverADamagedContent: what is stored can't be compared, so it is
// not the same.
func TestRetryOverADamagedContent(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	res, err := ts.Append(ctx, Batch{Session: id, Expect: At(1), Events: []NewEvent{named(eid(1), "x")}})
	require.NoError(t, err)
	ts.change(bucketContents, contentKey(res.Position, 0, 0), gone)
	ts.open()
	_, err = ts.Append(ctx, Batch{Session: id, Expect: At(1), Events: []NewEvent{named(eid(1), "x")}})
	require.ErrorIs(t, err, ErrDuplicate)
}
