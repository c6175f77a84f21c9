package eventlog

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// note is an event with an id, facts and a content.
func note(id uuid.UUID, n int, content string) NewEvent {
	return NewEvent{ID: id, Type: "plugin/note", Facts: mustFacts(map[string]any{"n": n}), Media: MediaText, Content: []byte(content)}
}

// TestCase14_RetryIsAnsweredWithTheOriginal: a caller that lost the reply asks
// again with the same ids. Time, salt and who holds the session by now don't
// matter.
func TestCase14_RetryIsAnsweredWithTheOriginal(t *testing.T) {
	now := time.Unix(1000, 0)
	ts := newStore(t, Options{Clock: func() time.Time { now = now.Add(time.Hour); return now }})
	id := ts.root(sid(1))
	batch := []NewEvent{note(eid(1), 1, "a"), note(eid(2), 2, "b")}
	original, err := ts.Append(ctx, Batch{Session: id, Expect: At(1), Events: batch})
	require.NoError(t, err)
	want := original
	want.Replayed = true
	retry := func(expect Expect) Result {
		var res Result
		ts.unchanged(t, func() {
			var err error
			res, err = ts.Append(ctx, Batch{Session: id, Expect: expect, Events: batch})
			require.NoError(t, err)
		})
		return res
	}
	require.Equal(t, want, retry(At(1)), "at its place")
	require.Equal(t, want, retry(Any()), "without a place")
	ts.say(id, numbers(300)...)
	require.Equal(t, want, retry(At(1)), "with a place it is found however long ago it was")
	ts.reopen()
	require.Equal(t, want, retry(At(1)), "after a restart")

	ts.say(id, numbers(5)...)
	last, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{note(eid(3), 3, "c")}})
	require.NoError(t, err)
	ts.reopen()
	last.Replayed = true
	res, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{note(eid(3), 3, "c")}})
	require.NoError(t, err)
	require.Equal(t, last, res, "without a place after a restart: among the last 256")
}

// TestCase14_SameIDOtherBody is a duplicate, and the error says in what.
func TestCase14_SameIDOtherBody(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	_, err := ts.Append(ctx, Batch{Session: id, Expect: At(1), Events: []NewEvent{note(eid(1), 1, "a"), note(eid(2), 2, "b")}})
	require.NoError(t, err)
	changed := func(change func(*NewEvent)) NewEvent {
		ev := note(eid(2), 2, "b")
		change(&ev)
		return ev
	}
	for _, c := range []struct {
		name, field string
		seq         uint64
		events      []NewEvent
	}{
		{"other content", "content", 3, []NewEvent{note(eid(1), 1, "a"), note(eid(2), 2, "B")}},
		{"longer content", "content", 3, []NewEvent{note(eid(1), 1, "a"), note(eid(2), 2, "bb")}},
		{"no content", "content", 3, []NewEvent{note(eid(1), 1, "a"), changed(func(ev *NewEvent) { ev.Media, ev.Content = MediaNone, nil })}},
		{"the same bytes as another media", "content", 3, []NewEvent{note(eid(1), 1, "a"), changed(func(ev *NewEvent) { ev.Media = MediaOctets })}},
		{"other facts", "facts", 3, []NewEvent{note(eid(1), 1, "a"), note(eid(2), 7, "b")}},
		{"no facts", "facts", 2, []NewEvent{changed(func(ev *NewEvent) { ev.ID, ev.Facts = eid(1), nil }), note(eid(2), 2, "b")}},
		{"other type", "type", 2, []NewEvent{changed(func(ev *NewEvent) { ev.ID, ev.Type = eid(1), "plugin/other" }), note(eid(2), 2, "b")}},
		{"the other way round", "place", 0, []NewEvent{note(eid(2), 2, "b"), note(eid(1), 1, "a")}},
		{"the first one new", "place", 3, []NewEvent{note(eid(9), 1, "a"), note(eid(2), 2, "b")}},
		{"the last one new", "place", 2, []NewEvent{note(eid(1), 1, "a"), note(eid(9), 2, "b")}},
		{"more behind it than was stored", "place", 2, []NewEvent{note(eid(1), 1, "a"), note(eid(2), 2, "b"), note(eid(3), 3, "c")}},
		{"more before it than there is log", "place", 3, []NewEvent{note(eid(7), 1, ""), note(eid(8), 1, ""), note(eid(9), 1, ""), note(eid(6), 1, ""), note(eid(2), 2, "b")}},
		{"an event without an id beside it", "place", 2, []NewEvent{note(eid(1), 1, "a"), note(uuid.Nil, 2, "b")}},
	} {
		for how, expect := range map[string]Expect{"at its place": At(1), "without a place": Any()} {
			ts.unchanged(t, func() {
				_, err := ts.Append(ctx, Batch{Session: id, Expect: expect, Events: c.events})
				require.ErrorIs(t, err, ErrDuplicate, "%s, %s", c.name, how)
				var dup *DuplicateError
				require.ErrorAs(t, err, &dup)
				require.Equal(t, c.field, dup.Field, "%s, %s", c.name, how)
				require.Equal(t, id, dup.Session)
				if c.seq != 0 {
					require.Equal(t, c.seq, dup.Seq, "%s, %s", c.name, how)
				}
			})
		}
	}

	// The batch as it is, but asked for behind the head.
	ts.unchanged(t, func() {
		_, err := ts.Append(ctx, Batch{Session: id, Expect: At(3), Events: []NewEvent{note(eid(1), 1, "a"), note(eid(2), 2, "b")}})
		require.Equal(t, &DuplicateError{Session: id, ID: eid(1), Seq: 2, Field: "place"}, err)
	})
	// A part of it, at the place of that part, is what was stored there.
	res, err := ts.Append(ctx, Batch{Session: id, Expect: At(2), Events: []NewEvent{note(eid(2), 2, "b")}})
	require.NoError(t, err)
	require.True(t, res.Replayed)
	// New ids behind an old head are an ordinary conflict.
	_, err = ts.Append(ctx, Batch{Session: id, Expect: At(1), Events: []NewEvent{note(eid(9), 1, "a")}})
	require.Equal(t, &ConflictError{Session: id, Expected: 1, Actual: 3}, err)
	// Ids are a session's own.
	other := ts.root(sid(2))
	_, err = ts.Append(ctx, Batch{Session: other, Expect: Any(), Events: []NewEvent{note(eid(1), 7, "z")}})
	require.NoError(t, err)
}

// TestCase14_WindowWithoutAPlace: an id that names no place is looked for
// among the last 256 events; beyond, it is a new event.
func TestCase14_WindowWithoutAPlace(t *testing.T) {
	for _, reopen := range []bool{false, true} {
		t.Run(fmt.Sprintf("reopened %t", reopen), func(t *testing.T) {
			ts := newStore(t)
			id := ts.root(sid(1))
			first, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{note(eid(1), 1, "a")}})
			require.NoError(t, err)
			ts.say(id, numbers(255)...) // the note is the oldest of 256
			if reopen {
				ts.reopen()
			}
			res, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{note(eid(1), 1, "a")}})
			require.NoError(t, err)
			require.True(t, res.Replayed)
			require.Equal(t, first.LastSeq, res.LastSeq)
			ts.say(id, "one more")
			res, err = ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{note(eid(1), 1, "a")}})
			require.NoError(t, err)
			require.False(t, res.Replayed)
		})
	}
}

// TestCase14_RetryInsideAGroup: the retry may reach the committer together
// with its original, and its answer is worth as much as the group.
func TestCase14_RetryInsideAGroup(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	var pending []*Pending
	for i := range 200 {
		for range 2 {
			p, err := ts.AppendAsync(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{note(eid(i+1), i, "x")}})
			require.NoError(t, err)
			pending = append(pending, p)
		}
		p, err := ts.AppendAsync(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{note(eid(i+1), i, "y")}})
		require.NoError(t, err)
		pending = append(pending, p)
	}
	for i := 0; i < len(pending); i += 3 {
		first, err := pending[i].Wait(ctx)
		require.NoError(t, err)
		require.False(t, first.Replayed)
		again, err := pending[i+1].Wait(ctx)
		require.NoError(t, err)
		require.True(t, again.Replayed)
		again.Replayed = false
		require.Equal(t, first, again)
		_, err = pending[i+2].Wait(ctx)
		require.ErrorIs(t, err, ErrDuplicate)
	}
	seqs, holes := ts.seqs(id)
	require.Equal(t, upTo(201), seqs)
	require.Empty(t, holes)
}

// TestCase14_RetryOfManySessions: more sessions than there are windows in
// memory.
func TestCase14_RetryOfManySessions(t *testing.T) {
	ts := newStore(t)
	n := maxIDWindows + 50
	var batches []Batch
	for i := range n {
		batches = append(batches, Batch{Session: sid(i), Events: rootEvents(sid(i), "x")})
	}
	_, err := ts.transact(EntryCreate, batches...)
	require.NoError(t, err)
	for round := range 2 {
		pending := make([]*Pending, n)
		for i := range n {
			pending[i], err = ts.AppendAsync(ctx, Batch{Session: sid(i), Expect: Any(), Events: []NewEvent{named(eid(i+1), "x")}})
			require.NoError(t, err)
		}
		for _, p := range pending {
			res, err := p.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, round == 1, res.Replayed)
		}
	}
	require.LessOrEqual(t, len(ts.windows.sessions), maxIDWindows)
}

// TestCase14_RetryOfAUnit: a unit of several sessions is either new or was
// there; half a retry is a conflict. (Who delegates retries by key.)
func TestCase14_RetryOfAUnit(t *testing.T) {
	ts := newStore(t)
	a, b := ts.root(sid(1)), ts.root(sid(2))
	unit := []Batch{{Session: a, Expect: At(1), Events: []NewEvent{{ID: eid(1), Type: TypeSessionTitled}}}, {Session: b, Expect: At(1), Events: []NewEvent{{ID: eid(2), Type: TypeSessionTitled}}}}
	_, err := ts.transact(EntryOperator, unit...)
	require.NoError(t, err)
	ts.unchanged(t, func() {
		_, err = ts.transact(EntryOperator, unit...)
		require.ErrorIs(t, err, ErrConflict)
	})
}
