package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// TestLinksIntoTheStore: the store's directory is closed by whatever name a call
// reaches it, also to a session that may write everywhere, and also where the
// store itself was opened through a link.
func TestLinksIntoTheStore(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	there, link := filepath.Join(dir, "there"), filepath.Join(dir, "link")
	require.NoError(t, os.Mkdir(there, 0o700))
	require.NoError(t, os.Symlink(there, link))
	_, err = eventlog.Init(t.Context(), filepath.Join(link, "store"))
	require.NoError(t, err)
	s, err := eventlog.Open(t.Context(), filepath.Join(link, "store"), eventlog.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		storetest.RequireSound(t, s.Dir())
	})
	require.Equal(t, []string{filepath.Join(link, "store"), filepath.Join(there, "store")}, s.Places())

	for _, profile := range []string{ProfileEditHere, ProfileTrusted} {
		x := begin(t, s, ClaudeCode, profile)
		x.id, x.cwd = profile, dir
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "p")))
		require.NoError(t, os.Symlink(filepath.Join(there, "store"), filepath.Join(dir, "p")))
		for i, path := range []string{"link/store/KEY", "there/store/KEY", "p/KEY", "p/new", "there/store/new"} {
			for _, path := range []string{path, filepath.Join(dir, path)} {
				o := x.write("", string(rune('a'+i))+path[:1], path)
				require.Equal(t, Deny, o.Verb, "%s %s", profile, path)
				require.Contains(t, o.Reason, policy.RuleStoreDirectory, path)
			}
		}
		require.Equal(t, Pass, x.write("", "ok", "there/other").Verb)
	}
}

// TestOperatorsPlaceByALink: what an operator closed is closed to a session that
// may write everywhere, by a link too.
func TestOperatorsPlaceByALink(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileTrusted)
	x.cwd = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(x.cwd, "secrets"), 0o700))
	require.NoError(t, os.Symlink("secrets", filepath.Join(x.cwd, "s")))
	require.NoError(t, os.Symlink("secrets/new", filepath.Join(x.cwd, "n")))
	_, err := replay.SetRules(t.Context(), x.s, replay.RuleFile{DenyPaths: []string{"secrets"}})
	require.NoError(t, err)
	for _, path := range []string{"secrets/a", "s/a", "n", filepath.Join(x.cwd, "s/a")} {
		require.Equal(t, Deny, x.write("", "w"+path, path).Verb, path)
	}
	require.Equal(t, Pass, x.write("", "w", "a").Verb)
}

// TestNarrowedWithAShell: a session that is narrowed to change nothing runs no
// commands any more, the one that was allowed before included.
func TestNarrowedWithAShell(t *testing.T) {
	no := false
	for name, n := range map[string]replay.Narrowing{
		"sandbox":     {Sandbox: &policy.Setting{Mode: policy.ReadOnly}},
		"permissions": {Authority: &policy.Wish{Permissions: &policy.Permissions{Write: no, Network: true}}},
	} {
		for _, profile := range []string{ProfileEditHere, ProfileTrusted} {
			x := begin(t, storetest.New(t), Codex, profile)
			bash := map[string]any{"command": "date > f"}
			require.Equal(t, Pass, x.call("", "b", "Bash", bash).Verb)
			require.Equal(t, Pass, x.call("a", "b", "Bash", bash).Verb)
			n.Session, n.Subtree, n.Reason = x.root(), true, "enough"
			_, err := replay.Narrow(t.Context(), x.s, n)
			require.NoError(t, err)
			for _, agent := range []string{"", "a"} {
				for _, id := range []string{"b", "c"} {
					o := x.call(agent, id, "Bash", bash)
					require.Equal(t, Deny, o.Verb, "%s %s %q %s", name, profile, agent, id)
					require.Contains(t, o.Reason, "which may change no file")
				}
				require.Equal(t, Pass, x.call(agent, "r", "read_file", nil).Verb)
			}
		}
	}
}

// TestPolicyFileThatLeadsNowhere: a link to a policy that is not there is no
// project without one.
func TestPolicyFileThatLeadsNowhere(t *testing.T) {
	for _, name := range []string{PolicyFile, filepath.Dir(PolicyFile)} {
		x := begin(t, storetest.New(t), ClaudeCode, ProfileTrusted)
		x.cwd = t.TempDir()
		link := filepath.Join(x.cwd, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(link), 0o700))
		require.NoError(t, os.Symlink("nowhere", link))
		x.g.Project = FindProject(files.Local{}, "/home/u", x.cwd)
		_, err := x.g.Handle(t.Context(), x.s, x.event("SessionStart", "source", "startup"))
		require.ErrorIs(t, err, eventlog.ErrInvalid, name)
		require.ErrorContains(t, err, "not there")
	}
}

// TestEveryPolicyFileCounts: one in a directory below hides none that is stricter.
func TestEveryPolicyFileCounts(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileTrusted)
	top := t.TempDir()
	x.cwd = filepath.Join(top, "sub")
	require.NoError(t, os.MkdirAll(filepath.Join(top, ".git"), 0o700))
	for dir, profile := range map[string]string{top: ProfileReadOnly, x.cwd: ProfileTrusted} {
		path := filepath.Join(dir, PolicyFile)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(`{"profile":"`+profile+`"}`), 0o600))
	}
	x.g.Project = FindProject(files.Local{}, "/home/u", x.cwd)
	require.Len(t, x.g.Project, 2)
	x.send("SessionStart", "source", "startup")
	require.Equal(t, Deny, x.call("", "w", "Write", map[string]any{"file_path": filepath.Join(x.cwd, "a")}).Verb)
	for range maxProjects { // a chain without an end is refused, not cut
		x.cwd = filepath.Join(x.cwd, "d")
		path := filepath.Join(x.cwd, PolicyFile)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(`{}`), 0o600))
	}
	found := FindProject(files.Local{}, "/home/u", x.cwd)
	require.Len(t, found, 1)
	require.Contains(t, found[0].Err, "more than")
}

// TestNeverIsNeverAsk: a session whose approvals are never asks its person
// nothing, whatever the harness would ask by itself.
func TestNeverIsNeverAsk(t *testing.T) {
	for profile, want := range map[string]Verb{ProfileReadOnly: Deny, ProfileEditHere: Pass} {
		x := begin(t, storetest.New(t), ClaudeCode, profile)
		o := x.send("PermissionRequest", "tool_name", "Bash", "tool_input", map[string]any{"command": "make"})
		require.Equal(t, want, o.Verb, profile)
		if want == Deny {
			require.Contains(t, o.Reason, "approval_never")
			require.Contains(t, x.types(""), eventlog.TypeApprovalDecided)
		}
	}
}

// TestLongTexts: what is longer than an event may be is cut between characters,
// and neither refused nor lost.
func TestLongTexts(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
	long := "x" + strings.Repeat("é", eventlog.MaxContent/2+1)
	x.send("UserPromptSubmit", "prompt", long)
	require.Contains(t, x.types(""), eventlog.TypeUserMessage)
	x.send("PostToolUseFailure", "tool_name", "Bash", "tool_use_id", "b", "tool_input", map[string]any{}, "error", long)
	require.Contains(t, x.types(""), eventlog.TypeToolResult)
}
