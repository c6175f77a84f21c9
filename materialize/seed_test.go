package materialize_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

// TestCase42_TheSeedDoesNotDescribeTheChild: the parent's log holds an old
// sandbox event, usage, denials, open calls of a finished turn, an activation
// and a settling. The seed brings the conversation; what the child may do and
// where it stands comes from its own events, which follow it.
func TestCase42_TheSeedDoesNotDescribeTheChild(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess) // its sandbox event is in the range that is copied
	a, err := replay.Activate(f.ctx, f.Store, root, replay.AsOperator())
	require.NoError(t, err)
	_, err = f.Append(f.ctx, eventlog.Batch{Session: root, Expect: eventlog.Any(), Epoch: a.Epoch, Events: turn(t, 1,
		text("user/message", "question"), event(t, "step/start", "turn", 1, "step", 1), event(t, "tool/call", "call", "c1", "tool", "edit"),
		event(t, "usage/recorded", "usage", "u1", "input", 100), event(t, "step/end", "turn", 1, "step", 1), text("assistant/message", "answer"))})
	require.NoError(t, err)
	_, _, err = replay.Switch(f.ctx, f.Store, root, replay.Change{Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Approvals: policy.Ask})
	require.NoError(t, err)
	_, err = replay.Settle(f.ctx, f.Store, root, a.Epoch, "completed")
	require.NoError(t, err)

	made := f.made(root, materialize.Request{Fork: f.row(root).Head})
	want := []string{"session/created", "turn/start", "user/message", "step/start", "tool/call", "step/end", "assistant/message", "turn/end",
		"session/end-seed", "delegation/granted", "sandbox/mode", "approval/policy"}
	require.Equal(t, want, f.types(made.ID))
	require.Equal(t, policy.ReadOnly, made.Policy.Sandbox.Value.Mode)
	require.Equal(t, policy.Never, made.Policy.Approvals)
	require.Equal(t, []uint64{1, 10, 11, 12}, made.Policy.Seqs(), "no copy bears policy")

	row := f.row(made.ID)
	require.Equal(t, uint64(7), row.SeedLen)
	require.Zero(t, row.Turns+row.Steps+row.Calls+row.Usage.Of+row.Usage.Input+row.Epoch+row.SettledSeq)
	require.Empty(t, row.OpenCalls, "the parent's call is not the child's")
	require.Zero(t, row.TurnSeq)
	require.Equal(t, eventlog.StatusIdle, row.Status(f.Boot()))
	notices, err := replay.Notices(f.ctx, f.Store, made.ID)
	require.NoError(t, err)
	require.Empty(t, notices)

	parents := map[uint64]eventlog.Event{}
	for _, ev := range f.log(root) {
		parents[ev.Seq] = ev
	}
	for _, ev := range f.log(made.ID)[1:8] {
		from := parents[ev.Inherited.Seq]
		require.Equal(t, root, ev.Inherited.Session)
		require.NotEqual(t, from.ID, ev.ID, "a new id")
		require.Equal(t, []any{from.Type, from.Facts, from.Media, from.Content, from.Source, from.Time, from.Ignorable},
			[]any{ev.Type, ev.Facts, ev.Media, ev.Content, ev.Source, ev.Time, ev.Ignorable})
		if from.HasContent {
			require.NotEqual(t, from.Commitment, ev.Commitment, "a new salt")
		}
		require.False(t, ev.PolicyBearing)
	}
	g, _ := f.receipt(made.ID)
	require.Equal(t, uint64(7), g.SeedLen)
	require.False(t, g.SeedDigest.IsZero())

	t.Run("a child of the child", func(t *testing.T) {
		second := f.made(made.ID, materialize.Request{Fork: f.row(made.ID).Head})
		events := f.log(second.ID)
		require.Equal(t, want, f.types(second.ID))
		require.Equal(t, &eventlog.Ref{Session: made.ID, Seq: 2}, events[1].Inherited, "it says where it was copied from, link by link")
		require.Equal(t, []byte("question"), events[2].Content)
	})
}

// TestASeedDoesNotEndInsideATurn: the child would answer half a question. A
// cut between turns is fine, inside an interrupted turn too once it was closed.
func TestASeedDoesNotEndInsideATurn(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite) // seq 1 and 2
	f.say(root, turn(t, 1, text("user/message", "one"))...)
	f.say(root, event(t, "turn/start", "turn", 2), text("user/message", "two"))
	for fork, head := uint64(1), f.row(root).Head; fork <= head; fork++ {
		made, err := f.delegate(root, materialize.Request{Fork: fork})
		switch fork {
		case 3, 4: // inside turn 1
			require.ErrorIs(t, err, eventlog.ErrOpenTurn)
			require.ErrorContains(t, err, "began at seq 3")
		case 6, 7: // inside turn 2
			require.ErrorIs(t, err, eventlog.ErrOpenTurn)
			require.ErrorContains(t, err, "began at seq 6")
		default:
			require.NoError(t, err)
			if fork < 3 {
				require.NotContains(t, f.types(made.ID), "session/end-seed", "nothing was copied")
				require.Zero(t, f.row(made.ID).SeedLen)
			}
		}
	}
	before := f.sessions()
	_, err := f.delegate(root, materialize.Request{Fork: f.row(root).Head + 1})
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	require.Equal(t, before, f.sessions())

	_, err = replay.Activate(f.ctx, f.Store, root, replay.AsOperator()) // closes turn 2
	require.NoError(t, err)
	made := f.made(root, materialize.Request{Fork: f.row(root).Head})
	var last eventlog.Event
	for _, ev := range f.log(made.ID) {
		if ev.Inherited != nil {
			last = ev
		}
	}
	require.Equal(t, "turn/end", last.Type)
	require.Equal(t, eventlog.SourceStore, last.Source, "who closed it is kept")
}

// TestSeedsKeepBytes: contents of every kind arrive as they were given.
func TestSeedsKeepBytes(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	given := []eventlog.NewEvent{
		{Type: "plugin/blob", Media: eventlog.MediaOctets, Content: []byte{0, 0xff, 0xfe, 10, 13}, Ignorable: true},
		{Type: "plugin/json", Media: eventlog.MediaJSON, Content: []byte("{\"a\" :1.0e2, \"s\":\"\\ud800\"}\n")},
		{Type: "plugin/empty", Media: eventlog.MediaText, Content: []byte{}},
		{Type: "plugin/none"},
		{Type: "assistant/message", Media: eventlog.MediaText, Content: bytes.Repeat([]byte("long text "), 30_000)},
	}
	f.say(root, given...)
	made := f.made(root, materialize.Request{Fork: f.row(root).Head})
	for i, ev := range f.log(made.ID)[1:6] {
		require.Equal(t, given[i].Type, ev.Type)
		require.Equal(t, given[i].Media, ev.Media)
		require.Equal(t, given[i].Media != eventlog.MediaNone, ev.HasContent)
		require.Equal(t, string(given[i].Content), string(ev.Content))
		require.Equal(t, given[i].Ignorable, ev.Ignorable)
	}
}

// TestALongSeed: over many pages and frames, in order and whole.
func TestALongSeed(t *testing.T) {
	n := 3000
	if !testing.Short() {
		n = 30_000
	}
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	batch := make([]eventlog.NewEvent, 1000)
	for done := 0; done < n; done += len(batch) {
		for i := range batch {
			batch[i] = event(t, "plugin/count", "n", done+i)
		}
		f.say(root, batch...)
	}
	made := f.made(root, materialize.Request{Fork: f.row(root).Head})
	row := f.row(made.ID)
	require.Equal(t, uint64(n), row.SeedLen)
	next := uint64(0)
	for _, ev := range f.log(made.ID) {
		if ev.Inherited != nil {
			require.Equal(t, next, ev.Facts.Uint("n"))
			next++
		}
	}
	require.Equal(t, uint64(n), next)
	require.Equal(t, policy.WorkspaceWrite, f.policy(made.ID).Sandbox.Value.Mode)
}

// TestSeedRefusals: too much of it, and a content that can't be read. Nothing
// is left behind, and the capture is not spent.
func TestSeedRefusals(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	f.say(root, text("user/message", "a content that will be damaged"), text("user/message", "another one"))
	f.reopen(eventlog.Options{Limits: eventlog.Limits{BatchContent: 100}})
	f.say(root, text("user/message", "and more"))
	before, sessions := f.row(root), f.sessions()
	_, err := f.delegate(root, materialize.Request{Fork: before.Head, Prompt: string(bytes.Repeat([]byte{'x'}, 100))})
	require.ErrorIs(t, err, eventlog.ErrTooLarge)
	require.Equal(t, before, f.row(root))
	require.Equal(t, sessions, f.sessions())

	require.NoError(t, f.Store.Close())
	path := filepath.Join(f.dir, "store.db")
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(file, []byte("a content that"), []byte("A content that")), 0o600))
	f.damaged = true
	f.open(eventlog.Options{})
	_, err = f.delegate(root, materialize.Request{Fork: before.Head})
	require.ErrorIs(t, err, eventlog.ErrCorrupt)
	require.ErrorContains(t, err, "seq 3")
	require.Equal(t, before.Head, f.row(root).Head)
	require.Equal(t, sessions, f.sessions())
	f.made(root, materialize.Request{Fork: 2}) // before the damage
}

// TestSeedTimesAreKept: a copy says when the original was said; the order is
// that of the seqs.
func TestSeedTimesAreKept(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	past := time.Date(2020, 1, 2, 3, 4, 5, 6, time.UTC)
	f.reopen(eventlog.Options{Clock: func() time.Time { return past }})
	f.say(root, text("user/message", "said long ago"))
	f.reopen(eventlog.Options{})
	made := f.made(root, materialize.Request{Fork: f.row(root).Head})
	events := f.log(made.ID)
	require.True(t, events[1].Time.Equal(past))
	require.True(t, events[0].Time.After(past))
	row := f.row(made.ID)
	require.True(t, row.LastActivity().After(past))
}
