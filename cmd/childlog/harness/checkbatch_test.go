package harness_test

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
)

func readCall(id string) harness.Call {
	return harness.Call{ID: id, Tool: "read_file", Args: harness.JSON(`{"path":"a"}`)}
}

// TestABatchIsBoundedAndWhole: what is no call refuses it before any is decided.
func TestABatchIsBoundedAndWhole(t *testing.T) {
	s := storetest.New(t)
	h := harness.On(s)
	scene(t, h)
	before := s.Durable()
	many := make([]harness.Call, eventlog.MaxBatchEvents+1)
	for i := range many {
		many[i] = readCall(fmt.Sprint("c", i))
	}
	for what, r := range map[string]harness.CheckBatchRequest{
		"/calls: missing":  {},
		"/calls/1":         {Calls: []harness.Call{readCall("c1"), {ID: "c2"}}},
		"calls of a batch": {Calls: many},
		"/at looks back":   {Calls: many[:1], At: 1},
		"/advisory":        {Calls: many[:1], Advisory: true},
	} {
		r.Session, r.Record = childID, !r.Advisory
		_, err := h.CheckBatch(ctx, r)
		require.ErrorContains(t, err, what)
	}
	require.Equal(t, before, s.Durable())
	out, err := h.CheckBatch(ctx, harness.CheckBatchRequest{Session: childID, Calls: many[:eventlog.MaxBatchEvents]})
	require.NoError(t, err)
	require.Len(t, out.Items, eventlog.MaxBatchEvents)
}

// TestABatchOnAFullDisk: what was recorded before there was no room is told, and
// what was not reached has the error; the same batch later finds the first and
// decides the others.
func TestABatchOnAFullDisk(t *testing.T) {
	s := storetest.Open(t, eventlog.Options{MaxSize: 1 << 20})
	h := harness.On(s)
	scene(t, h)
	filler := make([]byte, 60_000)
	var calls []harness.Call
	for i := range 40 {
		_, _ = rand.Read(filler)
		calls = append(calls, harness.Call{ID: fmt.Sprint("c", i), Tool: "read_file", Args: harness.JSON(fmt.Sprintf(`{"path":"a","x":%q}`, base64.StdEncoding.EncodeToString(filler)))})
	}
	r := harness.CheckBatchRequest{Session: childID, Record: true, Calls: calls}
	out, err := h.CheckBatch(ctx, r)
	require.NoError(t, err)
	require.Len(t, out.Items, len(calls))
	recorded := 0
	for _, one := range out.Items {
		if one.Judgement != nil && one.Judgement.Recorded != nil {
			require.Nil(t, one.Error)
			recorded++
			continue
		}
		require.Nil(t, one.Judgement)
		require.Equal(t, "no_space", one.Error.Code)
	}
	require.Positive(t, recorded)
	require.Less(t, recorded, len(calls))
	again, err := h.CheckBatch(ctx, harness.CheckBatchRequest{Session: childID, Record: true, Calls: calls[:recorded]})
	require.NoError(t, err)
	for _, one := range again.Items {
		require.True(t, one.Judgement.Recorded.Existing)
	}
}
