package replay_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

// callOf is a request for a call with exact arguments.
func callOf(t testingT, id, tool, args string) replay.CallRequest {
	t.Helper()
	return replay.CallRequest{Call: policy.NewCall(id, tool, argsOf(t, args)), Args: []byte(args)}
}

// edits is a call that changes one file.
func edits(t testingT, id, path string) replay.CallRequest {
	t.Helper()
	return callOf(t, id, "edit", fmt.Sprintf(`{"path":%q}`, path))
}

func (f *fixture) decide(id uuid.UUID, r replay.CallRequest) replay.Judgement {
	f.t.Helper()
	j, err := replay.NewAuthorizer(f.Store, id).Decide(f.ctx, r)
	require.NoError(f.t, err)
	return j
}

func (f *fixture) record(id uuid.UUID, r replay.CallRequest) replay.Judgement {
	f.t.Helper()
	j, err := replay.NewAuthorizer(f.Store, id).Record(f.ctx, r)
	require.NoError(f.t, err)
	require.NotZero(f.t, j.DecisionSeq)
	return j
}

// found lists the recorded decisions that a filter picks.
func (f *fixture) found(id uuid.UUID, filter replay.DecisionFilter) (out []replay.Recorded) {
	f.t.Helper()
	require.NoError(f.t, replay.Decisions(f.ctx, f.Store, id, filter, func(r replay.Recorded) error { out = append(out, r); return nil }))
	return out
}

// editor is a root under workspace-write, and what it delegates may do.
func (f *fixture) editor() uuid.UUID { return f.rootWith(policy.WorkspaceWrite) }

// TestCase4_AnOperatorRuleThroughTheStore: chmod is denied by an operator when
// C is delegated. C, and G two levels down, are denied with the store's rule
// event as origin, also after the rule is lifted: only roots follow that.
func TestCase4_AnOperatorRuleThroughTheStore(t *testing.T) {
	f := newFixture(t)
	_, err := replay.SetRules(f.ctx, f.Store, replay.RuleFile{DenyTools: []string{"chmod"}})
	require.NoError(t, err)
	root := f.editor()
	c := f.child(root).ID
	g := f.child(f.child(c).ID).ID
	_, err = replay.SetRules(f.ctx, f.Store, replay.RuleFile{})
	require.NoError(t, err)
	r := callOf(t, "c1", "chmod", `{"path":"a"}`)
	for _, id := range []uuid.UUID{c, g} {
		j := f.record(id, r)
		require.Equal(t, policy.CodeOperatorDeny, j.Code)
		require.Equal(t, policy.RuleOrigin{Kind: "operator", At: policy.Origin{Session: eventlog.StoreSession, Seq: 2}}, j.Origin)
		got, err := replay.ReadDecision(f.ctx, f.Store, id, j.DecisionSeq)
		require.NoError(t, err)
		require.Equal(t, j.Origin, got.Origin)
		require.Equal(t, "chmod", got.Given)

		x, err := replay.ExplainCall(f.ctx, f.Store, id, r.Call, 0)
		require.NoError(t, err)
		require.Equal(t, "an operator rule, seq 2 of the store's own log", x.Origin)
		require.Equal(t, "operator", x.Field)
		require.Equal(t, "tool chmod", x.Chain[0].Value, "the root was under it at the capture")
		require.Equal(t, 0, x.LostAt)
	}
	require.NotEqual(t, policy.CodeOperatorDeny, f.decide(root, r).Code, "a root follows the store")
}

// TestCase22_UnreadablePolicy: a policy event of C can't be read, so every call
// is denied with that reason, and none is recorded.
func TestCase22_UnreadablePolicy(t *testing.T) {
	f := newFixture(t)
	child := f.child(f.editor()).ID
	f.fillIndex(child)
	f.damaged = true
	f.rewrite(child, flip("sandbox/mode"))
	f.open(eventlog.Options{})
	head := f.row(child).Head
	for _, tool := range []string{"read", "edit", "bash", "WebFetch", "spawn_agent", "never heard of"} {
		r := callOf(t, "c1", tool, `{"path":"a"}`)
		j := f.decide(child, r)
		require.False(t, j.Allowed(), tool)
		codes := []policy.Code{j.Code}
		for _, also := range j.AlsoDeniedBy {
			codes = append(codes, also.Code)
		}
		require.Contains(t, codes, policy.CodePolicyUnreadable, tool)
		require.ErrorIs(t, j.Failure, eventlog.ErrPolicyUnreadable)

		j, err := replay.NewAuthorizer(f.Store, child).Record(f.ctx, r)
		require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
		require.Equal(t, policy.VerdictDeny, j.Verdict)
		require.Zero(t, j.DecisionSeq)

		x, err := replay.ExplainCall(f.ctx, f.Store, child, r.Call, 0)
		require.NoError(t, err)
		require.Empty(t, x.Chain)
	}
	require.Equal(t, policy.CodePolicyUnreadable, f.decide(child, edits(t, "c1", "a")).Code)
	require.Equal(t, head, f.row(child).Head)
}

// TestCase30_ADeniedWrite: call and decision share the call's id and stand next
// to each other; rule, origin and evaluated seq are there; the counts add up.
func TestCase30_ADeniedWrite(t *testing.T) {
	f := newFixture(t)
	child := f.childOf(f.editor(), materialize.Request{Want: policy.Request{Role: "explore"}})
	for i := range 3 {
		j := f.record(child.ID, edits(t, fmt.Sprint("w", i), "src/a.go"))
		require.Equal(t, j.CallSeq+1, j.DecisionSeq)
		got, err := replay.ReadDecision(f.ctx, f.Store, child.ID, j.DecisionSeq)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("w", i), got.Call)
		require.Equal(t, policy.CodeFiles, got.Code)
		require.Equal(t, policy.RuleOrigin{Kind: "role", At: policy.Origin{Session: child.ID, Seq: child.Policy.ReceiptSeq}}, got.Origin)
		require.Equal(t, child.Policy.BornSeq, got.EvaluatedSeq)
		require.Equal(t, child.Receipt, got.Receipt)
		require.Equal(t, uint64(policy.EngineVersion), got.Engine)
		events := f.log(child.ID)
		require.Equal(t, eventlog.TypeToolCall, events[j.CallSeq-1].Type)
		require.Equal(t, got.Call, events[j.CallSeq-1].Facts.Str("call"))
		require.Equal(t, `{"path":"src/a.go"}`, string(events[j.CallSeq-1].Content))
	}
	row := f.row(child.ID)
	require.Equal(t, []eventlog.Count{{Code: "files", N: 3}}, row.Denials)
	require.Len(t, f.found(child.ID, replay.DecisionFilter{Verdict: policy.VerdictDeny}), 3)
	require.Len(t, f.found(child.ID, replay.DecisionFilter{Call: "w1"}), 1)
	require.Empty(t, f.found(child.ID, replay.DecisionFilter{Verdict: policy.VerdictAllow}))
}

// TestCase31_DenialsInTheNotice: C is denied twice and settles completed. The
// notice carries both with their reasons, each record names C and its receipt.
func TestCase31_DenialsInTheNotice(t *testing.T) {
	f := newFixture(t)
	root := f.editor()
	child := f.childOf(root, materialize.Request{Want: policy.Request{Role: "explore"}})
	a := f.activate(child.ID)
	for _, r := range []replay.CallRequest{edits(t, "d1", "a"), callOf(t, "d2", "bash", `{"command":"make"}`)} {
		r.Epoch = a.Epoch
		f.record(child.ID, r)
	}
	f.settle(child.ID, a.Epoch, "completed")
	notices, err := replay.Notices(f.ctx, f.Store, root)
	require.NoError(t, err)
	require.Len(t, notices, 1)
	require.Equal(t, uint64(2), notices[0].Denied)
	require.Equal(t, map[string]uint64{"files": 1, "shell": 1}, notices[0].Denials)
	for _, r := range f.found(child.ID, replay.DecisionFilter{}) {
		require.Equal(t, child.ID, r.Session)
		require.Equal(t, root, r.Root)
		require.Equal(t, child.Receipt, r.Receipt, "the receipt names the parent")
		require.Equal(t, a.Epoch, r.Epoch)
	}
	require.Equal(t, root, f.policy(child.ID).Granted.Parent)
}

// TestCase32_DecisionsByDecider: pin, rule and human decided one call each; a
// filter by decider finds exactly that one.
func TestCase32_DecisionsByDecider(t *testing.T) {
	f := newFixture(t)
	root := f.asking()
	child := f.child(root).ID
	pinned := callOf(t, "p1", "exec_shell", `{"command":"make install"}`)
	pinned.Call.Escalation = &policy.Escalation{Sandbox: policy.Top(), Justification: "installs to /usr"}
	j := f.record(child, pinned)
	require.Equal(t, policy.CodeApprovalNever, j.Code, "%s", j.Reason())

	require.Equal(t, eventlog.AskAllowedOnce, f.ask(wants(root, "a1"), replay.Human(allows)).Outcome)
	used := callOf(t, "call-a1", "exec_shell", `{"command":"make install"}`)
	used.Ask = "a1"
	require.Equal(t, policy.CodeAllowedOnce, f.record(root, used).Code)
	require.Equal(t, policy.CodeSandbox, f.record(root, edits(t, "r1", "/etc/hosts")).Code)

	by := func(d eventlog.Decider) (calls []string) {
		for _, id := range []uuid.UUID{root, child} {
			for _, r := range f.found(id, replay.DecisionFilter{Decider: d}) {
				calls = append(calls, r.Call)
			}
		}
		return calls
	}
	require.Equal(t, []string{"p1"}, by(eventlog.DeciderPin))
	require.Equal(t, []string{"r1"}, by(eventlog.DeciderRule))
	require.Equal(t, []string{"call-a1"}, by(eventlog.DeciderHuman))
	require.Empty(t, by(eventlog.DeciderHost))
}

// TestCase54_AWorkerUnderAnExplorer: the explorer hands on no more shell than it
// may be given, so an implementing child of it may inspect and nothing more.
func TestCase54_AWorkerUnderAnExplorer(t *testing.T) {
	f := newFixture(t)
	explorer := f.childOf(f.editor(), materialize.Request{Want: policy.Request{Role: "explore"}}).ID
	worker := f.childOf(explorer, materialize.Request{Want: policy.Request{Role: "implement"}}).ID
	touch := callOf(t, "t1", "exec_command", `{"cmd":"touch x"}`)
	j := f.record(worker, touch)
	require.Equal(t, policy.CodeShell, j.Code)
	require.Equal(t, policy.GrantInspect, j.Subject.Authority.Own.Grant.Shell)
	require.Equal(t, policy.RuleParent, j.Rule)
	x, err := replay.ExplainCall(f.ctx, f.Store, worker, touch.Call, 0)
	require.NoError(t, err)
	require.Equal(t, "grant.shell", x.Field)
	require.Equal(t, explorer, x.Chain[x.LostAt].Session)
	touch.Call.ID, touch.Call.Verdict = "t2", policy.Classified{By: "classifier", Need: policy.GrantInspect}
	require.True(t, func() bool { j := f.record(worker, touch); return j.Allowed() }(), "what only inspects is allowed")
}

// TestCase57_ToolScopeAndNames: with tools [read] other tools are refused, and
// names that only look alike are none of them.
func TestCase57_ToolScopeAndNames(t *testing.T) {
	f := newFixture(t)
	tools, err := policy.ToolsList("read")
	require.NoError(t, err)
	child := f.childOf(f.editor(), materialize.Request{Want: policy.Request{Wish: policy.Wish{Tools: tools}}}).ID
	for tool, code := range map[string]policy.Code{"write": policy.CodeToolScope, "file": policy.CodeToolScope, "BASH": policy.CodeToolScope, "read": policy.CodeAllowed,
		"re\u0430d": policy.CodeMalformed, "read\u200b": policy.CodeMalformed} {
		j := f.record(child, callOf(t, uuid.NewString(), tool, `{"path":"a"}`))
		require.Equal(t, code, j.Code, "%q", tool)
		got, err := replay.ReadDecision(f.ctx, f.Store, child, j.DecisionSeq)
		require.NoError(t, err)
		require.Equal(t, tool, got.Given, "the name as given is kept beside the facts")
		if code == policy.CodeMalformed {
			require.Equal(t, eventlog.InvalidTool, got.Tool.Given)
		}
	}
}

// TestCase58_DeniedByClass: exec_shell* is denied, so the shell tools of other
// harnesses are, whatever they are called.
func TestCase58_DeniedByClass(t *testing.T) {
	f := newFixture(t)
	child := f.childOf(f.editor(), materialize.Request{Want: policy.Request{Wish: policy.Wish{DeniedTools: []string{"exec_shell*"}}}}).ID
	for _, tool := range []string{"write_stdin", "Bash", "exec_shell"} {
		j := f.record(child, callOf(t, "s-"+tool, tool, `{"command":"ls"}`))
		require.Equal(t, policy.CodeDenyList, j.Code, tool)
		require.Equal(t, policy.ClassShell, j.Tool.Class, tool)
	}
}

// TestCase60_AnAllowedOnceIsRecordedOnce: with its very arguments the call is
// allowed, and that uses the approval up; with others, after a narrowing or
// after its turn it is decided as if nobody had been asked.
func TestCase60_AnAllowedOnceIsRecordedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(f *fixture, root uuid.UUID)
		args    string
		allowed bool
	}{
		"as it was asked for":  {func(*fixture, uuid.UUID) {}, `{"command":"make install"}`, true},
		"other arguments":      {func(*fixture, uuid.UUID) {}, `{"command":"rm -rf /"}`, false},
		"after a narrowing":    {func(f *fixture, root uuid.UUID) { f.narrow(root, policy.WorkspaceWrite, false) }, `{"command":"make install"}`, false},
		"after its turn ended": {func(f *fixture, root uuid.UUID) { f.say(root, 0, event(f.t, "turn/end", "turn", 1)) }, `{"command":"make install"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			root := f.asking()
			require.Equal(t, eventlog.AskAllowedOnce, f.ask(wants(root, "a1"), replay.Human(allows)).Outcome)
			c.happens(f, root)
			r := callOf(t, "call-a1", "exec_shell", c.args)
			r.Ask = "a1"
			r.Call.Escalation = &policy.Escalation{Sandbox: policy.Top(), Justification: "installs to /usr"}
			before := f.decide(root, r)
			j := f.record(root, r)
			require.Equal(t, before.Code, j.Code)
			require.Equal(t, c.allowed, j.Allowed(), "%s", j.Reason())
			if c.allowed {
				require.Equal(t, "a1", f.found(root, replay.DecisionFilter{})[0].Ask)
				again := f.record(root, r)
				require.True(t, again.Existing, "the same call is the same record")
				require.Equal(t, j.DecisionSeq, again.DecisionSeq)
				f.say(root, 0, event(t, "tool/result", "call", "call-a1", "outcome", "ok"))
				again = f.record(root, r)
				require.False(t, again.Allowed(), "used up")
			}
		})
	}
}

// TestCase61_AClockSetBack: a deadline that passed stays passed, by the time of
// the last event and by the recorded denial; a new activation restarts nothing.
func TestCase61_AClockSetBack(t *testing.T) {
	f := newFixture(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	set := func(to time.Time) { mu.Lock(); defer mu.Unlock(); now = to }
	f.reopen(eventlog.Options{Clock: clock})
	wall := int64(time.Hour / time.Millisecond)
	child := f.childOf(f.editor(), materialize.Request{Want: policy.Request{WallMS: &wall}}).ID
	born := now
	require.True(t, func() bool { j := f.record(child, edits(t, "e1", "a")); return j.Allowed() }())
	set(born.Add(2 * time.Hour))
	require.Equal(t, policy.CodeExpired, f.decide(child, edits(t, "e2", "a")).Code)
	require.Equal(t, policy.CodeExpired, f.record(child, edits(t, "e2", "a")).Code)
	for _, back := range []time.Duration{time.Minute, -time.Hour} {
		set(born.Add(back))
		require.Equal(t, policy.CodeExpired, f.decide(child, edits(t, "e3", "a")).Code)
		a := f.activate(child)
		r := edits(t, "e4", "a")
		r.Epoch = a.Epoch
		require.Equal(t, policy.CodeExpired, f.record(child, r).Code, "a continuation restarts nothing")
	}
	set(born)
	f.reopen(eventlog.Options{Clock: clock})
	require.Equal(t, policy.CodeExpired, f.decide(child, edits(t, "e5", "a")).Code, "nor does another process")
}

// TestCase61_ALaterEventUnderAnEarlierClock: the latest time counts, not that
// of the last event, also where no denial was recorded; and for the past too.
func TestCase61_ALaterEventUnderAnEarlierClock(t *testing.T) {
	f := newFixture(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.reopen(eventlog.Options{Clock: func() time.Time { return now }})
	wall := int64(time.Hour / time.Millisecond)
	child := f.childOf(f.editor(), materialize.Request{Want: policy.Request{WallMS: &wall}}).ID
	now = now.Add(2 * time.Hour)
	f.say(child, 0, event(t, "user/message"))
	now = now.Add(-2 * time.Hour)
	f.say(child, 0, event(t, "user/message"))
	require.Equal(t, policy.CodeExpired, f.decide(child, edits(t, "e1", "a")).Code)
	then, err := replay.DecideAt(f.ctx, f.Store, child, 0, edits(t, "e1", "a").Call)
	require.NoError(t, err)
	require.Equal(t, policy.CodeExpired, then.Code)
	require.Equal(t, policy.CodeExpired, f.record(child, edits(t, "e1", "a")).Code)
}

// TestCase60_NobodyWasAskedForMore: an allowed-once of a call within the
// sandbox covers no escalation of that call, since nobody was shown one.
func TestCase60_NobodyWasAskedForMore(t *testing.T) {
	f := newFixture(t)
	root := f.asking()
	asked := wants(root, "a1")
	asked.Escalation = nil
	require.Equal(t, eventlog.AskAllowedOnce, f.ask(asked, replay.Human(allows)).Outcome)
	r := callOf(t, asked.Call, asked.Tool, string(asked.Args))
	r.Ask = "a1"
	r.Call.Escalation = &policy.Escalation{Sandbox: policy.Top(), Justification: "installs to /usr"}
	require.Equal(t, policy.CodeNeedsApproval, f.decide(root, r).Code)
	j := f.record(root, r)
	require.Equal(t, policy.VerdictNeedsApproval, j.Verdict)
	require.Nil(t, j.Grant)
}

// argsOf reads arguments as a harness does.
func argsOf(t testingT, text string) (m map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &m))
	return m
}
