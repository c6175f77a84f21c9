package materialize_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// otherProcess asks a second run of this test binary to delegate from a
// session of a store, and to say what came of it. It runs no test.
const otherProcess = "CHILDLOG_MATERIALIZE_TEST_DELEGATE"

func TestMain(m *testing.M) {
	dir := os.Getenv(otherProcess)
	if dir == "" {
		os.Exit(m.Run())
	}
	ctx := context.Background()
	s, err := eventlog.Open(ctx, dir, eventlog.Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	parent := uuid.MustParse(os.Getenv("PARENT"))
	r, err := replay.Resume(ctx, s, replay.Request{Session: parent, By: replay.AsOperator()})
	if err == nil {
		_, err = materialize.Delegate(ctx, s, r.Policy.Session, snapshot.Options{}, materialize.Request{})
	}
	fmt.Println(err)
	if err := s.Close(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// TestCase9_TheDepthCeiling: under a ceiling of 2 a session of depth 3 is
// refused with what was attempted and what is allowed, also from a child that
// was resumed in a new process. No half-made log is left.
func TestCase9_TheDepthCeiling(t *testing.T) {
	f := newFixture(t)
	root, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{MaxDepth: 2, Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}})
	require.NoError(t, err)
	one := f.made(root.ID, materialize.Request{})
	two := f.made(one.ID, materialize.Request{})
	require.Equal(t, 2, two.Policy.Depth)
	require.Equal(t, 2, two.Policy.MaxDepth)
	before := f.row(two.ID)
	_, err = f.delegate(two.ID, materialize.Request{})
	require.ErrorIs(t, err, eventlog.ErrDepth)
	require.ErrorContains(t, err, "attempted depth 3, allowed 2")
	require.Equal(t, 3, f.sessions())
	require.Equal(t, before, f.row(two.ID))

	require.NoError(t, f.Store.Close())
	exe, err := os.Executable()
	require.NoError(t, err)
	for parent, want := range map[uuid.UUID]string{two.ID: "attempted depth 3, allowed 2", one.ID: "<nil>"} {
		cmd := exec.Command(exe)
		cmd.Env = []string{otherProcess + "=" + f.dir, "PARENT=" + parent.String(), "CHILDLOG_MAX_DEPTH=99"}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.True(t, bytes.Contains(out, []byte(want)), "%s", out)
	}
	f.open(eventlog.Options{})
	require.Equal(t, 4, f.sessions())
	require.Equal(t, before, f.row(two.ID))
}

// TestDepthBounds: default 3, never more than 8, never 0 by accident.
func TestDepthBounds(t *testing.T) {
	f := newFixture(t)
	for _, bad := range []int{-1, 9, 1 << 40} {
		_, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{MaxDepth: bad})
		require.ErrorIs(t, err, eventlog.ErrDepth)
	}
	require.Zero(t, f.sessions())
	for max, allowed := range map[int]int{0: materialize.DefaultMaxDepth, 1: 1, materialize.HardMaxDepth: 8} {
		root, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{MaxDepth: max})
		require.NoError(t, err)
		parent := root.ID
		for depth := 1; depth <= allowed; depth++ {
			parent = f.made(parent, materialize.Request{}).ID
		}
		_, err = f.delegate(parent, materialize.Request{})
		require.ErrorIs(t, err, eventlog.ErrDepth)
		require.ErrorContains(t, err, fmt.Sprintf("attempted depth %d, allowed %d", allowed+1, allowed))
	}
}
