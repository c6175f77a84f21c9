package doctor

import (
	"fmt"
	"slices"

	"childlog/cmd/childlog/internal/install"
)

// Versions of Claude Code from which on a guard can rely on something. Source:
// CHANGELOG.md of anthropics/claude-code.
var (
	namesAgents = []int{2, 1, 69}  // agent_id in the input of every hook of an agent
	failsClosed = []int{2, 1, 295} // onFailure: block
)

// age tells what a harness is too old for. A version that can't be read is passed
// over: it was told already, as it is.
func (r *report) age(h *install.Harness, path, version string) {
	var v [3]int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); h != install.ClaudeCode || err != nil {
		return
	}
	switch {
	case slices.Compare(v[:], namesAgents) < 0:
		r.add(h.Name, Problem, path, "update Claude Code", "before version 2.1.69 it does not say which calls are an agent's: they are decided as the session's own, which may do more")
	case slices.Compare(v[:], failsClosed) < 0:
		r.add(h.Name, Warning, path, "update Claude Code", "before version 2.1.295 it lets a call through where the guard can't be started or is killed")
	}
}
