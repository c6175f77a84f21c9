package command

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOneCommandIsBuilt: a command line that names a command builds that one and
// no other, and it is the same as among all others.
func TestOneCommandIsBuilt(t *testing.T) {
	quiet := &app{getenv: func(string) string { return "" }}
	whole := quiet.root()
	for _, s := range subcommands() {
		built := quiet.root("--json", s.name, "x").Commands()
		require.Len(t, built, 1, s.name)
		require.Equal(t, s.name, built[0].Name(), "the list has the name by which it is called")
		other, _, err := whole.Find([]string{s.name})
		require.NoError(t, err)
		require.Equal(t, other.UsageString(), built[0].UsageString())
	}
	n := len(subcommands())
	for _, args := range [][]string{nil, {"--help"}, {"nonsense"}, {"help", "ls"}, {"completion", "bash"}, {"__complete", "ls", ""}} {
		require.GreaterOrEqual(t, len(quiet.root(args...).Commands()), n, "%v", args)
	}
}

// TestCommandsByName: what stands before a command, a store that is called like
// another one, and a word that is none are told apart as ever.
func TestCommandsByName(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		args string
		want int
		says string
	}{
		{"--store append init", 0, ""},
		{"--store append ls --json", 0, ""},
		{"lst append", 2, "did you mean `childlog ls`?"},
		{"append", 2, "ID is missing"},
		{"shw", 2, "did you mean `childlog show`?"},
		{"ls --nonsense", 2, "unknown flag: --nonsense"},
	} {
		var out, msg bytes.Buffer
		require.Equal(t, c.want, Run(context.Background(), strings.Fields(c.args), strings.NewReader(""), &out, &msg), "%s: %s", c.args, msg.String())
		require.Contains(t, msg.String(), c.says, c.args)
	}
}

// TestNothingIsCompiledAtStart: a hook is a cold process for every tool call, so
// no package compiles a pattern or a template before somebody needs it.
func TestNothingIsCompiledAtStart(t *testing.T) {
	found := 0
	require.NoError(t, filepath.WalkDir(repo, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "bench" || strings.HasPrefix(d.Name(), ".") && path != repo):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, 0)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.VAR {
				found++
				ast.Inspect(g, atStart(t, path))
			}
		}
		return nil
	}))
	require.Greater(t, found, 50, "the walk finds the sources")
}

// atStart refuses, among what a package's variables are set to, what compiles.
func atStart(t *testing.T, path string) func(ast.Node) bool {
	return func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.FuncLit); ok { // at once
				ast.Inspect(called.Body, atStart(t, path))
			}
		case *ast.FuncLit: // when somebody calls it
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && (x.Name == "regexp" && strings.HasPrefix(n.Sel.Name, "MustCompile") || x.Name == "template" && n.Sel.Name != "FuncMap") {
				t.Errorf("%s: %s.%s in a variable of the package: use sync.OnceValue", path, x.Name, n.Sel.Name)
			}
		}
		return true
	}
}
