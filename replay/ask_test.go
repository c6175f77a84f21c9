package replay_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

// says is an answerer that always gives one answer and counts how often it was
// asked.
func says(a replay.Answer, calls *int) replay.AnswerFunc {
	return func(context.Context, replay.Question) (replay.Answer, error) {
		*calls++
		return a, nil
	}
}

func allows(context.Context, replay.Question) (replay.Answer, error) { return replay.AllowOnce, nil }

// asking is a root, workspace-write and approvals ask, in an open turn.
func (f *fixture) asking() uuid.UUID {
	f.t.Helper()
	root := f.rootWith(policy.WorkspaceWrite)
	f.say(root, 0, event(f.t, "turn/start", "turn", 1))
	return root
}

// wants asks for one call without a sandbox.
func wants(session uuid.UUID, ask string) replay.AskRequest {
	return replay.AskRequest{Session: session, Ask: ask, Call: "call-" + ask, Tool: "exec_shell", Args: []byte(`{"command":"make install"}`),
		Escalation: &policy.Escalation{Sandbox: policy.Top(), Justification: "installs to /usr"}, Question: "May I install it?"}
}

func (f *fixture) ask(r replay.AskRequest, answerers ...replay.Answerer) replay.Ruling {
	f.t.Helper()
	ruling, err := replay.Ask(f.ctx, f.Store, r, answerers...)
	require.NoError(f.t, err)
	return ruling
}

// decisions reads what was decided in a log, by any of the deciders named.
func (f *fixture) decisions(session uuid.UUID, by ...eventlog.Decider) (out []eventlog.Decided) {
	f.t.Helper()
	for _, ev := range f.log(session) {
		if ev.Type != eventlog.TypeApprovalDecided {
			continue
		}
		d, err := eventlog.ParseDecided(&ev)
		require.NoError(f.t, err)
		for _, decider := range by {
			if d.Decider == decider {
				out = append(out, d)
			}
		}
		if len(by) == 0 {
			out = append(out, d)
		}
	}
	return out
}

// TestCase2_AChildIsNeverAsked: a child asks for an escalation while an
// answerer that would allow it is registered. It is never called; question and
// decision share one id; the outcome is rejected, decided by the pin.
func TestCase2_AChildIsNeverAsked(t *testing.T) {
	for _, mode := range []policy.Mode{policy.ReadOnly, policy.WorkspaceWrite, policy.DangerFullAccess} {
		t.Run(string(mode), func(t *testing.T) {
			f := newFixture(t)
			root := f.rootWith(mode)
			child := f.child(root)
			a := f.activate(child.ID)
			f.say(child.ID, a.Epoch, event(t, "turn/start", "turn", 1))
			head := f.row(child.ID).Head
			calls := 0
			r := wants(child.ID, "a1")
			r.Epoch = a.Epoch
			got := f.ask(r, replay.Human(says(replay.AllowOnce, &calls)), replay.Host(says(replay.AllowOnce, &calls)))
			pin := policy.RuleOrigin{Kind: "pin", At: policy.Origin{Session: child.ID, Seq: child.Policy.BornSeq}}
			require.Equal(t, replay.Ruling{Decided: eventlog.Decided{Ask: "a1", Outcome: "rejected", Decider: "pin", Rule: "approval_pin", Origin: pin}, Seq: head + 1, DecidedSeq: head + 2}, got)
			require.False(t, got.Allowed())
			require.Zero(t, calls)

			events := f.log(child.ID)[head:]
			require.Len(t, events, 2)
			require.Equal(t, []string{"approval/asked", "approval/decided"}, []string{events[0].Type, events[1].Type})
			require.Equal(t, events[0].Position, events[1].Position, "one commit")
			require.Equal(t, "a1", events[0].Facts.Str("ask"))
			require.Equal(t, "a1", events[1].Facts.Str("ask"))
			require.Equal(t, eventlog.SourceRuntime, events[0].Source)
			require.Equal(t, eventlog.SourceStore, events[1].Source, "nobody answered")
			require.Empty(t, f.row(child.ID).OpenAsks)
			require.Equal(t, []eventlog.Count{{Code: "approval_pin", N: 1}}, f.row(child.ID).Denials)
			_, err := replay.Once(f.ctx, f.Store, replay.Use{Session: child.ID, Epoch: a.Epoch, Ask: "a1", Call: r.Call, Tool: r.Tool, Args: r.Args})
			require.ErrorIs(t, err, eventlog.ErrUnauthorized)
		})
	}
}

// TestCase5_AGrandchildInTheBackground: P, C and G all run in the background
// and G asks. The denial is in G's log within the same call; its turn goes on;
// neither P nor C hears of it, and nothing waits.
func TestCase5_AGrandchildInTheBackground(t *testing.T) {
	f := newFixture(t)
	p := f.rootWith(policy.WorkspaceWrite)
	c := f.child(p).ID
	g := f.child(c).ID
	epochs := map[uuid.UUID]uint64{}
	for _, id := range []uuid.UUID{p, c, g} {
		epochs[id] = f.activate(id).Epoch
		f.say(id, epochs[id], event(t, "turn/start", "turn", 1))
	}
	before := []eventlog.Row{f.row(p), f.row(c)}
	r := wants(g, "a1")
	r.Epoch = epochs[g]
	waits := func(ctx context.Context, _ replay.Question) (replay.Answer, error) {
		<-ctx.Done()
		return replay.NoAnswer, nil
	}
	got := f.ask(r, replay.Human(waits))
	require.Equal(t, eventlog.AskRejected, got.Outcome)
	require.Equal(t, []eventlog.Decided{got.Decided}, f.decisions(g))
	f.say(g, epochs[g], event(t, "tool/call", "call", "c2", "tool", "read"), event(t, "turn/end", "turn", 1))
	require.Equal(t, before, []eventlog.Row{f.row(p), f.row(c)})
}

// TestCase32_FilterByDecider: decisions by pin, rule and human; each filter
// finds one.
func TestCase32_FilterByDecider(t *testing.T) {
	f := newFixture(t)
	root := f.asking()
	child := f.child(root).ID
	f.ask(wants(child, "by-pin"))
	f.ask(wants(root, "by-human"), replay.Human(allows))
	f.say(root, 0, event(t, "turn/end", "turn", 1))
	f.ask(wants(root, "by-rule"), replay.Human(allows))
	for decider, want := range map[eventlog.Decider]eventlog.Decided{
		"pin":   {Ask: "by-pin", Outcome: "rejected", Decider: "pin", Rule: "approval_pin", Origin: policy.RuleOrigin{Kind: "pin", At: policy.Origin{Session: child, Seq: 4}}},
		"rule":  {Ask: "by-rule", Outcome: "rejected", Decider: "rule", Rule: "no_open_turn"},
		"human": {Ask: "by-human", Outcome: "allowed-once", Decider: "human"},
	} {
		require.Equal(t, []eventlog.Decided{want}, append(f.decisions(root, decider), f.decisions(child, decider)...), decider)
	}
}

// TestWhatNeedsNoAnswerer spells out, in the order of the contract, what is
// decided in one commit with the question and who is named for it.
func TestWhatNeedsNoAnswerer(t *testing.T) {
	ended, end := context.WithCancel(context.Background())
	end()
	for _, c := range []struct {
		name    string
		root    materialize.RootRequest
		prepare func(f *fixture, id uuid.UUID)
		ctx     context.Context
		nobody  bool
		outcome eventlog.AskOutcome
		decider eventlog.Decider
		rule    string
		origin  policy.OriginKind
		seq     uint64
	}{
		{name: "cancelled before never", root: materialize.RootRequest{Approvals: policy.Never}, ctx: ended, outcome: "cancelled", decider: "host", rule: "withdrawn"},
		{name: "never by a switch", root: materialize.RootRequest{Approvals: policy.Never}, outcome: "rejected", decider: "rule", rule: "approval_never", origin: "session", seq: 2},
		{name: "never by default", root: materialize.RootRequest{Ask: policy.Never}, outcome: "rejected", decider: "rule", rule: "approval_never", origin: "default", seq: 1},
		{name: "never before the turn", root: materialize.RootRequest{Ask: policy.Never}, prepare: func(f *fixture, id uuid.UUID) { f.say(id, 0, event(f.t, "turn/end", "turn", 1)) },
			outcome: "rejected", decider: "rule", rule: "approval_never", origin: "default", seq: 1},
		{name: "no open turn", prepare: func(f *fixture, id uuid.UUID) { f.say(id, 0, event(f.t, "turn/end", "turn", 1)) }, outcome: "rejected", decider: "rule", rule: "no_open_turn"},
		{name: "beyond a narrowing", prepare: func(f *fixture, id uuid.UUID) { f.narrow(id, policy.WorkspaceWrite, false) },
			outcome: "rejected", decider: "rule", rule: "beyond_bound", origin: "narrowing", seq: 3},
		{name: "nobody to ask", nobody: true, outcome: "unavailable", decider: "rule", rule: "no_answerer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			root := f.root(c.root)
			f.say(root, 0, event(t, "turn/start", "turn", 1))
			if c.prepare != nil {
				c.prepare(f, root)
			}
			if c.ctx == nil {
				c.ctx = f.ctx
			}
			calls := 0
			answerers := []replay.Answerer{replay.Human(says(replay.AllowOnce, &calls))}
			if c.nobody {
				answerers = nil
			}
			got, err := replay.Ask(c.ctx, f.Store, wants(root, "a1"), answerers...)
			require.NoError(t, err)
			require.Zero(t, calls)
			want := eventlog.Decided{Ask: "a1", Outcome: c.outcome, Decider: c.decider, Rule: c.rule}
			if c.seq != 0 {
				want.Origin = policy.RuleOrigin{Kind: c.origin, At: policy.Origin{Session: root, Seq: c.seq}}
			}
			require.Equal(t, want, got.Decided)
			require.Equal(t, c.ctx.Err(), got.Failure)
			require.Equal(t, []eventlog.Decided{want}, f.decisions(root), "what is returned is what is recorded")
			log := f.log(root)
			require.Equal(t, log[got.Seq-1].Position, log[got.DecidedSeq-1].Position, "one commit")
			require.Empty(t, f.row(root).OpenAsks)
			require.Empty(t, f.row(root).Grants)
		})
	}
}

// TestAskRefusals: requests that are no question. Nothing is recorded and
// nobody is asked.
func TestAskRefusals(t *testing.T) {
	f := newFixture(t)
	root := f.asking()
	closed := f.asking()
	_, err := replay.Close(f.ctx, f.Store, closed)
	require.NoError(t, err)
	held := f.asking()
	a := f.activate(held)
	f.say(held, a.Epoch, event(t, "turn/start", "turn", 2))
	imported := f.evidence(eventlog.KindRoot, uuid.Nil)
	f.ask(wants(root, "used"))
	same := *wants(root, "x").Escalation
	same.Sandbox = f.policy(root).Sandbox.Value
	for name, c := range map[string]struct {
		change func(*replay.AskRequest)
		want   error
	}{
		"no call":               {func(r *replay.AskRequest) { r.Call = "" }, eventlog.ErrInvalid},
		"free text as the call": {func(r *replay.AskRequest) { r.Call = "delete the file" }, eventlog.ErrInvalid},
		"free text as the ask":  {func(r *replay.AskRequest) { r.Ask = "may I" }, eventlog.ErrInvalid},
		"a tool look-alike":     {func(r *replay.AskRequest) { r.Tool = "exеc_shell" }, eventlog.ErrInvalid},
		"arguments not JSON":    {func(r *replay.AskRequest) { r.Args = []byte(`{"a":1`) }, eventlog.ErrInvalid},
		"arguments twice":       {func(r *replay.AskRequest) { r.Args = []byte(`{"a":1,"a":2}`) }, eventlog.ErrInvalid},
		"text behind arguments": {func(r *replay.AskRequest) { r.Args = []byte(`1},{"a":2`) }, eventlog.ErrInvalid},
		"a question no UTF-8":   {func(r *replay.AskRequest) { r.Question = "\xff" }, eventlog.ErrInvalid},
		"no justification":      {func(r *replay.AskRequest) { r.Escalation.Justification = "" }, eventlog.ErrInvalid},
		"no escalation":         {func(r *replay.AskRequest) { r.Escalation = &same }, eventlog.ErrInvalid},
		"a narrower one":        {func(r *replay.AskRequest) { r.Escalation.Sandbox = readOnly() }, eventlog.ErrInvalid},
		"an incomparable one": {func(r *replay.AskRequest) {
			r.Escalation.Sandbox = policy.Sandbox{Mode: policy.ReadOnly, Network: true}
		}, eventlog.ErrInvalid},
		"an unknown mode":   {func(r *replay.AskRequest) { r.Escalation.Sandbox.Mode = "external-sandbox" }, eventlog.ErrInvalid},
		"a used id":         {func(r *replay.AskRequest) { r.Ask = "used" }, eventlog.ErrConflict},
		"nowhere":           {func(r *replay.AskRequest) { r.Session = uuid.MustParse("99999999-9999-4999-8999-999999999999") }, eventlog.ErrNotFound},
		"closed":            {func(r *replay.AskRequest) { r.Session = closed }, eventlog.ErrSessionClosed},
		"evidence":          {func(r *replay.AskRequest) { r.Session = imported }, eventlog.ErrEvidence},
		"without the epoch": {func(r *replay.AskRequest) { r.Session = held }, eventlog.ErrFenced},
		"another epoch":     {func(r *replay.AskRequest) { r.Session, r.Epoch = held, a.Epoch+1 }, eventlog.ErrFenced},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			r := wants(root, "fresh")
			c.change(&r)
			heads := []uint64{f.row(root).Head, f.row(closed).Head, f.row(held).Head, f.row(imported).Head}
			got, err := replay.Ask(f.ctx, f.Store, r, replay.Human(says(replay.AllowOnce, &calls)))
			require.ErrorIs(t, err, c.want)
			require.Zero(t, got)
			require.Zero(t, calls)
			require.Equal(t, heads, []uint64{f.row(root).Head, f.row(closed).Head, f.row(held).Head, f.row(imported).Head})
		})
	}
	for _, a := range []replay.Answerer{{}, replay.Human(nil), replay.Host(nil)} {
		_, err := replay.Ask(f.ctx, f.Store, wants(root, "fresh"), replay.Human(allows), a)
		require.ErrorIs(t, err, eventlog.ErrInvalid)
	}
}

// TestWhatAQuestionRecords: ids, codes and the commitment are facts; whatever
// a person reads, and the arguments, are content.
func TestWhatAQuestionRecords(t *testing.T) {
	f := newFixture(t)
	root := f.asking()
	args := `{ "path": "a\u00e9/", "n": 1.50 }`
	var shown replay.Question
	got := f.ask(replay.AskRequest{Session: root, Call: "c1", Tool: "exec_shell", Args: []byte("\n " + args + " "), Question: "A <b>\u202equestion",
		Escalation: &policy.Escalation{Sandbox: policy.Top(), Justification: "because it must"}},
		replay.Host(func(_ context.Context, q replay.Question) (replay.Answer, error) {
			shown = q
			q.Args[0], q.Escalation.Justification = 'X', "changed by the answerer"
			return replay.NoAnswer, nil
		}),
		replay.Human(func(_ context.Context, q replay.Question) (replay.Answer, error) {
			require.Equal(t, args, string(q.Args))
			require.Equal(t, "because it must", q.Escalation.Justification)
			return replay.AllowOnce, nil
		}))
	require.Equal(t, eventlog.DeciderHuman, got.Decider, "the one that answered")
	require.NoError(t, uuid.Validate(got.Ask), "an id by the store")
	require.Equal(t, f.policy(root).Sandbox.Value, shown.Sandbox)
	require.Equal(t, "A <b>\u202equestion", shown.Text)

	ev := f.log(root)[got.Seq-1]
	asked, err := eventlog.ParseAsked(&ev)
	require.NoError(t, err)
	require.NotZero(t, asked.Args)
	top := policy.Top()
	require.Equal(t, eventlog.Asked{Ask: got.Ask, Tool: "exec_shell", Call: "c1", Escalation: &top, Args: asked.Args, Evaluated: 2, InTurn: true, Turn: 1}, asked)
	facts, err := ev.Facts.JSON()
	require.NoError(t, err)
	for _, text := range []string{"because", "question", "path"} {
		require.NotContains(t, string(facts), text)
		require.Contains(t, string(ev.Content), text)
	}
	require.Equal(t, eventlog.MediaJSON, ev.Media)
	require.Contains(t, string(ev.Content), `,"args":`+args+`}`, "byte for byte")
}
