package pagecheck

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The set agrees with a plain one.
func TestPageSet(t *testing.T) {
	const limit = 3*chunkPages + 100
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		set, plain := newPageSet(limit), map[uint64]bool{}
		pick := func() uint64 {
			if r.IntN(2) == 0 {
				return r.Uint64N(limit)
			}
			edge := []uint64{0, 63, 64, 4095, 4096, 4097, limit - 1}
			return edge[r.IntN(len(edge))]
		}
		for range r.IntN(60) {
			id := pick()
			require.Equal(t, !plain[id], set.add(id))
			plain[id] = true
		}
		for range 200 {
			low, high := pick(), pick()
			require.Equal(t, plain[low], set.has(low))
			want, found := uint64(0), false
			for id := low; id <= high; id++ {
				if plain[id] {
					want, found = id, true
				}
			}
			got, ok := set.last(low, high)
			require.Equal(t, found, ok, "%d to %d", low, high)
			if found {
				require.Equal(t, want, got)
			}
		}
	}
	require.False(t, newPageSet(10).has(1<<60))
	_, ok := newPageSet(0).last(0, 100)
	require.False(t, ok)
}
