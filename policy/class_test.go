package policy_test

import (
	"slices"
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func classOf(t *testing.T, name string) policy.Tool {
	tool, err := policy.Palette{}.Classify(name)
	require.NoError(t, err)
	return tool
}

// The table is valid, sorted, and of one mind about names that differ in letter
// case alone.
func TestClassTable(t *testing.T) {
	table := policy.ClassTable()
	assert.True(t, slices.IsSortedFunc(table, func(a, b policy.PaletteEntry) int { return strings.Compare(a.Name, b.Name) }))
	folded := map[string]policy.Class{}
	for _, e := range table {
		require.NoError(t, policy.CheckToolName(e.Name))
		_, err := policy.ParseClass(string(e.Class))
		require.NoError(t, err)
		assert.NotEqual(t, policy.ClassOpaque, e.Class, "%s: an unknown name is opaque without a row", e.Name)
		name := strings.ToLower(e.Name)
		if have, ok := folded[name]; ok {
			assert.Equal(t, have, e.Class, e.Name)
		}
		folded[name] = e.Class

		tool := classOf(t, e.Name)
		assert.Equal(t, policy.Tool{Given: e.Name, Canonical: name, Class: e.Class, Known: true}, tool)
		assert.Equal(t, policy.Effect(e.Class), policy.EffectOf(e.Name, string(e.Class)), "guards know the class")
	}
	_, err := policy.ParseClass("Shell")
	require.ErrorIs(t, err, policy.ErrInvalid)
}

// Version 1 in the names that a receipt of it relies on. Who changes a row has
// to raise the version and to keep these.
func TestClassTableVersion1(t *testing.T) {
	require.Equal(t, 1, policy.ClassTableVersion)
	for class, names := range map[policy.Class]string{
		policy.ClassRead:     "Read Glob Grep LS NotebookRead TodoWrite AskUserQuestion view_image update_plan read_file list_dir read grep glob ask_user_question todo_write",
		policy.ClassEdit:     "Write Edit MultiEdit NotebookEdit apply_patch write edit file write_file edit_file",
		policy.ClassShell:    "Bash BashOutput KillShell PowerShell shell local_shell container.exec exec_command write_stdin bash job_output exec_shell run_tests",
		policy.ClassNetwork:  "WebFetch WebSearch web_search web_fetch fetch_url read_mcp_resource",
		policy.ClassDelegate: "Task Agent spawn_agent send_input wait close_agent resume_agent subagent subagent_fork send_message",
		policy.ClassOpaque:   "mcp__github__list SlashCommand run_terminal_cmd str_replace_based_edit_tool functions.exec_command",
	} {
		for _, name := range strings.Fields(names) {
			tool := classOf(t, name)
			assert.Equal(t, class, tool.Class, name)
			assert.Equal(t, class != policy.ClassOpaque, tool.Known, name)
		}
	}
}

// Letter case apart is another tool: it never gets what its look-alike may by
// reading, and is bound by what the look-alike is bound by.
func TestLookAlikes(t *testing.T) {
	for name, class := range map[string]policy.Class{
		"BASH": policy.ClassShell, "WRITE": policy.ClassEdit, "webfetch": policy.ClassNetwork, "task": policy.ClassDelegate,
		"READ": policy.ClassOpaque, "todowrite": policy.ClassOpaque,
	} {
		tool := classOf(t, name)
		assert.Equal(t, class, tool.Class, name)
		assert.False(t, tool.Known, name)
		assert.Equal(t, strings.ToLower(name), tool.Canonical)
	}
}

func TestPalette(t *testing.T) {
	p, err := policy.NewPalette(
		policy.PaletteEntry{Name: "run_terminal_cmd", Class: policy.ClassShell},
		policy.PaletteEntry{Name: "codebase_search", Class: policy.ClassRead},
		policy.PaletteEntry{Name: "codebase_search", Class: policy.ClassRead},
		policy.PaletteEntry{Name: "Bash", Class: policy.ClassShell},
		policy.PaletteEntry{Name: "BASH", Class: policy.ClassShell},
		policy.PaletteEntry{Name: "mystery", Class: policy.ClassOpaque},
	)
	require.NoError(t, err)
	assert.Equal(t, []string{"BASH", "Bash", "codebase_search", "mystery", "run_terminal_cmd"}, entryNames(p))

	for name, want := range map[string]policy.Tool{
		"run_terminal_cmd": {Class: policy.ClassShell, Known: true},
		"Run_Terminal_Cmd": {Class: policy.ClassShell},
		"codebase_search":  {Class: policy.ClassRead, Known: true},
		"Codebase_Search":  {Class: policy.ClassOpaque},
		"BASH":             {Class: policy.ClassShell, Known: true},
		"mystery":          {Class: policy.ClassOpaque},
		"Mystery":          {Class: policy.ClassOpaque},
		"edit":             {Class: policy.ClassEdit, Known: true},
		"other":            {Class: policy.ClassOpaque},
	} {
		got, err := p.Classify(name)
		require.NoError(t, err)
		want.Given, want.Canonical = name, strings.ToLower(name)
		assert.Equal(t, want, got)
	}

	for why, entries := range map[string][]policy.PaletteEntry{
		"another class than the table's": {{Name: "bash", Class: policy.ClassRead}},
		"likewise, letter case apart":    {{Name: "BASH", Class: policy.ClassRead}},
		"two classes":                    {{Name: "x", Class: policy.ClassRead}, {Name: "x", Class: policy.ClassShell}},
		"two classes, letter case apart": {{Name: "x", Class: policy.ClassRead}, {Name: "X", Class: policy.ClassShell}},
		"no class":                       {{Name: "x"}},
		"an unknown class":               {{Name: "x", Class: "safe"}},
		"no name":                        {{Name: "", Class: policy.ClassRead}},
		"no tool name":                   {{Name: "rеad", Class: policy.ClassRead}},
		"too many":                       manyEntries(1025),
	} {
		_, err := policy.NewPalette(entries...)
		require.ErrorIs(t, err, policy.ErrInvalid, why)
	}

	given := []policy.PaletteEntry{{Name: "b", Class: policy.ClassRead}, {Name: "a", Class: policy.ClassRead}}
	p, err = policy.NewPalette(given...)
	require.NoError(t, err)
	assert.Equal(t, "b", given[0].Name, "the caller's list is not sorted")
	p.Entries()[0].Class = policy.ClassShell
	assert.Equal(t, policy.ClassRead, p.Entries()[0].Class)

	same, err := policy.NewPalette(given[1], given[0])
	require.NoError(t, err)
	assert.Equal(t, p.Digest(), same.Digest())
	assert.NotEqual(t, p.Digest(), policy.Palette{}.Digest())
}

func entryNames(p policy.Palette) (names []string) {
	for _, e := range p.Entries() {
		names = append(names, e.Name)
	}
	return names
}

func manyEntries(n int) (entries []policy.PaletteEntry) {
	for _, name := range numbered("t%d", n) {
		entries = append(entries, policy.PaletteEntry{Name: name, Class: policy.ClassRead})
	}
	return entries
}
