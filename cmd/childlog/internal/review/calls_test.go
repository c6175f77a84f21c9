package review

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/policy/objection"
)

var (
	someSession = uuid.MustParse("11111111-0000-4000-8000-000000000000")
	noon        = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// told is one event in the making, as a harness or childlog tells of it.
type told struct {
	typ   string
	facts map[string]any
}

func called(id string) told {
	return told{eventlog.TypeToolCall, map[string]any{"call": id, "tool": "edit"}}
}

func another(id string) told {
	return told{eventlog.TypeToolCall, map[string]any{"call": id, "tool": "shell"}}
}

func decidedOther(id string) eventlog.Decision {
	d := decided(id, policy.VerdictAllow, policy.CodeAllowed)
	d.Tool = policy.Tool{Given: "shell", Canonical: "shell", Class: policy.ClassShell, Known: true}
	return d
}

func resulted(id, outcome string) told {
	return told{eventlog.TypeToolResult, map[string]any{"call": id, "outcome": outcome}}
}

func asked(id, about string) told {
	return told{eventlog.TypeApprovalAsked, map[string]any{"ask": id, "call": about, "tool": "edit"}}
}

func answered(id string, outcome eventlog.AskOutcome) told {
	return told{eventlog.TypeApprovalDecided, map[string]any{"ask": id, "outcome": string(outcome), "decider": "human"}}
}

var narrowed = told{eventlog.TypePolicyNarrowed, map[string]any{"by": "operator"}}

// read feeds events, each a minute after the one before and with the next seq.
func read(t *testing.T, c *calls, events ...any) {
	t.Helper()
	for i, e := range events {
		ev := &eventlog.Event{Session: someSession, Version: 1, Seq: uint64(i + 1), Time: noon.Add(time.Duration(i) * time.Minute)}
		switch e := e.(type) {
		case told:
			f, err := eventlog.MakeFacts(e.facts)
			require.NoError(t, err)
			ev.Type, ev.Facts = e.typ, f
		case eventlog.Decision:
			f, err := e.Facts()
			require.NoError(t, err)
			ev.Type, ev.Facts = eventlog.TypeToolDecision, f
		}
		c.event(ev)
	}
	c.end()
}

func decided(id string, v policy.Verdict, code policy.Code) eventlog.Decision {
	return eventlog.Decision{Session: someSession, Root: someSession, Call: id, Tool: policy.Tool{Given: "edit", Canonical: "edit", Class: policy.ClassEdit, Known: true},
		Verdict: v, Code: code, Origin: policy.RuleOrigin{Kind: policy.OriginNone}, Decider: eventlog.DeciderRule, Enforcement: eventlog.Enforced, EvaluatedSeq: 1, Engine: 1}
}

func always(time.Time) bool { return true }

// found lists what was found as code:seq-until.
func found(x *exceptions) map[string][][2]uint64 {
	out := map[string][][2]uint64{}
	list, _ := x.list()
	for _, e := range list {
		for _, p := range e.Places {
			out[e.Code] = append(out[e.Code], [2]uint64{p.Seq, p.Until})
		}
	}
	return out
}

func TestCallsAndTheirResults(t *testing.T) {
	deny := decided("a", policy.VerdictDeny, policy.CodeFiles)
	allow := decided("a", policy.VerdictAllow, policy.CodeAllowed)
	needs := decided("a", policy.VerdictNeedsApproval, policy.CodeNeedsApproval)
	hurt := allow
	hurt.Objections = objection.Record{Checked: 1, Degraded: []objection.Degraded{{Rule: "r", Why: objection.WhyPanic}}}
	executedFact := func(v any) told {
		return told{eventlog.TypeToolResult, map[string]any{"call": "a", "outcome": "error", "executed": v}}
	}
	type places = map[string][][2]uint64
	for name, c := range map[string]struct {
		events   []any
		evidence bool
		want     places
		cov      Coverage
	}{
		"allowed":                        {events: []any{called("a"), allow, resulted("a", "ok")}, want: places{}, cov: Coverage{Calls: 1, Decided: 1, Results: 1, Decisions: 1, Allowed: 1}},
		"denied and made":                {events: []any{called("a"), deny, resulted("a", "ok")}, want: places{ExecutedAfterDeny: {{1, 3}}}, cov: Coverage{Calls: 1, Decided: 1, Results: 1, Decisions: 1, Denied: 1}},
		"denied and rejected":            {events: []any{called("a"), deny, resulted("a", "rejected")}, want: places{}, cov: Coverage{Calls: 1, Decided: 1, Results: 1, Decisions: 1, Denied: 1}},
		"denied and failed":              {events: []any{called("a"), deny, resulted("a", "error")}, want: places{ExecutedAfterDeny: {{1, 3}}}, cov: Coverage{Calls: 1, Decided: 1, Results: 1, Decisions: 1, Denied: 1}},
		"denied, and said not to be":     {events: []any{called("a"), deny, executedFact(false)}, want: places{}, cov: Coverage{Calls: 1, Decided: 1, Results: 1, Decisions: 1, Denied: 1}},
		"denied, and said to be":         {events: []any{called("a"), deny, executedFact("yes")}, want: places{ExecutedAfterDeny: {{1, 3}}}, cov: Coverage{Calls: 1, Decided: 1, Results: 1, Decisions: 1, Denied: 1}},
		"told again by the harness":      {events: []any{called("a"), allow, called("a"), resulted("a", "ok")}, want: places{}, cov: Coverage{Calls: 1, Decided: 1, Results: 1, Decisions: 1, Allowed: 1}},
		"told before it was recorded":    {events: []any{called("a"), called("a"), allow, resulted("a", "ok")}, want: places{}, cov: Coverage{Calls: 1, Decided: 1, Results: 1, Decisions: 1, Allowed: 1}},
		"told again after the denial":    {events: []any{called("a"), deny, called("a"), resulted("a", "ok")}, want: places{ExecutedAfterDeny: {{1, 4}}}, cov: Coverage{Calls: 1, Decided: 1, Results: 1, Decisions: 1, Denied: 1}},
		"decided before it was told":     {events: []any{allow, called("a"), resulted("a", "ok")}, want: places{}, cov: Coverage{Calls: 1, Decided: 1, Results: 1, Decisions: 1, Allowed: 1}},
		"told as another tool":           {events: []any{called("a"), allow, another("a"), resulted("a", "ok")}, want: places{ExecutedWithoutDecision: {{3, 4}}}, cov: Coverage{Calls: 2, Decided: 1, Results: 1, Decisions: 1, Allowed: 1}},
		"told as another, and decided":   {events: []any{called("a"), allow, another("a"), decidedOther("a"), resulted("a", "ok")}, want: places{}, cov: Coverage{Calls: 2, Decided: 2, Results: 1, Decisions: 2, Allowed: 2}},
		"the id again after the result":  {events: []any{called("a"), allow, resulted("a", "ok"), called("a"), resulted("a", "ok")}, want: places{ExecutedWithoutDecision: {{4, 5}}}, cov: Coverage{Calls: 2, Decided: 1, Results: 2, Decisions: 1, Allowed: 1}},
		"not decided":                    {events: []any{called("a"), resulted("a", "ok")}, want: places{ExecutedWithoutDecision: {{1, 2}}}, cov: Coverage{Calls: 1, Results: 1}},
		"not decided, not made":          {events: []any{called("a"), resulted("a", "not-started")}, want: places{}, cov: Coverage{Calls: 1, Results: 1}},
		"not decided, nobody knows":      {events: []any{called("a"), resulted("a", "outcome-unknown")}, want: places{ExecutedWithoutDecision: {{1, 2}}}, cov: Coverage{Calls: 1, Results: 1}},
		"not decided, imported":          {events: []any{called("a"), resulted("a", "ok")}, evidence: true, want: places{}, cov: Coverage{Calls: 1, Results: 1}},
		"no call":                        {events: []any{resulted("a", "ok")}, want: places{ExecutedWithoutDecision: {{1, 0}}}},
		"a second result":                {events: []any{called("a"), allow, resulted("a", "ok"), resulted("a", "ok")}, want: places{ExecutedWithoutDecision: {{4, 0}}}, cov: Coverage{Calls: 1, Decided: 1, Results: 1, Decisions: 1, Allowed: 1}},
		"no approval":                    {events: []any{called("a"), needs, resulted("a", "ok")}, want: places{ExecutedAfterDeny: {{1, 3}}}, cov: Coverage{Calls: 1, Decided: 1, Results: 1, Decisions: 1, Needed: 1}},
		"approved":                       {events: []any{called("a"), needs, asked("q", "a"), answered("q", eventlog.AskAllowedOnce), called("a"), allow, resulted("a", "ok")}, want: places{}, cov: Coverage{Calls: 1, Decided: 1, Results: 1, Decisions: 2, Allowed: 1, Needed: 1, Asks: 1}},
		"rejected and made":              {events: []any{asked("q", "a"), answered("q", eventlog.AskRejected), called("a"), resulted("a", "ok")}, evidence: true, want: places{ExecutedAfterDeny: {{3, 4}}}, cov: Coverage{Calls: 1, Results: 1, Asks: 1}},
		"rejected and failed, imported":  {events: []any{asked("q", "a"), answered("q", eventlog.AskRejected), called("a"), resulted("a", "error")}, evidence: true, want: places{}, cov: Coverage{Calls: 1, Results: 1, Asks: 1}},
		"denied, asked anew, allowed":    {events: []any{called("a"), deny, called("a"), allow, resulted("a", "ok")}, want: places{}, cov: Coverage{Calls: 1, Decided: 1, Results: 1, Decisions: 2, Allowed: 1, Denied: 1}},
		"nobody answered":                {events: []any{asked("p", "a"), asked("q", "a"), answered("q", eventlog.AskUnavailable)}, want: places{UnansweredAsk: {{1, 0}, {2, 3}}}, cov: Coverage{Asks: 2}},
		"under way":                      {events: []any{called("a"), allow, narrowed, resulted("a", "ok")}, want: places{InFlight: {{1, 3}}}, cov: Coverage{Calls: 1, Decided: 1, Results: 1, Decisions: 1, Allowed: 1}},
		"denied is not under way":        {events: []any{called("a"), deny, narrowed}, want: places{}, cov: Coverage{Calls: 1, Decided: 1, Decisions: 1, Denied: 1}},
		"closed by an operator":          {events: []any{called("a"), allow, told{eventlog.TypeSessionClosed, map[string]any{"by": "operator"}}}, want: places{InFlight: {{1, 3}}}, cov: Coverage{Calls: 1, Decided: 1, Decisions: 1, Allowed: 1}},
		"closed by settling":             {events: []any{called("a"), allow, told{eventlog.TypeSessionClosed, map[string]any{"by": "settle"}}}, want: places{}, cov: Coverage{Calls: 1, Decided: 1, Decisions: 1, Allowed: 1}},
		"an objector failed":             {events: []any{called("a"), hurt, resulted("a", "ok")}, want: places{DegradedObjector: {{2, 0}}}, cov: Coverage{Calls: 1, Decided: 1, Results: 1, Decisions: 1, Allowed: 1}},
		"a decision without its call":    {events: []any{deny, resulted("a", "ok")}, want: places{ExecutedAfterDeny: {{1, 2}}}, cov: Coverage{Decisions: 1, Denied: 1}},
		"a question about no known call": {events: []any{answered("q", eventlog.AskRejected)}, want: places{}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExceptions(10)
			calls := newCalls(x, c.evidence, 10, always)
			read(t, calls, c.events...)
			require.Equal(t, c.want, found(x))
			require.Equal(t, c.cov, calls.cov)
		})
	}
}

// Denials are counted as a session's row counts them: those of rejected questions
// by who rejected.
func TestDenialsByCode(t *testing.T) {
	c := newCalls(newExceptions(10), false, 2, always)
	deny := decided("a", policy.VerdictDeny, policy.CodeFiles)
	deny.Rule = policy.RuleRolePreset
	read(t, c, called("a"), deny, called("b"), decided("b", policy.VerdictDeny, policy.CodeShell), deny, deny, asked("q", "d"), answered("q", eventlog.AskRejected))
	require.Equal(t, []Denied{
		{Code: "files", Count: 3, Rules: []string{"role_preset"}, Tools: []string{"edit"}, Seqs: []uint64{2, 5}},
		{Code: "approval_human", Count: 1, Rules: []string{}, Tools: []string{"edit"}, Seqs: []uint64{8}},
		{Code: "shell", Count: 1, Rules: []string{}, Tools: []string{"edit"}, Seqs: []uint64{4}},
	}, c.denied())
}

// What lies outside of the period is followed and not counted: a call before it
// whose result lies in it is still known to have been denied.
func TestPeriodOfCalls(t *testing.T) {
	x := newExceptions(10)
	var items []item
	c := newCalls(x, false, 10, func(at time.Time) bool { return !at.Before(noon.Add(2 * time.Minute)) })
	c.tell = func(it item) { items = append(items, it) }
	read(t, c, called("a"), decided("a", policy.VerdictDeny, policy.CodeFiles), resulted("a", "ok"), called("b"))
	require.Equal(t, Coverage{Calls: 1, Results: 1}, c.cov)
	require.Equal(t, map[string][][2]uint64{ExecutedAfterDeny: {{1, 3}}}, found(x))
	require.Len(t, items, 1)
	require.Equal(t, ListCalls, items[0].kind)
	require.EqualValues(t, 4, items[0].seq)
}

// Places are bounded, and the count is not.
func TestPlacesAreBounded(t *testing.T) {
	x := newExceptions(2)
	var events []any
	for range 5 {
		events = append(events, called("a"), resulted("a", "ok"))
	}
	read(t, newCalls(x, false, 2, always), events...)
	list, checks := x.list()
	require.Len(t, list, 1)
	require.EqualValues(t, 5, list[0].Count)
	require.Len(t, list[0].Places, 2)
	require.EqualValues(t, 3, list[0].More)
	require.Equal(t, "5 calls have a result and no decision", list[0].Text)
	require.Len(t, checks, len(Codes()))
}
