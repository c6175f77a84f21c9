// Package codex imports rollouts of Codex, JSON lines of a thread, as evidence.
//
// # Sessions
//
// A thread is kept under its own id as external id, system "codex", and under a
// childlog id derived from that. The first line names it: the payload of
// session_meta, or in files of 2025 the bare object itself. Its id is the
// thread's; session_id may be the root's and is not used. Later session_meta
// lines are copies of the ancestors' and are kept and ignored. A second file of
// one id with another first line is another session, kept under the id, "#" and
// a digest of that line ("id-collision"); one with the same first line is a copy
// (sessions and archived_sessions, plain and .zst), of which the longest counts.
//
// A thread is a child if its source is a subagent or it names a parent thread.
// The parent is the one it names; a fork by a person is no delegation. Nothing
// is linked to a native session, and no link closes a circle.
//
// # Events
//
// The first line becomes session/created and import/other (line "header"). Each
// further line is one event whose content is the line, in order:
//
//	message of role user, assistant          user/message, assistant/message
//	function_call, custom_tool_call,
//	local_shell_call, tool_search_call       tool/call
//	their …_output                           tool/result
//	task_started                             turn/start, counted from 1
//	task_complete, turn_aborted              turn/end; reason completed or the log's
//	token_count with a total not seen yet    usage/recorded: what was added since
//	compacted                                history/compacted, up to the event before
//	turn_context                             import/other, and where its policy is not
//	                                         the last one's sandbox/mode, approval/policy
//	everything else                          import/other, "original" type/payload type
//
// and each run that added something ends with one import/source. input of a
// usage is what was not read from the cache. A call that asks for more than its
// sandbox gives has the facts escalation and justified; who decided is nowhere
// recorded, and the fact decision says so ("decision-not-recorded"). A delegation's
// message has its digest, and encrypted if only the service can read it. A turn
// without an end is "unterminated".
//
// # Policy
//
// What a turn_context states is recorded. workspace-write is worth the directory
// of the turn, workspace_roots and writable_roots. external-sandbox, other modes,
// and a permission_profile without a sandbox_policy (kept as
// permission-profile:…) can't be compared and count as read-only without network.
// untrusted, on-request, on-failure and granular count as ask. A sandbox_policy
// that can't be read counts as read-only, an approval_policy as never.
//
// Files of 2025 state the policy in the text of the first message only
// (environment_context): inferred, and marked so.
//
// No log says under what a child was delegated. It is inferred from the parent's
// turn_context before the call that spawned it, if that log is imported before or
// with the child's: then the child's log begins with that policy, claimed
// "delegation-inferred", and a child that works beyond it is found widened. The
// call is the one whose result names the child's agent_path or its id. Without
// the parent's log nothing is inferred, and the child counts as read-only.
// Approvals of a child are never, whatever its log states.
//
// # Inherited lines
//
// A forked thread replays its ancestor's lines, stamped anew. Where the header
// counts them (subagent_history_start_ordinal) the ordinals decide. Else they
// reach from the copied session_meta, or from the first line of a fork, to the
// first line of a turn of its own: one that the parent's log does not have and
// that, by the times in both ids, is not older than the thread. They are marked
// as inherited, lead to the parent's event of the same payload and decide
// nothing. If no turn of its own is found all of it counts as inherited
// ("seed-boundary"): that can lose a policy, and never takes the parent's for the
// child's own.
package codex

// System is the name of the other system in external ids.
const System = "codex"
