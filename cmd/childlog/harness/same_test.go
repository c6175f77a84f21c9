package harness_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/command"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/cmd/childlog/wire"
)

// run executes a command line on the store and returns what it prints. An exit
// code other than 0 is a denial, or a conflict of one call of a batch, which are
// answers.
func run(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	var out, msg bytes.Buffer
	code := command.Run(ctx, append([]string{"--store", dir, "--json"}, args...), strings.NewReader(stdin), &out, &msg)
	require.Contains(t, []int{0, 3, 4}, code, "%v: %s", args, msg.String())
	require.NotEmpty(t, out.String(), "%v: %s", args, msg.String())
	return out.String()
}

// lines renders an answer as the command prints it: a list a line each.
func lines(t *testing.T, answer any) string {
	t.Helper()
	list := []any{answer}
	switch v := answer.(type) {
	case harness.Items[wire.Listed]:
		list = anys(v.Items)
	case harness.Items[wire.Node]:
		list = anys(v.Items)
	case harness.Items[wire.FieldLine]:
		list = anys(v.Items)
	case harness.Items[wire.Message]:
		list = anys(v.Items)
	case harness.Items[wire.Notice]:
		list = anys(v.Items)
	case harness.Items[wire.Narrowed]:
		list = anys(v.Items)
	case harness.Found:
		list = anys(v.Items)
	case harness.Items[wire.Checked]:
		list = nil
		for i, one := range v.Items {
			if one.Error != nil {
				list = append(list, wire.BadLine{Line: uint64(i) + 1, Error: *one.Error})
			} else {
				list = append(list, one.Judgement)
			}
		}
	case harness.LogPage:
		var b strings.Builder
		for i := range v.Events {
			line, err := v.Events[i].Line()
			require.NoError(t, err)
			b.Write(line)
		}
		return b.String()
	}
	var b strings.Builder
	for _, v := range list {
		line, err := wire.Line(v)
		require.NoError(t, err)
		b.Write(line)
	}
	return b.String()
}

func anys[T any](list []T) (out []any) {
	for _, v := range list {
		out = append(out, v)
	}
	return out
}

var moving = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{64}\b|20\d\d-\d\d-\d\dT[0-9:.]+Z`)

// still replaces ids, hashes and times by which of them it is.
func still(text string) string {
	seen := map[string]string{}
	return moving.ReplaceAllStringFunc(text, func(s string) string {
		if seen[s] == "" {
			seen[s] = fmt.Sprintf("<%d>", len(seen))
		}
		return seen[s]
	})
}

// told wraps the outcome of a method for a table.
func told[A any](answer A, err error) (any, error) { return answer, err }

// TestAnswersAreTheCommands: whoever reads the command's JSON reads the
// operations' too.
func TestAnswersAreTheCommands(t *testing.T) {
	s := storetest.New(t)
	h := harness.On(s)
	life(t, h)
	call := `{"call":"c3","tool":"edit","args":{"path":"src/b.go"}}`
	file := filepath.Join(t.TempDir(), "call.json")
	require.NoError(t, os.WriteFile(file, []byte(call), 0o600))
	asked := harness.Call{ID: "c3", Tool: "edit", Args: harness.JSON(`{"path":"src/b.go"}`)}
	outside := harness.Call{ID: "c4", Tool: "edit", Args: harness.JSON(`{"path":"/etc/passwd"}`)}
	batch := filepath.Join(t.TempDir(), "calls.jsonl")
	require.NoError(t, os.WriteFile(batch, []byte(call+"\n"+`{"call":"c4","tool":"edit","args":{"path":"/etc/passwd"}}`+"\n"+call+"\n"), 0o600))
	session := harness.SessionRequest{Session: childID}
	reads := []struct {
		args   string
		answer func() (any, error)
	}{
		{"policy " + childID, func() (any, error) { return told(h.Policy(ctx, harness.PolicyRequest{Session: childID})) }},
		{"policy --at 5 " + childID, func() (any, error) { return told(h.Policy(ctx, harness.PolicyRequest{Session: childID, At: 5})) }},
		{"resume --operator --default-sandbox danger-full-access " + rootID, func() (any, error) {
			return told(h.Resume(ctx, harness.ResumeRequest{Session: rootID, By: harness.Operator, Defaults: &harness.Defaults{Sandbox: &harness.Sandbox{Mode: "danger-full-access"}}}))
		}},
		{"check " + childID + " " + file, func() (any, error) { return told(h.Check(ctx, harness.CheckRequest{Session: childID, Call: asked})) }},
		{"check --at 6 " + childID + " " + file, func() (any, error) {
			return told(h.Check(ctx, harness.CheckRequest{Session: childID, Call: asked, At: 6}))
		}},
		{"check --batch " + childID + " " + batch, func() (any, error) {
			return told(h.CheckBatch(ctx, harness.CheckBatchRequest{Session: childID, Calls: []harness.Call{asked, outside, asked}}))
		}},
		{"check --batch --at 6 " + childID + " " + batch, func() (any, error) {
			return told(h.CheckBatch(ctx, harness.CheckBatchRequest{Session: childID, Calls: []harness.Call{asked, outside, asked}, At: 6}))
		}},
		{"explain " + childID, func() (any, error) { return told(h.ExplainAll(ctx, harness.PolicyRequest{Session: childID})) }},
		{"explain " + childID + " grant.shell", func() (any, error) {
			return told(h.ExplainField(ctx, harness.ExplainFieldRequest{Session: childID, Field: "grant.shell"}))
		}},
		{"explain " + childID + " --call " + file, func() (any, error) {
			return told(h.ExplainCall(ctx, harness.ExplainCallRequest{Session: childID, Call: asked}))
		}},
		{"explain " + childID + " --seq 3", func() (any, error) {
			return told(h.ExplainEvent(ctx, harness.ExplainEventRequest{Session: childID, Seq: 3}))
		}},
		{"diff " + childID, func() (any, error) { return told(h.Diff(ctx, harness.DiffRequest{Session: childID})) }},
		{"show " + childID, func() (any, error) { return told(h.Show(ctx, session)) }},
		{"ls", func() (any, error) { return told(h.List(ctx, harness.ListRequest{})) }},
		{"ls --verdict deny --status closed", func() (any, error) {
			return told(h.List(ctx, harness.ListRequest{SessionFilter: harness.SessionFilter{Status: "closed"}, EventFilter: harness.EventFilter{Verdict: "deny"}}))
		}},
		{"tree", func() (any, error) { return told(h.Tree(ctx, harness.TreeRequest{})) }},
		{"tree " + childID, func() (any, error) { return told(h.Tree(ctx, harness.TreeRequest{Session: childID})) }},
		{"log " + childID, func() (any, error) { return told(h.Log(ctx, harness.LogRequest{Session: childID})) }},
		{"log --no-content --type tool/* " + childID, func() (any, error) {
			return told(h.Log(ctx, harness.LogRequest{Session: childID, NoContent: true, EventFilter: harness.EventFilter{Types: []string{"tool/*"}}}))
		}},
		{"search incident", func() (any, error) { return told(h.Search(ctx, harness.SearchRequest{Text: "incident"})) }},
		{"search --verdict deny", func() (any, error) {
			return told(h.Search(ctx, harness.SearchRequest{EventFilter: harness.EventFilter{Verdict: "deny"}}))
		}},
		{"rules show", func() (any, error) { return told(h.Rules(ctx, harness.NoRequest{})) }},
	}
	want := make([]string, len(reads))
	for i, r := range reads {
		answer, err := r.answer()
		require.NoError(t, err, r.args)
		want[i] = lines(t, answer)
	}
	require.NoError(t, s.Close())
	for i, r := range reads {
		require.Equal(t, want[i], run(t, s.Dir(), "", strings.Fields(r.args)...), r.args)
	}
}

// TestWritesAreTheCommands runs each write on a store of its own, by command
// and by operation, after the same beginning.
func TestWritesAreTheCommands(t *testing.T) {
	send := func(h harness.Harness) {
		_, err := h.Send(ctx, harness.SendRequest{Session: childID, By: harness.Operator, Text: "hello"})
		require.NoError(t, err)
	}
	activate := func(h harness.Harness) {
		_, err := h.Activate(ctx, harness.ActivateRequest{Session: childID, By: rootID})
		require.NoError(t, err)
	}
	settle := func(h harness.Harness) {
		_, err := h.Settle(ctx, harness.SettleRequest{Session: childID, Outcome: "failed"})
		require.NoError(t, err)
	}
	writes := []struct {
		args, stdin string
		before      func(harness.Harness)
		answer      func(h harness.Harness) (any, error)
	}{
		{"root --label x --sandbox workspace-write --cwd / --external demo:9 --profile -", `{"own":{"shell":"none"}}`, nil, func(h harness.Harness) (any, error) {
			return told(h.Root(ctx, harness.RootRequest{Label: "x", Sandbox: &harness.Sandbox{Mode: "workspace-write"}, Workspace: "/", External: "demo:9", Profile: &harness.Profile{Own: &harness.Wish{Shell: "none"}}}))
		}},
		{"delegate --parent " + rootID + " --request -", `{"role":"explore","tools":null,"max_steps":0,"prompt":"look"}`, nil, func(h harness.Harness) (any, error) {
			return told(h.Delegate(ctx, harness.DelegateRequest{Parent: rootID, Child: harness.Child{Role: "explore", Tools: harness.AnyTools(), MaxSteps: new(uint64(0)), Prompt: "look"}}))
		}},
		{"append " + rootID, `{"type":"user/message","content_text":"hi"}`, nil, func(h harness.Harness) (any, error) {
			return told(h.Append(ctx, harness.AppendRequest{Session: rootID, Events: []harness.Event{{Type: "user/message", ContentText: new("hi")}}}))
		}},
		{"switch " + rootID + " --sandbox read-only --approvals never", "", nil, func(h harness.Harness) (any, error) {
			return told(h.Switch(ctx, harness.SwitchRequest{Session: rootID, Sandbox: &harness.Sandbox{Mode: "read-only"}, Approvals: "never"}))
		}},
		{"narrow " + rootID + " --subtree --sandbox read-only --reason x", "", nil, func(h harness.Harness) (any, error) {
			return told(h.Narrow(ctx, harness.NarrowRequest{Session: rootID, Subtree: true, Sandbox: &harness.Sandbox{Mode: "read-only"}, Reason: "x"}))
		}},
		{"send " + childID + " --operator hello", "", nil, func(h harness.Harness) (any, error) {
			return told(h.Send(ctx, harness.SendRequest{Session: childID, By: harness.Operator, Text: "hello"}))
		}},
		{"interrupt " + childID + " --parent " + rootID, "", nil, func(h harness.Harness) (any, error) {
			return told(h.Interrupt(ctx, harness.InterruptRequest{Session: childID, By: rootID}))
		}},
		{"inbox " + childID, "", send, func(h harness.Harness) (any, error) {
			return told(h.Inbox(ctx, harness.SessionRequest{Session: childID}))
		}},
		{"inbox " + childID + " --claim --epoch 1", "", func(h harness.Harness) { activate(h); send(h) }, func(h harness.Harness) (any, error) {
			return told(h.Claim(ctx, harness.ClaimRequest{Session: childID, Epoch: 1}))
		}},
		{"activate " + childID, "", send, func(h harness.Harness) (any, error) {
			return told(h.Activate(ctx, harness.ActivateRequest{Session: childID, By: harness.Operator}))
		}},
		{"end " + childID + " --epoch 1", "", activate, func(h harness.Harness) (any, error) {
			return told(h.End(ctx, harness.EndRequest{Session: childID, Epoch: 1}))
		}},
		{"settle " + childID + " --outcome failed", "", nil, func(h harness.Harness) (any, error) {
			return told(h.Settle(ctx, harness.SettleRequest{Session: childID, Outcome: "failed"}))
		}},
		{"close " + childID, "", nil, func(h harness.Harness) (any, error) {
			return told(h.CloseSession(ctx, harness.CloseRequest{Session: childID}))
		}},
		{"notices " + rootID, "", settle, func(h harness.Harness) (any, error) {
			return told(h.Notices(ctx, harness.SessionRequest{Session: rootID}))
		}},
		{"notices " + rootID + " --consume " + childID, "", settle, func(h harness.Harness) (any, error) {
			return told(h.Consume(ctx, harness.ConsumeRequest{Session: rootID, Child: childID}))
		}},
		{"check --record " + childID, `{"call":"c1","tool":"write_file","args":{"path":"src/a"}}`, nil, func(h harness.Harness) (any, error) {
			return told(h.Check(ctx, harness.CheckRequest{Session: childID, Record: true, Call: harness.Call{ID: "c1", Tool: "write_file", Args: harness.JSON(`{"path":"src/a"}`)}}))
		}},
		{"check --record --batch " + childID, `{"call":"c1","tool":"write_file","args":{"path":"src/a"}}` + "\n" + `{"call":"c1","tool":"write_file","args":{"path":"src/b"}}` + "\n" +
			`{"call":"c1","tool":"write_file","args":{"path":"src/a"}}`, nil, func(h harness.Harness) (any, error) {
			one := func(path string) harness.Call {
				return harness.Call{ID: "c1", Tool: "write_file", Args: harness.JSON(`{"path":"` + path + `"}`)}
			}
			return told(h.CheckBatch(ctx, harness.CheckBatchRequest{Session: childID, Record: true, Calls: []harness.Call{one("src/a"), one("src/b"), one("src/a")}}))
		}},
		{"rules set -", `{"deny_tools":["chmod"]}`, nil, func(h harness.Harness) (any, error) {
			return told(h.SetRules(ctx, harness.SetRulesRequest{Rules: harness.Rules{DenyTools: []string{"chmod"}}}))
		}},
	}
	for _, w := range writes {
		t.Run(strings.Fields(w.args)[0], func(t *testing.T) {
			begin := func() (*harness.Store, string) {
				s := storetest.New(t)
				h := harness.On(s)
				scene(t, h)
				if w.before != nil {
					w.before(h)
				}
				return h, s.Dir()
			}
			h, _ := begin()
			answer, err := w.answer(h)
			require.NoError(t, err)
			other, dir := begin()
			require.NoError(t, other.Unwrap().Close())
			require.Equal(t, still(lines(t, answer)), still(run(t, dir, w.stdin, strings.Fields(w.args)...)))
		})
	}
}
