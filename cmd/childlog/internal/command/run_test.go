package command

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/failure"
)

// Runs share a process without sharing anything else: each prints what it
// prints alone. The race detector finds what they would share.
func TestRunsAtTheSameTime(t *testing.T) {
	run := func(args ...string) (int, string) {
		var out, msg bytes.Buffer
		code := Run(context.Background(), args, strings.NewReader(""), &out, &msg)
		return code, out.String() + msg.String()
	}
	code, help := run("--help")
	require.Zero(t, code)
	dirs := make([]string, 4)
	for i := range dirs {
		dirs[i] = filepath.Join(t.TempDir(), "store")
	}
	var wg sync.WaitGroup
	for _, dir := range dirs {
		wg.Go(func() {
			_, got := run("--help")
			assert.Equal(t, help, got)
			for _, args := range [][]string{{"init"}, {"root", "--id", rootID}, {"tree"}, {"verify"}} {
				code, got := run(append([]string{"--store", dir}, args...)...)
				assert.Zero(t, code, got)
			}
			code, got := run("--store", dir, "show", "99999999")
			assert.Equal(t, failure.ExitNotFound, code)
			assert.Contains(t, got, "hint: ")
		})
	}
	wg.Wait()
}
