package bundle

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

// TestPurgeOfAnImportedLog: a log of another store takes no redaction and no
// hold, and is purged like any other: its tombstones are its own leaves, so
// checkpoints and checks go on. A bundle that holds it brings in all but it.
func TestPurgeOfAnImportedLog(t *testing.T) {
	from := newStore(t)
	root, child, grandchild, other := family(t, from)
	b := export(t, from, Options{})
	dir := filepath.Join(t.TempDir(), "store")
	_, err := eventlog.Init(ctx, dir)
	require.NoError(t, err)
	to, err := eventlog.Open(ctx, dir, eventlog.Options{})
	require.NoError(t, err)
	_, err = importInto(t, to, b, Anchors{})
	require.NoError(t, err)
	_, err = to.Checkpoint(ctx)
	require.NoError(t, err)
	leaves := map[uint64]eventlog.Hash{}
	require.NoError(t, to.EachRaw(ctx, 0, to.Durable(), nil, func(f *eventlog.RawFrame) error {
		leaves[f.Position] = f.Leaf
		return nil
	}))

	order := eventlog.Order{Code: "retention", By: "ops"}
	for _, dry := range []bool{true, false} {
		_, err = to.Redact(ctx, eventlog.RedactRequest{Order: order, Session: child, Seqs: []uint64{1}, DryRun: dry})
		require.ErrorIs(t, err, eventlog.ErrEvidence)
		require.ErrorContains(t, err, "came from another store")
	}
	_, err = to.Hold(ctx, eventlog.HoldRequest{Order: order, Session: child})
	require.ErrorIs(t, err, eventlog.ErrEvidence)
	out, err := to.Purge(ctx, eventlog.PurgeRequest{Order: order, Session: child, Subtree: true})
	require.NoError(t, err)
	require.Len(t, out.Sessions, 2)
	require.NotZero(t, out.Before.Size)
	require.Greater(t, out.After.Size, out.Before.Size)
	for position, leaf := range leaves {
		kept, err := to.LeafAt(position)
		require.NoError(t, err)
		require.Equal(t, leaf, kept, "position %d", position)
	}

	say(t, from, child, "later")
	say(t, from, other, "later")
	for _, dry := range []bool{true, false} {
		again, err := Import(ctx, to, bytes.NewReader(export(t, from, Options{})), ImportOptions{DryRun: dry, By: "tester"})
		require.NoError(t, err)
		outcomes := map[uuid.UUID]string{}
		for _, s := range again.Sessions {
			outcomes[s.Session] = s.Outcome
		}
		require.Equal(t, map[uuid.UUID]string{root: OutcomeSame, child: OutcomePurged, grandchild: OutcomePurged, other: OutcomeContinued}, outcomes)
		require.EqualValues(t, 1, again.Events)
	}
	for _, id := range []uuid.UUID{child, grandchild} {
		_, err := to.Row(id)
		require.ErrorIs(t, err, eventlog.ErrPurged)
	}
	require.NoError(t, to.Close())
	report := requireSound(t, dir)
	require.EqualValues(t, 2, report.Purged)
	require.NotZero(t, report.Tombstones)
	_, err = eventlog.Compact(ctx, dir, eventlog.CompactOptions{})
	require.NoError(t, err)
	requireSound(t, dir)
}
