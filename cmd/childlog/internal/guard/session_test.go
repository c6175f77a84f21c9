package guard

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// TestStopAndGoOn: an agent that stopped is settled with its denials; when it is
// resumed it goes on in the same log, once.
func TestStopAndGoOn(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
	x.call("", "k", "Task", spawn("Explore"))
	x.send("SubagentStart", "agent_id", "a", "agent_type", "Explore")
	require.Equal(t, Deny, x.write("a", "w1", "/w/p/a").Verb)
	x.call("a", "r1", "Read", map[string]any{"file_path": "/w/p/a"}) // its result is never reported
	for range 2 {                                                    // two hooks of one end
		x.send("SubagentStop", "agent_id", "a", "agent_type", "Explore", "last_assistant_message", "nothing written")
	}
	row := x.row("a")
	require.Equal(t, eventlog.StatusSettled, row.Status(x.s.Boot()))
	require.Len(t, row.Settles, 1)
	require.Equal(t, []eventlog.Count{{Code: "files", N: 1}}, row.Denials)
	require.Empty(t, row.OpenCalls)
	require.Contains(t, x.types("a"), eventlog.TypeAssistantMessage)

	o := x.send("SubagentStart", "agent_id", "a", "agent_type", "Explore")
	require.Contains(t, o.Context, "You are a delegated agent")
	row = x.row("a")
	require.Zero(t, row.SettledSeq)
	require.False(t, row.Open)
	require.Equal(t, Pass, x.call("a", "r2", "Read", map[string]any{"file_path": "/w/p/a"}).Verb)
	x.send("SubagentStop", "agent_id", "a", "agent_type", "Explore")
	require.Len(t, x.row("a").Settles, 2)
	// A call after the end, without a word that it goes on.
	require.Equal(t, Pass, x.call("a", "r3", "Read", map[string]any{"file_path": "/w/p/a"}).Verb)
	require.Zero(t, x.row("a").SettledSeq)
}

// TestMessagesAreNotLost: a follow-up that waits for an agent is not claimed by
// the end of its run.
func TestMessagesAreNotLost(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
	x.send("SubagentStart", "agent_id", "a", "agent_type", "Explore")
	_, _, err := replay.Send(context.Background(), x.s, x.row("a").Session, replay.AsOperator(), "look again")
	require.NoError(t, err)
	x.send("SubagentStop", "agent_id", "a", "agent_type", "Explore")
	require.NotZero(t, x.row("a").SettledSeq)
	require.Len(t, x.row("a").Inbox, 1)
	o := x.send("SubagentStart", "agent_id", "a", "agent_type", "Explore")
	require.Contains(t, o.Context, "look again")
	require.Empty(t, x.row("a").Inbox)
}

// TestEndOfASession: what still runs ends with it, and all of it can go on.
func TestEndOfASession(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
	x.send("SessionEnd", "reason", "logout") // of a session that did nothing
	_, err := x.s.ByExternal(x.g.Harness.System(), x.id)
	require.ErrorIs(t, err, eventlog.ErrNotFound)

	x.send("SessionStart", "source", "startup")
	x.send("UserPromptSubmit", "prompt", "go")
	x.send("SubagentStart", "agent_id", "a", "agent_type", "worker")
	x.send("SessionEnd", "reason", "a reason of many words")
	require.Equal(t, "interrupted", x.row("a").Outcome)
	require.Equal(t, "ended", x.row("").Outcome)
	require.Zero(t, x.row("").TurnSeq)
	x.send("SessionStart", "source", "resume")
	require.Zero(t, x.row("").SettledSeq)
	require.Equal(t, Pass, x.write("", "w", "/w/p/a").Verb)
	x.send("UserPromptSubmit", "prompt", "go on")
	require.EqualValues(t, 2, x.row("").Turn)
	x.send("SessionStart", "source", "compact")
	require.EqualValues(t, 2, x.row("").Turn, "a compaction ends no turn")
}

// TestClosedSession: a session that an operator closed makes no calls any more.
func TestClosedSession(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileTrusted)
	x.send("SessionStart", "source", "startup")
	_, err := replay.Close(context.Background(), x.s, x.root())
	require.NoError(t, err)
	o := x.write("", "w", "/w/p/a")
	require.Equal(t, Deny, o.Verb)
	require.Contains(t, o.Reason, "closed")
	_, err = x.g.Handle(context.Background(), x.s, x.event("SubagentStart", "agent_id", "a", "agent_type", "worker"))
	require.ErrorIs(t, err, eventlog.ErrSessionClosed)
}

// TestNarrowedWhileItRuns: an operator's narrowing holds at the next call.
func TestNarrowedWhileItRuns(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileTrusted)
	x.send("SubagentStart", "agent_id", "a", "agent_type", "worker")
	require.Equal(t, Pass, x.write("a", "w1", "/etc/x").Verb)
	_, err := replay.Narrow(context.Background(), x.s, replay.Narrowing{Session: x.root(), Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Subtree: true, Reason: "enough"})
	require.NoError(t, err)
	require.Equal(t, Deny, x.write("a", "w2", "/etc/x").Verb)
	require.Equal(t, Deny, x.write("", "w3", "/w/p/a").Verb)
}

// TestApprove: only a profile that says so skips a question.
func TestApprove(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileTrusted)
	require.Equal(t, Pass, x.write("", "w", "/w/p/a").Verb)
	y := begin(t, storetest.New(t), ClaudeCode, ProfileTrusted)
	y.g.Policy.Approve = true
	require.Equal(t, Approve, y.write("", "w", "/w/p/a").Verb)
	_, err := replay.Narrow(context.Background(), y.s, replay.Narrowing{Session: y.root(), Authority: &policy.Wish{Capabilities: mustNames(t)}, Reason: "ask again"})
	require.NoError(t, err)
	require.Equal(t, Pass, y.write("", "w2", "/w/p/a").Verb)
}

func mustNames(t *testing.T, names ...string) policy.NameSet {
	s, err := policy.NameSetOf(names...)
	require.NoError(t, err)
	return s
}

// TestOutOfTheSandbox: a command that asks to leave the harness's sandbox is an
// escalation: a person's to allow for a session, nobody's for an agent.
func TestOutOfTheSandbox(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
	out := map[string]any{"command": "make", "dangerouslyDisableSandbox": true}
	require.Equal(t, Ask, x.call("", "b1", "Bash", out).Verb)
	require.Equal(t, Pass, x.call("", "b2", "Bash", map[string]any{"command": "make", "dangerouslyDisableSandbox": false}).Verb)
	require.Equal(t, Ask, x.call("", "b3", "Bash", map[string]any{"command": "make", "dangerouslyDisableSandbox": "yes"}).Verb)
	x.send("SubagentStart", "agent_id", "a", "agent_type", "worker")
	o := x.call("a", "b4", "Bash", out)
	require.Equal(t, Deny, o.Verb)
	require.Contains(t, o.Reason, "approval_never")
	y := begin(t, storetest.New(t), ClaudeCode, ProfileReadOnly)
	require.Equal(t, Deny, y.call("", "b1", "Bash", out).Verb)
}

// TestLinks: a call is decided about the file that it will change.
func TestLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	work, other := filepath.Join(dir, "work"), filepath.Join(dir, "other")
	for _, d := range []string{filepath.Join(work, "src"), filepath.Join(work, ".git"), other} {
		require.NoError(t, os.MkdirAll(d, 0o700))
	}
	for _, f := range []string{filepath.Join(work, "src", "a"), filepath.Join(other, "a")} {
		require.NoError(t, os.WriteFile(f, nil, 0o600))
	}
	link := func(to, name string) { require.NoError(t, os.Symlink(to, filepath.Join(work, name))) }
	link(other, "away")
	link("src", "near")
	link("../other/new", "next")
	link(".git", "innocent")
	link("loop", "loop")
	require.NoError(t, os.Link(filepath.Join(other, "a"), filepath.Join(work, "twin")))
	require.NoError(t, os.Symlink(work, filepath.Join(dir, "door")))

	x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
	x.cwd = work
	x.g.Policy.Scope = &[]string{"src", "near", "away", "next", "innocent", "loop", "twin"} // the test itself may lie in /tmp
	for path, want := range map[string]Verb{
		"src/a": Pass, "src/new/b": Pass, "near/a": Pass, "near/new": Pass,
		"away/a": Deny, "away/new/b": Deny, "next": Deny, "innocent/config": Deny, "loop": Deny, "loop/x": Deny, "twin": Deny,
	} {
		id := strings.ReplaceAll(path, "/", ".")
		require.Equal(t, want, x.write("", "abs."+id, filepath.Join(work, path)).Verb, path)
		require.Equal(t, want, x.write("", "rel."+id, path).Verb, path)
	}
	// Elsewhere a relative name means another file.
	x.cwd = other
	require.Equal(t, Deny, x.write("", "elsewhere", "src/a").Verb)

	// A session that began behind a link: the harness may name either way.
	y := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
	y.id, y.cwd = "s-2", filepath.Join(dir, "door")
	for i, path := range []string{filepath.Join(dir, "door", "src", "a"), filepath.Join(work, "src", "a"), "src/a"} {
		require.Equal(t, Pass, y.write("", "door."+string(rune('a'+i)), path).Verb, path)
	}
	require.Equal(t, Deny, y.write("", "door.x", "/usr/a").Verb)
}

// TestNoTime: a guard whose time is over writes nothing and allows nothing.
func TestNoTime(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileTrusted)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, ev := range everyEvent() {
		ev.Agent, ev.Args, ev.ArgsJSON = "a", map[string]any{}, []byte("{}")
		_, err := x.g.Handle(ctx, x.s, ev)
		require.Error(t, err, ev.Name)
	}
	_, err := x.s.ByExternal(x.g.Harness.System(), x.id)
	require.ErrorIs(t, err, eventlog.ErrNotFound)
}

// TestUnknownEvents: what nobody knows is recorded, and no leave for a call.
func TestUnknownEvents(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileTrusted)
	require.Equal(t, Pass, x.send("Novelty", "x", []int{1}).Verb)
	require.Equal(t, Pass, x.send("PostToolUseV2", "tool_name", "Bash").Verb)
	require.Equal(t, Deny, x.send("PreToolUseV2", "tool_name", "Bash").Verb)
	require.Equal(t, Deny, x.send("PermissionQuestion", "tool_name", "Bash", "agent_id", "a").Verb)
	require.Contains(t, x.types("a"), "guard/event")
}
