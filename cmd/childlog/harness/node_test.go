package harness_test

import (
	"context"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNodeExample runs the example for TypeScript, which is plain JavaScript
// with its types beside it, against a service.
func TestNodeExample(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: the example for TypeScript is not run")
	}
	srv := httptest.NewServer(handler(embedded(t)))
	defer srv.Close()
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := exec.CommandContext(limited, node, "testdata/example/delegate.mjs", srv.URL, "token").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, `one child: true
approvals: never
c1: done
c2: deny, write_scope_violation
late: fenced
denied: 1
7 tool/call
8 tool/decision
9 tool/result
10 tool/call
11 tool/decision
13 session/settled
`, string(out))
}
