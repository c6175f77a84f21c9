package eventlog

import (
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// TestMetaLockIsBbolts: another version of bbolt may call its lock otherwise.
func TestMetaLockIsBbolts(t *testing.T) {
	field, ok := reflect.TypeFor[bolt.DB]().FieldByName("metalock")
	require.True(t, ok)
	require.Equal(t, reflect.TypeFor[sync.Mutex](), field.Type)
	ts := newStore(t)
	lock := metaLock(ts.journal.db)
	require.True(t, lock.TryLock(), "nobody holds it between transactions")
	lock.Unlock()
}
