package eventlog

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// grown is a store that was copied at some point and went on: early is the copy.
func grown(t *testing.T) (ts *testStore, early string) {
	ts = newStore(t)
	ts.root(sid(1))
	ts.say(sid(1), numbers(300)...)
	ts.narrow(sid(1))
	require.NoError(t, ts.Close())
	early = aside(ts, "early")
	copyDir(t, ts.dir, early)
	ts.open()
	ts.say(sid(1), numbers(5)...)
	ts.narrow(sid(1))
	require.NoError(t, ts.Close())
	return ts, early
}

// TestRollbackIsFound: an older store.db under the CHECKPOINT of a newer one, in
// every way that it may have come there. It is not written; what is left can be
// read, and no policy of it.
func TestRollbackIsFound(t *testing.T) {
	older := func(t *testing.T, ts *testStore, early string) {
		copyFile(t, filepath.Join(early, journalFile), filepath.Join(ts.dir, journalFile))
	}
	for name, c := range map[string]struct {
		change   func(t *testing.T, ts *testStore, early string)
		evidence string
	}{
		"an older store.db": {func(t *testing.T, ts *testStore, early string) {
			older(t, ts, early)
			copyFile(t, filepath.Join(early, indexFile), filepath.Join(ts.dir, indexFile))
		}, RolledBackSmaller},
		"an older store.db, and no index": {func(t *testing.T, ts *testStore, early string) {
			older(t, ts, early)
			require.NoError(t, removeIndex(ts.dir))
		}, RolledBackSmaller},
		"an older store.db and CHECKPOINT under a newer index": {func(t *testing.T, ts *testStore, early string) {
			ts.open()
			ts.flushIndex()
			require.NoError(t, ts.Close())
			older(t, ts, early)
			copyFile(t, filepath.Join(early, checkpointFile), filepath.Join(ts.dir, checkpointFile))
		}, RolledBackIndex},
		"an older store.db that went on": {func(t *testing.T, ts *testStore, early string) {
			s := useStore(t, early)
			s.say(sid(1), numbers(40)...)
			require.NoError(t, s.Close())
			s.Store = nil
			older(t, ts, early)
			copyFile(t, filepath.Join(early, indexFile), filepath.Join(ts.dir, indexFile))
		}, RolledBackDiffers},
		"the last frame is another one": {func(t *testing.T, ts *testStore, _ string) {
			require.NoError(t, removeIndex(ts.dir))
			changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error {
				b := tx.Bucket(bucketJournal)
				k, v := b.Cursor().Last()
				f, err := decodeFrame(bytes.Clone(v))
				require.NoError(t, err)
				f.prev[0] ^= 1
				return b.Put(bytes.Clone(k), appendFrame(nil, &f))
			})
		}, RolledBackDiffers},
		"no CHECKPOINT": {func(t *testing.T, ts *testStore, _ string) {
			require.NoError(t, os.Remove(filepath.Join(ts.dir, checkpointFile)))
		}, RolledBackMissing},
		"a CHECKPOINT that is none": {func(t *testing.T, ts *testStore, _ string) {
			require.NoError(t, os.WriteFile(filepath.Join(ts.dir, checkpointFile), []byte("childlog\n"), 0o600))
		}, RolledBackBroken},
		"the CHECKPOINT of another store": {func(t *testing.T, ts *testStore, _ string) {
			other := newStore(t)
			copyFile(t, filepath.Join(other.dir, checkpointFile), filepath.Join(ts.dir, checkpointFile))
		}, RolledBackForeign},
		"a CHECKPOINT that was edited": {func(t *testing.T, ts *testStore, _ string) {
			c, err := readCheckpoint(ts.dir)
			require.NoError(t, err)
			c.Size--
			forged := append([]byte(c.body()), c.Note[len(c.body()):]...)
			require.NoError(t, os.WriteFile(filepath.Join(ts.dir, checkpointFile), forged, 0o600))
		}, RolledBackForeign},
	} {
		t.Run(name, func(t *testing.T) {
			ts, early := grown(t)
			c.change(t, ts, early)
			ts.expectDamage()
			before := must(os.ReadFile(filepath.Join(ts.dir, journalFile)))
			_, err := Open(ctx, ts.dir, Options{})
			re := (*RollbackError)(nil)
			require.ErrorAs(t, err, &re)
			require.ErrorIs(t, err, ErrRollback)
			require.Equal(t, c.evidence, re.Evidence)
			_, err = Reindex(ctx, ts.dir, Options{})
			require.ErrorIs(t, err, ErrRollback)
			if c.evidence != RolledBackIndex && name != "the last frame is another one" { // no index is looked at; the chain is broken first
				_, err = Compact(ctx, ts.dir, CompactOptions{})
				require.ErrorIs(t, err, ErrRollback)
			}
			require.True(t, bytes.Equal(before, must(os.ReadFile(filepath.Join(ts.dir, journalFile)))), "store.db changed")

			ts.open(Options{ReadOnly: true})
			require.Equal(t, c.evidence, ts.RolledBack().Evidence)
			_, _, err = ts.Policy(ctx, sid(1), 0)
			require.ErrorIs(t, err, ErrPolicyUnreadable)
			if name != "the last frame is another one" {
				require.ErrorIs(t, err, ErrRollback)
			}
			require.ErrorIs(t, ts.Whole(), ErrRollback)
			events := 0
			err = ts.Replay(ctx, sid(1), true, func(*Event) error { events++; return nil })
			require.NotErrorIs(t, err, ErrRollback)
			require.GreaterOrEqual(t, events, 300)
			report, err := ts.Check(ctx, CheckOptions{})
			require.NoError(t, err)
			require.Contains(t, report.kinds(), re.kind())
			_, err = ts.Backup(ctx, aside(ts, "backup"), BackupOptions{})
			require.ErrorIs(t, err, ErrRollback)

			// It is accepted in so many words, and the log says so.
			require.NoError(t, ts.Close())
			was := ts.Identity()
			accepted, err := AcceptRollback(ctx, ts.dir, AcceptOptions{By: "operator", Reason: "the disk is gone"})
			require.NoError(t, err)
			require.Equal(t, c.evidence, accepted.Was.Evidence)
			require.Greater(t, accepted.Identity.Incarnation, was.Incarnation)
			broken := name == "the last frame is another one" // in its chain too, which stays so
			ts.damaged = broken
			ts.open()
			require.Equal(t, accepted.Identity.Origin(), ts.Identity().Origin())
			require.Equal(t, was.Key, ts.VerifierKey())
			page, err := ts.Read(ctx, StoreSession, ReadOptions{From: accepted.Seq, Contents: true})
			require.NoError(t, err)
			ev := page.Events[0]
			require.Equal(t, TypeStoreRollbackAccepted, ev.Type)
			require.Equal(t, was.Origin(), ev.Facts.Str("origin"))
			require.Equal(t, ts.Identity().Origin(), ev.Facts.Str("new_origin"))
			require.Contains(t, string(ev.Content), "the disk is gone")
			signed, ok := ts.Signed()
			require.True(t, ok)
			require.Equal(t, ts.Identity().Origin(), signed.Origin)
			require.Equal(t, ts.st.durable(), signed.Size)
			if !broken {
				ts.narrow(sid(1))
			}
			require.NoError(t, ts.Close())
			_, err = AcceptRollback(ctx, ts.dir, AcceptOptions{By: "operator"})
			require.ErrorIs(t, err, ErrInvalid, "there is nothing left to accept")
			ts.Store = nil
		})
	}
}

// TestAcceptRollbackCrashes: whatever was done of it when the process dies, the
// store is refused until it was accepted in full, and can be.
func TestAcceptRollbackCrashes(t *testing.T) {
	for name, crash := range map[string]func(t *testing.T, dir string){
		"the event is written": func(t *testing.T, dir string) {
			s, err := Open(ctx, dir, Options{accept: true})
			require.NoError(t, err)
			require.NoError(t, s.logAccepted(ctx, AcceptOptions{By: "operator"}, &Accepted{Identity: s.Identity()}))
			_, err = s.Checkpoint(ctx)
			require.ErrorIs(t, err, ErrNotFound, "nothing is signed under the old origin")
			require.NoError(t, s.Close())
		},
		"CHECKPOINT is replaced": func(t *testing.T, dir string) {
			s, err := Open(ctx, dir, Options{accept: true})
			require.NoError(t, err)
			require.NoError(t, s.logAccepted(ctx, AcceptOptions{By: "operator"}, &Accepted{Identity: s.Identity()}))
			s.opts.incarnation = 99
			_, err = s.changeOrigin(s.Identity())
			require.NoError(t, err)
			require.NoError(t, s.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			ts, early := grown(t)
			copyFile(t, filepath.Join(early, journalFile), filepath.Join(ts.dir, journalFile))
			require.NoError(t, removeIndex(ts.dir))
			crash(t, ts.dir)
			_, err := Open(ctx, ts.dir, Options{})
			require.ErrorIs(t, err, ErrRollback)
			_, err = AcceptRollback(ctx, ts.dir, AcceptOptions{By: "operator"})
			require.NoError(t, err)
			ts.open()
			ts.narrow(sid(1))
		})
	}
}
