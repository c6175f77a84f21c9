package manifest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/eventlog"
	"childlog/policy"
)

// encodeWish is the other direction of the parser: keys for what is stated.
func encodeWish(w policy.Wish) map[string]any {
	m := map[string]any{}
	if w.Permissions != nil {
		m["permissions"] = map[string]any{"write": w.Permissions.Write, "network": w.Permissions.Network}
	}
	if w.Shell != nil {
		m["shell"] = string(*w.Shell)
	}
	switch w.Tools.State() {
	case policy.StateNull:
		m["tools"] = nil
	case policy.StateList:
		m["tools"] = w.Tools.List()
	}
	if w.DeniedTools != nil {
		m["denied_tools"] = w.DeniedTools
	}
	if w.DeadlineMS != nil {
		m["deadline"] = time.UnixMilli(*w.DeadlineMS).UTC().Format(time.RFC3339Nano)
	}
	put(m, "max_steps", w.MaxSteps)
	put(m, "max_depth", w.MaxDepth)
	put(m, "max_children", w.MaxChildren)
	put(m, "spawn", w.Spawn)
	put(m, "write_scope", w.WriteScope)
	if w.Providers.Recorded() {
		m["providers"] = w.Providers.List()
	}
	if w.Capabilities.Recorded() {
		m["capabilities"] = w.Capabilities.List()
	}
	return m
}

func put[T any](m map[string]any, key string, v *T) {
	if v != nil {
		m[key] = *v
	}
}

func encode(r manifest.Request) map[string]any {
	m := encodeWish(r.Wish)
	put(m, "wall_ms", r.WallMS)
	put(m, "background", r.Background)
	for key, s := range map[string]string{"role": r.Role, "model": r.Model, "effort": r.Effort, "merge_policy": string(r.MergePolicy), "key": r.Key,
		"label": r.Label, "prompt": r.Prompt, "mode": r.Mode, "workspace": r.Workspace, "tool_call": r.ToolCall} {
		if s != "" {
			m[key] = s
		}
	}
	if r.ID != uuid.Nil {
		m["id"] = r.ID.String()
	}
	if r.Fork != 0 {
		m["fork"] = r.Fork
	}
	if r.RunBy.Name != "" {
		m["provider"] = map[string]any{"name": r.RunBy.Name, "in_process": r.RunBy.InProcess}
	}
	if r.Foreign {
		m["foreign_palette"] = true
	}
	if r.Lockdown != nil {
		m["lockdown"] = r.Lockdown
	}
	if r.Delegable != nil {
		m["delegable"] = encodeWish(*r.Delegable)
	}
	if r.ExplicitGrants != nil {
		list := []any{}
		for _, g := range r.ExplicitGrants {
			e := map[string]any{"id": g.ID}
			if g.ExpiresMS != 0 {
				e["expires"] = time.UnixMilli(g.ExpiresMS).UTC().Format(time.RFC3339Nano)
			}
			if g.Uses != 0 {
				e["uses"] = g.Uses
			}
			list = append(list, e)
		}
		m["explicit_grants"] = list
	}
	return m
}

// maybe draws nil or a value.
func maybe[T any](t *rapid.T, g *rapid.Generator[T], label string) *T {
	if !rapid.Bool().Draw(t, label+" stated") {
		return nil
	}
	return ptr(g.Draw(t, label))
}

// list draws nil, which is not stated, or a list.
func list(t *rapid.T, label string, values ...string) []string {
	if !rapid.Bool().Draw(t, label+" stated") {
		return nil
	}
	return rapid.SliceOfN(rapid.SampledFrom(values), 0, 3).Draw(t, label)
}

func nameSet(t *rapid.T, label string) policy.NameSet {
	names := list(t, label, "a", "b", "subagents")
	if names == nil {
		return policy.NameSet{}
	}
	s, err := policy.NameSetOf(names...)
	require.NoError(t, err)
	return s
}

var numbers = rapid.OneOf(rapid.Int64Range(1, 9), rapid.Just(int64(policy.MaxNumber)))

func drawWish(t *rapid.T) policy.Wish {
	w := policy.Wish{
		Shell:        maybe(t, rapid.SampledFrom([]policy.Shell{policy.ShellNone, policy.ShellReadOnly, policy.ShellFull}), "shell"),
		DeniedTools:  list(t, "denied", "bash", "exec_*", "*"),
		DeadlineMS:   maybe(t, rapid.Int64Range(1, 253402300799999), "deadline"), // to the end of the year 9999
		MaxDepth:     maybe(t, rapid.IntRange(0, 8), "depth"),
		Spawn:        maybe(t, rapid.Bool(), "spawn"),
		Providers:    nameSet(t, "providers"),
		Capabilities: nameSet(t, "capabilities"),
	}
	if rapid.Bool().Draw(t, "permissions stated") {
		w.Permissions = &policy.Permissions{Write: rapid.Bool().Draw(t, "write"), Network: rapid.Bool().Draw(t, "network")}
	}
	if n := maybe(t, numbers, "steps"); n != nil {
		w.MaxSteps = ptr(uint64(*n))
	}
	if n := maybe(t, numbers, "children"); n != nil {
		w.MaxChildren = ptr(int(*n))
	}
	if scope := list(t, "scope", "src", "./docs/", `a\b`, "é/x y"); scope != nil {
		w.WriteScope = &scope
	}
	switch rapid.IntRange(0, 2).Draw(t, "tools") {
	case 0:
		w.Tools = policy.ToolsNull()
	case 1:
		var err error
		w.Tools, err = policy.ToolsList(rapid.SliceOfN(rapid.SampledFrom([]string{"read", "Edit", "mcp__x"}), 0, 3).Draw(t, "tool names")...)
		require.NoError(t, err)
	}
	return w
}

func drawRequest(t *rapid.T) manifest.Request {
	text := func(label string, values ...string) string {
		return rapid.SampledFrom(append(values, "")).Draw(t, label)
	}
	r := manifest.Request{
		Key: text("key", "k", "run 4, call 7"), Label: text("label", "x\n\u202e<"), Prompt: rapid.String().Draw(t, "prompt"),
		Mode: text("mode", eventlog.ModeOneShot, eventlog.ModeContinuable), Workspace: text("workspace", "/srv", `C:\x`), ToolCall: text("call", "c/1"),
		Fork: rapid.Uint64Range(0, policy.MaxNumber).Draw(t, "fork"), Lockdown: list(t, "lockdown", "x", "y"), Foreign: rapid.Bool().Draw(t, "foreign"),
	}
	r.Wish = drawWish(t)
	r.WallMS, r.Background = maybe(t, numbers, "wall"), maybe(t, rapid.Bool(), "background")
	r.Role, r.Model, r.Effort = text("role", "general", "Scout"), text("model", "m/1", "~!"), text("effort", "high")
	if rapid.Bool().Draw(t, "run by") {
		r.RunBy = eventlog.Provider{Name: "deepseek", InProcess: rapid.Bool().Draw(t, "in process")}
		r.Provider = r.RunBy.Name
	}
	if rapid.Bool().Draw(t, "id stated") {
		r.ID = at.Session
	}
	if rapid.Bool().Draw(t, "delegable stated") {
		r.Delegable = ptr(drawWish(t))
		if rapid.Bool().Draw(t, "granted") {
			r.ExplicitGrants = []policy.ExplicitGrant{{ID: "g"}, {ID: "h", ExpiresMS: 1772366400250, Uses: 3}}
		}
	}
	r.MergePolicy = rapid.SampledFrom([]policy.MergePolicy{"", policy.MergeReadOnly, policy.MergeTransactionalWrite}).Draw(t, "merge")
	switch {
	case r.MergePolicy == policy.MergeReadOnly:
		r.WriteScope = nil
		if r.Delegable != nil {
			r.Delegable.WriteScope = nil
		}
	case r.MergePolicy == policy.MergeTransactionalWrite && (r.WriteScope == nil || len(*r.WriteScope) == 0):
		r.WriteScope = &[]string{"src"}
	}
	return r
}

// Whatever a request can state is read back as it was stated, absent, null and
// empty apart; the schema accepts it; and the same text gives the same request.
func TestRequestRoundTrip(t *testing.T) {
	s := validator(t, "request")
	rapid.Check(t, func(rt *rapid.T) {
		want := drawRequest(rt)
		doc, err := json.Marshal(encode(want))
		require.NoError(rt, err)
		got, err := manifest.ParseRequest(doc)
		require.NoError(rt, err, "%s", doc)
		require.Equal(rt, &want, got, "%s", doc)
		require.NoError(rt, valid(t, s, doc), "%s", doc)
	})
}

// Hostile input is refused clearly and in bounded memory, or read; never both,
// never a panic. What was read derives a child or is refused by policy.
func FuzzRequest(f *testing.F) {
	for kind, docs := range good {
		for _, doc := range docs {
			if kind == "request" {
				f.Add([]byte(doc))
			}
		}
	}
	for _, c := range bad {
		if c.kind == "request" {
			f.Add([]byte(c.doc))
		}
	}
	f.Add([]byte(strings.Repeat(`{"delegable":`, 100)))
	f.Add([]byte(`{"tools":` + strings.Repeat("[", 9000)))
	f.Add([]byte(`{"tools":["` + strings.Repeat(`a","`, 2000) + `a"]}`))
	f.Add([]byte(`{"denied_tools":["` + strings.Repeat("x", 70000) + `"]}`))
	f.Add([]byte("{\"write_scope\":[\"\xff\xfe\"]}"))
	f.Add([]byte(`{"write_scope":["\\\\?\\C:\\x","CON","a:b","` + strings.Repeat("d/", 600) + `"]}`))
	f.Add([]byte(`{"t` + "\u043e" + `ols":["read"],"r` + "\u200b" + `ole":"test"}`))
	f.Add([]byte(`{"` + strings.Repeat("k", 70000) + `":1}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		r, err := manifest.ParseRequest(doc)
		if err != nil {
			require.Nil(t, r)
			require.True(t, errors.Is(err, eventlog.ErrInvalid) || errors.Is(err, eventlog.ErrTooLarge), "%v", err)
			require.Less(t, len(err.Error()), 2048, "a refusal does not grow with what is refused")
			require.NotContains(t, err.Error(), "\n")
			return
		}
		in := policy.DeriveInput{Depth: 1, NowMS: 1, Receipt: at, Issuer: at}
		d, err := policy.Derive(policy.TopAuthority(), in, r.Request)
		if err != nil {
			require.True(t, errors.Is(err, policy.ErrInvalid) || errors.Is(err, policy.ErrDepth) || errors.Is(err, policy.ErrWidening), "%v", err)
			return
		}
		require.NoError(t, d.Granted.Validate())
		again, err := manifest.ParseRequest(doc)
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}
