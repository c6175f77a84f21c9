package install

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// documents draws settings as people and programs write them: any members, hooks
// of others among them, in any style.
func documents(h *Harness) *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		g := &drawer{t: t, pretty: rapid.Bool().Draw(t, "pretty"), unit: rapid.SampledFrom([]string{"  ", "    ", "\t", ""}).Draw(t, "unit"), eol: rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "eol")}
		var members []string
		if h.rootNames == nil {
			for i := range rapid.IntRange(0, 3).Draw(t, "before") {
				members = append(members, g.member([]string{"model", "env", "permissions", "häkchen"}[i], g.value(2)))
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "hooks") > 0 {
			members = append(members, g.member("hooks", g.hooks(h)))
		}
		if rapid.Bool().Draw(t, "after") {
			members = append(members, g.member("description", `"last \u00fc \" , { [ // no comment"`))
		}
		lead, trail := rapid.SampledFrom([]string{"", "\n", "  "}).Draw(t, "lead"), rapid.SampledFrom([]string{"", "\n", "\r\n", " \n\n"}).Draw(t, "trail")
		mark := ""
		if h.bom && rapid.IntRange(0, 5).Draw(t, "mark") == 0 {
			mark = byteOrderMark
		}
		return []byte(mark + lead + g.object(members, 0) + trail)
	})
}

type drawer struct {
	t         *rapid.T
	pretty    bool
	unit, eol string
}

func (g *drawer) member(name, value string) string {
	quoted, _ := jsontext.AppendQuote(nil, name)
	return string(quoted) + rapid.SampledFrom([]string{":", ": ", " : "}).Draw(g.t, "colon") + value
}

func (g *drawer) object(members []string, depth int) string {
	return g.wrap("{", members, "}", depth)
}

// wrap lays out a list; now and then in another manner than the rest of the file.
func (g *drawer) wrap(open string, list []string, end string, depth int) string {
	if len(list) == 0 {
		return open + rapid.SampledFrom([]string{"", " ", g.eol}).Draw(g.t, "hole") + end
	}
	if g.pretty && rapid.IntRange(0, 4).Draw(g.t, "inline") > 0 {
		in := g.eol + strings.Repeat(g.unit, depth+1)
		return open + in + strings.Join(list, ","+in) + g.eol + strings.Repeat(g.unit, depth) + end
	}
	return open + strings.Join(list, rapid.SampledFrom([]string{",", ", ", " ,"}).Draw(g.t, "comma")) + end
}

func (g *drawer) value(depth int) string {
	switch kind := rapid.IntRange(0, 6).Draw(g.t, "kind"); {
	case kind < 4 || depth == 0:
		return rapid.SampledFrom([]string{"null", "true", "-1.50e+3", `"x"`, `"{\"a\":[1,]}"`, `"ünï"`}).Draw(g.t, "literal")
	case kind == 4:
		return g.wrap("[", []string{g.value(depth - 1), g.value(depth - 1)}, "]", 3-depth)
	default:
		return g.object([]string{g.member("k", g.value(depth-1))}, 3-depth)
	}
}

func (g *drawer) hooks(h *Harness) string {
	names := append([]string{"Notification", "PreCompact"}, h.Events()...)
	var events []string
	for _, name := range names {
		if rapid.IntRange(0, 3).Draw(g.t, "event") > 0 {
			continue
		}
		var groups []string
		for range rapid.IntRange(0, 2).Draw(g.t, "groups") {
			var handlers []string
			for range rapid.IntRange(0, 2).Draw(g.t, "handlers") {
				handlers = append(handlers, g.object([]string{g.member("type", `"command"`), g.member("command", rapid.SampledFrom([]string{`"echo hi"`, `"/opt/other guard"`, `"a && b | c"`}).Draw(g.t, "command"))}, 5))
			}
			members := []string{g.member("hooks", g.wrap("[", handlers, "]", 4))}
			if rapid.Bool().Draw(g.t, "matcher") {
				members = append(members, g.member("matcher", `"Bash"`))
			}
			groups = append(groups, g.object(members, 3))
		}
		events = append(events, g.member(name, g.wrap("[", groups, "]", 2)))
	}
	return g.object(events, 1)
}

// TestUndoIsExact, property 1: whatever valid settings were there, uninstall
// brings their very bytes back. Property 2: installing again changes nothing.
// Property 3: what is installed is valid, and holds all that was there before.
// Property 4: without the note of install only our entries go, and what is left
// says what the original said.
func TestUndoIsExact(t *testing.T) {
	for _, h := range Harnesses() {
		t.Run(h.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				dir, err := os.MkdirTemp("", "install")
				require.NoError(t, err)
				defer func() { require.NoError(t, os.RemoveAll(dir)) }()
				src := documents(h).Draw(t, "settings")
				require.NoError(t, strict(h, src), "%s", src)
				path := filepath.Join(dir, h.dir, h.user)
				require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path, src, 0o640))
				r := request(h, dir)
				p := applied(t, r)
				require.Equal(t, Installed, p.Action)
				left, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, strict(h, left), "%s", left)
				again, err := Install(r)
				require.NoError(t, err)
				require.Equal(t, Unchanged, again.Action, "%s", left)

				taken, n, err := take(h, left, src, r.Command.Exe)
				require.NoError(t, err)
				require.Equal(t, len(h.Events()), n)
				require.Equal(t, canonical(t, src), canonical(t, taken))

				u, err := Uninstall(h, r.Env, false, r.Command.Exe)
				require.NoError(t, err)
				require.Equal(t, Restored, u.Action)
				require.NoError(t, u.Apply())
				back, err := os.ReadFile(path)
				require.NoError(t, err)
				require.Equal(t, string(src), string(back))
				rest, err := os.ReadDir(filepath.Dir(path))
				require.NoError(t, err)
				require.Len(t, rest, 1, "no backup and no note is left")
			})
		})
	}
}

// canonical is what a document says: RFC 8785.
func canonical(t require.TestingT, src []byte) string {
	v := jsontext.Value(bytes.Clone(bytes.TrimPrefix(src, []byte(byteOrderMark))))
	require.NoError(t, v.Canonicalize(), "%s", src)
	return string(v)
}

// request is one for a home directory of the test's own.
func request(h *Harness, home string) Request {
	env := map[string]string{"HOME": home}
	return Request{
		Harness: h,
		Env:     Env{Getenv: func(name string) string { return env[name] }, Dir: filepath.Join(home, "work"), System: filepath.Join(home, "system")},
		Command: Command{Exe: "/opt/bin/childlog", Store: "/var/lib/it's here/store"},
		Default: "edit-here",
	}
}

func applied(t require.TestingT, r Request) *Plan {
	p, err := Install(r)
	require.NoError(t, err)
	require.NoError(t, p.Apply())
	return p
}

// FuzzSettings: no bytes make the editor panic, what it accepts it can undo, and
// what it writes it accepts.
func FuzzSettings(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"hooks":{}}`, `{"hooks":{"PreToolUse":[{"hooks":[]}]}}`, "// c\n{\"a\":1,}", `{"hooks":{"PreToolUse":[{"matcher":"x","hooks":[{"type":"command","command":"childlog guard codex"}, // mine` + "\n]}]}}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, h := range Harnesses() {
			c := Command{Exe: "/bin/childlog", Store: "/s", Profile: "read-only"}
			if bare, _, err := take(h, src, nil, c.Exe); err == nil {
				if _, n, err := take(h, bare, nil, c.Exe); err == nil {
					require.Zero(t, n)
				}
			}
			out, err := put(h, src, c, c.Exe)
			if err != nil {
				continue
			}
			again, err := put(h, out, c, c.Exe)
			require.NoError(t, err)
			require.Equal(t, string(out), string(again))
		}
	})
}
