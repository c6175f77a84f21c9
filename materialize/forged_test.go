package materialize_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

// forger writes children past materialize: what a mistake elsewhere in the
// module, or somebody who links it, could bring to the writer.
type forger struct {
	*fixture
	parent uuid.UUID
	like   uuid.UUID // a child of parent, made as it should be
	facts  map[string]map[string]any
}

// newForger makes a tree in which everything that a receipt can hold is there.
func newForger(t *testing.T) *forger {
	f := newFixture(t)
	f.rules([]string{"chmod*", "curl"}, []string{"secrets"})
	scope := &[]string{"src", "docs"}
	deadline := time.Now().Add(time.Hour).UnixMilli()
	root, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{Workspace: workspace, Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}, MaxDepth: 5,
		Profile: &materialize.Profile{Own: policy.Wish{Permissions: &policy.Permissions{}, DeniedTools: []string{"rm"}, DeadlineMS: &deadline},
			Delegable: &policy.Wish{WriteScope: scope}, Explicit: []policy.ExplicitGrant{{ID: "worker", ExpiresMS: deadline}}, Lockdown: []string{"doc_edit"},
			Choices: policy.Choices{Role: policy.RoleImplement, Model: "m", Provider: "p", Effort: "high"}, Principal: eventlog.Principal{Kind: eventlog.PrincipalPerson, Ref: "p-1"}}})
	require.NoError(t, err)
	parent := f.made(root.ID, materialize.Request{Want: policy.Request{Wish: policy.Wish{Permissions: &policy.Permissions{}}, Delegable: &policy.Wish{WriteScope: scope}}})
	want := policy.Request{Wish: policy.Wish{DeniedTools: []string{"sed"}, WriteScope: &[]string{"src/a"}, Tools: must(policy.ToolsList("read", "edit", "doc")), Permissions: &policy.Permissions{Write: true, Network: true},
		MaxSteps: new(uint64(9)), MaxChildren: new(4), Providers: must(policy.NameSetOf("p"))},
		Delegable: &policy.Wish{WriteScope: &[]string{"src"}}, ExplicitGrants: []policy.ExplicitGrant{{ID: "again", ExpiresMS: deadline}}, MergePolicy: policy.MergeTransactionalWrite}
	like := f.made(parent.ID, materialize.Request{Prompt: "p", ToolCall: "c1", Want: want, Palette: must(policy.NewPalette(policy.PaletteEntry{Name: "lint", Class: policy.ClassRead}))})
	fg := &forger{fixture: f, parent: parent.ID, like: like.ID, facts: map[string]map[string]any{}}
	for _, ev := range f.log(like.ID) {
		fg.facts[ev.Type] = must(ev.Facts.Map())
	}
	require.NotEmpty(t, like.Policy.Granted.Cuts)
	require.NotEmpty(t, like.Policy.Granted.Relied)
	require.Len(t, like.Policy.Granted.Granted.Explicit, 2)
	return fg
}

func (f *fixture) rules(tools, paths []string) {
	f.t.Helper()
	_, err := replay.SetRules(f.ctx, f.Store, replay.RuleFile{DenyTools: tools, DenyPaths: paths})
	require.NoError(f.t, err)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// layout is the order of a child's first events.
var layout = []string{eventlog.TypeSessionCreated, eventlog.TypeDelegationGranted, eventlog.TypeSandboxMode, eventlog.TypeApprovalPolicy}

// write brings a child to the writer that is like the one made, but for what
// change does to the facts. With resum the fingerprint is that of what is
// granted then: a forger can compute it.
func (f *forger) write(resum bool, change func(map[string]map[string]any)) (uuid.UUID, error) {
	id := uuid.New()
	all := map[string]map[string]any{}
	for typ, m := range f.facts {
		all[typ] = renamed(m, f.like, id).(map[string]any)
	}
	fingerprint(all[eventlog.TypeDelegationGranted])
	change(all)
	if resum {
		fingerprint(all[eventlog.TypeDelegationGranted])
	}
	var events []eventlog.NewEvent
	for _, typ := range layout {
		raw, err := eventlog.MakeFacts(all[typ])
		if err != nil {
			return id, err
		}
		events = append(events, eventlog.NewEvent{Type: typ, Facts: raw})
	}
	started, err := eventlog.MakeFacts(map[string]any{"child": id, "receipt": eventlog.Digest(events[1].Facts)})
	require.NoError(f.t, err)
	_, err = f.Store.Transact(f.ctx, eventlog.EntryDelegation, func(*eventlog.View) ([]eventlog.Batch, error) {
		return []eventlog.Batch{{Session: id, Events: events}, {Session: f.parent, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: eventlog.TypeDelegationStarted, Facts: started}}}}, nil
	})
	return id, err
}

// fingerprint sets the fingerprint of a receipt that can be read.
func fingerprint(receipt map[string]any) {
	raw, err := eventlog.MakeFacts(receipt)
	if err != nil {
		return
	}
	if g, err := eventlog.ParseGranted(&eventlog.Event{Type: eventlog.TypeDelegationGranted, Version: eventlog.ReceiptVersion, Facts: raw}); err == nil {
		sum := policy.FingerprintOf(g.Choices.Role, g.Granted).Sum
		receipt["fingerprint"] = sum[:]
	}
}

// renamed copies a value and puts one id in the place of another.
func renamed(v any, from, to uuid.UUID) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = renamed(e, from, to)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = renamed(e, from, to)
		}
		return out
	case []byte:
		if bytes.Equal(v, from[:]) {
			return slices.Clone(to[:])
		}
		return slices.Clone(v)
	}
	return v
}

// change is one way to differ at one place.
type change struct {
	path  string
	apply func(root map[string]any)
}

// changes lists all places of a value with what can be done there.
func changes(m map[string]any) (out []change) {
	var walk func(v any, path string, set func(root map[string]any, v any, remove bool))
	walk = func(v any, path string, set func(map[string]any, any, bool)) {
		for i, other := range others(v) {
			out = append(out, change{fmt.Sprintf("%s#%d", path, i), func(root map[string]any) { set(root, other, false) }})
		}
		if strings.Count(path, "/") > 0 {
			out = append(out, change{path + " removed", func(root map[string]any) { set(root, nil, true) }})
		}
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				p := path + "/" + k
				walk(v[k], p, func(root map[string]any, v any, remove bool) {
					in := at(root, path).(map[string]any)
					if in[k] = v; remove {
						delete(in, k)
					}
				})
			}
		case []any:
			for i := range v {
				walk(v[i], fmt.Sprintf("%s/%d", path, i), func(root map[string]any, v any, remove bool) {
					in := at(root, path).([]any)
					if in[i] = v; remove {
						set(root, slices.Delete(in, i, i+1), false)
					}
				})
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		walk(m[k], "/"+k, func(root map[string]any, v any, remove bool) {
			if root[k] = v; remove {
				delete(root, k)
			}
		})
	}
	out = append(out, change{"/note", func(root map[string]any) { root["note"] = "free text" }})
	return out
}

// at finds a place by its path.
func at(root any, path string) any {
	for _, name := range strings.Split(path, "/")[1:] {
		switch v := root.(type) {
		case map[string]any:
			root = v[name]
		case []any:
			var i int
			fmt.Sscan(name, &i)
			root = v[i]
		}
	}
	return root
}

// others are values to put in the place of one.
func others(v any) []any {
	switch v := v.(type) {
	case bool:
		return []any{!v, nil, 1}
	case int64:
		return []any{v + 1, int64(0), int64(1) << 53, "1"}
	case string:
		return []any{"", "free text of somebody", v + "x", "../x", "full", nil}
	case []byte:
		flipped := slices.Clone(v)
		flipped[0] ^= 1
		return []any{flipped, make([]byte, len(v)), v[1:]}
	case []any:
		out := []any{[]any{}, nil, map[string]any{}, append(slices.Clone(v), "free text of somebody"), append(slices.Clone(v), int64(1)), append(slices.Clone(v), int64(-1))}
		if len(v) > 0 {
			out = append(out, append(slices.Clone(v), v[0]), append(slices.Clone(v[1:]), v[0]))
		}
		return out
	case map[string]any:
		with := maps.Clone(v)
		with["note"] = "free text of somebody"
		return []any{map[string]any{}, nil, []any{}, with}
	}
	return []any{"x", []any{}}
}

// TestForgedReceiptAtEveryPlace: one value of a child's first events is another
// one, at every place that there is, deep inside of halves too, with and
// without a fingerprint that fits. The writer refuses it, or every reader takes
// it: the child is not lost, holds no more than its parent can hand on, keeps
// all deny rules, operator rules, locked tools and deadlines, and carries no
// text that nobody could redact.
func TestForgedReceiptAtEveryPlace(t *testing.T) {
	f := newForger(t)
	parent := f.policy(f.parent)
	ceiling := parent.Authority.Ceiling()
	rules, err := replay.Rules(f.ctx, f.Store)
	require.NoError(t, err)
	_, err = f.write(false, func(map[string]map[string]any) {})
	require.NoError(t, err, "unchanged it is a child like any other")

	accepted, tried := map[string]bool{}, 0
	for _, typ := range layout {
		for _, c := range changes(f.facts[typ]) {
			for _, resum := range []bool{false, true} {
				if resum && !strings.HasPrefix(c.path, "/granted") && !strings.HasPrefix(c.path, "/operator") && !strings.HasPrefix(c.path, "/role") && !strings.HasPrefix(c.path, "/denied_tools") {
					continue // no part of what the fingerprint is of
				}
				where := typ + c.path
				tried++
				id, err := f.write(resum, func(all map[string]map[string]any) { c.apply(all[typ]) })
				if err != nil {
					require.True(t, refused(err), "%s: %v", where, err)
					_, err = f.Store.Row(id)
					require.ErrorIs(t, err, eventlog.ErrNotFound, where)
					continue
				}
				accepted[where] = true
				e, err := replay.Policy(f.ctx, f.Store, id, 0)
				require.NoError(t, err, "%s: a child that nobody can read", where)
				for _, h := range []policy.Half{e.Authority.Own, e.Authority.Delegable} {
					require.True(t, h.Within(ceiling), where)
				}
				require.True(t, e.Authority.Operator.Covers(rules.Union(parent.Authority.Operator)), where)
				require.Subset(t, e.Lockdown, parent.Lockdown, where)
				require.True(t, e.Sandbox.Value.Within(parent.Sandbox.Value), where)
				require.Equal(t, policy.Never, e.Approvals, where)
				require.Equal(t, parent.Principal, e.Principal, where)
				_, err = replay.Subject(f.ctx, f.Store, &e)
				require.NoError(t, err, where)
				if _, err := f.delegate(id, materialize.Request{}); err != nil {
					require.True(t, refused(err), "%s: a grandchild: %v", where, err)
				}
				for _, ev := range f.log(id) {
					if !strings.Contains(where, "write_scope") { // names of files are facts
						require.False(t, bytes.Contains(ev.Facts, []byte("free text of somebody")), where)
					}
				}
			}
		}
	}
	require.Greater(t, tried, 1500)
	require.Less(t, len(accepted), tried/4)
}

// refused reports whether an error is one that says no to an input.
func refused(err error) bool {
	for _, kind := range []error{eventlog.ErrInvalid, eventlog.ErrUnauthorized, eventlog.ErrWidening, eventlog.ErrDepth, eventlog.ErrTooLarge, eventlog.ErrExists} {
		if errors.Is(err, kind) {
			return !errors.Is(err, eventlog.ErrPolicyUnreadable)
		}
	}
	return false
}
