package claudecode

import (
	"fmt"

	"childlog/cmd/childlog/internal/importer"
)

// router tells which conversation of a file a line belongs to. A file holds
// one, but for sessions of versions that wrote their sidechains inline: there
// each sidechain is a conversation of its own. A sidechain is known by its
// lines' agentId, or by the uuid of the line before it in its chain. What the
// file begins with is its main conversation, whatever it says of itself.
type router struct {
	inline  bool // a session's file: sidechains in it are others'
	byAgent map[string]int
	byUUID  map[key]int
	count   int // conversations so far, the main one included
}

// Bounds of the sidechains that are told apart in one file. Lines beyond stay
// in the main conversation.
const (
	maxInline     = 1024
	maxChainUUIDs = 1 << 20
)

const mainConv = 0

func newRouter(inline bool) *router {
	return &router{inline: inline, byAgent: map[string]int{}, byUUID: map[key]int{}, count: 1}
}

// of returns the conversation of a line, by its index; the next free index
// begins one.
func (r *router) of(line int64, e *entry, m *mapper) int {
	if !r.inline || e == nil || !isTrue(e.sidechain) {
		return mainConv
	}
	uuid := str(e.uuid)
	i, ok := r.known(e)
	switch {
	case line == 1:
		i = mainConv
	case ok:
	case uuid == "" && str(e.agent) == "": // nothing that it could be found again by
		return mainConv
	case r.count >= maxInline:
		m.line = line
		m.once(codeTooManyChains, fmt.Sprintf("more than %d sidechains in one file: those from here on stay in the session's own log", maxInline))
		return mainConv
	default:
		i = r.count
		r.count++
	}
	if agent := str(e.agent); agent != "" {
		r.byAgent[agent] = i
	} else if uuid != "" && len(r.byUUID) < maxChainUUIDs {
		r.byUUID[keyOf(uuid)] = i
	}
	return i
}

func (r *router) known(e *entry) (int, bool) {
	if agent := str(e.agent); agent != "" {
		i, ok := r.byAgent[agent]
		return i, ok
	}
	i, ok := r.byUUID[keyOf(str(e.parentUUID))]
	return i, ok
}

// chainName is what a sidechain of a session's file is called in its external
// id: apart from the agents that have a file of their own.
func chainName(e *entry) string {
	if agent := str(e.agent); agent != "" {
		return "inline/" + importer.Bounded(agent)
	}
	return "inline/" + importer.Bounded(str(e.uuid))
}
