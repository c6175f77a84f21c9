package materialize_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// tree is a store on which random operations run, with what was last seen of
// every session.
type tree struct {
	*eventlog.Store
	t        *rapid.T
	ctx      context.Context
	now      time.Time
	sessions []*member
	byID     map[uuid.UUID]*member
	captures []*snapshot.Capture
	keyed    map[string]keyedChild
	limits   map[policy.ExplicitGrant]uint64 // how often each grant with limited uses was relied on
}

type member struct {
	id       uuid.UUID
	parent   *member
	seen     policy.Authority
	sandbox  policy.Sandbox
	ceilings []policy.Half // everything that ever bound it or, before its birth, its parent
}

type keyedChild struct {
	parent uuid.UUID
	r      materialize.Request
	id     uuid.UUID
}

var someTools = []string{"read", "edit", "bash", "file", "doc"}

func genWish(now int64) *rapid.Generator[policy.Wish] {
	return rapid.Custom(func(t *rapid.T) (w policy.Wish) {
		has := func(what string) bool { return rapid.IntRange(0, 4).Draw(t, what) == 0 }
		if has("permissions") {
			w.Permissions = &policy.Permissions{Write: rapid.Bool().Draw(t, "write"), Network: rapid.Bool().Draw(t, "network")}
		}
		if has("shell") {
			w.Shell = new(rapid.SampledFrom([]policy.Shell{policy.ShellNone, policy.ShellReadOnly, policy.ShellFull}).Draw(t, "level"))
		}
		if has("tools") {
			w.Tools = must(policy.ToolsList(rapid.SliceOfN(rapid.SampledFrom(someTools), 0, 5).Draw(t, "names")...))
		} else if has("null") {
			w.Tools = policy.ToolsNull()
		}
		if has("denied") {
			w.DeniedTools = rapid.SliceOfN(rapid.SampledFrom([]string{"bash", "exec_shell", "fetch_*", "run_tests", "mcp__*", "rm", "RM"}), 0, 3).Draw(t, "patterns")
		}
		if has("deadline") {
			w.DeadlineMS = new(now + rapid.Int64Range(1_000_000, 9_000_000).Draw(t, "ms"))
		}
		if has("steps") {
			w.MaxSteps = new(rapid.Uint64Range(0, 5).Draw(t, "n"))
		}
		if has("depth") {
			w.MaxDepth = new(rapid.IntRange(1, 8).Draw(t, "n"))
		}
		if has("children") {
			w.MaxChildren = new(rapid.IntRange(0, 4).Draw(t, "n"))
		}
		if has("spawn") {
			w.Spawn = new(rapid.IntRange(0, 5).Draw(t, "may") > 0)
		}
		if has("scope") {
			w.WriteScope = new(rapid.SliceOfN(rapid.SampledFrom([]string{"src", "src/a", "src/a/b", "docs", "docs/x", ".git"}), 0, 3).Draw(t, "entries"))
		}
		if has("capabilities") {
			w.Capabilities = must(policy.NameSetOf(rapid.SliceOfN(rapid.SampledFrom([]string{"subagents", "mail"}), 0, 2).Draw(t, "names")...))
		}
		return w
	})
}

func (w *tree) request() (r materialize.Request) {
	now := w.now.UnixMilli()
	r.Want.Wish = genWish(now).Draw(w.t, "own")
	r.Want.Role = rapid.SampledFrom([]string{"", "", "general", "explore", "test", "worker", "planner"}).Draw(w.t, "role")
	if rapid.IntRange(0, 2).Draw(w.t, "has delegable") == 0 {
		r.Want.Delegable = new(genWish(now).Draw(w.t, "delegable"))
		if rapid.Bool().Draw(w.t, "has terms") {
			r.Want.ExplicitGrants = []policy.ExplicitGrant{w.terms()}
		}
	}
	if rapid.IntRange(0, 4).Draw(w.t, "has wall") == 0 {
		r.Want.WallMS = new(rapid.Int64Range(1_000_000, 9_000_000).Draw(w.t, "wall"))
	}
	switch rapid.IntRange(0, 6).Draw(w.t, "merge") {
	case 0:
		r.Want.MergePolicy, r.Want.WriteScope = policy.MergeReadOnly, nil
	case 1:
		r.Want.MergePolicy, r.Want.WriteScope = policy.MergeTransactionalWrite, &[]string{"src/a"}
	}
	if rapid.IntRange(0, 2).Draw(w.t, "has key") == 0 {
		r.Key = fmt.Sprint("k", len(w.keyed))
	}
	return r
}

func (w *tree) terms() policy.ExplicitGrant {
	g := policy.ExplicitGrant{ID: rapid.SampledFrom([]string{"a", "b"}).Draw(w.t, "grant"), Uses: rapid.Uint64Range(0, 2).Draw(w.t, "uses")}
	if rapid.Bool().Draw(w.t, "expires") {
		g.ExpiresMS = w.now.UnixMilli() + rapid.Int64Range(1, 60_000).Draw(w.t, "in")
	}
	return g
}

func (w *tree) policy(id uuid.UUID) replay.Effective {
	e, err := replay.Policy(w.ctx, w.Store, id, 0)
	require.NoError(w.t, err)
	return e
}

func (w *tree) add(id uuid.UUID, parent *member) *member {
	e := w.policy(id)
	m := &member{id: id, parent: parent, seen: e.Authority, sandbox: e.Sandbox.Value}
	if parent != nil {
		m.ceilings = append(m.ceilings, parent.ceilings...)
	}
	w.sessions, w.byID[id] = append(w.sessions, m), m
	return m
}

func (w *tree) root() {
	r := materialize.RootRequest{Workspace: workspace, MaxDepth: policy.HardMaxDepth, Default: &policy.Setting{Mode: policy.WorkspaceWrite}}
	if rapid.IntRange(0, 3).Draw(w.t, "has profile") > 0 {
		now := w.now.UnixMilli()
		p := &materialize.Profile{Own: genWish(now).Draw(w.t, "own")}
		if rapid.Bool().Draw(w.t, "has delegable") {
			p.Delegable = new(genWish(now).Draw(w.t, "delegable"))
			if rapid.Bool().Draw(w.t, "has terms") {
				p.Explicit = []policy.ExplicitGrant{w.terms()}
			}
		}
		r.Profile = p
	}
	made, err := materialize.Root(w.ctx, w.Store, r)
	require.NoError(w.t, err)
	w.add(made.ID, nil)
}

// born checks a child against its parent as the parent is in the log now, which
// is as it was at the commit.
func (w *tree) born(parent *member, made materialize.Session, rules policy.OperatorRules) {
	p, e, ceiling := w.policy(parent.id), w.policy(made.ID), policy.Half{}
	ceiling = p.Authority.Ceiling()
	for _, h := range []policy.Half{e.Authority.Own, e.Authority.Delegable} {
		require.True(w.t, h.Within(p.Authority.Delegable), "%v", e.Granted.Cuts)
		require.True(w.t, h.Within(ceiling), "%v", e.Granted.Cuts)
	}
	require.True(w.t, e.Authority.Operator.Covers(p.Authority.Operator.Union(rules)))
	require.True(w.t, e.Sandbox.Value.Within(p.Bound.Value))
	require.Equal(w.t, p.Depth+1, e.Depth)
	require.LessOrEqual(w.t, e.Depth, e.MaxDepth)
	require.LessOrEqual(w.t, e.MaxDepth, p.MaxDepth)

	g := e.Granted
	require.True(w.t, e.Authority.Equal(g.Granted), "the fold is what was granted")
	require.True(w.t, made.Policy.Authority.Equal(g.Granted))
	require.Equal(w.t, eventlog.Hash(policy.FingerprintOf(e.Choices.Role, e.Authority).Sum), g.Fingerprint)
	require.NoError(w.t, replay.CheckLaunch(&e, g.Fingerprint))
	require.Equal(w.t, policy.FingerprintOf("", policy.Authority{Own: p.Authority.Own, Delegable: p.Authority.Delegable}).Line, policy.FingerprintOf("", policy.Authority{Own: g.Ceiling.Own, Delegable: g.Ceiling.Delegable}).Line)
	for _, r := range g.Relied {
		if r.Uses > 0 {
			w.limits[r]++
			require.LessOrEqual(w.t, w.limits[r], r.Uses, "grant %v", r)
		}
		require.True(w.t, r.ExpiresMS == 0 || int64(g.NotBefore) < r.ExpiresMS)
	}
	if len(g.Relied) == 0 && len(p.Authority.Explicit) > 0 {
		bare := p.Authority.WithoutTerms().Ceiling()
		require.True(w.t, e.Authority.Own.Within(bare) && e.Authority.Delegable.Within(bare), "more than its parent holds, and no grant cited")
	}
	w.add(made.ID, parent)
}

func (w *tree) pick() *member { return rapid.SampledFrom(w.sessions).Draw(w.t, "session") }

func (w *tree) deep() *member { return w.sessions[len(w.sessions)-1] }

func (w *tree) rules() policy.OperatorRules {
	rules, err := replay.Rules(w.ctx, w.Store)
	require.NoError(w.t, err)
	return rules
}

func (w *tree) delegate() {
	parent := w.pick()
	if rapid.Bool().Draw(w.t, "deepest") {
		parent = w.deep()
	}
	r := w.request()
	made, err := materialize.Delegate(w.ctx, w.Store, parent.id, snapshot.Options{}, r)
	w.done(parent, r, made, err)
}

func (w *tree) done(parent *member, r materialize.Request, made materialize.Session, err error) {
	if err != nil {
		require.True(w.t, refused(err), "%v", err)
		return
	}
	require.False(w.t, made.Existing)
	if r.Key != "" {
		w.keyed[r.Key] = keyedChild{parent.id, r, made.ID}
	}
	w.born(parent, made, w.rules())
}

func (w *tree) capture() {
	parent := w.pick()
	c, err := snapshot.Take(w.ctx, w.Store, parent.id, snapshot.Options{})
	require.NoError(w.t, err)
	w.captures = append(w.captures, c)
}

func (w *tree) materialize() {
	if len(w.captures) == 0 {
		w.t.Skip("no capture")
	}
	i := rapid.IntRange(0, len(w.captures)-1).Draw(w.t, "capture")
	c := w.captures[i]
	w.captures = append(w.captures[:i:i], w.captures[i+1:]...)
	r := w.request()
	made, err := materialize.Child(w.ctx, w.Store, c, r)
	w.done(w.byID[c.Parent()], r, made, err)
}

// retry repeats a request under its key, and asks something else under it,
// whatever the parent holds by now.
func (w *tree) retry() {
	for key, k := range w.keyed {
		again, err := materialize.Delegate(w.ctx, w.Store, k.parent, snapshot.Options{}, k.r)
		require.NoError(w.t, err, key)
		require.True(w.t, again.Existing)
		require.Equal(w.t, k.id, again.ID)
		other := k.r
		other.Want.DeniedTools = append([]string{"another"}, other.Want.DeniedTools...)
		_, err = materialize.Delegate(w.ctx, w.Store, k.parent, snapshot.Options{}, other)
		require.ErrorIs(w.t, err, eventlog.ErrConflict)
		break
	}
}

func (w *tree) below(m *member) (out []*member) {
	for _, s := range w.sessions {
		for a := s; a != nil; a = a.parent {
			if a == m {
				out = append(out, s)
				break
			}
		}
	}
	return out
}

func (w *tree) narrow() {
	n := replay.Narrowing{Reason: "a test", Rules: rapid.Bool().Draw(w.t, "rules")}
	if rapid.IntRange(0, 3).Draw(w.t, "has authority") > 0 {
		n.Authority = new(genWish(w.now.UnixMilli()).Draw(w.t, "ceiling"))
	}
	if rapid.IntRange(0, 3).Draw(w.t, "has sandbox") == 0 {
		n.Sandbox = &policy.Setting{Mode: rapid.SampledFrom([]policy.Mode{policy.ReadOnly, policy.WorkspaceWrite}).Draw(w.t, "mode")}
	}
	if n.Authority == nil && n.Sandbox == nil {
		n.Rules = true
	}
	var targets []*member
	switch rapid.IntRange(0, 3).Draw(w.t, "whom") {
	case 0:
		n.All, targets = true, w.sessions
	case 1, 2:
		m := w.pick()
		n.Session, n.Subtree, targets = m.id, true, w.below(m)
	default:
		m := w.pick()
		n.Session, targets = m.id, []*member{m}
	}
	if n.Rules && w.rules().Len() == 0 && n.Authority == nil && n.Sandbox == nil {
		return
	}
	out, err := replay.Narrow(w.ctx, w.Store, n)
	require.NoError(w.t, err)
	require.Len(w.t, out, len(targets))
	rules := w.rules()
	for _, m := range targets {
		e := w.policy(m.id)
		if n.Authority != nil {
			half, err := n.Authority.Half(policy.DenyRequest, policy.Origin{Session: m.id, Seq: 1})
			require.NoError(w.t, err)
			m.ceilings = append(m.ceilings, half)
		}
		if n.Rules && !(n.All && e.Kind != eventlog.KindChild) { // roots follow the store's rules anyway
			require.True(w.t, e.Authority.Operator.Covers(rules))
		}
		if n.Sandbox != nil {
			v, err := n.Sandbox.Resolve(workspace)
			require.NoError(w.t, err)
			require.True(w.t, e.Bound.Value.Within(v))
		}
	}
}

func (w *tree) setRules() {
	_, err := replay.SetRules(w.ctx, w.Store, replay.RuleFile{
		DenyTools: rapid.SliceOfN(rapid.SampledFrom([]string{"chmod", "chmod*", "exec_shell", "curl"}), 0, 2).Draw(w.t, "tools"),
		DenyPaths: rapid.SliceOfN(rapid.SampledFrom([]string{"secrets", "src/b"}), 0, 2).Draw(w.t, "paths")})
	require.NoError(w.t, err)
}

// check: nothing that anybody held ever grew, and every ceiling still binds.
func (w *tree) check(t *rapid.T) {
	for _, m := range w.sessions {
		e := w.policy(m.id)
		a := e.Authority
		require.True(t, a.Within(m.seen), "authority never grows")
		for _, pair := range [][2]policy.Half{{a.Own, m.seen.Own}, {a.Delegable, m.seen.Delegable}} {
			require.True(t, pair[0].Profile.Denied.Covers(pair[1].Profile.Denied), "deny lists never shrink")
		}
		require.True(t, a.Operator.Covers(m.seen.Operator), "operator rules never shrink")
		require.Equal(t, len(m.seen.Explicit), len(a.Explicit))
		require.True(t, e.Sandbox.Value.Within(m.sandbox))
		for _, c := range m.ceilings {
			require.True(t, a.Own.Within(c) && a.Delegable.Within(c), "a ceiling binds for ever")
		}
		if m.parent != nil {
			require.True(t, a.Own.Profile.Denied.Covers(e.Granted.Ceiling.Own.Profile.Denied))
			require.True(t, a.Own.Profile.Denied.Covers(e.Granted.Ceiling.Delegable.Profile.Denied))
		}
		m.seen, m.sandbox = a, e.Sandbox.Value
	}
}

// Over random chains to depth 8, with random profiles, requests, explicit
// grants, operator rules that change, and narrowings of one session, of
// subtrees and of all at any moment, also between a capture and its child:
//
//   - a child never holds, nor can hand on, what its parent could not hand on
//     at that moment, all narrowings included; deadlines, deny lists and
//     operator rules go down with it;
//   - whoever was narrowed, and whoever was born below since, is within that
//     ceiling for ever; nothing that a session holds ever grows;
//   - an explicit grant is cited by each child that would be smaller without
//     it, never after it expired, and by no more of them than it has uses;
//   - the fold of a child's log is what was granted, fingerprint included: at
//     birth, after a reopening, without the index, by links and by the whole
//     log;
//   - a key and its request stand for the same child, and another request
//     conflicts, whatever the parent holds by then.
func TestPropertyAuthorityThroughTheStore(t *testing.T) {
	rapid.Check(t, func(t2 *rapid.T) {
		w := &tree{t: t2, ctx: context.Background(), now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), byID: map[uuid.UUID]*member{}, keyed: map[string]keyedChild{}, limits: map[policy.ExplicitGrant]uint64{}}
		dir := filepath.Join(t.TempDir(), "store")
		_, err := eventlog.Init(w.ctx, dir)
		require.NoError(t2, err)
		options := eventlog.Options{Clock: func() time.Time { return w.now }}
		w.Store, err = eventlog.Open(w.ctx, dir, options)
		require.NoError(t2, err)
		defer func() { _ = w.Store.Close() }()
		w.root()
		t2.Repeat(map[string]func(*rapid.T){
			"":              w.check,
			"delegate":      func(*rapid.T) { w.delegate() },
			"delegate more": func(*rapid.T) { w.delegate() },
			"capture":       func(*rapid.T) { w.capture() },
			"materialize":   func(*rapid.T) { w.materialize() },
			"narrow":        func(*rapid.T) { w.narrow() },
			"rules":         func(*rapid.T) { w.setRules() },
			"retry":         func(*rapid.T) { w.retry() },
			"time": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 30_000).Draw(t, "ms")) * time.Millisecond)
			},
		})
		for _, reindex := range []bool{false, true} {
			require.NoError(t2, w.Store.Close())
			if reindex {
				_, err := eventlog.Reindex(w.ctx, dir, options)
				require.NoError(t2, err)
			}
			w.Store, err = eventlog.Open(w.ctx, dir, options)
			require.NoError(t2, err)
			w.captures = nil
			for _, m := range w.sessions {
				e := w.policy(m.id)
				require.True(t2, e.Authority.Equal(m.seen))
				var whole []eventlog.Event
				require.NoError(t2, w.Replay(w.ctx, m.id, false, func(ev *eventlog.Event) error { whole = append(whole, *ev); return nil }))
				full, err := replay.Fold(whole)
				require.NoError(t2, err)
				require.True(t2, full.Authority.Equal(m.seen))
				require.Equal(t2, policy.FingerprintOf(e.Choices.Role, e.Authority), policy.FingerprintOf(full.Choices.Role, full.Authority))
				require.Equal(t2, e.Causes, full.Causes)
				if m.parent != nil {
					born, err := replay.Policy(w.ctx, w.Store, m.id, e.BornSeq)
					require.NoError(t2, err)
					require.True(t2, born.Authority.Equal(e.Granted.Granted))
				}
			}
			w.retry()
		}
	})
}
