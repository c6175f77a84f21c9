package replay_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// grow appends n messages in batches of size each, several on their way at a
// time.
func (f *fixture) grow(id uuid.UUID, n, size int) {
	f.t.Helper()
	batch := make([]eventlog.NewEvent, size)
	for i := range batch {
		batch[i] = eventlog.NewEvent{Type: eventlog.TypeAssistantMessage, Media: eventlog.MediaText, Content: []byte("a line of output")}
	}
	var waiting []*eventlog.Pending
	for done := 0; done < n; done += size {
		p, err := f.Store.AppendAsync(f.ctx, eventlog.Batch{Session: id, Expect: eventlog.Any(), Events: batch})
		require.NoError(f.t, err)
		waiting = append(waiting, p)
	}
	for _, p := range waiting {
		_, err := p.Wait(f.ctx)
		require.NoError(f.t, err)
	}
}

// TestCase19_PolicyOnlyOfALongLog: the delegation at seq 2 to 4, then a long
// log with a switch and a narrowing early in it. The policy by links is the
// one of the full replay, and reading it takes no more memory than in a short
// log: the events in between are not looked at.
func TestCase19_PolicyOnlyOfALongLog(t *testing.T) {
	long := 20_000
	if !testing.Short() {
		long = 200_000
	}
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	grown := func(n int) uuid.UUID {
		id := f.child(root).ID
		f.switchTo(id, policy.WorkspaceWrite)
		f.grow(id, n/2, 50)
		f.narrow(id, policy.ReadOnly, false)
		f.grow(id, n/2, 50)
		return id
	}
	short, deep := grown(1000), grown(long)
	f.reopen(eventlog.Options{ReadOnly: true})

	for _, id := range []uuid.UUID{short, deep} {
		events, row, err := f.Store.Policy(f.ctx, id, 0)
		require.NoError(t, err)
		require.Len(t, events, 6, "of %d", row.Head)
		linked, err := replay.Fold(events)
		require.NoError(t, err)
		var all []eventlog.Event
		require.NoError(t, f.Store.Replay(f.ctx, id, false, func(ev *eventlog.Event) error { all = append(all, *ev); return nil }))
		require.Len(t, all, int(row.Head))
		full, err := replay.Fold(all)
		require.NoError(t, err)
		require.Equal(t, row.Head, full.Seq)
		linked.Seq = full.Seq
		require.Equal(t, rendered(&full), rendered(&linked))
		e := f.policy(id)
		require.Equal(t, rendered(&full), rendered(&e))
		require.True(t, e.Sandbox.Value.Equal(readOnly()))
	}

	cost := func(id uuid.UUID) float64 {
		return testing.AllocsPerRun(20, func() {
			if _, err := replay.Policy(f.ctx, f.Store, id, 0); err != nil {
				panic(err)
			}
		})
	}
	// The search for a frame looks at a few more rows of positions, by the
	// logarithm of their number; reading what lies between would cost as many
	// times more as the log is longer.
	require.LessOrEqual(t, cost(deep), 4*cost(short))
}

// TestCase22_AnUnreadablePolicyEvent: whatever rests on the policy says that
// it can't be read, and grants nothing. With and without an index that knows
// where the event stands.
func TestCase22_AnUnreadablePolicyEvent(t *testing.T) {
	for name, c := range map[string]struct {
		indexed bool
		typ     string
	}{
		"the sandbox, indexed": {true, "sandbox/mode"}, "the pin, indexed": {true, "approval/policy"}, "the receipt, indexed": {true, "delegation/granted"},
		"a narrowing, indexed": {true, "policy/narrowed"}, "the sandbox": {false, "sandbox/mode"}, "a narrowing": {false, "policy/narrowed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.damaged = true
			root := f.rootWith(policy.DangerFullAccess)
			child := f.child(root).ID
			f.say(child, 0, event(t, "user/message"))
			f.narrow(child, policy.ReadOnly, false)
			f.say(child, 0, event(t, "user/message"))
			head := f.row(child).Head
			if c.indexed {
				f.fillIndex(root)
			}
			f.rewrite(child, flip(c.typ))
			f.open(eventlog.Options{})

			unreadable := func(what string, err error) {
				t.Helper()
				require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable, what)
				require.NotErrorIs(t, err, eventlog.ErrNotFound, what)
			}
			e, err := replay.Policy(f.ctx, f.Store, child, 0)
			unreadable("policy", err)
			require.Equal(t, replay.Effective{}, e)
			for seq := uint64(1); seq <= head; seq++ {
				_, err = replay.Policy(f.ctx, f.Store, child, seq)
				unreadable("policy as of a seq before the damage too", err)
			}
			_, err = replay.Resume(f.ctx, f.Store, replay.Request{Session: child, By: replay.AsOperator()})
			unreadable("resume", err)
			_, err = snapshot.Take(f.ctx, f.Store, child, snapshot.Options{})
			unreadable("take", err)
			_, _, err = replay.Switch(f.ctx, f.Store, child, replay.Change{Sandbox: &policy.Setting{Mode: policy.ReadOnly}})
			unreadable("switch", err)
			_, err = replay.Activate(f.ctx, f.Store, child, replay.AsOperator())
			unreadable("activate", err)
			_, err = replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: child, Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Reason: "r"})
			unreadable("narrow", err)
			_, err = replay.Explain(f.ctx, f.Store, child, "sandbox", 0)
			unreadable("explain", err)
			_, _, _, err = replay.Diff(f.ctx, f.Store, child, 0, 0)
			unreadable("diff", err)
			f.reopen(eventlog.Options{ReadOnly: true})
			_, err = replay.Policy(f.ctx, f.Store, child, 0)
			unreadable("read only", err)

			// The rest of the log is still there to be read.
			page, err := f.Store.Read(f.ctx, child, eventlog.ReadOptions{})
			require.NoError(t, err)
			require.NotEmpty(t, page.Holes)
			require.NotEmpty(t, page.Events)
		})
	}
}
