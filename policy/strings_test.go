package policy_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/require"
)

// Receipts and decisions hold these strings and numbers, and other programs
// compare them. A renamed constant fails here, and so does a new one until it
// is written down.
func TestStableStrings(t *testing.T) {
	want, err := os.ReadFile("testdata/policy-strings.golden")
	require.NoError(t, err)
	read := known{}
	lines := append(constants(t, ".", read), constants(t, "objection", read)...)
	require.Equal(t, string(want), strings.Join(lines, "\n")+"\n")
}

// The whole table under its version: who moves a name to another class, or
// takes one away, raises the version and begins another file.
func TestStableClassTable(t *testing.T) {
	want, err := os.ReadFile(fmt.Sprintf("testdata/class-table-%d.golden", policy.ClassTableVersion))
	require.NoError(t, err)
	var b strings.Builder
	for _, e := range policy.ClassTable() {
		fmt.Fprintf(&b, "%s %s\n", e.Name, e.Class)
	}
	require.Equal(t, string(want), b.String())
}

// known are the packages that were read before, by import path. Of all others
// no constant that is listed here has its type or its value.
type known map[string]*types.Package

func (k known) Import(path string) (*types.Package, error) {
	if pkg := k[path]; pkg != nil {
		return pkg, nil
	}
	return nil, errors.New("left out")
}

// constants returns the exported constants of the package in dir, a line each.
func constants(t *testing.T, dir string, before known) []string {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, f)
	}
	conf := types.Config{Importer: before, Error: func(error) {}}
	pkg, _ := conf.Check(dir, fset, files, nil)
	before[path.Join("childlog/policy", dir)] = pkg
	var lines []string
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if !ok || !c.Exported() {
			continue
		}
		require.NotEqual(t, constant.Unknown, c.Val().Kind(), name)
		lines = append(lines, fmt.Sprintf("%s.%s = %s", files[0].Name.Name, name, c.Val().ExactString()))
	}
	slices.Sort(lines)
	require.NotEmpty(t, lines)
	return lines
}
