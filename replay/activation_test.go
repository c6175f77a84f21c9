package replay_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

// leaveOpen is a harness in the middle of its work: a turn with an open step,
// a finished call, a call that was made, one that was asked for and made, one
// that was only asked for, and an ask about no call.
func (f *fixture) leaveOpen(id uuid.UUID, epoch uint64) {
	f.t.Helper()
	f.say(id, epoch, event(f.t, "turn/start", "turn", 3), event(f.t, "step/start", "turn", 3, "step", 2),
		event(f.t, "tool/call", "call", "done", "tool", "read"), event(f.t, "tool/result", "call", "done", "outcome", "ok"),
		event(f.t, "tool/call", "call", "made", "tool", "edit"))
	f.asks(id, epoch, "a1", "asked-and-made", "edit")
	f.decides(id, epoch, "a1", "cancelled", "host")
	f.say(id, epoch, event(f.t, "tool/call", "call", "asked-and-made", "tool", "edit"))
	f.asks(id, epoch, "a2", "only-asked", "exec_shell")
	f.asks(id, epoch, "a3", "", "exec_shell")
}

// asks and decides write what the deciding call of a harness writes.
func (f *fixture) asks(id uuid.UUID, epoch uint64, ask, call, tool string) {
	f.t.Helper()
	pairs := []any{"ask", ask, "tool", tool}
	if call != "" {
		pairs = append(pairs, "call", call)
	}
	f.runtime(id, epoch, event(f.t, "approval/asked", pairs...))
}

func (f *fixture) decides(id uuid.UUID, epoch uint64, ask, outcome, decider string) {
	f.t.Helper()
	ev := event(f.t, "approval/decided", "ask", ask, "outcome", outcome, "decider", decider)
	if decider == "pin" || decider == "rule" {
		ev.Source = eventlog.SourceStore // nobody was asked
	}
	f.runtime(id, epoch, ev)
}

func (f *fixture) runtime(id uuid.UUID, epoch uint64, events ...eventlog.NewEvent) {
	f.t.Helper()
	_, err := f.Store.Transact(f.ctx, eventlog.EntryRuntime, func(*eventlog.View) ([]eventlog.Batch, error) {
		return []eventlog.Batch{{Session: id, Expect: eventlog.Any(), Epoch: epoch, Events: events}}, nil
	})
	require.NoError(f.t, err)
}

// TestCase17_AKilledProcess: the process that ran a child is gone. Five opens
// show it as interrupted and append nothing; the next activation closes what
// was open, once; the child goes on; and a cancel gives a last event.
func TestCase17_AKilledProcess(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.child(root).ID
	a := f.activate(child)
	f.leaveOpen(child, a.Epoch)
	require.Equal(t, eventlog.StatusRunning, f.resume(child, replay.AsParent(root)).Status)
	dead := f.row(child)

	for range 5 {
		f.reopen(eventlog.Options{})
		r := f.resume(child, replay.AsParent(root))
		require.Equal(t, eventlog.StatusInterrupted, r.Status)
		require.Len(t, r.OpenCalls, 3)
		require.Equal(t, dead, f.row(child), "an open adds nothing")
	}

	b := f.activate(child)
	require.Equal(t, []replay.Closed{
		{Kind: "ask", ID: "a2", Outcome: "unavailable"}, {Kind: "ask", ID: "a3", Outcome: "unavailable"},
		{Kind: "call", ID: "made", Outcome: "outcome-unknown"}, {Kind: "call", ID: "asked-and-made", Outcome: "outcome-unknown"},
		{Kind: "call", ID: "only-asked", Outcome: "not-started"},
		{Kind: "step", ID: "2", Outcome: "interrupted"}, {Kind: "turn", ID: "3", Outcome: "interrupted"}}, b.Closed)
	require.Equal(t, a.Epoch+1, b.Epoch)
	events := f.log(child)[dead.Head:]
	require.Equal(t, eventlog.TypeActivationStarted, events[0].Type)
	require.Equal(t, b.Seq, events[0].Seq)
	require.Equal(t, b.Head, events[len(events)-1].Seq)
	require.Len(t, events, 1+len(b.Closed))
	for i, c := range b.Closed {
		ev := events[i+1]
		require.Equal(t, eventlog.SourceStore, ev.Source, "nobody claims that the harness said so")
		require.Equal(t, map[string]string{"ask": "approval/decided", "call": "tool/result", "step": "step/end", "turn": "turn/end"}[c.Kind], ev.Type)
		if c.Kind == "ask" || c.Kind == "call" {
			require.Equal(t, c.ID, ev.Facts.Str(c.Kind))
			require.Equal(t, c.Outcome, ev.Facts.Str("outcome"))
		} else {
			require.Equal(t, c.Outcome, ev.Facts.Str("reason"))
			require.Equal(t, uint64(3), ev.Facts.Uint("turn"))
		}
	}
	row := f.row(child)
	require.Empty(t, row.OpenCalls)
	require.Empty(t, row.OpenAsks)
	require.Zero(t, row.TurnSeq)
	require.Zero(t, row.StepSeq)
	require.Empty(t, row.Denials, "unavailable is no denial")

	t.Run("once", func(t *testing.T) {
		f.reopen(eventlog.Options{})
		c := f.activate(child)
		require.Empty(t, c.Closed)
		require.Equal(t, row.Head+1, f.row(child).Head, "the activation and nothing else")
		f.say(child, c.Epoch, event(t, "turn/start", "turn", 4), event(t, "turn/end", "turn", 4)) // it goes on
	})
	t.Run("cancelled", func(t *testing.T) {
		f.reopen(eventlog.Options{})
		f.settle(child, 0, "cancelled")
		row := f.row(child)
		last := f.log(child)[row.Head-1]
		require.Equal(t, eventlog.TypeSessionSettled, last.Type)
		require.Equal(t, "cancelled", last.Facts.Str("outcome"))
		require.Equal(t, eventlog.StatusSettled, row.Status(f.Store.Boot()))
		_, err := replay.Close(f.ctx, f.Store, child)
		require.NoError(t, err)
		_, err = f.Store.Append(f.ctx, eventlog.Batch{Session: child, Expect: eventlog.Any(), Events: []eventlog.NewEvent{event(t, "user/message")}})
		require.ErrorIs(t, err, eventlog.ErrSessionClosed)
	})
}

// TestCase23_TheOlderActivationIsFenced: two activations of one session in
// turn. The older one's next append is fenced, in every call that takes an
// epoch; its retry of what it had committed still gets its result; the seqs
// have no gap.
func TestCase23_TheOlderActivationIsFenced(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.child(root).ID
	old := f.activate(child)
	id, err := uuid.NewV7()
	require.NoError(t, err)
	committed := eventlog.Batch{Session: child, Expect: eventlog.At(old.Head), Epoch: old.Epoch, Events: []eventlog.NewEvent{{ID: id, Type: "user/message"}}}
	first, err := f.Store.Append(f.ctx, committed)
	require.NoError(t, err)
	young := f.activate(child)
	require.Equal(t, old.Epoch+1, young.Epoch)

	fenced := func(what string, err error) {
		t.Helper()
		require.ErrorIs(t, err, eventlog.ErrFenced, what)
		var fe *eventlog.FencedError
		require.ErrorAs(t, err, &fe, what)
		require.Equal(t, young.Epoch, fe.Open, what)
	}
	before := f.row(child).Hash
	for _, epoch := range []uint64{old.Epoch, young.Epoch + 1} {
		_, err = f.Store.Append(f.ctx, eventlog.Batch{Session: child, Expect: eventlog.Any(), Epoch: epoch, Events: []eventlog.NewEvent{{Type: "user/message"}}})
		fenced("append", err)
		_, _, err = replay.Switch(f.ctx, f.Store, child, replay.Change{Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Epoch: epoch})
		fenced("switch", err)
		_, err = replay.Settle(f.ctx, f.Store, child, epoch, "completed")
		fenced("settle", err)
		_, err = replay.End(f.ctx, f.Store, child, epoch, "done")
		fenced("end", err)
		_, err = replay.Claim(f.ctx, f.Store, child, epoch)
		fenced("claim", err)
	}
	_, err = f.Store.Append(f.ctx, eventlog.Batch{Session: child, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: "user/message"}}})
	fenced("append without an epoch", err)
	_, err = replay.Claim(f.ctx, f.Store, child, 0)
	fenced("claim without an epoch", err)
	_, err = replay.End(f.ctx, f.Store, child, 0, "done")
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	require.Equal(t, before, f.row(child).Hash)

	again, err := f.Store.Append(f.ctx, committed)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, first.FirstSeq, again.FirstSeq)

	f.say(child, young.Epoch, event(t, "user/message"))
	for i, ev := range f.log(child) {
		require.Equal(t, uint64(i+1), ev.Seq)
	}

	t.Run("from outside the activation", func(t *testing.T) {
		_, _, err := replay.Send(f.ctx, f.Store, child, replay.AsParent(root), "more")
		require.NoError(t, err)
		_, err = replay.Interrupt(f.ctx, f.Store, child, replay.AsParent(root), true)
		require.NoError(t, err)
		f.switchTo(child, policy.ReadOnly) // an operator's
		f.narrow(child, policy.ReadOnly, false)
	})
	t.Run("after its end nobody holds it", func(t *testing.T) {
		_, err := replay.End(f.ctx, f.Store, child, young.Epoch, "released")
		require.NoError(t, err)
		_, err = replay.End(f.ctx, f.Store, child, young.Epoch, "released")
		require.ErrorIs(t, err, eventlog.ErrFenced)
		_, err = replay.Claim(f.ctx, f.Store, child, young.Epoch)
		require.ErrorIs(t, err, eventlog.ErrFenced, "also with nothing to claim")
		row := f.row(child)
		require.Equal(t, eventlog.StatusIdle, row.Status(f.Store.Boot()))
		f.say(child, 0, event(t, "user/message"))
		require.Equal(t, young.Epoch+1, f.activate(child).Epoch, "an epoch is never given twice")
	})
}

// TestActivateRefusals: who may not, and what may not.
func TestActivateRefusals(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.child(root).ID
	closed := f.child(root).ID
	_, err := replay.Close(f.ctx, f.Store, closed)
	require.NoError(t, err)
	oneShot := f.childOf(root, materialize.Request{Mode: eventlog.ModeOneShot}).ID
	f.settle(oneShot, f.activate(oneShot).Epoch, "completed")
	evidence := f.evidence(eventlog.KindChild, root)
	before := f.row(child)
	for _, c := range []struct {
		id   uuid.UUID
		by   replay.Caller
		want error
	}{
		{child, replay.AsParent(child), eventlog.ErrUnauthorized},
		{child, replay.Caller{}, eventlog.ErrUnauthorized},
		{closed, replay.AsParent(root), eventlog.ErrSessionClosed},
		{oneShot, replay.AsParent(root), eventlog.ErrSessionClosed},
		{evidence, replay.AsParent(root), eventlog.ErrEvidence},
		{uuid.MustParse("99999999-9999-4999-8999-999999999999"), replay.AsOperator(), eventlog.ErrNotFound},
	} {
		_, err := replay.Activate(f.ctx, f.Store, c.id, c.by)
		require.ErrorIs(t, err, c.want)
	}
	require.Equal(t, before, f.row(child))
	f.reopen(eventlog.Options{ReadOnly: true})
	_, err = replay.Activate(f.ctx, f.Store, child, replay.AsParent(root))
	require.ErrorIs(t, err, eventlog.ErrReadOnly)
}

// TestActivationsRace: activations at the same time get different epochs, in
// the order of their events, and only the last one may append.
func TestActivationsRace(t *testing.T) {
	f := newFixture(t)
	child := f.child(f.rootWith(policy.WorkspaceWrite)).ID
	const n = 16
	got := make([]replay.Activation, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			a, err := replay.Activate(f.ctx, f.Store, child, replay.AsOperator())
			if err != nil {
				panic(err)
			}
			got[i] = a
			_, err = f.Store.Append(f.ctx, eventlog.Batch{Session: child, Expect: eventlog.Any(), Epoch: a.Epoch, Events: []eventlog.NewEvent{{Type: "user/message"}}})
			if err != nil && !strings.Contains(err.Error(), "superseded") {
				panic(err)
			}
		})
	}
	wg.Wait()
	seen := map[uint64]uint64{}
	for _, a := range got {
		require.Zero(t, seen[a.Epoch], "epoch %d was given twice", a.Epoch)
		seen[a.Epoch] = a.Seq
	}
	for e := uint64(2); e <= n; e++ {
		require.Greater(t, seen[e], seen[e-1])
	}
	row := f.row(child)
	require.Equal(t, uint64(n), row.Epoch)
	open := uint64(0)
	for _, ev := range f.log(child) { // no append of an older epoch behind a younger activation
		if ev.Type == eventlog.TypeActivationStarted {
			open = ev.Facts.Uint("epoch")
		}
	}
	require.Equal(t, uint64(n), open)
}
