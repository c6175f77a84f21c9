package policy

// EngineVersion numbers the rules of deciding, as [Authorize] applies them. A
// decision records it, so that a reader knows by which it was made; numbers are
// never reused.
const EngineVersion = 1

// Verdict is the answer to a call. The strings are recorded in logs. The zero
// value is none of them and stands for deny.
type Verdict string

// The verdicts.
const (
	VerdictAllow         Verdict = "allow"
	VerdictDeny          Verdict = "deny"
	VerdictNeedsApproval Verdict = "needs_approval" // roots only: a child is never asked about
)

// Code says why, for machines. The strings are recorded in logs and counted in
// settlements, so they are never renamed or reused.
type Code string

// The codes, in the order in which they are asked.
const (
	CodeAllowed          Code = "allowed"
	CodeAllowedOnce      Code = "allowed_once" // by an approval of this very call
	CodeMalformed        Code = "malformed"
	CodeEvidence         Code = "evidence"
	CodeFenced           Code = "fenced"
	CodePolicyUnreadable Code = "policy_unreadable"
	CodeClosed           Code = "closed"
	CodeExpired          Code = "expired"
	CodeStepsExhausted   Code = "steps_exhausted"
	CodeLockdown         Code = "lockdown"
	CodeOperatorDeny     Code = "operator_deny"
	CodeDenyList         Code = "deny_list"
	CodeToolScope        Code = "tool_scope"
	// write_scope_violation and path_unknown: CodeWriteScopeViolation, CodePathUnknown
	CodeFiles         Code = "files"
	CodeShell         Code = "shell"
	CodeNetwork       Code = "network"
	CodeSpawn         Code = "spawn"
	CodeOpaque        Code = "opaque"
	CodeSandbox       Code = "sandbox"
	CodeApprovalNever Code = "approval_never"
	CodeNeedsApproval Code = "needs_approval"
)

// OriginKind says what kind of statement decided.
type OriginKind string

// The kinds of origin.
const (
	OriginNone      OriginKind = "none"      // the call itself decided, or the code
	OriginOperator  OriginKind = "operator"  // an operator rule; the event that set it
	OriginSession   OriginKind = "session"   // an event of the session: a profile, a receipt, a switch, an approval
	OriginRole      OriginKind = "role"      // a role preset, applied by the receipt
	OriginPin       OriginKind = "pin"       // the approval pin
	OriginNarrowing OriginKind = "narrowing" // a narrowing
	OriginDefault   OriginKind = "default"   // the deployment default recorded at creation
)

// RuleOrigin is where the deciding rule was stated.
type RuleOrigin struct {
	Kind OriginKind
	At   Origin // zero where no event did
}

// Denial is one reason to deny a call.
type Denial struct {
	Code Code

	// Rule denied by itself, as a deny rule does, or gave the part of the policy
	// that denies its value, as a role's preset does; see [FieldCause].
	Rule   Rule
	Origin RuleOrigin
}

// Decision is the answer to one call with its reason. The zero value denies.
type Decision struct {
	Verdict Verdict
	Code    Code
	Rule    Rule       // the one that decided; "" if nothing stands against the call
	Origin  RuleOrigin // where it was stated
	Tool    Tool       // as classified; if its name is none, opaque and not to be recorded

	// Targets are the places that a mutating call may touch: relative to the
	// workspace, or absolute with forward slashes where a sandbox admits places
	// outside, each once. Outside are the paths that were refused, with what
	// would have been accepted. Both are in the order of the call.
	Targets []string
	Outside []OutsidePath

	// AlsoDeniedBy are further reasons that stand even if the first is gone, in
	// the order in which they are asked. At most [MaxAlsoDenied].
	AlsoDeniedBy []Denial

	// Classified is the verdict on a shell call that was decided with one, as it
	// came; zero for the others. Need is the level that the call was held against.
	Classified Classified
}

// MaxAlsoDenied bounds the further reasons of one decision.
const MaxAlsoDenied = 16

// Allowed reports whether the call may be made now.
func (d *Decision) Allowed() bool { return d.Verdict == VerdictAllow }
