package install

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

var update = flag.Bool("update", false, "write testdata anew")

// TestLayouts: what is put in looks like what is there. A file of testdata holds
// the settings before and after, and after an edit what is left when our hooks
// are taken out.
func TestLayouts(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			require.NoError(t, err)
			h := Codex
			if strings.Contains(string(a.Comment), ClaudeCode.Name) {
				h = ClaudeCode
			}
			c := Command{Exe: "/opt/bin/childlog", Store: "/data/store", Profile: "edit-here"}
			var before []byte
			for i := range a.Files {
				f := &a.Files[i]
				var got []byte
				switch f.Name {
				case "before":
					before = f.Data
					continue
				case "after":
					got, err = put(h, before, c, c.Exe)
				case "edited":
					before = f.Data
					continue
				case "taken":
					got, _, err = take(h, before, a.Files[0].Data, c.Exe)
				}
				require.NoError(t, err)
				if *update {
					f.Data = got
					continue
				}
				require.Equal(t, string(f.Data), string(got), f.Name)
			}
			if *update {
				require.NoError(t, os.WriteFile(name, txtar.Format(a), 0o600))
			}
		})
	}
}

// TestNotUnderstood: every refusal names the line, and what is wrong there.
func TestNotUnderstood(t *testing.T) {
	for _, c := range []struct {
		h            *Harness
		src, message string
	}{
		{ClaudeCode, "{", `line 1, column 2: .*unexpected EOF`},
		{ClaudeCode, "[]", `line 1: want an object`},
		{ClaudeCode, "{}\n{}", `line 2, column 1: something follows`},
		{ClaudeCode, "{\n  // why\n  \"a\": 1\n}", `line 2, column 3: a comment or a comma too many, with which Claude Code drops the whole file`},
		{ClaudeCode, "{\n  \"a\": 1,\n}", `line 3, column 1: a comment or a comma too many`},
		{ClaudeCode, "{\n  \"hooks\": {},\n  \"hooks\": {}\n}", `line 3, column 3: .*duplicate`},
		{ClaudeCode, "{\"a\": \"\xff\"}", `line 1, column 8: .*UTF-8`},
		{ClaudeCode, "{\"hooks\":\n[]}", `line 2: hooks: want an object of events`},
		{ClaudeCode, "{\"hooks\": {\"Stop\":\n{}}}", `line 2: hooks.Stop: want a list of groups`},
		{ClaudeCode, "{\"hooks\": {\"Stop\": [\n1]}}", `line 2: hooks.Stop: want {"matcher"`},
		{ClaudeCode, "{\"hooks\": {\"Stop\": [\n{\"matcher\": \"\"}]}}", `line 2: hooks.Stop: want {"matcher"`},
		{ClaudeCode, "{\"hooks\": {\"Stop\": [{\"matcher\": \n1, \"hooks\": []}]}}", `line 2: hooks.Stop: matcher: want a string`},
		{ClaudeCode, "{\"hooks\": {\"Stop\": [{\"hooks\": \n{}}]}}", `line 2: hooks.Stop: want a list of hooks`},
		{ClaudeCode, "{\"hooks\": {\"Stop\": [{\"hooks\": [\n\"x\"]}]}}", `line 2: hooks.Stop: want {"type"`},
		{ClaudeCode, "{\"hooks\": {\"Stop\": [{\"hooks\": [\n{\"command\": \"x\"}]}]}}", `line 2: hooks.Stop: want a "type"`},
		{ClaudeCode, "{\"hooks\": {\"Stop\": [{\"hooks\": [\n{\"type\": \"command\"}]}]}}", `line 2: hooks.Stop: want a "command"`},
		{ClaudeCode, "{\"hooks\": {\"Stop\": [{\"hooks\": [\n{\"type\": \"command\", \"command\": \"sh -c 'childlog guard claude-code'\"}]}]}}", `line 2: hooks.Stop runs a guard in a way that install did not write`},
		{Codex, byteOrderMark + "{}", `line 1: a byte order mark, with which Codex drops the whole file`},
		{Codex, "{\n\"$schema\": \"x\"}", `line 2: got "\$schema", want only description and hooks`},
	} {
		_, err := put(c.h, []byte(c.src), Command{Exe: "/bin/childlog", Store: "/s"}, "/bin/childlog")
		require.ErrorIs(t, err, eventlog.ErrInvalid, "%s", c.src)
		require.Regexp(t, c.message, err.Error())
	}
}

// TestCommands: a command survives the shell's rules, and only a plain one of
// ours is taken for ours.
func TestCommands(t *testing.T) {
	for _, c := range []Command{
		{Exe: "/opt/bin/childlog", Store: "/s"},
		{Exe: "/opt/my bin/childlog", Store: "/it's \"$HOME\" `x`\\/é", KeyFile: "/k", Profile: "read-only", Observe: true},
		{Exe: "/tmp/it.test", Store: "/a\nb", Profile: "trusted"},
		{Exe: "/opt/bin/childlog", Store: "/s", Policy: "/p q.json", rest: []string{"--timeout", "2s"}},
	} {
		for _, h := range Harnesses() {
			got, ok := parseCommand(h, c.line(h), c.Exe)
			require.True(t, ok, c.line(h))
			require.Equal(t, c, got)
		}
		_, ok := parseCommand(Codex, c.line(ClaudeCode), c.Exe)
		require.False(t, ok, "another harness's")
	}
	for _, line := range []string{
		"", "childlog", "childlog guard", "childlog guard other", "echo childlog guard codex", "childlog guard codex; rm x", "childlog guard codex > x", "X=1 childlog guard codex",
		"childlog guard codex &", "childlog guard 'codex", `childlog guard "co$dex"`, "childlog guard codex\\", "/opt/notchildlog guard codex", "childlog guard codex*", "childlog append guard", "childlog guard claude-code guard codex",
	} {
		_, ok := parseCommand(Codex, line, "/opt/bin/childlog")
		require.False(t, ok, line)
	}
	for _, line := range []string{"childlog guard codex", `"childlog" 'guard' codex`, "childlog --store=/s guard codex --profile=read-only --observe=false", `/a\ b/childlog guard codex`} {
		c, ok := parseCommand(Codex, line, "")
		require.True(t, ok, line)
		require.False(t, c.Observe)
	}
}
