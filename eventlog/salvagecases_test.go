package eventlog

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// edit changes the bytes of a closed store's journal file.
func edit(t testing.TB, dir string, fn func(b []byte) []byte) {
	path := filepath.Join(dir, journalFile)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, fn(b), 0o600))
}

// pageSizeIn is the page size of a sound journal file.
func pageSizeIn(b []byte) int { return int(binary.LittleEndian.Uint32(b[16+8:])) }

// zero blanks whole pages.
func zero(b []byte, pages ...int) []byte {
	size := pageSizeIn(b)
	for _, p := range pages {
		clear(b[p*size : (p+1)*size])
	}
	return b
}

// metaTxids are what the two meta pages say.
func metaTxids(b []byte) (txids [2]uint64) {
	for i := range txids {
		txids[i] = binary.LittleEndian.Uint64(b[i*pageSizeIn(b)+16+48:])
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
	raw, err := os.ReadFile(filepath.Join(original.dir, journalFile))
	require.NoError(t, err)
	pages, pageSize := pagesOf(t, filepath.Join(original.dir, journalFile))
	complete, cut := 0, 0
	for page := 0; page < pages; page += step {
		for _, odd := range []int{0, 100} {
			copyDir(t, original.dir, dir)
			size := page*pageSize + odd
			require.NoError(t, os.Truncate(filepath.Join(dir, journalFile), int64(size)))
			rep, err := Salvage(ctx, dir, filepath.Join(t.TempDir(), "new"), SalvageOptions{})
			if err != nil {
				require.ErrorIs(t, err, ErrStoreLost, "cut at %d", size)
				require.ErrorContains(t, err, "nothing to salvage")
				require.NotContains(t, string(raw[:size]), frameMagic, "%v", err)
				continue
			}
			if rep.Complete { // it may be: what was cut off was free
				complete++
			} else {
				cut++
			}
			requireFaithful(t, fmt.Sprintf("cut at %d", size), rep.Target, rep, frames, contents, want)
		}
	}
	require.Greater(t, cut, complete)
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
			b[pageSizeIn(b)+16+50] ^= 0xff
			b[16+3] ^= 0x40
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
		require.Greater(t, s.Identity().Incarnation, id.Incarnation)
		require.NoError(t, s.Close())
	}
	ts.Store = nil
}

// pageOfBucket is the top page of a bucket.
func pageOfBucket(t testing.TB, dir string, bucket []byte) (page int) {
	db, err := bolt.Open(filepath.Join(dir, journalFile), 0o600, &bolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bolt.Tx) error { page = int(tx.Bucket(bucket).Root()); return nil }))
	return page
}
