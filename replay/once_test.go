package replay_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// of is the use of what was asked for.
func of(r replay.AskRequest) replay.Use {
	return replay.Use{Session: r.Session, Epoch: r.Epoch, Ask: r.Ask, Call: r.Call, Tool: r.Tool, Args: r.Args}
}

// uses records in one commit that a call is allowed, on an allowed-once.
func (f *fixture) uses(u replay.Use) (replay.OnceGrant, error) {
	f.t.Helper()
	var g replay.OnceGrant
	decision := eventlog.NewEvent{Type: "tool/decision", Source: eventlog.SourceStore, Facts: allowed(u.Session, u.Call, u.Ask)}
	_, err := f.Store.Transact(f.ctx, eventlog.EntryRuntime, func(v *eventlog.View) (_ []eventlog.Batch, err error) {
		if g, err = replay.OnceIn(v, u); err != nil {
			return nil, err
		}
		return []eventlog.Batch{{Session: u.Session, Expect: eventlog.Any(), Epoch: u.Epoch, Events: []eventlog.NewEvent{decision}}}, nil
	})
	return g, err
}

// allowed are the facts of a decision that makes use of an ask.
func allowed(session uuid.UUID, call, ask string) eventlog.Facts {
	return must(eventlog.Decision{Session: session, Root: session, Call: call, Ask: ask, Tool: policy.Tool{Given: "bash", Canonical: "bash", Class: policy.ClassShell, Known: true},
		Verdict: policy.VerdictAllow, Code: policy.CodeAllowedOnce, Rule: "approval", Origin: policy.RuleOrigin{Kind: policy.OriginNone},
		Decider: eventlog.DeciderHuman, Engine: 1, Enforcement: eventlog.Enforced}.Facts())
}

// void requires that a use is refused for one reason.
func (f *fixture) void(u replay.Use, reason string, seq uint64) {
	f.t.Helper()
	_, err := replay.Once(f.ctx, f.Store, u)
	require.Equal(f.t, &replay.VoidError{Session: u.Session, Ask: u.Ask, Reason: reason, Seq: seq}, err)
	require.ErrorIs(f.t, err, eventlog.ErrUnauthorized)
}

// TestCase60_AllowedOnceIsBound: an allowed-once covers the very call that was
// asked about, once, and only while its turn and its policy last.
func TestCase60_AllowedOnceIsBound(t *testing.T) {
	allowed := func(t *testing.T) (*fixture, replay.AskRequest) {
		f := newFixture(t)
		r := wants(f.asking(), "a1")
		require.Equal(t, eventlog.AskAllowedOnce, f.ask(r, replay.Human(allows)).Outcome)
		top := policy.Top()
		g, err := replay.Once(f.ctx, f.Store, of(r))
		require.NoError(t, err)
		require.Equal(t, replay.OnceGrant{Ask: "a1", Decider: "human", Origin: policy.Origin{Session: r.Session, Seq: 5}, Sandbox: &top, Policy: 2}, g)
		return f, r
	}
	for name, c := range map[string]struct {
		change func(u *replay.Use)
		reason string
	}{
		"other arguments":           {func(u *replay.Use) { u.Args = []byte(`{"command":"rm -rf /"}`) }, "other_arguments"},
		"no arguments":              {func(u *replay.Use) { u.Args = nil }, "other_arguments"},
		"equal, other bytes":        {func(u *replay.Use) { u.Args = []byte(`{"command": "make install"}`) }, "other_arguments"},
		"one more key":              {func(u *replay.Use) { u.Args = []byte(`{"command":"make install","cwd":"/"}`) }, "other_arguments"},
		"another call":              {func(u *replay.Use) { u.Call = "call-a2" }, "other_call"},
		"another tool":              {func(u *replay.Use) { u.Tool = "exec_shell2" }, "other_tool"},
		"another ask":               {func(u *replay.Use) { u.Ask = "a2" }, "no_grant"},
		"an epoch it was not given": {func(u *replay.Use) { u.Epoch = 1 }, "other_activation"},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := allowed(t)
			u := of(r)
			c.change(&u)
			f.void(u, c.reason, 0)
			_, err := f.uses(u)
			require.ErrorIs(t, err, eventlog.ErrUnauthorized)
			_, err = f.uses(of(r))
			require.NoError(t, err, "a wrong use uses nothing up")
		})
	}
	t.Run("blanks around the arguments are no part of them", func(t *testing.T) {
		f, r := allowed(t)
		u := of(r)
		u.Args = append([]byte("\n"), append(u.Args, ' ')...)
		_, err := f.uses(u)
		require.NoError(t, err)
	})
	for name, c := range map[string]struct {
		happens func(f *fixture, r replay.AskRequest)
		reason  string
	}{
		"a narrowing":          {func(f *fixture, r replay.AskRequest) { f.narrow(r.Session, policy.WorkspaceWrite, false) }, "policy_moved"},
		"a switch":             {func(f *fixture, r replay.AskRequest) { f.switchTo(r.Session, policy.ReadOnly) }, "policy_moved"},
		"a switch to the same": {func(f *fixture, r replay.AskRequest) { f.switchTo(r.Session, policy.WorkspaceWrite) }, "policy_moved"},
		"the turn ends":        {func(f *fixture, r replay.AskRequest) { f.say(r.Session, 0, event(f.t, "turn/end", "turn", 1)) }, "turn_ended"},
		"the next turn":        {func(f *fixture, r replay.AskRequest) { f.say(r.Session, 0, event(f.t, "turn/start", "turn", 1)) }, "turn_ended"},
		"the run settles":      {func(f *fixture, r replay.AskRequest) { f.settle(r.Session, 0, "completed") }, "turn_ended"},
		"an activation":        {func(f *fixture, r replay.AskRequest) { f.activate(r.Session) }, "other_activation"},
		"the call has its result": {func(f *fixture, r replay.AskRequest) {
			f.say(r.Session, 0, event(f.t, "tool/result", "call", r.Call, "outcome", "ok"))
		}, "used"},
		"it is used": {func(f *fixture, r replay.AskRequest) {
			_, err := f.uses(of(r))
			require.NoError(f.t, err)
		}, "used"},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := allowed(t)
			seq := f.row(r.Session).Head + 1
			c.happens(f, r)
			if c.reason == "other_activation" {
				// The turn that a crash left open was closed by it, too.
				require.Equal(t, eventlog.TypeActivationStarted, f.log(r.Session)[seq-1].Type)
			}
			f.void(of(r), c.reason, seq)
			_, err := f.uses(of(r))
			require.ErrorIs(t, err, eventlog.ErrUnauthorized)
			f.reopen(eventlog.Options{})
			f.void(of(r), c.reason, seq)
		})
	}
	t.Run("what does not end it", func(t *testing.T) {
		f, r := allowed(t)
		f.child(r.Session)
		f.say(r.Session, 0, event(t, "step/start", "turn", 1, "step", 1), event(t, "tool/call", "call", r.Call, "tool", r.Tool),
			event(t, "tool/result", "call", "another", "outcome", "ok"), event(t, "user/message"))
		f.ask(wants(r.Session, "a2"), replay.Human(allows))
		require.NoError(t, os.Remove(f.dir+"/index.db"))
		f.reopen(eventlog.Options{})
		_, err := f.uses(of(r))
		require.NoError(t, err)
	})
}

// TestOnceIsBounded: of more than 16 in one turn the oldest are void; those
// that are over make room first.
func TestOnceIsBounded(t *testing.T) {
	f := newFixture(t)
	root := f.asking()
	for i := range 17 {
		f.ask(wants(root, fmt.Sprint("a", i)), replay.Human(allows))
	}
	f.void(of(wants(root, "a0")), "no_grant", 0)
	_, err := f.uses(of(wants(root, "a1")))
	require.NoError(t, err)
	f.ask(wants(root, "a17"), replay.Human(allows))
	f.void(of(wants(root, "a1")), "no_grant", 0) // the used one made room
	_, err = f.uses(of(wants(root, "a2")))
	require.NoError(t, err)
	require.Len(t, f.row(root).Grants, 16)
}

// TestCase62_ArgumentsCantBeGuessed: the fact commits to a four-digit secret.
// Without the salt, which lies in the content and is erased with it, a
// dictionary over everything that could have been hashed finds nothing.
func TestCase62_ArgumentsCantBeGuessed(t *testing.T) {
	f := newFixture(t)
	root := f.asking()
	r := wants(root, "a1")
	r.Args = []byte(`"4711"`)
	got := f.ask(r, replay.Human(allows))
	ev := f.log(root)[got.Seq-1]
	asked, err := eventlog.ParseAsked(&ev)
	require.NoError(t, err)
	for pin := range 10_000 {
		for _, guess := range []string{fmt.Sprintf("%04d", pin), fmt.Sprintf("%q", fmt.Sprintf("%04d", pin))} {
			b := []byte(guess)
			for _, h := range []eventlog.Hash{sha256.Sum256(b), eventlog.Digest(b), eventlog.CommitArgs(eventlog.Salt{}, b), eventlog.CommitArgs(eventlog.Salt(ev.ID), b)} {
				require.NotEqual(t, asked.Args, h)
			}
		}
	}
	r.Ask = "a2"
	got = f.ask(r, replay.Human(allows))
	again := f.log(root)[got.Seq-1]
	second, err := eventlog.ParseAsked(&again)
	require.NoError(t, err)
	require.NotEqual(t, asked.Args, second.Args, "equal arguments don't show as equal")
}

// TestOnceModel: whatever happens in a root, an allowed-once covers its call
// exactly as long as a model says that knows three rules: used up by its use,
// void when the turn ends, void when a policy event comes.
func TestOnceModel(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		sub, err := os.MkdirTemp(dir, "")
		require.NoError(t, err)
		f := fixtureIn(t, sub)
		root := f.rootWith(policy.WorkspaceWrite)
		inTurn, turns := false, 0
		var asks []replay.AskRequest
		live := map[string]bool{}
		endAll := func() { clear(live) }
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				if len(live) == 16 {
					return
				}
				r := wants(root, fmt.Sprint("a", len(asks)))
				r.Args = []byte(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "args"))
				answer := rapid.SampledFrom([]replay.Answer{replay.AllowOnce, replay.AllowOnce, replay.Reject, replay.NoAnswer}).Draw(t, "answer")
				calls := 0
				got := f.ask(r, replay.Human(says(answer, &calls)))
				require.Equal(t, inTurn && answer == replay.AllowOnce, got.Allowed())
				asks = append(asks, r)
				if got.Allowed() {
					live[r.Ask] = true
				}
			},
			"use": func(t *rapid.T) {
				if len(asks) == 0 {
					return
				}
				u := of(rapid.SampledFrom(asks).Draw(t, "which"))
				exact := rapid.Bool().Draw(t, "exact")
				if !exact {
					u.Args = []byte("3")
				}
				_, err := f.uses(u)
				if live[u.Ask] && exact {
					require.NoError(t, err)
					delete(live, u.Ask)
					return
				}
				var void *replay.VoidError
				require.True(t, errors.As(err, &void), "%v", err)
			},
			"turn": func(*rapid.T) {
				if turns++; inTurn {
					f.say(root, 0, event(t, "turn/end", "turn", turns))
				} else {
					f.say(root, 0, event(t, "turn/start", "turn", turns))
				}
				inTurn = !inTurn
				endAll()
			},
			"switch":  func(*rapid.T) { f.switchTo(root, policy.WorkspaceWrite); endAll() },
			"message": func(*rapid.T) { f.say(root, 0, event(t, "user/message")) },
			"reopen":  func(*rapid.T) { f.reopen(eventlog.Options{}) },
			"": func(t *rapid.T) {
				for _, r := range asks {
					_, err := replay.Once(f.ctx, f.Store, of(r))
					require.Equal(t, live[r.Ask], err == nil, "%s: %v", r.Ask, err)
				}
			},
		})
	})
}

// TestOnceAgainstTheLog: the row says where a grant stands, and the log what it
// is. A row that lies makes no grant of what was rejected, and moves none to
// another policy, call or turn.
func TestOnceAgainstTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		lie    func(r *eventlog.Row)
		reason string
	}{
		"a rejection that is said to be a grant": {func(r *eventlog.Row) {
			r.Grants = []eventlog.OnceGrant{{Ask: "a1", Call: "call-a1", Asked: 4, Decided: 5}}
		}, "unconfirmed"},
		"the grant of another ask": {func(r *eventlog.Row) { r.Grants[0].Ask, r.Grants[0].Call = "a1", "call-a1" }, "unconfirmed"},
		"another event as the decision": {func(r *eventlog.Row) {
			r.Grants = []eventlog.OnceGrant{{Ask: "a1", Call: "call-a1", Asked: 4, Decided: 3}}
		}, "unconfirmed"},
		"a grant of an earlier turn": {func(r *eventlog.Row) {
			r.Grants = []eventlog.OnceGrant{{Ask: "a2", Call: "call-a2", Asked: 6, Decided: 7}}
		}, "turn_ended"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.damaged = true // of the index, which is what the test is about
			root := f.asking()
			calls := 0
			f.ask(wants(root, "a1"), replay.Human(says(replay.Reject, &calls)))
			f.ask(wants(root, "a2"), replay.Human(allows))
			ask := "a1"
			if c.reason == "turn_ended" {
				ask = "a2"
				f.say(root, 0, event(t, "turn/end", "turn", 1), event(t, "turn/start", "turn", 1))
			}
			f.fillIndex(root)
			f.lie(root, c.lie)
			f.open(eventlog.Options{})
			_, err := f.uses(of(wants(root, ask)))
			var void *replay.VoidError
			require.ErrorAs(t, err, &void)
			require.Equal(t, c.reason, void.Reason)
		})
	}
	t.Run("a narrowing that the row forgot", func(t *testing.T) {
		f := newFixture(t)
		f.damaged = true
		root := f.asking()
		f.ask(wants(root, "a1"), replay.Human(allows))
		f.narrow(root, policy.ReadOnly, false)
		f.fillIndex(root)
		f.lie(root, func(r *eventlog.Row) { r.Grants[0].Ended = 0 })
		f.open(eventlog.Options{})
		_, err := f.uses(of(wants(root, "a1")))
		var void *replay.VoidError
		require.ErrorAs(t, err, &void)
		require.Equal(t, &replay.VoidError{Session: root, Ask: "a1", Reason: "policy_moved", Seq: 6}, void)
	})
}

// TestDecidedWithoutAsked: past the call that checks it, the writer refuses a
// decision of what was not asked, a second one, and a use of what was not
// allowed.
func TestDecidedWithoutAsked(t *testing.T) {
	f := newFixture(t)
	root := f.asking()
	child := f.child(root).ID
	try := func(id uuid.UUID, src eventlog.Source, typ string, pairs ...any) error {
		ev := event(t, typ, pairs...)
		ev.Source = src
		_, err := f.Store.Transact(f.ctx, eventlog.EntryRuntime, func(*eventlog.View) ([]eventlog.Batch, error) {
			return []eventlog.Batch{{Session: id, Expect: eventlog.Any(), Events: []eventlog.NewEvent{ev}}}, nil
		})
		return err
	}
	forged := []any{"ask", "a1", "outcome", "allowed-once", "decider", "human"}
	require.ErrorIs(t, try(root, 0, "approval/decided", forged...), eventlog.ErrConflict, "not asked")
	f.ask(wants(root, "a1"))
	require.ErrorIs(t, try(root, 0, "approval/decided", forged...), eventlog.ErrConflict, "decided")
	require.ErrorIs(t, try(root, 0, "approval/asked", "ask", "a1", "tool", "edit"), eventlog.ErrConflict, "asked again")
	require.NoError(t, try(child, 0, "approval/asked", "ask", "a1", "tool", "edit", "call", "c1"), "an id is of its session")
	require.ErrorIs(t, try(child, 0, "approval/decided", forged...), eventlog.ErrUnauthorized, "in a child")
	_, err := f.Store.Transact(f.ctx, eventlog.EntryRuntime, func(*eventlog.View) ([]eventlog.Batch, error) {
		return []eventlog.Batch{{Session: root, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: "tool/decision", Source: eventlog.SourceStore, Facts: allowed(root, "call-a1", "a1")}}}}, nil
	})
	require.ErrorIs(t, err, eventlog.ErrUnauthorized)
	f.reopen(eventlog.Options{})
	require.ErrorIs(t, try(root, 0, "approval/asked", "ask", "a1", "tool", "edit"), eventlog.ErrConflict, "in another process too")
}
