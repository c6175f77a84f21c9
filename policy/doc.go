// Package policy holds the values that say what a session may do, and the one
// operation that combines them: the meet, the most that both sides allow.
//
// # Values
//
// A [Sandbox] is the resolved tuple (mode, roots, network, temp directories)
// an event records. Values are ordered by what they permit:
//
//	danger-full-access          the top: every path, network, temp directories
//	        |
//	workspace-write             the recorded roots; network and temp as stated
//	        |
//	read-only                   no path; network as stated
//	        |
//	read-only without network   the bottom, and the value of anything unknown
//
// Within one mode the order is by component: fewer roots, no network and more
// exclusions are narrower. [Sandbox.Meet] is the greatest value within both
// sides: the lower mode, the roots both contain, the network only if both have
// it, the exclusions of either. [Approval] is ordered never < ask; never means
// "never ask, always reject", not "no approval needed".
//
// A [Ledger] folds the sandbox events of one session in log order and answers
// with a [Traced] value, which names the event that set each component:
//
//	effective = meet(bound, own last switch)
//
// The bound is the meet of the delegation and of all narrowings so far. It only
// shrinks; a switch moves freely below it and never past it. An [ApprovalLedger]
// does the same for approvals, where a child is pinned to never.
//
// # Outside rules
//
// Modes and fields carry the names of Codex's sandbox_policy: read-only,
// workspace-write, danger-full-access, writable_roots, network_access,
// exclude_tmpdir_env_var, exclude_slash_tmp. The strings of [Mode], [Approval]
// and [Source] are recorded in logs, so they are never renamed or reused.
//
// # Failing narrow
//
// Every function is total. What cannot be understood is never treated as
// permission: a foreign mode such as external-sandbox, and a value that
// contradicts itself, count as read-only without network; a path that does not
// parse is outside every root; the zero values of Sandbox, Ledger and
// ApprovalLedger permit nothing beyond reading. Where a caller states a value
// it is refused with [ErrInvalid] instead.
//
// # Caveats
//
// Paths are compared as text: exactly, without case folding or Unicode
// normalization, and without following links. That is exact for deciding which
// of two recorded policies is narrower, and not enough for opening a file.
// On a file system that ignores case it is narrower than the system, never wider.
// Windows shares (\\server\share) cannot be roots.
//
// The package decides and sandboxes nothing. It reads no clock, environment,
// randomness or file: the answer to a log is the same in every process.
// Values are immutable and safe for concurrent use; the two ledgers are plain
// values, safe to copy, to be mutated by one goroutine at a time.
//
// # Reading the source
//
//   - path.go: the one spelling of a directory, and containment
//   - roots.go, sandbox.go, approval.go: the values and their meets
//   - setting.go: what callers and deployments state, resolved into values
//   - provenance.go: the meet again, with the event behind each component
//   - ledger.go: the fold of a session, and why a narrowing cannot be undone
//   - errors.go: what is refused
//   - testdata: the meets as tables
package policy
