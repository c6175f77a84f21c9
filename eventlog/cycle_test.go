package eventlog

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// loopBranches makes the first entry of every branch page of a bbolt file lead
// back to the page itself, and returns how many there were.
func loopBranches(t *testing.T, path string) (n int) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	size := pageSizeOf(b)
	for at := 0; at+size <= len(b); at += size {
		if id := binary.LittleEndian.Uint64(b[at:]); id == uint64(at/size) && binary.LittleEndian.Uint16(b[at+8:]) == 1 {
			binary.LittleEndian.PutUint64(b[at+16+8:], id)
			n++
		}
	}
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return n
}

// TestCase26_ABranchThatLeadsToItself: bbolt follows such a page until the
// memory is gone. An index that has one is not used, and changes no answer; a
// journal that has one is not opened, not even for reading.
func TestCase26_ABranchThatLeadsToItself(t *testing.T) {
	for _, verified := range []int64{verifyAtOpen, 0} { // an index of any size
		defer func(was int64) { verifyAtOpen = was }(verifyAtOpen)
		verifyAtOpen = verified
		ts := newStore(t)
		for n := range 80 {
			ts.say(ts.root(sid(n)), numbers(40)...)
		}
		ts.flushIndex()
		want := answers(ts.Store, 80)
		require.NoError(t, ts.Close())
		require.NotZero(t, loopBranches(t, filepath.Join(ts.dir, indexFile)))
		ts.open(Options{ReadOnly: true})
		require.Equal(t, want, answers(ts.Store, 80))
		require.NoError(t, ts.Close())
		ts.open()
		require.Equal(t, want, answers(ts.Store, 80))
		require.NoError(t, ts.Close())

		require.NotZero(t, loopBranches(t, filepath.Join(ts.dir, journalFile)))
		for _, o := range []Options{{ReadOnly: true}, {}} {
			_, err := Open(ctx, ts.dir, o)
			require.ErrorIs(t, err, ErrCorrupt)
		}
		ts.Store = nil
	}
}
