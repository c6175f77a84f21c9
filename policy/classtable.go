package policy

import (
	"maps"
	"slices"
	"sync"
)

// ClassTableVersion numbers the table of tool names below. A receipt records
// the version its child was made under, so that a reader can tell a decision of
// then from one of now. It goes up whenever a name changes class or goes away;
// numbers are never reused.
const ClassTableVersion = 1

// toolNames is the table, by harness. Names are as each harness sends them.
// Sources: the tools reference of Claude Code; the tool specifications of Codex
// (core/src/tools), one agent and several; the tool packages of DeepSeek
// Harness; and the names that deny rules use, which are CodeWhale's.
//
// Where a tool does several things, the most it can do counts: file both reads
// and writes. Where a tool does what its arguments say, or what a server says,
// it is missing here and thereby opaque: SlashCommand, EnterWorktree, mcp__*.
// Reading the output of a command counts as shell, since it is a part of
// running one; todo lists, plans, goals and questions count as read, since they
// touch nothing outside the conversation.
var toolNames = []struct {
	harness string
	class   Class
	names   []string
}{
	{"Claude Code", ClassRead, []string{"Read", "NotebookRead", "Glob", "Grep", "LS", "LSP", "TodoRead", "TodoWrite", "TaskCreate", "TaskGet",
		"TaskList", "TaskUpdate", "TaskOutput", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "exit_plan_mode", "Skill", "ToolSearch", "CronList"}},
	{"Claude Code", ClassEdit, []string{"Write", "Edit", "MultiEdit", "NotebookEdit"}},
	{"Claude Code", ClassShell, []string{"Bash", "BashOutput", "KillShell", "KillBash", "PowerShell", "Monitor", "REPL"}},
	{"Claude Code", ClassNetwork, []string{"WebFetch", "WebSearch", "ListMcpResourcesTool", "ReadMcpResourceTool", "RemoteTrigger", "Artifact"}},
	{"Claude Code", ClassDelegate, []string{"Task", "Agent", "TaskStop", "SendMessage", "TeamCreate", "TeamDelete", "Workflow", "CronCreate", "CronDelete"}},

	{"Codex", ClassRead, []string{"read_file", "list_dir", "grep_files", "view_image", "update_plan", "get_memory", "request_user_input",
		"tool_search", "tool_suggest", "get_goal", "create_goal", "update_goal"}},
	{"Codex", ClassEdit, []string{"apply_patch"}},
	{"Codex", ClassShell, []string{"shell", "shell_command", "local_shell", "container.exec", "unified_exec", "exec_command", "write_stdin", "exec", "js_repl", "js_repl_reset"}},
	{"Codex", ClassNetwork, []string{"web_search", "image_generation", "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"}},
	{"Codex", ClassDelegate, []string{"spawn_agent", "spawn_agents_on_csv", "report_agent_job_result", "send_input", "send_message", "followup_task",
		"wait", "wait_agent", "resume_agent", "interrupt_agent", "list_agents", "close_agent"}},

	{"DeepSeek Harness", ClassRead, []string{"read", "read_image", "glob", "grep", "skill", "session_event_read", "session_event_trace", "session_trace",
		"ask_user_question", "todo_write", "report"}},
	{"DeepSeek Harness", ClassEdit, []string{"write", "edit"}},
	{"DeepSeek Harness", ClassShell, []string{"bash", "job_output", "job_list", "job_kill"}},
	{"DeepSeek Harness", ClassNetwork, []string{"web_fetch"}},
	{"DeepSeek Harness", ClassDelegate, []string{"subagent", "subagent_fork", "workflow", "ralph"}},

	{"deny rules", ClassEdit, []string{"file", "write_file", "edit_file"}},
	{"deny rules", ClassShell, []string{"exec_shell", "run_tests", "run_verifiers"}},
	{"deny rules", ClassNetwork, []string{"fetch_url"}},
}

// classTables are the names as sent, and the same with A to Z lowered.
// Names that differ in letter case alone have one class, which a test checks:
// else the order of the rows would decide.
var classTables = sync.OnceValues(func() (exact, folded map[string]Class) {
	exact, folded = map[string]Class{}, map[string]Class{}
	for _, row := range toolNames {
		for _, n := range row.names {
			exact[n], folded[lowerASCII(n)] = row.class, row.class
		}
	}
	return exact, folded
})

// ClassTable returns the built-in names and their classes, in byte order of the
// names: what a harness has to show for [ClassTableVersion].
func ClassTable() []PaletteEntry {
	classTable, _ := classTables()
	names := slices.Sorted(maps.Keys(classTable))
	table := make([]PaletteEntry, len(names))
	for i, n := range names {
		table[i] = PaletteEntry{Name: n, Class: classTable[n]}
	}
	return table
}
