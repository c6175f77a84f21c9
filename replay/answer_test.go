package replay_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// TestAnswerers: the first answerer with a say decides, by the kind it was
// registered as. One that fails ends the asking: it might have rejected.
func TestAnswerers(t *testing.T) {
	broken := errors.New("the dialog is broken")
	fails := func(context.Context, replay.Question) (replay.Answer, error) { return replay.AllowOnce, broken }
	panics := func(context.Context, replay.Question) (replay.Answer, error) { panic("no display") }
	exits := func(context.Context, replay.Question) (replay.Answer, error) {
		runtime.Goexit()
		return replay.AllowOnce, nil
	}
	rejects := func(context.Context, replay.Question) (replay.Answer, error) { return replay.Reject, nil }
	passes := func(context.Context, replay.Question) (replay.Answer, error) { return replay.NoAnswer, nil }
	odd := func(context.Context, replay.Question) (replay.Answer, error) { return 77, nil }
	for name, c := range map[string]struct {
		answerers []replay.Answerer
		outcome   eventlog.AskOutcome
		decider   eventlog.Decider
		rule      string
		failure   string
		source    eventlog.Source
	}{
		"a person allows":               {[]replay.Answerer{replay.Human(allows), replay.Host(rejects)}, "allowed-once", "human", "", "", eventlog.SourceRuntime},
		"a person rejects":              {[]replay.Answerer{replay.Human(rejects), replay.Host(allows)}, "rejected", "human", "", "", eventlog.SourceRuntime},
		"a host decides":                {[]replay.Answerer{replay.Host(allows)}, "allowed-once", "host", "", "", eventlog.SourceRuntime},
		"the first passes":              {[]replay.Answerer{replay.Host(passes), replay.Human(rejects)}, "rejected", "human", "", "", eventlog.SourceRuntime},
		"all pass":                      {[]replay.Answerer{replay.Host(passes), replay.Human(passes)}, "unavailable", "rule", "no_answerer", "", eventlog.SourceStore},
		"one fails, none is asked then": {[]replay.Answerer{replay.Host(fails), replay.Human(allows)}, "unavailable", "rule", "answerer_failed", "the dialog is broken", eventlog.SourceStore},
		"one panics":                    {[]replay.Answerer{replay.Human(panics), replay.Human(allows)}, "unavailable", "rule", "answerer_failed", "the answerer panicked: no display", eventlog.SourceStore},
		"one never returns":             {[]replay.Answerer{replay.Human(exits)}, "unavailable", "rule", "answerer_failed", "the answerer ended without returning", eventlog.SourceStore},
		"an answer that is none":        {[]replay.Answerer{replay.Human(odd)}, "unavailable", "rule", "answerer_failed", "answer: want no answer, allow once or reject, got 77", eventlog.SourceStore},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			root := f.asking()
			got := f.ask(wants(root, "a1"), c.answerers...)
			require.Equal(t, eventlog.Decided{Ask: "a1", Outcome: c.outcome, Decider: c.decider, Rule: c.rule}, got.Decided)
			require.Equal(t, c.outcome == "allowed-once", got.Allowed())
			if c.failure == "" {
				require.NoError(t, got.Failure)
			} else {
				require.EqualError(t, got.Failure, c.failure)
			}
			require.Equal(t, []eventlog.Decided{got.Decided}, f.decisions(root))
			require.Equal(t, c.source, f.log(root)[got.DecidedSeq-1].Source)
			require.Len(t, f.row(root).Grants, map[bool]int{true: 1}[got.Allowed()])
			r := wants(root, "a1")
			_, err := replay.Once(f.ctx, f.Store, replay.Use{Session: root, Ask: "a1", Call: r.Call, Tool: r.Tool, Args: r.Args})
			if got.Allowed() {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, eventlog.ErrUnauthorized, "only the first outcome grants")
			}
		})
	}
}

// TestLateAnswers: an answer that comes after the decision, after the turn
// ended, after a cancellation, or an allowance after the policy changed, is
// dropped.
func TestLateAnswers(t *testing.T) {
	moved := func(f *fixture, root uuid.UUID, _ context.CancelFunc) { f.switchTo(root, policy.ReadOnly) }
	for _, c := range []struct {
		name      string
		meanwhile func(f *fixture, root uuid.UUID, cancel context.CancelFunc)
		answer    replay.Answer
		outcome   eventlog.AskOutcome
		rule      string
	}{
		{"the turn ended", func(f *fixture, root uuid.UUID, _ context.CancelFunc) {
			f.say(root, 0, event(f.t, "turn/end", "turn", 1))
		}, replay.AllowOnce, "cancelled", "turn_ended"},
		{"the turn ended, a rejection", func(f *fixture, root uuid.UUID, _ context.CancelFunc) {
			f.say(root, 0, event(f.t, "turn/end", "turn", 1))
		}, replay.Reject, "cancelled", "turn_ended"},
		{"another turn of the same number", func(f *fixture, root uuid.UUID, _ context.CancelFunc) {
			f.say(root, 0, event(f.t, "turn/end", "turn", 1), event(f.t, "turn/start", "turn", 1))
		}, replay.AllowOnce, "cancelled", "turn_ended"},
		{"a turn that began over the open one", func(f *fixture, root uuid.UUID, _ context.CancelFunc) {
			f.say(root, 0, event(f.t, "turn/start", "turn", 2))
		}, replay.AllowOnce, "cancelled", "turn_ended"},
		{"a switch", moved, replay.AllowOnce, "cancelled", "policy_moved"},
		{"a narrowing", func(f *fixture, root uuid.UUID, _ context.CancelFunc) { f.narrow(root, policy.ReadOnly, true) }, replay.AllowOnce, "cancelled", "policy_moved"},
		{"a switch, a rejection", moved, replay.Reject, "rejected", ""},
		{"cancelled", func(_ *fixture, _ uuid.UUID, cancel context.CancelFunc) { cancel() }, replay.AllowOnce, "cancelled", "withdrawn"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			root := f.asking()
			ctx, cancel := context.WithCancel(f.ctx)
			defer cancel()
			got, err := replay.Ask(ctx, f.Store, wants(root, "a1"), replay.Human(func(context.Context, replay.Question) (replay.Answer, error) {
				c.meanwhile(f, root, cancel)
				return c.answer, nil
			}), replay.Human(allows))
			require.NoError(t, err)
			require.Equal(t, c.outcome, got.Outcome)
			require.Equal(t, c.rule, got.Rule)
			require.Equal(t, []eventlog.Decided{got.Decided}, f.decisions(root))
			require.Empty(t, f.row(root).Grants)
		})
	}

	t.Run("an answerer that does not listen", func(t *testing.T) {
		f := newFixture(t)
		root := f.asking()
		ctx, cancel := context.WithCancel(f.ctx)
		release, returned := make(chan struct{}), make(chan struct{})
		got, err := replay.Ask(ctx, f.Store, wants(root, "a1"), replay.Human(func(context.Context, replay.Question) (replay.Answer, error) {
			defer close(returned)
			cancel()
			<-release
			return replay.AllowOnce, nil
		}))
		require.NoError(t, err)
		require.Equal(t, eventlog.Decided{Ask: "a1", Outcome: "cancelled", Decider: "host", Rule: "withdrawn"}, got.Decided)
		head := f.row(root).Head
		close(release)
		<-returned
		require.Equal(t, head, f.row(root).Head, "nobody hears it any more")
	})

	t.Run("decided by a later activation", func(t *testing.T) {
		f := newFixture(t)
		root := f.asking()
		_, err := replay.Ask(f.ctx, f.Store, wants(root, "a1"), replay.Human(func(context.Context, replay.Question) (replay.Answer, error) {
			f.activate(root)
			return replay.AllowOnce, nil
		}))
		require.ErrorIs(t, err, eventlog.ErrConflict)
		require.Equal(t, []eventlog.Decided{{Ask: "a1", Outcome: "unavailable", Decider: "rule", Rule: "interrupted"}}, f.decisions(root))
	})
}

// TestAuditFails: a question or a decision that can't be recorded is an error,
// and no decision comes with it.
func TestAuditFails(t *testing.T) {
	t.Run("the question", func(t *testing.T) {
		f := newFixture(t)
		root := f.asking()
		f.reopen(eventlog.Options{Limits: eventlog.Limits{Content: 64}})
		calls := 0
		got, err := replay.Ask(f.ctx, f.Store, wants(root, "a1"), replay.Human(says(replay.AllowOnce, &calls)))
		require.ErrorIs(t, err, eventlog.ErrTooLarge)
		require.Zero(t, got)
		require.Zero(t, calls, "nobody is asked what is not recorded")
		require.Empty(t, f.row(root).OpenAsks)
	})
	t.Run("question and decision", func(t *testing.T) {
		f := newFixture(t)
		root := f.rootWith(policy.WorkspaceWrite)
		child := f.child(root).ID
		f.reopen(eventlog.Options{Limits: eventlog.Limits{Content: 64}})
		got, err := replay.Ask(f.ctx, f.Store, wants(child, "a1"))
		require.ErrorIs(t, err, eventlog.ErrTooLarge)
		require.Zero(t, got)
		require.Equal(t, uint64(4), f.row(child).Head, "not half of the pair either")
	})
	t.Run("the decision", func(t *testing.T) {
		f := newFixture(t)
		root := f.asking()
		got, err := replay.Ask(f.ctx, f.Store, wants(root, "a1"), replay.Human(func(context.Context, replay.Question) (replay.Answer, error) {
			_, err := replay.Close(f.ctx, f.Store, root)
			return replay.AllowOnce, err
		}))
		require.ErrorIs(t, err, eventlog.ErrSessionClosed)
		require.Zero(t, got)
		require.Len(t, f.row(root).OpenAsks, 1, "it stays visible as unanswered")
		require.Empty(t, f.row(root).Grants)
	})
}

// TestCrashBetweenAskedAndDecided: the process ends while a person thinks. The
// question is visible as unanswered in the next process, five opens append
// nothing, and the next activation records it as unavailable, once.
func TestCrashBetweenAskedAndDecided(t *testing.T) {
	f := newFixture(t)
	root := f.asking()
	got, err := replay.Ask(f.ctx, f.Store, wants(root, "a1"), replay.Human(func(context.Context, replay.Question) (replay.Answer, error) {
		return replay.AllowOnce, f.Store.Close()
	}))
	require.ErrorIs(t, err, eventlog.ErrStoreClosed)
	require.Zero(t, got, "no decision")
	for range 5 {
		f.open(eventlog.Options{})
		require.Equal(t, []eventlog.OpenAsk{{Ask: "a1", Call: "call-a1", Seq: 4}}, f.row(root).OpenAsks)
		require.Empty(t, f.decisions(root))
		require.NoError(t, f.Store.Close())
	}
	f.open(eventlog.Options{})
	a := f.activate(root)
	require.Contains(t, a.Closed, replay.Closed{Kind: "ask", ID: "a1", Outcome: "unavailable"})
	f.activate(root)
	require.Equal(t, []eventlog.Decided{{Ask: "a1", Outcome: "unavailable", Decider: "rule", Rule: "interrupted"}}, f.decisions(root))
	for _, ev := range f.log(root) {
		if ev.Type == eventlog.TypeApprovalDecided {
			require.Equal(t, eventlog.SourceStore, ev.Source)
		}
	}
}

// TestConcurrentAsks: several asks under one id at the same time are one
// question with one decision, which those that come after it are told; asks under
// ids of their own don't disturb each other.
func TestConcurrentAsks(t *testing.T) {
	f := newFixture(t)
	root := f.asking()
	var mu sync.Mutex
	var wg sync.WaitGroup
	decided, asked := 0, 0
	for i := range 16 {
		wg.Go(func() {
			ruling, err := replay.Ask(f.ctx, f.Store, wants(root, "shared"), replay.Human(func(context.Context, replay.Question) (replay.Answer, error) {
				mu.Lock()
				defer mu.Unlock()
				asked++
				return replay.AllowOnce, nil
			}))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && !ruling.Existing:
				decided++
			case err == nil && ruling.Outcome != eventlog.AskAllowedOnce:
				t.Errorf("want the one decision, got %v", ruling)
			case err != nil && !errors.Is(err, eventlog.ErrConflict):
				t.Errorf("want a conflict, got %v", err)
			}
		})
		wg.Go(func() {
			own, err := replay.Ask(f.ctx, f.Store, wants(root, fmt.Sprintf("own-%d", i)), replay.Human(allows))
			if err != nil || !own.Allowed() {
				t.Errorf("want it allowed, got %v, %v", own, err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, decided)
	require.Equal(t, 1, asked)
	n := 0
	for _, d := range f.decisions(root) {
		if d.Ask == "shared" {
			n++
		}
	}
	require.Equal(t, 1, n)
	require.Len(t, f.decisions(root), 17)
	require.Len(t, f.row(root).Grants, 16, "the row is bounded")
}
