package replay_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

func (f *fixture) explain(id uuid.UUID, field string, at uint64) replay.Explanation {
	f.t.Helper()
	x, err := replay.Explain(f.ctx, f.Store, id, field, at)
	require.NoError(f.t, err)
	return x
}

// TestExplainAuthority tells one tree: a coordinator that may only delegate, an
// explorer below it, a worker below that, and a narrowing of the worker. Seqs
// are counted by hand.
func TestExplainAuthority(t *testing.T) {
	f := newFixture(t)
	root := f.root(materialize.RootRequest{Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}, // 1 created, 2 profile, 3 sandbox
		Profile: &materialize.Profile{Own: policy.Wish{Permissions: &policy.Permissions{}}, Delegable: &policy.Wish{},
			Explicit: []policy.ExplicitGrant{{ID: "workers-edit"}}}})
	explorer := f.childOf(root, materialize.Request{Want: policy.Request{Role: "explore"}}).ID
	worker := f.childOf(explorer, materialize.Request{Want: policy.Request{Role: "implement"}}).ID
	bare := f.editor()
	deadline := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC).UnixMilli()
	_, err := replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: worker, Reason: "r", Authority: &policy.Wish{DeadlineMS: &deadline, DeniedTools: []string{"exec_shell"}}})
	require.NoError(t, err)

	at := func(id uuid.UUID, seq uint64) policy.Origin { return policy.Origin{Session: id, Seq: seq} }
	for _, c := range []struct {
		id                     uuid.UUID
		field, value           string
		source                 policy.Source
		origin                 policy.Origin
		rule                   policy.Rule
		because, change, leads string
	}{
		{root, "grant.files", "read", policy.SourceProfile, at(root, 2), policy.RuleProfile, "stated by the profile of this root", "another root", "write"},
		{bare, "grant.files", "write", policy.SourceDefault, at(bare, 1), "", "no profile was stated", "narrow, for ever", ""},
		{root, "role", "none", policy.SourceProfile, at(root, 2), policy.RuleProfile, "profile", "fixed at creation", ""},
		{explorer, "role", "explore", policy.SourceDelegation, at(explorer, 2), policy.RuleReceipt, "granted so by the delegation", "delegate again", ""},
		{explorer, "grant.files", "read", policy.SourceRole, at(explorer, 2), policy.RuleRolePreset, "role", "under a role that is meant for it", "write"},
		{worker, "grant.shell", "inspect", policy.SourceDelegation, at(worker, 2), policy.RuleParent, "the parent could hand on no more", "may hand on more", ""},
		{worker, "deadline", "2027-01-02T03:04:05Z", policy.SourceNarrowing, at(worker, 5), policy.RuleNarrowing, "narrowed by an operator, for ever", "new delegation", ""},
		{worker, "denied_tools", "[exec_shell]", policy.SourceNarrowing, at(worker, 5), policy.RuleNarrowing, "narrowed by an operator", "never shrinks", ""},
		{worker, "lockdown", "prompt_block_append, prompt_block_delete, prompt_block_edit, prompt_block_replace", policy.SourceDelegation, at(worker, 2), policy.RuleReceipt, "no child edits", "nothing", ""},
		{worker, "operator", "none", policy.SourceDelegation, at(worker, 2), policy.RuleReceipt, "no rule was bound to the store at its capture", "narrow with rules", ""},
	} {
		x := f.explain(c.id, c.field, 0)
		require.Equal(t, c.value, x.Value, c.field)
		require.Equal(t, policy.Cause{Source: c.source, Origin: c.origin}, x.By, c.field)
		require.Equal(t, c.rule, x.DecidedBy, c.field)
		require.Contains(t, x.Rule, c.because, c.field)
		require.Contains(t, x.Change, c.change, c.field)
		require.Equal(t, c.leads, x.Chain[0].Delegable, "%s: what the root could hand on, where that is another value", c.field)
	}
	require.Equal(t, "none", f.explain(worker, "deadline", 4).Value, "before the narrowing")
	require.Equal(t, at(worker, 5), f.explain(worker, "fingerprint", 0).By.Origin)
	require.NotEqual(t, f.explain(worker, "fingerprint", 4).Value, f.explain(worker, "fingerprint", 0).Value)

	t.Run("all of them at once are each of them", func(t *testing.T) {
		all, err := replay.ExplainAll(f.ctx, f.Store, worker, 0)
		require.NoError(t, err)
		require.Len(t, all, len(replay.Fields))
		for i, field := range replay.Fields {
			x := f.explain(worker, field, 0)
			x.Chain = nil
			require.Equal(t, x, all[i])
		}
		for field := range f.policy(worker).Causes {
			require.Contains(t, replay.Fields, field)
		}
	})
	t.Run("a diff names what the narrowing took", func(t *testing.T) {
		_, _, changes, err := replay.Diff(f.ctx, f.Store, worker, 0, 0)
		require.NoError(t, err)
		var fields []string
		for _, c := range changes {
			fields = append(fields, c.Field)
			require.Equal(t, policy.SourceNarrowing, c.By.Source, c.Field)
		}
		require.Equal(t, []string{"denied_tools", "deadline"}, fields)
	})
}

// TestExplainARootUnderRules: a root's fields are as the operator rules of the
// store leave them, at the head and as they were.
func TestExplainARootUnderRules(t *testing.T) {
	f := newFixture(t)
	root := f.editor()
	require.Equal(t, "none", f.explain(root, "operator", 0).Value)
	_, err := replay.SetRules(f.ctx, f.Store, replay.RuleFile{DenyTools: []string{"fetch_url"}, DenyPaths: []string{"a b"}})
	require.NoError(t, err)
	rules := policy.Cause{Source: policy.SourceOperator, Origin: policy.Origin{Session: eventlog.StoreSession, Seq: 2}}
	for field, value := range map[string]string{"operator": `path "a b", tool fetch_url`, "denied_tools": "[fetch_url]", "grant.network": "no", "permissions.network": "no"} {
		x := f.explain(root, field, 0)
		require.Equal(t, value, x.Value, field)
		require.Equal(t, rules, x.By, field)
		require.Contains(t, x.Rule, "seq 2 of the store's own log", field)
		require.Contains(t, x.Change, "an operator", field)
	}
	require.Equal(t, "yes", f.explain(root, "grant.network", 2).Value, "before the rules")
	require.Equal(t, policy.SourceDefault, f.explain(root, "grant.files", 0).By.Source, "what they leave alone is not theirs")
}

// TestDiffBeginsWhereTheCreationWasWhole: what a root was created with is no
// change, a switch right after it is one.
func TestDiffBeginsWhereTheCreationWasWhole(t *testing.T) {
	f := newFixture(t)
	root := f.root(materialize.RootRequest{Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}, Approvals: policy.Ask, Profile: &materialize.Profile{}})
	f.switchTo(root, policy.ReadOnly) // seq 5
	a, b, changes, err := replay.Diff(f.ctx, f.Store, root, 0, 0)
	require.NoError(t, err)
	require.Equal(t, uint64(4), a.Seq)
	require.Equal(t, uint64(5), b.Seq)
	require.NotEmpty(t, changes)
	_, _, changes, err = replay.Diff(f.ctx, f.Store, root, 4, 4)
	require.NoError(t, err)
	require.Empty(t, changes)
	require.Equal(t, uint64(1), f.policy(root).BornSeq, "its policy can be asked for from the first event on")
	plain := f.root(materialize.RootRequest{})
	f.switchTo(plain, policy.ReadOnly)
	a, _, _, err = replay.Diff(f.ctx, f.Store, plain, 0, 0)
	require.NoError(t, err)
	require.Equal(t, uint64(1), a.Seq)
}

// TestExplainEvents: what each kind of event is and did.
func TestExplainEvents(t *testing.T) {
	f := newFixture(t)
	root := f.editor() // 1 created, 2 sandbox
	f.say(root, 0, event(t, "user/message"))
	child := f.childOf(root, materialize.Request{Want: policy.Request{Role: "explore"}, Fork: 3}).ID // 1 created, 2 copy, 3 end-seed, 4 receipt, 5 sandbox, 6 pin
	f.narrow(child, policy.ReadOnly, false)                                                          // 7
	j := f.record(child, edits(t, "e1", "a"))                                                        // 8, 9
	explain := func(id uuid.UUID, seq uint64) replay.EventExplanation {
		x, err := replay.ExplainEvent(f.ctx, f.Store, id, seq)
		require.NoError(t, err)
		require.Equal(t, seq, x.Event.Seq)
		return x
	}
	fields := func(x replay.EventExplanation) (out []string) {
		for _, c := range x.Changes {
			out = append(out, c.Field)
			require.Equal(t, x.Born, c.From == "", c.Field)
			require.NotEmpty(t, c.To)
		}
		return out
	}
	x := explain(root, 2)
	require.True(t, x.Born)
	require.Contains(t, fields(x), "sandbox.mode")
	require.NotNil(t, x.Policy)
	x = explain(child, 2)
	require.Contains(t, x.What, "copied from the parent's log")
	require.Empty(t, x.Changes)
	require.Nil(t, x.Policy)
	require.Contains(t, x.Note, "inside the delegation")
	x = explain(child, 4)
	require.Equal(t, "the receipt of the delegation", x.What)
	require.Contains(t, fields(x), "grant.files")
	require.NotContains(t, fields(x), "approvals")
	require.Equal(t, []string{"approvals"}, fields(explain(child, 6)))
	x = explain(child, 7)
	require.False(t, x.Born)
	require.Equal(t, []string{"sandbox", "sandbox.mode", "sandbox.writable_roots", "sandbox.exclude_tmpdir_env_var", "sandbox.exclude_slash_tmp", "bound"}, fields(x))
	require.Equal(t, policy.ReadOnly, x.Policy.Sandbox.Value.Mode)
	require.Equal(t, "an event of type tool/call", explain(child, 8).What)
	x = explain(child, 9)
	require.NotNil(t, x.Decision)
	require.Equal(t, uint64(8), x.Decision.CallSeq)
	require.Equal(t, j.Reason(), x.Decision.Reason)
	require.Equal(t, j.Decision.Change(&j.Subject), x.Decision.Change)
	require.Equal(t, "grant.files", x.Decision.Field)
	require.Equal(t, uint64(7), x.Decision.EvaluatedSeq)
	require.Len(t, x.Decision.Chain, 2)

	for _, seq := range []uint64{0, 10} {
		_, err := replay.ExplainEvent(f.ctx, f.Store, child, seq)
		require.ErrorIs(t, err, eventlog.ErrNotFound)
	}
	_, err := replay.ReadDecision(f.ctx, f.Store, child, 8)
	require.ErrorIs(t, err, eventlog.ErrNotFound)
}

// TestWhereARightWasLost: the chain of the field that decided, and the session
// from which on the reason stands.
func TestWhereARightWasLost(t *testing.T) {
	f := newFixture(t)
	root := f.editor()
	a := f.childOf(root, materialize.Request{Want: policy.Request{Wish: policy.Wish{WriteScope: &[]string{"src"}}}}).ID
	b := f.child(a).ID
	no := false
	c := f.childOf(b, materialize.Request{Want: policy.Request{Wish: policy.Wish{Spawn: &no}}}).ID
	f.narrow(b, policy.ReadOnly, false) // after c: its future alone
	escalated := edits(t, "e2", "src/a")
	escalated.Call.Escalation = &policy.Escalation{Sandbox: policy.Top(), Justification: "j"}
	for name, w := range map[string]struct {
		id    uuid.UUID
		r     replay.CallRequest
		field string
		lost  uuid.UUID
	}{
		"the scope of an ancestor": {c, edits(t, "e1", "docs/a"), "grant.write_scope", a},
		"its own leave":            {c, callOf(t, "e1", "spawn_agent", `{}`), "grant.spawn", c},
		"its own narrowing":        {b, edits(t, "e1", "src/a"), "sandbox.mode", b},
		"what the root never had":  {c, callOf(t, "e1", "WebFetch", `{}`), "sandbox.network", root},
		"the pin of any child":     {c, escalated, "approvals", a},
	} {
		x, err := replay.ExplainCall(f.ctx, f.Store, w.id, w.r.Call, 0)
		require.NoError(t, err)
		require.Equal(t, w.field, x.Field, "%s: %s", name, x.Reason)
		require.NotEqual(t, -1, x.LostAt, name)
		require.Equal(t, w.lost, x.Chain[x.LostAt].Session, "%s: %s", name, x.Reason)
		require.NotEmpty(t, x.Change, name)
	}
	x, err := replay.ExplainCall(f.ctx, f.Store, c, edits(t, "e1", "src/a").Call, 0)
	require.NoError(t, err)
	require.True(t, x.Allowed(), x.Reason)
	require.Equal(t, -1, x.LostAt)
	require.Empty(t, x.Change)
	require.Empty(t, x.Chain)
}
