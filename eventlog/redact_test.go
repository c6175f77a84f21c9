package eventlog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// redact orders a redaction and requires it to be carried out.
func (ts *testStore) redact(r RedactRequest) Redacted {
	if r.Code == "" {
		r.Code = "erasure-request"
	}
	out, err := ts.Redact(ctx, r)
	require.NoError(ts.t, err)
	return out
}

// TestRedact: the content is gone at once, the event says in its place when, by
// whom and why, and nothing else of the log changes.
func TestRedact(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, "one", "two", "three")
	before := must(ts.Read(ctx, id, ReadOptions{Contents: true}))
	out := ts.redact(RedactRequest{Order: Order{Code: "gdpr-17", Basis: "art-17.1a", By: "dpo:7", Reason: "asked for by the person"}, Session: id, Seqs: []uint64{3}})
	require.Equal(t, []RedactedLog{{Session: id, Markers: []uint64{5}, Erased: []ErasedContent{{Seq: 3, Type: TypeAssistantMessage, Length: 3, Why: WhyNamed}}}}, out.Sessions)
	after := must(ts.Read(ctx, id, ReadOptions{Contents: true}))
	for i, ev := range after.Events[:4] {
		if ev.Seq == 3 {
			require.Nil(t, ev.Content)
			require.NoError(t, ev.ContentErr)
			marker := after.Events[4]
			require.Equal(t, &Redaction{Seq: 5, Time: marker.Time, Code: "gdpr-17", Basis: "art-17.1a", By: "dpo:7",
				Commitment: before.Events[2].Commitment, Length: 3}, ev.Redacted)
			require.Equal(t, TypeContentRedacted, marker.Type)
			require.Equal(t, SourceOperator, marker.Source)
			require.Equal(t, "asked for by the person", string(marker.Content))
			require.Equal(t, before.Events[2].Hash, ev.Hash)
			continue
		}
		require.Equal(t, before.Events[i], ev)
	}
	again := ts.redact(RedactRequest{Session: id, Seqs: []uint64{3, 4}})
	require.Equal(t, []PassedContent{{3, WhyRedacted}}, again.Sessions[0].Passed)
	require.Len(t, again.Sessions[0].Erased, 1)
	third := ts.redact(RedactRequest{Session: id, Seqs: []uint64{3, 4}})
	require.Empty(t, third.Sessions[0].Markers, "nothing is written where nothing is left to erase")
	require.EqualValues(t, 2, must(ts.Row(id)).Redactions)
	ts.reopen()
	require.NotNil(t, must(ts.Read(ctx, id, ReadOptions{Contents: true})).Events[3].Redacted)
}
