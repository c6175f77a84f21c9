// Package guard answers the hooks of Claude Code and of Codex: it turns a hook
// event into what the store records and decides, and that into the answer that
// the harness reads.
//
// A [Guard] has no state of its own. Each event is one call of [Guard.Handle] on
// a store that somebody holds; what came before is in the store.
//
// # What is recorded
//
//   - A session of the harness is a root, found by the external id SYSTEM:ID
//     with the harness's session id ([Harness.System]: claude-code-guard and
//     codex-guard). The importers take claude-code and codex, so a guarded
//     session and its imported transcript are two sessions that do not know of
//     each other: neither blocks the other, and only the guarded one is
//     authority.
//   - An agent is a child, by capture and receipt. Its session id is a function
//     of the root and the agent's id, so it is found whoever delegated it; it is
//     made at the first event that names it, SubagentStart or not, and its calls
//     are never decided under the root's policy. Agent types that are roles
//     (Explore, Plan, worker) get the preset of the role, others the role custom,
//     which has what the parent hands on.
//   - Who delegated is not in any hook. See delegator.go for what it is taken
//     from, and why a wrong guess gives too little and never too much.
//   - A tool call is tool/call and tool/decision in one commit, with tool_use_id as
//     the call; its result tool/result, once.
//   - A call that is put to the person of Claude Code is approval/asked, put
//     elsewhere, and approval/decided by what the hooks tell of it: allowed-elsewhere
//     if it ran (decider human if its question was seen to be shown, else host),
//     rejected if the harness's classifier says so, cancelled by no_result if the
//     turn goes on or ends without a result. That is the harness's word: it grants
//     nothing, and nobody else answers such a question. See asked.go.
//   - UserPromptSubmit and Stop are a turn, SubagentStart and SubagentStop the turn
//     of a child. SubagentStop settles the child, SessionEnd everything that has
//     not stopped. What goes on after that is activated anew. No activation stays
//     open: there is no process that could hold one, so nothing fences two
//     terminals that resume one session at the same time.
//   - Everything else is guard/event, ignorable, with the input as content.
//
// Where the shell of a session is inspect or verify, a call of a shell tool is
// decided with the verdict of package inspect on its command, so that an Explore
// agent may look around; the decision names the classifier and its version. Git is
// admitted where package gitrepo finds that its repository runs nothing. A hook of
// Codex leaves out the directory that a call names, so there it takes git -C DIR.
//
// Prompts, arguments, results and last words are contents: they can be redacted.
//
// # What is answered
//
// Nothing, wherever nothing stands against the event: the harness goes on as it
// would have without a guard, and asks its person what it always asks. A guard
// takes away; it prints an allow only where the root's profile says approve,
// because in Claude Code that skips the question.
//
//	PreToolUse          a denial, with rule, origin and what would change it; ask
//	                    (Claude Code; Codex knows none, so it is denied)
//	PermissionRequest   of an agent, and of a session whose approvals are never, a
//	                    denial: never ask, always reject; else nothing
//	SubagentStart       additionalContext: the bounds of the agent
//	an unknown event    recorded; about a call that was not made yet: exit 2
//	the others          nothing
//
// A denial is exit 2 with the reason on stderr; see [Harness.Answer] for why it is
// not JSON.
//
// A guard that can't do its work blocks where the harness waits for leave to go on
// (exit 2 with a reason), and tells the person (systemMessage) where it does not:
// see [Failed].
//
// # Facts about the harnesses
//
// Of Claude Code, from its hooks reference and hooks guide
// (code.claude.com/docs/en/hooks and /hooks-guide) and CHANGELOG.md of
// anthropics/claude-code:
//
//   - Exit 0: stdout is read as JSON if it begins with {, else as text, which
//     decides nothing. What the profile of the shell prints comes before it.
//   - Exit 2: stderr is the reason and stdout is passed over; it blocks
//     PreToolUse, PermissionRequest and UserPromptSubmit, keeps an agent from
//     stopping after Stop and SubagentStop, is shown to the model after PostToolUse
//     and to the person after SessionStart, SubagentStart and Notification. With
//     JSON on stdout beside it, versions before 2.1.90, and some before 2.1.214,
//     did not block.
//   - Every other code, a signal, a timeout and a command that can't be started let
//     the event pass; from 2.1.295 on not where the hook says onFailure: block,
//     which install writes.
//   - permissionDecision allow skips the person's question, deny rules and ask
//     rules apart (before 2.1.77 deny rules too). stdout of SessionStart and
//     UserPromptSubmit goes to the model.
//   - Hooks of one event run in parallel, with 600 s by default (60 s before 2.1.3),
//     UserPromptSubmit 30 s, SessionEnd 1.5 s.
//   - agent_id names the agent of a call from 2.1.69 on. Before, an agent's calls
//     look like the session's own and are decided as such; doctor tells.
//   - No hook tells what a person answered (issues 37153, 77700 and 94791 of
//     anthropics/claude-code): after a rejection none comes at all. PermissionRequest
//     comes when a dialog appears; PostToolUse and PostToolUseFailure after a call
//     that ran; PermissionDenied (2.1.88) after a rejection by the classifier of the
//     mode auto, never after a person's. An ask was passed over where permissions
//     were bypassed before 2.1.233 (issue 77212), so that a call ran is no proof that
//     a person was asked.
//   - PermissionRequest names no tool_use_id. SubagentStart comes again when an agent is
//     resumed, and can't block. WorktreeCreate has to make a worktree: it is never
//     installed.
//   - Bash has dangerouslyDisableSandbox. That is an escalation: of a child it is
//     rejected, of a root with approvals ask it is put to the person.
//
// Of Codex, from codex-rs/hooks/src (engine/output_parser.rs, events/*.rs,
// schema.rs) and codex-rs/core/src (hook_runtime.rs, tools/hook_names.rs):
//
//   - stdout is parsed with unknown fields refused; a refused output is a failed
//     hook, and a failed hook lets the call pass. So do exit 2 without a text on
//     stderr, any other code, a timeout (600 s by default), permissionDecision ask
//     and allow, and continue, stopReason or suppressOutput with PreToolUse.
//   - The command runs in the user's shell as a login shell (command_runner.rs), so
//     what a profile prints comes before the JSON; then all of it is text and the
//     call passes. So it does if the hook ends before it has read all of its input.
//   - After SessionStart and SubagentStart exit 2 is a failed hook that blocks
//     nothing; after Stop and SubagentStop its text is the next instruction; after
//     PostToolUse it stands in for the result.
//   - session_id is the root's for agents too; agent_id is the agent's thread.
//     Shells are called Bash, with {"command"}; apply_patch has the patch in
//     command; spawn_agent and MCP tools have their own names. Internal agents
//     (review, compact) have no hooks at all.
//
// # What a guard can't do
//
// It sees what the harness shows it. Hooks that are not installed, a harness that
// fails open, and commands that do what their text does not say are out of its
// reach: a shell is decided by its level, and what a command touches is bound by
// the sandbox of the harness. Paths of edits are decided with their links
// followed, at the time of the decision; what is swapped after it is not seen.
package guard
