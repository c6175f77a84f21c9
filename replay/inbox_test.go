package replay_test

import (
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

func (f *fixture) send(id uuid.UUID, by replay.Caller, text string) uuid.UUID {
	f.t.Helper()
	_, message, err := replay.Send(f.ctx, f.Store, id, by, text)
	require.NoError(f.t, err)
	return message
}

func ids(messages []eventlog.Message) (out []uuid.UUID) {
	for _, m := range messages {
		out = append(out, m.ID)
	}
	return out
}

// TestSendReachesTheNextActivation: a message waits for whoever runs next, is
// claimed once, and keeps its text in the content.
func TestSendReachesTheNextActivation(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.child(root).ID

	before := f.send(child, replay.AsParent(root), "before it ever ran")
	a := f.activate(child)
	require.Equal(t, []uuid.UUID{before}, ids(a.Inbox))
	running := f.send(child, replay.AsOperator(), "while it runs")
	got, err := replay.Claim(f.ctx, f.Store, child, a.Epoch)
	require.NoError(t, err)
	require.Equal(t, []uuid.UUID{running}, ids(got))
	require.Equal(t, uuid.Nil, got[0].From, "an operator is no session")
	got, err = replay.Claim(f.ctx, f.Store, child, a.Epoch)
	require.NoError(t, err)
	require.Empty(t, got, "nothing is claimed twice")

	f.settle(child, a.Epoch, "completed")
	settled := f.send(child, replay.AsParent(root), "after it settled")
	f.reopen(eventlog.Options{})
	require.Equal(t, []uuid.UUID{settled}, ids(f.resume(child, replay.AsParent(root)).Inbox))
	b := f.activate(child)
	require.Equal(t, []uuid.UUID{settled}, ids(b.Inbox))
	require.Empty(t, f.row(child).Inbox)
	c := f.activate(child)
	require.Empty(t, c.Inbox)

	texts := map[uuid.UUID]string{}
	for _, ev := range f.log(child) {
		if ev.Type == eventlog.TypeInboxQueued {
			texts[ev.Facts.UUID("message")] = string(ev.Content)
		}
	}
	require.Equal(t, map[uuid.UUID]string{before: "before it ever ran", running: "while it runs", settled: "after it settled"}, texts)
}

// TestSendRefusals: to whom nothing can be sent, by whom, and what.
func TestSendRefusals(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.child(root).ID
	closed := f.child(root).ID
	_, err := replay.Close(f.ctx, f.Store, closed)
	require.NoError(t, err)
	oneShot := f.childOf(root, materialize.Request{Mode: eventlog.ModeOneShot}).ID
	a := f.activate(oneShot)
	f.send(oneShot, replay.AsParent(root), "it runs, so it can claim")
	got, err := replay.Claim(f.ctx, f.Store, oneShot, a.Epoch)
	require.NoError(t, err)
	require.Len(t, got, 1)
	f.settle(oneShot, a.Epoch, "completed")
	evidence := f.evidence(eventlog.KindChild, root)

	before := f.row(child)
	for _, c := range []struct {
		id   uuid.UUID
		by   replay.Caller
		text string
		want error
	}{
		{child, replay.AsParent(child), "x", eventlog.ErrUnauthorized},
		{child, replay.Caller{}, "x", eventlog.ErrUnauthorized},
		{root, replay.AsParent(uuid.Nil), "x", eventlog.ErrUnauthorized},
		{child, replay.AsParent(root), "", eventlog.ErrInvalid},
		{child, replay.AsParent(root), "\xff", eventlog.ErrInvalid},
		{closed, replay.AsParent(root), "x", eventlog.ErrSessionClosed},
		{oneShot, replay.AsParent(root), "x", eventlog.ErrSessionClosed},
		{evidence, replay.AsParent(root), "x", eventlog.ErrEvidence},
		{evidence, replay.AsOperator(), "x", eventlog.ErrEvidence},
		{uuid.MustParse("99999999-9999-4999-8999-999999999999"), replay.AsOperator(), "x", eventlog.ErrNotFound},
	} {
		_, _, err := replay.Send(f.ctx, f.Store, c.id, c.by, c.text)
		require.ErrorIs(t, err, c.want, "%q", c.text)
		if c.text == "x" {
			_, err = replay.Interrupt(f.ctx, f.Store, c.id, c.by, false)
			require.ErrorIs(t, err, c.want)
		}
	}
	require.Equal(t, before, f.row(child))
	_, err = replay.Claim(f.ctx, f.Store, closed, 1)
	require.ErrorIs(t, err, eventlog.ErrFenced)
}

// TestInterrupt: it is a request in the log that drops pending messages, or
// keeps them, and is no end of the activation.
func TestInterrupt(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.child(root).ID
	a := f.activate(child)
	kept := f.send(child, replay.AsParent(root), "kept")
	r, err := replay.Interrupt(f.ctx, f.Store, child, replay.AsParent(root), true)
	require.NoError(t, err)
	require.Equal(t, []uuid.UUID{kept}, ids(f.row(child).Inbox))
	ev := f.log(child)[r.LastSeq-1]
	require.Equal(t, eventlog.TypeControlInterrupt, ev.Type)
	require.Equal(t, "parent", ev.Facts.Str("by"))
	require.True(t, ev.Facts.Bool("keep_inbox"))

	_, err = replay.Interrupt(f.ctx, f.Store, child, replay.AsOperator(), false)
	require.NoError(t, err)
	require.Empty(t, f.row(child).Inbox)
	got, err := replay.Claim(f.ctx, f.Store, child, a.Epoch)
	require.NoError(t, err)
	require.Empty(t, got)
	later := f.send(child, replay.AsParent(root), "later")
	require.Equal(t, []uuid.UUID{later}, ids(f.row(child).Inbox), "what comes after it is not dropped")
	f.say(child, a.Epoch, event(t, "turn/start", "turn", 1), event(t, "turn/end", "turn", 1, "reason", "interrupted"))
}

// TestManyMessagesDoNotStopAnActivation: a parent that sends without end must
// not be able to make a child that nobody can activate any more.
func TestManyMessagesDoNotStopAnActivation(t *testing.T) {
	f := newFixture(t)
	child := f.child(f.rootWith(policy.WorkspaceWrite)).ID
	f.reopen(eventlog.Options{Limits: eventlog.Limits{Facts: 2 << 10}})
	const n = 300 // more than fit into one event under this limit
	queued := make([]eventlog.NewEvent, n)
	for i := range queued {
		id := uuid.NewSHA1(child, []byte{byte(i), byte(i >> 8)})
		queued[i] = eventlog.NewEvent{Type: eventlog.TypeInboxQueued, Facts: facts(t, "message", id), Media: eventlog.MediaText, Content: []byte("x")}
	}
	f.runtime(child, 0, queued...)
	require.Len(t, f.row(child).Inbox, n)
	a := f.activate(child)
	require.Len(t, a.Inbox, n)
	require.Empty(t, f.row(child).Inbox)

	f.runtime(child, 0, queued...)
	got, err := replay.Claim(f.ctx, f.Store, child, a.Epoch)
	require.NoError(t, err)
	require.Len(t, got, n)
	require.Empty(t, f.row(child).Inbox)
}

// TestClaimsRace: messages that are sent while two goroutines claim are each
// claimed by exactly one.
func TestClaimsRace(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.child(root).ID
	a := f.activate(child)
	const n = 40
	var sent, claimed sync.Map
	var senders, claimers sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for range n / 4 {
				_, id, err := replay.Send(f.ctx, f.Store, child, replay.AsParent(root), "x")
				if err != nil {
					panic(err)
				}
				sent.Store(id, true)
			}
		})
	}
	take := func() {
		got, err := replay.Claim(f.ctx, f.Store, child, a.Epoch)
		if err != nil {
			panic(err)
		}
		for _, m := range got {
			if _, twice := claimed.LoadOrStore(m.ID, true); twice {
				panic("claimed twice")
			}
		}
	}
	for range 2 {
		claimers.Go(func() {
			for range 20 {
				take()
			}
		})
	}
	senders.Wait()
	claimers.Wait()
	take()
	count := 0
	sent.Range(func(id, _ any) bool {
		_, ok := claimed.Load(id)
		require.True(t, ok)
		count++
		return true
	})
	require.Equal(t, n, count)
}
