package eventlog

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestCase34_OnAReadOnlyMount: the same where not even the superuser may write.
func TestCase34_OnAReadOnlyMount(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	ts.say(sid(1), numbers(70)...)
	ts.flushIndex()
	signed := must(ts.Checkpoint(ctx))
	require.NoError(t, ts.Close())
	mount := filepath.Join(t.TempDir(), "mount")
	require.NoError(t, os.Mkdir(mount, 0o700))
	if err := unix.Mount(ts.dir, mount, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("no mount can be made here, so only modes were tried: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(mount, unix.MNT_DETACH)) })
	if err := unix.Mount("", mount, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("no read-only mount can be made here, so only modes were tried: %v", err)
	}
	require.ErrorIs(t, os.WriteFile(filepath.Join(mount, "x"), nil, 0o600), unix.EROFS)
	requireUntouched(t, ts.dir, func() {
		s, err := Open(ctx, mount, Options{ReadOnly: true})
		require.NoError(t, err)
		defer s.Close()
		report, err := s.Check(ctx, CheckOptions{Against: Against{Checkpoints: []Checkpoint{signed}}})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
		require.Equal(t, report.Positions, report.Anchored)
		_, _, err = s.Policy(ctx, sid(1), 0)
		require.NoError(t, err)
		p, err := s.Prove(ctx, sid(1), 5, ProveOptions{Content: true})
		require.NoError(t, err)
		_, err = p.Verify(must(ParseVerifierKey(s.VerifierKey())))
		require.NoError(t, err)
		_, err = s.Backup(ctx, filepath.Join(t.TempDir(), "backup"), BackupOptions{})
		require.NoError(t, err)
		_, err = Open(ctx, mount, Options{})
		require.Error(t, err)
	})
}
