package torture_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/eventlog"
	"childlog/materialize"
)

// smallDisk mounts a file system of its own, of so many bytes.
func smallDisk(t *testing.T, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", bytes)); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// ballast takes all room that is left, but for some bytes.
func ballast(t *testing.T, dir string, spare int) (release func()) {
	t.Helper()
	var fs unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &fs))
	path := filepath.Join(dir, "ballast")
	err := os.WriteFile(path, make([]byte, max(0, int(fs.Bavail)*int(fs.Bsize)-spare)), 0o600)
	require.True(t, err == nil || errors.Is(err, unix.ENOSPC), "%v", err)
	return func() { require.NoError(t, os.Remove(path)) }
}

// TestCase24_FullDisk: appends and delegations fail with ErrNoSpace and leave
// nothing; policies are read all the while; when there is room again the same
// handle goes on with the next seq. Again and again, so that it also happens
// while the file grows and while it doesn't.
func TestCase24_FullDisk(t *testing.T) {
	disk := smallDisk(t, 24<<20)
	dir := filepath.Join(disk, "store")
	r := newPlot(t, dir, plot{Seed: 800, Workers: 1})
	s, err := eventlog.Open(ctx, dir, eventlog.Options{})
	require.NoError(t, err)
	id := r.session(0, 0)
	for round := range scale(4, 40) {
		tally.rounds.Add(1)
		release := ballast(t, disk, 100_000*(round%5))
		head := fill(t, s, id, []int{200, 5000, 60_000}[round%3])
		_, err := materialize.Root(ctx, s, materialize.RootRequest{Label: string(make([]byte, 4000))})
		require.NoError(t, countUnless(err, eventlog.ErrNoSpace))
		before, err := s.Row(id)
		require.NoError(t, err)
		tree := answers(s, []uuid.UUID{id})
		for key, text := range tree {
			require.NotEqual(t, "error", text, key)
		}
		release()
		res, err := s.Append(ctx, eventlog.Batch{Session: id, Expect: eventlog.At(head), Events: []eventlog.NewEvent{{Type: "plugin/note"}}})
		require.NoError(t, count(err), "round %d: there is room again, no restart is needed", round)
		require.Equal(t, before.Head+1, res.LastSeq)
		tally.acked.Add(int64(head))
	}
	require.NoError(t, s.Close())
	require.NoError(t, count(sound(dir)))
}

// TestCase24_FullDiskUnderTheIndex: the index can't be written while the disk
// is full. Appends don't wait for it, nothing is lost, and it catches up.
func TestCase24_FullDiskUnderTheIndex(t *testing.T) {
	disk := smallDisk(t, 32<<20)
	dir := filepath.Join(disk, "store")
	r := newPlot(t, dir, plot{Seed: 801, Workers: 1})
	s, err := eventlog.Open(ctx, dir, eventlog.Options{})
	require.NoError(t, err)
	id := r.session(0, 0)
	appended := uint64(1)
	row, err := s.Row(id)
	require.NoError(t, err)
	appended = row.Head
	release := ballast(t, disk, 300_000)
	for range scale(40, 400) {
		head := fill(t, s, id, 200)
		require.GreaterOrEqual(t, head, appended)
		appended = head
		time.Sleep(20 * time.Millisecond) // past the timer of the index
	}
	release()
	for range 100 {
		if _, err := s.Append(ctx, eventlog.Batch{Session: id, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: "plugin/note"}}}); err != nil {
			require.NoError(t, count(err))
		}
	}
	require.NoError(t, count(s.Close()), "the index is written at the end")
	require.NoError(t, count(reindexed(dir)))
}
