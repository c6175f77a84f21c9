// Package claudecode imports transcripts of Claude Code, JSON lines below
// ~/.claude/projects, as evidence.
//
// # Sessions
//
// A file named <session>.jsonl is a session's, kept under that id, system
// "claude-code"; if its name is no UUID, under the first sessionId that its
// lines state. A file named agent-<id>.jsonl is an agent's. Its id is unique
// in its session alone, so it is kept as <session>/<id>, where the session is
// the folder above subagents, else the one that its lines name. Versions of
// 2025 wrote their sidechains into the session's file: each becomes a session
// of its own, <session>/inline/<agent, or its first line's uuid>, and what the
// file begins with is the session. A file is a transcript if one of its first
// 64 lines is one of a transcript ("not-a-transcript" else, and it is skipped).
//
// An agent is a child of the agent that its .meta.json names, else of the log
// that holds the call which made it, else of its session. That call is
// recorded if its result, the .meta.json or the workflow's run names the
// agent; it is inferred ("call-inferred") if it is the only one whose prompt is
// the agent's first message, or whose type only this agent of the session has.
// agent-acompact-<id> summarized its session: a child, and no delegation.
// The .meta.json itself is kept as import/sidecar. A call that delegated and
// whose agent has no log, in the run or in the store, is reported
// ("agent-missing").
//
// Lines that were copied from another session, by a fork or a resumption, are
// marked as inherited and count for nothing here. A copy is known by its
// forkedFrom, or by its uuid if the file begins with the same uuid and time as
// another of the run, or with lines of another's sessionId. Which of two such
// files is the original is then inferred from the times they begin with
// ("fork-inferred").
//
// # Events
//
// Every line is one event whose content is the line, in the order of the file,
// which is not always that of time. What else a line says follows it as small
// events without content:
//
//	user            user/message; tool/result if it holds results alone
//	assistant       assistant/message; tool/call if it holds calls alone
//	permission-mode approval/policy where the mode changes, else import/other
//	everything else import/other, with the type in "original"
//
//	further calls and results of the line     tool/call, tool/result
//	a permission mode that is another         approval/policy
//	a denial (toolDenialKind)                 approval/asked, approval/decided
//	what a response used                      usage/recorded
//	a prompt; turn_duration, stop_hook_summary, an interruption   turn/start, turn/end
//
// So an event's fact "uuid" leads to the line, and "message" to the response.
// Calls without an id get their line's uuid and their place in it, and a result
// without one answers the only such call of the line that it follows.
//
// An outcome is ok, error, denied, interrupted, or launched: an agent was
// started, and this result is not its end. A denial is known by toolDenialKind
// or by the two sentences that versions before it wrote (fact "inferred"). It
// is all that these logs say of decisions: what a person or a rule allowed
// can't be told from what was never asked.
//
// A response is split over lines that share a message.id and repeat a usage
// that may grow: only what a line says beyond those before it is recorded. A
// line whose uuid was seen counts for nothing (import/other, line "duplicate").
// progress lines repeat what an agent's own log has, and are kept as they are.
//
// What a line becomes depends on its file alone. So a later run knows again
// what an earlier one wrote, whatever else it was given. A session none of whose
// files changed is known by their digests and not taken apart again: its
// delegations are reported from what the last run kept of them in import/source,
// its findings are not repeated.
//
// # Policy
//
// No line states a sandbox, so none is taken from one: read-only. The
// permission mode is an approval policy by inference. Two modes are what
// childlog's values mean: default is ask, dontAsk is never. The others keep
// their names and count as ask, as all foreign values do: acceptEdits, plan,
// auto, and bypassPermissions, which is reported ("bypass") since childlog has
// no value for "nobody is asked and it runs". An agent's log states no mode.
// Its policy at work is absent, its effective one read-only and never; the
// mode at its delegation is the one that the session's log last stated before
// the call, inferred.
package claudecode

// System is the name of the other system in external ids.
const System = "claude-code"
