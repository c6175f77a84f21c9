package command

import (
	"fmt"
	"go/ast"
	"go/token"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// block returns the README's first code block after a marker.
func block(t *testing.T, readme, marker string) string {
	t.Helper()
	_, rest, ok := strings.Cut(readme, "<!-- "+marker+" -->\n")
	require.True(t, ok, "README has no marker %q", marker)
	if strings.HasPrefix(rest, "```") {
		_, rest, _ = strings.Cut(rest, "\n")
		code, _, ok := strings.Cut(rest, "\n```")
		require.True(t, ok)
		return code + "\n"
	}
	var lines []string
	for line := range strings.Lines(rest) {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			lines = append(lines, code)
		} else if len(lines) > 0 {
			break
		}
	}
	return strings.Join(lines, "")
}

func readme(t *testing.T) string {
	b, err := os.ReadFile(filepath.Join(repo, "README.md"))
	require.NoError(t, err)
	return string(b)
}

// TestReadmeShell runs the command line quick start as it stands.
func TestReadmeShell(t *testing.T) {
	text := shell(t, block(t, readme(t), "test:shell"))
	_, afterSwitch, ok := strings.Cut(text, "danger-full-access")
	require.True(t, ok, "the parent's switch is shown:\n%s", text)
	require.Contains(t, afterSwitch, "workspace-write", "the child keeps its sandbox")
	require.Contains(t, text, "never ask", "never is shown with its meaning")
	require.Contains(t, text, "completeness unproven")
}

// TestReadmeServe runs what the README says of a store that is shared, on an
// address that is free.
func TestReadmeServe(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl to ask the service with")
	}
	// Of Linux's loopback addresses this process has one to itself. Elsewhere there
	// is one for all, and a free port may be given to somebody else meanwhile.
	pid := os.Getpid()
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:7431", 1+pid>>16&0x7f, pid>>8&0xff, pid&0xff))
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	script := block(t, readme(t), "test:serve")
	require.Contains(t, script, "127.0.0.1:7431")
	text := shell(t, strings.ReplaceAll(script, "127.0.0.1:7431", address))
	require.Contains(t, text, `"code":"sandbox"`, "the service denies the call")
	require.Equal(t, 5, strings.Count(text, "appended 1 event"))
	require.Contains(t, text, "7  ", "all five are in the log")
	require.Contains(t, text, "completeness unproven")
}

// shell runs a script with the command on its path, in a directory of its own.
func shell(t *testing.T, script string) string {
	t.Helper()
	bin := t.TempDir()
	out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "childlog"), "childlog/cmd/childlog").CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.Command("sh", "-eu")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader(script)
	// One that fails halfway leaves behind what it began, with its output open.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	out, err = cmd.CombinedOutput()
	if err != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // else nothing was left
	}
	require.NoError(t, err, "%s", out)
	return string(out)
}

// TestReadmeGo compiles and runs the Go quick start as it stands.
func TestReadmeGo(t *testing.T) {
	dir := t.TempDir()
	main := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(main, []byte(block(t, readme(t), "test:go")), 0o600))
	bin := filepath.Join(dir, "quickstart")
	build := exec.Command("go", "build", "-o", bin, main)
	build.Dir = repo
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	run := exec.Command(bin)
	run.Dir = dir
	out, err = run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "workspace-write /srv/project (network off) approvals never\n", string(out))
}

// TestReadmeLayouts: the byte layouts in the README are those above the codec.
func TestReadmeLayouts(t *testing.T) {
	for marker, file := range map[string]string{"layout:frame": "frame.go", "layout:header": "header.go", "layout:content": "content.go"} {
		src, err := os.ReadFile(filepath.Join(repo, "eventlog", file))
		require.NoError(t, err)
		var want strings.Builder
		for line := range strings.Lines(block(t, readme(t), marker)) {
			want.WriteString("//\t" + line)
		}
		require.Contains(t, string(src), want.String(), "%s differs from the README", file)
	}
}

// TestReadmeNames: the README lists every code, rule and verdict that is
// recorded in logs.
func TestReadmeNames(t *testing.T) {
	text := readme(t)
	named := map[string]bool{"Code": true, "Rule": true, "Verdict": true, "OriginKind": true, "Why": true}
	seen := 0
	for _, dir := range []string{"policy", "replay"} {
		eachGoFile(t, filepath.Join(repo, dir), func(path string, f *ast.File) {
			if strings.HasSuffix(path, "_test.go") {
				return
			}
			ast.Inspect(f, func(n ast.Node) bool {
				spec, ok := n.(*ast.ValueSpec)
				if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 {
					return true
				}
				typ := ""
				switch of := spec.Type.(type) {
				case *ast.Ident:
					typ = of.Name
				case *ast.SelectorExpr:
					typ = of.Sel.Name
				}
				name := spec.Names[0].Name
				untyped := spec.Type == nil && (strings.HasPrefix(name, "Rule") || strings.HasPrefix(name, "Void") || strings.HasPrefix(name, "Code"))
				lit, ok := spec.Values[0].(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING || !named[typ] && !untyped || !ast.IsExported(name) {
					return true
				}
				value, err := strconv.Unquote(lit.Value)
				require.NoError(t, err)
				seen++
				require.Contains(t, text, "`"+value+"`", "%s: %s", path, name)
				return true
			})
		})
	}
	require.Greater(t, seen, 80, "the walk found them")
}
