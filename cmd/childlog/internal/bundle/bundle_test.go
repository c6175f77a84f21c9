package bundle

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

func TestWholeStore(t *testing.T) {
	s := newStore(t)
	family(t, s)
	n := newNotary(t, "demo")
	o := Options{Note: n.checkpoint(t, s, s.Durable()), Key: n.text}
	b := export(t, s, o)
	require.Equal(t, b, export(t, s, o), "the same state gives the same bytes")
	r := verify(t, b, Anchors{Key: n.verifier, Checkpoint: o.Note})
	require.Empty(t, r.Findings)
	require.Equal(t, Verified, r.Status())
	require.True(t, r.Anchored)
	require.Len(t, r.Sessions, 4)
	for _, l := range r.Sessions {
		row, err := s.Row(l.Session)
		require.NoError(t, err)
		require.True(t, l.Complete)
		require.Equal(t, row.Hash, l.Hash)
		require.Equal(t, row.Head, l.Covered)
	}
	bare := verify(t, b, Anchors{})
	require.Equal(t, Intact, bare.Status())
	require.Contains(t, bare.Statement(), "completeness unproven")
}

func TestSelection(t *testing.T) {
	s := newStore(t)
	_, child, grandchild, other := family(t, s)
	n := newNotary(t, "demo")
	for size := uint64(1); size <= s.Durable(); size++ {
		o := Options{Sessions: []uuid.UUID{child, grandchild}, Note: n.checkpoint(t, s, size)}
		r := verify(t, export(t, s, o), Anchors{Key: n.verifier, Checkpoint: o.Note})
		require.True(t, r.Anchored)
		for _, f := range r.Findings {
			require.True(t, f.Missing, f)
			require.Equal(t, FindTree, f.Kind)
		}
		require.Equal(t, size == s.Durable() || size == s.Durable()-1, r.Status() == Verified, size)
	}
	o := Options{Sessions: []uuid.UUID{other}, Note: n.checkpoint(t, s, s.Durable())}
	require.Equal(t, Verified, verify(t, export(t, s, o), Anchors{Key: n.verifier}).Status())
	_, err := Export(ctx, s, nil, Options{Sessions: []uuid.UUID{sid(99)}})
	require.ErrorIs(t, err, eventlog.ErrNotFound)
}
