package eventlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	bolt "go.etcd.io/bbolt"

	"childlog/policy"
)

// edit changes the bytes of a closed store's journal file.
func edit(t testing.TB, dir string, fn func(b []byte) []byte) {
	path := filepath.Join(dir, journalFile)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, fn(b), 0o600))
}

// zero blanks whole pages.
func zero(b []byte, pages ...int) []byte {
	size := journalPageSize
	for _, p := range pages {
		clear(b[p*size : (p+1)*size])
	}
	return b
}

// metaTxids are what the two meta pages say.
func metaTxids(b []byte) (txids [2]uint64) {
	for i := range txids {
		txids[i] = binary.LittleEndian.Uint64(b[i*journalPageSize+16+48:])
	}
	return txids
}

// TestCase26_SalvageOfACutFile: the file ends at each page in turn, and inside
// of it.
func TestCase26_SalvageOfACutFile(t *testing.T) {
	original := flipStore(t)
	want := truth(t, original.dir)
	frames, contents := journalOf(t, original.dir)
	dir := filepath.Join(t.TempDir(), "copy")
	step := 1
	if testing.Short() {
		step = 6
	}
	pages, _ := pagesOf(t, filepath.Join(original.dir, journalFile))
	for page := 0; page < pages; page += step {
		for _, odd := range []int{0, 100} {
			copyDir(t, original.dir, dir)
			size := page*journalPageSize + odd
			require.NoError(t, os.Truncate(filepath.Join(dir, journalFile), int64(size)))
			rep, err := Salvage(ctx, dir, filepath.Join(t.TempDir(), "new"), SalvageOptions{})
			if err != nil {
				require.ErrorIs(t, err, ErrStoreLost, "cut at %d", size)
				require.ErrorContains(t, err, "nothing to salvage")
				require.Less(t, page, 3, "%v", err)
				continue
			}
			require.False(t, rep.Complete)
			requireFaithful(t, fmt.Sprintf("cut at %d", size), rep.Target, rep, frames, contents, want)
		}
	}
}

// TestCase26_SalvageOfLoops: branches that lead to themselves, which bbolt
// follows for ever. Every frame is there: no branch leads to it, but its page is
// neither in use nor free.
func TestCase26_SalvageOfLoops(t *testing.T) {
	ts := newStore(t)
	for n := range 80 {
		ts.say(ts.root(sid(n)), numbers(40)...)
	}
	require.NoError(t, ts.Close())
	frames, contents := journalOf(t, ts.dir)
	require.NotZero(t, loopBranches(t, filepath.Join(ts.dir, journalFile)))
	ts.expectDamage()
	ts.Store = nil
	rep, to := salvaged(t, ts.dir, SalvageOptions{})
	require.True(t, rep.Complete, "%+v", rep)
	require.NotZero(t, rep.Frames.CutOff)
	gotFrames, gotContents := journalOf(t, to)
	require.Equal(t, frames, gotFrames)
	require.Equal(t, contents, gotContents)
	requireSound(t, to)
}

// TestSalvageOfMetaPages: one damaged byte is put right by the checksum; a
// page that is gone leaves the end in doubt, and then nothing is granted and
// nothing written.
func TestSalvageOfMetaPages(t *testing.T) {
	original := flipStore(t)
	want := truth(t, original.dir)
	frames, contents := journalOf(t, original.dir)
	raw, err := os.ReadFile(filepath.Join(original.dir, journalFile))
	require.NoError(t, err)
	newest := 0
	if txids := metaTxids(raw); txids[1] > txids[0] {
		newest = 1
	}
	for _, c := range []struct {
		name   string
		change func(b []byte) []byte
		states [2]string
		base   string
		doubt  bool
	}{
		{"a byte of each", func(b []byte) []byte {
			b[16+3] ^= 0x40
			b[journalPageSize+16+50] ^= 0xff
			return b
		}, [2]string{"repaired", "repaired"}, BaseNewest, false},
		{"a byte of the checksum", func(b []byte) []byte { b[16+60] ^= 1; return b }, [2]string{"repaired", "valid"}, BaseNewest, false},
		{"the older one is gone", func(b []byte) []byte { return zero(b, 1-newest) }, [2]string{}, BaseNewest, true},
		{"the newer one is gone", func(b []byte) []byte { return zero(b, newest) }, [2]string{}, BaseNewest, true},
		{"both are gone", func(b []byte) []byte { return zero(b, 0, 1) }, [2]string{"invalid", "invalid"}, BaseRoot, true},
	} {
		for _, tail := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, " tail ", tail), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "copy")
				copyDir(t, original.dir, dir)
				edit(t, dir, c.change)
				rep, to := salvaged(t, dir, SalvageOptions{IncludeTail: tail})
				requireFaithful(t, c.name, to, rep, frames, contents, want)
				if c.states[0] != "" {
					require.Equal(t, c.states, [2]string{rep.Metas[0].State, rep.Metas[1].State})
				}
				require.Equal(t, c.base, rep.Base)
				require.Equal(t, c.doubt, rep.TailDoubt != "", rep.TailDoubt)
				if !c.doubt {
					require.True(t, rep.Complete)
					return
				}
				require.Zero(t, rep.LostFrames, "what the other meta page leads to is all there")
				_, err := Open(ctx, to, Options{})
				require.ErrorIs(t, err, ErrCorrupt, "nobody writes behind what may be missing")
				s, err := Open(ctx, to, Options{ReadOnly: true})
				require.NoError(t, err)
				defer s.Close()
				for n := range flipSessions {
					_, _, err := s.Policy(ctx, sid(n), 0)
					require.ErrorIs(t, err, ErrPolicyUnreadable)
				}
				got, _ := journalOf(t, to)
				switch last := uint64(len(frames) - 1); {
				case c.name != "the newer one is gone":
					require.Len(t, got, len(frames))
				case tail:
					require.Equal(t, []UnprovenTail{{Position: last, Session: sid(3), First: 18, Last: 18, Included: true}}, rep.Tail)
					require.Equal(t, frames[last], got[last])
				default:
					require.Len(t, rep.Tail, 1)
					require.NotContains(t, got, last, "the narrowing that nothing proves is listed and left out")
				}
			})
		}
	}
}

// TestSalvageOfNothing: files of which nothing can be said.
func TestSalvageOfNothing(t *testing.T) {
	ts := newStore(t)
	require.NoError(t, ts.Close())
	ts.Store = nil
	for name, change := range map[string]func([]byte) []byte{
		"empty": func([]byte) []byte { return nil }, "zeros": func(b []byte) []byte { clear(b); return b },
		"noise": func(b []byte) []byte { return noise(1, len(b)) }, "one byte": func([]byte) []byte { return []byte{1} },
	} {
		edit(t, ts.dir, change)
		_, err := Salvage(ctx, ts.dir, filepath.Join(t.TempDir(), "new"), SalvageOptions{})
		require.ErrorIs(t, err, ErrStoreLost, name)
		require.ErrorContains(t, err, "nothing to salvage", name)
	}
	require.NoError(t, os.Remove(filepath.Join(ts.dir, journalFile)))
	_, err := Salvage(ctx, ts.dir, filepath.Join(t.TempDir(), "new"), SalvageOptions{})
	require.ErrorIs(t, err, ErrStoreLost)
	_, err = Salvage(ctx, t.TempDir(), filepath.Join(t.TempDir(), "new"), SalvageOptions{})
	require.ErrorIs(t, err, ErrNotFound)
}

// TestSalvagePlaces: what is in the way of a new store, and of reading the old.
func TestSalvagePlaces(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	to := filepath.Join(t.TempDir(), "new")
	_, err := Salvage(ctx, ts.dir, to, SalvageOptions{})
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, ts.Close())
	for _, place := range []string{"", ts.dir, filepath.Join(ts.dir, "sub")} {
		_, err := Salvage(ctx, ts.dir, place, SalvageOptions{})
		require.ErrorIs(t, err, ErrInvalid, place)
	}
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(ts.dir, link))
	_, err = Salvage(ctx, ts.dir, filepath.Join(link, "sub"), SalvageOptions{})
	require.ErrorIs(t, err, ErrInvalid)
	require.NoError(t, os.WriteFile(to, nil, 0o600))
	_, err = Salvage(ctx, ts.dir, to, SalvageOptions{})
	require.ErrorIs(t, err, ErrExists)
	other := filepath.Join(filepath.Dir(to), "other")
	rep, err := Salvage(ctx, ts.dir, other, SalvageOptions{DryRun: true})
	require.NoError(t, err)
	require.True(t, rep.Complete)
	require.NoDirExists(t, other)
	_, err = Salvage(ctx, ts.dir, other, SalvageOptions{})
	require.NoError(t, err)
	entries, err := os.ReadDir(filepath.Dir(other))
	require.NoError(t, err)
	require.Len(t, entries, 2, "no temporary directory stays")
	for _, name := range []string{"", journalFile, salvageFile, identityFile} {
		fi, err := os.Stat(filepath.Join(other, name))
		require.NoError(t, err)
		require.Zero(t, fi.Mode()&0o077, name)
	}
}

// TestSalvageOfIdentity: IDENTITY is gone or damaged, the id is in store.db.
func TestSalvageOfIdentity(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	id := ts.identity
	require.NoError(t, ts.Close())
	path := filepath.Join(ts.dir, identityFile)
	for name, change := range map[string]func() error{
		"gone": func() error { return os.Remove(path) }, "damaged": func() error { return os.WriteFile(path, []byte("{"), 0o600) },
	} {
		require.NoError(t, change(), name)
		rep, to := salvaged(t, ts.dir, SalvageOptions{})
		require.True(t, rep.Complete)
		require.Equal(t, identityFromDB, rep.IdentityFrom)
		s, err := Open(ctx, to, Options{ReadOnly: true})
		require.NoError(t, err)
		require.Equal(t, id.Store, s.Identity().Store)
		require.Equal(t, id.Incarnation+1, s.Identity().Incarnation)
		require.NoError(t, s.Close())
	}
	ts.Store = nil
}

// lose makes a frame unreadable in every copy of it, so that nothing proves it.
func lose(b, frame []byte) []byte {
	return bytes.ReplaceAll(b, frame, make([]byte, len(frame)))
}

// TestSalvageNamesWhoseFrame: one frame is gone without a trace. Where the gaps
// in the logs account for it, the others go on; where it may have been the
// newest of anybody, all who have nothing newer are refused.
func TestSalvageNamesWhoseFrame(t *testing.T) {
	for _, c := range []struct {
		name    string
		lost    []uint64
		refused []int
		writes  []int // sessions that go on
		rules   bool
	}{
		{"the middle of one log", []uint64{3}, []int{1}, []int{2, 3}, false},
		{"the beginning of one log", []uint64{1}, []int{2}, []int{1, 3}, false},
		{"the middle of two logs", []uint64{3, 4}, []int{1, 2}, []int{3}, false},
		{"the end of one log", []uint64{5}, []int{2, 3}, []int{1}, true},
		{"a middle and an end", []uint64{3, 5}, []int{1, 2, 3}, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ts := newStore(t)
			a, b, d := ts.root(sid(1)), ts.root(sid(2)), ts.root(sid(3)) // positions 0 1 2
			ts.say(a, "x")                                               // 3
			ts.narrow(b)                                                 // 4
			ts.narrow(b)                                                 // 5: the newest of b, or of d, who knows
			ts.say(a, "y")                                               // 6
			if !c.rules {
				ts.say(b, "y")
				ts.say(d, "y")
			}
			want := map[int]string{}
			policy := func(s *Store, n int) (string, error) {
				events, err := policyOf(s, sid(n))
				return fmt.Sprint(events), err
			}
			for n := 1; n <= 3; n++ {
				want[n] = must(policy(ts.Store, n))
			}
			ts.dropIndex()
			ts.expectDamage()
			ts.Store = nil
			frames, _ := journalOf(t, ts.dir)
			edit(t, ts.dir, func(raw []byte) []byte {
				for _, p := range c.lost {
					raw = lose(raw, []byte(frames[p]))
				}
				return raw
			})
			rep, to := salvaged(t, ts.dir, SalvageOptions{})
			require.Equal(t, uint64(len(c.lost)), rep.LostFrames)
			require.Equal(t, c.rules, rep.RulesInDoubt)
			require.NotZero(t, rep.Findings)
			s, err := Open(ctx, to, Options{})
			require.NoError(t, err)
			defer s.Close()
			for _, n := range c.refused {
				_, err := policy(s, n)
				require.ErrorIs(t, err, ErrPolicyUnreadable, "%d", n)
				_, err = s.Append(ctx, Batch{Session: sid(n), Expect: Any(), Events: []NewEvent{text("more")}})
				require.ErrorIs(t, err, ErrCorrupt, "%d", n)
			}
			for _, n := range c.writes {
				got, err := policy(s, n)
				require.NoError(t, err, "%d", n)
				require.Equal(t, want[n], got)
				_, err = s.Append(ctx, Batch{Session: sid(n), Expect: Any(), Events: []NewEvent{text("more")}})
				require.NoError(t, err)
			}
			require.Equal(t, c.rules, s.Whole() != nil)
			require.NoError(t, s.Close())
			s, err = Open(ctx, to, Options{ReadOnly: true}) // now with an index
			require.NoError(t, err)
			for _, n := range c.refused {
				_, err := policy(s, n)
				require.ErrorIs(t, err, ErrPolicyUnreadable, "%d", n)
			}
			require.NoError(t, s.Close())
		})
	}
}

// TestSalvageAsksTheIndex: a whole page of the journal is gone, with the newest
// events of some sessions. The index says whose they were: those are refused, in
// full, and all others go on. A damaged index is not asked, and one that knows
// more than the journal shows that the journal lost its end.
func TestSalvageAsksTheIndex(t *testing.T) {
	ts := newStore(t)
	const sessions = 12
	for n := range sessions {
		ts.root(sid(n))
	}
	for n := range sessions {
		ts.say(sid(n), numbers(n)...)
		ts.narrow(sid(n))
	}
	ts.say(sid(0), "newer than all")
	require.NoError(t, ts.Close())
	ts.expectDamage()
	ts.Store = nil
	frames, _ := journalOf(t, ts.dir)
	edit(t, ts.dir, func(b []byte) []byte { // the last two events of session 5, and one of 6
		last := uint64(sessions)
		for n := range 6 {
			last += uint64(n) + 1
		}
		for p := last - 2; p <= last; p++ {
			b = lose(b, []byte(frames[p]))
		}
		return b
	})
	for name, c := range map[string]struct {
		change  func(path string)
		refused []int
		doubt   bool
	}{
		"sound": {func(string) {}, []int{5, 6}, false},
		"damaged": {func(path string) {
			for page, size := pagesOf(t, path); page > 2; page-- {
				flipFile(t, path, (page-1)*size+size/8)
			}
		}, []int{1, 2, 3, 4, 5, 6}, false},
		"ahead": {func(path string) {
			changeDB(t, path, func(tx *bolt.Tx) error {
				c, _, err := readCover(tx)
				require.NoError(t, err)
				c.Next++
				return tx.Bucket(bucketMeta).Put(keyCover, seal(keyCover, must(msgpack.Marshal(&c))))
			})
		}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "copy")
			copyDir(t, ts.dir, dir)
			c.change(filepath.Join(dir, indexFile))
			rep, to := salvaged(t, dir, SalvageOptions{})
			require.Equal(t, uint64(3), rep.LostFrames)
			require.Equal(t, c.doubt, rep.TailDoubt != "", rep.TailDoubt)
			s, err := Open(ctx, to, Options{ReadOnly: true})
			require.NoError(t, err)
			defer s.Close()
			var refused []int
			for n := range sessions {
				if _, err := policyOf(s, sid(n)); err != nil {
					require.ErrorIs(t, err, ErrPolicyUnreadable)
					refused = append(refused, n)
				}
			}
			require.Equal(t, c.refused, refused)
		})
	}
}

// TestSalvageHealsFromOlderCopies: a frame is damaged on its page, and an older
// version of the page is still in the file. The chain proves that copy.
func TestSalvageHealsFromOlderCopies(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	for i := range 12 {
		ts.say(id, fmt.Sprint("message ", i))
	}
	require.NoError(t, ts.Close())
	ts.expectDamage()
	ts.Store = nil
	frames, contents := journalOf(t, ts.dir)
	want := []byte(frames[7])
	edit(t, ts.dir, func(b []byte) []byte {
		require.Greater(t, bytes.Count(b, want), 1, "an older page has it too")
		at := pageOfBucket(t, ts.dir, bucketJournal)*journalPageSize + bytes.Index(b[pageOfBucket(t, ts.dir, bucketJournal)*journalPageSize:], want)
		b[at+len(want)-10] ^= 1
		return b
	})
	rep, to := salvaged(t, ts.dir, SalvageOptions{})
	require.True(t, rep.Complete, "%+v", rep)
	require.Equal(t, uint64(1), rep.Frames.Carved)
	gotFrames, gotContents := journalOf(t, to)
	require.Equal(t, frames, gotFrames)
	require.Equal(t, contents, gotContents)
	requireSound(t, to)
}

// pageOfBucket is the top page of a bucket.
func pageOfBucket(t testing.TB, dir string, bucket []byte) (page int) {
	db, err := bolt.Open(filepath.Join(dir, journalFile), 0o600, &bolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bolt.Tx) error { page = int(tx.Bucket(bucket).Root()); return nil }))
	return page
}

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
	ts.open()
	ts.narrow(id)
	require.NoError(t, ts.Close())
	ts.Store = nil
	all, _ := journalOf(t, ts.dir)
	edit(t, ts.dir, func(b []byte) []byte {
		copy(b, before[:2*journalPageSize])
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
		id := uint64(len(b) / journalPageSize)
		page := append(leafPage(id, 7, other), make([]byte, journalPageSize)...)
		return append(b, page[:journalPageSize]...)
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
	size := journalPageSize
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
	content := noise(9, 16*journalPageSize-64)
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
		size := journalPageSize
		at := bytes.Index(b, chunk)
		require.Positive(t, at)
		require.Equal(t, 1, bytes.Count(b, chunk))
		leaf = at / size
		for page := leaf + 1; (page+1)*size < at+len(chunk); page++ {
			copy(b[page*size:], leafPage(uint64(page), position, forged))
		}
		body := b[at : at+len(chunk)-4]
		binary.LittleEndian.PutUint32(b[at+len(chunk)-4:], crc32.Checksum(body, castagnoli))
		require.Greater(t, bytes.Count(b, forged), 10)
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

func policyOf(s *Store, id uuid.UUID) ([]Event, error) {
	events, _, err := s.Policy(ctx, id, 0)
	return events, err
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
