package command

import (
	"go/ast"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/forward"
)

// TestCommandsReachNothingByThemselves: a holder runs the commands of others. One
// that opened a file, looked at the environment or asked the terminal by itself
// would do so in the holder's place, with the holder's rights.
func TestCommandsReachNothingByThemselves(t *testing.T) {
	allowed := map[string][]string{ // what has no effect, and no look at the world
		"os":       {"File", "ErrNotExist", "ErrExist", "ErrPermission", "FileMode", "FileInfo"},
		"filepath": {"Join", "Base", "Dir", "Ext", "Clean", "IsAbs", "IsLocal", "Rel", "Split", "Separator", "FromSlash", "ToSlash"},
		"syscall":  {"EROFS"},
		"term":     nil, // all but what is named below
		"exec":     {}, "signal": {}, "net": {}, "unix": {}, "user": {}, "ioutil": {},
	}
	exempt := []string{ // these run in the process that was started for them, see seats
		"demo.go", "demoguard.go",
		"failclosed.go", // the frame of a guard's process
		"unreadpipe.go", // watches an output that is this process's, and no other
	}
	seen := 0
	eachGoFile(t, filepath.Join(repo, "cmd/childlog/internal/command"), func(path string, f *ast.File) {
		name := filepath.Base(path)
		if strings.HasSuffix(path, "_test.go") || slices.Contains(exempt, name) {
			return
		}
		seen++
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && name == "run.go" && fn.Recv == nil && (fn.Name.Name == "Main" || fn.Name.Name == "Run") {
				continue // of this process
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				pkg, ok := sel.X.(*ast.Ident)
				if !ok || pkg.Obj != nil {
					return true
				}
				if pkg.Name == "term" {
					require.NotEqual(t, "ConsoleOf", sel.Sel.Name, path)
				} else if names, ok := allowed[pkg.Name]; ok {
					require.Contains(t, names, sel.Sel.Name, "%s uses %s.%s; ask the app's files or getenv, so that a holder can run the command for others", path, pkg.Name, sel.Sel.Name)
				}
				return true
			})
		}
	})
	require.Greater(t, seen, 40, "the walk found the commands")
}

// TestVariablesAreHandedOver: what a command reads of the environment arrives in
// a holder. Where the store and its key are the holder knows already.
func TestVariablesAreHandedOver(t *testing.T) {
	own := []string{"CHILDLOG_STORE", "CHILDLOG_KEY_FILE", "XDG_DATA_HOME"}
	seen := 0
	eachGoFile(t, filepath.Join(repo, "cmd/childlog/internal/command"), func(path string, f *ast.File) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "getenv" {
				lit, ok := call.Args[0].(*ast.BasicLit)
				require.True(t, ok, "%s: a variable has its name in the source", path)
				name, err := strconv.Unquote(lit.Value)
				require.NoError(t, err)
				require.Contains(t, append(own, forward.Variables...), name, path)
				seen++
			}
			return true
		})
	})
	require.GreaterOrEqual(t, seen, len(own)+3)
}

// TestEveryCommandHasASeat: where a command runs beside a holder was decided, and
// is not what happens to be left.
func TestEveryCommandHasASeat(t *testing.T) {
	left := map[string]bool{}
	for _, names := range seats {
		for _, name := range names {
			require.False(t, left[name], "%s has two", name)
			left[name] = true
		}
	}
	forwarded := maps.Clone(left)
	for _, cmd := range allCommands() {
		name := nameOf(cmd)
		if cmd.HasSubCommands() {
			require.NotContains(t, forwarded, name, "%s runs nothing", name)
			continue
		}
		if !left[name] {
			require.Contains(t, stays, name, "%s: is it run by a holder for others, or in the caller's process?", name)
		}
		delete(left, name)
	}
	require.Empty(t, left, "commands that are not there")
}

// stays are the commands of the caller's own process.
var stays = []string{
	"init", "restore", "salvage", "accept-rollback", // make a store, or open one that can't be held
	"verify-proof", "scope check", "scope merge", "schema", "types", "guard profiles", // need none
	"guard claude-code", "guard codex", // ask a holder to handle the event, and answer for it if it goes away
	"serve", "demo", "install", "uninstall", "doctor", // of this machine's settings and processes
	"token new", "token ls", "token revoke", // a file beside the store, with a lock of its own
}
