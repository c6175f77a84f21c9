package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// allCommands lists the commands and those below them.
func allCommands() []*cobra.Command {
	a := &app{stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, getenv: func(string) string { return "" }}
	var all []*cobra.Command
	for _, cmd := range a.root().Commands() {
		all = append(append(all, cmd), cmd.Commands()...)
	}
	return all
}

// nameOf is what one types for a command.
func nameOf(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.CommandPath(), "childlog ") }

// TestHelp: every command explains itself, with an example that begins with it.
func TestHelp(t *testing.T) {
	for _, cmd := range allCommands() {
		name := nameOf(cmd)
		require.NotEmpty(t, cmd.Short, name)
		require.Regexp(t, `^[A-Z].*[^.]$`, cmd.Short, name)
		require.Greater(t, len(cmd.Long), 80, "%s explains itself", name)
		require.Equal(t, cmd.Parent().HasParent(), cmd.GroupID == "", name)
		require.Contains(t, cmd.Example, "childlog", name)
		require.Contains(t, cmd.Example, name, name)
		words := strings.Fields(name)
		for _, args := range [][]string{append(words, "--help"), append([]string{"help"}, words...)} {
			var out, msg bytes.Buffer
			require.Zero(t, Run(context.Background(), args, strings.NewReader(""), &out, &msg), name)
			require.Contains(t, out.String(), "Examples:", name)
			require.Empty(t, msg.String(), name)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) { require.NotEmpty(t, f.Usage, "%s --%s", name, f.Name) })
	}
}

// TestHelpFitsATerminal: no line of any help is wider than 80 columns.
func TestHelpFitsATerminal(t *testing.T) {
	lines := []([]string){{"--help"}, {"help"}}
	for _, cmd := range allCommands() {
		lines = append(lines, append(strings.Fields(strings.TrimPrefix(cmd.CommandPath(), "childlog ")), "--help"))
	}
	for _, args := range lines {
		var out, msg bytes.Buffer
		require.Zero(t, Run(context.Background(), args, strings.NewReader(""), &out, &msg))
		for line := range strings.Lines(out.String()) {
			if line = strings.TrimRight(line, "\n"); utf8.RuneCountInString(line) > helpWidth {
				t.Errorf("%v: %d columns: %s", args, utf8.RuneCountInString(line), line)
			}
		}
	}
}

// elsewhere are commands whose scripts are their own.
var elsewhere = map[string]bool{"import": true, "demo": true}

// TestEveryFlagIsUsed: no flag of a command is dead, and each command is run in
// both forms: some script uses it.
func TestEveryFlagIsUsed(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	require.NoError(t, err)
	var lines []string
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		lines = append(lines, strings.Split(string(b), "\n")...)
	}
	used := func(pattern string) bool {
		re := regexp.MustCompile(pattern)
		for _, l := range lines {
			if re.MatchString(l) {
				return true
			}
		}
		return false
	}
	for _, cmd := range allCommands() {
		if elsewhere[cmd.Name()] {
			continue
		}
		name := nameOf(cmd)
		call := `^(exec|exits 0) childlog (--\S+ )*` + name + `\b`
		require.True(t, used(call), "%s is never run", name)
		require.True(t, used(call+`.*--json`), "%s is never run with --json", name)
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" {
				return
			}
			flag := "--" + f.Name
			if f.Shorthand != "" {
				flag = "(" + flag + "|-" + f.Shorthand + ")"
			}
			require.True(t, used(`childlog (--\S+ )*`+name+`\b.* `+flag+`\b`), "%s %s is never used", name, flag)
		})
	}
	for _, flag := range []string{"--store", "--json", "--no-color", "--wait", "--key-file"} {
		require.True(t, used(flag+`\b`), flag)
	}
}
