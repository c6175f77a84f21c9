package eventlog

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	bolt "go.etcd.io/bbolt"
)

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
		at := pageOfBucket(t, ts.dir, bucketJournal) * pageSizeIn(b)
		at += bytes.Index(b[at:], want)
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

func policyOf(s *Store, id uuid.UUID) ([]Event, error) {
	events, _, err := s.Policy(ctx, id, 0)
	return events, err
}
