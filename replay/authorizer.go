package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/policy/objection"
)

// CallRequest is one call to be decided.
type CallRequest struct {
	Call     policy.Call        // read from the final arguments, see [policy.NewCall]
	Args     []byte             // the final arguments, exact JSON; what a record commits to
	Outcome  *objection.Outcome // of the sweep that came before; nil: no objector was asked
	Before   []byte             // the arguments before the sweep, exact JSON; nil: the same
	Epoch    uint64             // of the harness's activation; 0: none
	Ask      string             // an allowed-once to make use of; "": none
	Advisory bool               // the harness records and does not obey
	Ref      string             // an opaque reference of whoever decided, a code; "": none

	// Found: the verdict in Call was found by this side, from the call itself. Then
	// it is no part of what the caller says, and a retry with another one, by a newer
	// classifier or under a newer policy, is the same call.
	Found bool
}

// Judgement is a decision and what it was made on.
type Judgement struct {
	policy.Decision
	Session      uuid.UUID
	EvaluatedSeq uint64         // of the last policy-bearing event that was in force
	Subject      policy.Subject // for [policy.Decision.Change]
	Moment       policy.Moment
	Grant        *OnceGrant // the allowed-once that was relied on
	Failure      error      // why the policy could not be read, if so

	CallSeq, DecisionSeq uint64 // of what was recorded, 0 if nothing was
	Existing             bool   // it was recorded before: this is the answer to a retry
}

// Decider says who decided: the pin of a child, whoever gave the allowed-once
// that was relied on, else a rule.
func (j *Judgement) Decider() eventlog.Decider {
	switch {
	case j.Rule == policy.RuleApprovalPin:
		return eventlog.DeciderPin
	case j.Grant != nil:
		return j.Grant.Decider
	}
	return eventlog.DeciderRule
}

// Authorizer decides the calls of one session. It compiles the policy once and
// again only after the session, or for a root the store's rules, changed. It
// may be used by any number of goroutines and needs no closing.
type Authorizer struct {
	s       *eventlog.Store
	session uuid.UUID
	last    atomic.Pointer[compiled] // no lock: a commit may need it too, and compiling twice does no harm
}

// compiled is a policy ready for decisions, and the state it was read from.
type compiled struct {
	policyHead, rulesHead uint64
	e                     Effective
	subject               policy.Subject
	digest                eventlog.Hash
	engine                *policy.Compiled
	failure               error
}

// NewAuthorizer prepares decisions for a session. It reads nothing yet.
func NewAuthorizer(s *eventlog.Store, session uuid.UUID) *Authorizer {
	return &Authorizer{s: s, session: session}
}

// Decide answers a call and records nothing. A policy that can't be read is no
// error but a denial, with Failure saying why. Errors: ErrNotFound; those of
// [Once] other than a *VoidError where an ask is given; a canceled context.
func (a *Authorizer) Decide(ctx context.Context, r CallRequest) (Judgement, error) {
	row, err := a.s.Row(a.session)
	if err != nil {
		return Judgement{}, err
	}
	rules, err := a.s.Row(eventlog.StoreSession)
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return Judgement{}, err
	}
	c, err := a.compiled(row.LastPolicy, rules.LastPolicy, func() (Effective, policy.OperatorRules, error) {
		e, err := Policy(ctx, a.s, a.session, 0)
		if err != nil || e.keepsRules() {
			return e, policy.OperatorRules{}, err
		}
		rules, err := Rules(ctx, a.s)
		return e, rules, err
	})
	if err != nil {
		return Judgement{}, err
	}
	a.keep(c)
	out := Judgement{Moment: moment(&row, a.s.Now().UnixMilli(), r.Epoch, false)}
	if r.Ask != "" && c.failure == nil {
		g, err := Once(ctx, a.s, r.use(a.session))
		if out.Grant, err = unlessVoid(g, err); err != nil {
			return Judgement{}, err
		}
	}
	if out.Moment.Admitted, err = a.admitted(ctx, &r); err != nil {
		return Judgement{}, err
	}
	return c.answer(out, &r), nil
}

// compiled returns the policy for the given state, read if it is another than
// the last one. A damaged row can't widen anything here: its session's policy
// is read from the log, and what was read before lacks only what came after.
//
// It keeps nothing: inside a commit the state is not durable yet, and another
// policy may take the same seqs if the commit fails. keep does, for what is.
func (a *Authorizer) compiled(policyHead, rulesHead uint64, read func() (Effective, policy.OperatorRules, error)) (*compiled, error) {
	if c := a.last.Load(); c != nil && c.policyHead == policyHead && c.rulesHead == rulesHead && c.failure == nil {
		return c, nil
	}
	c := &compiled{policyHead: policyHead, rulesHead: rulesHead}
	e, rules, err := read()
	if err == nil {
		if e.Kind == eventlog.KindChild || e.Evidence {
			rules = policy.OperatorRules{}
		}
		c.e = e
		c.subject, err = subject(&e, rules, a.s.Places())
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, eventlog.ErrNotFound), errors.Is(err, eventlog.ErrPurged), errors.Is(err, eventlog.ErrStoreClosed):
		return nil, err
	case errors.Is(err, eventlog.ErrEvidence):
		c.subject = policy.Subject{Session: a.session, Evidence: true}
	case err != nil:
		c.failure, c.subject = unreadable(err), unreadableSubject(a.session)
	}
	c.engine, c.digest = policy.Compile(c.subject), PolicyDigest(&c.subject)
	return c, nil
}

// keep makes a policy that was read from durable events the last one.
func (a *Authorizer) keep(c *compiled) { a.last.Store(c) }

// moment is the state of a session at a decision. nowMS is the store's clock.
// Whoever only wants to know need not name the open activation; whoever records
// has to.
func moment(row *eventlog.Row, nowMS int64, epoch uint64, records bool) policy.Moment {
	m := policy.Moment{NowMS: nowMS, LastMS: row.LastTime / 1e6, Steps: row.Steps, Children: int(min(row.Delegations, math.MaxInt)), Closed: row.ClosedSeq != 0}
	m.Fenced = epoch != 0 && (!row.Open || epoch != row.Epoch) || records && row.Open && epoch == 0
	for _, d := range row.Denials {
		m.Expired = m.Expired || d.Code == string(policy.CodeExpired)
	}
	return m
}

func (r *CallRequest) use(session uuid.UUID) Use {
	return Use{Session: session, Epoch: r.Epoch, Ask: r.Ask, Call: r.Call.ID, Tool: r.Call.Tool, Args: r.Args}
}

// unlessVoid turns a void grant into none: the call is then decided without it.
func unlessVoid(g OnceGrant, err error) (*OnceGrant, error) {
	var void *VoidError
	switch {
	case errors.As(err, &void), errors.Is(err, eventlog.ErrEvidence), errors.Is(err, eventlog.ErrPolicyUnreadable):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &g, nil
}

// answer decides. out brings the moment and the grant.
func (c *compiled) answer(out Judgement, r *CallRequest) Judgement {
	out.Session, out.EvaluatedSeq, out.Subject, out.Failure = c.subject.Session, c.policyHead, c.subject, c.failure
	call := r.Call
	if g := out.Grant; g != nil {
		switch {
		case g.Sandbox == nil && call.Escalation == nil: // it was asked for without more than the session has
			out.Moment.Approved = g.Origin
		case g.Sandbox == nil:
			out.Grant = nil // nobody was asked for more
		case call.Escalation == nil:
			call.Escalation = &policy.Escalation{Sandbox: *g.Sandbox, Justification: "as it was allowed"}
			out.Moment.Approved = g.Origin
		case call.Escalation.Sandbox.Within(*g.Sandbox):
			out.Moment.Approved = g.Origin
		default:
			out.Grant = nil // it wants to run under more than was allowed
		}
	}
	c.engine.Decide(&out.Decision, &call, &out.Moment)
	if out.Code != policy.CodeAllowedOnce {
		out.Grant = nil
	}
	if o := r.Outcome; o != nil && o.Refused != "" {
		out.object(o)
	}
	return out
}

// object puts what the sweep found before what the policy says.
func (j *Judgement) object(o *objection.Outcome) {
	if j.Code == policy.CodeMalformed {
		return
	}
	also := j.AlsoDeniedBy
	if j.Verdict == policy.VerdictDeny {
		also = append([]policy.Denial{{Code: j.Code, Rule: j.Rule, Origin: j.Origin}}, also...)
	}
	j.Verdict, j.Code, j.Rule, j.Origin = policy.VerdictDeny, o.Refused, policy.Rule(o.By), policy.RuleOrigin{Kind: policy.OriginNone}
	j.AlsoDeniedBy, j.Grant = also[:min(len(also), policy.MaxAlsoDenied)], nil
}

// DecideAt answers a call as of a seq: under the policy and, for a root, the
// operator rules that were in force then, with the counters of that point and
// the latest time up to its event. It is for explaining the past and grants nothing.
// Errors: those of [Policy], a canceled context.
func DecideAt(ctx context.Context, s *eventlog.Store, session uuid.UUID, at uint64, call policy.Call) (Judgement, error) {
	e, err := Policy(ctx, s, session, at)
	if err != nil {
		return Judgement{}, err
	}
	m, position, err := momentAt(ctx, s, session, e.Seq)
	if err != nil {
		return Judgement{}, err
	}
	var rules policy.OperatorRules
	if e.Kind != eventlog.KindChild && !e.Evidence {
		if rules, err = rulesBefore(ctx, s, position); err != nil {
			return Judgement{}, err
		}
	}
	sub, err := subject(&e, rules, s.Places())
	if err != nil {
		return Judgement{}, err
	}
	seqs := e.Seqs()
	return Judgement{Decision: policy.Authorize(sub, call, m), Session: session, EvaluatedSeq: seqs[len(seqs)-1], Subject: sub, Moment: m}, nil
}

// momentAt counts a session's life up to a seq.
func momentAt(ctx context.Context, s *eventlog.Store, session uuid.UUID, at uint64) (m policy.Moment, position uint64, err error) {
	for from := uint64(1); from != 0 && from <= at; {
		page, err := s.Read(ctx, session, eventlog.ReadOptions{From: from, To: at})
		if err != nil {
			return m, 0, err
		}
		if len(page.Holes) > 0 {
			return m, 0, fmt.Errorf("%w: %w", eventlog.ErrPolicyUnreadable, page.Holes[0].Err)
		}
		for i := range page.Events {
			ev := &page.Events[i]
			m.LastMS, position = max(m.LastMS, ev.Time.UnixMilli()), ev.Position
			if ev.Inherited != nil {
				continue
			}
			switch ev.Type {
			case eventlog.TypeStepStart:
				m.Steps++
			case eventlog.TypeDelegationStarted:
				m.Children++
			case eventlog.TypeSessionClosed:
				m.Closed = true
			case eventlog.TypeToolDecision:
				m.Expired = m.Expired || ev.Facts.Str("code") == string(policy.CodeExpired)
			}
		}
		from = page.Next
	}
	m.NowMS = m.LastMS
	return m, position, nil
}
