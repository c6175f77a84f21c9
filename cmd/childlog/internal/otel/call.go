package otel

import (
	"time"

	"github.com/google/uuid"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
)

// call is a tool call whose span is not written yet.
type call struct {
	id, tool string
	event    uuid.UUID // that began it
	start    time.Time
	end      time.Time
	a        attributes
	began    bool // there is a tool/call
	verdict  policy.Verdict
	code     string
	outcome  string
	done     bool
}

// failed reports whether a harness says by an outcome that a call went wrong.
func failed(outcome string) bool {
	switch outcome {
	case "error", "failed", "failure", "outcome-unknown", "cancelled", "canceled", "aborted", "interrupted", "timeout":
		return true
	}
	return false
}

// event takes up one event of the log. It is only lent.
func (t *tracer) event(ev *eventlog.Event) error {
	if ev.Inherited != nil {
		return nil
	}
	switch ev.Type {
	case eventlog.TypeToolCall:
		return t.called(ev)
	case eventlog.TypeToolDecision:
		return t.decided(ev)
	case eventlog.TypeToolResult:
		return t.result(ev)
	}
	t.notes(ev)
	return nil
}

// open finds the call that an event belongs to, or begins one. A second
// tool/call or decision of an id that waits already goes with the first: a
// harness may say again what the decision recorded.
func (t *tracer) open(ev *eventlog.Event, id, tool string) (*call, error) {
	if c := t.calls[id]; c != nil {
		return c, nil
	}
	c := &call{id: id, tool: tool, event: ev.ID, start: ev.Time, end: ev.Time, a: t.attributes()}
	c.a.text("gen_ai.operation.name", "execute_tool")
	c.a.text("gen_ai.tool.name", tool)
	c.a.text("gen_ai.tool.call.id", id)
	c.a.text("gen_ai.agent.id", t.row.Session.String())
	c.a.number("childlog.seq", ev.Seq)
	t.calls[id], t.order = c, append(t.order, c)
	if len(t.order) <= mostOpen {
		return c, nil
	}
	return c, t.finish(t.order[0])
}

func (t *tracer) called(ev *eventlog.Event) error {
	c, err := t.open(ev, ev.Facts.Str("call"), ev.Facts.Str("tool"))
	if err != nil || c.began {
		return err
	}
	c.began = true
	t.content(&c.a, "gen_ai.tool.call.arguments", ev)
	return nil
}

func (t *tracer) decided(ev *eventlog.Event) error {
	d, err := eventlog.ParseDecision(ev)
	if err != nil { // the log is readable, and this record is not
		a := t.attributes()
		a.number("childlog.seq", ev.Seq)
		a.text("childlog.reason", err.Error())
		t.note(spanEvent{Time: nanos(ev.Time), Name: "childlog.unreadable_decision", Attributes: a.list})
		return nil
	}
	c, err := t.open(ev, d.Call, d.Tool.Given)
	if err != nil || c.verdict != "" {
		return err
	}
	c.verdict, c.code, c.end = d.Verdict, string(d.Code), ev.Time
	a := &c.a
	a.number("childlog.decision.seq", ev.Seq)
	a.text("childlog.decision.verdict", string(d.Verdict))
	a.text("childlog.decision.code", string(d.Code))
	a.text("childlog.decision.rule", string(d.Rule))
	a.text("childlog.decision.origin.kind", string(d.Origin.Kind))
	if d.Origin.At.Session != uuid.Nil {
		a.text("childlog.decision.origin.session", d.Origin.At.Session.String())
		a.number("childlog.decision.origin.seq", d.Origin.At.Seq)
	}
	if len(d.Also) > 0 {
		var codes []string
		for _, also := range d.Also {
			codes = append(codes, string(also.Code))
		}
		a.texts("childlog.decision.also_denied_by", codes)
	}
	a.text("childlog.decision.classified.by", d.Classified.By)
	a.text("childlog.decision.classified.need", string(d.Classified.Need))
	a.text("childlog.decision.classified.why", d.Classified.Why)
	a.text("childlog.decision.decider", string(d.Decider))
	a.text("childlog.decision.ref", d.Ref)
	a.text("childlog.decision.ask", d.Ask)
	a.text("childlog.decision.enforcement", d.Enforcement)
	a.number("childlog.decision.evaluated_seq", d.EvaluatedSeq)
	a.text("childlog.decision.policy", wire.Hex(d.Policy))
	a.text("childlog.decision.args", wire.Hex(d.ArgsAfter))
	if !d.Receipt.IsZero() {
		a.text("childlog.receipt.digest", wire.Hex(d.Receipt))
	}
	a.text("childlog.tool.canonical", d.Tool.Canonical)
	a.text("childlog.tool.class", string(d.Tool.Class))
	a.number("childlog.decision.objectors", uint64(d.Objections.Checked))
	if n := len(d.Objections.Degraded); n > 0 {
		a.number("childlog.decision.objectors_degraded", uint64(n))
	}
	if n := len(d.Objections.Amendments); n > 0 {
		a.number("childlog.decision.amendments", uint64(n))
	}
	return nil
}

func (t *tracer) result(ev *eventlog.Event) error {
	c, err := t.open(ev, ev.Facts.Str("call"), "")
	if err != nil {
		return err
	}
	c.outcome, c.end, c.done = ev.Facts.Str("outcome"), ev.Time, true
	c.a.number("childlog.result.seq", ev.Seq)
	c.a.text("childlog.result.outcome", c.outcome)
	t.content(&c.a, "gen_ai.tool.call.result", ev)
	return t.finish(c)
}

// finish writes the span of a call.
func (t *tracer) finish(c *call) error {
	delete(t.calls, c.id)
	for i, other := range t.order {
		if other == c {
			t.order = append(t.order[:i], t.order[i+1:]...)
			break
		}
	}
	root := t.row.Root
	if root == uuid.Nil {
		root = t.row.Session
	}
	s := span{TraceID: traceID(root), SpanID: spanID(t.row.Session, c.event), ParentSpanID: spanID(t.row.Session, uuid.Nil), Name: "execute_tool", Kind: kindInternal}
	if c.tool != "" {
		s.Name += " " + t.clean(c.tool)
	}
	switch {
	case c.verdict == policy.VerdictDeny:
		s.Status = &status{Code: statusError, Message: "denied: " + c.code}
		c.a.text("error.type", c.code)
	case c.verdict == policy.VerdictNeedsApproval && !c.done:
		s.Status = &status{Code: statusError, Message: "needs an approval: " + c.code}
		c.a.text("error.type", c.code)
	case failed(c.outcome):
		s.Status = &status{Code: statusError, Message: t.clean(c.outcome)}
		c.a.text("error.type", c.outcome)
	}
	if c.verdict == "" {
		c.a.flag("childlog.undecided", true)
	}
	if !c.done {
		c.a.flag("childlog.no_result", true)
	}
	if s.period(c.start, c.end) {
		c.a.flag("childlog.time.adjusted", true)
	}
	s.Attributes = c.a.list
	return t.add(s)
}
