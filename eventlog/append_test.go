package eventlog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExpectedSeq: an append names the head that it was decided on.
func TestExpectedSeq(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1)) // seq 1
	res, err := ts.Append(ctx, Batch{Session: id, Expect: At(1), Events: []NewEvent{text("a"), text("b")}})
	require.NoError(t, err)
	require.Equal(t, uint64(2), res.FirstSeq)
	require.Equal(t, uint64(3), res.LastSeq)
	require.False(t, res.Replayed)
	for name, expect := range map[string]Expect{"behind": At(1), "ahead": At(9), "forgotten": {}} {
		ts.unchanged(t, func() {
			_, err := ts.Append(ctx, Batch{Session: id, Expect: expect, Events: []NewEvent{text("c")}})
			require.Equal(t, &ConflictError{Session: id, Expected: expect.seq, Actual: 3}, err, name)
			require.ErrorIs(t, err, ErrConflict)
			require.EqualError(t, err, "conflict: session "+id.String()+": expected head seq "+map[string]string{"behind": "1", "ahead": "9", "forgotten": "0"}[name]+", actual 3")
		})
	}
	again, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("c")}})
	require.NoError(t, err)
	require.Equal(t, uint64(4), again.LastSeq)
	require.Greater(t, again.Position, res.Position)
	require.Equal(t, []string{"a", "b", "c"}, ts.texts(id, 2))
}

// TestResultIsWhatIsStored: seq, hash and position of the answer are those of
// the last event.
func TestResultIsWhatIsStored(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	res, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("a"), text("b"), text("c")}})
	require.NoError(t, err)
	page, err := ts.Read(ctx, id, ReadOptions{From: res.LastSeq})
	require.NoError(t, err)
	require.Equal(t, res.Hash, page.Events[0].Hash)
	require.Equal(t, res.Position, page.Events[0].Position)
	row, err := ts.Row(id)
	require.NoError(t, err)
	require.Equal(t, res.Hash, row.Hash)
	require.Equal(t, res.LastSeq, row.Head)
	require.Equal(t, res.Position, row.LastPos)
}

// TestBatchIsAllOrNothing: one bad event refuses all of them, and limits name
// themselves and what came.
func TestBatchIsAllOrNothing(t *testing.T) {
	ts := newStore(t, Options{Limits: Limits{BatchEvents: 3, BatchContent: 100, Content: 60, Facts: 200}})
	id := ts.root(sid(1))
	big := NewEvent{Type: "user/message", Media: MediaOctets, Content: make([]byte, 60)}
	over := NewEvent{Type: "user/message", Media: MediaOctets, Content: make([]byte, 61)}
	wide := map[string]any{}
	for _, k := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		wide[k] = Hash{}
	}
	for _, c := range []struct {
		name   string
		events []NewEvent
		want   error
		text   string
	}{
		{"no event", nil, ErrInvalid, "a batch needs at least one event"},
		{"too many events", []NewEvent{text("a"), text("b"), text("c"), text("d")}, ErrTooLarge, "events of a batch: limit 3, got 4"},
		{"a content over the limit", []NewEvent{text("a"), over}, ErrTooLarge, "event 2: too large: content in bytes: limit 60, got 61"},
		{"contents that are too much together", []NewEvent{big, big}, ErrTooLarge, "content of a batch in bytes: limit 100, got 120"},
		{"facts over the limit", []NewEvent{{Type: "plugin/note", Facts: goldenFacts(t, wide)}}, ErrTooLarge, "facts in bytes: limit 200, got 253"},
		{"json that is none", []NewEvent{text("a"), {Type: "user/message", Media: MediaJSON, Content: []byte("{")}}, ErrInvalid, "event 2: content: "},
		{"text that is not UTF-8", []NewEvent{{Type: "user/message", Media: MediaText, Content: []byte{0xff}}}, ErrInvalid, "not valid UTF-8; use octets"},
		{"content without a media", []NewEvent{{Type: "user/message", Content: []byte("x")}}, ErrInvalid, "content without a media kind"},
		{"a media that does not exist", []NewEvent{{Type: "user/message", Media: 4}}, ErrInvalid, "want json, text or octets, got 4"},
		{"one id twice", []NewEvent{named(eid(1), "a"), named(eid(1), "b")}, ErrInvalid, "event 2: invalid: id " + eid(1).String() + " is given twice"},
	} {
		ts.unchanged(t, func() {
			_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: c.events})
			require.ErrorIs(t, err, c.want, c.name)
			require.ErrorContains(t, err, c.text, c.name)
		})
	}
	for name, l := range map[string]Limits{"above the cap": {Content: MaxContent + 1}, "negative": {Facts: -1}, "frames": {UnitFrames: MaxUnitFrames + 1}} {
		_, err := Open(ctx, ts.dir, Options{Limits: l})
		require.ErrorIs(t, err, ErrInvalid, name)
	}
}

// TestClosedSession: a closed log takes nothing but what its children left to
// be acknowledged.
func TestClosedSession(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	child := ts.child(id, sid(2), "k")
	closed := mustFacts(map[string]any{"by": "operator"})
	_, err := ts.transact(EntryOperator, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: TypeSessionClosed, Facts: closed}}})
	require.NoError(t, err)
	ts.unchanged(t, func() {
		_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("x")}})
		require.ErrorIs(t, err, ErrSessionClosed)
		require.ErrorContains(t, err, "was closed at seq 3")
	})
	consumed := mustFacts(map[string]any{"child": child, "settled_seq": 4})
	_, err = ts.transact(EntryRuntime, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: TypeNoticeConsumed, Facts: consumed}}})
	require.NoError(t, err)
	seq, err := ts.Consumed(id, child)
	require.NoError(t, err)
	require.Equal(t, uint64(4), seq)
	require.Equal(t, StatusClosed, ts.rows()[0].Status(ts.Boot()))
}

// TestTimeIsNoOrder: a clock that runs backwards changes no seq, no status
// and no order.
func TestTimeIsNoOrder(t *testing.T) {
	clock := &backwards{}
	ts := newStore(t, Options{Clock: clock.now})
	id := ts.root(sid(1))
	ts.say(id, "a", "b", "c")
	require.Equal(t, []string{"a", "b", "c"}, ts.texts(id, 2))
	var times []int64
	require.NoError(t, ts.Replay(ctx, id, false, func(ev *Event) error { times = append(times, ev.Time.UnixNano()); return nil }))
	require.IsDecreasing(t, times)
}
