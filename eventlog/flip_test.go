package eventlog

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// answers is everything that a store says about its sessions. An answer that
// could not be given is "error".
func answers(s *Store, sessions int) map[string]string {
	out := map[string]string{}
	say := func(key string, err error, value any) {
		if out[key] = fmt.Sprint(value); err != nil {
			out[key] = "error"
		}
	}
	for n := range sessions {
		id := sid(n)
		events, _, err := s.Policy(ctx, id, 0)
		var policy []string
		for _, ev := range events {
			policy = append(policy, fmt.Sprint(ev.Seq, ev.ID, ev.Type, ev.Facts))
		}
		say(fmt.Sprintf("policy %d", n), err, policy)
		row, err := s.Row(id)
		say(fmt.Sprintf("row %d", n), err, row)
		var log []string
		err = s.Replay(ctx, id, true, func(ev *Event) error {
			log = append(log, fmt.Sprintf("%d %s %x", ev.Seq, ev.ID, sha256.Sum256(ev.Content)))
			return ev.ContentErr
		})
		say(fmt.Sprintf("log %d", n), err, log)
		children, err := s.Children(id)
		say(fmt.Sprintf("children %d", n), err, children)
		key, err := s.ByKey(sid(0), fmt.Sprint(n))
		if errors.Is(err, ErrNotFound) {
			err = nil
		}
		say(fmt.Sprintf("key %d", n), err, key)
	}
	var rows []string
	err := s.EachRow(ctx, func(r *Row) (bool, error) { rows = append(rows, fmt.Sprint(*r)); return true, nil })
	say("rows", err, rows)
	return out
}

// flipStore is a small store with all kinds of data: a root with children,
// messages, contents inside and outside of a page, free pages.
const flipSessions = 6

func flipStore(t *testing.T) *testStore {
	ts := newStore(t)
	ts.root(sid(0))
	for n := 1; n < flipSessions; n++ {
		ts.child(sid(0), sid(n), fmt.Sprint(n))
		ts.say(sid(n), numbers(4*n)...)
		_, err := ts.Append(ctx, Batch{Session: sid(n), Expect: Any(), Events: []NewEvent{octets(noise(uint64(n), 9000*n))}})
		require.NoError(t, err)
		if n%2 == 0 {
			ts.narrow(sid(n))
			ts.flushIndex()
		}
	}
	ts.reopen()
	ts.flushIndex()
	ts.narrow(sid(3)) // the index does not cover this one
	size, err := ts.st.index.size()
	require.NoError(t, err)
	require.NoError(t, ts.Close())
	require.NoError(t, os.Truncate(filepath.Join(ts.dir, indexFile), size)) // what is behind is no page
	require.NoError(t, os.Truncate(filepath.Join(ts.dir, journalFile), journalSize(t, ts.dir)))
	return ts
}

// journalSize is how much of store.db is in use, bytes.
func journalSize(t testing.TB, dir string) (n int64) {
	db, err := bolt.Open(filepath.Join(dir, journalFile), 0o600, &bolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bolt.Tx) error { n = tx.Size(); return nil }))
	return n
}

// truth is what the sound store answers.
func truth(t *testing.T, dir string) map[string]string {
	s, err := Open(ctx, dir, Options{ReadOnly: true})
	require.NoError(t, err)
	defer s.Close()
	out := answers(s, flipSessions)
	for key, answer := range out {
		require.NotEqual(t, "error", answer, key)
	}
	return out
}

// requireNoOtherAnswer opens a damaged copy. Whatever it says about a policy
// is the truth or an error. Whatever else differs, the store itself reports.
func requireNoOtherAnswer(t *testing.T, what, dir string, truth map[string]string) {
	t.Helper()
	requireUntouched(t, dir, func() {
		s, err := Open(ctx, dir, Options{ReadOnly: true})
		if err != nil {
			require.True(t, errors.Is(err, ErrCorrupt) || errors.Is(err, ErrStoreLost), "%s: %v", what, err)
			return
		}
		defer s.Close()
		got := answers(s, flipSessions)
		var differs []string
		for _, key := range slices.Sorted(maps.Keys(truth)) {
			if got[key] == truth[key] || got[key] == "error" {
				continue
			}
			require.False(t, strings.HasPrefix(key, "policy") || strings.HasPrefix(key, "log"), "%s: %s\nis   %s\nwant %s", what, key, got[key], truth[key])
			differs = append(differs, key)
		}
		if len(differs) > 0 {
			report, err := s.Check(ctx, CheckOptions{})
			require.True(t, err != nil || !report.OK(), "%s: %v differ and the check finds nothing", what, differs)
		}
	})
}

// pagesOf is how many pages of which size a file has, at least the two metas.
func pagesOf(t *testing.T, path string) (pages, size int) {
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	size = int(binary.LittleEndian.Uint32(raw[16+8:])) // of the first meta page
	require.Greater(t, len(raw), 4*size)
	return len(raw) / size, size
}

// TestCase26_FlippedBytes: a byte flipped in each page of either file.
func TestCase26_FlippedBytes(t *testing.T) {
	original := flipStore(t)
	want := truth(t, original.dir)
	perPage := 4
	if testing.Short() {
		perPage = 2
	}
	dir := filepath.Join(t.TempDir(), "copy")
	r := rand.New(rand.NewPCG(1, 2))
	for _, file := range []string{journalFile, indexFile} {
		pages, size := pagesOf(t, filepath.Join(original.dir, file))
		for page := range pages {
			for i := range perPage {
				copyDir(t, original.dir, dir)
				if file == journalFile && i%2 == 1 {
					require.NoError(t, removeIndex(dir))
				}
				offset := page*size + r.IntN(size)
				if i < 2 { // where the structure is
					offset = page*size + r.IntN(64)
				}
				flipFile(t, filepath.Join(dir, file), offset)
				requireNoOtherAnswer(t, fmt.Sprintf("%s byte %d, run %d", file, offset, i), dir, want)
			}
		}
	}
}

// TestCase26_CutFile: the file ends at each page in turn.
func TestCase26_CutFile(t *testing.T) {
	original := flipStore(t)
	want := truth(t, original.dir)
	dir := filepath.Join(t.TempDir(), "copy")
	step := 1
	if testing.Short() {
		step = 5
	}
	for _, file := range []string{journalFile, indexFile} {
		pages, size := pagesOf(t, filepath.Join(original.dir, file))
		for page := 0; page < pages; page += step {
			for _, odd := range []int{0, 100} {
				copyDir(t, original.dir, dir)
				require.NoError(t, os.Truncate(filepath.Join(dir, file), int64(page*size+odd)))
				requireNoOtherAnswer(t, fmt.Sprintf("%s cut at %d", file, page*size+odd), dir, want)
			}
		}
	}
}

// TestFlippedIndexIsRebuilt: to write, a store with a damaged index has the
// same answers, not errors: it builds the index anew. An index too large to be
// verified at open ends an answer with an error, and is rebuilt by the next.
func TestFlippedIndexIsRebuilt(t *testing.T) {
	original := flipStore(t)
	want := truth(t, original.dir)
	dir := filepath.Join(t.TempDir(), "copy")
	r := rand.New(rand.NewPCG(3, 4))
	pages, size := pagesOf(t, filepath.Join(original.dir, indexFile))
	step := 1
	if testing.Short() {
		step = 3
	}
	defer func(was int64) { verifyAtOpen = was }(verifyAtOpen)
	for _, verifyAtOpen = range []int64{verifyAtOpen, 0} {
		noticed, failed := 0, 0
		for i := 0; i < 2*pages; i += step {
			copyDir(t, original.dir, dir)
			offset := i / 2 * size
			if i%2 == 0 {
				offset += 10 // the count of entries
			} else {
				offset += r.IntN(size)
			}
			flipFile(t, filepath.Join(dir, indexFile), offset)
			s, err := Open(ctx, dir, Options{})
			require.NoError(t, err, "byte %d", offset)
			if len(s.Notices()) > 0 {
				noticed++
			}
			for key, got := range answers(s, flipSessions) {
				if got == "error" && verifyAtOpen == 0 {
					failed++
				} else {
					require.Equal(t, want[key], got, "byte %d", offset)
				}
			}
			require.NoError(t, s.Close())
			s, err = Open(ctx, dir, Options{})
			require.NoError(t, err, "byte %d", offset)
			require.Equal(t, want, answers(s, flipSessions), "byte %d", offset)
			require.NoError(t, s.Close())
			requireSound(t, dir)
		}
		if step == 1 { // each page in use was hit
			require.Positive(t, noticed+failed)
		}
	}
}
