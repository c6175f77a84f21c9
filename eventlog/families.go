package eventlog

import (
	"fmt"
	"slices"
	"strings"
)

// Core event types. A type is family/name; the family ends at the first slash.
const (
	TypeSessionCreated    = "session/created"
	TypeSessionEndSeed    = "session/end-seed"
	TypeSessionSettled    = "session/settled"
	TypeSessionClosed     = "session/closed"
	TypeSessionTitled     = "session/titled"
	TypeDelegationGranted = "delegation/granted"
	TypeDelegationStarted = "delegation/started"
	TypePolicyProfile     = "policy/profile"
	TypePolicyNarrowed    = "policy/narrowed"
	TypeSandboxMode       = "sandbox/mode"
	TypeApprovalPolicy    = "approval/policy"
	TypeApprovalAsked     = "approval/asked"
	TypeApprovalDecided   = "approval/decided"
	TypeToolCall          = "tool/call"
	TypeToolResult        = "tool/result"
	TypeToolDecision      = "tool/decision"
	TypeTurnStart         = "turn/start"
	TypeTurnEnd           = "turn/end"
	TypeStepStart         = "step/start"
	TypeStepEnd           = "step/end"
	TypeUserMessage       = "user/message"
	TypeAssistantMessage  = "assistant/message"
	TypeUsageRecorded     = "usage/recorded"
	TypeHistoryCompacted  = "history/compacted"
	TypeInboxQueued       = "inbox/queued"
	TypeInboxClaimed      = "inbox/claimed"
	TypeControlInterrupt  = "control/interrupt"
	TypeActivationStarted = "activation/started"
	TypeActivationEnded   = "activation/ended"
	TypeNoticeConsumed    = "notice/consumed"
	TypeImportOther       = "import/other"
)

// closedFamilies are written by their own calls only. A type of one that this
// version does not know makes policy unreadable: it may narrow something. In the
// order of their names.
var closedFamilies = [...]string{"activation", "approval", "content", "control", "delegation", "inbox", "notice", "policy", "sandbox", "session", "store"}

// Family is the part of a type before its first slash.
func Family(typ string) string {
	family, _, _ := strings.Cut(typ, "/")
	return family
}

// IsClosed reports whether only a call of its own may write the type: the
// closed families and the decision record.
func IsClosed(typ string) bool {
	return slices.Contains(closedFamilies[:], Family(typ)) || typ == TypeToolDecision
}

// IsKnown reports whether this version knows the type of a closed family at
// the schema version. Types of open families are known at every version.
func IsKnown(typ string, version uint8) bool {
	if !IsClosed(typ) {
		return true
	}
	spec, ok := coreTypes()[typ]
	return ok && version <= spec.version
}

// IsCore reports whether this version gives the type a meaning of its own.
func IsCore(typ string) bool { _, ok := coreTypes()[typ]; return ok }

// isPolicyBearing reports whether the type changes the effective policy when
// it is a session's own event. Seed copies never do.
func isPolicyBearing(typ string) bool { return coreTypes()[typ].policy }

// CheckType validates a type's form: family/name of lower case letters,
// digits, '-', '.' and '/', at most MaxTypeLen bytes.
func CheckType(typ string) error {
	if len(typ) > MaxTypeLen {
		return &TooLargeError{What: "type name in bytes", Limit: MaxTypeLen, Size: uint64(len(typ))}
	}
	family, name, ok := strings.Cut(typ, "/")
	if !ok || family == "" || name == "" {
		return fmt.Errorf("%w: type %q: want family/name", ErrInvalid, typ)
	}
	for i := 0; i < len(typ); i++ {
		c := typ[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '/') {
			return fmt.Errorf("%w: type %q: byte %q at %d: want lower case letters, digits, '-', '.', '/'", ErrInvalid, typ, c, i)
		}
	}
	return nil
}

// Entry is an entry point of the module: it decides which closed types may be
// written and with which sources. Callers of a harness have none: Append
// writes open families only.
type Entry uint8

// Entry points.
const (
	entryHarness    Entry = iota // Append and AppendAsync
	EntryCreate                  // materialize: roots
	EntryDelegation              // materialize: children
	EntryOperator                // operator calls: switch, narrow, close, interrupt
	EntryRuntime                 // harness calls: activation, settle, inbox, notices
	EntryImport                  // importers: evidence only
	EntryStore                   // the store's own session: operator rules
	EntryErase                   // operator calls: redact, hold, release, purge; takes part in Transact from this package only
	entryForeign                 // ImportLogs: logs of other stores, and the record of it
)

// allows reports whether the entry point may write the type with the source.
func (e Entry) allows(typ string, src Source) bool {
	family := Family(typ)
	switch e {
	case entryHarness:
		return !IsClosed(typ) && (src == SourceRuntime || src == SourceUser)
	case EntryCreate:
		return (typ == TypeSessionCreated || typ == TypeSandboxMode || typ == TypeApprovalPolicy || typ == TypePolicyProfile) && src == SourceOperator
	case EntryDelegation:
		switch typ {
		case TypeSessionCreated, TypeSessionEndSeed, TypeDelegationGranted, TypeDelegationStarted, TypeSandboxMode, TypeApprovalPolicy:
			return src == SourceDelegation
		}
		return !IsClosed(typ) // seed copies keep the source they had
	case EntryOperator:
		switch family {
		case "policy": // a profile stands at the beginning of a root or nowhere
			return src == SourceOperator && typ != TypePolicyProfile
		case "sandbox", "control", "session", "approval", "inbox", "activation":
			return src == SourceOperator && !erases(typ) && typ != TypeSessionCreated && typ != TypeSessionEndSeed && typ != TypeApprovalAsked && typ != TypeApprovalDecided
		}
		return false
	case EntryRuntime:
		switch family {
		case "activation", "inbox", "notice", "control", "session":
			return src == SourceRuntime && !erases(typ) && typ != TypeSessionCreated && typ != TypeSessionEndSeed
		case "sandbox", "approval": // a runtime switch; the writer refuses a widening
			return src == SourceRuntime || (typ == TypeApprovalDecided && src == SourceStore)
		case "tool", "turn", "step": // closing what a crash left open, and deciding a call
			return src == SourceStore || typ == TypeToolCall && src == SourceRuntime
		}
		return false
	case EntryImport:
		return src == SourceImport
	case EntryStore:
		return typ == TypeSessionCreated && src == SourceStore || family == "store" && typ != TypeStoreImported && src == SourceOperator
	case EntryErase:
		return (typ == TypeContentRedacted || typ == TypeSessionHeld || typ == TypeSessionPurged) && src == SourceOperator || typ == TypeSessionCreated && src == SourceStore
	case entryForeign: // beside the log itself, which is taken as it is
		return typ == TypeSessionCreated && src == SourceStore || typ == TypeStoreImported && src == SourceOperator
	}
	return false
}

// defaultSource is what an event gets when the entry point names none.
func (e Entry) defaultSource(typ string) Source {
	switch e {
	case EntryDelegation:
		return SourceDelegation
	case EntryCreate, EntryOperator, EntryStore, EntryErase, entryForeign:
		return SourceOperator
	case EntryImport:
		return SourceImport
	}
	if Family(typ) == "user" {
		return SourceUser
	}
	return SourceRuntime
}
