package replay_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

// TestRecordAgainAfterANarrowing: what was decided before a narrowing is
// decided again when it is recorded, also by the authorizer that compiled the
// policy before.
func TestRecordAgainAfterANarrowing(t *testing.T) {
	f := newFixture(t)
	child := f.child(f.editor()).ID
	a := replay.NewAuthorizer(f.Store, child)
	r := edits(t, "e1", "src/a.go")
	j, err := a.Decide(f.ctx, r)
	require.NoError(t, err)
	require.True(t, j.Allowed())
	at := f.narrow(child, policy.ReadOnly, false)[0].Seq
	j, err = a.Record(f.ctx, r)
	require.NoError(t, err)
	require.Equal(t, policy.CodeSandbox, j.Code)
	require.Equal(t, at, j.EvaluatedSeq)
	require.Equal(t, policy.RuleOrigin{Kind: "narrowing", At: policy.Origin{Session: child, Seq: at}}, j.Origin)
	j, err = a.Decide(f.ctx, r)
	require.NoError(t, err)
	require.False(t, j.Allowed())
}

// TestARootFollowsTheRulesOfItsStore: an authorizer that is there already takes
// over new rules, and lets go of lifted ones.
func TestARootFollowsTheRulesOfItsStore(t *testing.T) {
	f := newFixture(t)
	root := f.editor()
	a := replay.NewAuthorizer(f.Store, root)
	code := func() policy.Code {
		j, err := a.Record(f.ctx, edits(t, uuid.NewString(), "src/a.go"))
		require.NoError(t, err)
		return j.Code
	}
	require.Equal(t, policy.CodeAllowed, code())
	for _, want := range []struct {
		paths []string
		code  policy.Code
	}{{[]string{"src"}, policy.CodeOperatorDeny}, {nil, policy.CodeAllowed}} {
		_, err := replay.SetRules(f.ctx, f.Store, replay.RuleFile{DenyPaths: want.paths})
		require.NoError(t, err)
		require.Equal(t, want.code, code())
	}
	then, err := replay.DecideAt(f.ctx, f.Store, root, 6, edits(t, "e1", "src/a.go").Call)
	require.NoError(t, err)
	require.Equal(t, policy.CodeOperatorDeny, then.Code, "the past is under the rules of its time")
}

// TestWhatTakesNoRecord: a closed session, a superseded activation and an
// imported log are denied, with the error beside it, and nothing is written.
func TestWhatTakesNoRecord(t *testing.T) {
	f := newFixture(t)
	root := f.editor()
	closed, busy, evidence := f.child(root).ID, f.child(root).ID, f.evidence(eventlog.KindRoot, uuid.Nil)
	_, err := replay.Close(f.ctx, f.Store, closed)
	require.NoError(t, err)
	first := f.activate(busy)
	f.activate(busy)
	for name, c := range map[string]struct {
		id    uuid.UUID
		epoch uint64
		code  policy.Code
		err   error
	}{
		"closed":        {closed, 0, policy.CodeClosed, eventlog.ErrSessionClosed},
		"superseded":    {busy, first.Epoch, policy.CodeFenced, eventlog.ErrFenced},
		"no epoch":      {busy, 0, policy.CodeFenced, eventlog.ErrFenced},
		"not begun yet": {busy, first.Epoch + 7, policy.CodeFenced, eventlog.ErrFenced},
		"evidence":      {evidence, 0, policy.CodeEvidence, eventlog.ErrEvidence},
	} {
		t.Run(name, func(t *testing.T) {
			head := f.row(c.id).Head
			r := edits(t, "e1", "src/a.go")
			r.Epoch = c.epoch
			j, err := replay.NewAuthorizer(f.Store, c.id).Record(f.ctx, r)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, policy.VerdictDeny, j.Verdict)
			require.Equal(t, c.code, j.Code)
			require.Zero(t, j.DecisionSeq)
			require.Equal(t, head, f.row(c.id).Head)
		})
	}
	_, err = replay.NewAuthorizer(f.Store, root).Record(f.ctx, edits(t, "", "a"))
	require.ErrorIs(t, err, eventlog.ErrInvalid, "a record names its call")
	r := edits(t, "e1", "a")
	r.Args = []byte(`{"path":`)
	_, err = replay.NewAuthorizer(f.Store, root).Record(f.ctx, r)
	require.ErrorIs(t, err, eventlog.ErrInvalid)
}

// TestRecoveryAfterANarrowing: what a recorded call was allowed to touch may be
// undone after the scope shrank; nothing else may, and not under read-only.
func TestRecoveryAfterANarrowing(t *testing.T) {
	f := newFixture(t)
	child := f.child(f.editor()).ID
	require.Equal(t, []string{"src/a.go"}, f.record(child, edits(t, "e1", "src/a.go")).Targets)
	f.record(child, edits(t, "e2", "/etc/hosts")) // denied: it admits nothing
	// Denied too, and with a target: the place is in the scope, the tool is not
	// for this session. A denial admits nothing either.
	_, err := replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: child, Authority: &policy.Wish{DeniedTools: []string{"apply_patch"}}, Reason: "no patches"})
	require.NoError(t, err)
	barred := f.record(child, callOf(t, "e2b", "apply_patch", `{"path":"src/barred.go"}`))
	require.Equal(t, policy.CodeDenyList, barred.Code)
	require.Equal(t, []string{"src/barred.go"}, barred.Targets)
	_, err = replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: child, Authority: &policy.Wish{WriteScope: &[]string{"docs"}}, Reason: "docs only"})
	require.NoError(t, err)
	require.Equal(t, policy.Code(policy.CodeWriteScopeViolation), f.record(child, edits(t, "e3", "src/a.go")).Code)
	back := f.record(child, callOf(t, "u1", "rollback", `{"path":"src/a.go"}`))
	require.True(t, back.Allowed(), "%s", back.Reason())
	require.Equal(t, []string{"src/a.go"}, back.Targets)
	for _, path := range []string{"src/b.go", "src/barred.go"} {
		other := f.record(child, callOf(t, uuid.NewString(), "rollback", `{"path":"`+path+`"}`))
		require.False(t, other.Allowed(), path)
	}
	f.narrow(child, policy.ReadOnly, false)
	none := f.record(child, callOf(t, "u3", "rollback", `{"path":"src/a.go"}`))
	require.False(t, none.Allowed(), "nothing is written under read-only")
}

// TestConcurrentRecords: sixteen goroutines record through one authorizer while
// the session is narrowed. Each record has its call before it, is made on the
// policy that was in force at its place, and the counts are those of the log.
func TestConcurrentRecords(t *testing.T) {
	f := newFixture(t)
	child := f.child(f.editor()).ID
	a := replay.NewAuthorizer(f.Store, child)
	const writers, each = 16, 6
	var wg sync.WaitGroup
	errs := make(chan error, writers*each+1)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				r := replay.CallRequest{Call: policy.NewCall(fmt.Sprintf("w%d.%d", w, i), "edit", map[string]any{"path": "a"}), Args: []byte(`{"path":"a"}`)}
				_, err := a.Record(f.ctx, r)
				errs <- err
			}
		})
	}
	wg.Go(func() {
		_, err := replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: child, Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Reason: "now"})
		errs <- err
	})
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	narrowed, denied, calls := uint64(0), uint64(0), map[string]bool{}
	events := f.log(child)
	for i, ev := range events {
		switch ev.Type {
		case eventlog.TypePolicyNarrowed:
			narrowed = ev.Seq
		case eventlog.TypeToolDecision:
			d, err := eventlog.ParseDecision(&ev)
			require.NoError(t, err)
			require.Equal(t, eventlog.TypeToolCall, events[i-1].Type)
			require.Equal(t, d.Call, events[i-1].Facts.Str("call"))
			require.False(t, calls[d.Call], "each is recorded once")
			calls[d.Call] = true
			want, code := uint64(4), policy.CodeAllowed
			if narrowed != 0 {
				want, code = narrowed, policy.CodeSandbox
				denied++
			}
			require.Equal(t, want, d.EvaluatedSeq)
			require.Equal(t, code, d.Code)
		}
	}
	require.Len(t, calls, writers*each)
	require.NotZero(t, narrowed)
	if denied > 0 {
		require.Equal(t, []eventlog.Count{{Code: "sandbox", N: denied}}, f.row(child).Denials)
	}
}

// TestDecidersAgree: for any call of any of a few sessions, Decide, Record and
// policy.Authorize on the same subject and moment give the same decision;
// DecideAt the head gives it too, but for the clock and the fencing, which play
// no part here. What is recorded reads back as it was decided.
func TestDecidersAgree(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		f := fixtureIn(rt, filepath.Join(dir, fmt.Sprint(n)))
		defer f.Store.Close()
		if rapid.Bool().Draw(rt, "rules") {
			_, err := replay.SetRules(f.ctx, f.Store, replay.RuleFile{DenyTools: []string{"chmod", "mcp__*"}, DenyPaths: []string{"secrets"}})
			require.NoError(rt, err)
		}
		root := f.rootWith(rapid.SampledFrom([]policy.Mode{policy.ReadOnly, policy.WorkspaceWrite, policy.DangerFullAccess}).Draw(rt, "mode"))
		want := policy.Request{Role: rapid.SampledFrom([]string{"", "explore", "test", "implement"}).Draw(rt, "role")}
		if (want.Role == "" || want.Role == "implement") && rapid.Bool().Draw(rt, "scoped") { // the others write nothing
			want.WriteScope = &[]string{"src"}
		}
		child := f.childOf(root, materialize.Request{Want: want}).ID
		grandchild := f.child(child).ID
		if rapid.Bool().Draw(rt, "narrowed") {
			f.narrow(child, policy.WorkspaceWrite, true)
		}
		for i := range 6 {
			id := rapid.SampledFrom([]uuid.UUID{root, child, grandchild}).Draw(rt, "session")
			tool := rapid.SampledFrom([]string{"read", "edit", "bash", "WebFetch", "chmod", "mcp__x", "spawn_agent", "rollback", "prompt_block_edit", "no such name"}).Draw(rt, "tool")
			path := rapid.SampledFrom([]string{"src/a", "srcx/a", "secrets/k", "/etc/hosts", "../a", ".git/config"}).Draw(rt, "path")
			r := callOf(rt, fmt.Sprint("c", i), tool, fmt.Sprintf(`{"path":%q}`, path))
			if rapid.Bool().Draw(rt, "classified") {
				r.Call.Verdict = policy.Classified{By: "classifier", Need: policy.GrantInspect}
			}
			if rapid.IntRange(0, 3).Draw(rt, "escalates") == 0 {
				r.Call.Escalation = &policy.Escalation{Sandbox: policy.Top(), Justification: "j"}
			}
			decided := f.decide(id, r)
			require.Equal(rt, authorized(decided, r), plainly(decided.Decision))
			at, err := replay.DecideAt(f.ctx, f.Store, id, f.row(id).Head, r.Call)
			require.NoError(rt, err)
			if !policy.IsRecovery(tool) { // what was admitted before is for calls to come
				require.Equal(rt, plainly(decided.Decision), plainly(at.Decision))
			}
			recorded := f.record(id, r)
			require.Equal(rt, plainly(decided.Decision), plainly(recorded.Decision))
			require.Equal(rt, decided.EvaluatedSeq, recorded.EvaluatedSeq)
			got, err := replay.ReadDecision(f.ctx, f.Store, id, recorded.DecisionSeq)
			require.NoError(rt, err)
			require.Equal(rt, recorded.Reason(), ptr(got.Decided()).Reason())
			require.Equal(rt, recorded.Decider(), got.Decider)
			require.Equal(rt, recorded.EvaluatedSeq, got.EvaluatedSeq)
		}
	})
}

// authorized is what the plain function says of what an authorizer decided on.
func authorized(j replay.Judgement, r replay.CallRequest) policy.Decision {
	return plainly(policy.Authorize(j.Subject, r.Call, j.Moment))
}

// plainly tells no empty list from one that is not there.
func plainly(d policy.Decision) policy.Decision {
	if len(d.Targets) == 0 {
		d.Targets = nil
	}
	if len(d.Outside) == 0 {
		d.Outside = nil
	}
	if len(d.AlsoDeniedBy) == 0 {
		d.AlsoDeniedBy = nil
	}
	return d
}
