package eventlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/policy"
)

// unchanged runs fn and requires that the store, in memory and on disk, is
// what it was.
func (ts *testStore) unchanged(t *testing.T, fn func()) {
	t.Helper()
	path := filepath.Join(ts.dir, journalFile)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	rows := ts.rows()
	fn()
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after, "bytes of %s", journalFile)
	require.Equal(t, rows, ts.rows())
}

// rows lists every session's row.
func (ts *testStore) rows() (rows []Row) {
	require.NoError(ts.t, ts.EachRow(ctx, func(r *Row) (bool, error) {
		rows = append(rows, *r)
		return true, nil
	}))
	return rows
}

// TestCase55_GenericAppendWritesNoAuthority: a harness that could write a
// delegation, a decision or an operator's word could grant itself anything.
func TestCase55_GenericAppendWritesNoAuthority(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	child := ts.delegation(id, sid(2), "k")[0].Events
	decided := mustFacts(map[string]any{"ask": "a1", "outcome": "allowed-once", "decider": "human"})
	decision := mustFacts(map[string]any{"call": "c1", "verdict": "allow"})
	forged := func(typ string, facts Facts) NewEvent { return NewEvent{Type: typ, Facts: facts} }
	with := func(ev NewEvent, src Source) NewEvent { ev.Source = src; return ev }

	attempts := map[string]NewEvent{
		"delegation/granted":       forged(TypeDelegationGranted, child[1].Facts),
		"session/created":          forged(TypeSessionCreated, child[0].Facts),
		"approval/decided":         forged(TypeApprovalDecided, decided),
		"tool/decision":            forged(TypeToolDecision, decision),
		"sandbox/mode":             forged(TypeSandboxMode, SandboxFacts(policy.Top())),
		"a closed family's future": forged("policy/widened", nil),
		"the store's own family":   forged("store/rollback-accepted", nil),
		"an inherited event":       {Type: "tool/call", Facts: mustFacts(map[string]any{"call": "c", "tool": "t"}), Inherited: &Ref{Session: id, Seq: 1}},
		"a time of its own":        {Type: "user/message", Time: time.Unix(1, 0)},
	}
	for _, src := range []Source{SourceDelegation, SourceOperator, SourceImport, SourceStore, 99} {
		attempts["source "+src.String()] = with(text("x"), src)
	}
	for name, ev := range attempts {
		t.Run(name, func(t *testing.T) {
			ts.unchanged(t, func() {
				_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{ev}})
				require.ErrorIs(t, err, ErrUnauthorized)
				_, err = ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("first"), ev}})
				require.ErrorIs(t, err, ErrUnauthorized, "nor behind a harmless event")
				require.ErrorContains(t, err, "event 2: ")
			})
		})
	}
	_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{with(text("x"), SourceUser), with(text("x"), SourceRuntime)}})
	require.NoError(t, err, "the sources that a harness has")
}

// TestEntryPointsWriteTheirOwnTypesOnly spells out who may write what.
func TestEntryPointsWriteTheirOwnTypesOnly(t *testing.T) {
	var out strings.Builder
	entries := []string{entryHarness: "harness", EntryCreate: "create", EntryDelegation: "delegation", EntryOperator: "operator", EntryRuntime: "runtime", EntryImport: "import", EntryStore: "store", EntryErase: "erase"}
	for e, name := range entries {
		var types []string
		for typ := range coreTypes() {
			types = append(types, typ)
		}
		types = append(types, "plugin/note", "store/anything", "content/anything")
		for _, typ := range sorted(types) {
			var sources []string
			for src := SourceDelegation; src <= SourceRuntime; src++ {
				if Entry(e).allows(typ, src) {
					sources = append(sources, src.String())
				}
			}
			if len(sources) > 0 {
				out.WriteString(name + " " + typ + " " + strings.Join(sources, ",") + "\n")
			}
		}
	}
	golden(t, "entries.golden", out.String())

	ts := newStore(t)
	_, err := ts.Transact(ctx, entryHarness, func(*View) ([]Batch, error) { return nil, nil })
	require.ErrorIs(t, err, ErrInvalid, "a harness has Append")
	_, err = ts.Transact(ctx, EntryStore+1, func(*View) ([]Batch, error) { return nil, nil })
	require.ErrorIs(t, err, ErrInvalid)
	_, err = ts.Transact(ctx, EntryCreate, nil)
	require.ErrorIs(t, err, ErrInvalid)
}

// TestFreeTextIsNoFact: facts are never redacted, so nothing personal may get
// into them.
func TestFreeTextIsNoFact(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	for name, facts := range map[string]map[string]any{
		"a sentence":               {"note": "please delete the file"},
		"a sentence in a list":     {"notes": []any{"ok", "not ok at all"}},
		"a sentence deep inside":   {"a": map[string]any{"b": map[string]any{"c": "two words"}}},
		"a sentence as a key":      {"the secret is": 1},
		"a sentence as a deep key": {"a": map[string]any{"the secret": 1}},
		"a line break":             {"note": "a\nb"},
		"a control character":      {"note": "a\x1b[0m"},
		"another script":           {"note": "пароль"},
		"a long code":              {"note": strings.Repeat("x", 257)},
		"bytes that may be text":   {"note": []byte("please delete the file")},
		"a key of no length":       {"": 1},
	} {
		_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: "plugin/note", Facts: goldenFacts(t, facts)}}})
		require.ErrorIs(t, err, ErrInvalid, name)
		require.ErrorContains(t, err, "facts/", name)
	}
	ok := map[string]any{"code": "mcp__files.read:v1/x@host#3+a=b-c", "n": -3, "yes": true, "none": nil, "empty": "", "id": sid(1), "hash": Hash{}, "list": []any{"a", 1},
		"map": map[string]any{"a": map[string]any{"b": "c"}}}
	_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: "plugin/note", Facts: goldenFacts(t, ok)}}})
	require.NoError(t, err)
	deep := map[string]any{}
	for at, i := deep, 0; i < 60; i++ { // names add up to more than a code may have
		next := map[string]any{}
		at["a-name-of-some-length"] = next
		at = next
	}
	_, err = ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: "plugin/note", Facts: goldenFacts(t, deep)}}})
	require.NoError(t, err)
}

// TestFactsFollowTheirSchema: a required fact that is missing, one of another
// kind, one that a strict type does not know.
func TestFactsFollowTheirSchema(t *testing.T) {
	for _, c := range []struct {
		typ, want string
		facts     map[string]any
	}{
		{TypeToolCall, "facts/call: required", map[string]any{"tool": "t"}},
		{TypeToolCall, "facts/tool: want a code", map[string]any{"call": "c", "tool": 7}},
		{TypeToolCall, "", map[string]any{"call": "c", "tool": "t", "extra": 1}},
		{TypeTurnStart, "facts/turn: want an integer of 0 or more", map[string]any{"turn": -1}},
		{TypeSessionEndSeed, "facts/extra: unknown", map[string]any{"extra": 1}},
		{TypeControlInterrupt, "facts/keep_inbox: want true or false", map[string]any{"by": "operator", "keep_inbox": 1}},
		{TypeDelegationStarted, "facts/child: want an id of 16 bytes", map[string]any{"child": []byte("short"), "receipt": Hash{}}},
		{TypeDelegationStarted, "facts/receipt: want a hash of 32 bytes", map[string]any{"child": sid(1), "receipt": sid(1)}},
		{TypePolicyNarrowed, "facts/ceiling: want a map", map[string]any{"by": "x", "ceiling": "all"}},
		{TypeInboxClaimed, "facts/messages: want a list", map[string]any{"messages": 1, "epoch": 1}},
	} {
		err := checkFacts(c.typ, goldenFacts(t, c.facts))
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, c.typ+": "+c.want)
	}
}

// TestUnknownTypeOfAClosedFamily: it may narrow something, so no version
// writes what it does not know itself.
func TestUnknownTypeOfAClosedFamily(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.unchanged(t, func() {
		_, err := ts.transact(EntryOperator, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: "policy/widened"}}})
		require.ErrorIs(t, err, ErrUnknownType)
		require.ErrorContains(t, err, "policy/widened")
		_, err = ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: "Plugin/note"}}})
		require.ErrorIs(t, err, ErrInvalid)
		_, err = ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: "plugin/" + strings.Repeat("x", 60)}}})
		require.ErrorIs(t, err, ErrTooLarge)
	})
	for typ, ok := range map[string]bool{"a/b": true, "a.b-1/c/d": true, "a": false, "/b": false, "a/": false, "a/B": false, "a/b c": false, "": false, "ä/b": false} {
		require.Equal(t, ok, CheckType(typ) == nil, typ)
	}
}

// TestCreatedIsTheFirstEvent: a second one would replace what the session is.
func TestCreatedIsTheFirstEvent(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	again := rootEvents(id, "again")[0]
	ts.unchanged(t, func() {
		_, err := ts.transact(EntryCreate, Batch{Session: id, Expect: Any(), Events: []NewEvent{again}})
		require.ErrorIs(t, err, ErrExists)
		_, err = ts.transact(EntryCreate, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: TypeApprovalPolicy, Facts: ApprovalFacts(policy.Never)}, again}})
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, "event 2: session/created is the first event of a session")
		_, err = ts.Append(ctx, Batch{Session: sid(9), Expect: Any(), Events: []NewEvent{text("x")}})
		require.ErrorIs(t, err, ErrNotFound, "nothing begins without it")
	})
}

// TestClaimsAreForImporters: a native event that claims where it came from
// would borrow the standing of an imported one.
func TestClaimsAreForImporters(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	_, err := ts.transact(EntryOperator, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: TypeSandboxMode, Facts: ImportedSandboxFacts(policy.Top(), ClaimedDelegation)}}})
	require.ErrorIs(t, err, ErrUnauthorized)
	_, err = ts.transact(EntryImport, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("x")}})
	require.ErrorIs(t, err, ErrUnauthorized, "a native session takes no imported events")

	created := Created{Kind: KindRoot, Root: sid(2), Mode: ModeOneShot, Evidence: true, Defaults: readOnlyDefaults()}
	_, err = ts.transact(EntryImport, Batch{Session: sid(2), Events: []NewEvent{{Type: TypeSessionCreated, Facts: created.Facts()},
		{Type: TypeSandboxMode, Facts: ImportedSandboxFacts(policy.Top(), ClaimedDelegation), Time: time.Unix(7, 0)}}})
	require.NoError(t, err)
	_, err = ts.Append(ctx, Batch{Session: sid(2), Expect: Any(), Events: []NewEvent{text("x")}})
	require.ErrorIs(t, err, ErrEvidence)
	for _, y := range []int{1969, 2262} {
		_, err = ts.transact(EntryImport, Batch{Session: sid(2), Expect: Any(), Events: []NewEvent{{Type: "user/message", Time: time.Date(y, 6, 1, 0, 0, 0, 0, time.UTC)}}})
		require.ErrorIs(t, err, ErrInvalid, "nanoseconds of this year don't fit")
	}
}
