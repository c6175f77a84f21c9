package eventlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// TestSalvageIsNoWayAroundARollback: what an open refuses to take for the store
// that was there before, a salvage takes over to be read, and grants nothing of it.
func TestSalvageIsNoWayAroundARollback(t *testing.T) {
	older := func(t *testing.T, ts *testStore, early string) {
		copyFile(t, filepath.Join(early, journalFile), filepath.Join(ts.dir, journalFile))
		require.NoError(t, removeIndex(ts.dir))
	}
	unnamed := func(t *testing.T, dir string) { // a store.db that names the key, an IDENTITY that does not
		id, err := readIdentity(dir)
		require.NoError(t, err)
		path := filepath.Join(dir, identityFile)
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		without := strings.Replace(string(raw), `,"key":"`+id.Key+`"`, "", 1)
		require.NotEqual(t, string(raw), without)
		require.NoError(t, os.WriteFile(path, []byte(without), 0o600))
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, ts *testStore, early string)
		why    string
	}{
		"an older store.db": {older, "CHECKPOINT was signed over"},
		"an older store.db, and IDENTITY names no key": {func(t *testing.T, ts *testStore, early string) {
			older(t, ts, early)
			unnamed(t, ts.dir)
		}, "CHECKPOINT was signed over"},
		"an older store.db that went on": {func(t *testing.T, ts *testStore, early string) {
			s := useStore(t, early)
			s.say(sid(1), numbers(40)...)
			require.NoError(t, s.Close())
			s.Store = nil
			older(t, ts, early)
		}, "are not those that CHECKPOINT was signed over"},
		"no CHECKPOINT": {func(t *testing.T, ts *testStore, _ string) {
			require.NoError(t, os.Remove(filepath.Join(ts.dir, checkpointFile)))
		}, "CHECKPOINT is gone"},
		"a CHECKPOINT that is none": {func(t *testing.T, ts *testStore, _ string) {
			require.NoError(t, os.WriteFile(filepath.Join(ts.dir, checkpointFile), []byte("childlog\n"), 0o600))
		}, "CHECKPOINT can't be read"},
		"the identity is gone as well": {func(t *testing.T, ts *testStore, early string) {
			older(t, ts, early)
			require.NoError(t, os.Remove(filepath.Join(ts.dir, identityFile)))
			changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyIdentity, []byte("{}")) })
		}, "CHECKPOINT was signed over"},
	} {
		t.Run(name, func(t *testing.T) {
			ts, early := grown(t)
			c.change(t, ts, early)
			rep, to := salvaged(t, ts.dir, SalvageOptions{})
			require.False(t, rep.Complete)
			require.Contains(t, rep.TailDoubt, c.why)
			s, err := Open(ctx, to, Options{ReadOnly: true})
			require.NoError(t, err)
			_, _, err = s.Policy(ctx, sid(1), 0)
			require.ErrorIs(t, err, ErrPolicyUnreadable)
			require.NoError(t, s.Close())
			_, err = Open(ctx, to, Options{})
			require.ErrorIs(t, err, ErrCorrupt)
			ts.expectDamage()
			ts.Store = nil
		})
	}
	t.Run("none of it", func(t *testing.T) {
		ts, _ := grown(t)
		rep, to := salvaged(t, ts.dir, SalvageOptions{})
		require.True(t, rep.Complete, "%+v", rep)
		require.Empty(t, rep.TailDoubt)
		requireSound(t, to)
	})
}
