package eventlog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHold: nothing is erased of what is held, by whatever call; the error names
// the hold, and what stands is the same after a rebuild of the index.
func TestHold(t *testing.T) {
	ts := familyStore(t)
	order := Order{Code: "case-17"}
	own, err := ts.Hold(ctx, HoldRequest{Order: order, Session: sid(3), ID: "h1"})
	require.NoError(t, err)
	again, err := ts.Hold(ctx, HoldRequest{Order: order, Session: sid(3), ID: "h1"})
	require.NoError(t, err)
	require.Equal(t, own, again)
	_, err = ts.Hold(ctx, HoldRequest{Order: Order{Code: "other"}, Session: sid(3), ID: "h1"})
	require.ErrorIs(t, err, ErrConflict)
	_, err = ts.Hold(ctx, HoldRequest{Order: order, Session: sid(3), ID: "a b"})
	require.ErrorIs(t, err, ErrInvalid)
	_, err = ts.Hold(ctx, HoldRequest{Order: order, Session: StoreSession})
	require.ErrorIs(t, err, ErrInvalid)
	over, err := ts.Hold(ctx, HoldRequest{Order: Order{Code: "case-18", Reason: "the whole team"}, Session: sid(2), Subtree: true})
	require.NoError(t, err)
	require.NotEmpty(t, over.ID)
	ts.child(sid(4), sid(5), "born later")

	refused := func() {
		for _, c := range []struct {
			session, at int
			hold        string
		}{{3, 3, "h1"}, {2, 2, over.ID}, {4, 2, over.ID}, {5, 2, over.ID}} {
			_, err := ts.Redact(ctx, RedactRequest{Order: order, Session: sid(c.session), Seqs: []uint64{1}})
			var held *HeldError
			require.ErrorAs(t, err, &held, "%d", c.session)
			require.ErrorIs(t, err, ErrHeld)
			require.Equal(t, sid(c.session), held.Session)
			require.Equal(t, sid(c.at), held.At)
			require.Equal(t, c.hold, held.Hold.ID)
			_, err = ts.Purge(ctx, PurgeRequest{Order: order, Session: sid(c.session), Subtree: true})
			require.ErrorIs(t, err, ErrHeld)
		}
		_, err := ts.Purge(ctx, PurgeRequest{Order: order, Session: sid(1), Subtree: true})
		require.ErrorIs(t, err, ErrHeld, "of a subtree everything or nothing")
	}
	refused()
	ts.reopen(Options{fresh: true})
	refused()
	out := ts.redact(RedactRequest{Session: sid(1), Seqs: []uint64{5}})
	require.Len(t, out.Sessions[0].Erased, 1, "a hold on the children does not cover the parent")

	_, err = ts.Release(ctx, ReleaseRequest{Order: order, Session: sid(4), ID: over.ID})
	require.ErrorIs(t, err, ErrNotFound, "it is released where it was set")
	_, err = ts.Release(ctx, ReleaseRequest{Order: Order{Code: "closed"}, Session: sid(2), ID: over.ID})
	require.NoError(t, err)
	_, err = ts.Release(ctx, ReleaseRequest{Order: order, Session: sid(2), ID: over.ID})
	require.ErrorIs(t, err, ErrNotFound)
	require.Empty(t, must(ts.Row(sid(2))).Holds)
	ts.purge(sid(4), true)
	_, err = ts.Purge(ctx, PurgeRequest{Order: order, Session: sid(3)})
	require.ErrorIs(t, err, ErrHeld)
}

// TestHoldOnACopy: who holds a fork holds what it was forked with.
func TestHoldOnACopy(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, "one")
	_, err := ts.transact(EntryDelegation, withSeed(ts.delegation(id, sid(2), "k"), copyOf(ts, id, 2))...)
	require.NoError(t, err)
	_, err = ts.Hold(ctx, HoldRequest{Order: Order{Code: "x"}, Session: sid(2)})
	require.NoError(t, err)
	_, err = ts.Redact(ctx, RedactRequest{Order: Order{Code: "x"}, Session: id, Seqs: []uint64{2}})
	require.ErrorIs(t, err, ErrHeld)
	require.Equal(t, "one", ts.texts(id, 2)[0])
}

// TestHoldOfWhatIsClosedOrImported: what is kept is the record, whatever it is
// the record of.
func TestHoldOfWhatIsClosedOrImported(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	ts.activate(sid(1), 1)
	_, err := ts.Hold(ctx, HoldRequest{Order: Order{Code: "x"}, Session: sid(1), ID: "h"})
	require.NoError(t, err, "an open activation fences its harness, not the operator")
	_, err = ts.transact(EntryOperator, Batch{Session: sid(1), Expect: Any(), Events: []NewEvent{{Type: TypeSessionClosed, Facts: mustFacts(map[string]any{"by": "operator"})}}})
	require.NoError(t, err)
	_, err = ts.Release(ctx, ReleaseRequest{Order: Order{Code: "x"}, Session: sid(1), ID: "h"})
	require.NoError(t, err)
	ts.redact(RedactRequest{Session: sid(1), Seqs: []uint64{1}})

	created := Created{Kind: KindRoot, Root: sid(2), Mode: ModeOneShot, Defaults: readOnlyDefaults(), Evidence: true}
	_, err = ts.transact(EntryImport, Batch{Session: sid(2), Events: []NewEvent{{Type: TypeSessionCreated, Facts: created.Facts()}, text("found")}})
	require.NoError(t, err)
	_, err = ts.Hold(ctx, HoldRequest{Order: Order{Code: "x"}, Session: sid(2), ID: "h"})
	require.NoError(t, err)
	_, err = ts.Redact(ctx, RedactRequest{Order: Order{Code: "x"}, Session: sid(2), Seqs: []uint64{2}})
	require.ErrorIs(t, err, ErrHeld)
	_, err = ts.Release(ctx, ReleaseRequest{Order: Order{Code: "x"}, Session: sid(2), ID: "h"})
	require.NoError(t, err)
	ts.redact(RedactRequest{Session: sid(2), Seqs: []uint64{2}})
	ts.purge(sid(2), false)
}

// TestHoldThatMayBeLost: an ancestor that lost events may have lost a hold over
// all below it.
func TestHoldThatMayBeLost(t *testing.T) {
	ts := familyStore(t)
	ts.expectDamage()
	position := must(ts.Read(ctx, sid(2), ReadOptions{From: 12, To: 12})).Events[0].Position
	ts.change(bucketJournal, positionKey(position), flip(-1))
	ts.reopen(Options{fresh: true})
	_, err := ts.Redact(ctx, RedactRequest{Order: Order{Code: "x"}, Session: sid(4), Seqs: []uint64{5}})
	require.ErrorIs(t, err, ErrCorrupt)
	ts.redact(RedactRequest{Session: sid(3), Seqs: []uint64{5}})
}
