package review

import (
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

// An anchor covers the events whose frames lie below the size of its tree.
func TestAnchor(t *testing.T) {
	for _, c := range []struct {
		there bool
		size  uint64
		seq   uint64
		words string
	}{
		{false, 0, 0, "no checkpoint; completeness unproven"},
		{true, 3, 0, "covers none of it; completeness unproven without a copy kept elsewhere"},
		{true, 6, 2, "covered by the store's own checkpoint up to seq 2 of 4, what came after is unsigned; completeness unproven without a copy kept elsewhere"},
		{true, 10, 4, "covered by the store's own checkpoint; completeness unproven without a copy kept elsewhere"},
	} {
		a := anchor{there: c.there, size: c.size, origin: "o"}
		for i := range uint64(4) { // seqs 1 to 4 at positions 3, 5, 7, 9
			a.event(&eventlog.Event{Seq: i + 1, Position: 3 + 2*i})
		}
		out := a.done(4)
		require.Equal(t, c.seq, out.Seq)
		require.Contains(t, out.Statement, c.words)
		require.Contains(t, out.Statement, Unproven)
		require.Equal(t, c.there, out.Checkpoint)
		require.Equal(t, c.there, out.Origin != nil)
	}
}
