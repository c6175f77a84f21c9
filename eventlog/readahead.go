package eventlog

import (
	"os"
	"reflect"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
)

// Windows of the read-ahead, bytes of the file.
const (
	aheadFirst = 128 << 10
	aheadMost  = 4 << 20
	aheadLost  = 32 // values elsewhere, one after the other, until a stream is taken for moved
)

// readAhead asks the system for the pages that a scan is about to need. bbolt
// maps its file for random access, so that on a cold file every page is waited
// for by itself. What a scan reads in order lies mostly in order in the file,
// since the journal only grows: the window goes along behind the highest place
// that was seen and doubles while that holds. It costs page cache and no
// memory of the process. It may be shared by workers; nil reads nothing ahead.
type readAhead struct {
	f           *os.File
	low, middle atomic.Int64 // a value in between needs nothing

	mu    sync.Mutex
	end   int64 // what was asked for ends here
	size  int64
	other int // values in a row outside of the window
}

func (j *journal) readAhead() *readAhead { return &readAhead{f: j.file} }

// note tells where the scan is: value lies in the map of the transaction's
// file.
func (a *readAhead) note(tx *bolt.Tx, value []byte) {
	if a == nil || len(value) == 0 {
		return
	}
	at := int64(reflect.ValueOf(value).Pointer() - tx.DB().Info().Data)
	if at >= a.low.Load() && at < a.middle.Load() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.size == 0 || a.other >= aheadLost:
		a.end, a.size = at, aheadFirst
	case at < a.low.Load() || at > a.end+a.size:
		a.other++
		return
	case at < a.middle.Load():
		return // another worker was here
	default:
		a.size = min(2*a.size, aheadMost)
	}
	a.other = 0
	until := at + a.size
	for from := max(a.end, at); from < until; from += aheadFirst {
		adviseWillNeed(a.f, from, min(aheadFirst, until-from))
	}
	a.end = until
	a.low.Store(max(0, at-a.size))
	a.middle.Store(at + a.size/2)
}
