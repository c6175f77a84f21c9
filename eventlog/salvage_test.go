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
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// salvaged salvages dir into a new directory, checks what every salvage must
// hold, and returns the statement and the new store's directory.
func salvaged(t testing.TB, dir string, o SalvageOptions) (*SalvageReport, string) {
	t.Helper()
	before := dirDigest(t, dir)
	to := filepath.Join(t.TempDir(), "new")
	rep, err := Salvage(ctx, dir, to, o)
	require.NoError(t, err)
	require.Equal(t, before, dirDigest(t, dir), "the source changed")
	return rep, to
}

func dirDigest(t testing.TB, dir string) map[string]string {
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		out[e.Name()] = fmt.Sprintf("%x", sha256.Sum256(b))
	}
	return out
}

// journalOf reads all frames and contents of a store, raw.
func journalOf(t testing.TB, dir string) (frames map[uint64]string, contents map[string]string) {
	frames, contents = map[uint64]string{}, map[string]string{}
	db, err := bolt.Open(filepath.Join(dir, journalFile), 0o600, &bolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		require.NoError(t, tx.Bucket(bucketJournal).ForEach(func(k, v []byte) error {
			frames[binary.BigEndian.Uint64(k)] = string(v)
			return nil
		}))
		return tx.Bucket(bucketContents).ForEach(func(k, v []byte) error { contents[string(k)] = string(v); return nil })
	}))
	return frames, contents
}

// TestSalvageOfASoundStore: nothing is lost, and every answer is the same.
func TestSalvageOfASoundStore(t *testing.T) {
	original := flipStore(t)
	want := truth(t, original.dir)
	rep, to := salvaged(t, original.dir, SalvageOptions{})
	require.True(t, rep.Complete, "%+v", rep)
	require.Zero(t, rep.Findings)
	require.Equal(t, original.identity.Store, rep.Store)
	require.Greater(t, rep.Incarnation, uint64(1))
	require.Equal(t, want, truth(t, to))
	frames, contents := journalOf(t, original.dir)
	gotFrames, gotContents := journalOf(t, to)
	require.Equal(t, frames, gotFrames)
	require.Equal(t, contents, gotContents)
	requireSound(t, to)

	again, err := Open(ctx, to, Options{})
	require.NoError(t, err)
	_, err = again.Append(ctx, Batch{Session: sid(1), Expect: Any(), Events: []NewEvent{text("goes on")}})
	require.NoError(t, err)
	require.NoError(t, again.Close())
	requireSound(t, to)
}

// requireFaithful checks a salvaged store against the original: nothing is
// invented, every lost position is stated, and a policy or a log is the
// original's or refused.
func requireFaithful(t *testing.T, what, to string, rep *SalvageReport, frames map[uint64]string, contents map[string]string, truth map[string]string) {
	t.Helper()
	gotFrames, gotContents := journalOf(t, to)
	lost, nameless := map[uint64]bool{}, false
	for _, l := range rep.Lost {
		nameless = nameless || l.Session == nil
		for p := l.From; p <= l.To; p++ {
			lost[p] = true
		}
	}
	for p, raw := range gotFrames {
		if _, err := decodeFrame([]byte(raw)); err != nil {
			require.True(t, lost[p], "%s: position %d is no frame and not stated as lost", what, p)
			require.Equal(t, markMagic, raw[:4])
			continue
		}
		require.False(t, lost[p], "%s: position %d is there and stated as lost", what, p)
		require.Equal(t, frames[p], raw, "%s: position %d was invented", what, p)
	}
	for p := range frames {
		_, there := gotFrames[p]
		require.True(t, there || lost[p] || p >= rep.Positions && rep.TailDoubt != "", "%s: position %d is gone and nobody says so", what, p)
	}
	for k, v := range gotContents {
		require.Equal(t, contents[k], v, "%s: content %x was invented", what, k)
	}
	missing := 0
	for k := range contents {
		if _, ok := gotContents[k]; !ok {
			missing++
		}
	}
	require.True(t, missing == 0 || !rep.Complete, "%s: %d chunks are missing and nobody says so", what, missing)

	s, err := Open(ctx, to, Options{ReadOnly: true})
	require.NoError(t, err, what)
	defer s.Close()
	got := answers(s, flipSessions)
	untouched := rep.TailDoubt == "" && rep.InDoubt == 0
	hurt := map[uuid.UUID]bool{}
	for _, d := range rep.Damaged {
		hurt[d.Session] = true
	}
	for _, key := range slices.Sorted(maps.Keys(truth)) {
		var n int
		if k, _ := fmt.Sscanf(key, "policy %d", &n); k == 0 {
			if k, _ = fmt.Sscanf(key, "log %d", &n); k == 0 {
				continue
			}
		}
		if got[key] != "error" {
			require.Equal(t, truth[key], got[key], "%s: %s", what, key)
		} else {
			_, err := s.Row(sid(n))
			gone := errors.Is(err, ErrNotFound) && nameless // a log of which no frame is left is not known to be one
			require.False(t, untouched && !hurt[sid(n)] && !gone, "%s: %s is refused, and nothing was lost of it", what, key)
		}
	}
	if rep.Complete {
		require.Zero(t, rep.Findings, what)
		require.Equal(t, truth, got, what)
	}
}

// TestCase26_SalvageOfFlippedBytes: bytes flipped in each page in turn, in the
// structure and anywhere.
func TestCase26_SalvageOfFlippedBytes(t *testing.T) {
	original := flipStore(t)
	want := truth(t, original.dir)
	frames, contents := journalOf(t, original.dir)
	perPage := 12
	if testing.Short() {
		perPage = 1
	}
	r := rand.New(rand.NewPCG(5, 6))
	dir := filepath.Join(t.TempDir(), "copy")
	whole, runs := 0, 0
	pages, _ := pagesOf(t, filepath.Join(original.dir, journalFile))
	for page := range pages {
		for i := range perPage {
			copyDir(t, original.dir, dir)
			offset := page*journalPageSize + r.IntN(journalPageSize)
			switch (i + page) % 3 {
			case 0:
				offset = page*journalPageSize + r.IntN(16) // the header
			case 1:
				offset = page*journalPageSize + 16 + r.IntN(16*4) // the first elements, or a meta page
			}
			flipFile(t, filepath.Join(dir, journalFile), offset)
			what := fmt.Sprintf("byte %d of page %d", offset%journalPageSize, page)
			rep, to := salvaged(t, dir, SalvageOptions{})
			requireFaithful(t, what, to, rep, frames, contents, want)
			if runs++; rep.LostFrames == 0 && rep.TailDoubt == "" {
				whole++
			} else {
				t.Logf("%s: lost %v doubt %q in doubt %d damaged %d contents %d", what, rep.Lost, rep.TailDoubt, rep.InDoubt, len(rep.Damaged), rep.LostContents)
			}
		}
	}
	t.Logf("%d of %d salvages lost no event", whole, runs)
	require.Greater(t, whole, runs/2)
}
