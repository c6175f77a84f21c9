package command

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const repo = "../../../.."

// layers lists the packages from the bottom up: one imports only those before it.
var layers = []string{"policy", "eventlog", "replay", "snapshot", "materialize", "cmd"}

// TestImportsPointOneWay keeps the layers apart. The page checker is below
// everything and imports nothing of ours.
func TestImportsPointOneWay(t *testing.T) {
	level := map[string]int{}
	for i, l := range layers {
		level[l] = i
	}
	seen := 0
	eachGoFile(t, repo, func(path string, f *ast.File) {
		from, ok := level[topFolder(path)]
		require.True(t, ok, "%s lies in no known folder", path)
		for _, imp := range imports(t, f) {
			target, ours := strings.CutPrefix(imp, "childlog/")
			if !ours {
				continue
			}
			seen++
			top, rest, _ := strings.Cut(target, "/")
			to, ok := level[top]
			require.True(t, ok, "%s imports %s", path, imp)
			if strings.HasSuffix(f.Name.Name, "_test") {
				continue // tests from outside set the scene with the layers above
			}
			if to == from {
				below := strings.Count(path, "/") > 1 // a package of its own, which may build on the one above it
				require.True(t, top == "cmd" || rest != "" || below, "%s imports its own package %s", path, imp)
				continue
			}
			require.Less(t, to, from, "%s imports %s, which lies above it", path, imp)
		}
		if strings.HasPrefix(path, "eventlog/pagecheck/") && !strings.HasSuffix(path, "_test.go") {
			for _, imp := range imports(t, f) {
				require.False(t, strings.HasPrefix(imp, "childlog/"), "%s imports %s", path, imp)
			}
		}
	})
	require.Greater(t, seen, 10, "the walk found the imports")
}

// TestOnlyEventlogKnowsBbolt keeps the database behind one package.
func TestOnlyEventlogKnowsBbolt(t *testing.T) {
	eachGoFile(t, repo, func(path string, f *ast.File) {
		for _, imp := range imports(t, f) {
			if strings.HasPrefix(imp, "go.etcd.io/bbolt") && !strings.HasSuffix(path, "_test.go") {
				require.Equal(t, "eventlog", topFolder(path), "%s imports %s", path, imp)
			}
		}
	})
}

// TestPolicyAndReplayArePure: what a session may do is a function of its log,
// so nothing in these packages may ask a clock, the environment, the disk or
// chance. Values of time.Time that come out of events are fine.
func TestPolicyAndReplayArePure(t *testing.T) {
	forbiddenImports := []string{"os", "os/exec", "os/user", "math/rand", "math/rand/v2", "crypto/rand", "net", "runtime", "syscall", "path/filepath", "io/ioutil", "golang.org/x/sys/unix"}
	forbiddenCalls := map[string][]string{
		"time": {"Now", "Since", "Until", "After", "Tick", "NewTimer", "NewTicker", "Sleep", "AfterFunc", "LoadLocation"},
		"uuid": {"New", "NewString", "NewRandom", "NewV6", "NewV7", "NewUUID", "NewDCESecurity", "SetRand", "NewRandomFromReader"},
	}
	seen := 0
	for _, pkg := range []string{"policy", "replay"} {
		eachGoFile(t, filepath.Join(repo, pkg), func(path string, f *ast.File) {
			if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "policy/scopefs/") {
				return // scopefs is the one place where a path of a call meets the file system
			}
			seen++
			for _, imp := range imports(t, f) {
				require.NotContains(t, forbiddenImports, imp, "%s imports %s", path, imp)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Obj == nil {
					require.NotContains(t, forbiddenCalls[pkg.Name], sel.Sel.Name, "%s uses %s.%s", path, pkg.Name, sel.Sel.Name)
				}
				return true
			})
		})
	}
	require.Greater(t, seen, 10, "the walk found the files")
}

// TestDelegationsAreWrittenByMaterializeOnly: no other package may use the
// entry points that make delegation events, and only importers that of evidence.
func TestDelegationsAreWrittenByMaterializeOnly(t *testing.T) {
	allowed := map[string]string{"EntryDelegation": "materialize/", "EntryCreate": "materialize/", "EntryImport": "cmd/childlog/internal/", "ImportAsync": "cmd/childlog/internal/"}
	used := map[string]bool{}
	eachGoFile(t, repo, func(path string, f *ast.File) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "eventlog/") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if where, ok := allowed[sel.Sel.Name]; ok {
					used[sel.Sel.Name] = true
					require.True(t, strings.HasPrefix(path, where), "%s uses %s", path, sel.Sel.Name)
				}
			}
			return true
		})
	})
	delete(used, "EntryImport") // an importer may write several sessions at once, and none has to
	require.Len(t, used, len(allowed)-1, "every entry point has its user")
}

// TestLayoutOfTheTopLevel keeps the top level what a reader expects.
func TestLayoutOfTheTopLevel(t *testing.T) {
	allowed := append([]string{"testdata", "go.mod", "go.sum", "Makefile", "README.md", "bin"}, layers...)
	entries, err := os.ReadDir(repo)
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			require.Contains(t, allowed, e.Name())
		}
	}
}

func topFolder(path string) string {
	top, _, _ := strings.Cut(path, "/")
	return top
}

func imports(t *testing.T, f *ast.File) []string {
	var out []string
	for _, imp := range f.Imports {
		path, err := strconv.Unquote(imp.Path.Value)
		require.NoError(t, err)
		out = append(out, path)
	}
	return out
}

// eachGoFile parses every Go file of the module below dir; paths are relative
// to the module. A nested module, such as the benchmark, is not part of it and
// may import what it measures.
func eachGoFile(t *testing.T, dir string, fn func(path string, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != "." && d.Name() != "..") {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); d.IsDir() && path != repo && err == nil {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(repo, path)
		if err != nil {
			return err
		}
		fn(filepath.ToSlash(rel), f)
		return nil
	})
	require.NoError(t, err)
}
