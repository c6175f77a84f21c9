package eventlog

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/policy"
)

// TestForgedProfileIsRefused: a profile anywhere but right behind the creation
// of a root, once, would be found out by every reader, for whom the root is
// lost then; so would one that can't be read. Free text gets in nowhere.
func TestForgedProfileIsRefused(t *testing.T) {
	ts := newStore(t)
	root := ts.root(sid(1))
	child := ts.child(root, sid(2), "k")
	full := must(Profile{Authority: policy.TopAuthority(), Choices: policy.Choices{Role: policy.RoleGeneral}, Lockdown: []string{"doc_edit"}}.Facts())
	profile := NewEvent{Type: TypePolicyProfile, Facts: full}
	with := func(change func(map[string]any)) NewEvent {
		m := must(full.Map())
		change(m)
		return NewEvent{Type: TypePolicyProfile, Facts: must(MakeFacts(m))}
	}
	sandbox := NewEvent{Type: TypeSandboxMode, Facts: SandboxFacts(policy.Sandbox{Mode: policy.ReadOnly}.Canonical())}
	created := rootEvents(sid(9), "x")[0]
	for name, events := range map[string][]NewEvent{
		"behind the sandbox":            {created, sandbox, profile},
		"twice":                         {created, profile, profile},
		"an index outside of the table": {created, with(func(m map[string]any) { m["own"].(map[string]any)["denied"] = []any{int64(7)} })},
		"a palette in which bash reads": {created, with(func(m map[string]any) {
			m["palette"].(map[string]any)["entries"] = []any{map[string]any{"name": "bash", "class": "read"}}
		})},
		"free text inside":     {created, with(func(m map[string]any) { m["own"].(map[string]any)["note"] = "a note" })},
		"free text for a role": {created, with(func(m map[string]any) { m["role"] = "the best role" })},
		"free text for a tool": {created, with(func(m map[string]any) { m["lockdown"] = []any{"a tool"} })},
		"a desktop":            {created, with(func(m map[string]any) { m["own"].(map[string]any)["grant"].(map[string]any)["desktop"] = true })},
		"an unknown level":     {created, with(func(m map[string]any) { m["own"].(map[string]any)["shell"] = "wide" })},
	} {
		t.Run(name, func(t *testing.T) {
			ts.unchanged(t, func() {
				_, err := ts.transact(EntryCreate, Batch{Session: sid(9), Events: events})
				require.True(t, isRefusal(err) || isUnauthorized(err), "%v", err)
			})
		})
	}
	ts.unchanged(t, func() {
		for _, id := range []uuid.UUID{root, child} {
			for _, via := range []Entry{EntryOperator, EntryRuntime, EntryCreate, EntryDelegation, EntryStore} {
				_, err := ts.transact(via, Batch{Session: id, Expect: Any(), Events: []NewEvent{profile}})
				require.ErrorIs(t, err, ErrUnauthorized)
			}
		}
	})
	_, err := ts.transact(EntryCreate, Batch{Session: sid(9), Events: []NewEvent{created, profile, sandbox}})
	require.NoError(t, err)
}

// TestForgedStoreSessionIsRefused: the store's own session takes its creation
// and rules that can be read. Anything else, once stored, would deny every
// root everything and stop every delegation. And its id is nobody else's.
func TestForgedStoreSessionIsRefused(t *testing.T) {
	ts := newStore(t)
	root := ts.root(sid(1))
	good := must(StoreRulesFacts([]string{"chmod"}, []string{"secrets"}, "operator"))
	rules := NewEvent{Type: TypeStoreRules, Facts: good}
	with := func(change func(map[string]any)) NewEvent {
		m := must(good.Map())
		change(m)
		return NewEvent{Type: TypeStoreRules, Facts: must(MakeFacts(m))}
	}
	king := StoreCreated()
	king.Facts = Created{Kind: KindRoot, Root: StoreSession, Mode: ModeContinuable, Defaults: readOnlyDefaults()}.Facts()
	bad := map[string]NewEvent{
		"another digest":      with(func(m map[string]any) { m["digest"] = Hash{1} }),
		"a rule fewer":        with(func(m map[string]any) { m["deny_tools"] = []any{} }),
		"a pattern of two *":  with(func(m map[string]any) { m["deny_tools"] = []any{"a**"} }),
		"a number for a tool": with(func(m map[string]any) { m["deny_tools"] = []any{int64(1)} }),
		"a path that climbs":  with(func(m map[string]any) { m["deny_paths"] = []any{"../x"} }),
		"a type nobody knows": {Type: "store/anything"},
	}
	for _, there := range []bool{false, true} {
		if there {
			_, err := ts.transact(EntryStore, Batch{Session: StoreSession, Events: []NewEvent{StoreCreated(), rules}})
			require.NoError(t, err)
		}
		for name, ev := range bad {
			events := []NewEvent{ev}
			if !there {
				events = []NewEvent{StoreCreated(), ev}
			}
			ts.unchanged(t, func() {
				_, err := ts.transact(EntryStore, Batch{Session: StoreSession, Expect: Any(), Events: events})
				require.Error(t, err, name)
			})
		}
		ts.unchanged(t, func() {
			_, err := ts.transact(EntryStore, Batch{Session: StoreSession, Expect: Any(), Events: []NewEvent{king, rules}})
			require.Error(t, err, "no root")
			_, err = ts.transact(EntryStore, Batch{Session: sid(9), Events: []NewEvent{StoreCreated(), rules}})
			require.ErrorIs(t, err, ErrUnauthorized, "in no other session")
			_, err = ts.transact(EntryCreate, Batch{Session: StoreSession, Events: rootEvents(StoreSession, "x")})
			require.ErrorIs(t, err, ErrUnauthorized)
			_, err = ts.transact(EntryDelegation, ts.delegation(root, StoreSession, "s")...)
			require.ErrorIs(t, err, ErrUnauthorized)
			_, err = ts.Append(ctx, Batch{Session: StoreSession, Expect: Any(), Events: []NewEvent{text("hello")}})
			require.ErrorIs(t, err, ErrUnauthorized)
			for via, ev := range map[Entry]NewEvent{
				EntryOperator: {Type: TypePolicyNarrowed, Facts: NarrowedFacts(policy.Sandbox{Mode: policy.ReadOnly}.Canonical(), "operator")},
				EntryRuntime:  {Type: TypeSessionSettled, Facts: mustFacts(map[string]any{"outcome": "completed"})},
				EntryImport:   {Type: TypeUserMessage},
			} {
				_, err = ts.transact(via, Batch{Session: StoreSession, Expect: Any(), Events: []NewEvent{ev}})
				require.ErrorIs(t, err, ErrUnauthorized)
			}
		})
	}
	// A delegation that lacks the store's rules, now that there are some.
	ts.unchanged(t, func() {
		_, err := ts.transact(EntryDelegation, ts.delegation(root, sid(9), "k")...)
		require.ErrorIs(t, err, ErrUnauthorized)
		require.ErrorContains(t, err, "operator")
	})
}

func isUnauthorized(err error) bool { return errors.Is(err, ErrUnauthorized) }
