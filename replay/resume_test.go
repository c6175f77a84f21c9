package replay_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// TestCase11_APermissiveReaderChangesNothing: a read-only child resumed where
// the environment, the directory, the clock and the defaults are permissive
// is read-only, and cannot switch to more.
func TestCase11_APermissiveReaderChangesNothing(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.ReadOnly)
	child := f.child(root).ID
	t.Setenv("CODEX_SANDBOX_MODE", "danger-full-access")
	t.Setenv("CHILDLOG_SANDBOX", "danger-full-access")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("TMPDIR", os.TempDir())
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("config.toml", []byte("sandbox_mode = \"danger-full-access\"\n"), 0o600))
	f.reopen(eventlog.Options{Clock: func() time.Time { return time.Unix(0, 0) }})

	r, err := replay.Resume(f.ctx, f.Store, replay.Request{Session: child, By: replay.AsParent(root), Present: &policy.Defaults{Sandbox: policy.Top(), Approvals: policy.Ask}})
	require.NoError(t, err)
	require.True(t, r.Policy.Sandbox.Value.Equal(readOnly()))
	require.False(t, r.Policy.Sandbox.Value.Roots.Contains(workspace))
	require.Equal(t, policy.Never, r.Policy.Approvals)
	_, _, err = replay.Switch(f.ctx, f.Store, child, replay.Change{Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}})
	require.ErrorIs(t, err, eventlog.ErrWidening)
}

// TestResumeRefusals: each with its error, and nothing appended by any.
func TestResumeRefusals(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	other := f.rootWith(policy.DangerFullAccess)
	child := f.child(root).ID
	grandchild := f.child(child).ID
	oneShot := f.childOf(root, materialize.Request{Mode: eventlog.ModeOneShot}).ID
	closed := f.child(root).ID
	_, err := replay.Close(f.ctx, f.Store, closed)
	require.NoError(t, err)
	evidence := f.evidence(eventlog.KindChild, root)

	hash := map[uuid.UUID]eventlog.Hash{}
	ids := []uuid.UUID{root, other, child, grandchild, oneShot, closed, evidence}
	for _, id := range ids {
		hash[id] = f.row(id).Hash
	}
	op := replay.AsOperator()
	for name, c := range map[string]struct {
		r    replay.Request
		want error
	}{
		"nobody":                           {replay.Request{Session: child}, eventlog.ErrUnauthorized},
		"another root":                     {replay.Request{Session: child, By: replay.AsParent(other)}, eventlog.ErrUnauthorized},
		"the child itself":                 {replay.Request{Session: child, By: replay.AsParent(child)}, eventlog.ErrUnauthorized},
		"the grandparent":                  {replay.Request{Session: grandchild, By: replay.AsParent(root)}, eventlog.ErrUnauthorized},
		"its child":                        {replay.Request{Session: child, By: replay.AsParent(grandchild)}, eventlog.ErrUnauthorized},
		"a root by nobody":                 {replay.Request{Session: root}, eventlog.ErrUnauthorized},
		"a root by a parent of none":       {replay.Request{Session: root, By: replay.AsParent(uuid.Nil)}, eventlog.ErrUnauthorized},
		"one-shot":                         {replay.Request{Session: oneShot, By: op}, eventlog.ErrNotResumable},
		"closed":                           {replay.Request{Session: closed, By: op}, eventlog.ErrNotResumable},
		"evidence":                         {replay.Request{Session: evidence, By: op}, eventlog.ErrEvidence},
		"evidence by the parent it claims": {replay.Request{Session: evidence, By: replay.AsParent(root)}, eventlog.ErrEvidence},
		"no such session":                  {replay.Request{Session: uuid.MustParse("99999999-9999-4999-8999-999999999999"), By: op}, eventlog.ErrNotFound},
		"another role":                     {replay.Request{Session: child, By: op, Role: "implement"}, eventlog.ErrNotResumable},
		"another policy":                   {replay.Request{Session: child, By: op, Policy: &policy.Setting{Mode: policy.ReadOnly}}, eventlog.ErrNotResumable},
		"the policy it has":                {replay.Request{Session: child, By: op, Policy: &policy.Setting{Mode: policy.DangerFullAccess}}, eventlog.ErrNotResumable},
	} {
		_, err := replay.Resume(f.ctx, f.Store, c.r)
		require.ErrorIs(t, err, c.want, name)
		if c.r.Role != "" || c.r.Policy != nil {
			require.ErrorContains(t, err, "re-delegate")
		}
	}
	for _, id := range ids {
		require.Equal(t, hash[id], f.row(id).Hash)
	}
	// Who is allowed: the recorded parent, and an operator.
	f.resume(child, replay.AsParent(root))
	f.resume(grandchild, replay.AsParent(child))
	f.resume(grandchild, op)
	f.resume(root, op)
}

// TestResumeStates: what a resume says beside the policy.
func TestResumeStates(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.child(root).ID
	require.Equal(t, eventlog.StatusIdle, f.resume(child, replay.AsParent(root)).Status)
	a := f.activate(child)
	f.say(child, a.Epoch, event(t, "turn/start", "turn", 1), event(t, "step/start", "turn", 1, "step", 1), event(t, "step/end", "turn", 1, "step", 1),
		event(t, "step/start", "turn", 1, "step", 2), event(t, "tool/call", "call", "c1", "tool", "read"), event(t, "tool/call", "call", "c2", "tool", "edit"),
		event(t, "tool/result", "call", "c1", "outcome", "ok"))
	_, message, err := replay.Send(f.ctx, f.Store, child, replay.AsParent(root), "and the tests")
	require.NoError(t, err)

	r := f.resume(child, replay.AsParent(root))
	require.Equal(t, eventlog.StatusRunning, r.Status)
	require.Equal(t, uint64(2), r.Steps)
	require.Len(t, r.OpenCalls, 1)
	require.Equal(t, "c2", r.OpenCalls[0].Call)
	require.True(t, r.OpenCalls[0].Started)
	require.Len(t, r.Inbox, 1)
	require.Equal(t, message, r.Inbox[0].ID)
	require.Equal(t, root, r.Inbox[0].From)
	require.Equal(t, f.row(child).Head, r.Row.Head)
	require.Equal(t, f.row(child).Hash, r.Row.Hash)
	require.Equal(t, r.Row.Head, r.Policy.Seq)

	t.Run("what is handed out is the caller's own", func(t *testing.T) {
		r.OpenCalls[0].Call, r.Inbox[0].ID = "mine", uuid.Nil
		again := f.resume(child, replay.AsParent(root))
		require.Equal(t, "c2", again.OpenCalls[0].Call)
		require.Equal(t, message, again.Inbox[0].ID)
	})

	f.settle(child, a.Epoch, "completed")
	require.Equal(t, eventlog.StatusSettled, f.resume(child, replay.AsParent(root)).Status)
	f.reopen(eventlog.Options{})
	require.Equal(t, eventlog.StatusSettled, f.resume(child, replay.AsParent(root)).Status, "a settled child takes follow-ups")
	f.activate(child)
	f.reopen(eventlog.Options{})
	require.Equal(t, eventlog.StatusInterrupted, f.resume(child, replay.AsParent(root)).Status)
}

// TestResumeConversation: since the last history/compacted, else from the
// beginning, seed included; contents as they were given; closed families are
// no conversation.
func TestResumeConversation(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	text := func(typ, s string) eventlog.NewEvent {
		return eventlog.NewEvent{Type: typ, Media: eventlog.MediaText, Content: []byte(s)}
	}
	f.say(root, 0, text("user/message", "seeded question"), text("assistant/message", "seeded answer"))
	child := f.childOf(root, materialize.Request{Fork: f.row(root).Head}).ID
	f.say(child, 0, text("user/message", "own question"))
	conversation := func() (out []string) {
		r := f.resume(child, replay.AsParent(root))
		require.NoError(t, r.Conversation(f.ctx, f.Store, func(ev *eventlog.Event) error { out = append(out, string(ev.Content)); return nil }))
		return out
	}
	require.Equal(t, []string{"seeded question", "seeded answer", "own question"}, conversation())
	require.Equal(t, uint64(1), f.resume(child, replay.AsParent(root)).From)

	compacted := text("history/compacted", "summary")
	compacted.Facts = facts(t, "from", 1, "to", 5)
	at := f.say(child, 0, compacted).LastSeq
	f.say(child, 0, text("assistant/message", "after"))
	f.switchTo(child, policy.ReadOnly)
	require.Equal(t, []string{"summary", "after"}, conversation())
	require.Equal(t, at, f.resume(child, replay.AsParent(root)).From)

	t.Run("compacted in the seed", func(t *testing.T) {
		f.say(root, 0, eventlog.NewEvent{Type: "history/compacted", Facts: facts(t, "from", 3, "to", 4), Media: eventlog.MediaText, Content: []byte("the parent's summary")})
		forked := f.childOf(root, materialize.Request{Fork: f.row(root).Head}).ID
		r := f.resume(forked, replay.AsParent(root))
		var out []string
		require.NoError(t, r.Conversation(f.ctx, f.Store, func(ev *eventlog.Event) error { out = append(out, string(ev.Content)); return nil }))
		require.Equal(t, []string{"the parent's summary"}, out, "it stands for what was copied before it")
	})

	t.Run("over many pages", func(t *testing.T) {
		long := f.child(root).ID
		batch := make([]eventlog.NewEvent, 1000)
		for i := range batch {
			batch[i] = text("user/message", "x")
		}
		f.say(long, 0, batch...)
		r := f.resume(long, replay.AsParent(root))
		n := 0
		require.NoError(t, r.Conversation(f.ctx, f.Store, func(*eventlog.Event) error { n++; return nil }))
		require.Equal(t, 1000, n)
		f.say(long, 0, text("user/message", "later"))
		n = 0
		require.NoError(t, r.Conversation(f.ctx, f.Store, func(*eventlog.Event) error { n++; return nil }))
		require.Equal(t, 1000, n, "a resumption is of its head")
	})
}

// TestResumeBesideAWriter: a log that goes on while it is read is no damage.
func TestResumeBesideAWriter(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	child := f.child(root).ID
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 50 {
			mode := []policy.Mode{policy.ReadOnly, policy.WorkspaceWrite}[i%2]
			if _, _, err := replay.Switch(f.ctx, f.Store, child, replay.Change{Sandbox: &policy.Setting{Mode: mode}}); err != nil {
				panic(err)
			}
		}
	}()
	for writing := true; writing; {
		select {
		case <-done:
			writing = false
		default:
		}
		r, err := replay.Resume(f.ctx, f.Store, replay.Request{Session: child, By: replay.AsParent(root)})
		require.NoError(t, err)
		require.Equal(t, r.Row.Head, r.Policy.Seq)
		_, err = snapshot.Take(f.ctx, f.Store, child, snapshot.Options{})
		require.NoError(t, err)
	}
}

// TestRuntimeContext: a resumed child is told the sentence that it was told
// when it was made, in any process, and it says what a model must know.
func TestRuntimeContext(t *testing.T) {
	f := newFixture(t)
	on := true
	for want, set := range map[string]policy.Setting{
		"sandbox read-only, without network":       {Mode: policy.ReadOnly},
		"sandbox workspace-write, with network":    {Mode: policy.WorkspaceWrite, Network: &on, WritableRoots: []string{"/secret/place"}},
		"sandbox danger-full-access, with network": {Mode: policy.DangerFullAccess},
	} {
		root := f.root(materialize.RootRequest{Sandbox: &set})
		made := f.child(root)
		require.Contains(t, made.Context, want)
		require.Contains(t, made.Context, "rejected automatically")
		require.Contains(t, made.Context, "report the limitation")
		require.NotContains(t, made.Context, "/secret", "paths are not told")
		for range 2 {
			f.reopen(eventlog.Options{})
			require.Equal(t, made.Context, f.resume(made.ID, replay.AsParent(root)).Context)
		}
		again, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{Approvals: policy.Never})
		require.NoError(t, err)
		require.Contains(t, again.Context, "rejected automatically")
	}
	asks, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{})
	require.NoError(t, err)
	require.Contains(t, asks.Context, "put to a person")
}

// TestCase8_AnotherRole: a child made to explore is not resumed to implement,
// under whatever name the role goes; by its own role it is, and by its aliases.
// Nothing is appended either way.
func TestCase8_AnotherRole(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	child := f.childOf(root, materialize.Request{Want: policy.Request{Role: "scout"}}).ID
	before := f.row(child)
	resume := func(role string) error {
		_, err := replay.Resume(f.ctx, f.Store, replay.Request{Session: child, By: replay.AsParent(root), Role: role})
		return err
	}
	for _, role := range []string{"implement", "builder", " Implementer ", "general"} {
		err := resume(role)
		require.ErrorIs(t, err, eventlog.ErrNotResumable, role)
		require.ErrorContains(t, err, "re-delegate")
	}
	require.ErrorIs(t, resume("wizard"), eventlog.ErrInvalid)
	for _, role := range []string{"", "explore", "explorer", "SCOUT"} {
		require.NoError(t, resume(role), role)
	}
	require.Equal(t, before, f.row(child))
	require.Equal(t, policy.GrantInspect, f.policy(child).Authority.Own.Grant.Shell)
}
