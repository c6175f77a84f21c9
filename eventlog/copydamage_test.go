package eventlog

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// damages are ways in which a journal can be wrong, some of which no checksum
// shows. A copy carries none of them on.
var damages = map[string]func(t *testing.T, path string){
	"a frame is gone": func(t *testing.T, path string) {
		changeDB(t, path, func(tx *bolt.Tx) error { return tx.Bucket(bucketJournal).Delete(positionKey(3)) })
	},
	"a frame of another session": func(t *testing.T, path string) {
		changeDB(t, path, func(tx *bolt.Tx) error {
			b := tx.Bucket(bucketJournal)
			return b.Put(positionKey(3), bytes.Clone(b.Get(positionKey(2))))
		})
	},
	"a frame and a tombstone": func(t *testing.T, path string) {
		changeDB(t, path, func(tx *bolt.Tx) error {
			return tx.Bucket(bucketTombstones).Put(positionKey(3), make([]byte, 32))
		})
	},
	"a chunk is gone": func(t *testing.T, path string) {
		changeDB(t, path, func(tx *bolt.Tx) error { return tx.Bucket(bucketContents).Delete(contentKey(5, 0, 1)) })
	},
	"the first chunk is gone": func(t *testing.T, path string) {
		changeDB(t, path, func(tx *bolt.Tx) error { return tx.Bucket(bucketContents).Delete(contentKey(5, 0, 0)) })
	},
	"a content of another event": func(t *testing.T, path string) {
		changeDB(t, path, func(tx *bolt.Tx) error {
			b := tx.Bucket(bucketContents)
			return b.Put(contentKey(2, 0, 0), bytes.Clone(b.Get(contentKey(3, 0, 0))))
		})
	},
	"a content of no event": func(t *testing.T, path string) {
		changeDB(t, path, func(tx *bolt.Tx) error { return tx.Bucket(bucketContents).Put(contentKey(3, 7, 0), []byte("x")) })
	},
	"a content of no frame": func(t *testing.T, path string) {
		changeDB(t, path, func(tx *bolt.Tx) error { return tx.Bucket(bucketContents).Put(contentKey(900, 0, 0), []byte("x")) })
	},
	"a key that is no content": func(t *testing.T, path string) {
		changeDB(t, path, func(tx *bolt.Tx) error { return tx.Bucket(bucketContents).Put([]byte{0}, []byte("x")) })
	},
	"a key that is no position": func(t *testing.T, path string) {
		changeDB(t, path, func(tx *bolt.Tx) error { return tx.Bucket(bucketJournal).Put(contentKey(3, 0, 0), []byte("x")) })
	},
	"another sequence": func(t *testing.T, path string) {
		changeDB(t, path, func(tx *bolt.Tx) error { return tx.Bucket(bucketJournal).SetSequence(4) })
	},
	"a unit is not whole": func(t *testing.T, path string) {
		changeDB(t, path, func(tx *bolt.Tx) error {
			b := tx.Bucket(bucketJournal)
			k, _ := b.Cursor().Last()
			if err := b.SetSequence(b.Sequence() - 1); err != nil {
				return err
			}
			return b.Delete(k)
		})
	},
	"one meta page is invalid": func(t *testing.T, path string) { flipFile(t, path, 16+56) },
	"another store's identity": func(t *testing.T, path string) {
		changeDB(t, path, func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyIdentity, []byte(`{"format":1}`)) })
	},
}

// damagedStore has the damage, and ends in a unit of several frames.
func damagedStore(t *testing.T, damage func(*testing.T, string)) *testStore {
	ts := newStore(t)
	ts.root(sid(1))
	ts.say(sid(1), numbers(4)...)
	_, err := ts.Append(ctx, Batch{Session: sid(1), Expect: Any(), Events: []NewEvent{octets(noise(1, 3*chunkSize))}})
	require.NoError(t, err)
	ts.child(sid(1), sid(2), "c")
	ts.expectDamage()
	require.NoError(t, ts.Close())
	require.NoError(t, removeIndex(ts.dir))
	unsign(t, ts.dir) // what is found is found without a signature
	damage(t, filepath.Join(ts.dir, journalFile))
	return ts
}

func TestCompactRefusesDamage(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			ts := damagedStore(t, damage)
			requireUntouched(t, filepath.Join(ts.dir, journalFile), func() {
				_, err := Compact(ctx, ts.dir, CompactOptions{})
				require.ErrorIs(t, err, ErrCorrupt)
			})
			require.Equal(t, []string{identityFile, lockFile, journalFile}, filesOf(t, ts.dir))
		})
	}
}

// TestCopiesReadEveryPage: a leaf that lost a count hides what no checksum
// misses; a copy would drop it for good.
func TestCopiesReadEveryPage(t *testing.T) {
	ts := variedStore(t)
	ts.expectDamage()
	require.NoError(t, ts.Close())
	path := filepath.Join(ts.dir, journalFile)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	tried := 0
	for at := 2 * journalPageSize; at+journalPageSize <= len(raw) && tried < 20; at += journalPageSize {
		if raw[at+8] != 2 || raw[at+9] != 0 || raw[at+10] < 3 || raw[at] != byte(at/journalPageSize) {
			continue // no leaf, or a page that is free or goes on from another
		}
		changed := bytes.Clone(raw)
		changed[at+10]--
		require.NoError(t, os.WriteFile(path, changed, 0o600))
		if inspected, err := inspectFile(ctx, path); err != nil || inspected.OK() {
			continue // a page that is not in use
		}
		tried++
		_, err := Compact(ctx, ts.dir, CompactOptions{})
		require.ErrorIs(t, err, ErrCorrupt)
		require.ErrorContains(t, err, "count-mismatch")
		if s, err := Open(ctx, ts.dir, Options{ReadOnly: true}); err == nil {
			_, err = s.Backup(ctx, aside(ts, "backup"), BackupOptions{})
			require.ErrorIs(t, err, ErrCorrupt)
			require.NoError(t, s.Close())
		}
	}
	require.NotZero(t, tried)
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	backup := aside(ts, "backup")
	ts.open(Options{ReadOnly: true})
	_, err = ts.Backup(ctx, backup, BackupOptions{})
	require.NoError(t, err)
	hidden := filepath.Join(backup, journalFile)
	raw, err = os.ReadFile(hidden)
	require.NoError(t, err)
	for at := 2 * journalPageSize; at+journalPageSize <= len(raw); at += journalPageSize {
		if raw[at+8] == 2 && raw[at+9] == 0 && raw[at+10] >= 3 && raw[at] == byte(at/journalPageSize) {
			raw[at+10]--
		}
	}
	require.NoError(t, os.WriteFile(hidden, raw, 0o600))
	_, err = Restore(ctx, backup, aside(ts, "restored"), RestoreOptions{})
	require.ErrorIs(t, err, ErrCorrupt)
}
