package torture_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// workspace is that of every session. Only one is used, so that the roots of a
// sandbox follow from its mode.
const workspace = "/srv/project"

// sandbox is a sandbox in the model: how much is writable (0 nothing, 1 the
// workspace, 2 everything) and whether there is a network.
type sandbox struct {
	level   int
	network bool
}

var modes = []policy.Mode{policy.ReadOnly, policy.WorkspaceWrite, policy.DangerFullAccess}

func (v sandbox) meet(o sandbox) sandbox {
	return sandbox{min(v.level, o.level), v.network && o.network}
}

func (v sandbox) within(o sandbox) bool { return v.meet(o) == v }

func (v sandbox) setting() *policy.Setting {
	return &policy.Setting{Mode: modes[v.level], Network: &v.network}
}

var anything = sandbox{2, true}

// member is a session in the model, and how many events of the closed families
// its log holds.
type member struct {
	id       uuid.UUID
	parent   int // among the members; -1: a root
	depth    int
	def      sandbox // recorded at creation
	bound    sandbox
	own      sandbox // the last switch or what was captured
	explicit bool
	narrowed bool
	files    int // none, read, write
	shell    int // none, inspect, verify, full
	denied   []string
	counts   map[string]int
}

// roles of children, and what their presets leave: files, shell.
var presets = []struct {
	role         string
	files, shell int
}{{"general", 2, 3}, {"explore", 1, 1}, {"test", 1, 2}, {"advisor", 1, 0}, {"implement", 2, 3}, {"planner", 1, 1}}

// newRoot is a root with an override, or with nothing but its default.
func newRoot(id uuid.UUID, explicit bool) *member {
	m := &member{id: id, parent: -1, def: sandbox{1, false}, bound: anything, own: sandbox{1, false}, files: 2, shell: 3,
		counts: map[string]int{eventlog.TypeSessionCreated: 1}}
	if explicit {
		m.own, m.explicit = anything, true
		m.counts[eventlog.TypeSandboxMode]++
	}
	return m
}

func (m *member) effective() sandbox { return m.bound.meet(m.own) }

// delegate is the child that a parent has at this moment.
func (m *member) delegate(id uuid.UUID, parent, preset int) *member {
	c := &member{id: id, parent: parent, depth: m.depth + 1, def: m.def, bound: m.def, own: m.def, denied: slices.Clone(m.denied),
		files: min(m.files, presets[preset].files), shell: min(m.shell, presets[preset].shell),
		counts: map[string]int{eventlog.TypeSessionCreated: 1, eventlog.TypeDelegationGranted: 1, eventlog.TypeApprovalPolicy: 1}}
	if m.explicit || m.narrowed {
		c.bound = m.effective()
		if !m.explicit {
			c.bound = c.bound.meet(c.def)
		}
		c.own, c.explicit = c.bound, true
		c.counts[eventlog.TypeSandboxMode]++
	}
	m.counts[eventlog.TypeDelegationStarted]++
	return c
}

// narrow meets a ceiling in and says whether that changed anything.
func (m *member) narrow(ceiling *sandbox, deny string) {
	changed := false
	if ceiling != nil && !m.bound.within(*ceiling) {
		m.bound, m.narrowed, changed = m.bound.meet(*ceiling), true, true
	}
	if deny != "" && !slices.Contains(m.denied, deny) {
		m.denied, changed = append(m.denied, deny), true
		slices.Sort(m.denied)
	}
	if changed {
		m.counts[eventlog.TypePolicyNarrowed]++
	}
}

// set is a switch of the session's own, which is refused beyond the bound.
func (m *member) set(v sandbox) (refused bool) {
	if !v.within(m.bound) {
		return true
	}
	m.own, m.explicit = v, true
	m.counts[eventlog.TypeSandboxMode]++
	return false
}

func (m *member) clone() *member {
	c := *m
	c.denied, c.counts = slices.Clone(m.denied), maps.Clone(m.counts)
	return &c
}

// describe states a member in words that stated brings from a store too.
func (m *member) describe() string {
	pin := "ask"
	if m.parent >= 0 {
		pin = "never"
	}
	return line(m.id, m.depth, m.effective(), pin, m.files, m.shell, m.denied, m.counts)
}

func line(id uuid.UUID, depth int, v sandbox, approvals string, files, shell int, denied []string, counts map[string]int) string {
	var events []string
	for _, typ := range slices.Sorted(maps.Keys(counts)) {
		events = append(events, fmt.Sprintf("%s %d", typ, counts[typ]))
	}
	return fmt.Sprintf("%s: depth %d, level %d network %t, approvals %s, files %d shell %d, denied %v, %s",
		id, depth, v.level, v.network, approvals, files, shell, denied, strings.Join(events, ", "))
}

// stated is what a store says of a session, as describe says it of a member.
func stated(e *replay.Effective, counts map[string]int) (string, error) {
	v := e.Sandbox.Value
	level := slices.Index(modes, v.Mode)
	roots := v.Roots.List()
	if want := []string{workspace}; level == 1 && !slices.Equal(roots, want) || level == 0 && len(roots) > 0 {
		return "", fmt.Errorf("%w: session %s: %s", errPolicy, e.Session, v)
	}
	own := e.Authority.Own
	if !own.Equal(e.Authority.Delegable) {
		return "", fmt.Errorf("%w: session %s hands on another half than its own", errPolicy, e.Session)
	}
	denied := []string{}
	for _, d := range own.Profile.Denied.Entries() {
		if !slices.Contains(denied, d.Pattern) {
			denied = append(denied, d.Pattern)
		}
	}
	slices.Sort(denied)
	files := slices.Index([]policy.Files{policy.FilesNone, policy.FilesRead, policy.FilesWrite}, own.Grant.Files)
	shell := slices.Index([]policy.GrantShell{policy.GrantNone, policy.GrantInspect, policy.GrantVerify, policy.GrantFull}, own.Grant.Shell)
	return line(e.Session, e.Depth, sandbox{level, v.Network}, string(e.Approvals), files, shell, denied, counts), nil
}
