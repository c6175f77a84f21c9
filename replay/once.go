package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// Use names a call that is to be made on an allowed-once.
type Use struct {
	Session uuid.UUID
	Epoch   uint64 // of the harness's activation; 0: none is open
	Ask     string
	Call    string
	Tool    string
	Args    []byte // the final arguments; the same bytes that were asked about
}

// OnceGrant is an allowed-once that covers a call now.
type OnceGrant struct {
	Ask     string
	Decider eventlog.Decider
	Origin  policy.Origin   // approval/decided
	Sandbox *policy.Sandbox // what the call may run under; nil: the session's
	Policy  uint64          // seq of the policy under which it was allowed, and still is
}

// Void reasons, why an allowed-once does not cover a call. Stable strings.
const (
	VoidNone        = "no_grant"         // never allowed, or pushed out by newer ones
	VoidNever       = "approval_never"   // the session's approvals are never
	VoidUsed        = "used"             // a decision rests on it, or its call has a result
	VoidPolicy      = "policy_moved"     // a narrowing or a switch came since
	VoidTurn        = "turn_ended"       // its turn or its run is over
	VoidActivation  = "other_activation" // it was given to another one
	VoidCall        = "other_call"
	VoidTool        = "other_tool"
	VoidArgs        = "other_arguments"
	VoidRedacted    = "redacted"    // its arguments were erased and can't be compared
	VoidUnconfirmed = "unconfirmed" // the log does not say what the index says
)

// VoidError says why an allowed-once does not cover a call. It unwraps to
// eventlog.ErrUnauthorized.
type VoidError struct {
	Session uuid.UUID
	Ask     string
	Reason  string // one of the Void constants
	Seq     uint64 // of the event that ended it, 0 if none did
}

// Error renders the ask and the reason on one line.
func (e *VoidError) Error() string {
	at := ""
	if e.Seq != 0 {
		at = fmt.Sprintf(" at seq %d", e.Seq)
	}
	return fmt.Sprintf("unauthorized: session %s: ask %q allows nothing: %s%s", e.Session, e.Ask, e.Reason, at)
}

// Unwrap returns eventlog.ErrUnauthorized.
func (e *VoidError) Unwrap() error { return eventlog.ErrUnauthorized }

// Once reports whether an allowed-once covers exactly this call now. It
// appends nothing and uses nothing up: whoever records that the call is
// allowed asks [OnceIn] in the same commit. The store must be open for writing.
//
// Errors: *VoidError; ErrNotFound, ErrEvidence, ErrPolicyUnreadable.
func Once(ctx context.Context, s *eventlog.Store, u Use) (OnceGrant, error) {
	var g OnceGrant
	_, err := s.Transact(ctx, eventlog.EntryRuntime, func(v *eventlog.View) (_ []eventlog.Batch, err error) {
		g, err = OnceIn(v, u)
		return nil, err
	})
	if err != nil {
		return OnceGrant{}, err
	}
	return g, nil
}

// OnceIn is [Once] inside a commit. A tool/decision with verdict allow and this
// ask, written by the same plan, uses the grant up; the writer refuses a second.
//
// The row says only where the grant stands and whether it ended. What it
// grants, and to what, is read from the log. Errors: those of Once.
func OnceIn(v *eventlog.View, u Use) (OnceGrant, error) {
	row, e, err := View(v, u.Session)
	if err != nil {
		return OnceGrant{}, err
	}
	void := func(reason string, seq uint64) (OnceGrant, error) {
		return OnceGrant{}, &VoidError{Session: u.Session, Ask: u.Ask, Reason: reason, Seq: seq}
	}
	i := slices.IndexFunc(row.Grants, func(g eventlog.OnceGrant) bool { return g.Ask == u.Ask })
	switch {
	case e.Kind == eventlog.KindChild:
		return void(VoidNever, e.ApprovalBy.Origin.Seq)
	case i < 0:
		return void(VoidNone, 0)
	case row.Grants[i].Ended != 0:
		return void(whyEnded(v, &row, row.Grants[i].Ended))
	case e.Approvals != policy.Ask:
		return void(VoidNever, e.ApprovalBy.Origin.Seq)
	}
	at := row.Grants[i]
	ev, asked, decided, err := readGrant(v, u.Session, at)
	if err != nil {
		return OnceGrant{}, err
	}
	args, err := exactArgs(u.Args)
	if err != nil {
		return OnceGrant{}, err
	}
	salt, whole := askedSalt(&ev)
	switch {
	case asked.Ask != u.Ask || decided.Ask != u.Ask || decided.Outcome != eventlog.AskAllowedOnce || !decided.Decider.Answers():
		return void(VoidUnconfirmed, at.Decided)
	case asked.Evaluated != e.policySeq():
		return void(VoidPolicy, e.policySeq())
	case !asked.InTurn || row.TurnSeq == 0 || row.TurnSeq > at.Asked:
		return void(VoidTurn, row.TurnSeq)
	case asked.Epoch != u.Epoch:
		return void(VoidActivation, 0)
	case asked.Call != u.Call:
		return void(VoidCall, 0)
	case asked.Tool != u.Tool:
		return void(VoidTool, 0)
	case !whole:
		return void(VoidRedacted, 0)
	case eventlog.CommitArgs(salt, args) != asked.Args:
		return void(VoidArgs, 0)
	}
	return OnceGrant{Ask: u.Ask, Decider: decided.Decider, Origin: policy.Origin{Session: u.Session, Seq: at.Decided}, Sandbox: asked.Escalation, Policy: asked.Evaluated}, nil
}

// readGrant reads from the log the two events that a grant consists of.
func readGrant(v *eventlog.View, session uuid.UUID, at eventlog.OnceGrant) (ev eventlog.Event, asked eventlog.Asked, decided eventlog.Decided, err error) {
	unconfirmed := &VoidError{Session: session, Ask: at.Ask, Reason: VoidUnconfirmed, Seq: at.Decided}
	if ev, err = v.Event(session, at.Asked); err != nil {
		return ev, asked, decided, err
	}
	answer, err := v.Event(session, at.Decided)
	switch {
	case err != nil:
		return ev, asked, decided, err
	case ev.Type != eventlog.TypeApprovalAsked || answer.Type != eventlog.TypeApprovalDecided || at.Decided <= at.Asked,
		ev.Inherited != nil || answer.Inherited != nil || answer.Source == eventlog.SourceStore:
		return ev, asked, decided, unconfirmed
	}
	if asked, err = eventlog.ParseAsked(&ev); err == nil {
		decided, err = eventlog.ParseDecided(&answer)
	}
	return ev, asked, decided, err
}

// whyEnded tells from the event that ended a grant why it did.
func whyEnded(v *eventlog.View, row *eventlog.Row, seq uint64) (string, uint64) {
	ev, err := v.Event(row.Session, seq)
	switch {
	case err != nil:
		return VoidUnconfirmed, seq
	case ev.PolicyBearing:
		return VoidPolicy, seq
	case ev.Type == eventlog.TypeToolDecision || ev.Type == eventlog.TypeToolResult:
		return VoidUsed, seq
	case ev.Type == eventlog.TypeActivationStarted || ev.Type == eventlog.TypeActivationEnded:
		return VoidActivation, seq
	}
	return VoidTurn, seq
}
