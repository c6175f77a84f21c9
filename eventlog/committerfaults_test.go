package eventlog

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// TestMarkAlone: a salvage names a session of which no frame is left.
func TestMarkAlone(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	ts.expectDamage()
	require.NoError(t, ts.Close())
	db, err := bolt.Open(filepath.Join(ts.dir, journalFile), 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketJournal)
		k, _ := b.Cursor().Last()
		next := binary.BigEndian.Uint64(k) + 1
		if err := b.Put(positionKey(next), appendMark(nil, lostName{session: sid(9), first: 1})); err != nil {
			return err
		}
		return b.SetSequence(next + 1)
	}))
	require.NoError(t, db.Close())
	checkStore(t, ts.dir)
}

// TestContentOfTheFlight: a plan reads what a unit before it wrote, also when the
// caller of that unit was answered and uses its memory again.
func TestContentOfTheFlight(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	w := holdWrites(ts, 0)
	buf := []byte("durable")
	var first *Pending
	ts.group(func() {
		first = ts.queueAppend(Batch{Session: id, Expect: At(1), Events: []NewEvent{{Type: "user/message", Media: MediaText, Content: buf}}})
	})
	<-w.begun
	entered, goOn := make(chan struct{}), make(chan struct{})
	var seen string
	wait := ts.async(EntryCreate, func(v *View) ([]Batch, error) {
		close(entered)
		<-goOn
		ev, err := v.Event(id, 2)
		seen = string(ev.Content)
		return nil, err
	})
	<-entered
	close(w.release)
	_, err := first.Wait(ctx)
	require.NoError(t, err)
	copy(buf, "CHANGED") // allowed: Wait returned
	close(goOn)
	_, err = wait()
	require.NoError(t, err)
	require.Equal(t, "durable", seen)
}

// TestFactsOfACancelledAppend: who stops waiting has its memory back, and the
// append goes on with what it was given.
func TestFactsOfACancelledAppend(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	facts := mustFacts(map[string]any{"message": "a"})
	ts.inOneGroup(func() {
		gone, cancel := context.WithCancel(ctx)
		p := ts.queueAppend(Batch{Session: id, Expect: At(1), Events: []NewEvent{{Type: "user/note", Facts: facts}}})
		cancel()
		_, err := p.Wait(gone)
		require.ErrorIs(t, err, ErrOutcomeUnknown)
		for i := range facts { // allowed: Wait returned
			facts[i] = 0xff
		}
	})
	ts.expectDamage()
	page, err := ts.Read(ctx, id, ReadOptions{})
	require.NoError(t, err)
	require.Empty(t, page.Holes)
	require.Len(t, page.Events, 2)
}

// TestUnknownWithoutAView: the meta page may be written, and the file can't be
// read to see: the outcome is unknown.
func TestUnknownWithoutAView(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	hookWrites(ts.journal.db, func(offset int64, write func() (int, error)) (int, error) {
		n, err := write()
		if offset < 2*journalPageSize {
			dead := error(&CorruptError{Reason: "fault"}) // as a reader's fault leaves it
			ts.journal.guard.dead.Store(&dead)
			return 0, syscall.EIO
		}
		return n, err
	})
	b := Batch{Session: id, Expect: At(1), Events: []NewEvent{named(eid(1), "x")}}
	_, err := ts.Append(ctx, b)
	told := err
	require.NoError(t, ts.Close())
	ts.open()
	res, err := ts.Append(ctx, b)
	require.NoError(t, err)
	require.True(t, res.Replayed)
	require.ErrorIs(t, told, ErrOutcomeUnknown)
}

// TestRetryInAFailedGroup: a retry of what is durable is answered, whatever
// becomes of the group that it came with.
func TestRetryInAFailedGroup(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	b := Batch{Session: id, Expect: At(1), Events: []NewEvent{named(eid(1), "x")}}
	_, err := ts.Append(ctx, b)
	require.NoError(t, err)
	hookWrites(ts.journal.db, func(int64, func() (int, error)) (int, error) { return 0, syscall.ENOSPC })
	var retry *Pending
	ts.inOneGroup(func() {
		ts.queueAppend(Batch{Session: id, Expect: Any(), Events: []NewEvent{text("new")}})
		retry = ts.queueAppend(b)
	})
	res, err := retry.Wait(ctx)
	require.NoError(t, err)
	require.True(t, res.Replayed)
}

// TestRoomCountsOnce: a group that is committed and not told yet is in the file,
// and takes no room beside.
func TestRoomCountsOnce(t *testing.T) {
	for range 3 {
		ts := newStore(t, Options{MaxSize: 16 << 20})
		id := ts.root(sid(1))
		w := holdWrites(ts, 0)
		var first *Pending
		ts.group(func() {
			first = ts.queueAppend(Batch{Session: id, Expect: Any(), Events: []NewEvent{octets(noise(1, 4<<20))}})
		})
		<-w.begun
		entered, goOn := make(chan struct{}), make(chan struct{})
		ts.async(EntryCreate, func(v *View) ([]Batch, error) { close(entered); <-goOn; return nil, nil })
		<-entered
		close(w.release)
		_, err := first.Wait(ctx)
		require.NoError(t, err)
		next := ts.queueAppend(Batch{Session: id, Expect: Any(), Events: []NewEvent{octets(noise(2, 5<<20))}})
		close(goOn)
		_, err = next.Wait(ctx)
		require.NoError(t, err, "room %d", ts.journal.room.bytes)
		require.NoError(t, ts.Close())
	}
}

// TestReserveInOneGroup: what ends a turn shares a group with ordinary appends of
// half a page each, which take twice their size.
func TestReserveInOneGroup(t *testing.T) {
	for _, size := range []int{4120, 300} {
		for _, n := range []int{200, 2000} {
			t.Run(fmt.Sprint(size, "x", n), func(t *testing.T) {
				max := 32 << 20
				ts := newStore(t, Options{MaxSize: max})
				a, b := ts.root(sid(1)), ts.root(sid(2))
				seed := uint64(0)
				full := 0
				for round := 0; round < 200 && full < 3; round++ {
					var ps []*Pending
					var end *Pending
					ts.inOneGroup(func() {
						for range n {
							seed++
							ps = append(ps, ts.queueAppend(Batch{Session: a, Expect: Any(), Events: []NewEvent{octets(noise(seed, size))}}))
						}
						end = ts.queueAppend(Batch{Session: b, Expect: Any(), Events: []NewEvent{{Type: TypeTurnEnd, Facts: mustFacts(map[string]any{"turn": 1, "reason": "x"})}}})
					})
					refused := 0
					for _, p := range ps {
						if _, err := p.Wait(ctx); err != nil {
							require.ErrorIs(t, err, ErrNoSpace)
							refused++
						}
					}
					if refused > 0 {
						full++
					}
					_, err := end.Wait(ctx)
					require.NoError(t, err, "round %d, %d of %d ordinary ones were refused, room %d", round, refused, n, ts.journal.room.bytes)
				}
			})
		}
	}
}
