package materialize_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

// imported makes an imported log with full access and the given conversation.
func (f *fixture) imported(id uuid.UUID, events ...eventlog.NewEvent) uuid.UUID {
	f.t.Helper()
	c := eventlog.Created{Kind: eventlog.KindRoot, Root: id, Mode: eventlog.ModeContinuable, MaxDepth: 8, Evidence: true,
		Defaults: policy.Defaults{Sandbox: policy.Top(), Approvals: policy.Ask}}
	all := append([]eventlog.NewEvent{{Type: eventlog.TypeSessionCreated, Facts: c.Facts()},
		{Type: eventlog.TypeSandboxMode, Facts: eventlog.ImportedSandboxFacts(policy.Top(), eventlog.ClaimedSwitch)}}, events...)
	_, err := f.Store.Transact(f.ctx, eventlog.EntryImport, func(*eventlog.View) ([]eventlog.Batch, error) {
		return []eventlog.Batch{{Session: id, Events: all}}, nil
	})
	require.NoError(f.t, err)
	return id
}

// TestAdopt: a child that begins with the conversation of evidence holds what
// its native parent hands on, and nothing of what the evidence says of itself.
func TestAdopt(t *testing.T) {
	f := newFixture(t)
	id := uuid.MustParse("eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee")
	f.imported(id, append(turn(t, 1, text("user/message", "question"), event(t, "usage/recorded", "usage", "u1", "input", 100),
		text("import/source", "a note about the file"), text("assistant/message", "answer")),
		event(t, "turn/start", "turn", 2), text("user/message", "cut off"))...)
	parent := f.rootWith(policy.ReadOnly)
	before := f.row(id)

	made := f.made(parent, materialize.Request{Adopt: id, Fork: 8, Key: "one"})
	require.Equal(t, []string{"session/created", "turn/start", "user/message", "assistant/message", "turn/end",
		"session/end-seed", "delegation/granted", "sandbox/mode", "approval/policy"}, f.types(made.ID))
	require.Equal(t, policy.ReadOnly, made.Policy.Sandbox.Value.Mode)
	require.Equal(t, policy.Never, made.Policy.Approvals)
	require.Equal(t, parent, made.Policy.Parent)
	log := f.log(made.ID)
	for i, seq := range []uint64{3, 4, 7, 8} {
		require.Equal(t, &eventlog.Ref{Session: id, Seq: seq}, log[i+1].Inherited)
	}
	require.Equal(t, "answer", string(log[3].Content))
	g, _ := f.receipt(made.ID)
	require.Equal(t, uint64(4), g.SeedLen)
	require.False(t, g.SeedDigest.IsZero())
	require.Equal(t, before, f.row(id), "the evidence stays as it is")
	_, err := replay.Resume(f.ctx, f.Store, replay.Request{Session: made.ID, By: replay.AsParent(parent)})
	require.NoError(t, err)
	again := f.made(parent, materialize.Request{Adopt: id, Fork: 8, Key: "one"})
	require.True(t, again.Existing)

	for name, c := range map[string]struct {
		parent uuid.UUID
		r      materialize.Request
		want   error
	}{
		"inside an open turn":       {parent, materialize.Request{Adopt: id}, eventlog.ErrOpenTurn},
		"beyond the head":           {parent, materialize.Request{Adopt: id, Fork: before.Head + 1}, eventlog.ErrInvalid},
		"without conversation":      {parent, materialize.Request{Adopt: id, Fork: 2}, eventlog.ErrInvalid},
		"a native session":          {parent, materialize.Request{Adopt: made.ID}, eventlog.ErrInvalid},
		"no session":                {parent, materialize.Request{Adopt: uuid.New()}, eventlog.ErrNotFound},
		"under the evidence itself": {id, materialize.Request{Adopt: id, Fork: 8}, eventlog.ErrEvidence},
		"the key of another":        {parent, materialize.Request{Adopt: id, Fork: 4, Key: "one"}, eventlog.ErrConflict},
	} {
		n := f.sessions()
		_, err := f.delegate(c.parent, c.r)
		require.ErrorIs(t, err, c.want, name)
		require.Equal(t, n, f.sessions(), name)
	}
}
