package eventlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"childlog/policy"
)

// TestSalvageErasedStaysErased: a content was deleted, a frame was purged; older
// copies of both are on free pages. Neither comes back, whatever is damaged.
func TestSalvageErasedStaysErased(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir string, b []byte) []byte{
		"nothing else": func(_ *testing.T, _ string, b []byte) []byte { return b },
		"the contents' top page": func(t *testing.T, dir string, b []byte) []byte {
			return zero(b, pageOfBucket(t, dir, bucketContents))
		},
		"the journal's top page": func(t *testing.T, dir string, b []byte) []byte {
			return zero(b, pageOfBucket(t, dir, bucketJournal))
		},
		"both meta pages": func(_ *testing.T, _ string, b []byte) []byte { return zero(b, 0, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			ts := newStore(t)
			id, other := ts.root(sid(1)), ts.root(sid(2))
			secret := "a secret that was erased"
			ts.say(other, numbers(30)...)
			ts.say(id, "before", secret, "behind")
			row, err := ts.Row(id)
			require.NoError(t, err)
			require.NoError(t, ts.Close())
			ts.expectDamage()
			ts.Store = nil
			frames, _ := journalOf(t, ts.dir)
			position := row.LastPos - 1
			changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error {
				require.NoError(t, tx.Bucket(bucketContents).Delete(contentKey(position, 0, 0)))
				require.NoError(t, tx.Bucket(bucketJournal).Delete(positionKey(position-1)))
				return tx.Bucket(bucketTombstones).Put(positionKey(position-1), make([]byte, 32))
			})
			raw, err := os.ReadFile(filepath.Join(ts.dir, journalFile))
			require.NoError(t, err)
			require.True(t, bytes.Contains(raw, []byte(secret)), "bbolt leaves it on a free page")
			require.True(t, bytes.Contains(raw, []byte(frames[position-1])))
			edit(t, ts.dir, func(b []byte) []byte { return damage(t, ts.dir, b) })
			_, to := salvaged(t, ts.dir, SalvageOptions{IncludeTail: true})
			saved, err := os.ReadFile(filepath.Join(to, journalFile))
			require.NoError(t, err)
			require.False(t, bytes.Contains(saved, []byte(secret)), "the content came back")
			require.False(t, bytes.Contains(saved, []byte(frames[position-1])), "the frame came back")
		})
	}
}

// TestSalvageOfWhatWasNeverCommitted: a process died after it wrote the pages
// of a commit and before the meta page. With two sound meta pages that commit
// never was, and its frames are nothing: neither lost nor a tail.
func TestSalvageOfWhatWasNeverCommitted(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, numbers(20)...)
	require.NoError(t, ts.Close())
	before, err := os.ReadFile(filepath.Join(ts.dir, journalFile))
	require.NoError(t, err)
	want, _ := journalOf(t, ts.dir)
	signed, err := os.ReadFile(filepath.Join(ts.dir, checkpointFile))
	require.NoError(t, err)
	ts.open()
	ts.narrow(id)
	require.NoError(t, ts.Close())
	ts.Store = nil
	require.NoError(t, os.WriteFile(filepath.Join(ts.dir, checkpointFile), signed, 0o600)) // only what was committed is signed
	all, _ := journalOf(t, ts.dir)
	edit(t, ts.dir, func(b []byte) []byte {
		copy(b, before[:2*pageSizeIn(b)])
		require.True(t, bytes.Contains(b, []byte(all[uint64(len(want))])))
		return b
	})
	rep, to := salvaged(t, ts.dir, SalvageOptions{IncludeTail: true})
	require.True(t, rep.Complete, "%+v", rep)
	require.Empty(t, rep.Tail)
	got, _ := journalOf(t, to)
	require.Equal(t, want, got)
	requireSound(t, to)
}

// TestSalvageOfAbsentFrames: a sound tree that has not got a frame is believed,
// also without a tombstone: older copies do not fill it.
func TestSalvageOfAbsentFrames(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, numbers(20)...)
	require.NoError(t, ts.Close())
	ts.expectDamage()
	ts.Store = nil
	frames, _ := journalOf(t, ts.dir)
	changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error { return tx.Bucket(bucketJournal).Delete(positionKey(7)) })
	raw, err := os.ReadFile(filepath.Join(ts.dir, journalFile))
	require.NoError(t, err)
	require.True(t, bytes.Contains(raw, []byte(frames[7])))
	rep, to := salvaged(t, ts.dir, SalvageOptions{})
	require.Equal(t, uint64(1), rep.LostFrames)
	got, _ := journalOf(t, to)
	require.Equal(t, markMagic, got[7][:4])
}

// TestSalvageOfAConflict: the tree holds one frame, a cut off page another for
// the same position. The tree counts, and the statement says so.
func TestSalvageOfAConflict(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, numbers(20)...)
	require.NoError(t, ts.Close())
	frames, _ := journalOf(t, ts.dir)
	other := reseal(bytes.Replace([]byte(frames[7]), []byte("assistant/message"), []byte("assistant/massage"), 1))
	ts.expectDamage()
	ts.Store = nil
	edit(t, ts.dir, func(b []byte) []byte {
		size := pageSizeIn(b)
		page := append(leafPage(uint64(len(b)/size), 7, other), make([]byte, size)...)
		return append(b, page[:size]...)
	})
	rep, to := salvaged(t, ts.dir, SalvageOptions{})
	require.True(t, rep.Complete)
	require.Contains(t, rep.Conflicts, Conflict{Position: 7, Kept: "tree"})
	got, _ := journalOf(t, to)
	require.Equal(t, frames, got)
}

// FuzzSalvagePage puts any bytes in place of a page of the journal: what comes
// out is of the original, or stated as lost, and nothing panics.
func FuzzSalvagePage(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "store")
	_, err := Init(ctx, dir)
	require.NoError(f, err)
	s, err := Open(ctx, dir, Options{})
	require.NoError(f, err)
	for n := range 3 {
		_, err := s.Transact(ctx, EntryCreate, func(*View) ([]Batch, error) {
			return []Batch{{Session: sid(n), Events: rootEvents(sid(n), "root")}}, nil
		})
		require.NoError(f, err)
		for i := range 20 {
			_, err := s.Append(ctx, Batch{Session: sid(n), Expect: Any(), Events: []NewEvent{text(fmt.Sprint("message ", i))}})
			require.NoError(f, err)
		}
	}
	require.NoError(f, s.Close())
	frames, _ := journalOf(f, dir)
	file, err := os.ReadFile(filepath.Join(dir, journalFile))
	require.NoError(f, err)
	size := pageSizeIn(file)
	used := int(journalSize(f, dir)) / size
	file = file[:used*size]
	for page := range used {
		f.Add(uint16(page), file[page*size:page*size+200])
		f.Add(uint16((page+1)%used), file[page*size:(page+1)*size])
	}
	f.Add(uint16(4), leafPage(4, 7, []byte(frames[9])))
	f.Fuzz(func(t *testing.T, page uint16, data []byte) {
		b := bytes.Clone(file)
		copy(b[int(page)%used*size:][:size], data)
		s := &salvager{ctx: ctx, report: newSalvageReport(), end: 1<<64 - 1, named: map[uint64]lostName{}}
		if err := s.openTree(bytes.NewReader(b), int64(len(b))); err != nil {
			require.ErrorIs(t, err, ErrStoreLost)
			return
		}
		require.NoError(t, s.findFrames())
		lost := s.lostRanges()
		s.nameByChain(lost)
		s.stateLoss(lost)
		there := map[uint64]bool{}
		for i := range s.frames {
			f := &s.frames[i]
			raw, err := s.readFrame(f, nil)
			require.NoError(t, err)
			require.False(t, there[f.position])
			if there[f.position] = true; !bytes.Contains(data, raw) {
				require.Equal(t, frames[f.position], string(raw), "position %d", f.position)
			}
		}
		for p := uint64(0); p < s.end; p++ {
			stated := false
			for _, l := range s.report.Lost {
				stated = stated || l.From <= p && p <= l.To
			}
			require.NotEqual(t, there[p], stated, "position %d", p)
		}
	})
}

// TestSalvageForgedPages: a content looks like pages of the journal, with a
// frame that would widen its session and that fits the chain. It forges nothing,
// whatever of the real pages is lost.
func TestSalvageForgedPages(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, numbers(40)...)
	ts.narrow(id)
	row, err := ts.Row(id)
	require.NoError(t, err)
	p := pending{id: eid(1), typ: TypeSandboxMode, version: 1, source: SourceOperator, policy: true, facts: SandboxFacts(policy.Top())}
	header := appendHeader(nil, &p, row.Head+1, row.LastPolicy)
	forged := appendFrame(nil, &frame{session: id, first: row.Head + 1, count: 1, prev: row.Hash, lastPolicy: row.Head + 1,
		headers: append(appendUvarint(nil, uint64(len(header))), header...)})
	content := noise(9, chunkSize-64)
	_, err = ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{octets(content)}})
	require.NoError(t, err)
	want := fmt.Sprint(must(policyOf(ts.Store, id)))
	require.NoError(t, ts.Close())
	ts.expectDamage()
	ts.Store = nil
	frames, contents := journalOf(t, ts.dir)
	position := row.LastPos + 1
	chunk := []byte(contents[string(contentKey(position, 0, 0))])
	leaf := 0
	edit(t, ts.dir, func(b []byte) []byte {
		size := pageSizeIn(b)
		at := bytes.Index(b, chunk)
		require.Positive(t, at)
		require.Equal(t, 1, bytes.Count(b, chunk))
		leaf = at / size
		for page := leaf + 1; (page+1)*size < at+len(chunk); page++ {
			copy(b[page*size:], leafPage(uint64(page), position, forged))
		}
		body := b[at : at+len(chunk)-4]
		binary.LittleEndian.PutUint32(b[at+len(chunk)-4:], crc32.Checksum(body, castagnoli))
		require.Greater(t, bytes.Count(b, forged), 3)
		return b
	})
	for name, more := range map[string]func(b []byte) []byte{
		"the frame":                      func(b []byte) []byte { return b },
		"the frame and the content":      func(b []byte) []byte { return zero(b, leaf) },
		"the frame and the meta pages":   func(b []byte) []byte { return zero(b, 0, 1) },
		"the frame, content, meta pages": func(b []byte) []byte { return zero(b, leaf, 0, 1) },
		"the frame and the contents' tree": func(b []byte) []byte {
			return zero(b, pageOfBucket(t, ts.dir, bucketContents))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "copy")
			copyDir(t, ts.dir, dir)
			edit(t, dir, func(b []byte) []byte { return more(lose(b, []byte(frames[position]))) })
			rep, to := salvaged(t, dir, SalvageOptions{})
			got, _ := journalOf(t, to)
			for p, raw := range got {
				require.NotEqual(t, string(forged), raw, "position %d", p)
			}
			require.False(t, rep.Complete)
			s, err := Open(ctx, to, Options{ReadOnly: true})
			require.NoError(t, err)
			defer s.Close()
			if got, err := policyOf(s, id); err == nil {
				require.Equal(t, want, fmt.Sprint(got))
			}
		})
	}
}

// leafPage is a leaf page with two frames at a position and the one behind it.
func leafPage(id, position uint64, raw []byte) []byte {
	b := make([]byte, 16+2*16)
	binary.LittleEndian.PutUint64(b, id)
	binary.LittleEndian.PutUint16(b[8:], 2)
	binary.LittleEndian.PutUint16(b[10:], 2)
	for i := range 2 {
		e := b[16+16*i:]
		binary.LittleEndian.PutUint32(e[4:], uint32(len(b)-16-16*i))
		binary.LittleEndian.PutUint32(e[8:], 8)
		binary.LittleEndian.PutUint32(e[12:], uint32(len(raw)))
		b = append(append(b, positionKey(position+uint64(i))...), raw...)
	}
	return b
}
