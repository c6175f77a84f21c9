package otel

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/replay"
)

// agent is the span of the session itself.
func (t *tracer) agent(ctx context.Context) (span, error) {
	r := t.row
	root := r.Root
	if root == uuid.Nil {
		root = r.Session
	}
	out := span{TraceID: traceID(root), SpanID: spanID(r.Session, uuid.Nil), Name: "invoke_agent", Kind: kindInternal, Events: t.events, DroppedEvents: t.dropped}
	if r.Parent != uuid.Nil {
		out.ParentSpanID = spanID(r.Parent, uuid.Nil)
	}
	a := t.attributes()
	a.text("gen_ai.operation.name", "invoke_agent")
	a.text("gen_ai.agent.id", r.Session.String())
	a.text("gen_ai.conversation.id", r.Session.String())
	if r.Label != "" {
		a.text("gen_ai.agent.name", r.Label)
		out.Name += " " + t.clean(r.Label)
	}
	if u := r.Usage; u.Of > 0 {
		a.number("gen_ai.usage.input_tokens", u.Input)
		a.number("gen_ai.usage.output_tokens", u.Output)
		a.number("childlog.usage.cache_read", u.CacheRead)
		a.number("childlog.usage.cache_write", u.CacheWrite)
		a.number("childlog.usage.cost_micros", u.CostMicros)
		a.number("childlog.usage.records", u.Of)
	}
	a.text("childlog.kind", r.Kind)
	a.text("childlog.mode", r.Mode)
	a.text("childlog.status", r.Status(t.s.Boot()))
	a.text("childlog.outcome", r.Outcome)
	a.flag("childlog.evidence", r.Evidence)
	a.text("childlog.root", root.String())
	if r.Parent != uuid.Nil {
		a.text("childlog.parent", r.Parent.String())
	}
	a.number("childlog.depth", uint64(r.Depth))
	a.number("childlog.seq", r.Head)
	a.text("childlog.hash", wire.Hex(r.Hash))
	denied := uint64(0)
	for _, d := range r.Denials {
		denied += d.N
	}
	a.number("childlog.denied", denied)
	if r.Provider != "" && !r.InProcess {
		out.Kind = kindClient // of an agent that runs elsewhere
	}
	if t.gaps > 0 {
		a.number("childlog.gaps", t.gaps)
	}
	e, err := replay.Policy(ctx, t.s, r.Session, 0)
	switch {
	case ctx.Err() != nil:
		return span{}, ctx.Err()
	case err != nil:
		a.text("error.type", "policy_unreadable")
		out.Status = &status{Code: statusError, Message: t.clean(err.Error())}
	default:
		policyAttributes(&a, &e)
	}
	if out.period(time.Unix(0, r.FirstTime), time.Unix(0, r.LastTime)) {
		a.flag("childlog.time.adjusted", true)
	}
	out.Attributes = a.list
	return out, nil
}

// policyAttributes are the effective policy, and the receipt that it rests on.
func policyAttributes(a *attributes, e *replay.Effective) {
	sandbox := wire.SandboxOf(e.Sandbox.Value.Canonical())
	a.text("childlog.sandbox.mode", sandbox.Mode)
	a.flag("childlog.sandbox.network", sandbox.Network)
	if sandbox.WritableRoots != nil {
		a.texts("childlog.sandbox.writable_roots", *sandbox.WritableRoots)
	}
	a.text("childlog.approvals", string(e.Approvals))
	if e.ApprovalRaw != e.Approvals {
		a.text("childlog.approvals.recorded", string(e.ApprovalRaw))
	}
	a.flag("childlog.enforced", e.Enforced())
	a.flag("childlog.claimed", e.Claimed())
	a.number("childlog.policy_seq", e.Seqs()[len(e.Seqs())-1])
	a.text("childlog.principal.kind", e.Principal.Kind)
	a.text("childlog.principal.ref", e.Principal.Ref)
	a.text("childlog.role", string(e.Choices.Role))
	a.text("gen_ai.request.model", e.Choices.Model)
	a.text("gen_ai.provider.name", e.Choices.Provider)
	if !e.Evidence {
		half := wire.HalfOf(e.Authority.Own)
		a.text("childlog.grant.files", half.Grant.Files)
		a.text("childlog.grant.shell", half.Grant.Shell)
		a.flag("childlog.grant.network", half.Grant.Network)
		if half.Grant.WriteScope != nil {
			a.texts("childlog.grant.write_scope", *half.Grant.WriteScope)
		}
		var denied []string
		for _, d := range half.DeniedTools {
			denied = append(denied, d.Pattern)
		}
		a.texts("childlog.denied_tools", denied)
		if half.Deadline != nil {
			a.text("childlog.deadline", *half.Deadline)
		}
	}
	if g := e.Granted; g != nil {
		a.text("childlog.receipt.digest", wire.Hex(e.Receipt))
		a.number("childlog.receipt.seq", e.ReceiptSeq)
		a.number("childlog.receipt.parent_seq", g.ParentSeq)
		a.text("childlog.receipt.tool_call", g.ToolCall)
		var cuts []string
		for _, c := range g.Cuts {
			cuts = append(cuts, c.Field+": "+string(c.Rule))
		}
		a.texts("childlog.receipt.cuts", cuts)
	}
}

// notable are the types that become events of a session's span, with the facts
// that are shown of each: codes, ids and numbers.
var notable = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		eventlog.TypeSessionCreated: nil, eventlog.TypeDelegationGranted: nil, eventlog.TypePolicyProfile: nil,
		eventlog.TypeSandboxMode: {"mode"}, eventlog.TypeApprovalPolicy: {"policy"}, eventlog.TypePolicyNarrowed: {"by"},
		eventlog.TypeDelegationStarted: {"child", "tool_call"}, eventlog.TypeApprovalAsked: {"ask", "call", "tool"},
		eventlog.TypeApprovalDecided: {"ask", "outcome", "decider"}, eventlog.TypeActivationStarted: {"epoch"},
		eventlog.TypeActivationEnded: {"epoch", "reason"}, eventlog.TypeControlInterrupt: {"by"}, eventlog.TypeSessionSettled: {"outcome"},
		eventlog.TypeSessionClosed: {"by"}, eventlog.TypeHistoryCompacted: {"from", "to"},
	}
})

// notes turns an event into one of the span, if it is notable or of a closed
// family that this version gives no meaning to.
func (t *tracer) notes(ev *eventlog.Event) {
	facts, known := notable()[ev.Type]
	if !known && (!eventlog.IsClosed(ev.Type) || eventlog.Family(ev.Type) == "inbox" || ev.Type == eventlog.TypeSessionTitled) {
		return
	}
	a := t.attributes()
	a.number("childlog.seq", ev.Seq)
	a.text("childlog.source", ev.Source.String())
	for _, name := range facts {
		key := "childlog." + name
		if n := ev.Facts.Uint(name); n > 0 {
			a.number(key, n)
		} else if id := ev.Facts.UUID(name); id != uuid.Nil {
			a.text(key, id.String())
		} else {
			a.text(key, ev.Facts.Str(name))
		}
	}
	t.note(spanEvent{Time: nanos(ev.Time), Name: ev.Type, Attributes: a.list})
}
