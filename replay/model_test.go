package replay_test

import (
	"strings"

	"github.com/google/uuid"

	"childlog/policy"
)

// A model of what sessions may do that knows nothing of package policy: a
// sandbox is the set of the things that it permits, as bits, and to meet two
// is to intersect the sets. If a tuple with its special cases and this agree
// over every history, no special case lets something through.
type bits uint64

const (
	bitWorkspaceMode bits = 1 << iota
	bitEverything
	bitNetwork
	bitTmpdir
	bitSlashTmp
	bitUnknownDir // the directory of a workspace that was not recorded
	bitFirstPath
)

// modelDirs are the directories that settings are made of; a file below each,
// and each itself, is probed.
var modelDirs = []string{"/w", "/w/a", "/w/a/b", "/w/b", "/x", "/wx"}

func probes() (paths []string) {
	for _, d := range modelDirs {
		paths = append(paths, d, d+"/file")
	}
	return append(paths, "/")
}

var allBits = bitFirstPath<<len(probes()) - 1

// stated is what a setting permits in a workspace, "" for none.
func stated(s policy.Setting, workspace string) bits {
	network := s.Network != nil && *s.Network
	var b bits
	switch s.Mode {
	case policy.DangerFullAccess:
		return allBits
	case policy.WorkspaceWrite:
		b |= bitWorkspaceMode
		if !s.ExcludeTmpdirEnvVar {
			b |= bitTmpdir
		}
		if !s.ExcludeSlashTmp {
			b |= bitSlashTmp
		}
		roots := s.WritableRoots
		if workspace != "" {
			roots = append([]string{workspace}, roots...)
		}
		if len(roots) == 0 {
			b |= bitUnknownDir
		}
		for i, p := range probes() {
			for _, r := range roots {
				if p == r || strings.HasPrefix(p, r+"/") {
					b |= bitFirstPath << i
				}
			}
		}
	}
	if network {
		b |= bitNetwork
	}
	return b
}

// permitted is what a value of the module permits, asked only through what a
// harness would ask.
func permitted(v policy.Sandbox) bits {
	var b bits
	if v.Network {
		b |= bitNetwork
	}
	switch v.Mode {
	case policy.DangerFullAccess:
		return allBits
	case policy.WorkspaceWrite:
		b |= bitWorkspaceMode
		if !v.ExcludeTmpdirEnvVar {
			b |= bitTmpdir
		}
		if !v.ExcludeSlashTmp {
			b |= bitSlashTmp
		}
		if !v.Roots.Recorded() {
			b |= bitUnknownDir
		}
		for i, p := range probes() {
			if v.Roots.Contains(p) {
				b |= bitFirstPath << i
			}
		}
	}
	return b
}

// state is what a session may do at a seq.
type state struct {
	effective, bound bits
	asks             bool
	explicit         bool
}

// msession is a session of the model.
type msession struct {
	id        uuid.UUID
	parent    *msession
	children  []*msession
	depth     int
	maxDepth  int
	workspace string
	oneShot   bool

	def        bits
	bound, own bits
	asks       bool
	explicit   bool
	narrowed   bool
	closed     bool
	settled    bool
	born, head uint64
	states     map[uint64]state // from born on
	narrowings map[uint64]bits
}

func (m *msession) now() state {
	return state{effective: m.bound & m.own, bound: m.bound, asks: m.asks, explicit: m.explicit}
}

// moved notes that the log grew to head: the state holds for every seq since.
func (m *msession) moved(head uint64) {
	for seq := m.head + 1; seq <= head; seq++ {
		if seq >= m.born {
			m.states[seq] = m.now()
		}
	}
	m.head = head
}

// captured is what a delegation hands down: everything that is not the
// default alone.
func (m *msession) captured(childDefault bits) (bits, bool) {
	switch {
	case m.explicit:
		return m.bound & m.own, true
	case m.narrowed:
		return m.bound & m.own & childDefault, true
	}
	return 0, false
}

// within says whether a switch is admitted.
func (m *msession) within(b bits) bool { return b&^m.bound == 0 }

func (m *msession) subtree() []*msession {
	out := []*msession{m}
	for _, c := range m.children {
		out = append(out, c.subtree()...)
	}
	return out
}
