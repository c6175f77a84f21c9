package replay_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

func (f *fixture) pose(r replay.AskRequest) replay.Ruling {
	f.t.Helper()
	ruling, err := replay.Pose(f.ctx, f.Store, r)
	require.NoError(f.t, err)
	return ruling
}

func (f *fixture) respond(r replay.AnswerRequest) replay.Ruling {
	f.t.Helper()
	ruling, err := replay.Respond(f.ctx, f.Store, r)
	require.NoError(f.t, err)
	return ruling
}

func byHuman(session uuid.UUID, ask string, a replay.Answer) replay.AnswerRequest {
	return replay.AnswerRequest{Session: session, Ask: ask, Answer: a, Decider: eventlog.DeciderHuman, Ref: "ticket-7"}
}

// TestAskedHereAnsweredThere: a question put by one process is listed and
// answered by others, and each step can be repeated by whoever lost its answer.
func TestAskedHereAnsweredThere(t *testing.T) {
	f := newFixture(t)
	root := f.asking()
	r := wants(root, "a1")
	posed := f.pose(r)
	require.True(t, posed.Waits())
	require.False(t, posed.Allowed())
	f.reopen(eventlog.Options{ReadOnly: true})
	list, err := replay.Asks(f.ctx, f.Store, root)
	require.NoError(t, err)
	require.Len(t, list, 1)
	w := list[0]
	require.Equal(t, []string{"a1", "call-a1", "exec_shell", "May I install it?", `{"command":"make install"}`, "installs to /usr"},
		[]string{w.Ask, w.Call, w.Tool, w.Text, string(w.Args), w.Escalation.Justification})
	require.Equal(t, policy.WorkspaceWrite, w.Sandbox.Mode)
	require.Equal(t, policy.Top(), w.Escalation.Sandbox)
	require.Equal(t, []uint64{posed.Seq, 2, 1, 0}, []uint64{w.Seq, w.Evaluated, w.Turn, w.Epoch})
	require.NoError(t, w.Gone)

	f.reopen(eventlog.Options{})
	head := f.row(root).Head
	again := f.pose(r)
	require.True(t, again.Existing)
	require.True(t, again.Waits())
	require.Equal(t, posed.Seq, again.Seq)
	require.Equal(t, head, f.row(root).Head)

	answered := f.respond(byHuman(root, "a1", replay.AllowOnce))
	require.Equal(t, eventlog.Decided{Ask: "a1", Outcome: eventlog.AskAllowedOnce, Decider: eventlog.DeciderHuman, Ref: "ticket-7"}, answered.Decided)
	f.reopen(eventlog.Options{})
	head = f.row(root).Head
	twice := f.respond(byHuman(root, "a1", replay.AllowOnce))
	require.True(t, twice.Existing)
	require.Equal(t, answered.DecidedSeq, twice.DecidedSeq)
	for _, other := range []replay.AnswerRequest{byHuman(root, "a1", replay.Reject), {Session: root, Ask: "a1", Answer: replay.AllowOnce, Decider: eventlog.DeciderHost}} {
		_, err = replay.Respond(f.ctx, f.Store, other)
		require.ErrorIs(t, err, eventlog.ErrConflict)
	}
	got := f.pose(r)
	require.True(t, got.Allowed())
	require.Equal(t, answered.DecidedSeq, got.DecidedSeq)
	require.True(t, func() bool { r := f.ask(r); return r.Allowed() }(), "in one process too, the question is not put again")
	read, err := replay.RulingOf(f.ctx, f.Store, root, "a1")
	require.NoError(t, err)
	require.Equal(t, answered.Decided, read.Decided)
	require.Equal(t, head, f.row(root).Head)
	list, err = replay.Asks(f.ctx, f.Store, root)
	require.NoError(t, err)
	require.Empty(t, list)

	call := callOf(t, "call-a1", "exec_shell", `{"command":"make install"}`)
	call.Ask = "a1"
	require.Equal(t, policy.CodeAllowedOnce, f.record(root, call).Code)
	spent := f.pose(r)
	require.False(t, spent.Allowed(), "it was used up: the question grants nothing more")
	require.Equal(t, eventlog.AskAllowedOnce, spent.Outcome)
	var void *replay.VoidError
	require.ErrorAs(t, spent.Void, &void)
	require.Equal(t, replay.VoidUsed, void.Reason)
}

// TestPoseIsDecidedByARule: where nobody has to be asked, the question and its
// decision are one unit, and there is nothing to answer.
func TestPoseIsDecidedByARule(t *testing.T) {
	f := newFixture(t)
	root := f.asking()
	child := f.child(root).ID
	idle := f.rootWith(policy.WorkspaceWrite)
	narrowed := f.asking()
	f.narrow(narrowed, policy.WorkspaceWrite, false)
	ended, cancel := context.WithCancel(f.ctx)
	cancel()
	for name, c := range map[string]struct {
		ctx     context.Context
		session uuid.UUID
		outcome eventlog.AskOutcome
		decider eventlog.Decider
		rule    string
	}{
		"case 2, the pin": {f.ctx, child, eventlog.AskRejected, eventlog.DeciderPin, replay.RulePinned},
		"no turn":         {f.ctx, idle, eventlog.AskRejected, eventlog.DeciderRule, replay.RuleNoOpenTurn},
		"beyond":          {f.ctx, narrowed, eventlog.AskRejected, eventlog.DeciderRule, replay.RuleBeyondBound},
		"withdrawn":       {ended, root, eventlog.AskCancelled, eventlog.DeciderHost, replay.RuleWithdrawn},
	} {
		t.Run(name, func(t *testing.T) {
			ruling, err := replay.Pose(c.ctx, f.Store, wants(c.session, "q1"))
			require.NoError(t, err)
			require.Equal(t, []string{string(c.outcome), string(c.decider), c.rule}, []string{string(ruling.Outcome), string(ruling.Decider), ruling.Rule})
			require.Equal(t, ruling.Seq+1, ruling.DecidedSeq)
			_, err = replay.Respond(f.ctx, f.Store, byHuman(c.session, "q1", replay.AllowOnce))
			require.ErrorIs(t, err, eventlog.ErrConflict, "it is decided")
			again := f.pose(wants(c.session, "q1"))
			require.True(t, again.Existing)
			require.Equal(t, ruling.Decided, again.Decided)
		})
	}
}

// TestCase60_AnAnswerTooLate: what came between the question and its answer makes
// an allowance void before it exists; a rejection counts if its turn goes on.
func TestCase60_AnAnswerTooLate(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(f *fixture, root uuid.UUID, epoch uint64)
		rule    string
		rejects bool // a rejection is in time
	}{
		"a narrowing":    {func(f *fixture, root uuid.UUID, _ uint64) { f.narrow(root, policy.WorkspaceWrite, false) }, replay.RulePolicyMoved, true},
		"a switch":       {func(f *fixture, root uuid.UUID, _ uint64) { f.switchTo(root, policy.ReadOnly) }, replay.RulePolicyMoved, true},
		"the turn's end": {func(f *fixture, root uuid.UUID, epoch uint64) { f.say(root, epoch, event(f.t, "turn/end", "turn", 1)) }, replay.RuleTurnEnded, false},
		"another turn": {func(f *fixture, root uuid.UUID, epoch uint64) {
			f.say(root, epoch, event(f.t, "turn/start", "turn", 2))
		}, replay.RuleTurnEnded, false},
		"the activation's end": {func(f *fixture, root uuid.UUID, epoch uint64) { must(replay.End(f.ctx, f.Store, root, epoch, "done")) }, replay.RuleOtherHolder, false},
	} {
		for _, answer := range []replay.Answer{replay.AllowOnce, replay.Reject} {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t)
				root := f.rootWith(policy.WorkspaceWrite)
				epoch := f.activate(root).Epoch
				f.say(root, epoch, event(t, "turn/start", "turn", 1))
				r := wants(root, "a1")
				r.Epoch = epoch
				require.True(t, func() bool { p := f.pose(r); return p.Waits() }())
				c.happens(f, root, epoch)
				ruling := f.respond(byHuman(root, "a1", answer))
				require.False(t, ruling.Allowed())
				if answer == replay.Reject && c.rejects {
					require.Equal(t, eventlog.AskRejected, ruling.Outcome)
					return
				}
				require.Equal(t, eventlog.AskCancelled, ruling.Outcome)
				require.Equal(t, c.rule, ruling.Rule)
				again := f.respond(byHuman(root, "a1", answer))
				require.True(t, again.Existing)
				require.Equal(t, ruling.Decided, again.Decided)
			})
		}
	}
}

// TestAnswersInAnActivation: whoever answers needs no epoch; the harness that
// asked does. A takeover ends the question.
func TestAnswersInAnActivation(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	mine := f.activate(root).Epoch
	f.say(root, mine, event(t, "turn/start", "turn", 1))
	r := wants(root, "a1")
	_, err := replay.Pose(f.ctx, f.Store, r)
	require.ErrorIs(t, err, eventlog.ErrFenced)
	r.Epoch = mine
	f.pose(r)
	f.respond(byHuman(root, "a1", replay.AllowOnce))
	require.True(t, func() bool { p := f.pose(r); return p.Allowed() }())
	other := wants(root, "a2")
	other.Epoch = mine
	f.pose(other)
	f.activate(root)
	_, err = replay.Respond(f.ctx, f.Store, byHuman(root, "a2", replay.AllowOnce))
	require.ErrorIs(t, err, eventlog.ErrConflict, "the activation closed it as unavailable")
	late := f.pose(other)
	require.Equal(t, eventlog.AskUnavailable, late.Outcome)
	gone := f.pose(r)
	require.False(t, gone.Allowed(), "the allowance went with its activation")
}

// TestRefusedAnswers: what is no answer, and what there is none for.
func TestRefusedAnswers(t *testing.T) {
	f := newFixture(t)
	root := f.asking()
	f.pose(wants(root, "a1"))
	other := wants(root, "a1")
	other.Question = "May I remove it?"
	_, err := replay.Pose(f.ctx, f.Store, other)
	require.ErrorIs(t, err, eventlog.ErrConflict, "an ask id stands for one question")
	_, err = replay.Ask(f.ctx, f.Store, wants(root, "a1"), replay.Human(allows))
	require.ErrorIs(t, err, eventlog.ErrConflict, "it waits for its answer elsewhere")
	head := f.row(root).Head
	for name, c := range map[string]struct {
		r    replay.AnswerRequest
		want error
	}{
		"no answer":      {byHuman(root, "a1", replay.NoAnswer), eventlog.ErrInvalid},
		"unknown answer": {byHuman(root, "a1", 9), eventlog.ErrInvalid},
		"by the pin":     {replay.AnswerRequest{Session: root, Ask: "a1", Answer: replay.AllowOnce, Decider: eventlog.DeciderPin}, eventlog.ErrInvalid},
		"by nobody":      {replay.AnswerRequest{Session: root, Ask: "a1", Answer: replay.AllowOnce}, eventlog.ErrInvalid},
		"a text as ref":  {replay.AnswerRequest{Session: root, Ask: "a1", Answer: replay.AllowOnce, Decider: eventlog.DeciderHuman, Ref: "I said so"}, eventlog.ErrInvalid},
		"no such ask":    {byHuman(root, "a2", replay.AllowOnce), eventlog.ErrNotFound},
		"no session":     {byHuman(uuid.New(), "a1", replay.AllowOnce), eventlog.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := replay.Respond(f.ctx, f.Store, c.r)
			require.ErrorIs(t, err, c.want)
		})
	}
	require.Equal(t, head, f.row(root).Head)
	_, err = replay.Close(f.ctx, f.Store, root)
	require.NoError(t, err)
	_, err = replay.Respond(f.ctx, f.Store, byHuman(root, "a1", replay.AllowOnce))
	require.ErrorIs(t, err, eventlog.ErrSessionClosed)
}

// TestRacingAnswers: of many that answer at once the first counts, whoever said
// the same is told so and the others are in conflict.
func TestRacingAnswers(t *testing.T) {
	f := newFixture(t)
	root := f.asking()
	f.pose(wants(root, "a1"))
	var wg sync.WaitGroup
	var mu sync.Mutex
	counted := map[eventlog.AskOutcome]int{}
	conflicts, fresh := 0, 0
	for i := range 12 {
		wg.Go(func() {
			answer := replay.AllowOnce
			if i%2 == 0 {
				answer = replay.Reject
			}
			ruling, err := replay.Respond(f.ctx, f.Store, byHuman(root, "a1", answer))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				conflicts++
				return
			}
			counted[ruling.Outcome]++
			if !ruling.Existing {
				fresh++
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, fresh)
	require.Equal(t, 6, conflicts)
	require.Len(t, counted, 1)
	require.Len(t, f.decisions(root, eventlog.DeciderHuman), 1)
}
