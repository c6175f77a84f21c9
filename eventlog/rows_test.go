package eventlog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// roots creates many roots in one unit.
func (ts *testStore) roots(ids ...uuid.UUID) {
	var list []Batch
	for _, id := range ids {
		list = append(list, Batch{Session: id, Events: rootEvents(id, "x")})
	}
	_, err := ts.transact(EntryCreate, list...)
	require.NoError(ts.t, err)
}

// TestEachRowMergesIndexAndOverlay: rows come once each and in id order,
// whether they stand in the index, in the overlay or in both, and on whatever
// side of a page they fall. The overlay's is the newer version.
func TestEachRowMergesIndexAndOverlay(t *testing.T) {
	ts := newStore(t)
	const n = 2*rowsPage + 300
	ids := make([]uuid.UUID, n)
	r := rand.New(rand.NewPCG(5, 6))
	for i := range ids {
		for k := range ids[i] {
			ids[i][k] = byte(r.Uint32())
		}
	}
	ids[0] = uuid.Max // behind it there is no next id
	ids[1] = uuid.UUID{15: 1}
	ts.roots(ids[:rowsPage]...)
	ts.flushIndex()
	check := func(known []uuid.UUID) {
		set := map[uuid.UUID]bool{}
		for _, id := range known {
			set[id] = true
		}
		var got []uuid.UUID
		require.NoError(t, ts.EachRow(ctx, func(row *Row) (bool, error) {
			got = append(got, row.Session)
			return true, nil
		}))
		require.Equal(t, sortedIDs(set), got)
	}
	check(ids[:rowsPage]) // exactly a page in the index
	ts.roots(ids[rowsPage:]...)
	check(ids) // one half here, one half there
	ts.say(ids[5], "newer than the index")
	require.NoError(t, ts.EachRow(ctx, func(row *Row) (bool, error) {
		want := uint64(1)
		if row.Session == ids[5] {
			want = 2
		}
		require.Equal(t, want, row.Head)
		return true, nil
	}))
	ts.flushIndex()
	check(ids)

	seen := 0
	require.NoError(t, ts.EachRow(ctx, func(*Row) (bool, error) { seen++; return seen < 10, nil }))
	require.Equal(t, 10, seen, "false ends it")
	own := errors.New("own")
	require.ErrorIs(t, ts.EachRow(ctx, func(*Row) (bool, error) { return true, own }), own)
}

// TestRowsAreTheCallersOwn: changing one changes nothing in the store.
func TestRowsAreTheCallersOwn(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	require.NoError(t, ts.EachRow(ctx, func(row *Row) (bool, error) {
		row.Head, row.Label, row.Evidence = 99, "changed", true
		return true, nil
	}))
	row, err := ts.Row(id)
	require.NoError(t, err)
	require.Equal(t, [3]any{uint64(1), "root", false}, [3]any{row.Head, row.Label, row.Evidence})
	ts.say(id, "on")
}

// TestResolve finds a session by what a person types.
func TestResolve(t *testing.T) {
	ts := newStore(t)
	a, b := uuid.MustParse("abcd1234-0000-4000-8000-000000000001"), uuid.MustParse("abcd1299-0000-4000-8000-000000000002")
	ts.roots(a, b, uuid.MustParse("abce0000-0000-4000-8000-000000000003"))
	created := Created{Kind: KindRoot, Root: sid(7), Mode: ModeOneShot, External: &External{System: "codex", IDHash: ExternalHash("codex", "thread:7")}, Defaults: readOnlyDefaults()}
	_, err := ts.transact(EntryCreate, Batch{Session: sid(7), Events: []NewEvent{{Type: TypeSessionCreated, Facts: created.Facts()}}})
	require.NoError(t, err)
	for _, flushed := range []bool{false, true} {
		if flushed {
			ts.flushIndex()
		}
		for text, want := range map[string]uuid.UUID{
			a.String():                              a,
			strings.ToUpper(a.String()):             a,
			strings.ReplaceAll(a.String(), "-", ""): a,
			"abcd1234":                              a,
			"abcd1234-0000":                         a,
			"ABCD129":                               b,
			"abcd12-99":                             b,
			"codex:thread:7":                        sid(7),
		} {
			got, err := ts.Resolve(ctx, text)
			require.NoError(t, err, text)
			require.Equal(t, want, got, text)
		}
		_, err := ts.Resolve(ctx, "abcd12")
		require.ErrorIs(t, err, ErrAmbiguous)
		require.ErrorContains(t, err, a.String()+", "+b.String())
		require.NotContains(t, err.Error(), "abce")
		for text, want := range map[string]error{
			"abc": ErrInvalid, "": ErrInvalid, "xyz9": ErrInvalid, "--": ErrInvalid, strings.Repeat("a", 33): ErrInvalid, "abcg1234": ErrInvalid,
			"abcf": ErrNotFound, "ffffffff": ErrNotFound, uuid.Max.String(): ErrNotFound, "codex:thread:8": ErrNotFound, "other:thread:7": ErrNotFound, "codex:": ErrNotFound,
		} {
			_, err := ts.Resolve(ctx, text)
			require.ErrorIs(t, err, want, "%q", text)
		}
	}
	// Many that share a prefix: the error names a few.
	var many []uuid.UUID
	for i := range 20 {
		many = append(many, uuid.MustParse(fmt.Sprintf("77770000-0000-4000-8000-%012x", i)))
	}
	ts.roots(many...)
	_, err = ts.Resolve(ctx, "7777")
	require.ErrorIs(t, err, ErrAmbiguous)
	require.Equal(t, 4, strings.Count(err.Error(), "77770000-"))
}

// TestStatus: what a session is doing is derived, never stored.
func TestStatus(t *testing.T) {
	boot, other := sid(1), sid(2)
	for _, c := range []struct {
		want string
		row  Row
	}{
		{StatusIdle, Row{}},
		{StatusRunning, Row{Open: true, Boot: boot}},
		{StatusInterrupted, Row{Open: true, Boot: other}},
		{StatusSettled, Row{SettledSeq: 5, Open: true, Boot: boot}},
		{StatusClosed, Row{ClosedSeq: 6, SettledSeq: 5}},
		{StatusEvidence, Row{Evidence: true, ClosedSeq: 6}},
	} {
		require.Equal(t, c.want, c.row.Status(boot))
	}
	require.Equal(t, StatusInterrupted, (&Row{Open: true}).Status(uuid.Nil), "no known holder is nobody's boot")
}

// TestSeedIsThePast: events inherited from a parent count for nothing here.
func TestSeedIsThePast(t *testing.T) {
	ts := newStore(t)
	parent := ts.root(sid(1))
	unit := ts.delegation(parent, sid(2), "k")
	from := &Ref{Session: parent, Seq: 1}
	seed := []NewEvent{
		{Type: TypeTurnStart, Facts: mustFacts(map[string]any{"turn": 3}), Inherited: from, Source: SourceRuntime},
		{Type: TypeToolCall, Facts: mustFacts(map[string]any{"call": "c1", "tool": "read"}), Inherited: from, Source: SourceRuntime},
		{Type: TypeUsageRecorded, Facts: mustFacts(map[string]any{"usage": "u", "input": 5}), Inherited: from, Source: SourceRuntime},
		{Type: TypeSandboxMode, Facts: mustFacts(map[string]any{"mode": "danger-full-access"}), Inherited: from},
	}
	_, err := ts.transact(EntryDelegation, withSeed(unit, seed...)...)
	require.NoError(t, err)
	row, err := ts.Row(sid(2))
	require.NoError(t, err)
	require.Zero(t, row.Turns+row.Steps+row.Calls+row.Usage.Of+row.Turn)
	require.Empty(t, row.OpenCalls)
	events, _, err := ts.Policy(ctx, sid(2), 0)
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 7, 8, 9}, seqsOf(events), "the parent's old sandbox is conversation, not policy")
	page, err := ts.Read(ctx, sid(2), ReadOptions{From: 2, To: 2})
	require.NoError(t, err)
	require.Equal(t, from, page.Events[0].Inherited)
}

// TestUsageCountsOnce: harnesses repeat a usage record while a response
// streams.
func TestUsageCountsOnce(t *testing.T) {
	var row Row
	add := func(id string, n int) {
		row.apply(&Event{Type: TypeUsageRecorded, Facts: mustFacts(map[string]any{"usage": id, "input": n, "cost_micros": 2 * n})}, Hash{})
	}
	add("u1", 10)
	add("u1", 10)
	add("u2", 5)
	require.Equal(t, Usage{Input: 15, CostMicros: 30, Of: 2}, row.Usage)
	for i := range usageWindow {
		add(fmt.Sprint(i), 1)
	}
	require.Len(t, row.UsageSeen, usageWindow, "the memory of it is bounded")
}
