package replay_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/policy/objection"
	"childlog/replay"
)

// TestTheSubjectHasAllThatDenies: what a session's log and store say reaches
// its decisions: the store's own directory, the deployment's lockdown, a root's
// own approvals.
func TestTheSubjectHasAllThatDenies(t *testing.T) {
	f := newFixture(t)
	top := f.rootWith(policy.DangerFullAccess)
	child := f.childOf(top, materialize.Request{Lockdown: []string{"my_block_edit"}}).ID
	below := f.child(child).ID
	inStore := f.decide(child, edits(t, "e1", filepath.Join(f.Store.Dir(), "journal")))
	require.Equal(t, policy.VerdictDeny, inStore.Verdict)
	require.Equal(t, policy.Rule("store_directory"), inStore.Rule)
	require.Equal(t, policy.CodeLockdown, f.decide(below, callOf(t, "e2", "My_Block_Edit", `{}`)).Code)
	root := f.root(materialize.RootRequest{Workspace: "/work", Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}, Approvals: policy.Never})
	r := callOf(t, "e3", "exec_shell", `{"command":"make"}`)
	r.Call.Escalation = &policy.Escalation{Sandbox: policy.Top(), Justification: "installs to /usr"}
	require.Equal(t, policy.CodeApprovalNever, f.decide(root, r).Code)
}

// TestCase60_NotMoreThanWasAllowed: an allowed-once of a wider sandbox does not
// cover an escalation wider still, and no call that an objector refused.
func TestCase60_NotMoreThanWasAllowed(t *testing.T) {
	f := newFixture(t)
	root := f.asking()
	asked := wants(root, "a1")
	asked.Escalation.Sandbox = f.policy(root).Sandbox.Value
	asked.Escalation.Sandbox.Network = true
	require.Equal(t, eventlog.AskAllowedOnce, f.ask(asked, replay.Human(allows)).Outcome)
	r := callOf(t, asked.Call, asked.Tool, string(asked.Args))
	r.Ask = "a1"
	wider := r
	wider.Call.Escalation = &policy.Escalation{Sandbox: policy.Top(), Justification: "installs to /usr"}
	j := f.record(root, wider)
	require.Equal(t, policy.VerdictNeedsApproval, j.Verdict)
	require.Nil(t, j.Grant)
	refused := r
	refused.Outcome = &objection.Outcome{Refused: policy.Code("objection"), By: "no-installs"}
	j = f.decide(root, refused)
	require.Equal(t, policy.VerdictDeny, j.Verdict)
	require.Nil(t, j.Grant)
	require.Equal(t, eventlog.DeciderRule, j.Decider())
	j = f.record(root, r)
	require.Equal(t, policy.CodeAllowedOnce, j.Code, "neither used it up")
}

// TestCase61_ADeniedDeadlineLatches: one recorded denial ends the session,
// whatever the times of its log say: also where only its event is earlier.
func TestCase61_ADeniedDeadlineLatches(t *testing.T) {
	f := newFixture(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.reopen(eventlog.Options{Clock: func() time.Time { return now }})
	child := f.childOf(f.editor(), materialize.Request{Want: policy.Request{WallMS: new(int64(3_600_000))}}).ID
	now = now.Add(2 * time.Hour)
	require.Equal(t, policy.CodeExpired, f.record(child, edits(t, "e1", "a")).Code)
	now = now.Add(-2 * time.Hour)
	j := f.decide(child, edits(t, "e2", "a"))
	require.Equal(t, policy.CodeExpired, j.Code)
	require.True(t, j.Moment.Expired)
	then, err := replay.DecideAt(f.ctx, f.Store, child, 0, edits(t, "e2", "a").Call)
	require.NoError(t, err)
	require.True(t, then.Moment.Expired)
}

// TestAnOutsideProviderIsAdvised: what the store can't enforce it does not call
// enforced.
func TestAnOutsideProviderIsAdvised(t *testing.T) {
	f := newFixture(t)
	child := f.childOf(f.editor(), materialize.Request{Mode: eventlog.ModeOneShot, Provider: eventlog.Provider{Name: "elsewhere"}}).ID
	f.record(child, edits(t, "e1", "a"))
	found := f.found(child, replay.DecisionFilter{})
	require.Len(t, found, 1)
	require.Equal(t, eventlog.Advisory, found[0].Enforcement)
}
