package eventlog

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// evidenceOf makes an imported session whose events beside the first are given.
func (ts *testStore) evidenceOf(id uuid.UUID, events ...NewEvent) uuid.UUID {
	created := Created{Kind: KindRoot, Root: id, Mode: ModeOneShot, Defaults: readOnlyDefaults(), Evidence: true}
	_, err := ts.transact(EntryImport, Batch{Session: id, Events: append([]NewEvent{{Type: TypeSessionCreated, Facts: created.Facts()}}, events...)})
	require.NoError(ts.t, err)
	return id
}

// copied is copyOf as an importer writes it.
func copied(ts *testStore, session uuid.UUID, seq uint64) NewEvent {
	ev := copyOf(ts, session, seq)
	ev.Source = SourceImport
	return ev
}

// TestRedactFollowsAdoptions: what was copied out of evidence into a child of
// another parent goes as well, and what was forked from that child, in this
// index and in one that is built anew; a hold on any of them refuses all.
func TestRedactFollowsAdoptions(t *testing.T) {
	ts := newStore(t)
	from := ts.evidenceOf(sid(9), text("one"), text("secret 5571"))
	id := ts.root(sid(1))
	ts.say(id, "own")
	adopt := func(child uuid.UUID, key string, seqs ...uint64) {
		var seed []NewEvent
		for _, seq := range seqs {
			seed = append(seed, copyOf(ts, from, seq))
		}
		_, err := ts.transact(EntryDelegation, withSeed(ts.delegation(id, child, key), seed...)...)
		require.NoError(t, err)
	}
	adopt(sid(2), "a", 2, 3)
	adopt(sid(3), "b", 2)
	_, err := ts.transact(EntryDelegation, withSeed(ts.delegation(sid(2), sid(4), "c"), copyOf(ts, sid(2), 3))...)
	require.NoError(t, err)
	ts.reopen(Options{fresh: true})

	_, err = ts.Hold(ctx, HoldRequest{Order: Order{Code: "case"}, Session: sid(4), ID: "h"})
	require.NoError(t, err)
	_, err = ts.Redact(ctx, RedactRequest{Order: Order{Code: "x"}, Session: from, Seqs: []uint64{3}})
	require.ErrorIs(t, err, ErrHeld)
	require.Equal(t, "secret 5571", ts.texts(sid(2), 3)[0], "all or nothing")
	_, err = ts.Release(ctx, ReleaseRequest{Order: Order{Code: "case"}, Session: sid(4), ID: "h"})
	require.NoError(t, err)

	out := ts.redact(RedactRequest{Session: from, Seqs: []uint64{3}})
	require.Equal(t, []string{"3 named", "3 seed copy", "2 seed copy"}, erasedIn(&out))
	require.Equal(t, []uuid.UUID{from, sid(2), sid(4)}, []uuid.UUID{out.Sessions[0].Session, out.Sessions[1].Session, out.Sessions[2].Session})
	require.Equal(t, "one", ts.texts(sid(3), 2)[0])
	require.NoError(t, ts.Close())
	compact(t, ts.dir)
	require.Empty(t, held(t, ts.dir, "secret 5571"))
	ts.open()
}

// TestRedactFollowsCopiesInEvidence: an imported log says of itself which of its
// lines are copies, whose child it is or not; a circle of such logs ends, and
// what can't be the copy of that is listed and stays.
func TestRedactFollowsCopiesInEvidence(t *testing.T) {
	ts := newStore(t)
	from := ts.evidenceOf(sid(1), text("secret"))
	other := NewEvent{Type: TypeUserMessage, Media: MediaText, Content: []byte("another line"), Inherited: &Ref{from, 2}}
	ts.evidenceOf(sid(2), text("own"), copied(ts, from, 2), other)
	_, err := ts.transact(EntryImport, Batch{Session: from, Expect: At(2), Events: []NewEvent{copied(ts, sid(2), 3)}})
	require.NoError(t, err)
	out := ts.redact(RedactRequest{Session: from, Seqs: []uint64{2}})
	require.Equal(t, []string{"2 named", "3 " + WhyCopy, "3 " + WhyCopy}, erasedIn(&out))
	require.Len(t, out.Sessions, 2, "one marker for each log")
	require.Equal(t, []SameText{{sid(2), 4, TypeUserMessage, "said to be a copy, and of another type"}}, out.Also)
	require.Equal(t, "another line", ts.texts(sid(2), 4)[0])
}

// TestAdoptionReadBeforeARedaction: nothing is adopted that was erased since it
// was read, and seqs of the parent's own redactions mean nothing there.
func TestAdoptionReadBeforeARedaction(t *testing.T) {
	ts := newStore(t)
	from := ts.evidenceOf(sid(9), text("one"), text("secret"))
	id := ts.root(sid(1))
	ts.say(id, "own", "own as well")
	one, secret := copyOf(ts, from, 2), copyOf(ts, from, 3)
	unit := withSeed(ts.delegation(id, sid(2), "k"), one, secret)
	ts.redact(RedactRequest{Session: from, Seqs: []uint64{3}})
	_, err := ts.transact(EntryDelegation, unit...)
	require.ErrorIs(t, err, ErrStaleCapture)
	gone := copyOf(ts, from, 3)
	gone.Media, gone.Content = MediaNone, nil
	unit = withSeed(ts.delegation(id, sid(2), "k"), one, gone)
	ts.redact(RedactRequest{Session: id, Seqs: []uint64{2}}) // in the parent this is not the seed's seq 2
	_, err = ts.transact(EntryDelegation, unit...)
	require.NoError(t, err)

	unit = withSeed(ts.delegation(id, sid(3), "l"), one)
	ts.purge(from, false)
	_, err = ts.transact(EntryDelegation, unit...)
	require.ErrorIs(t, err, ErrPurged)
}
