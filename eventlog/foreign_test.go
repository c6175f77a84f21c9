package eventlog

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// rawLog reads a session's log as it is stored.
func rawLog(t testing.TB, s *Store, id uuid.UUID) (frames []*RawFrame) {
	t.Helper()
	require.NoError(t, s.EachRaw(ctx, 0, s.Durable(), nil, func(f *RawFrame) error {
		if f.Session == id {
			frames = append(frames, f)
		}
		return nil
	}))
	return frames
}

// foreignLog is a session's log as another store takes it in.
func foreignLog(t testing.TB, s *Store, id uuid.UUID) ForeignLog {
	t.Helper()
	l := ForeignLog{Session: id, Prev: Genesis(id), Record: ImportRecord{Status: "unproven", By: "tester"}}
	for _, f := range rawLog(t, s, id) {
		for i := range f.Events {
			ev, err := NewForeignEvent(id, f.Headers[i], f.Chunks[i])
			require.NoError(t, err)
			l.Events = append(l.Events, ev)
		}
		l.Record.Head, l.Record.Hash = f.Last(), f.After()
	}
	return l
}

// TestForeignLogs: a log that is taken in keeps every hash, is evidence by its
// frames alone, and reads the same once the index is built anew.
func TestForeignLogs(t *testing.T) {
	from, to := newStore(t), newStore(t)
	root, child := from.root(sid(1)), sid(2)
	from.child(root, child, "key")
	from.say(child, "one", "two")
	logs := []ForeignLog{foreignLog(t, from.Store, root), foreignLog(t, from.Store, child)}
	_, err := to.ImportLogs(ctx, logs...)
	require.NoError(t, err)
	look := func() {
		t.Helper()
		for _, id := range []uuid.UUID{root, child} {
			want, err := from.Row(id)
			require.NoError(t, err)
			got, err := to.Row(id)
			require.NoError(t, err)
			require.Equal(t, []any{want.Head, want.Hash, want.LastPolicy, want.Kind}, []any{got.Head, got.Hash, got.LastPolicy, got.Kind})
			require.True(t, got.Evidence && got.Imported)
			events, _, err := to.Policy(ctx, id, 0)
			require.NoError(t, err)
			for i := range events {
				require.True(t, events[i].Imported)
			}
		}
		children, err := to.Children(root)
		require.NoError(t, err)
		require.Equal(t, []uuid.UUID{child}, children, "evidence below evidence")
		_, err = to.ByKey(root, "key")
		require.ErrorIs(t, err, ErrNotFound, "its receipt names no key here")
	}
	look()
	require.NoError(t, to.Close())
	require.NoError(t, removeIndex(to.dir))
	to.open()
	look()
	for i, f := range rawLog(t, to.Store, child) {
		require.True(t, f.Imported)
		require.NotEqual(t, rawLog(t, from.Store, child)[min(i, 1)].Leaf, f.Leaf)
		require.Equal(t, f.Leaf, must(to.LeafAt(f.Position)))
	}

	// The record of it stands in the store's own log.
	page, err := to.Read(ctx, StoreSession, ReadOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{TypeSessionCreated, TypeStoreImported, TypeStoreImported}, types(page.Events))
	require.Equal(t, child, page.Events[2].Facts.UUID("session"))
}

func types(events []Event) (out []string) {
	for i := range events {
		out = append(out, events[i].Type)
	}
	return out
}

// TestForeignLogsAreHeldToTheirChain: what does not follow is refused, and leaves
// nothing.
func TestForeignLogsAreHeldToTheirChain(t *testing.T) {
	from, to := newStore(t), newStore(t)
	root := from.root(sid(1))
	from.say(root, "one", "two", "three")
	good := foreignLog(t, from.Store, root)
	part := func(after uint64, prev Hash, events []ForeignEvent) ForeignLog {
		l := good
		l.After, l.Prev, l.Events = after, prev, events
		return l
	}
	other := foreignLog(t, from.Store, from.root(sid(3)))
	for name, c := range map[string]struct {
		log  ForeignLog
		want error
	}{
		"a gap":             {part(0, good.Prev, slices.Delete(slices.Clone(good.Events), 1, 2)), ErrInvalid},
		"another beginning": {part(0, good.Prev, good.Events[1:]), ErrNotFound},
		"another hash":      {part(0, Hash{1}, good.Events), ErrInvalid},
		"behind its place":  {part(2, good.Prev, good.Events[2:]), ErrNotFound},
		"another's events":  {part(0, good.Prev, other.Events), ErrInvalid},
		"no events":         {part(0, good.Prev, nil), ErrInvalid},
		"exchanged":         {part(0, good.Prev, []ForeignEvent{good.Events[0], good.Events[2], good.Events[1]}), ErrInvalid},
	} {
		_, err := to.ImportLogs(ctx, c.log)
		require.ErrorIs(t, err, c.want, name)
		require.Zero(t, to.Durable(), name)
	}
	_, err := to.ImportLogs(ctx, part(0, good.Prev, good.Events[:2]))
	require.NoError(t, err)
	_, err = to.ImportLogs(ctx, part(2, good.Events[1].Event().Hash, good.Events[2:]))
	require.ErrorIs(t, err, ErrInvalid, "not the chain's hash at seq 2")
	row, err := to.Row(root)
	require.NoError(t, err)
	_, err = to.ImportLogs(ctx, part(2, row.Hash, good.Events[2:]))
	require.NoError(t, err)
	_, err = to.ImportLogs(ctx, good)
	require.ErrorIs(t, err, ErrInvalid, "it is there")
	_, err = from.ImportLogs(ctx, good)
	require.ErrorIs(t, err, ErrInvalid, "it is there")
	_, err = from.ImportLogs(ctx, part(row.Head, row.Hash, good.Events[2:]))
	require.Error(t, err, "native")

	// An event by itself.
	f := rawLog(t, from.Store, root)[1]
	_, err = NewForeignEvent(root, f.Headers[0][:20], nil)
	require.ErrorIs(t, err, ErrInvalid)
	_, err = NewForeignEvent(root, f.Headers[0], rawLog(t, from.Store, root)[2].Chunks[0])
	require.ErrorIs(t, err, ErrInvalid, "another's content")
	_, err = NewForeignEvent(root, f.Headers[0], append(slices.Clone(f.Chunks[0]), f.Chunks[0][0]))
	require.ErrorIs(t, err, ErrInvalid)
}

// TestMixedFramesAreEvidence: a log in which frames from elsewhere and native ones
// are mixed can only come of damage or of a hand. It is damaged, and no authority.
func TestMixedFramesAreEvidence(t *testing.T) {
	for _, first := range []bool{true, false} {
		var r Row
		r.applyFrame(&frame{session: sid(1), first: 1, count: 1, prev: Genesis(sid(1)), imported: first}, 0)
		r.apply(&Event{Session: sid(1), Seq: 1, Type: TypeSessionCreated, Version: 1, Facts: rootEvents(sid(1), "")[0].Facts, Imported: first}, Hash{1})
		require.Equal(t, first, r.Evidence)
		require.Empty(t, r.Damage)
		r.applyFrame(&frame{session: sid(1), first: 2, count: 1, prev: Hash{1}, imported: !first}, 1)
		require.True(t, r.Evidence)
		require.Len(t, r.Damage, 1)
	}
}

// TestForeignLogIsKeptOrPurged: a log of another store takes no marker and no
// hold, also in a dry run, and nothing is told as erased; what held it there holds
// it here.
func TestForeignLogIsKeptOrPurged(t *testing.T) {
	from, to := newStore(t), newStore(t)
	id := from.root(sid(1))
	from.say(id, "one", "two")
	held := from.root(sid(2))
	_, err := from.Hold(ctx, HoldRequest{Order: Order{Code: "case-1"}, Session: held})
	require.NoError(t, err)
	_, err = to.ImportLogs(ctx, foreignLog(t, from.Store, id), foreignLog(t, from.Store, held))
	require.NoError(t, err)
	for _, dry := range []bool{true, false} {
		out, err := to.Redact(ctx, RedactRequest{Order: Order{Code: "x"}, Session: id, Seqs: []uint64{2}, DryRun: dry})
		require.ErrorIs(t, err, ErrEvidence)
		require.ErrorContains(t, err, "from another store")
		require.Empty(t, out.Sessions)
	}
	_, err = to.Hold(ctx, HoldRequest{Order: Order{Code: "x"}, Session: id})
	require.ErrorIs(t, err, ErrEvidence)
	_, err = to.Release(ctx, ReleaseRequest{Order: Order{Code: "x"}, Session: held, ID: must(from.Row(held)).Holds[0].ID})
	require.ErrorIs(t, err, ErrEvidence)
	_, err = to.Purge(ctx, PurgeRequest{Order: Order{Code: "x"}, Session: held})
	require.ErrorIs(t, err, ErrHeld)
	require.Equal(t, []string{"one", "two"}, to.texts(id, 2))
	to.purge(id, false)
}

// TestForeignHoldsAreBounded: a forged log is not worked on for hours because it
// says that it is held a thousand times.
func TestForeignHoldsAreBounded(t *testing.T) {
	from, to := newStore(t), newStore(t)
	id := from.root(sid(1))
	log := foreignLog(t, from.Store, id)
	hold := func(n int) {
		facts, err := MakeFacts(map[string]any{"hold": fmt.Sprint("h", n), "state": "held", "subtree": false, "code": "c", "by": "b"})
		require.NoError(t, err)
		ev, err := NewForeignEvent(id, appendHeader(nil, &pending{id: eid(n), typ: TypeSessionHeld, version: 1, source: SourceOperator, time: goldenTime, facts: facts}, uint64(len(log.Events)+1), 0), nil)
		require.NoError(t, err)
		log.Events = append(log.Events, ev)
	}
	for n := range maxHolds {
		hold(n)
	}
	sound := log
	hold(maxHolds)
	_, err := to.ImportLogs(ctx, log)
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = to.ImportLogs(ctx, sound)
	require.NoError(t, err)
}
