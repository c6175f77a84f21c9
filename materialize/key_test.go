package materialize_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// TestCase12_OneKeyOneChild: the key of run 4, call 7 twice with one request:
// one child, the same id. Another request under it: refused. The part about a
// changed role comes with roles.
func TestCase12_OneKeyOneChild(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	r := materialize.Request{Key: "run 4, call 7", Label: "tests", Prompt: "run the tests", ToolCall: "call-7"}
	first := f.made(root, r)
	require.False(t, first.Existing)
	head := f.row(root).Head
	for range 3 {
		again := f.made(root, r)
		require.True(t, again.Existing)
		require.Equal(t, first.ID, again.ID)
		require.Equal(t, first.Receipt, again.Receipt)
		require.Equal(t, first.Context, again.Context)
		require.Equal(t, first.Policy.Sandbox, again.Policy.Sandbox)
		f.reopen(eventlog.Options{})
	}
	require.Equal(t, head, f.row(root).Head, "the parent's log has one delegation/started")
	require.Equal(t, 2, f.sessions())

	for name, other := range map[string]materialize.Request{
		"label":     {Key: r.Key, Label: "test", Prompt: r.Prompt, ToolCall: r.ToolCall},
		"prompt":    {Key: r.Key, Label: r.Label, Prompt: "run some tests", ToolCall: r.ToolCall},
		"call":      {Key: r.Key, Label: r.Label, Prompt: r.Prompt, ToolCall: "call-8"},
		"mode":      {Key: r.Key, Label: r.Label, Prompt: r.Prompt, ToolCall: r.ToolCall, Mode: eventlog.ModeOneShot},
		"fork":      {Key: r.Key, Label: r.Label, Prompt: r.Prompt, ToolCall: r.ToolCall, Fork: 2},
		"workspace": {Key: r.Key, Label: r.Label, Prompt: r.Prompt, ToolCall: r.ToolCall, Workspace: "/tmp"},
		"id":        {Key: r.Key, Label: r.Label, Prompt: r.Prompt, ToolCall: r.ToolCall, ID: uuid.New()},
		"provider":  {Key: r.Key, Label: r.Label, Prompt: r.Prompt, ToolCall: r.ToolCall, Provider: eventlog.Provider{Name: "other", InProcess: true}},
	} {
		_, err := f.delegate(root, other)
		require.ErrorIs(t, err, eventlog.ErrConflict, name)
		_, err = materialize.Existing(f.ctx, f.Store, root, other)
		require.ErrorIs(t, err, eventlog.ErrConflict, name)
	}
	require.Equal(t, 2, f.sessions())

	t.Run("keys of two parents, and of a child, are apart", func(t *testing.T) {
		second := f.rootWith(policy.WorkspaceWrite)
		require.NotEqual(t, first.ID, f.made(second, r).ID)
		require.NotEqual(t, first.ID, f.made(first.ID, r).ID)
		_, err := materialize.Existing(f.ctx, f.Store, f.rootWith(policy.ReadOnly), r)
		require.ErrorIs(t, err, eventlog.ErrNotFound)
	})
	t.Run("no key is no name", func(t *testing.T) {
		r := materialize.Request{Label: "same"}
		require.NotEqual(t, f.made(root, r).ID, f.made(root, r).ID)
		_, err := materialize.Existing(f.ctx, f.Store, root, r)
		require.ErrorIs(t, err, eventlog.ErrNotFound)
	})
}

// TestCase18_TheReplyIsLost: the commit succeeded and nobody was told. A retry
// under the key gets the child that exists, whatever became of the parent
// since, and by the very same call with the very same capture.
func TestCase18_TheReplyIsLost(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	f.say(root, turn(t, 1, text("user/message", "hello"))...)
	r := materialize.Request{Key: "run 4, call 7", Fork: f.row(root).Head}
	c, err := snapshot.Take(f.ctx, f.Store, root, snapshot.Options{})
	require.NoError(t, err)
	first, err := materialize.Child(f.ctx, f.Store, c, r)
	require.NoError(t, err)

	again, err := materialize.Child(f.ctx, f.Store, c, r)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	require.True(t, again.Existing)
	_, err = materialize.Child(f.ctx, f.Store, c, materialize.Request{})
	require.ErrorIs(t, err, eventlog.ErrStaleCapture, "the capture is spent all the same")
	_, err = materialize.Child(f.ctx, f.Store, c, materialize.Request{Key: "another"})
	require.ErrorIs(t, err, eventlog.ErrStaleCapture)

	fresh, err := snapshot.Take(f.ctx, f.Store, root, snapshot.Options{})
	require.NoError(t, err)
	again, err = materialize.Child(f.ctx, f.Store, fresh, r)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	_, err = materialize.Child(f.ctx, f.Store, fresh, materialize.Request{})
	require.NoError(t, err, "a capture that made nothing is still worth a child")

	// Everything about the parent changes, then it closes.
	_, _, err = replay.Switch(f.ctx, f.Store, root, replay.Change{Sandbox: &policy.Setting{Mode: policy.ReadOnly}})
	require.NoError(t, err)
	_, err = replay.Close(f.ctx, f.Store, root)
	require.NoError(t, err)
	for range 2 {
		f.reopen(eventlog.Options{})
		again = f.made(root, r)
		require.Equal(t, first.ID, again.ID)
		require.Equal(t, policy.DangerFullAccess, again.Policy.Sandbox.Value.Mode, "the old policy")
	}
	_, err = f.delegate(root, materialize.Request{Key: "a new one"})
	require.ErrorIs(t, err, eventlog.ErrSessionClosed)

	t.Run("the child went on, and closed", func(t *testing.T) {
		_, err := replay.Close(f.ctx, f.Store, first.ID)
		require.NoError(t, err)
		again := f.made(root, r)
		require.Equal(t, first.ID, again.ID)
		require.Equal(t, f.row(first.ID).Head, again.Seq)
	})
	t.Run("nobody waits for the reply", func(t *testing.T) {
		root := f.rootWith(policy.WorkspaceWrite)
		r := materialize.Request{Key: "impatient"}
		ctx, cancel := context.WithCancel(f.ctx)
		var wg sync.WaitGroup
		var unknown error
		wg.Go(func() {
			cancel()
			_, unknown = f.delegateWith(ctx, root, r)
		})
		wg.Wait()
		made, err := f.delegate(root, r) // whether it was queued or not
		require.NoError(t, err)
		require.Equal(t, made.ID, f.made(root, r).ID)
		children, err := f.Children(root)
		require.NoError(t, err)
		require.Len(t, children, 1)
		require.Error(t, unknown)
	})
}

func (f *fixture) delegateWith(ctx context.Context, parent uuid.UUID, r materialize.Request) (materialize.Session, error) {
	return materialize.Delegate(ctx, f.Store, parent, snapshot.Options{}, r)
}

// TestParallelDelegationsUnderOneKey: one child, and every caller gets it.
func TestParallelDelegationsUnderOneKey(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	const n = 24
	got := make([]materialize.Session, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var err error
			if got[i], err = f.delegateWith(f.ctx, root, materialize.Request{Key: fmt.Sprint(i % 3)}); err != nil {
				panic(err)
			}
		})
	}
	wg.Wait()
	byKey, fresh := map[int]uuid.UUID{}, 0
	for i, s := range got {
		if byKey[i%3] == uuid.Nil {
			byKey[i%3] = s.ID
		}
		require.Equal(t, byKey[i%3], s.ID)
		if !s.Existing {
			fresh++
		}
	}
	require.Equal(t, 3, fresh)
	require.Equal(t, 4, f.sessions())
}

// TestARetryWhileTheFirstIsOnItsWay: the same capture and key, at the same
// time. One child; whoever is refused is told that the capture was spent.
func TestARetryWhileTheFirstIsOnItsWay(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	c, err := snapshot.Take(f.ctx, f.Store, root, snapshot.Options{})
	require.NoError(t, err)
	ids := make([]uuid.UUID, 12)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			s, err := materialize.Child(f.ctx, f.Store, c, materialize.Request{Key: "k"})
			if err != nil && !errors.Is(err, eventlog.ErrStaleCapture) {
				panic(err)
			}
			ids[i] = s.ID
		})
	}
	wg.Wait()
	children, err := f.Children(root)
	require.NoError(t, err)
	require.Len(t, children, 1)
	for _, id := range ids {
		require.True(t, id == uuid.Nil || id == children[0])
	}
	s, err := materialize.Child(f.ctx, f.Store, c, materialize.Request{Key: "k"})
	require.NoError(t, err)
	require.Equal(t, children[0], s.ID)
}

// TestKeysAndExternalIDsAreHashed: the text of a key is nowhere in the files;
// that of an external id is in a content, which can be redacted, and in no
// fact.
func TestKeysAndExternalIDsAreHashed(t *testing.T) {
	f := newFixture(t)
	key, external := "a-key-with-a-customer-name", "external-customer-4711"
	root, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{System: "codex", External: external, Label: "r"})
	require.NoError(t, err)
	child := f.made(root.ID, materialize.Request{Key: key}).ID
	for range 80 { // so that the index is written
		f.say(root.ID, text("user/message", "x"))
	}
	found, err := f.ByKey(root.ID, key)
	require.NoError(t, err)
	require.Equal(t, child, found)
	found, err = f.ByExternal("codex", external)
	require.NoError(t, err)
	require.Equal(t, root.ID, found)

	files := f.files()
	require.NotContains(t, string(files), key)
	require.True(t, bytes.Contains(files, []byte("codex")))
	created := f.log(root.ID)[0]
	require.NotContains(t, string(created.Facts), external)
	require.Contains(t, string(created.Content), external)
	g, ev := f.receipt(child)
	require.Equal(t, eventlog.KeyHash(root.ID, key), g.Key)
	require.NotContains(t, string(ev.Content), key)
}

// TestKeyLimits: a key has a limit, and needs to be no code.
func TestKeyLimits(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	odd := "with \x00, \xff and \u202e"
	made := f.made(root, materialize.Request{Key: odd})
	require.Equal(t, made.ID, f.made(root, materialize.Request{Key: odd}).ID)
	_, err := f.delegate(root, materialize.Request{Key: string(make([]byte, 5000))})
	var tl *eventlog.TooLargeError
	require.ErrorAs(t, err, &tl)
	require.Equal(t, []uint64{4096, 5000}, []uint64{tl.Limit, tl.Size})
}
