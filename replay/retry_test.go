package replay_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/policy/objection"
	"childlog/replay"
)

// lostAnswer records a call, and again as whoever lost the answer does, in a new
// process each time. It returns the first judgement, and checks that the second
// is the same and that nothing was written.
func (f *fixture) lostAnswer(id uuid.UUID, r replay.CallRequest) replay.Judgement {
	f.t.Helper()
	first := f.record(id, r)
	require.False(f.t, first.Existing)
	head, files := f.row(id).Head, f.types(id)
	f.reopen(eventlog.Options{})
	again := f.record(id, r)
	require.True(f.t, again.Existing)
	require.Equal(f.t, first.Decider(), again.Decider())
	require.Equal(f.t, []uint64{first.CallSeq, first.DecisionSeq, first.EvaluatedSeq}, []uint64{again.CallSeq, again.DecisionSeq, again.EvaluatedSeq})
	require.Equal(f.t, []string{string(first.Verdict), string(first.Code), string(first.Rule)}, []string{string(again.Verdict), string(again.Code), string(again.Rule)})
	require.Equal(f.t, append([]string{}, first.Targets...), again.Targets)
	require.Equal(f.t, first.Origin, again.Origin)
	require.Len(f.t, again.AlsoDeniedBy, len(first.AlsoDeniedBy))
	require.Equal(f.t, head, f.row(id).Head)
	require.Equal(f.t, files, f.types(id))
	return first
}

// TestCase18_ALostDecision: the record is committed and the reply is lost: the
// retry gets the decision that stands in the log, whatever it was.
func TestCase18_ALostDecision(t *testing.T) {
	f := newFixture(t)
	root := f.editor()
	child := f.childOf(root, materialize.Request{Want: policy.Request{Role: "explore"}}).ID
	escalated := callOf(t, "c3", "bash", `{"command":"make"}`)
	escalated.Call.Escalation = &policy.Escalation{Sandbox: policy.Top(), Justification: "a\xffb"}
	classified := callOf(t, "c4", "bash", `{"command":"ls"}`)
	classified.Call.Verdict = policy.Classified{By: "classifier", Need: policy.GrantInspect}
	amended := edits(t, "c5", "src/a.go")
	amended.Before = []byte(`{"path":"src/a.go","token":"x"}`)
	amended.Outcome = &objection.Outcome{Record: objection.Record{Checked: 1}}
	for name, c := range map[string]struct {
		id   uuid.UUID
		r    replay.CallRequest
		want policy.Code
	}{
		"allowed":      {root, edits(t, "c1", "src/a.go"), policy.CodeAllowed},
		"denied":       {root, edits(t, "c2", "/etc/hosts"), policy.CodeSandbox},
		"to be asked":  {root, escalated, policy.CodeNeedsApproval},
		"classified":   {child, classified, policy.CodeAllowed},
		"amended":      {root, amended, policy.CodeAllowed},
		"by the pin":   {child, func() replay.CallRequest { r := escalated; r.Call.ID = "c6"; return r }(), policy.CodeShell},
		"no tool name": {root, callOf(t, "c7", "no tool", `{}`), policy.CodeMalformed},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, f.lostAnswer(c.id, c.r).Code) })
	}
	f.say(root, 0, event(t, "tool/result", "call", "c1", "outcome", "ok"))
	f.fillIndex(root) // the record is far behind, and known to the index alone
	f.reopen(eventlog.Options{})
	j := f.record(root, edits(t, "c1", "src/a.go"))
	require.True(t, j.Existing, "a completed call has the record it had")
	require.NoError(t, f.Store.Close())
	_, err := eventlog.Reindex(f.ctx, f.dir, eventlog.Options{})
	require.NoError(t, err)
	f.open(eventlog.Options{})
	require.Equal(t, j.DecisionSeq, f.record(root, edits(t, "c1", "src/a.go")).DecisionSeq, "and a new index has it too")
}

// TestAnotherCallOfTheSameID: a call id names one call. Another tool, other
// arguments, another escalation or verdict, and what can't be compared any more
// are conflicts; nothing is written and nothing granted.
func TestAnotherCallOfTheSameID(t *testing.T) {
	f := newFixture(t)
	root := f.editor()
	f.record(root, edits(t, "c1", "src/a.go"))
	other := func(change func(*replay.CallRequest)) replay.CallRequest {
		r := edits(t, "c1", "src/a.go")
		change(&r)
		return r
	}
	escalation := func(s policy.Sandbox) func(*replay.CallRequest) {
		return func(r *replay.CallRequest) {
			r.Call.Escalation = &policy.Escalation{Sandbox: s, Justification: "j"}
		}
	}
	conflict := func(r replay.CallRequest, what string) {
		t.Helper()
		head := f.row(root).Head
		j, err := replay.NewAuthorizer(f.Store, root).Record(f.ctx, r)
		var other *replay.CallError
		require.ErrorAs(t, err, &other)
		require.ErrorIs(t, err, eventlog.ErrConflict)
		require.Contains(t, other.Other, what)
		require.Equal(t, uint64(4), other.Seq)
		require.False(t, j.Allowed())
		require.Zero(t, j.DecisionSeq)
		require.Equal(t, head, f.row(root).Head)
	}
	conflict(edits(t, "c1", "src/b.go"), "arguments")
	conflict(callOf(t, "c1", "write_file", `{"path":"src/a.go"}`), "tool")
	conflict(other(escalation(policy.Top())), "escalation")
	conflict(other(func(r *replay.CallRequest) { r.Call.Verdict = policy.Classified{By: "x", Need: policy.GrantInspect} }), "verdict")
	conflict(other(func(r *replay.CallRequest) { r.Before = []byte(`{}`) }), "before amendments")
	_, err := f.Store.Redact(f.ctx, eventlog.RedactRequest{Order: eventlog.Order{Code: "leak"}, Session: root, Seqs: []uint64{4}})
	require.NoError(t, err)
	conflict(edits(t, "c1", "src/a.go"), "redacted")

	roots := func(dirs ...string) policy.Sandbox {
		return resolved(t, policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: dirs})
	}
	r := callOf(t, "c2", "bash", `{"command":"make"}`)
	escalation(roots("/opt/a"))(&r)
	require.Equal(t, policy.VerdictNeedsApproval, f.record(root, r).Verdict)
	escalation(roots("/opt/b"))(&r)
	_, err = replay.NewAuthorizer(f.Store, root).Record(f.ctx, r)
	require.ErrorIs(t, err, eventlog.ErrConflict, "other roots are another escalation")
}

// TestAVerdictThatWasFound: a verdict of this side's own is recorded, and is no part
// of what makes a call the same one: a newer classifier, or none under a wider shell,
// answers a retry, and never with more than holds now.
func TestAVerdictThatWasFound(t *testing.T) {
	f := newFixture(t)
	child := f.childOf(f.editor(), materialize.Request{Want: policy.Request{Role: "explore"}}).ID
	found := func(by string, need policy.GrantShell, why string) replay.CallRequest {
		r := callOf(t, "c", "bash", `{"command":"ls"}`)
		r.Found, r.Call.Verdict = true, policy.Classified{By: by, Need: need, Why: why, Text: "some words"}
		return r
	}
	first := f.record(child, found("c/1", policy.GrantInspect, "not a code"))
	require.True(t, first.Allowed())
	rec, err := replay.ReadDecision(f.ctx, f.Store, child, first.DecisionSeq)
	require.NoError(t, err)
	require.Equal(t, policy.Classified{By: "c/1", Need: policy.GrantInspect, Text: "some words"}, rec.Classified, "facts hold no free text")
	again := f.record(child, found("c/2", policy.GrantInspect, ""))
	require.True(t, again.Existing)
	require.Equal(t, "c/1", again.Classified.By, "it is the record that answers")
	now := f.record(child, found("c/3", policy.GrantFull, "option:sort"))
	require.False(t, now.Existing)
	require.False(t, now.Allowed(), "never wider than what holds now")
	rec, err = replay.ReadDecision(f.ctx, f.Store, child, now.DecisionSeq)
	require.NoError(t, err)
	require.Equal(t, policy.Classified{By: "c/3", Need: policy.GrantFull, Why: "option:sort", Text: "some words"}, rec.Classified)
	require.Contains(t, now.Reason(), "c/3 found that the command needs full: some words")
	require.Contains(t, now.Change(&now.Subject), "of which c/3 finds that it needs at most inspect")

	said := found("c/1", policy.GrantInspect, "")
	said.Found = false
	_, err = replay.NewAuthorizer(f.Store, child).Record(f.ctx, said)
	require.ErrorIs(t, err, eventlog.ErrConflict, "one that the caller brings is")
}

// TestARetryIsNeverWider: an allow that was recorded before a narrowing, a
// deadline or the end of the session is no grant after it; a denial stays one
// whatever was loosened.
func TestARetryIsNeverWider(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f := newFixture(t)
	f.reopen(eventlog.Options{Clock: func() time.Time { return now }})
	root := f.editor()
	r := edits(t, "c1", "src/a.go")
	first := f.record(root, r)
	require.True(t, first.Allowed())
	at := f.narrow(root, policy.ReadOnly, false)[0].Seq
	second := f.record(root, r)
	require.False(t, second.Existing, "decided again, and the log has both")
	require.Equal(t, policy.CodeSandbox, second.Code)
	require.Equal(t, at, second.EvaluatedSeq)
	require.Greater(t, second.DecisionSeq, first.DecisionSeq)
	third := f.record(root, r)
	require.True(t, third.Existing)
	require.Equal(t, second.DecisionSeq, third.DecisionSeq, "the newest decision is the call's")

	other := f.rootWith(policy.ReadOnly)
	denied := f.record(other, r)
	require.False(t, denied.Allowed())
	f.switchTo(other, policy.WorkspaceWrite)
	require.True(t, func() bool { j := f.decide(other, r); return j.Allowed() }())
	again := f.record(other, r)
	require.True(t, again.Existing)
	require.Equal(t, denied.Code, again.Code, "a lost denial is no second chance")

	wall := int64(time.Hour / time.Millisecond)
	child := f.childOf(other, materialize.Request{Want: policy.Request{WallMS: &wall}}).ID
	require.True(t, func() bool { j := f.record(child, r); return j.Allowed() }())
	now = now.Add(2 * time.Hour)
	require.Equal(t, policy.CodeExpired, f.record(child, r).Code)

	last := f.child(other).ID
	require.True(t, func() bool { j := f.record(last, r); return j.Allowed() }())
	no := f.record(last, edits(t, "c2", "/etc/hosts"))
	_, err := replay.Close(f.ctx, f.Store, last)
	require.NoError(t, err)
	j, err := replay.NewAuthorizer(f.Store, last).Record(f.ctx, r)
	require.ErrorIs(t, err, eventlog.ErrSessionClosed)
	require.False(t, j.Allowed())
	require.Equal(t, no.DecisionSeq, f.record(last, edits(t, "c2", "/etc/hosts")).DecisionSeq)
}

// TestARetryUnderOtherRules: a root follows the operator's rules of its store,
// and so does what it is given back.
func TestARetryUnderOtherRules(t *testing.T) {
	f := newFixture(t)
	root := f.editor()
	require.True(t, func() bool { j := f.record(root, edits(t, "c1", "src/a.go")); return j.Allowed() }())
	_, err := replay.SetRules(f.ctx, f.Store, replay.RuleFile{DenyPaths: []string{"src"}})
	require.NoError(t, err)
	require.Equal(t, policy.CodeOperatorDeny, f.record(root, edits(t, "c1", "src/a.go")).Code)
}

// TestCase14_ADecisionAcrossATakeover: the harness that was superseded gets the
// decision that it had committed, and can write no other.
func TestCase14_ADecisionAcrossATakeover(t *testing.T) {
	f := newFixture(t)
	child := f.child(f.editor()).ID
	mine := f.activate(child)
	allowed, denied := edits(t, "c1", "src/a.go"), edits(t, "c2", "/etc/hosts")
	allowed.Epoch, denied.Epoch = mine.Epoch, mine.Epoch
	first, no := f.record(child, allowed), f.record(child, denied)
	f.activate(child)
	head := f.row(child).Head
	for _, c := range []struct {
		was replay.Judgement
		r   replay.CallRequest
	}{{first, allowed}, {no, denied}} {
		again := f.record(child, c.r)
		require.True(t, again.Existing)
		require.Equal(t, c.was.Verdict, again.Verdict)
		require.Equal(t, c.was.DecisionSeq, again.DecisionSeq)
	}
	fresh := edits(t, "c3", "src/a.go")
	fresh.Epoch = mine.Epoch
	j, err := replay.NewAuthorizer(f.Store, child).Record(f.ctx, fresh)
	require.ErrorIs(t, err, eventlog.ErrFenced)
	require.False(t, j.Allowed())
	require.Equal(t, head, f.row(child).Head)

	f.narrow(child, policy.ReadOnly, false)
	j, err = replay.NewAuthorizer(f.Store, child).Record(f.ctx, allowed)
	require.ErrorIs(t, err, eventlog.ErrFenced, "and what is decided again is new")
	require.False(t, j.Allowed())
}

// TestCase60_ARetryOfAnAllowedOnce: the record that used an approval up answers
// retries while its call is open, in its turn, under its policy; and the first
// decision, which asked for the approval, does not stand in the way of the one
// that has it.
func TestCase60_ARetryOfAnAllowedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(f *fixture, root uuid.UUID)
		allowed bool
	}{
		"nothing": {func(*fixture, uuid.UUID) {}, true},
		"a result": {func(f *fixture, root uuid.UUID) {
			f.say(root, 0, event(f.t, "tool/result", "call", "call-a1", "outcome", "ok"))
		}, false},
		"a narrowing":    {func(f *fixture, root uuid.UUID) { f.narrow(root, policy.WorkspaceWrite, false) }, false},
		"the turn's end": {func(f *fixture, root uuid.UUID) { f.say(root, 0, event(f.t, "turn/end", "turn", 1)) }, false},
		"another turn":   {func(f *fixture, root uuid.UUID) { f.say(root, 0, event(f.t, "turn/start", "turn", 2)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			root := f.asking()
			r := callOf(t, "call-a1", "exec_shell", `{"command":"make install"}`)
			r.Call.Escalation = &policy.Escalation{Sandbox: policy.Top(), Justification: "installs to /usr"}
			needs := f.lostAnswer(root, r)
			require.Equal(t, policy.VerdictNeedsApproval, needs.Verdict)
			require.Equal(t, eventlog.AskAllowedOnce, f.ask(wants(root, "a1"), replay.Human(allows)).Outcome)
			r.Ask = "a1"
			first := f.lostAnswer(root, r)
			require.Equal(t, policy.CodeAllowedOnce, first.Code)
			c.happens(f, root)
			j := f.record(root, r)
			require.Equal(t, c.allowed, j.Allowed(), "%s", j.Reason())
			require.Equal(t, c.allowed, j.Existing)
		})
	}
}

// TestConcurrentRetries: of many that record one call at once, one record is
// made and all get it; beside it a narrowing, after which none is allowed.
func TestConcurrentRetries(t *testing.T) {
	f := newFixture(t)
	child := f.child(f.editor()).ID
	const writers = 16
	var wg sync.WaitGroup
	var mu sync.Mutex
	seqs, fresh := map[uint64]bool{}, 0
	for range writers {
		wg.Go(func() {
			j, err := replay.NewAuthorizer(f.Store, child).Record(f.ctx, edits(t, "c1", "src/a.go"))
			mu.Lock()
			defer mu.Unlock()
			if err != nil || !j.Allowed() {
				t.Errorf("a record failed: %v %v", j.Verdict, err)
			}
			seqs[j.DecisionSeq] = true
			if !j.Existing {
				fresh++
			}
		})
	}
	wg.Wait()
	require.Len(t, seqs, 1)
	require.Equal(t, 1, fresh)
	require.Len(t, f.found(child, replay.DecisionFilter{Call: "c1"}), 1)
	require.Equal(t, uint64(1), f.row(child).Calls)
}

// TestACallLoggedBesideItsRecord: a harness that logs tool/call on its own,
// before or after it has the call decided, has made one call.
func TestACallLoggedBesideItsRecord(t *testing.T) {
	f := newFixture(t)
	root := f.editor()
	f.say(root, 0, event(t, "tool/call", "call", "c1", "tool", "edit"))
	f.record(root, edits(t, "c1", "src/a.go"))
	require.Equal(t, uint64(1), f.row(root).Calls)
	f.record(root, edits(t, "c2", "src/a.go"))
	f.say(root, 0, event(t, "tool/call", "call", "c2", "tool", "edit"))
	require.Equal(t, uint64(2), f.row(root).Calls)
	require.Len(t, f.row(root).OpenCalls, 2)
}

// TestCodesGoWithTheirSession: what a purged session recorded answers nobody,
// and leaves no name behind.
func TestCodesGoWithTheirSession(t *testing.T) {
	f := newFixture(t)
	root := f.asking()
	f.ask(wants(root, "a1"), replay.Human(allows))
	f.record(root, edits(t, "c1", "src/a.go"))
	f.fillIndex(root)
	f.reopen(eventlog.Options{})
	_, err := f.Store.Purge(f.ctx, eventlog.PurgeRequest{Order: eventlog.Order{Code: "leak"}, Session: root})
	require.NoError(t, err)
	_, err = f.Store.Transact(f.ctx, eventlog.EntryRuntime, func(v *eventlog.View) ([]eventlog.Batch, error) {
		_, found, err := v.DecisionOf(root, "c1")
		require.NoError(t, err)
		require.False(t, found)
		_, _, err = v.AskOf(root, "a1")
		require.ErrorIs(t, err, eventlog.ErrNotFound)
		return nil, nil
	})
	require.NoError(t, err)
}
