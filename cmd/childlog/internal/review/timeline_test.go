package review

import (
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

// Of too many entries the first and the last are kept, and the gap is counted.
func TestTimelineKeepsBothEnds(t *testing.T) {
	for _, c := range []struct {
		most, events int
		want         []uint64
		gap          uint64
	}{
		{4, 0, []uint64{}, 0},
		{4, 4, []uint64{1, 2, 3, 4}, 0},
		{4, 9, []uint64{1, 2, 8, 9}, 5},
		{5, 9, []uint64{1, 2, 3, 8, 9}, 4},
		{1, 9, []uint64{1}, 0},
	} {
		line := newTimeline(c.most)
		for i := range c.events {
			line.event(&eventlog.Event{Type: eventlog.TypeSessionCreated, Seq: uint64(i + 1)})
			line.event(&eventlog.Event{Type: eventlog.TypeStepStart, Seq: uint64(i + 1)})
		}
		out := line.done(nil)
		seqs, gap := []uint64{}, uint64(0)
		for _, m := range out.Entries {
			seqs, gap = append(seqs, m.Seq), gap+m.Gap
		}
		require.Equal(t, c.want, seqs, "%d of %d", c.most, c.events)
		require.Equal(t, c.gap, gap, "%d of %d", c.most, c.events)
		left := uint64(0)
		for _, l := range out.LeftOut {
			left += l.Count
		}
		require.EqualValues(t, 2*c.events, len(seqs)+int(left), "each event is listed or counted")
	}
}
