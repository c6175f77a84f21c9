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
	PathStyle     string // posix or windows, "" without a workspace

	Sandbox     policy.Traced // effective: meet(bound, own last switch)
	Bound       policy.Traced // the widest it may ever be again
	Explicit    bool          // an override: a switch of its own or a captured one
	Approvals   policy.Approval
	ApprovalRaw policy.Approval // as recorded, foreign values included
	ApprovalBy  policy.Cause
	Defaults    policy.Defaults // recorded at creation
	DefaultsBy  policy.Cause

	// Authority is what the session may do and hand on beside its sandbox; of a
	// root without the operator rules of the store, which it follows as they
	// are at each decision (see [Subject]). Causes says for each field of the
	// own half which rule and event decided it.
	Authority policy.Authority
	Causes    map[string]policy.FieldCause
	Choices   policy.Choices     // what the session runs as; does not narrow
	Principal eventlog.Principal // for whom the root of the tree works
	Palette   policy.Palette     // of tools, as the manifest declared them
	Lockdown  []string           // the deployment's block-edit tools
	Granted   *eventlog.Granted  // the receipt; nil for roots

	ParentSeq  uint64 // of the capture
	ReceiptSeq uint64 // of delegation/granted, 0 for roots
	BornSeq    uint64 // the seq from which the policy is whole: a child's pin, else 1
	WholeSeq   uint64 // the last event of its creation: a root's override stated there included
	Receipt    eventlog.Hash
	Findings   []Finding

	ledger    policy.Ledger
	approvals policy.ApprovalLedger
	authority policy.AuthorityLedger
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

// CeilingsSince lists the narrowings after seq, in order. It is how a capture
// learns of those that came between it and its materialization.
func (e *Effective) CeilingsSince(seq uint64) ([]eventlog.Ceiling, error) {
	var out []eventlog.Ceiling
	for i := range e.events {
		if ev := &e.events[i]; ev.Seq > seq && ev.Type == eventlog.TypePolicyNarrowed {
			c, err := eventlog.ParseNarrowed(ev)
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// Seqs lists the policy-bearing events that were folded.
func (e *Effective) Seqs() []uint64 {
	out := make([]uint64, len(e.events))
	for i := range e.events {
		out[i] = e.events[i].Seq
	}
	return out
}
