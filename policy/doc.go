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
// # Authority
//
// What a session may do beside its sandbox is its [Authority], in two halves:
// its own, and what it may hand on. [Derive] is the only way from a parent to a
// child; each part of a [Request] beyond the parent is cut, and the [Cut] says by
// which rule. An [AuthorityLedger] folds what comes later, which only takes away,
// and keeps for each field the rule and the event behind its value.
//
// A [Scope] is the part of authority that says where files may be written. A
// [Guard] holds the paths of a call to it, [Claims] hold siblings against each
// other, and the package scopefs asks the file system when a file is opened.
//
// # Deciding
//
// [Authorize] answers one [Call] of a [Subject] at a [Moment] with a [Decision]:
// allow, deny, or needs_approval, which only a root gets. It names a code, the
// one rule that decided and where that was stated, and what else stands against
// the call; [Decision.Reason] and [Decision.Change] put it into words.
// [Compile] makes a subject ready for many decisions; [Compiled.Decide] gives
// the same answers without allocating, and [Compiled.Visible] the tools to show.
// The order of the reasons is that of Authorize, and of nothing else.
//
// Where more than one reading was open, these were chosen:
//
//   - Every call that changes files has to name them, also where any path would
//     do, or nobody could say later what was allowed.
//   - A place that an operator closed stays closed to edits and to tools nobody
//     knows, not to shells: which files a command touches is not in its
//     arguments. It is the sandbox of its process that binds it; an operator who
//     wants more denies exec_shell.
//   - $TMPDIR is environment and unknown here, so no edit is admitted into it,
//     whatever the sandbox says of it. /tmp is.
//   - Under workspace-write .git, .codex, .claude and .childlog need to be named,
//     by an entry of the scope or by a root that the bound has too. It is the
//     only place where a ceiling can admit what a wider policy left out.
//   - A session that has started as many children as it may still waits for
//     them, talks to them and stops them.
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
// Values are immutable and safe for concurrent use; the ledgers are plain
// values, safe to copy, to be mutated by one goroutine at a time.
//
// # Reading the source
//
// Sandbox and approvals:
//
//   - path.go: the one spelling of a directory, and containment
//   - roots.go, sandbox.go, approval.go: the values and their meets
//   - setting.go: what callers and deployments state, resolved into values
//   - provenance.go: the meet again, with the event behind each component
//   - ledger.go: the fold of a session, and why a narrowing cannot be undone
//
// Authority:
//
//   - permissions.go, limits.go, nameset.go, tools.go: the parts and their meets
//   - grant.go, half.go, authority.go: the parts together
//   - class.go, classtable.go: what the calls of a tool do
//   - deny.go, denymatch.go, operator.go: the rules that take away
//   - role.go, request.go, explicit.go, mergepolicy.go: what is asked for
//   - derive.go, rule.go: from a parent to a child, and what was cut
//   - fields.go, fingerprint.go: a half as text
//   - authorityledger.go: the fold of a session
//
// Write scopes:
//
//   - scopeentry.go, scope.go: what is declared, and its meet
//   - scopematch.go, scopefold.go: the one matcher, exact and folded
//   - scopetarget.go, scopeerrors.go: where a call points, and why it is outside
//   - guardpaths.go, guardpatch.go, guardpatchname.go: the paths of a call
//   - guard.go, guardconfine.go: holding calls and children to a scope
//   - claims.go, merge.go: siblings, and taking over their work
//
// Deciding:
//
//   - call.go, subject.go, decision.go: the question and the answer
//   - authorize.go: the stages, in order; begin here
//   - toolreasons.go: what stands against a tool, whatever its arguments
//   - place.go, sandboxpaths.go: what stands against a path
//   - decide.go, denyindex.go, quickpaths.go: the same, prepared
//   - visible.go, change.go: what to show, and what to say
//   - lockdown.go: the tools no child holds
//
// Package objection is what a deployment may change or refuse before a call is
// decided, package scopefs where a path meets the file system.
//
// And errors.go: what is refused. testdata has the meets as tables, and every name
// that is recorded.
package policy
