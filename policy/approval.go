package policy

import "fmt"

// Approval says what happens to a call that would need approval. A log may hold
// foreign values (untrusted, on-request, on-failure, granular): whoever reads
// them keeps the raw value, and [Approval.Effective] says what it counts as.
type Approval string

// The approvals a session can be given. Never is the narrower: it does not mean
// that no approval is needed, so show it together with its [Approval.Meaning].
const (
	Never Approval = "never" // never ask, always reject
	Ask   Approval = "ask"
)

// ParseApproval returns the approval named s, compared exactly, else a wrapped
// [ErrInvalid]. Foreign values are refused: they are read, never given.
func ParseApproval(s string) (Approval, error) {
	if a := Approval(s); a == Never || a == Ask {
		return a, nil
	}
	return "", invalid("approvals: got %q, want %s or %s", s, Never, Ask)
}

// Effective returns Never for never and for the zero value, where nothing was
// recorded that could allow asking, and Ask for everything else.
func (a Approval) Effective() Approval {
	if a == Never || a == "" {
		return Never
	}
	return Ask
}

// Meet returns Ask if both sides count as ask, else Never.
func (a Approval) Meet(o Approval) Approval {
	if a.Effective() == Ask {
		return o.Effective()
	}
	return Never
}

// Meaning returns the sentence to show beside the value.
func (a Approval) Meaning() string {
	if a.Effective() == Never {
		return "never ask: whatever would need approval is rejected"
	}
	return "ask: whatever needs approval waits for a decision and is rejected without one"
}

// ApprovalLedger folds the approval events of one session, as [Ledger] does the
// sandbox events. The zero value rejects everything. It is a value: a copy is
// independent of the original.
type ApprovalLedger struct {
	raw    Approval // as last stated
	by     Cause    // what decides: the pin of a child, else what stated raw
	pinned bool
}

// RootApprovals starts a root at its recorded default, which may be foreign in
// an imported log.
func RootApprovals(def Approval, by Cause) ApprovalLedger { return ApprovalLedger{raw: def, by: by} }

// ChildApprovals starts a child, pinned to never by its delegation. Nothing in
// its own log can lift the pin.
func ChildApprovals(pin Cause) ApprovalLedger {
	return ApprovalLedger{raw: Never, by: pin, pinned: true}
}

// Switch records a change by the session: wrapped [ErrInvalid] unless a is never
// or ask, wrapped [ErrWidening] for ask in a child. On error nothing changes.
func (l *ApprovalLedger) Switch(a Approval, by Cause) error {
	if _, err := ParseApproval(string(a)); err != nil {
		return err
	}
	if l.pinned && a == Ask {
		return fmt.Errorf("%w: approvals: got %s, want %s, set by %v", ErrWidening, a, Never, l.by)
	}
	l.Keep(a, by)
	return nil
}

// Keep records what an imported log states, foreign values included, without
// ever refusing. It reports whether a child's log went beyond the pin: the
// effective value stays never, and the importer has a finding.
func (l *ApprovalLedger) Keep(a Approval, by Cause) (widened bool) {
	l.raw = a
	if l.pinned {
		return a.Effective() != Never
	}
	l.by = by
	return false
}

// Effective returns the value that counts, Never or Ask; the raw value last
// stated; and the event that decided the first: in a child always the pin.
func (l ApprovalLedger) Effective() (value, raw Approval, by Cause) {
	if l.pinned {
		return Never, l.raw, l.by
	}
	return l.raw.Effective(), l.raw, l.by
}
