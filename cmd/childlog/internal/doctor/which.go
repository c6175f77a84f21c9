package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// versionWait bounds how long a harness may take to tell its version. It is a
// large program that starts slowly, and may hang.
const versionWait = 5 * time.Second

// Which looks for a program on the path and runs it with --version.
func Which(ctx context.Context, program string) (path, version string, err error) {
	if path, err = exec.LookPath(program); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			err = nil
		}
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second // for what it started and left behind
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return path, "", fmt.Errorf("no answer to --version within %s", versionWait)
	}
	if err != nil {
		return path, "", fmt.Errorf("--version: %w", err)
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	return path, strings.ToValidUTF8(string(line[:min(len(line), 100)]), "?"), nil
}
