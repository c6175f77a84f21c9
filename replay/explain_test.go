package replay_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

// want is what a field must say: its value, and the kind, session and seq of
// the event that set it. The expectations below are written down from the
// story that is told, not computed by the module.
type want struct {
	value string
	src   policy.Source
	id    uuid.UUID
	seq   uint64
}

func (f *fixture) explained(id uuid.UUID, at uint64, wants map[string]want) {
	f.t.Helper()
	expected := 0
	for _, field := range replay.Fields {
		x, err := replay.Explain(f.ctx, f.Store, id, field, at)
		require.NoError(f.t, err)
		w, ok := wants[field]
		if expected++; !ok { // of what is held beside the sandbox, see explainfields_test.go
			expected--
			w = want{x.Value, x.By.Source, x.By.Origin.Session, x.By.Origin.Seq}
		}
		require.Equal(f.t, w.value, x.Value, field)
		require.Equal(f.t, policy.Cause{Source: w.src, Origin: policy.Origin{Session: w.id, Seq: w.seq}}, x.By, field)
		require.NotEmpty(f.t, x.Rule, field)
		require.NotEmpty(f.t, x.Change, field)
		require.Equal(f.t, field, x.Field)
		last := x.Chain[len(x.Chain)-1]
		require.Equal(f.t, id, last.Session, field)
		require.Equal(f.t, x.Value, last.Value, field)
		require.Equal(f.t, x.By, last.By, field)
		require.Equal(f.t, x.Seq, last.Seq, field)
	}
	require.Len(f.t, wants, expected, "every expectation is of a field")
}

// with copies wants with some of them replaced.
func with(wants map[string]want, changed map[string]want) map[string]want {
	out := map[string]want{}
	for k, v := range wants {
		out[k] = v
	}
	for k, v := range changed {
		out[k] = v
	}
	return out
}

// TestExplainEveryField tells the story of one tree: root, child, grandchild,
// each with its own switch, then a narrowing. Seqs are counted by hand.
func TestExplainEveryField(t *testing.T) {
	f := newFixture(t)
	root := f.root(materialize.RootRequest{Default: &policy.Setting{Mode: policy.WorkspaceWrite}}) // seq 1
	ww := "workspace-write /srv/project (network off)"
	created := want{src: policy.SourceDefault, id: root, seq: 1}
	by := func(value string, src policy.Source, id uuid.UUID, seq uint64) want { return want{value, src, id, seq} }
	set := func(value string) want { w := created; w.value = value; return w }
	rootWants := map[string]want{"sandbox": set(ww), "sandbox.mode": set("workspace-write"), "sandbox.writable_roots": set(workspace),
		"sandbox.network": set("false"), "sandbox.exclude_tmpdir_env_var": set("false"), "sandbox.exclude_slash_tmp": set("false"), "approvals": set("ask"),
		"bound": set("none: nothing has limited it yet"), "defaults": set("sandbox " + ww + ", approvals ask"), "depth": set("0"), "max_depth": set("3")}
	f.explained(root, 0, rootWants)

	t.Run("a switched root", func(t *testing.T) {
		on := true
		_, _, err := replay.Switch(f.ctx, f.Store, root, replay.Change{Approvals: policy.Never, // seq 2 and 3
			Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: []string{"/var/data"}, Network: &on, ExcludeSlashTmp: true}})
		require.NoError(t, err)
		sw := func(value string) want { return by(value, policy.SourceSwitch, root, 2) }
		f.explained(root, 0, with(rootWants, map[string]want{"sandbox": sw("workspace-write /srv/project, /var/data (network on, no /tmp)"), "sandbox.mode": sw("workspace-write"),
			"sandbox.writable_roots": sw("/srv/project, /var/data"), "sandbox.network": sw("true"), "sandbox.exclude_tmpdir_env_var": sw("false"),
			"sandbox.exclude_slash_tmp": sw("true"), "approvals": by("never", policy.SourceSwitch, root, 3)}))
		f.explained(root, 1, rootWants)
	})

	child := f.child(root).ID // 1 created, 2 receipt, 3 sandbox, 4 pin; root's seq 4 is delegation/started
	captured := func(value string) want { return by(value, policy.SourceDelegation, child, 3) }
	childMade := func(value string) want { return by(value, policy.SourceDefault, child, 1) }
	full := "workspace-write /srv/project, /var/data (network on, no /tmp)"
	childWants := map[string]want{"sandbox": captured(full), "sandbox.mode": captured("workspace-write"), "sandbox.writable_roots": captured("/srv/project, /var/data"),
		"sandbox.network": captured("true"), "sandbox.exclude_tmpdir_env_var": captured("false"), "sandbox.exclude_slash_tmp": captured("true"),
		"approvals": by("never", policy.SourcePin, child, 4), "bound": captured(full), "defaults": childMade("sandbox " + ww + ", approvals ask"),
		"depth": childMade("1"), "max_depth": childMade("3")}
	f.explained(child, 0, childWants)

	// The child switches off the network and one root at seq 5, and is narrowed
	// at seq 6 to another root of its.
	_, _, err := replay.Switch(f.ctx, f.Store, child, replay.Change{Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite, ExcludeSlashTmp: true}})
	require.NoError(t, err)
	on := true
	_, err = replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: child, Reason: "r",
		Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite, Network: &on, ExcludeTmpdirEnvVar: true}})
	require.NoError(t, err)
	sw := func(value string) want { return by(value, policy.SourceSwitch, child, 5) }
	cut := func(value string) want { return by(value, policy.SourceNarrowing, child, 6) }
	late := with(childWants, map[string]want{
		"sandbox":                        captured("workspace-write /srv/project (network off, no $TMPDIR, no /tmp)"),
		"sandbox.writable_roots":         sw(workspace),                                                              // the narrowing states it too, the switch came first
		"sandbox.network":                sw("false"),                                                                // the ceiling leaves it on
		"sandbox.exclude_tmpdir_env_var": cut("true"),                                                                // only the narrowing states it
		"bound":                          captured("workspace-write /srv/project (network on, no $TMPDIR, no /tmp)"), // its mode is the delegation's
		"sandbox.mode":                   captured("workspace-write"), "sandbox.exclude_slash_tmp": captured("true"),
	})
	f.explained(child, 0, late)
	f.explained(child, 4, childWants)

	grandchild := f.child(child).ID
	gone := func(value string) want { return by(value, policy.SourceDelegation, grandchild, 3) }
	made := func(value string) want { return by(value, policy.SourceDefault, grandchild, 1) }
	narrow := "workspace-write /srv/project (network off, no $TMPDIR, no /tmp)"
	f.explained(grandchild, 0, map[string]want{"sandbox": gone(narrow), "sandbox.mode": gone("workspace-write"), "sandbox.writable_roots": gone(workspace),
		"sandbox.network": gone("false"), "sandbox.exclude_tmpdir_env_var": gone("true"), "sandbox.exclude_slash_tmp": gone("true"),
		"approvals": by("never", policy.SourcePin, grandchild, 4), "bound": gone(narrow), "defaults": made("sandbox " + ww + ", approvals ask"), "depth": made("2"), "max_depth": made("3")})

	t.Run("the chain goes from the root to the session", func(t *testing.T) {
		f.switchTo(root, policy.ReadOnly) // the root's future is not in the chain
		x, err := replay.Explain(f.ctx, f.Store, grandchild, "sandbox", 0)
		require.NoError(t, err)
		require.Len(t, x.Chain, 3)
		require.Equal(t, []uuid.UUID{root, child, grandchild}, []uuid.UUID{x.Chain[0].Session, x.Chain[1].Session, x.Chain[2].Session})
		require.Equal(t, full, x.Chain[0].Value, "as of the capture")
		require.Equal(t, uint64(3), x.Chain[0].Seq)
		require.Equal(t, policy.SourceSwitch, x.Chain[0].By.Source)
		require.Equal(t, uint64(6), x.Chain[1].Seq)
		require.Equal(t, narrow, x.Chain[1].Value)
	})
}

// TestExplainDefaultStubEvidence: the sources beside switch and delegation,
// and the words for them.
func TestExplainDefaultStubEvidence(t *testing.T) {
	f := newFixture(t)
	plain := f.root(materialize.RootRequest{})
	child := f.child(plain).ID
	stub := f.root(materialize.RootRequest{Claimed: true, Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}})
	evidence := f.evidence(eventlog.KindChild, plain)
	narrowed := f.rootWith(policy.DangerFullAccess)
	f.narrow(narrowed, policy.ReadOnly, false)
	for _, c := range []struct {
		id           uuid.UUID
		field        string
		src          policy.Source
		seq          uint64
		rule, change string
	}{
		{plain, "sandbox", policy.SourceDefault, 1, "no switch, so the deployment default recorded at creation counts", "a switch of this session"},
		{plain, "bound", policy.SourceDefault, 1, "a root is bound by narrowings alone, and none has limited it", "narrow, for ever"},
		{plain, "defaults", policy.SourceDefault, 1, "the deployment default in force at creation", "fixed at creation"},
		{plain, "depth", policy.SourceDefault, 1, "counted from the root", "fixed at creation"},
		{child, "sandbox", policy.SourceDefault, 1, "the parent had no override", "only a new delegation"},
		{child, "bound", policy.SourceDefault, 1, "the parent had no override", "only a new delegation"},
		{child, "defaults", policy.SourceDefault, 1, "the meet of the parent's recorded default", "fixed at creation"},
		{child, "approvals", policy.SourcePin, 3, "never ask, always reject", "nothing can widen it"},
		{stub, "sandbox", policy.SourceClaimed, 2, "claimed by a parent outside the store", "a switch of this session"},
		{evidence, "sandbox", policy.SourceImport, 1, "evidence and never authority", "fresh delegation"},
		{evidence, "approvals", policy.SourceImport, 1, "evidence and never authority", "fresh delegation"},
		{narrowed, "sandbox", policy.SourceNarrowing, 3, "narrowed by an operator, for ever", "a narrowing is never undone"},
		{narrowed, "bound", policy.SourceNarrowing, 3, "narrowed by an operator, for ever", "a narrowing is never undone"},
	} {
		x, err := replay.Explain(f.ctx, f.Store, c.id, c.field, 0)
		require.NoError(t, err)
		require.Equal(t, c.src, x.By.Source, c.field)
		require.Equal(t, policy.Origin{Session: c.id, Seq: c.seq}, x.By.Origin, c.field)
		require.Contains(t, x.Rule, c.rule, c.field)
		require.Contains(t, x.Change, c.change, c.field)
	}
}

// TestExplainRefusals: an unknown field names the known ones; a seq inside the
// delegation, or beyond the head, has no policy.
func TestExplainRefusals(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.child(root).ID
	_, err := replay.Explain(f.ctx, f.Store, child, "Sandbox", 0)
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	for _, field := range replay.Fields {
		require.ErrorContains(t, err, field)
	}
	for seq := uint64(1); seq < 4; seq++ {
		_, err = replay.Policy(f.ctx, f.Store, child, seq)
		require.ErrorIs(t, err, eventlog.ErrInvalid)
		require.ErrorContains(t, err, "inside the delegation")
	}
	_, err = replay.Policy(f.ctx, f.Store, child, 5)
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	require.NotErrorIs(t, err, eventlog.ErrPolicyUnreadable)
	_, err = replay.Policy(f.ctx, f.Store, uuid.MustParse("99999999-9999-4999-8999-999999999999"), 0)
	require.ErrorIs(t, err, eventlog.ErrNotFound)

	t.Run("an ancestor that can't be read ends the chain with a note", func(t *testing.T) {
		f.fillIndex(root)
		f.damaged = true
		f.rewrite(root, flip("sandbox/mode"))
		f.open(eventlog.Options{})
		x, err := replay.Explain(f.ctx, f.Store, child, "sandbox", 0)
		require.NoError(t, err, "the child's own value does not depend on it")
		require.Len(t, x.Chain, 2)
		require.Equal(t, root, x.Chain[0].Session)
		require.NotEmpty(t, x.Chain[0].Note)
		require.Empty(t, x.Chain[0].Value)

		r := f.resume(child, replay.AsParent(root))
		require.Len(t, r.Drift, 1, "nor does its resume; what can't be compared is said")
		require.Equal(t, "unreadable", r.Drift[0].Present)
		require.Equal(t, replay.DriftParentTightened, r.Drift[0].Kind)
	})
}

// TestExplainQuotesPaths: one path can't read as two, nor disturb a terminal.
func TestExplainQuotesPaths(t *testing.T) {
	f := newFixture(t)
	root := f.root(materialize.RootRequest{Workspace: "/a, /b", Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: []string{"/c\u202e"}}})
	x, err := replay.Explain(f.ctx, f.Store, root, "sandbox.writable_roots", 0)
	require.NoError(t, err)
	require.Equal(t, `"/a, /b", "/c\u202e"`, x.Value)
}

// TestDiff: what changed between two seqs, and by which event.
func TestDiff(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	child := f.child(root).ID // whole from seq 4
	f.switchTo(child, policy.WorkspaceWrite)
	f.say(child, 0, event(t, "user/message"))
	f.narrow(child, policy.ReadOnly, false) // seq 7

	a, b, changes, err := replay.Diff(f.ctx, f.Store, child, 0, 0)
	require.NoError(t, err)
	require.Equal(t, uint64(4), a.Seq)
	require.Equal(t, uint64(7), b.Seq)
	byField := map[string]replay.FieldChange{}
	for _, c := range changes {
		byField[c.Field] = c
		require.NotEqual(t, c.From, c.To)
	}
	require.Equal(t, "danger-full-access", byField["sandbox.mode"].From)
	require.Equal(t, "read-only", byField["sandbox.mode"].To)
	require.Equal(t, policy.Cause{Source: policy.SourceNarrowing, Origin: policy.Origin{Session: child, Seq: 7}}, byField["sandbox.mode"].By)
	require.Equal(t, "everything", byField["sandbox.writable_roots"].From)
	require.Equal(t, "nothing", byField["sandbox.writable_roots"].To)
	require.Contains(t, byField, "bound")
	require.NotContains(t, byField, "approvals")
	require.NotContains(t, byField, "defaults")

	_, _, changes, err = replay.Diff(f.ctx, f.Store, child, 5, 6)
	require.NoError(t, err)
	require.NotNil(t, changes)
	require.Empty(t, changes)
	_, _, changes, err = replay.Diff(f.ctx, f.Store, child, 7, 5) // backwards is a question too
	require.NoError(t, err)
	require.NotEmpty(t, changes)

	for _, c := range []struct {
		from, to uint64
		want     error
	}{{1, 0, eventlog.ErrInvalid}, {0, 99, eventlog.ErrNotFound}, {99, 0, eventlog.ErrNotFound}, {0, 2, eventlog.ErrInvalid}} {
		_, _, _, err = replay.Diff(f.ctx, f.Store, child, c.from, c.to)
		require.True(t, errors.Is(err, c.want), "%v", err)
	}
	require.True(t, strings.HasPrefix(b.Sandbox.Cause().String(), "narrowing "))
}
