package eventlog

import (
	"os"
	"reflect"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// hookWrites puts hook around each write of a database. bbolt has the place
// for it but does not export it.
func hookWrites(db *bolt.DB, hook func(offset int64, write func() (int, error)) (int, error)) {
	field := reflect.ValueOf(db).Elem().FieldByName("ops").FieldByName("writeAt")
	at := (*func([]byte, int64) (int, error))(unsafe.Pointer(field.UnsafeAddr()))
	write := *at
	*at = func(b []byte, offset int64) (int, error) {
		return hook(offset, func() (int, error) { return write(b, offset) })
	}
}

// breakSync makes every later sync of the file fail, and returns what mends it.
func breakSync(t *testing.T, f *os.File) (mend func()) {
	fd := int(f.Fd())
	saved, err := unix.Dup(fd)
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, become(int(r.Fd()), fd)) // a pipe can't be synced
	return func() {
		require.NoError(t, become(saved, fd))
		require.NoError(t, unix.Close(saved))
		r.Close()
		w.Close()
	}
}

// TestFailedCommit fails each write and sync of a commit, both ways: failed
// and not persisted, failed but persisted. The error says what is known, and
// the retry finds out the rest.
func TestFailedCommit(t *testing.T) {
	const data, meta = false, true
	for _, c := range []struct {
		name      string
		step      bool // which write is hit
		persisted bool
		errno     syscall.Errno
		sync      bool // the sync after the write fails instead of the write
		want      error
		goesOn    bool // without a reopen
	}{
		{name: "no space for data", step: data, errno: syscall.ENOSPC, want: ErrNoSpace, goesOn: true},
		{name: "no space for data, some of which is there", step: data, persisted: true, errno: syscall.ENOSPC, want: ErrNoSpace, goesOn: true},
		{name: "no space for the meta page", step: meta, errno: syscall.ENOSPC, want: ErrNoSpace, goesOn: true},
		{name: "quota", step: data, errno: syscall.EDQUOT, want: ErrNoSpace, goesOn: true},
		{name: "the disk fails on data", step: data, errno: syscall.EIO, want: syscall.EIO},
		{name: "the disk fails on data, some of which is there", step: data, persisted: true, errno: syscall.EIO, want: syscall.EIO},
		{name: "the disk fails on the meta page", step: meta, errno: syscall.EIO, want: syscall.EIO},
		{name: "the disk fails on the meta page, which is there", step: meta, persisted: true, errno: syscall.EIO, want: ErrOutcomeUnknown},
		{name: "no space for the meta page, which is there", step: meta, persisted: true, errno: syscall.ENOSPC, want: ErrOutcomeUnknown},
		{name: "the last sync fails", step: meta, persisted: true, sync: true, want: ErrOutcomeUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			ts := newStore(t)
			id := ts.root(sid(1))
			ts.say(id, "before")
			broken, mend := true, func() {}
			hookWrites(ts.journal.db, func(offset int64, write func() (int, error)) (int, error) {
				if !broken || (offset < 2*journalPageSize) != c.step {
					return write()
				}
				if c.persisted {
					n, err := write()
					require.NoError(t, err)
					if c.sync {
						mend = breakSync(t, ts.journal.file)
						return n, nil
					}
				}
				return 0, c.errno
			})
			batch := Batch{Session: id, Expect: At(2), Events: []NewEvent{named(eid(1), "x")}}
			_, err := ts.Append(ctx, batch)
			require.ErrorIs(t, err, c.want)
			broken = false
			mend()

			row, err := ts.Row(id)
			require.NoError(t, err)
			require.Equal(t, uint64(2), row.Head, "nobody sees what was not acknowledged")
			require.Equal(t, []string{"before"}, ts.texts(id, 2), "reading goes on")
			if !c.goesOn {
				_, err = ts.Append(ctx, batch)
				require.ErrorIs(t, err, ErrReadOnly)
				require.ErrorContains(t, err, "the store must be reopened")
				require.NotErrorIs(t, err, ErrOutcomeUnknown, "of this append the outcome is known")
				require.False(t, ts.Closed())
				ts.reopen()
			}
			res, err := ts.Append(ctx, batch)
			require.NoError(t, err)
			require.Equal(t, uint64(3), res.LastSeq)
			require.Equal(t, c.want == ErrOutcomeUnknown, res.Replayed)
			require.Equal(t, []string{"before", "x"}, ts.texts(id, 2))
		})
	}
}

// TestFailedCommitAnswersTheWholeGroup, refusals included: they rest on units
// of the same group, which are not there.
func TestFailedCommitAnswersTheWholeGroup(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	hookWrites(ts.journal.db, func(int64, func() (int, error)) (int, error) { return 0, syscall.EIO })
	var first, conflict, duplicate *Pending
	queue := func(expect Expect, ev NewEvent) *Pending {
		p, err := ts.AppendAsync(ctx, Batch{Session: id, Expect: expect, Events: []NewEvent{ev}})
		require.NoError(t, err)
		return p
	}
	ts.inOneGroup(func() {
		first = queue(At(1), named(eid(1), "x"))
		conflict = queue(At(1), text("a conflict only if the first one is there"))
		duplicate = queue(Any(), named(eid(1), "y"))
	})
	for _, p := range []*Pending{first, conflict, duplicate} {
		_, err := p.Wait(ctx)
		require.ErrorIs(t, err, syscall.EIO)
		require.NotErrorIs(t, err, ErrConflict)
		require.NotErrorIs(t, err, ErrDuplicate)
	}
	ts.reopen()
	_, err := ts.Append(ctx, Batch{Session: id, Expect: At(1), Events: []NewEvent{text("it was no conflict")}})
	require.NoError(t, err)
}

// TestIndexThatCannotBeWritten costs memory and the next open, and no event:
// appends go on beyond the lag at which they would wait for the index.
func TestIndexThatCannotBeWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	ts := newStore(t)
	id := ts.root(sid(1))
	hookWrites(ts.st.index.db, func(int64, func() (int, error)) (int, error) { return 0, syscall.ENOSPC })
	const n = maxLagFrames + 1000
	ts.say(id, numbers(n)...)
	st, err := ts.Stats()
	require.NoError(t, err)
	require.Equal(t, uint64(n+1), st.Lag)
	require.ErrorIs(t, ts.Close(), syscall.ENOSPC, "it is told at the end")
	ts.open()
	row, err := ts.Row(id)
	require.NoError(t, err)
	require.Equal(t, uint64(n+1), row.Head)
	ts.flushIndex()
	st, err = ts.Stats()
	require.NoError(t, err)
	require.Zero(t, st.Lag)
}

// TestIndexRecoversWhenThereIsRoom: the timer tries again.
func TestIndexRecoversWhenThereIsRoom(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	fail := make(chan bool, 1)
	hookWrites(ts.st.index.db, func(_ int64, write func() (int, error)) (int, error) {
		select {
		case <-fail:
			return 0, syscall.ENOSPC
		default:
			return write()
		}
	})
	fail <- true
	ts.say(id, numbers(flushLagFrames+1)...) // the flush that this starts fails
	for {
		ts.say(id, "more")
		if st, err := ts.Stats(); err == nil && st.Lag < flushLagFrames {
			break
		}
	}
	require.Empty(t, fail, "it did fail")
	require.NoError(t, ts.indexer.failed())
}
