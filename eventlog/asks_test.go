package eventlog

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/policy"
)

func askOf(ask, call string) NewEvent {
	return NewEvent{Type: TypeApprovalAsked, Facts: Asked{Ask: ask, Tool: "edit", Call: call}.Facts()}
}

func decisionOf(ask string, o AskOutcome, d Decider) NewEvent {
	ev := NewEvent{Type: TypeApprovalDecided, Facts: Decided{Ask: ask, Outcome: o, Decider: d}.Facts()}
	if d == DeciderPin || d == DeciderRule {
		ev.Source = SourceStore
	}
	return ev
}

func allowOf(ask, call string) NewEvent { return verdictOf(ask, call, policy.VerdictAllow) }

func verdictOf(ask, call string, v policy.Verdict) NewEvent {
	d := Decision{Session: sid(1), Root: sid(1), Call: call, Ask: ask, Tool: policy.Tool{Given: "edit", Canonical: "edit", Class: policy.ClassEdit}, Verdict: v,
		Code: "a_code", Rule: "a_rule", Origin: policy.RuleOrigin{Kind: policy.OriginNone}, Decider: DeciderRule, Enforcement: Enforced}
	return NewEvent{Type: TypeToolDecision, Source: SourceStore, Facts: must(d.Facts())}
}

// TestOneDecisionForEachAsk: the writer holds a log to it whatever the batch
// looks like, and a batch is judged as its events would be one by one.
func TestOneDecisionForEachAsk(t *testing.T) {
	by := func(ev NewEvent, src Source) NewEvent { ev.Source = src; return ev }
	allowed := []NewEvent{askOf("a", "c"), decisionOf("a", AskAllowedOnce, DeciderHuman)}
	more := func(events ...NewEvent) []NewEvent { return append(allowed[:2:2], events...) }
	turn := NewEvent{Type: TypeTurnEnd, Source: SourceStore, Facts: mustFacts(map[string]any{"turn": 1})}
	for name, c := range map[string]struct {
		events []NewEvent
		want   error
	}{
		"asked":                           {[]NewEvent{askOf("a", "c")}, nil},
		"asked and decided":               {allowed, nil},
		"two at once":                     {[]NewEvent{askOf("a", ""), askOf("b", ""), decisionOf("b", AskRejected, DeciderRule), decisionOf("a", AskUnavailable, DeciderRule)}, nil},
		"decided only":                    {allowed[1:], ErrConflict},
		"decided before it is asked":      {[]NewEvent{allowed[1], allowed[0]}, ErrConflict},
		"decided twice":                   {more(decisionOf("a", AskRejected, DeciderHuman)), ErrConflict},
		"asked twice":                     {[]NewEvent{askOf("a", "c"), askOf("a", "d")}, ErrConflict},
		"asked again when it is decided":  {more(askOf("a", "c")), ErrConflict},
		"an outcome of another system":    {[]NewEvent{askOf("a", "c"), decisionOf("a", "allowed-always", DeciderHuman)}, ErrInvalid},
		"a decider of another system":     {[]NewEvent{askOf("a", "c"), decisionOf("a", AskRejected, "unrecorded")}, ErrInvalid},
		"a rule that allows":              {[]NewEvent{askOf("a", "c"), decisionOf("a", AskAllowedOnce, DeciderRule)}, ErrUnauthorized},
		"a pin, said by the harness":      {[]NewEvent{askOf("a", "c"), by(decisionOf("a", AskRejected, DeciderPin), SourceRuntime)}, ErrUnauthorized},
		"a person, said by the store":     {[]NewEvent{askOf("a", "c"), by(decisionOf("a", AskAllowedOnce, DeciderHuman), SourceStore)}, ErrUnauthorized},
		"asked by an operator":            {[]NewEvent{by(askOf("a", "c"), SourceOperator)}, ErrUnauthorized},
		"an origin that is none":          {[]NewEvent{askOf("a", "c"), {Type: TypeApprovalDecided, Facts: mustFacts(map[string]any{"ask": "a", "outcome": "rejected", "decider": "human", "origin": map[string]any{}})}}, ErrInvalid},
		"an escalation that is none":      {[]NewEvent{{Type: TypeApprovalAsked, Facts: mustFacts(map[string]any{"ask": "a", "tool": "edit", "escalation": map[string]any{}})}}, ErrInvalid},
		"used":                            {more(allowOf("a", "c")), nil},
		"used twice":                      {more(allowOf("a", "c"), allowOf("a", "c")), ErrUnauthorized},
		"used by another call":            {more(allowOf("a", "d")), ErrUnauthorized},
		"used when its turn is over":      {more(turn, allowOf("a", "c")), ErrUnauthorized},
		"used when it was rejected":       {[]NewEvent{askOf("a", "c"), decisionOf("a", AskRejected, DeciderHuman), allowOf("a", "c")}, ErrUnauthorized},
		"used before it is decided":       {[]NewEvent{askOf("a", "c"), allowOf("a", "c")}, ErrUnauthorized},
		"an allow that rests on no ask":   {[]NewEvent{allowOf("", "c")}, nil},
		"a denial that names a spent ask": {more(turn, verdictOf("a", "c", policy.VerdictDeny)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, together := range []bool{true, false} {
				ts := newStore(t)
				id := ts.root(sid(1))
				batches := [][]NewEvent{c.events}
				if !together {
					batches = nil
					for _, ev := range c.events {
						batches = append(batches, []NewEvent{ev})
					}
				}
				var err error
				for _, events := range batches {
					if _, err = ts.transact(EntryRuntime, Batch{Session: id, Expect: Any(), Events: events}); err != nil {
						break
					}
				}
				if c.want == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, c.want)
				}
				row, err := ts.Row(id)
				require.NoError(t, err)
				if together && c.want != nil {
					require.Equal(t, uint64(1), row.Head, "all or nothing")
				}
			}
		})
	}
}

// TestAskIDsOfALog: an id is used once in a session, however long ago, also
// when only the index remembers it; another session has its own; what is
// imported is taken as it comes.
func TestAskIDsOfALog(t *testing.T) {
	ts := newStore(t)
	one, two := ts.root(sid(1)), ts.root(sid(2))
	put := func(batches ...Batch) error { _, err := ts.transact(EntryRuntime, batches...); return err }
	require.NoError(t, put(Batch{Session: one, Expect: Any(), Events: []NewEvent{askOf("a", ""), decisionOf("a", AskRejected, DeciderHuman)}}))
	ts.say(one, numbers(300)...)
	for range 2 {
		require.ErrorIs(t, put(Batch{Session: one, Expect: Any(), Events: []NewEvent{askOf("a", "")}}), ErrConflict)
		ts.flushIndex()
		ts.reopen()
	}
	ts.dropIndex()
	ts.open()
	require.ErrorIs(t, put(Batch{Session: one, Expect: Any(), Events: []NewEvent{askOf("a", "")}}), ErrConflict)
	require.NoError(t, put(Batch{Session: two, Expect: Any(), Events: []NewEvent{askOf("a", "")}}, Batch{Session: one, Expect: Any(), Events: []NewEvent{askOf("b", "")}}))

	created := Created{Kind: KindChild, Parent: one, Root: one, Depth: 1, MaxDepth: 3, Mode: ModeOneShot, Evidence: true, Defaults: readOnlyDefaults()}
	foreign := NewEvent{Type: TypeApprovalDecided, Facts: mustFacts(map[string]any{"ask": "a", "outcome": "allowed-always", "decider": "unrecorded"})}
	asked := askOf("a", "")
	_, err := ts.transact(EntryImport, Batch{Session: sid(3), Events: []NewEvent{{Type: TypeSessionCreated, Facts: created.Facts()}, foreign, asked, asked, foreign, foreign}})
	require.NoError(t, err, "evidence")
}

// TestGrantWindow: a row keeps 16 allowed-onces. Those that are over make room
// first, then the oldest.
func TestGrantWindow(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	put := func(events ...NewEvent) {
		_, err := ts.transact(EntryRuntime, Batch{Session: id, Expect: Any(), Events: events})
		require.NoError(t, err)
	}
	for i := range 16 {
		put(askOf(fmt.Sprint("a", i), fmt.Sprint("c", i)), decisionOf(fmt.Sprint("a", i), AskAllowedOnce, DeciderHost))
	}
	put(allowOf("a7", "c7"))
	kept := func() (asks []string) {
		row, err := ts.Row(id)
		require.NoError(t, err)
		for _, g := range row.Grants {
			asks = append(asks, g.Ask)
		}
		return asks
	}
	require.Len(t, kept(), 16)
	put(askOf("b", "c"), decisionOf("b", AskAllowedOnce, DeciderHost))
	require.Len(t, kept(), 16)
	require.NotContains(t, kept(), "a7")
	put(askOf("d", "c"), decisionOf("d", AskAllowedOnce, DeciderHost))
	require.Equal(t, "a1", kept()[0])
	require.Equal(t, "d", kept()[15])

	before, err := ts.Row(id)
	require.NoError(t, err)
	held := append([]OnceGrant(nil), before.Grants...)
	seq := ts.narrow(id)
	require.Equal(t, held, before.Grants, "a copy of a row stays what it was")
	row, err := ts.Row(id)
	require.NoError(t, err)
	for _, g := range row.Grants {
		require.Equal(t, seq, g.Ended)
	}
}

// TestApprovalFacts: what is written is read back; what an older log lacks
// reads as what grants nothing.
func TestApprovalFacts(t *testing.T) {
	event := func(typ string, f Facts) *Event {
		return &Event{Session: sid(1), Seq: 9, Type: typ, Version: 1, Facts: f}
	}
	top := policy.Top()
	full := Asked{Ask: "a", Tool: "edit", Call: "c", Escalation: &top, Args: CommitArgs(Salt{1}, []byte("{}")), Evaluated: 2, InTurn: true, Turn: 0, Epoch: 3}
	got, err := ParseAsked(event(TypeApprovalAsked, full.Facts()))
	require.NoError(t, err)
	require.Equal(t, full, got)
	got, err = ParseAsked(event(TypeApprovalAsked, mustFacts(map[string]any{"ask": "a", "tool": "edit"})))
	require.NoError(t, err)
	require.Equal(t, Asked{Ask: "a", Tool: "edit"}, got)
	_, err = ParseAsked(event(TypeApprovalAsked, mustFacts(map[string]any{"ask": "a", "tool": "edit", "evaluated": "2"})))
	require.ErrorIs(t, err, ErrCorrupt)

	decided := Decided{Ask: "a", Outcome: AskRejected, Decider: DeciderPin, Rule: "approval_pin", Origin: policy.RuleOrigin{Kind: policy.OriginPin, At: policy.Origin{Session: sid(1), Seq: 4}}}
	back, err := ParseDecided(event(TypeApprovalDecided, decided.Facts()))
	require.NoError(t, err)
	require.Equal(t, decided, back)
	_, err = ParseDecided(event(TypeApprovalDecided, mustFacts(map[string]any{"ask": "a", "outcome": "rejected"})))
	require.ErrorIs(t, err, ErrCorrupt)

	require.NotEqual(t, CommitArgs(Salt{1}, []byte("1")), CommitArgs(Salt{2}, []byte("1")))
	require.NotEqual(t, CommitArgs(Salt{}, nil), CommitArgs(Salt{}, []byte{0}))
}
