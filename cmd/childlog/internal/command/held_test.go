package command

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/holder"
)

// heldVariable has every command of a script run through a holder of its store.
// Its name does not begin as those that doctor looks at.
const heldVariable = "TEST_CHILDLOG_HELD"

// differs are the scripts that say something else of a held store, and why.
var differs = map[string]string{
	"backup_restore":         "of a store that is held for writing damage is found while it is signed, which names the position only",
	"case34_read_only":       "what can't be written can't be held",
	"compact":                "a holder removed what a crash left when it opened the store",
	"reading_writes_nothing": "a holder writes when it opens the store",
	"verify_reindex":         "a holder mended the index when it opened the store",
	"serve":                  "it starts a holder itself",
	"case23_held":            "it starts a holder itself",
	"case25_held":            "it starts a holder itself",
}

// brief are those that are run through a holder in a short test, too: of every
// kind of input, output and file.
var brief = []string{"append_batch", "export_bundle", "import_claude_code", "check", "guard_codex", "input_exact_bytes", "global_flags", "signed"}

// TestScriptsThroughAHolder: a command prints the same and ends the same where
// another process holds the store.
func TestScriptsThroughAHolder(t *testing.T) {
	all, err := filepath.Glob("testdata/script/*.txtar")
	require.NoError(t, err)
	var files []string
	for _, file := range all {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		switch why, skip := differs[name]; {
		case skip:
			t.Logf("%s is not run: %s", name, why)
		case !testing.Short() || slices.Contains(brief, name):
			files = append(files, file)
		}
	}
	runScripts(t, testscript.Params{Files: files}, map[string]string{heldVariable: "1"})
}

// mainOrHeld is Main; where a script says so within a holder of the store that
// the command line means, which the command then finds by itself.
func mainOrHeld() int {
	if os.Getenv(heldVariable) == "" {
		return Main()
	}
	args := os.Args[1:]
	a := &app{getenv: os.Getenv}
	cmd, _, err := a.root().Find(args)
	if err != nil || seatOf(cmd) == here || cmd.Name() == "verify" && slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--bundle") }) {
		return Main()
	}
	p := access.Place{Dir: os.Getenv("CHILDLOG_STORE"), Command: "childlog serve", KeyFile: os.Getenv("CHILDLOG_KEY_FILE")}
	for i, arg := range args {
		for flag, to := range map[string]*string{"--store": &p.Dir, "--key-file": &p.KeyFile} {
			if value, ok := strings.CutPrefix(arg, flag+"="); ok {
				*to = value
			} else if arg == flag && i+1 < len(args) {
				*to = args[i+1]
			}
		}
	}
	code := -1
	err = access.Serve(context.Background(), p, func(ctx context.Context, held *access.Held) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		ready, done := make(chan struct{}), make(chan error, 1)
		go func() {
			done <- holder.Serve(ctx, held, holder.Options{Run: Runner(held), Ready: func() { close(ready) }})
		}()
		select {
		case <-ready:
		case err := <-done:
			return err
		}
		code = Main()
		stop()
		return <-done
	})
	switch {
	case code < 0: // it can't be held: it says so itself
		return Main()
	case err != nil:
		panic(err)
	}
	return code
}
