package harness_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
)

var ctx = context.Background()

func embedded(t testing.TB) *harness.Store { return harness.On(storetest.New(t)) }

const (
	rootID  = "5e551041-0000-4000-8000-000000000001"
	childID = "5e551041-0000-4000-8000-000000000002"
)

// scene makes a root that may write below /srv/app, and a child that may write docs.
func scene(t testing.TB, h harness.Harness) {
	t.Helper()
	_, err := h.Root(ctx, harness.RootRequest{ID: rootID, Sandbox: &harness.Sandbox{Mode: "workspace-write"}, Workspace: "/srv/app", Label: "agent", External: "demo:run/1"})
	require.NoError(t, err)
	_, err = h.Delegate(ctx, harness.DelegateRequest{Parent: rootID, Child: harness.Child{ID: childID, Key: "run 4, call 7", Label: "notes", Role: "implement", WriteScope: []string{"docs"}}})
	require.NoError(t, err)
}

func write(id, path string) harness.Call {
	return harness.Call{ID: id, Tool: "write_file", Args: harness.JSON(fmt.Sprintf(`{ "path": %q }`, path))}
}

// TestScenario is a whole life of a child, told by one function that does not
// know whether the store is its own.
func TestScenario(t *testing.T) { both(t, life) }

func life(t *testing.T, h harness.Harness) {
	scene(t, h)
	again, err := h.Delegate(ctx, harness.DelegateRequest{Parent: "demo:run/1", Child: harness.Child{ID: childID, Key: "run 4, call 7", Label: "notes", Role: "implement", WriteScope: []string{"docs"}}})
	require.NoError(t, err)
	require.True(t, again.Existing)
	require.Equal(t, childID, again.Session)
	require.Equal(t, &[]string{"docs"}, again.Manifest.WriteScope)
	require.Contains(t, again.RuntimeContext, "rejected")

	run, err := h.Activate(ctx, harness.ActivateRequest{Session: childID, By: rootID})
	require.NoError(t, err)
	require.Equal(t, uint64(1), run.Epoch)
	batch := harness.AppendRequest{Session: childID, Epoch: run.Epoch, Expect: new(run.Head), Events: []harness.Event{
		{ID: "5e551041-0000-4000-8000-0000000000e1", Type: "turn/start", Facts: map[string]any{"turn": 1}},
		{ID: "5e551041-0000-4000-8000-0000000000e2", Type: "user/message", Content: harness.JSON("{ \"text\" : \"hi\",\n\"n\":1.0 }")},
		{ID: "5e551041-0000-4000-8000-0000000000e3", Type: "x-harness/blob", ContentBase64: new("AP8=")},
		{ID: "5e551041-0000-4000-8000-0000000000e4", Type: "x-harness/empty", ContentText: new(""), Ignorable: true},
	}}
	done, err := h.Append(ctx, batch)
	require.NoError(t, err)
	require.False(t, done.Replayed)
	retried, err := h.Append(ctx, batch)
	require.NoError(t, err)
	require.True(t, retried.Replayed)
	require.Equal(t, done.Hash, retried.Hash)

	allowed, err := h.Check(ctx, harness.CheckRequest{Session: childID, Epoch: run.Epoch, Record: true, Call: write("c1", "docs/a.md")})
	require.NoError(t, err)
	require.Equal(t, "allow", allowed.Verdict)
	require.NotNil(t, allowed.Recorded)
	denied, err := h.Check(ctx, harness.CheckRequest{Session: childID, Epoch: run.Epoch, Record: true, Call: write("c2", "src/a.go")})
	require.NoError(t, err)
	require.Equal(t, "deny", denied.Verdict)
	require.Equal(t, "write_scope_violation", denied.Code)

	sent, err := h.Send(ctx, harness.SendRequest{Session: childID, By: rootID, Text: "also the tests"})
	require.NoError(t, err)
	inbox, err := h.Inbox(ctx, harness.SessionRequest{Session: childID})
	require.NoError(t, err)
	require.Equal(t, sent.Message, inbox.Items[0].Message)
	claimed, err := h.Claim(ctx, harness.ClaimRequest{Session: childID, Epoch: run.Epoch})
	require.NoError(t, err)
	require.Equal(t, "also the tests", *claimed.Items[0].ContentText)
	_, err = h.Interrupt(ctx, harness.InterruptRequest{Session: childID, By: harness.Operator})
	require.NoError(t, err)
	_, err = h.Switch(ctx, harness.SwitchRequest{Session: childID, Epoch: run.Epoch, Sandbox: &harness.Sandbox{Mode: "read-only"}})
	require.NoError(t, err)
	_, err = h.Settle(ctx, harness.SettleRequest{Session: childID, Outcome: "completed", Epoch: run.Epoch})
	require.NoError(t, err)

	notices, err := h.Notices(ctx, harness.SessionRequest{Session: rootID})
	require.NoError(t, err)
	require.Len(t, notices.Items, 1)
	require.Equal(t, map[string]uint64{"write_scope_violation": 1}, notices.Items[0].Denials)
	taken, err := h.Consume(ctx, harness.ConsumeRequest{Session: rootID, Child: childID, Through: notices.Items[0].SettledSeq})
	require.NoError(t, err)
	require.Equal(t, notices.Items[0].SettledSeq, taken.SettledSeq)
	looks(t, h, batch, denied)
}

// looks asks everything about the scene, and closes it.
func looks(t *testing.T, h harness.Harness, batch harness.AppendRequest, denied wire.Judgement) {
	resumed, err := h.Resume(ctx, harness.ResumeRequest{Session: childID, By: rootID, Known: []string{"x-harness/blob"}})
	require.NoError(t, err)
	require.Equal(t, "settled", resumed.Status)
	p, err := h.Policy(ctx, harness.PolicyRequest{Session: childID})
	require.NoError(t, err)
	require.Equal(t, resumed.Policy, p)
	require.Equal(t, "never", p.Approvals.Policy)

	page, err := h.Log(ctx, harness.LogRequest{Session: childID, EventFilter: harness.EventFilter{Types: []string{"user/*", "x-harness/*"}}})
	require.NoError(t, err)
	require.Len(t, page.Events, 3)
	require.Equal(t, string(batch.Events[1].Content), string(page.Events[0].Content), "byte for byte")
	require.Equal(t, "AP8=", *page.Events[1].ContentBase64)
	require.Equal(t, "", *page.Events[2].ContentText)
	var seqs []uint64
	for from := uint64(1); from != 0; {
		page, err := h.Log(ctx, harness.LogRequest{Session: childID, From: from, Limit: 3, NoContent: true})
		require.NoError(t, err)
		for _, ev := range page.Events {
			seqs = append(seqs, ev.Seq)
		}
		from = page.Next
	}
	require.Len(t, seqs, int(page.Head))
	require.Equal(t, page.Head, seqs[len(seqs)-1])

	x, err := h.ExplainField(ctx, harness.ExplainFieldRequest{Session: childID, Field: "sandbox.mode"})
	require.NoError(t, err)
	require.Equal(t, "read-only", x.Value)
	all, err := h.ExplainAll(ctx, harness.PolicyRequest{Session: childID})
	require.NoError(t, err)
	require.Greater(t, len(all.Items), 10)
	why, err := h.ExplainCall(ctx, harness.ExplainCallRequest{Session: childID, Call: write("c2", "src/a.go"), At: 4})
	require.NoError(t, err)
	require.Equal(t, "deny", why.Verdict)
	event, err := h.ExplainEvent(ctx, harness.ExplainEventRequest{Session: childID, Seq: denied.Recorded.DecisionSeq})
	require.NoError(t, err)
	require.Equal(t, "c2", event.Decision.Call)
	diff, err := h.Diff(ctx, harness.DiffRequest{Session: childID})
	require.NoError(t, err)
	require.NotEmpty(t, diff.Changes)

	shown, err := h.Show(ctx, harness.SessionRequest{Session: "demo:run/1"})
	require.NoError(t, err)
	require.Equal(t, []string{childID}, shown.Children)
	first, err := h.List(ctx, harness.ListRequest{Limit: 1})
	require.NoError(t, err)
	require.Equal(t, rootID, first.Items[0].Session.Session)
	second, err := h.List(ctx, harness.ListRequest{After: first.Next})
	require.NoError(t, err)
	require.Equal(t, childID, second.Items[0].Session.Session)
	require.Empty(t, second.Next)
	tree, err := h.Tree(ctx, harness.TreeRequest{})
	require.NoError(t, err)
	require.Len(t, tree.Items, 2)
	found, err := h.Search(ctx, harness.SearchRequest{Text: "HI", EventFilter: harness.EventFilter{Types: []string{"user/message"}}})
	require.NoError(t, err)
	require.Equal(t, "hi", *found.Items[0].Match)

	set, err := h.SetRules(ctx, harness.SetRulesRequest{Rules: harness.Rules{DenyTools: []string{"chmod"}}})
	require.NoError(t, err)
	require.True(t, set.Changed)
	rules, err := h.Rules(ctx, harness.NoRequest{})
	require.NoError(t, err)
	require.Equal(t, set.Rules, rules)
	narrowed, err := h.Narrow(ctx, harness.NarrowRequest{Session: rootID, Subtree: true, Sandbox: &harness.Sandbox{Mode: "read-only"}, Ceiling: &harness.Wish{WriteScope: []string{}}, Rules: true, Reason: "incident 12"})
	require.NoError(t, err)
	require.Len(t, narrowed.Items, 2)
	stats, err := h.Stats(ctx, harness.StatsRequest{Deep: true})
	require.NoError(t, err)
	require.Equal(t, uint64(2), stats.Sessions)
	_, err = h.CloseSession(ctx, harness.CloseRequest{Session: childID})
	require.NoError(t, err)
	closed, err := h.Check(ctx, harness.CheckRequest{Session: childID, Record: true, Call: write("c9", "docs/a.md")})
	require.NoError(t, err, "a denial")
	require.Equal(t, "deny", closed.Verdict)
	require.Nil(t, closed.Recorded)
}

// TestErrorsAreTheSame: errors.Is and the facts that a caller decides by.
func TestErrorsAreTheSame(t *testing.T) {
	both(t, func(t *testing.T, h harness.Harness) {
		scene(t, h)
		_, err := h.Show(ctx, harness.SessionRequest{Session: "0a1b2c3d"})
		require.ErrorIs(t, err, eventlog.ErrNotFound)
		_, err = h.Append(ctx, harness.AppendRequest{Session: rootID, Expect: new(uint64(77)), Events: []harness.Event{{Type: "user/message"}}})
		var conflict *eventlog.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, uint64(77), conflict.Expected)
		require.NotZero(t, conflict.Actual)
		_, err = h.Activate(ctx, harness.ActivateRequest{Session: childID, By: harness.Operator})
		require.NoError(t, err)
		_, err = h.Append(ctx, harness.AppendRequest{Session: childID, Epoch: 7, Events: []harness.Event{{Type: "user/message"}}})
		var fenced *eventlog.FencedError
		require.ErrorAs(t, err, &fenced)
		require.Equal(t, [2]uint64{7, 1}, [2]uint64{fenced.Got, fenced.Open})
		event := harness.Event{ID: "5e551041-0000-4000-8000-0000000000e1", Type: "user/message", ContentText: new("a")}
		_, err = h.Append(ctx, harness.AppendRequest{Session: rootID, Events: []harness.Event{event}})
		require.NoError(t, err)
		event.ContentText = new("b")
		_, err = h.Append(ctx, harness.AppendRequest{Session: rootID, Events: []harness.Event{event}})
		var duplicate *eventlog.DuplicateError
		require.ErrorAs(t, err, &duplicate)
		require.Equal(t, "content", duplicate.Field)
		_, err = h.Switch(ctx, harness.SwitchRequest{Session: childID, Epoch: 1, Sandbox: &harness.Sandbox{Mode: "danger-full-access"}})
		require.ErrorIs(t, err, policy.ErrWidening)
		_, err = h.Append(ctx, harness.AppendRequest{Session: rootID, Events: []harness.Event{{Type: "delegation/granted"}}})
		require.ErrorIs(t, err, eventlog.ErrUnauthorized)
		_, err = h.Resume(ctx, harness.ResumeRequest{Session: childID, By: "5e551041-0000-4000-8000-00000000000f"})
		require.ErrorIs(t, err, eventlog.ErrUnauthorized)
		_, err = h.Resume(ctx, harness.ResumeRequest{Session: childID})
		require.ErrorIs(t, err, eventlog.ErrInvalid)
		_, err = h.Delegate(ctx, harness.DelegateRequest{Parent: rootID, Child: harness.Child{Role: "wizard"}})
		require.ErrorIs(t, err, eventlog.ErrInvalid)
		require.ErrorContains(t, err, "/role")
		_, err = h.Check(ctx, harness.CheckRequest{Session: rootID, Call: harness.Call{ID: "c", Tool: "read", Args: harness.JSON(`{"a":1,"a":2}`)}})
		require.ErrorIs(t, err, eventlog.ErrInvalid)
		_, err = h.List(ctx, harness.ListRequest{SessionFilter: harness.SessionFilter{Status: "asleep"}})
		require.ErrorIs(t, err, eventlog.ErrInvalid)
		require.ErrorContains(t, err, "/status")
		_, err = h.Append(ctx, harness.AppendRequest{Session: rootID, Events: slices.Repeat([]harness.Event{{Type: "a/b"}}, eventlog.MaxBatchEvents+1)})
		var large *eventlog.TooLargeError
		require.ErrorAs(t, err, &large)
		require.NoError(t, h.Close())
		_, err = h.Show(ctx, harness.SessionRequest{Session: rootID})
		require.ErrorIs(t, err, eventlog.ErrStoreClosed)
		for _, err = range h.Follow(ctx, harness.FollowRequest{}) {
			break
		}
		require.ErrorIs(t, err, eventlog.ErrStoreClosed)
	})
}

// TestFollow: what is there and what comes, of one session and of the whole
// store, from any cursor on.
func TestFollow(t *testing.T) {
	both(t, func(t *testing.T, h harness.Harness) {
		scene(t, h)
		say := func(session, text string) {
			_, err := h.Append(ctx, harness.AppendRequest{Session: session, Events: []harness.Event{{Type: "user/message", ContentText: &text}, {Type: "x-note/b", Content: harness.JSON(`{ "a": 1 }`)}}})
			require.NoError(t, err)
		}
		say(rootID, "one")
		head, err := h.Head(ctx, harness.HeadRequest{})
		require.NoError(t, err)
		of, err := h.Head(ctx, harness.HeadRequest{Session: childID})
		require.NoError(t, err)

		var all []wire.Followed
		for v, err := range h.Follow(ctx, harness.FollowRequest{}) {
			require.NoError(t, err)
			all = append(all, v)
			if v.Event.ContentText != nil && *v.Event.ContentText == "one" {
				say(childID, "two") // comes although the follow began before
			}
			if v.Event.ContentText != nil && *v.Event.ContentText == "two" {
				break
			}
		}
		require.Equal(t, "session/created", all[0].Event.Type)
		require.Equal(t, rootID, all[0].Session)
		for i := range all { // every cursor goes on behind its event
			for v, err := range h.Follow(ctx, harness.FollowRequest{After: all[i].Cursor}) {
				require.NoError(t, err)
				if i+1 < len(all) {
					require.Equal(t, all[i+1].Event.Hash, v.Event.Hash)
				} else {
					require.Equal(t, "x-note/b", v.Event.Type)
					require.Equal(t, `{ "a": 1 }`, string(v.Event.Content))
				}
				break
			}
		}
		next := func(r harness.FollowRequest) wire.Followed {
			for v, err := range h.Follow(ctx, r) {
				require.NoError(t, err)
				return v
			}
			return wire.Followed{}
		}
		require.Equal(t, "two", *next(harness.FollowRequest{After: head.Cursor}).Event.ContentText)
		require.Equal(t, "two", *next(harness.FollowRequest{Session: childID, After: of.Cursor}).Event.ContentText)
		require.Equal(t, uint64(1), next(harness.FollowRequest{Session: childID}).Event.Seq)
		v := next(harness.FollowRequest{Session: childID, Types: []string{"user/*"}, NoContent: true})
		require.Equal(t, "user/message", v.Event.Type)
		require.Nil(t, v.Event.ContentText)

		for _, bad := range []harness.FollowRequest{{After: "99999.0"}, {Session: childID, After: "99999"}} {
			for _, err := range h.Follow(ctx, bad) {
				require.ErrorIs(t, err, eventlog.ErrNotFound)
			}
		}
		for _, bad := range []harness.FollowRequest{{After: "x"}, {After: "1"}, {Session: childID, After: "1.2"}, {Types: []string{"*x"}}} {
			for _, err := range h.Follow(ctx, bad) {
				require.ErrorIs(t, err, eventlog.ErrInvalid)
			}
		}
		stopped, stop := context.WithCancel(ctx)
		defer stop()
		var last error
		for _, last = range h.Follow(stopped, harness.FollowRequest{Session: childID}) {
			stop()
		}
		require.ErrorIs(t, last, context.Canceled)
	})
}

// TestAFollowThatIsLeftStaysLeft: nothing is yielded behind a break, also where
// the context or the harness ended in the same turn; and nothing at all by a
// harness that was closed before.
func TestAFollowThatIsLeftStaysLeft(t *testing.T) {
	both(t, func(t *testing.T, h harness.Harness) {
		scene(t, h)
		for _, of := range []string{"", childID} {
			stopped, stop := context.WithCancel(ctx)
			defer stop()
			for _, err := range h.Follow(stopped, harness.FollowRequest{Session: of}) {
				require.NoError(t, err)
				stop()
				break
			}
		}
		for _, err := range h.Follow(ctx, harness.FollowRequest{}) {
			require.NoError(t, err)
			require.NoError(t, h.Close())
			break
		}
		for range 50 {
			for _, err := range h.Follow(ctx, harness.FollowRequest{}) {
				require.ErrorIs(t, err, eventlog.ErrStoreClosed)
			}
		}
	})
}

// TestCloseEndsFollows: also one that waits for what is to come, in a store that
// stays open.
func TestCloseEndsFollows(t *testing.T) {
	both(t, func(t *testing.T, h harness.Harness) {
		scene(t, h)
		began, ended := make(chan struct{}, 99), make(chan error, 2)
		for _, of := range []string{"", childID} {
			go func() {
				var last error
				for _, last = range h.Follow(ctx, harness.FollowRequest{Session: of, Types: []string{"session/*"}}) {
					began <- struct{}{}
				}
				ended <- last
			}()
		}
		for range 3 { // which is all that there is
			<-began
		}
		require.NoError(t, h.Close())
		for range 2 {
			select {
			case err := <-ended:
				require.ErrorIs(t, err, eventlog.ErrStoreClosed)
			case <-time.After(time.Minute):
				require.Fail(t, "a follow goes on")
			}
		}
	})
}
