package eventlog

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReleasePages: readers and writers go on as if nothing were.
func TestReleasePages(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	var wg sync.WaitGroup
	wg.Add(2)
	go func() {
		defer wg.Done()
		for range 200 {
			ts.ReleasePages()
		}
	}()
	go func() {
		defer wg.Done()
		for range 50 {
			_, err := ts.Read(ctx, id, ReadOptions{Contents: true})
			require.NoError(t, err)
		}
	}()
	for i := range 50 {
		ts.say(id, fmt.Sprint("line ", i))
	}
	wg.Wait()
	n := 0
	require.NoError(t, ts.Replay(ctx, id, true, func(ev *Event) error {
		n++
		return ev.ContentErr
	}))
	require.Greater(t, n, 50)
}
