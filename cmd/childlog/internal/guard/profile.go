package guard

import (
	"fmt"
	"slices"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
)

// capabilityApprove is the capability of a session whose allowed calls skip the
// harness's own question. It is recorded in the root's profile like every other,
// handed on like every other, and can be narrowed away.
const capabilityApprove = "approve"

// Policy is what a root that a guard makes may do. It is recorded in the root's
// log when the root is made, and from then on only the log counts.
type Policy struct {
	Profile   string // the shipped profile that it began with
	Mode      policy.Mode
	Network   bool
	Shell     policy.Shell
	Spawn     bool
	Approvals policy.Approval
	DenyTools []string  // patterns, see [policy.DenyEntry]
	Scope     *[]string // places below the workspace that may be written; nil: as the sandbox says
	MaxDepth  int       // of delegations; 0: [materialize.DefaultMaxDepth]
	Approve   bool      // an allowed call skips the question that the harness would ask
	Palette   policy.Palette
}

// Shipped is a profile that comes with childlog.
type Shipped struct {
	Policy
	About string
}

// Names of the shipped profiles.
const (
	ProfileReadOnly = "read-only"
	ProfileEditHere = "edit-here"
	ProfileTrusted  = "trusted"

	DefaultProfile = ProfileEditHere
)

// Profiles returns the shipped profiles, from the narrowest to the widest.
//
// None of them approves anything: what a guard allows, the harness may still
// ask a person about. A shell has no arguments that name its files, so where
// edit-here lets commands run it is the harness's own sandbox and its own
// questions that bind what they touch. In read-only a command runs if the
// classifier that comes with childlog finds that it changes nothing (package
// inspect): Codex has no other way to look at a file.
func Profiles() []Shipped {
	return []Shipped{
		{Policy{Profile: ProfileReadOnly, Mode: policy.ReadOnly, Shell: policy.ShellReadOnly, Spawn: true, Approvals: policy.Never},
			"look, and change nothing: no edits, no network, and no commands but those that are known to change nothing"},
		{Policy{Profile: ProfileEditHere, Mode: policy.WorkspaceWrite, Shell: policy.ShellFull, Spawn: true, Approvals: policy.Ask},
			"edit files below the working directory and in /tmp, run commands; no network tools, no unknown tools"},
		{Policy{Profile: ProfileTrusted, Mode: policy.DangerFullAccess, Network: true, Shell: policy.ShellFull, Spawn: true, Approvals: policy.Ask},
			"everything that the harness lets through; recorded all the same"},
	}
}

// Named returns the shipped profile of that name. Errors: ErrInvalid.
func Named(name string) (Policy, error) {
	var names []string
	for _, p := range Profiles() {
		if p.Profile == name {
			return p.Policy, nil
		}
		names = append(names, p.Profile)
	}
	return Policy{}, fmt.Errorf("%w: profile: got %.40q, want one of %v", eventlog.ErrInvalid, name, names)
}

// modes and their order, narrowest first.
var modes = [...]policy.Mode{policy.ReadOnly, policy.WorkspaceWrite, policy.DangerFullAccess}

// Meet returns the most that both permit: p narrowed by o. What only one of them
// states counts; a palette is p's alone, since to declare a tool harmless is to
// permit it.
func (p Policy) Meet(o Policy) (Policy, error) {
	p.Mode = modes[min(slices.Index(modes[:], p.Mode), slices.Index(modes[:], o.Mode))]
	p.Network = p.Network && o.Network
	p.Shell = p.Shell.Meet(o.Shell)
	p.Spawn = p.Spawn && o.Spawn
	p.Approvals = p.Approvals.Meet(o.Approvals)
	p.Approve = p.Approve && o.Approve
	p.DenyTools = slices.Concat(p.DenyTools, o.DenyTools)
	if p.MaxDepth = lesser(p.MaxDepth, o.MaxDepth); p.Scope == nil {
		p.Scope = o.Scope
	} else if o.Scope != nil {
		a, err := policy.ParseScope(*p.Scope)
		if err != nil {
			return p, err
		}
		b, err := policy.ParseScope(*o.Scope)
		if err != nil {
			return p, err
		}
		both := a.Meet(b).Entries()
		p.Scope = &both
	}
	return p, nil
}

// lesser is the smaller number; 0 is none.
func lesser(a, b int) int {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return min(a, b)
}

// equal compares what a [Policy.Meet] can change.
func (p Policy) equal(o Policy) bool {
	sameScope := (p.Scope == nil) == (o.Scope == nil) && (p.Scope == nil || slices.Equal(*p.Scope, *o.Scope))
	return p.Mode == o.Mode && p.Network == o.Network && p.Shell == o.Shell && p.Spawn == o.Spawn && p.Approvals == o.Approvals &&
		p.Approve == o.Approve && slices.Equal(p.DenyTools, o.DenyTools) && p.MaxDepth == o.MaxDepth && sameScope
}

// setting is the sandbox of a root that works in cwd, whose links lead to at.
// Tools name files below the one or the other.
func (p Policy) setting(cwd, at string) *policy.Setting {
	s := &policy.Setting{Mode: p.Mode}
	if p.Mode != policy.DangerFullAccess { // which always has it: there the profile's permission takes it away
		s.Network = &p.Network
	}
	if p.Mode == policy.WorkspaceWrite && at != cwd {
		s.WritableRoots = []string{at}
	}
	return s
}

// profile is the policy/profile of a root.
func (p Policy) profile() (*materialize.Profile, error) {
	held := []string{policy.CapabilitySubagents}
	if p.Approve {
		held = append(held, capabilityApprove)
	}
	names, err := policy.NameSetOf(held...)
	if err != nil {
		return nil, err
	}
	shell, spawn := p.Shell, p.Spawn
	if p.Mode == policy.ReadOnly { // a command says not what it writes, and the harness need not sandbox it
		shell = shell.Meet(policy.ShellReadOnly)
	}
	own := policy.Wish{Permissions: &policy.Permissions{Write: p.Mode != policy.ReadOnly, Network: p.Network}, Shell: &shell, Spawn: &spawn,
		DeniedTools: p.DenyTools, Capabilities: names, WriteScope: p.Scope}
	return &materialize.Profile{Own: own, Palette: p.Palette}, nil
}

// approves reports whether an authority says that allowed calls skip the
// harness's question. That nobody said anything about capabilities, as of a root
// without a profile, is no such word.
func approves(a policy.Authority) bool {
	c := a.Own.Profile.Capabilities
	return c.Recorded() && c.Admits(capabilityApprove)
}
