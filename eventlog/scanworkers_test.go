package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"
)

const wideSessions = 5

// wideStore has more frames than a scan's first jobs: frames of one and of
// many events, of a family of sessions, with contents small, large and empty.
func wideStore(t *testing.T) *testStore {
	ts := newStore(t)
	ts.root(sid(0))
	for n := 1; n < wideSessions; n++ {
		ts.child(sid(0), sid(n), fmt.Sprint(n))
	}
	ts.narrow(sid(2))
	var sent []*Pending
	for i := range 400 {
		b := Batch{Session: sid(i % wideSessions), Expect: Any(), Events: []NewEvent{text(fmt.Sprint(i))}}
		switch {
		case i%50 == 7:
			b.Events = append(b.Events, octets(noise(uint64(i), 3*chunkSize)), octets(nil), text(strings.Repeat("again and ", 400)))
		case i%9 == 0:
			for k := range 40 {
				b.Events = append(b.Events, text(fmt.Sprint(i, k)))
			}
		}
		p, err := ts.AppendAsync(ctx, b)
		require.NoError(t, err)
		sent = append(sent, p)
	}
	for _, p := range sent {
		_, err := p.Wait(ctx)
		require.NoError(t, err)
	}
	ts.flushIndex()
	return ts
}

// damage changes values of a store as a rapid test draws them.
func damage(rt *rapid.T, dir string) {
	changeDB(rt, filepath.Join(dir, journalFile), func(tx *bolt.Tx) error {
		for range rapid.IntRange(1, 6).Draw(rt, "damages") {
			b := tx.Bucket(rapid.SampledFrom([][]byte{bucketJournal, bucketContents}).Draw(rt, "bucket"))
			c := b.Cursor()
			k, v := c.Seek(contentKey(uint64(rapid.IntRange(0, 410).Draw(rt, "position")), uint32(rapid.IntRange(0, 3).Draw(rt, "event")), 0)[:])
			if k == nil {
				k, v = c.Last()
			}
			if len(v) == 0 {
				continue // emptied before
			}
			k, v = bytes.Clone(k), bytes.Clone(v)
			at := rapid.IntRange(0, len(v)-1).Draw(rt, "byte")
			var err error
			switch rapid.IntRange(0, 4).Draw(rt, "kind") {
			case 0:
				err = b.Delete(k)
			case 1:
				v[at] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
				err = b.Put(k, v)
			case 2:
				err = b.Put(k, v[:at])
			case 3: // another value, sound by itself, in its place
				if _, other := c.First(); other != nil {
					err = b.Put(k, bytes.Clone(other))
				}
			case 4: // a header damaged under a checksum that holds
				if v[at] ^= 1; len(v) > 4 {
					err = b.Put(k, reseal(v))
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Any number of workers finds the same, in the same order; also of one
// session. Every log replays to the same events and the same end as one that
// is read frame by frame and content by content, each by its key.
func TestWorkersFindTheSame(t *testing.T) {
	base := wideStore(t)
	require.NoError(t, base.Close())
	requireSound(t, base.dir)
	parent := t.TempDir()
	runs, found := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		dir := filepath.Join(parent, fmt.Sprint(runs))
		copyDir(rt, base.dir, dir)
		damage(rt, dir)
		if rapid.Bool().Draw(rt, "without index") {
			require.NoError(rt, removeIndex(dir))
		}
		s, err := Open(ctx, dir, Options{ReadOnly: true})
		require.NoError(rt, err)
		defer s.Close()
		for _, only := range []uuid.UUID{uuid.Nil, sid(1), sid(2)} {
			one, err := s.Check(ctx, CheckOptions{Workers: 1, Session: only})
			require.NoError(rt, err)
			found += len(one.Findings)
			for _, workers := range []int{2, 5} {
				many, err := s.Check(ctx, CheckOptions{Workers: workers, Session: only})
				require.NoError(rt, err)
				require.Equal(rt, one, many, "%d workers", workers)
			}
		}
		for n := range wideSessions {
			want := told(func(fn func(*Event) error) error { return replayByKey(s, sid(n), fn) })
			require.Equal(rt, want, told(func(fn func(*Event) error) error { return s.Replay(ctx, sid(n), true, fn) }))
			require.Equal(rt, want, told(func(fn func(*Event) error) error { return s.ReplayBorrowed(ctx, sid(n), true, fn) }))
		}
	})
	require.NotZero(t, found)
}

// told writes down what a replay gave, as it gave it.
func told(replay func(func(*Event) error) error) (out []string) {
	err := replay(func(ev *Event) error {
		out = append(out, fmt.Sprintf("%+v", *ev))
		return nil
	})
	return append(out, fmt.Sprint("end: ", err))
}

// replayByKey is a replay without pages, cursors and shared memory.
func replayByKey(s *Store, session uuid.UUID, fn func(*Event) error) error {
	e, err := s.lookup(session)
	if err != nil {
		return err
	}
	if err := s.st.loss(&e.row); err != nil {
		return err
	}
	list, err := s.st.frames(e, 1, int(e.row.Frames)+1)
	if err != nil {
		return err
	}
	hole := func(from, to uint64, err error) error {
		return &CorruptError{Session: session, Seq: from, Reason: fmt.Sprintf("seq %d to %d: %v", from, to, err)}
	}
	hash, seq := Genesis(session), uint64(1)
	for i, p := range list {
		if p.first > seq {
			return hole(seq, p.first-1, errMissing)
		}
		end := e.row.Head
		if i+1 < len(list) {
			end = list[i+1].first - 1
		}
		var events []seqEvent
		err := s.journal.view(func(tx *bolt.Tx) (err error) {
			if events, err = readFrame(txSource{s.st, tx}, session, p); err != nil {
				return err
			}
			for k := range events {
				loadContent(tx, &events[k].Event, events[k].index)
			}
			return nil
		})
		if err != nil {
			return hole(seq, end, err)
		}
		for k := range events {
			ev := &events[k].Event
			if ev.Seq < seq {
				continue
			}
			if ev.prev != hash {
				return &CorruptError{Session: session, Seq: ev.Seq, Position: ev.Position, HasPosition: true, Reason: "chain: previous hash differs"}
			}
			hash, seq = ev.Hash, ev.Seq+1
			if err := fn(ev); err != nil {
				return err
			}
		}
	}
	if seq <= e.row.Head {
		return hole(seq, e.row.Head, errMissing)
	}
	if d, ok := e.row.cutOff(); ok {
		return hole(d.From, d.To, &CorruptError{Session: session, Seq: d.From, Reason: d.Reason})
	}
	return nil
}

// A scan that is stopped, by its context or by what it calls, leaves no
// goroutine behind when it returns.
func TestScanStops(t *testing.T) {
	ts := wideStore(t)
	stop := errors.New("enough")
	for _, workers := range []int{1, 2, 5} {
		for _, at := range []uint64{0, 1, 70, 300} {
			var last uint64
			err := ts.scan(ctx, scanOptions{to: ts.st.durable(), workers: workers}, func(p *scanned) error {
				if last = p.position; p.position == at {
					return stop
				}
				return nil
			})
			require.ErrorIs(t, err, stop)
			require.Equal(t, at, last)

			canceled, cancel := context.WithCancel(ctx)
			err = ts.scan(canceled, scanOptions{from: at, to: ts.st.durable(), workers: workers}, func(p *scanned) error {
				cancel()
				return nil
			})
			if err != nil { // all was in one block
				require.ErrorIs(t, err, context.Canceled)
			}
			_, err = ts.Check(canceled, CheckOptions{Workers: workers})
			require.ErrorIs(t, err, context.Canceled)
		}
	}
	stacks := make([]byte, 1<<20)
	require.NotContains(t, string(stacks[:runtime.Stack(stacks, true)]), "eventlog.(*Store).scan.")
}

// What a borrowed event keeps of the page is its own after Clone.
func TestReplayBorrowed(t *testing.T) {
	ts := wideStore(t)
	var kept []*Event
	var want []string
	require.NoError(t, ts.ReplayBorrowed(ctx, sid(0), true, func(ev *Event) error {
		kept, want = append(kept, ev.Clone()), append(want, fmt.Sprintf("%+v", *ev))
		return nil
	}))
	require.Greater(t, len(kept), 100)
	for i, ev := range kept {
		require.Equal(t, want[i], fmt.Sprintf("%+v", *ev))
	}
}
