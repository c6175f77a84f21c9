package harness_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/cmd/childlog/internal/tokens"
	serving "childlog/cmd/childlog/serve"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// overTCP serves a store on a free port of the loopback, and makes a token.
func overTCP(t testing.TB, s *eventlog.Store, role tokens.Role) (url, token string) {
	t.Helper()
	_, token, err := tokens.New(s.Dir(), tokens.Request{Role: role, Label: "test", Now: time.Now()})
	require.NoError(t, err)
	ready, done := make(chan wire.Serving, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		done <- serving.Store(ctx, s, serving.Options{Listen: "127.0.0.1:0", Ready: func(v wire.Serving) { ready <- v }})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	select {
	case v := <-ready:
		return *v.URL, token
	case err := <-done:
		done <- err
		require.NoError(t, err, "it ended")
		return "", ""
	}
}

// TestScenarioOverTheService is the scenario over both ways to the service that
// `childlog serve` runs.
func TestScenarioOverTheService(t *testing.T) {
	for _, way := range []string{"tcp", "socket"} {
		t.Run(way, func(t *testing.T) {
			s := storetest.New(t)
			target, token := overTCP(t, s, tokens.Operator)
			if way == "socket" {
				target, token = "unix:"+s.Dir(), ""
			}
			c, err := harness.Dial(ctx, target, harness.Options{Token: token})
			require.NoError(t, err)
			life(t, c)
			shown, err := c.Show(ctx, harness.SessionRequest{Session: childID})
			require.NoError(t, err)
			seq := uint64(0)
			for v, err := range c.Follow(ctx, harness.FollowRequest{Session: childID}) {
				require.NoError(t, err)
				require.Equal(t, seq+1, v.Event.Seq)
				if seq = v.Event.Seq; seq == shown.Head.Seq {
					break
				}
			}
			require.NoError(t, c.Close())
		})
	}
}

// TestNodeExample runs the example for TypeScript, which is plain JavaScript
// with its types beside it, against the service, with the token of a harness.
func TestNodeExample(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: the example for TypeScript is not run")
	}
	url, token := overTCP(t, storetest.New(t), tokens.Harness)
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := exec.CommandContext(limited, node, "testdata/example/delegate.mjs", url, token).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, `one child: true
approvals: never
plan: allow, deny
c1: done
c2: deny, write_scope_violation
late: fenced
denied: 1
verified
7 tool/call
8 tool/decision
9 tool/result
10 tool/call
11 tool/decision
13 session/settled
`, string(out))
}
