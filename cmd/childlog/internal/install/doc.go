// Package install puts the guard into a harness's settings and takes it out
// again. A settings file belongs to a person: what childlog did not write in it
// stays byte for byte, and what it did write goes away without a trace.
//
// # What is written
//
// One hook for each event that the guard handles, in a matcher group of its own
// at the end of the event's list, so that nobody else's hook changes its place:
//
//	"PreToolUse": [
//	  {
//	    "matcher": "*",
//	    "hooks": [
//	      {"type": "command", "command": "/usr/local/bin/childlog --store ... guard claude-code --profile edit-here", "timeout": 30}
//	    ]
//	  }
//	]
//
// The command names the executable, the store and the profile, because a hook
// inherits the environment of whoever started the harness: what is not spelled
// out there could be changed by it.
//
// An entry is ours if its command is a plain call of childlog with the words
// "guard HARNESS" (see [parseCommand]). A command that runs the guard in some
// other way, such as through a script, was written by a person and is refused
// with its place, because a second guard would record every call twice.
//
// # Undo
//
// Beside the settings file install leaves NAME.childlog-backup, the original
// bytes, never overwritten, and NAME.childlog-undo, which says what was done and
// with which digests. While the file is as install left it, uninstall puts the
// original back, or removes the file and the directories that install made. If
// it was edited meanwhile, only our entries go.
//
// Order of writing: backup, undo note, settings. A crash in between leaves a
// note about settings that are still the original, which uninstall and the next
// install recognize by its digest.
//
// # Where the harnesses read hooks, and what turns them off
//
// Claude Code (code.claude.com/docs/en/hooks and /settings, read in 2026):
//   - ~/.claude/settings.json, or $CLAUDE_CONFIG_DIR/settings.json; of a project
//     .claude/settings.json, which is shared, and .claude/settings.local.json,
//     which is one person's and kept out of git. Hooks of all of them run.
//   - A file that is no JSON is dropped as a whole, and comments make it so
//     (anthropics/claude-code#83190). A byte order mark is passed over.
//   - disableAllHooks turns them off; so does allowManagedHooksOnly in the
//     managed settings, /etc/claude-code/managed-settings.json and
//     managed-settings.d.
//   - A matcher of "*", "" or none matches all. timeout is in seconds; a hook that
//     exceeds it is given up, and the tool proceeds. So it does if the hook can't
//     be started (anthropics/claude-code#84656).
//   - From 2.1.295 on (CHANGELOG.md) a hook with "onFailure": "block" blocks then,
//     and after an exit code that means nothing. Older versions pass over the name.
//     It stands where the guard blocks, and not with --observe, which never does.
//   - An event that it does not know made versions before 2.1.101 drop the whole
//     file, somebody's deny rules included. All that are written are older than
//     2.1.69, which a guard needs (package guard).
//
// Codex (openai/codex codex-rs/hooks/src/engine/discovery.rs,
// codex-rs/config/src/hook_config.rs, developers.openai.com/codex/hooks):
//   - $CODEX_HOME/hooks.json, ~/.codex by default, or [hooks] in config.toml
//     beside it; of a trusted project .codex/hooks.json. Hooks of all of them run.
//   - hooks.json is read by a strict parser: comments, a byte order mark or a root
//     key other than description and hooks make Codex drop the file as a whole.
//   - [features] hooks = false (or its old name codex_hooks) turns them off, in
//     config.toml or requirements.toml, as does allow_managed_hooks_only in the
//     latter.
//   - A hook runs only after the person trusted it in /hooks. The trust is kept in
//     config.toml under the hook's place in its list ("FILE:pre_tool_use:0:0")
//     with a hash of its definition: a changed command has to be trusted again.
//     That is the person's to say, so install only tells of it.
//   - timeout is in seconds, 600 by default; that of SessionEnd is at most 3.
//
// # What is refused
//
// Everything that is not understood, with its place, and nothing is written
// then: a file that the harness itself would drop, other shapes under hooks,
// duplicate names, files of other users, read-only ones, hard links, and
// settings under which the hooks would not run. A symbolic link is followed and
// stays: the file that it leads to is edited.
package install
