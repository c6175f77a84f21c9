package review

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func itemAt(i int) Item {
	return Item{Kind: ListCalls, Session: someSession.String(), Seq: uint64(i)}
}

// A sample is a function of the seed and of the items: neither the order in which
// they come nor what else is kept changes it.
func TestSampleIsDeterministic(t *testing.T) {
	pick := func(n int, seed string, order func(i int) int) (seqs []uint64) {
		s := sampler{n: n, seed: seed}
		for i := range 1000 {
			s.add(itemAt(order(i)))
		}
		require.EqualValues(t, 1000, s.seen)
		for _, it := range s.list() {
			seqs = append(seqs, it.Seq)
		}
		return seqs
	}
	forward, backward := func(i int) int { return i }, func(i int) int { return 999 - i }
	first := pick(25, "q4", forward)
	require.Len(t, first, 25)
	require.IsIncreasing(t, first, "in the order of the list")
	require.Equal(t, first, pick(25, "q4", forward))
	require.ElementsMatch(t, first, pick(25, "q4", backward))
	require.NotEqual(t, first, pick(25, "q5", forward))
	require.Subset(t, pick(50, "q4", forward), first, "a larger sample holds the smaller one")
	require.Len(t, pick(0, "", forward), 1000)
	require.Len(t, pick(5000, "q4", forward), 1000)
}

// No item is favoured: over many seeds each is picked about as often.
func TestSampleIsEven(t *testing.T) {
	const items, each, seeds = 20, 5, 2000
	var times [items]int
	for seed := range seeds {
		s := sampler{n: each, seed: fmt.Sprint(seed)}
		for i := range items {
			s.add(itemAt(i))
		}
		for _, it := range s.list() {
			times[it.Seq]++
		}
	}
	for i, n := range times {
		require.InDelta(t, seeds*each/items, n, 100, "item %d", i) // five standard deviations
	}
}

// A label that is erased, or text that runs over into the next field, changes no
// sample.
func TestRankNamesTheItem(t *testing.T) {
	s := sampler{seed: "x"}
	a, b := itemAt(1), itemAt(1)
	a.Label = "was here"
	require.Equal(t, s.rank(&a), s.rank(&b))
	one, two, joined, empty := "c", "d", "cd", ""
	a.Call, a.Code, b.Call, b.Code = &one, &two, &joined, &empty
	require.NotEqual(t, s.rank(&a), s.rank(&b))
}
