package pagecheck_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/eventlog/pagecheck"
)

var flips = flag.Int("flips", 600, "single-bit flips that TestSingleBitFlips tries, 0 for all")

// One flipped bit anywhere: if the full check passes, then the flip hit a key or
// value, the size of a page's last element, a sequence or an unused byte. So what
// a walk gives differs in at most one pair, and none is missing. Whatever the
// check says, the walk ends, and gives no pair that it should not.
func TestSingleBitFlips(t *testing.T) {
	t.Parallel()
	m := newImage(t, shape{pageSize: 1024, journal: 500, contents: 12, valueMax: 5 << 10, nested: true})
	want := contentsOf(t, m.data)
	used := int(m.hwm()) * m.pageSize
	r := rand.New(rand.NewPCG(7, 7))

	var bits []int
	if *flips == 0 {
		for bit := range used * 8 {
			bits = append(bits, bit)
		}
	} else {
		for i := range *flips {
			bit := r.IntN(used * 8)
			if i%4 != 0 {
				// Headers and tables are a small part of the file and the most
				// interesting one.
				page := uint64(r.IntN(int(m.hwm())))
				bit = int(page)*m.pageSize*8 + r.IntN(8*(16+16*max(1, min(int(m.count(page)), 63))))
			}
			bits = append(bits, bit)
		}
	}
	missed, undetected := 0, 0
	for _, bit := range bits {
		page := uint64(bit / 8 / m.pageSize)
		m.flipped(0, bit, func() {
			rep, first := inspectAll(t, m.data), inspect(t, m.data)
			if !first.OK() {
				require.False(t, rep.OK(), "page %d bit %d: the full check finds what the short one finds: %v", page, bit, first.Problems)
			}
			differ := 0
			for name, pairs := range want {
				got, problems, err := walk(t, m.data, name)
				if rep.OK() && errors.Is(err, pagecheck.ErrNoBucket) {
					// A name is a key like others; the bucket is there under another.
					require.Len(t, rep.Buckets, len(want), "page %d bit %d", page, bit)
					differ++
					continue
				}
				if err != nil || len(problems) > 0 {
					require.False(t, rep.OK(), "page %d bit %d: the full check finds what a walk finds: %v", page, bit, problems)
				}
				if rep.OK() {
					require.NoError(t, err)
					require.Len(t, got, len(pairs), "page %d bit %d bucket %s: pairs missing, undetected", page, bit, name)
				}
				differ += differing(pairs, got)
			}
			if rep.OK() {
				undetected++
				require.LessOrEqual(t, differ, 1, "page %d bit %d: more than one pair changed, undetected", page, bit)
			} else if differ > 0 {
				missed++
			}
		})
	}
	t.Logf("%d flips: %d undetected, %d detected with pairs lost or changed", len(bits), undetected, missed)
	require.NotZero(t, missed)
	require.NotZero(t, undetected)
}

// differing counts the pairs of want that are not in got, and adds those in got
// that are not in want.
func differing(want, got []pair) int {
	key := func(p pair) string {
		if p.value == nil {
			return string(p.key) + "\x00nested"
		}
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(p.key)))) + string(p.key) + string(p.value)
	}
	n := 0
	if len(want) == len(got) {
		for i := range want {
			if !bytes.Equal(want[i].key, got[i].key) || !bytes.Equal(want[i].value, got[i].value) ||
				(want[i].value == nil) != (got[i].value == nil) {
				n++
			}
		}
		return n
	}
	seen := map[string]int{}
	for _, p := range got {
		seen[key(p)]++
	}
	for _, p := range want {
		if seen[key(p)]--; seen[key(p)] < 0 {
			n++
		}
	}
	return n
}
