package replay_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// TestPolicyOfAFailedCommit: a decision that is recorded on top of a switch is
// made under it. If the commit fails both are gone, and a narrowing takes the
// seq of the switch: nothing is decided under the policy that never was. It runs
// in a process of its own, since the full disk is one for all that writes: the
// log that go test keeps of a test's files could not be written either.
func TestPolicyOfAFailedCommit(t *testing.T) {
	if os.Getenv("CHILDLOG_TEST_FULL_DISK") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), "CHILDLOG_TEST_FULL_DISK=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "PASS")
		return
	}
	f := newFixture(t)
	root := f.editor()
	_, _, err := replay.Switch(f.ctx, f.Store, root, replay.Change{Sandbox: &policy.Setting{Mode: policy.ReadOnly}})
	require.NoError(t, err)
	a := replay.NewAuthorizer(f.Store, root)
	j, err := a.Decide(f.ctx, edits(t, "e0", "src/a.go"))
	require.NoError(t, err)
	require.False(t, j.Allowed())

	signal.Ignore(syscall.SIGXFSZ)
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
	entered, leave := make(chan struct{}), make(chan struct{})
	blocked, errs := make(chan struct{}), make(chan error, 2)
	go func() {
		defer close(blocked)
		_, _ = f.Store.Transact(f.ctx, eventlog.EntryCreate, func(*eventlog.View) ([]eventlog.Batch, error) {
			close(entered)
			<-leave
			return nil, nil
		}) // fails with the others if they are of one commit
	}()
	<-entered
	go func() {
		_, _, err := replay.Switch(f.ctx, f.Store, root, replay.Change{Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}})
		errs <- err
	}()
	// The pauses make it likely that both are queued in this order. Another one
	// shows less, and fails as well.
	time.Sleep(50 * time.Millisecond)
	go func() {
		_, err := a.Record(f.ctx, edits(t, "e1", "src/a.go"))
		errs <- err
	}()
	time.Sleep(50 * time.Millisecond)
	limit := old
	limit.Cur = 0
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
	close(leave)
	for range 2 {
		require.Error(t, <-errs)
	}
	<-blocked
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &old))

	// the same seq is taken by a narrowing
	at := f.narrow(root, policy.ReadOnly, false)[0].Seq
	j, err = a.Decide(f.ctx, edits(t, "e2", "src/a.go"))
	require.NoError(t, err)
	require.Equal(t, at, j.EvaluatedSeq)
	fresh := f.decide(root, edits(t, "e2", "src/a.go"))
	require.False(t, fresh.Allowed(), "a new authorizer")
	require.False(t, j.Allowed(), "the session was narrowed to read-only")
	j, err = a.Record(f.ctx, edits(t, "e3", "src/a.go"))
	require.NoError(t, err)
	require.False(t, j.Allowed(), "the session was narrowed to read-only")
}

// TestSendThatIsNotWaitedFor leaves the message's id to the plan, which may be
// at work on it (found by the race detector).
func TestSendThatIsNotWaitedFor(t *testing.T) {
	f := newFixture(t)
	child := f.child(f.editor()).ID
	entered, leave := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		_, err := f.Store.Transact(f.ctx, eventlog.EntryCreate, func(*eventlog.View) ([]eventlog.Batch, error) {
			close(entered)
			<-leave
			return nil, nil
		})
		done <- err
	}()
	<-entered
	for wait := time.Millisecond; ; wait *= 2 { // until it is queued in time
		ctx, cancel := context.WithTimeout(f.ctx, wait)
		_, id, err := replay.Send(ctx, f.Store, child, replay.AsOperator(), "hello")
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, uuid.Nil, id)
		if errors.Is(err, eventlog.ErrOutcomeUnknown) {
			break
		}
	}
	close(leave)
	<-done
}
