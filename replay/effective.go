package replay

import (
	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// Effective is what a session may do as of a seq, and why. It is a value: it
// stays what it is when the log goes on.
type Effective struct {
	Session uuid.UUID
	Seq     uint64 // as of this seq

	Kind          string // eventlog.KindRoot, KindChild, KindStub
	Evidence      bool   // imported: may be read, is never authority
	Parent, Root  uuid.UUID
	Depth         int
	MaxDepth      int
	Mode          string // eventlog.ModeOneShot, ModeContinuable
	Provider      eventlog.Provider
	WorkspaceRoot string

	Sandbox     policy.Traced // effective: meet(bound, own last switch)
	Bound       policy.Traced // the widest it may ever be again
	Explicit    bool          // an override: a switch of its own or a captured one
	Approvals   policy.Approval
	ApprovalRaw policy.Approval // as recorded, foreign values included
	ApprovalBy  policy.Cause
	Defaults    policy.Defaults // recorded at creation
	DefaultsBy  policy.Cause

	ParentSeq  uint64 // of the capture
	ReceiptSeq uint64 // of delegation/granted, 0 for roots
	BornSeq    uint64 // the seq from which the policy is whole: a child's pin, else 1
	Receipt    eventlog.Hash
	Findings   []Finding

	ledger    policy.Ledger
	approvals policy.ApprovalLedger
	events    []eventlog.Event
}

// Finding is something about a log that a reader should know and that changed
// nothing for the better. Codes are stable strings.
type Finding struct {
	Seq    uint64
	Code   string
	Detail string
}

// Codes of findings.
const (
	FindingUnpinned    = "unpinned"     // an imported child without the approval pin
	FindingWidened     = "widened"      // an imported switch beyond the delegation
	FindingForeignMode = "foreign-mode" // a sandbox mode of another system
	FindingForeignAsk  = "foreign-approval"
)

// Enforced reports whether childlog's policy binds what runs the session: a
// provider outside the process keeps its own.
func (e *Effective) Enforced() bool {
	return e.Kind != eventlog.KindChild || e.Provider.Name == "" || e.Provider.InProcess
}

// Claimed reports whether the policy rests on a parent outside the store.
func (e *Effective) Claimed() bool { return e.Kind == eventlog.KindStub }

// Captured returns what a delegation from this state snapshots: the sandbox
// override met with all narrowings, or false if the session has neither.
func (e *Effective) Captured() (policy.Sandbox, bool) { return e.ledger.Captured() }

// NarrowedSince meets into v every narrowing after seq, starting from def if v
// is nil. It is how a capture learns of narrowings that came between it and
// its materialization.
func (e *Effective) NarrowedSince(seq uint64, v *policy.Sandbox, def policy.Sandbox) (*policy.Sandbox, error) {
	for i := range e.events {
		ev := &e.events[i]
		if ev.Seq <= seq || ev.Type != eventlog.TypePolicyNarrowed {
			continue
		}
		ceiling, err := eventlog.ParseNarrowed(ev)
		if err != nil {
			return nil, err
		}
		if v == nil {
			v = &def
		}
		met := v.Meet(ceiling)
		v = &met
	}
	return v, nil
}

// Seqs lists the policy-bearing events that were folded.
func (e *Effective) Seqs() []uint64 {
	out := make([]uint64, len(e.events))
	for i := range e.events {
		out[i] = e.events[i].Seq
	}
	return out
}
