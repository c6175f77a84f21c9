package review

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"childlog/eventlog"
	"childlog/policy"
)

// calls follows each tool call of a session from the call to its result. What it
// holds grows with the calls that have no result, not with the log.
type calls struct {
	x        *exceptions
	cov      Coverage
	evidence bool
	within   func(time.Time) bool // events outside of the period are followed and not counted
	open     map[string]*call
	asks     map[string]*ask
	passed   map[string]bool   // calls that a harness let pass by its own question
	rejected map[string]uint64 // calls whose question was rejected, with the seq of that
	denials  map[string]*Denied
	most     int // seqs kept of a code
	advisory uint64
	holes    bool       // something before can't be read
	tell     func(item) // told of what is counted; may be nil
}

// call is a call without a result.
type call struct {
	seq     uint64
	time    time.Time
	tool    string
	verdict string // of its last decision; "": none
	code    string
	decided uint64 // seq of that decision
	holes   bool   // something behind it can't be read; a decision may be there

	canonical string // the tool's name as that decision has it
}

type ask struct {
	seq        uint64
	time       time.Time
	call, tool string
}

// item is one thing that a report may list.
type item struct {
	kind          string // one of the List constants of report.go
	seq           uint64
	time          time.Time
	call, tool    string
	verdict, code string
	rule, decider string
}

func newCalls(x *exceptions, evidence bool, most int, within func(time.Time) bool) *calls {
	return &calls{x: x, evidence: evidence, within: within, most: most, open: map[string]*call{}, asks: map[string]*ask{}, passed: map[string]bool{}, rejected: map[string]uint64{}, denials: map[string]*Denied{}}
}

func (c *calls) event(ev *eventlog.Event) {
	switch ev.Type {
	case eventlog.TypeToolCall:
		c.called(ev)
	case eventlog.TypeToolDecision:
		c.decision(ev)
	case eventlog.TypeToolResult:
		c.result(ev)
	case eventlog.TypeApprovalAsked:
		c.asked(ev)
	case eventlog.TypeApprovalDecided:
		c.answered(ev)
	case eventlog.TypePolicyNarrowed:
		c.revoked(ev, "a narrowing")
	case eventlog.TypeSessionClosed:
		if ev.Facts.Str("by") == "operator" {
			c.revoked(ev, "the session being closed")
		}
	}
}

// gap notes that events are missing here. What may lie in them is not held against
// a call: neither is a result without a call, nor one without a decision.
func (c *calls) gap() {
	c.holes = true
	for _, k := range c.open {
		k.holes = true
	}
}

func (c *calls) count(ev *eventlog.Event, it item) bool {
	if !c.within(ev.Time) {
		return false
	}
	if c.tell != nil {
		it.seq, it.time = ev.Seq, ev.Time
		c.tell(it)
	}
	return true
}

// called begins a call. A harness may tell of one that its decision recorded
// already, or that was asked about: one without a result is the same call, if it
// is of the same tool. Under another tool's name it is one that nobody decided.
func (c *calls) called(ev *eventlog.Event) {
	id, tool := ev.Facts.Str("call"), ev.Facts.Str("tool")
	known := c.open[id]
	if known == nil || tool != known.tool && tool != known.canonical {
		known = &call{}
		c.open[id] = known
	}
	if known.seq != 0 {
		return
	}
	known.seq, known.time, known.tool = ev.Seq, ev.Time, tool
	if c.count(ev, item{kind: ListCalls, call: id, tool: tool}) {
		c.cov.Calls++
		if known.verdict != "" { // the decision came before the call
			c.cov.Decided++
		}
	}
}

func (c *calls) decision(ev *eventlog.Event) {
	id, verdict, code := ev.Facts.Str("call"), ev.Facts.Str("verdict"), ev.Facts.Str("code")
	tool, rule := ev.Facts.Str("tool"), ev.Facts.Str("rule")
	d, err := eventlog.ParseDecision(ev)
	known := c.open[id]
	if known == nil {
		known = &call{tool: tool}
		c.open[id] = known
	}
	first := known.verdict == ""
	known.verdict, known.code, known.decided, known.canonical = verdict, code, ev.Seq, ev.Facts.Str("canonical")
	if verdict == string(policy.VerdictAllow) {
		delete(c.rejected, id)
	}
	it := item{kind: ListDecisions, call: id, tool: tool, verdict: verdict, code: code, rule: rule, decider: string(d.Decider)}
	if !c.count(ev, it) {
		return
	}
	c.cov.Decisions++
	if first && known.seq != 0 {
		c.cov.Decided++
	}
	switch verdict {
	case string(policy.VerdictAllow):
		c.cov.Allowed++
	case string(policy.VerdictNeedsApproval):
		c.cov.Needed++
	default:
		c.cov.Denied++
		c.deny(ev, code, rule, tool)
		it.kind = ListDenials
		c.count(ev, it)
	}
	if err != nil {
		c.x.skip("a decision can't be read: "+err.Error(), DegradedObjector)
		return
	}
	if d.Enforcement != eventlog.Enforced {
		c.advisory++
	}
	c.classified(&d)
	for _, o := range d.Objections.Degraded {
		detail := fmt.Sprintf("objector %s: %s", o.Rule, o.Why)
		if d.Objections.CarriedOn {
			detail += "; the call was decided without it"
		}
		c.found(DegradedObjector, ev, id, tool, 0, detail)
	}
}

// classified counts a decision by the classifier whose verdict it was made with.
func (c *calls) classified(d *eventlog.Decision) {
	if d.Classified.By == "" {
		return
	}
	all := &c.cov.Classified
	i := slices.IndexFunc(*all, func(o Classified) bool { return o.By == d.Classified.By })
	if i < 0 {
		if i = len(*all); i == maxNames {
			return
		}
		*all = append(*all, Classified{By: d.Classified.By})
	}
	switch d.Verdict {
	case policy.VerdictAllow:
		(*all)[i].Allowed++
	case policy.VerdictDeny:
		(*all)[i].Denied++
	}
}

// deny counts a denial by its code.
func (c *calls) deny(ev *eventlog.Event, code, rule, tool string) {
	d := c.denials[code]
	if d == nil {
		d = &Denied{Code: code, Rules: []string{}, Tools: []string{}, Seqs: []uint64{}}
		c.denials[code] = d
	}
	d.Count++
	keep := func(list *[]string, s string) {
		if s != "" && len(*list) < maxNames && !slices.Contains(*list, s) {
			*list = append(*list, s)
		}
	}
	keep(&d.Rules, rule)
	keep(&d.Tools, tool)
	if len(d.Seqs) < c.most {
		d.Seqs = append(d.Seqs, ev.Seq)
	}
}

// maxNames bounds the rules and tools that are listed of one code.
const maxNames = 12

func (c *calls) result(ev *eventlog.Event) {
	id, outcome := ev.Facts.Str("call"), ev.Facts.Str("outcome")
	ran := executed(ev.Facts)
	known := c.open[id]
	delete(c.open, id)
	rejected := c.rejected[id]
	delete(c.rejected, id)
	passed := c.passed[id]
	delete(c.passed, id)
	if known == nil {
		if ran != ranNo && !c.evidence && !c.holes {
			c.found(ExecutedWithoutDecision, ev, id, "", 0, "a result without a call; "+ran.words(outcome))
		}
		return
	}
	if known.seq != 0 && c.within(ev.Time) {
		c.cov.Results++
	}
	switch {
	case ran == ranNo:
	case known.verdict == string(policy.VerdictDeny):
		c.executed(ExecutedAfterDeny, known, id, ev, fmt.Sprintf("denied at seq %d (%s); %s", known.decided, known.code, ran.words(outcome)))
	case known.verdict == string(policy.VerdictNeedsApproval) && passed: // counted, as the harness's word
	case known.verdict == string(policy.VerdictNeedsApproval):
		c.executed(ExecutedAfterDeny, known, id, ev, fmt.Sprintf("it needed an approval (seq %d), and no decision rests on one; %s", known.decided, ran.words(outcome)))
	case rejected != 0 && (known.verdict == "" && !c.evidence || ran == ranYes):
		c.executed(ExecutedAfterDeny, known, id, ev, fmt.Sprintf("its question was rejected at seq %d; %s", rejected, ran.words(outcome)))
	case known.verdict == "" && !c.evidence && !known.holes:
		c.executed(ExecutedWithoutDecision, known, id, ev, ran.words(outcome))
	}
}

// executed notes an exception that stands at a call and at its result.
func (c *calls) executed(code string, known *call, id string, ev *eventlog.Event, detail string) {
	seq := cmp.Or(known.seq, known.decided, ev.Seq)
	if !c.within(ev.Time) {
		return
	}
	p := Place{Seq: seq, Time: timeText(cmp.Or(known.time, ev.Time)), Until: ev.Seq, Call: optional(id), Tool: optional(known.tool), Detail: detail}
	c.x.add(code, p)
}

func (c *calls) found(code string, ev *eventlog.Event, id, tool string, until uint64, detail string) {
	if !c.within(ev.Time) {
		return
	}
	p := placeOf(ev, detail)
	p.Call, p.Tool, p.Until = optional(id), optional(tool), until
	c.x.add(code, p)
}

func (c *calls) asked(ev *eventlog.Event) {
	id := ev.Facts.Str("ask")
	if c.within(ev.Time) {
		c.cov.Asks++
	}
	c.asks[id] = &ask{seq: ev.Seq, time: ev.Time, call: ev.Facts.Str("call"), tool: ev.Facts.Str("tool")}
}

func (c *calls) answered(ev *eventlog.Event) {
	id, outcome := ev.Facts.Str("ask"), eventlog.AskOutcome(ev.Facts.Str("outcome"))
	q := c.asks[id]
	delete(c.asks, id)
	if q == nil {
		q = &ask{seq: ev.Seq, time: ev.Time}
	}
	rule := ev.Facts.Str("rule")
	switch outcome {
	case eventlog.AskAllowedOnce:
		delete(c.rejected, q.call)
	case eventlog.AskAllowedElsewhere:
		c.passed[q.call] = true
		if c.within(ev.Time) {
			c.cov.Elsewhere++
		}
	case eventlog.AskRejected:
		if q.call != "" {
			c.rejected[q.call] = ev.Seq
		}
		if c.within(ev.Time) {
			code := "approval_" + ev.Facts.Str("decider")
			c.deny(ev, code, rule, q.tool)
			c.count(ev, item{kind: ListDenials, call: q.call, tool: q.tool, verdict: string(policy.VerdictDeny), code: code, rule: rule, decider: ev.Facts.Str("decider")})
		}
	case eventlog.AskUnavailable:
		if c.within(q.time) {
			detail := "nobody answered"
			if rule != "" {
				detail += " (" + rule + ")"
			}
			c.x.add(UnansweredAsk, Place{Seq: q.seq, Time: timeText(q.time), Until: ev.Seq, Call: optional(q.call), Tool: optional(q.tool), Detail: detail})
		}
	}
}

// revoked notes the calls that were under way when rights were taken away. What
// was denied, or waits for an approval, is not under way.
func (c *calls) revoked(ev *eventlog.Event, by string) {
	if !c.within(ev.Time) {
		return
	}
	var under []Place
	for id, k := range c.open {
		if k.seq == 0 || k.verdict == string(policy.VerdictDeny) || k.verdict == string(policy.VerdictNeedsApproval) {
			continue
		}
		under = append(under, Place{Seq: k.seq, Time: timeText(k.time), Until: ev.Seq, Call: optional(id), Tool: optional(k.tool),
			Detail: fmt.Sprintf("called, and without a result at %s (seq %d)", by, ev.Seq)})
	}
	slices.SortFunc(under, func(a, b Place) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, p := range under {
		c.x.add(InFlight, p)
	}
}

// end notes what is still open at the head.
func (c *calls) end() {
	var open []Place
	for _, q := range c.asks {
		if c.within(q.time) {
			open = append(open, Place{Seq: q.seq, Time: timeText(q.time), Call: optional(q.call), Tool: optional(q.tool), Detail: "no decision is recorded"})
		}
	}
	slices.SortFunc(open, func(a, b Place) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, p := range open {
		c.x.add(UnansweredAsk, p)
	}
	slices.SortStableFunc(c.x.places[UnansweredAsk], func(a, b Place) int { return cmp.Compare(a.Seq, b.Seq) })
}

// denied lists the denials by code.
func (c *calls) denied() []Denied {
	out := []Denied{}
	for _, d := range c.denials {
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b Denied) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Code, b.Code)) })
	return out
}

// ran says whether a call was executed, as far as its result tells.
type ran uint8

const (
	ranYes ran = iota
	ranMaybe
	ranNo
)

// Outcomes that say that a call was not made, and that leave it open: a failure
// may have come before the tool began or while it was at work.
var (
	notMade = []string{"not-started", "not_started", "not-executed", "not_executed", "rejected", "denied", "deny", "refused", "blocked", "skipped", "unavailable"}
	unclear = []string{"outcome-unknown", "unknown", "unrecorded", "error", "failed", "failure", "cancelled", "canceled", "aborted", "interrupted"}
)

// executed reads the outcome of a result. A harness that knows says it in a fact
// of its own, executed: true, false, yes, no or unknown.
func executed(f eventlog.Facts) ran {
	if bytes.Contains(f, []byte("executed")) { // few harnesses say it, and decoding every result takes long
		m, err := f.Map()
		if err != nil {
			return ranMaybe
		}
		switch m["executed"] {
		case true, "yes":
			return ranYes
		case false, "no":
			return ranNo
		case "unknown":
			return ranMaybe
		}
	}
	switch outcome := f.Str("outcome"); {
	case slices.Contains(notMade, outcome):
		return ranNo
	case slices.Contains(unclear, outcome), outcome == "":
		return ranMaybe
	}
	return ranYes
}

// words says what is known of an execution.
func (r ran) words(outcome string) string {
	if r == ranMaybe {
		return fmt.Sprintf("outcome %s, which does not tell that it was not made", outcome)
	}
	return "outcome " + outcome
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
