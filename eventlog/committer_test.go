package eventlog

import (
	"fmt"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// slowWrites holds the first write of the journal until it is released, and
// then fails it with errno, 0 for not at all.
type slowWrites struct {
	begun, release chan struct{}
	once           sync.Once
}

func holdWrites(ts *testStore, errno syscall.Errno) *slowWrites {
	w := &slowWrites{begun: make(chan struct{}), release: make(chan struct{})}
	hookWrites(ts.journal.db, func(_ int64, write func() (int, error)) (int, error) {
		first := false
		w.once.Do(func() { first = true })
		if !first {
			return write()
		}
		close(w.begun)
		<-w.release
		if errno != 0 {
			return 0, errno
		}
		return write()
	})
	return w
}

// staged waits until the committer has staged everything that was queued: it
// runs plans one after the other.
func (ts *testStore) staged() {
	ran := make(chan struct{})
	ts.async(EntryCreate, func(*View) ([]Batch, error) { close(ran); return nil, nil })
	<-ran
}

func (ts *testStore) queueAppend(b Batch) *Pending {
	p, err := ts.AppendAsync(ctx, b)
	require.NoError(ts.t, err)
	return p
}

// TestStagedOnAGroupInFlight: while one group is being synced the next one is
// staged on top of it, and sees its events, its ids and its contents.
func TestStagedOnAGroupInFlight(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	w := holdWrites(ts, 0)
	var first *Pending
	ts.group(func() {
		first = ts.queueAppend(Batch{Session: id, Expect: At(1), Events: []NewEvent{named(eid(1), "x")}})
	})
	<-w.begun
	next := ts.queueAppend(Batch{Session: id, Expect: At(2), Events: []NewEvent{text("y")}})
	retry := ts.queueAppend(Batch{Session: id, Expect: Any(), Events: []NewEvent{named(eid(1), "x")}})
	placed := ts.queueAppend(Batch{Session: id, Expect: At(1), Events: []NewEvent{named(eid(1), "x")}})
	other := ts.queueAppend(Batch{Session: id, Expect: Any(), Events: []NewEvent{named(eid(1), "z")}})
	conflict := ts.queueAppend(Batch{Session: id, Expect: At(1), Events: []NewEvent{text("z")}})
	var seen []string
	child := ts.async(EntryDelegation, func(v *View) ([]Batch, error) {
		for seq := uint64(2); seq <= 3; seq++ {
			ev, err := v.Event(id, seq)
			if err != nil {
				return nil, err
			}
			seen = append(seen, string(ev.Content))
		}
		row, err := v.Row(id)
		if err != nil {
			return nil, err
		}
		if _, err := v.Policy(id); err != nil {
			return nil, err
		}
		return childBatches(&row, sid(2), "key"), nil
	})
	ts.staged()
	row, err := ts.Row(id)
	require.NoError(t, err)
	require.Equal(t, uint64(1), row.Head, "nobody else sees what is not durable")
	close(w.release)

	for want, p := range map[uint64]*Pending{2: first, 3: next} {
		res, err := p.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, want, res.LastSeq)
		require.False(t, res.Replayed)
	}
	for _, p := range []*Pending{retry, placed} {
		res, err := p.Wait(ctx)
		require.NoError(t, err)
		require.True(t, res.Replayed)
		require.Equal(t, uint64(2), res.LastSeq)
	}
	_, err = other.Wait(ctx)
	require.ErrorIs(t, err, ErrDuplicate)
	_, err = conflict.Wait(ctx)
	require.ErrorIs(t, err, ErrConflict)
	_, err = child()
	require.NoError(t, err)
	require.Equal(t, []string{"x", "y"}, seen)
}

// TestStagedOnAFailedGroup: what was staged on a group that did not get
// through rested on nothing, refusals included, and is staged anew.
func TestStagedOnAFailedGroup(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	w := holdWrites(ts, syscall.ENOSPC)
	var lost *Pending
	ts.group(func() {
		lost = ts.queueAppend(Batch{Session: id, Expect: At(1), Events: []NewEvent{named(eid(1), "lost")}})
	})
	<-w.begun
	behind := ts.queueAppend(Batch{Session: id, Expect: At(2), Events: []NewEvent{text("behind it")}})
	instead := ts.queueAppend(Batch{Session: id, Expect: At(1), Events: []NewEvent{text("instead")}})
	again := ts.queueAppend(Batch{Session: id, Expect: Any(), Events: []NewEvent{named(eid(1), "lost")}})
	ts.staged()
	close(w.release)

	_, err := lost.Wait(ctx)
	require.ErrorIs(t, err, ErrNoSpace)
	_, err = behind.Wait(ctx)
	require.ErrorIs(t, err, ErrConflict, "what it counted on is not there")
	for want, p := range map[uint64]*Pending{2: instead, 3: again} {
		res, err := p.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, want, res.LastSeq)
		require.False(t, res.Replayed)
	}
	require.Equal(t, []string{"instead", "lost"}, ts.texts(id, 2))
}

// TestStagedOnABrokenGroup: after a failure that ends writing, what was staged
// above is refused, with the outcome known: nothing of it was written.
func TestStagedOnABrokenGroup(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	w := holdWrites(ts, syscall.EIO)
	var lost *Pending
	ts.group(func() {
		lost = ts.queueAppend(Batch{Session: id, Expect: At(1), Events: []NewEvent{text("lost")}})
	})
	<-w.begun
	behind := ts.queueAppend(Batch{Session: id, Expect: Any(), Events: []NewEvent{named(eid(1), "behind it")}})
	ts.staged()
	close(w.release)
	_, err := lost.Wait(ctx)
	require.ErrorIs(t, err, syscall.EIO)
	_, err = behind.Wait(ctx)
	require.ErrorIs(t, err, ErrReadOnly)
	require.NotErrorIs(t, err, ErrOutcomeUnknown)
	ts.reopen()
	res, err := ts.Append(ctx, Batch{Session: id, Expect: At(1), Events: []NewEvent{named(eid(1), "behind it")}})
	require.NoError(t, err)
	require.False(t, res.Replayed)
}

// TestCommitBudget holds what a commit costs: one transaction for a group,
// however many sessions are in it, and bytes that grow with the events and not
// with the store.
func TestCommitBudget(t *testing.T) {
	ts := newStore(t)
	for i := range 64 {
		ts.root(sid(i))
	}
	commits, pages := 0, 0
	hookWrites(ts.journal.db, func(offset int64, write func() (int, error)) (int, error) {
		n, err := write()
		if offset < 2*int64(ts.journal.pageSize) {
			commits++
		}
		pages += (n + ts.journal.pageSize - 1) / ts.journal.pageSize
		return n, err
	})
	txid := func() (id int) {
		require.NoError(t, ts.journal.view(func(tx *bolt.Tx) error { id = tx.ID(); return nil }))
		return id
	}
	before := txid()
	ts.inOneGroup(func() {
		for i := range 64 {
			ts.queueAppend(Batch{Session: sid(i), Expect: Any(), Events: []NewEvent{text(fmt.Sprintf("%0300d", i))}})
		}
	})
	require.Equal(t, 1, txid()-before, "64 sessions, one transaction")
	require.Equal(t, 1, commits)
	require.LessOrEqual(t, pages, 40, "64 events of 300 bytes in pages of %d", ts.journal.pageSize)

	ts.say(sid(1), numbers(3000)...)
	pages, before = 0, txid()
	for i := range 20 {
		ts.say(sid(1), fmt.Sprintf("%0300d", i))
	}
	require.Equal(t, 20, txid()-before, "a lone caller never shares and never waits")
	require.LessOrEqual(t, pages, 20*12, "an append to a long log touches the end of it only")

	var raw int
	require.NoError(t, ts.journal.view(func(tx *bolt.Tx) error {
		_, v := tx.Bucket(bucketJournal).Cursor().Last()
		raw = len(v)
		return nil
	}))
	require.Equal(t, 150, raw, "the bytes of a frame with one message, as the format draws it")
}
