package eventlog

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func texts(contents ...string) (events []NewEvent) {
	for i, c := range contents {
		events = append(events, note(uuid.Nil, i, c))
	}
	return events
}

// TestCase14_ABatchUnderAKey: a caller that remembers the key and nothing else
// gets the original result, however long ago it was, wherever it expects the
// head, in a new process, with a new index and after its activation was taken
// over.
func TestCase14_ABatchUnderAKey(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	batch := func(expect Expect) Batch {
		return Batch{Session: id, Expect: expect, Key: "run 4, call 7", Events: texts("a", "b", "c")}
	}
	original, err := ts.Append(ctx, batch(At(1)))
	require.NoError(t, err)
	require.False(t, original.Replayed)
	original.Replayed = true
	retry := func(expect Expect) {
		t.Helper()
		ts.unchanged(t, func() {
			res, err := ts.Append(ctx, batch(expect))
			require.NoError(t, err)
			require.Equal(t, original, res)
		})
	}
	retry(Any())
	ts.say(id, numbers(400)...)
	for range 2 {
		retry(Any())
		retry(At(1))
		retry(At(404)) // the caller read the head again before it retried
		ts.reopen()
	}
	require.NoError(t, ts.Close())
	_, err = Reindex(ctx, ts.dir, Options{})
	require.NoError(t, err)
	ts.Store, err = Open(ctx, ts.dir, Options{})
	require.NoError(t, err)
	retry(Any())
	b := batch(Any())
	b.Epoch = 7 // never activated
	_, err = ts.Append(ctx, b)
	require.NoError(t, err, "a duplicate comes before the fence")
}

// TestAKeyNamesOneBatch: another body, fewer or more events under a key are
// duplicates that say in what; another key or another session is another batch.
func TestAKeyNamesOneBatch(t *testing.T) {
	ts := newStore(t)
	id, other := ts.root(sid(1)), ts.root(sid(2))
	send := func(session uuid.UUID, key string, events []NewEvent) (Result, error) {
		return ts.Append(ctx, Batch{Session: session, Expect: Any(), Key: key, Events: events})
	}
	_, err := send(id, "k", texts("a", "b"))
	require.NoError(t, err)
	for _, c := range []struct {
		field  string
		events []NewEvent
	}{
		{"content", texts("a", "B")}, {"content", texts("A", "b")}, {"number of events", texts("a")}, {"place", texts("a", "b", "c")},
	} {
		ts.unchanged(t, func() {
			_, err := send(id, "k", c.events)
			var dup *DuplicateError
			require.ErrorAs(t, err, &dup)
			require.Equal(t, c.field, dup.Field)
		})
	}
	_, err = send(id, "k", []NewEvent{note(eid(1), 1, "a")})
	require.ErrorIs(t, err, ErrInvalid, "an id of its own and a key")
	for _, c := range []struct {
		session uuid.UUID
		key     string
	}{{id, "k2"}, {other, "k"}} {
		res, err := send(c.session, c.key, texts("a", "b"))
		require.NoError(t, err)
		require.False(t, res.Replayed)
	}
	given := texts("a")
	_, err = send(id, "k3", given)
	require.NoError(t, err)
	require.Equal(t, uuid.Nil, given[0].ID, "what the caller gave stays as it was")
	_, err = ts.Transact(ctx, EntryRuntime, func(*View) ([]Batch, error) {
		return []Batch{{Session: id, Expect: Any(), Key: "k4", Events: texts("a")}}, nil
	})
	require.ErrorIs(t, err, ErrInvalid, "a key that would do nothing")
}

// TestCase14_ConcurrentBatchesUnderAKey: of many that send one batch, one is
// written; keys beside it go on.
func TestCase14_ConcurrentBatchesUnderAKey(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	var pending []*Pending
	for i := range 120 {
		p, err := ts.AppendAsync(ctx, Batch{Session: id, Expect: Any(), Key: fmt.Sprint(i % 40), Events: texts("a", fmt.Sprint(i%40))})
		require.NoError(t, err)
		pending = append(pending, p)
	}
	seqs := map[int]uint64{}
	for i, p := range pending {
		res, err := p.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, i >= 40, res.Replayed)
		if i < 40 {
			seqs[i] = res.FirstSeq
		}
		require.Equal(t, seqs[i%40], res.FirstSeq)
	}
	require.Equal(t, uint64(81), must(ts.Row(id)).Head)
}

// TestKeyedIDs: the ids are of version 8, and are what they always were: they
// are in logs.
func TestKeyedIDs(t *testing.T) {
	id := KeyedID(sid(1), "k", 2)
	require.Equal(t, uuid.Version(8), id.Version())
	require.Equal(t, uuid.RFC4122, id.Variant())
	golden(t, "format/keyed.golden", id.String()+"\n"+KeyedID(sid(1), "", MaxBatchEvents-1).String()+"\n")
}
