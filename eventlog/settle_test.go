package eventlog

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// TestLastKeyFarAway: a flipped bit makes the last position any number. A reader
// does not look for frames up to it, which would take for ever; it says what is
// wrong, and gives no policy.
func TestLastKeyFarAway(t *testing.T) {
	ts := narrowedLast(t)
	ts.expectDamage()
	require.NoError(t, ts.Close())
	changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketJournal)
		raw := append([]byte(nil), b.Get(positionKey(6))...)
		require.NoError(t, b.Delete(positionKey(6)))
		return b.Put(positionKey(6|1<<62), raw)
	})
	ts.requireNoPolicy(t)
	ts.Store = nil
}
