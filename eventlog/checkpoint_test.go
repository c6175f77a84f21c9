package eventlog

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	signednote "golang.org/x/mod/sumdb/note"
)

// verifier is the store's own key.
func (ts *testStore) verifier() signednote.Verifier { return must(ParseVerifierKey(ts.VerifierKey())) }

// TestStoreSignsItself: at birth, at close if anything is new, and while it is
// written after so many frames.
func TestStoreSignsItself(t *testing.T) {
	ts := newStore(t, Options{signFrames: 50})
	born, err := readCheckpoint(ts.dir)
	require.NoError(t, err)
	require.NoError(t, born.Verify(ts.verifier()))
	require.Zero(t, born.Size)
	ts.root(sid(1))
	require.NoError(t, ts.Close())
	closed, err := readCheckpoint(ts.dir)
	require.NoError(t, err)
	require.Equal(t, uint64(1), closed.Size)

	ts.open(Options{signFrames: 50})
	ts.say(sid(1), numbers(60)...)
	require.Eventually(t, func() bool { c, _ := ts.Signed(); return c.Size >= 50 }, time.Minute, time.Millisecond)
	onDisk, err := readCheckpoint(ts.dir)
	require.NoError(t, err)
	require.GreaterOrEqual(t, onDisk.Size, uint64(50))
	require.NoError(t, ts.Close())

	// Nothing new: nothing is signed again.
	before := must(os.ReadFile(filepath.Join(ts.dir, checkpointFile)))
	ts.open()
	require.NoError(t, ts.Close())
	require.Equal(t, before, must(os.ReadFile(filepath.Join(ts.dir, checkpointFile))))
}

// TestCheckpointSplitsNoUnit, whatever is appended meanwhile, and is a prefix of
// what comes after it.
func TestCheckpointSplitsNoUnit(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(0))
	var wg sync.WaitGroup
	ended := make(chan struct{})
	var signed []Checkpoint
	wg.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			c, err := ts.Checkpoint(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			if len(signed) == 0 || signed[len(signed)-1].Size < c.Size {
				signed = append(signed, c)
			}
		}
	})
	for n := 1; n <= 30; n++ {
		ts.child(sid(0), sid(n), numbers(n)[n-1]) // two frames
	}
	close(ended)
	wg.Wait()
	for _, c := range signed {
		raw := must(ts.frameAt(c.Size - 1))
		f, err := decodeFrame(raw)
		require.NoError(t, err)
		require.Zero(t, f.framesLeft, "size %d", c.Size)
	}
	report, err := ts.Check(ctx, CheckOptions{Against: Against{Checkpoints: signed}})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
	require.Equal(t, signed[len(signed)-1].Size, report.Anchored)
}

func (ts *testStore) frameAt(position uint64) ([]byte, error) {
	return newStage(ts.Store, nil).frame(position)
}

// TestKeyOfAnOlderStore: a store that nothing was ever signed of is read as it
// is, and gets a key and a checkpoint when it is first written.
func TestKeyOfAnOlderStore(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	require.NoError(t, ts.Close())
	unsign(t, ts.dir)
	requireUntouched(t, ts.dir, func() {
		ts.open(Options{ReadOnly: true})
		require.Empty(t, ts.VerifierKey())
		_, ok := ts.Signed()
		require.False(t, ok)
		_, err := ts.Checkpoint(ctx)
		require.ErrorIs(t, err, ErrReadOnly)
		require.Nil(t, ts.RolledBack())
		require.NoError(t, ts.Close())
	})
	ts.open()
	require.NotEmpty(t, ts.VerifierKey())
	require.NoError(t, ts.Close())
	c, err := readCheckpoint(ts.dir)
	require.NoError(t, err)
	require.Equal(t, uint64(1), c.Size)
	fi, err := os.Stat(filepath.Join(ts.dir, keyFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), fi.Mode().Perm())

	// IDENTITY was not written yet when the process died: store.db has the word.
	id := must(readIdentity(ts.dir))
	id.Key = ""
	require.NoError(t, os.Remove(filepath.Join(ts.dir, identityFile)))
	require.NoError(t, nameIdentity(ts.dir, id))
	ts.open(Options{ReadOnly: true})
	require.NotEmpty(t, ts.VerifierKey())
	ts.reopen()
	require.Equal(t, ts.VerifierKey(), must(readIdentity(ts.dir)).Key)
}

func nameIdentity(dir string, id Identity) error {
	if err := os.Remove(filepath.Join(dir, lockFile)); err != nil {
		return err
	}
	return nameStore(dir, id)
}

// TestKeyElsewhere: the key may lie outside, also one for several stores.
func TestKeyElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "signing.key")
	dirs := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	for _, dir := range dirs {
		id, err := InitWith(ctx, dir, InitOptions{KeyFile: path})
		require.NoError(t, err)
		require.NoFileExists(t, filepath.Join(dir, keyFile))
		require.Contains(t, id.Key, keyName(id.Store))
		ts := useStore(t, dir, Options{KeyFile: path})
		ts.root(sid(1))
		c, err := ts.Checkpoint(ctx)
		require.NoError(t, err)
		require.NoError(t, c.Verify(ts.verifier()))
	}
}

// TestKeyThatIsNotThere: a store whose key is missing is written unsigned and
// says so; a key that is not its own is refused.
func TestKeyThatIsNotThere(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	require.NoError(t, ts.Close())
	away := filepath.Join(t.TempDir(), "away")
	require.NoError(t, os.Rename(filepath.Join(ts.dir, keyFile), away))
	ts.open()
	require.Contains(t, ts.Notices(), "the signing key is not here: nothing is signed until it is named")
	ts.say(sid(1), "unsigned")
	_, err := ts.Checkpoint(ctx)
	require.ErrorIs(t, err, ErrNotFound)
	c, ok := ts.Signed()
	require.True(t, ok)
	require.Equal(t, uint64(1), c.Size)
	require.NoError(t, ts.Close())
	_, err = Open(ctx, ts.dir, Options{KeyFile: filepath.Join(t.TempDir(), "nowhere")})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = makeSignKey(filepath.Join(ts.dir, keyFile), ts.Identity().Store)
	require.NoError(t, err)
	_, err = Open(ctx, ts.dir, Options{})
	require.ErrorIs(t, err, ErrUnverified)
	require.NoError(t, os.WriteFile(filepath.Join(ts.dir, keyFile), []byte("PRIVATE+KEY+x"), 0o600))
	_, err = Open(ctx, ts.dir, Options{})
	require.ErrorIs(t, err, ErrInvalid)
	ts.open(Options{KeyFile: away})
	require.NoError(t, ts.Close())
	c, err = readCheckpoint(ts.dir)
	require.NoError(t, err)
	require.Equal(t, uint64(2), c.Size)
	require.NoError(t, os.Remove(filepath.Join(ts.dir, keyFile)))
}

// TestSalvagedStoreSignsItsLoss: what salvage could not save has a leaf that says
// so, under another origin and key; a check calls the store incomplete.
func TestSalvagedStoreSignsItsLoss(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	ts.root(sid(2))
	ts.say(sid(1), "a", "b", "c")
	ts.say(sid(2), "d")
	require.NoError(t, ts.Close())
	ts.expectDamage()
	changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketJournal)
		raw := bytes.Clone(b.Get(positionKey(3)))
		raw[len(raw)-1] ^= 1
		return b.Put(positionKey(3), raw)
	})
	to := aside(ts, "saved")
	_, err := Salvage(ctx, ts.dir, to, SalvageOptions{})
	require.NoError(t, err)
	saved := useStore(t, to)
	saved.expectDamage()
	require.NotEqual(t, ts.Identity().Origin(), saved.Identity().Origin())
	saved.say(sid(2), "on")
	c, err := saved.Checkpoint(ctx)
	require.NoError(t, err)
	leaf, err := saved.LeafAt(3)
	require.NoError(t, err)
	require.Equal(t, lostLeaf(3), leaf)
	require.NoError(t, saved.Close())
	saved.open(Options{ReadOnly: true})
	report, err := saved.Check(ctx, CheckOptions{Against: Against{Checkpoints: []Checkpoint{c}}})
	require.NoError(t, err)
	require.NotEmpty(t, report.Findings)
	require.Equal(t, StatusIncomplete, report.Status(), "%+v", report.Findings)
	require.Equal(t, c.Size, report.Anchored)
}

// TestAStoreThatWasMovedSignsNoOther: the one that was made in its place has a
// checkpoint of its own, and the one that was moved goes on without.
func TestAStoreThatWasMovedSignsNoOther(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	moved := filepath.Join(t.TempDir(), "moved")
	require.NoError(t, os.Rename(ts.dir, moved))
	_, err := Init(ctx, ts.dir)
	require.NoError(t, err)
	other := must(os.ReadFile(filepath.Join(ts.dir, checkpointFile)))
	ts.say(sid(1), numbers(3)...)
	_, err = ts.Checkpoint(ctx)
	require.ErrorIs(t, err, ErrStoreLost)
	require.ErrorIs(t, ts.Close(), ErrStoreLost)
	require.Equal(t, other, must(os.ReadFile(filepath.Join(ts.dir, checkpointFile))))

	ts.dir = moved
	ts.open()
	row, err := ts.Row(sid(1))
	require.NoError(t, err)
	require.Equal(t, uint64(4), row.Head)
}
