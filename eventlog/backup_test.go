package eventlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// aside is a directory beside a store that does not exist yet.
func aside(ts *testStore, name string) string { return filepath.Join(filepath.Dir(ts.dir), name) }

func (ts *testStore) backup(name string) (string, BackedUp) {
	dir := aside(ts, name)
	out, err := ts.Backup(ctx, dir, BackupOptions{})
	require.NoError(ts.t, err)
	return dir, out
}

// sameRecords requires that a copy holds the same frames, tombstones and
// contents; meta differs by the identity.
func sameRecords(t require.TestingT, want, got map[string]string) {
	for _, m := range []map[string]string{want, got} {
		for k := range m {
			if strings.HasPrefix(k, "meta ") {
				delete(m, k)
			}
		}
	}
	require.Equal(t, want, got)
}

// TestBackupAndRestore: the whole way. What comes back is the same logs with
// the same hashes under a new incarnation, and it goes on.
func TestBackupAndRestore(t *testing.T) {
	ts := variedStore(t)
	running := ts.child(sid(0), sid(60), "running")
	ts.activate(running, 1)
	described := describe(t, ts)
	backup, made := ts.backup("backup")
	require.Equal(t, backup, made.Path)
	boot := ts.Boot()
	require.NoError(t, ts.Close())
	report := requireSound(t, ts.dir)
	require.Equal(t, report.Totals, made.Totals)
	require.Equal(t, report.Contents, made.Contents)
	sameRecords(t, contentsOf(t, ts.dir), contentsOf(t, backup))

	// A backup is a store that is read and never written.
	require.Equal(t, []string{checkpointFile, identityFile, lockFile, journalFile}, filesOf(t, backup))
	for name, mode := range map[string]os.FileMode{"": os.ModeDir | 0o700, identityFile: 0o600, lockFile: 0o600, journalFile: 0o600} {
		fi, err := os.Stat(filepath.Join(backup, name))
		require.NoError(t, err)
		require.Equal(t, mode, fi.Mode(), name)
	}
	requireUntouched(t, backup, func() {
		requireSound(t, backup)
		s, err := Open(ctx, backup, Options{ReadOnly: true})
		require.NoError(t, err)
		require.True(t, s.Identity().Backup)
		require.Equal(t, ts.Identity().Incarnation, s.Identity().Incarnation)
		require.Equal(t, described, describe(t, &testStore{Store: s, t: t}))
		require.NoError(t, s.Close())
		for _, write := range []func() error{
			func() error { _, err := Open(ctx, backup, Options{}); return err },
			func() error { _, err := Compact(ctx, backup, CompactOptions{}); return err },
			func() error { _, err := Reindex(ctx, backup, Options{}); return err },
		} {
			var be *BackupError
			err := write()
			require.ErrorAs(t, err, &be)
			require.ErrorIs(t, err, ErrReadOnly)
			require.Equal(t, ts.Identity().Store, be.Store)
		}
	})

	var restored [2]Restored
	for i := range restored {
		dir := aside(ts, fmt.Sprint("restored", i))
		requireUntouched(t, backup, func() {
			var err error
			restored[i], err = Restore(ctx, backup, dir, RestoreOptions{})
			require.NoError(t, err)
		})
		require.Equal(t, []string{checkpointFile, identityFile, keyFile, lockFile, indexFile, journalFile}, filesOf(t, dir))
		r := useStore(t, dir)
		require.Empty(t, r.Notices())
		require.Equal(t, restored[i].Identity, r.Identity())
		require.Equal(t, made.Identity, restored[i].From)
		require.Equal(t, ts.Identity().Store, r.Identity().Store)
		require.Greater(t, r.Identity().Incarnation, ts.Identity().Incarnation)
		require.False(t, r.Identity().Backup)
		require.Equal(t, described, describe(t, r), "all hashes are what they were")
		row, err := r.Row(running)
		require.NoError(t, err)
		require.Equal(t, boot, row.Boot)
		require.Equal(t, StatusInterrupted, row.Status(r.Boot()))
		r.activate(running, 2)
		r.narrow(running)
		r.say(sid(50), "it goes on")
	}
	require.NotEqual(t, restored[0].Identity.Incarnation, restored[1].Identity.Incarnation, "each goes on by itself")
}

// TestBackupWhileWriting: a backup made while 8 goroutines append is the prefix
// that was durable when it began: every log a prefix of the store's, nothing of
// what was acknowledged before missing, no unit split.
func TestBackupWhileWriting(t *testing.T) {
	ts := newStore(t)
	const writers = 8
	for i := range writers {
		ts.root(sid(i))
	}
	ts.say(sid(0), numbers(3*copyPageFrames)...)
	var stop atomic.Bool
	var acked [writers]atomic.Uint64
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				res, err := ts.Append(ctx, Batch{Session: sid(i), Expect: Any(), Events: []NewEvent{text("one"), octets(noise(uint64(n), 2000))}})
				if err != nil {
					t.Error(err)
					return
				}
				acked[i].Store(res.LastSeq)
				if n%5 == 0 { // a unit of four frames over two sessions
					child := uuid.New()
					if _, err := ts.Transact(ctx, EntryDelegation, func(v *View) ([]Batch, error) {
						row, err := v.Row(sid(i))
						return childBatches(&row, child, child.String()), err
					}); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	var backups []string
	for round := range rounds {
		for range 20 { // of appends between two backups
			time.Sleep(time.Millisecond)
		}
		var floor [writers]uint64
		for i := range acked {
			floor[i] = acked[i].Load()
		}
		dir, _ := ts.backup(fmt.Sprint("backup", round))
		backups = append(backups, dir)
		report := requireSound(t, dir) // whole units among it
		s, err := Open(ctx, dir, Options{ReadOnly: true})
		require.NoError(t, err)
		require.EqualValues(t, report.Frames, s.st.durable())
		for i := range floor {
			row, err := s.Row(sid(i))
			require.NoError(t, err)
			require.GreaterOrEqual(t, row.Head, floor[i], "an acknowledged event is not in the backup")
		}
		require.NoError(t, s.Close())
	}
	stop.Store(true)
	wg.Wait()
	require.NoError(t, ts.Close())
	whole := contentsOf(t, ts.dir)
	for _, dir := range backups {
		for k, v := range contentsOf(t, dir) {
			if strings.HasPrefix(k, "journal ") && k != "journal sequence" || strings.HasPrefix(k, "contents ") && k != "contents sequence" {
				require.True(t, whole[k] == v, k)
			}
		}
	}
}

// TestBackupHasNoDeletedBytes: neither of what was erased before, nor of what
// is erased while it runs and it did not come to yet.
func TestBackupHasNoDeletedBytes(t *testing.T) {
	ts, secrets := markedStore(t)
	ts.open(Options{ReadOnly: true})
	backup, made := ts.backup("backup")
	for _, s := range secrets {
		require.Empty(t, held(t, backup, s))
	}
	require.EqualValues(t, 1, made.Erased)
	require.EqualValues(t, 1, made.Tombstones)
	require.NoError(t, ts.Close())
	_, err := Restore(ctx, backup, aside(ts, "restored"), RestoreOptions{})
	require.NoError(t, err, "what was erased is no damage")
	was, is := checkStore(t, ts.dir), checkStore(t, aside(ts, "restored"))
	require.NotEqual(t, was.Signed.Origin, is.Signed.Origin)
	was.Signed, is.Signed = nil, nil
	require.Equal(t, was, is)
}

func TestBackupOfWhatIsErasedMeanwhile(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	ts.say(sid(1), numbers(2*copyPageFrames)...)
	ts.say(sid(1), "a late secret 99123")
	ts.expectDamage()
	late := ts.st.durable() - 1
	var once sync.Once
	out, err := ts.Backup(ctx, aside(ts, "backup"), BackupOptions{at: func(step string) (err error) {
		if step == "page" {
			once.Do(func() {
				_, err = ts.journal.write(func(tx *bolt.Tx) error { return tx.Bucket(bucketContents).Delete(contentKey(late, 0, 0)) })
			})
		}
		return err
	}})
	require.NoError(t, err)
	require.EqualValues(t, 1, out.Erased)
	require.Empty(t, held(t, aside(ts, "backup"), "late secret"))
}

// TestBackupRefusesDamage, and so does a restore of a backup that was damaged
// since; neither leaves anything.
func TestBackupRefusesDamage(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			ts := damagedStore(t, damage)
			s, err := Open(ctx, ts.dir, Options{ReadOnly: true})
			if err == nil { // else it can't be opened at all
				_, err = s.Backup(ctx, aside(ts, "backup"), BackupOptions{})
				require.NoError(t, s.Close())
			}
			require.ErrorIs(t, err, ErrCorrupt)
			require.Equal(t, []string{"store"}, filesOf(t, filepath.Dir(ts.dir)))
		})
		t.Run(name+" since", func(t *testing.T) {
			ts := damagedStore(t, func(*testing.T, string) {})
			ts.open()
			backup, _ := ts.backup("backup")
			require.NoError(t, ts.Close())
			damage(t, filepath.Join(backup, journalFile))
			_, err := Restore(ctx, backup, aside(ts, "restored"), RestoreOptions{})
			require.ErrorIs(t, err, ErrCorrupt)
			require.Equal(t, []string{"backup", "store"}, filesOf(t, filepath.Dir(ts.dir)))
		})
	}
}

// TestBackupGoesNowhereElse: nothing is overwritten, nothing lands inside the
// store, and a closed store makes no backup.
func TestBackupGoesNowhereElse(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	full := aside(ts, "full")
	require.NoError(t, os.MkdirAll(full, 0o700))
	_, err := ts.Backup(ctx, full, BackupOptions{})
	require.NoError(t, err, "an empty directory is taken")
	require.NoError(t, os.WriteFile(aside(ts, "file"), []byte("x"), 0o600))
	require.NoError(t, os.Symlink(ts.dir, aside(ts, "link")))
	for dir, want := range map[string]error{
		full:                           ErrExists,
		aside(ts, "file"):              ErrExists,
		ts.dir:                         ErrInvalid,
		filepath.Join(ts.dir, "b"):     ErrInvalid,
		aside(ts, "link/below/backup"): ErrInvalid,
	} {
		requireUntouched(t, ts.dir, func() {
			_, err := ts.Backup(ctx, dir, BackupOptions{})
			require.ErrorIs(t, err, want, dir)
		})
	}
	for dir, want := range map[string]error{full: ErrExists, ts.dir: ErrExists, aside(ts, "file"): ErrExists} {
		requireUntouched(t, ts.dir, func() {
			_, err := Restore(ctx, full, dir, RestoreOptions{})
			require.ErrorIs(t, err, want, dir)
		})
	}
	_, err = Restore(ctx, ts.dir, aside(ts, "new"), RestoreOptions{})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "is a store and no backup")
	_, err = Restore(ctx, aside(ts, "none"), aside(ts, "new"), RestoreOptions{})
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, "no backup at")
	require.NoError(t, ts.Close())
	_, err = ts.Backup(ctx, aside(ts, "late"), BackupOptions{})
	require.ErrorIs(t, err, ErrStoreClosed)
}

// TestBackupMark: the mark stands in both places, so that taking it from one
// makes no store of a backup.
func TestBackupMark(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	backup, _ := ts.backup("backup")
	copyFile(t, filepath.Join(ts.dir, identityFile), filepath.Join(backup, identityFile))
	for _, opts := range []Options{{}, {ReadOnly: true}} {
		_, err := Open(ctx, backup, opts)
		require.ErrorIs(t, err, ErrCorrupt)
		require.ErrorContains(t, err, "a backup: true")
	}
}

func TestBackupNeedsRoom(t *testing.T) {
	ts := variedStore(t)
	backup, _ := ts.backup("backup")
	room(t, 1<<20)
	for name, err := range map[string]error{
		"backup":  second(ts.Backup(ctx, aside(ts, "other"), BackupOptions{})),
		"restore": second(Restore(ctx, backup, aside(ts, "other"), RestoreOptions{})),
	} {
		var ns *NoSpaceError
		require.ErrorAs(t, err, &ns, name)
		require.EqualValues(t, 1<<20, ns.Free)
		require.Equal(t, []string{"backup", "store"}, filesOf(t, filepath.Dir(ts.dir)))
	}
}

func second[T any](_ T, err error) error { return err }

func init() {
	crash := func(step string) error {
		if step == os.Getenv("STEP") {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			time.Sleep(time.Minute)
		}
		return nil
	}
	roles["backup-crash"] = func() {
		s, err := Open(ctx, os.Getenv("STORE"), Options{ReadOnly: true})
		exitOn(err)
		_, err = s.Backup(ctx, os.Getenv("TO"), BackupOptions{at: crash})
		fmt.Println("not killed:", err)
	}
	roles["restore-crash"] = func() {
		_, err := Restore(ctx, os.Getenv("STORE"), os.Getenv("TO"), RestoreOptions{at: crash})
		fmt.Println("not killed:", err)
	}
}

// TestBackupAndRestoreFailAtEachStep: at the final name there is the whole or
// nothing; the source is not touched; a second attempt goes through.
func TestBackupAndRestoreFailAtEachStep(t *testing.T) {
	all := []string{"created", "page", "synced", "compared", "built", "renamed"}
	whole := steppedStore(t)
	source, _ := whole.backup("backup")
	require.NoError(t, whole.Close())
	want := contentsOf(t, whole.dir)
	for role, run := range map[string]func(ctx context.Context, to string, at steps) error{
		"backup": func(ctx context.Context, to string, at steps) error {
			s, err := Open(ctx, whole.dir, Options{ReadOnly: true})
			require.NoError(t, err)
			defer s.Close()
			return second(s.Backup(ctx, to, BackupOptions{at: at}))
		},
		"restore": func(ctx context.Context, to string, at steps) error {
			return second(Restore(ctx, source, to, RestoreOptions{at: at}))
		},
	} {
		from := map[string]string{"backup": whole.dir, "restore": source}[role]
		t.Run(role+" steps", func(t *testing.T) {
			var seen []string
			require.NoError(t, run(ctx, filepath.Join(t.TempDir(), "to"), func(step string) error {
				if len(seen) == 0 || seen[len(seen)-1] != step {
					seen = append(seen, step)
				}
				return nil
			}))
			require.Equal(t, all, seen)
		})
		for _, step := range all {
			for _, killed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s killed=%t", role, step, killed), func(t *testing.T) {
					parent := t.TempDir()
					to := filepath.Join(parent, "to")
					requireUntouched(t, from, func() {
						if killed {
							h := startHelper(t, role+"-crash", "STORE="+from, "TO="+to, "STEP="+step)
							require.Empty(t, h.line())
							return
						}
						failed := errors.New("failed here")
						require.ErrorIs(t, run(ctx, to, func(s string) error {
							if s == step {
								return failed
							}
							return nil
						}), failed)
					})
					left := filesOf(t, parent)
					if step == "renamed" {
						require.Equal(t, []string{"to"}, left)
					} else {
						require.NotContains(t, left, "to")
						require.Equal(t, killed, len(left) == 1, "%v", left)
						require.NoError(t, run(ctx, to, nil))
					}
					requireSound(t, to)
					sameRecords(t, want, contentsOf(t, to))
				})
			}
		}
		t.Run(role+" cancelled", func(t *testing.T) {
			parent := t.TempDir()
			short, cancel := context.WithCancel(ctx)
			defer cancel()
			require.ErrorIs(t, run(short, filepath.Join(parent, "to"), func(step string) error {
				if step == "page" {
					cancel()
				}
				return nil
			}), context.Canceled)
			require.Empty(t, filesOf(t, parent))
		})
	}
}

// TestBackupHoldsNoTransaction: a writer frees pages while a backup stands
// still between two of its own.
func TestBackupHoldsNoTransaction(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	ts.say(sid(1), numbers(2*copyPageFrames)...)
	_, err := ts.Backup(ctx, aside(ts, "backup"), BackupOptions{at: func(step string) error {
		if step == "page" {
			require.Zero(t, ts.journal.db.Stats().OpenTxN)
			ts.say(sid(1), "meanwhile")
		}
		return nil
	}})
	require.NoError(t, err)
}
