package harness_test

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
)

// TestCase5_DenialInTheChildsOwnLog: P, C and G run in the background; G asks.
// The denial is in G's log within the same call, G's turn goes on, nothing waits.
func TestCase5_DenialInTheChildsOwnLog(t *testing.T) {
	both(t, func(t *testing.T, h harness.Harness) {
		scene(t, h)
		g, err := h.Delegate(ctx, harness.DelegateRequest{Parent: childID, Child: harness.Child{Label: "G", Background: new(true)}})
		require.NoError(t, err)
		run, err := h.Activate(ctx, harness.ActivateRequest{Session: g.Session, By: childID})
		require.NoError(t, err)
		say := func(typ string) uint64 {
			w, err := h.Append(ctx, harness.AppendRequest{Session: g.Session, Epoch: run.Epoch, Events: []harness.Event{{Type: typ, Facts: map[string]any{"turn": 1}}}})
			require.NoError(t, err)
			return w.Seq
		}
		turn := say("turn/start")
		call := write("c1", "docs/a.md")
		call.Ask = "ask-1"
		call.Escalation = &harness.Escalation{Sandbox: harness.Sandbox{Mode: "danger-full-access"}, Justification: "I need it"}
		ruling, err := h.Ask(ctx, harness.AskRequest{Session: g.Session, Epoch: run.Epoch, Call: call, Question: "may I?"})
		require.NoError(t, err)
		require.Equal(t, "rejected", *ruling.Outcome)
		require.Equal(t, "pin", ruling.Decider.Kind)
		require.Equal(t, turn+1, ruling.AskedSeq)
		require.Equal(t, turn+2, *ruling.DecidedSeq)
		call.Ask = ""
		denied, err := h.Check(ctx, harness.CheckRequest{Session: g.Session, Epoch: run.Epoch, Record: true, Call: call})
		require.NoError(t, err)
		require.Equal(t, "approval_never", denied.Code)
		page, err := h.Log(ctx, harness.LogRequest{Session: g.Session, From: turn})
		require.NoError(t, err)
		var types []string
		for _, ev := range page.Events {
			types = append(types, ev.Type)
		}
		require.Equal(t, []string{"turn/start", "approval/asked", "approval/decided", "tool/call", "tool/decision"}, types)
		say("turn/end")
		shown, err := h.Show(ctx, harness.SessionRequest{Session: g.Session})
		require.NoError(t, err)
		require.Empty(t, shown.OpenAsks)
		found, err := h.Search(ctx, harness.SearchRequest{SessionFilter: harness.SessionFilter{Subtree: rootID}, EventFilter: harness.EventFilter{Verdict: "deny"}})
		require.NoError(t, err)
		require.Len(t, found.Items, 2, "the answer to the question, and the decision on the call")
		for _, hit := range found.Items {
			require.Equal(t, g.Session, hit.Session, "in the log of whoever asked, and in no other")
		}
	})
}

// TestCase11_PermissiveEnvironment: a child that was captured read-only is
// resumed where everything is allowed: a write is denied.
func TestCase11_PermissiveEnvironment(t *testing.T) {
	t.Setenv("CHILDLOG_DEFAULT_SANDBOX", "danger-full-access")
	t.Setenv("CHILDLOG_DEFAULT_APPROVALS", "never")
	t.Chdir("/")
	both(t, func(t *testing.T, h harness.Harness) {
		root, err := h.Root(ctx, harness.RootRequest{Sandbox: &harness.Sandbox{Mode: "read-only"}, Workspace: "/srv/app"})
		require.NoError(t, err)
		child, err := h.Delegate(ctx, harness.DelegateRequest{Parent: root.Session, Child: harness.Child{Role: "implement"}})
		require.NoError(t, err)
		_, err = h.Switch(ctx, harness.SwitchRequest{Session: root.Session, Sandbox: &harness.Sandbox{Mode: "danger-full-access"}})
		require.NoError(t, err)
		resumed, err := h.Resume(ctx, harness.ResumeRequest{Session: child.Session, By: root.Session, Defaults: &harness.Defaults{Sandbox: &harness.Sandbox{Mode: "danger-full-access"}, Approvals: "ask"}})
		require.NoError(t, err)
		require.Equal(t, "read-only", resumed.Policy.Sandbox.Mode)
		require.Equal(t, "never", resumed.Policy.Approvals.Policy)
		require.NotEmpty(t, resumed.Drift)
		j, err := h.Check(ctx, harness.CheckRequest{Session: child.Session, Call: write("c1", "docs/a.md")})
		require.NoError(t, err)
		require.Equal(t, "deny", j.Verdict)
		shown, err := h.Show(ctx, harness.SessionRequest{Session: child.Session})
		require.NoError(t, err)
		require.Equal(t, child.Hash, shown.Head.Hash, "nothing was appended")
	})
}

// TestCase34_StoreThatIsOnlyRead: a store of mode 0400 answers everything that
// reads, refuses what writes, and not a byte of it changes.
func TestCase34_StoreThatIsOnlyRead(t *testing.T) {
	s := storetest.New(t)
	life(t, harness.On(s))
	require.NoError(t, s.Close())
	each := func(visit func(path string, d fs.DirEntry)) {
		require.NoError(t, filepath.WalkDir(s.Dir(), func(path string, d fs.DirEntry, err error) error {
			visit(path, d)
			return err
		}))
	}
	sums := func() map[string][32]byte {
		out := map[string][32]byte{}
		each(func(path string, d fs.DirEntry) {
			if d.Type().IsRegular() {
				b, err := os.ReadFile(path)
				require.NoError(t, err)
				out[path] = sha256.Sum256(b)
			}
		})
		return out
	}
	mode := func(file, dir os.FileMode) {
		each(func(path string, d fs.DirEntry) {
			if d.IsDir() {
				require.NoError(t, os.Chmod(path, dir))
			} else {
				require.NoError(t, os.Chmod(path, file))
			}
		})
	}
	mode(0o400, 0o500)
	defer mode(0o600, 0o700)
	before := sums()
	h, err := harness.Open(ctx, s.Dir(), eventlog.Options{ReadOnly: true})
	require.NoError(t, err)
	c := served(t, h)
	tree, err := c.Tree(ctx, harness.TreeRequest{})
	require.NoError(t, err)
	require.Len(t, tree.Items, 2)
	page, err := c.Log(ctx, harness.LogRequest{Session: childID})
	require.NoError(t, err)
	require.Empty(t, page.Holes)
	_, err = c.Policy(ctx, harness.PolicyRequest{Session: childID})
	require.NoError(t, err)
	seen := 0
	for _, err := range c.Follow(ctx, harness.FollowRequest{Session: childID}) {
		require.NoError(t, err)
		if seen++; seen == len(page.Events) {
			break
		}
	}
	require.ErrorIs(t, anAppend(c, ctx), eventlog.ErrReadOnly)
	_, err = c.Delegate(ctx, harness.DelegateRequest{Parent: rootID})
	require.ErrorIs(t, err, eventlog.ErrReadOnly)
	require.NoError(t, h.Close())
	require.Equal(t, before, sums())
}

// TestCase55_ForgedEvents: the generic append takes no closed family and no
// source, and a request that states one is refused as a whole.
func TestCase55_ForgedEvents(t *testing.T) {
	both(t, func(t *testing.T, h harness.Harness) {
		scene(t, h)
		before, err := h.Show(ctx, harness.SessionRequest{Session: childID})
		require.NoError(t, err)
		for _, typ := range []string{"delegation/granted", "approval/decided", "approval/policy", "sandbox/mode", "policy/narrowed", "session/closed", "activation/started", "tool/decision", "store/rules", "control/interrupt"} {
			_, err := h.Append(ctx, harness.AppendRequest{Session: childID, Events: []harness.Event{{Type: "user/message", ContentText: new("x")}, {Type: typ}}})
			require.ErrorIs(t, err, eventlog.ErrUnauthorized, typ)
		}
		after, err := h.Show(ctx, harness.SessionRequest{Session: childID})
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
	for _, forged := range []string{`{"type":"user/message","source":"operator"}`, `{"type":"user/message","policy_bearing":true}`, `{"type":"user/message","inherited":{"session":"` + rootID + `","seq":1}}`} {
		_, err := harness.Decode[harness.AppendRequest]([]byte(`{"session":"` + childID + `","events":[` + forged + `]}`))
		require.ErrorIs(t, err, eventlog.ErrInvalid)
		require.ErrorContains(t, err, "unknown key")
	}
}

// TestCase58_ForeignShellTool: a denied exec_shell denies the shell tools of
// other harnesses by their class.
func TestCase58_ForeignShellTool(t *testing.T) {
	both(t, func(t *testing.T, h harness.Harness) {
		root, err := h.Root(ctx, harness.RootRequest{Sandbox: &harness.Sandbox{Mode: "workspace-write"}, Workspace: "/srv/app"})
		require.NoError(t, err)
		child, err := h.Delegate(ctx, harness.DelegateRequest{Parent: root.Session, Child: harness.Child{Role: "implement", DeniedTools: []string{"exec_shell*"}}})
		require.NoError(t, err)
		for _, tool := range []string{"exec_shell", "write_stdin", "Bash", "bash", "exec_command"} {
			j, err := h.Check(ctx, harness.CheckRequest{Session: child.Session, Call: harness.Call{ID: "c", Tool: tool, Args: harness.JSON(`{"command":"ls"}`)}})
			require.NoError(t, err)
			require.Equal(t, "deny", j.Verdict, tool)
			require.Equal(t, "shell", j.Tool.Class, tool)
		}
	})
}
