package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Role is the kind of work a child is made for. It picks a preset, the widest
// the child can be; it never grants: a parent's wish for another role of its
// child is free, since what the child may do comes from the parent's grant. The
// strings are recorded in logs.
type Role string

// The roles.
const (
	RoleGeneral   Role = "general"
	RoleExplore   Role = "explore"
	RolePlanner   Role = "planner"
	RoleReviewer  Role = "reviewer"
	RoleImplement Role = "implement"
	RoleTest      Role = "test"
	RoleAdvisor   Role = "advisor"
	RoleCustom    Role = "custom"
)

// Preset is what a role is meant for. It narrows a child beside its parent's
// authority and its request.
type Preset struct {
	Permissions Permissions // write where Files is write; the network is for the parent to give or not
	Shell       Shell       // of the profile
	Files       Files
	GrantShell  GrantShell
	Surface     Surface
}

// roleRow is a line of the role table: the names other harnesses use for a
// role, and its preset.
type roleRow struct {
	role    Role
	aliases []string
	preset  Preset
}

// The presets of roles that look, and of roles that do. A looker keeps the
// network: looking something up is reading.
var (
	looking = Preset{Permissions: Permissions{Network: true}, Shell: ShellFull, Files: FilesRead, GrantShell: GrantInspect, Surface: SurfaceEvidence}
	doing   = Preset{Permissions: Permissions{Write: true, Network: true}, Shell: ShellFull, Files: FilesWrite, GrantShell: GrantFull, Surface: SurfaceInherited}
)

// The table is part of what receipts mean: a child keeps what was granted, so
// a change here reaches only children to come.
var roleTable = []roleRow{
	{RoleGeneral, []string{"worker", "general-purpose", "general_purpose", "default"}, doing},
	{RoleExplore, []string{"scout", "exploration", "explorer"}, looking},
	{RolePlanner, []string{"plan", "planning", "awaiter"}, looking.with(ShellReadOnly, GrantInspect)},
	{RoleReviewer, []string{"review", "code-review", "code_review"}, looking},
	{RoleImplement, []string{"builder", "implementer", "implementation"}, doing},
	{RoleTest, []string{"verifier", "verify", "verification", "validator", "tester"}, looking.with(ShellFull, GrantVerify)},
	{RoleAdvisor, []string{"consultant", "oracle"}, looking.with(ShellNone, GrantNone)},
	{RoleCustom, nil, doing},
}

// with is the preset of a role that looks with another shell and, unlike the
// explorer and the reviewer, has the surface of its parent.
func (p Preset) with(profile Shell, grant GrantShell) Preset {
	p.Shell, p.GrantShell, p.Surface = profile, grant, SurfaceInherited
	return p
}

// ParseRole returns the role that s names, itself or by an alias, without outer
// spaces and with A to Z lowered; other letters stay, so that a look-alike such
// as the Kelvin sign is not folded into a role. Else a [*UnknownRoleError].
func ParseRole(s string) (Role, error) {
	name := lowerASCII(strings.TrimSpace(s))
	for _, row := range roleTable {
		if name == string(row.role) || slices.Contains(row.aliases, name) {
			return row.role, nil
		}
	}
	return "", &UnknownRoleError{Got: s, Known: roleNames()}
}

// Roles returns all roles, in the order of the table.
func Roles() []Role {
	all := make([]Role, len(roleTable))
	for i, row := range roleTable {
		all[i] = row.role
	}
	return all
}

// Known reports whether r is one of the roles, not an alias of one.
func (r Role) Known() bool { return slices.Contains(Roles(), r) }

// Aliases returns the other names of r, nil if it has none or is unknown.
func (r Role) Aliases() []string { return slices.Clone(r.row().aliases) }

// Preset returns what r is meant for. An unknown role is meant for nothing.
func (r Role) Preset() Preset { return r.row().preset }

func (r Role) row() roleRow {
	for _, row := range roleTable {
		if row.role == r {
			return row
		}
	}
	return roleRow{}
}

// Half returns the preset as a ceiling: open in everything a role does not speak of.
func (p Preset) Half() Half {
	h := TopHalf()
	h.Profile.Permissions, h.Profile.Shell = p.Permissions, p.Shell
	h.Grant.Files, h.Grant.Shell, h.Grant.Surface = p.Files, p.GrantShell, p.Surface
	return h
}

// UnknownRoleError says that a name is no role. It unwraps to [ErrInvalid].
type UnknownRoleError struct {
	Got   string   // as given
	Known []string // the roles, without their aliases
}

// Error renders the name and the roles on one line. A long name is cut.
func (e *UnknownRoleError) Error() string {
	return fmt.Sprintf("%v: role: got %s, want %s", ErrInvalid, quoted(e.Got), strings.Join(e.Known, ", "))
}

// Unwrap returns [ErrInvalid].
func (e *UnknownRoleError) Unwrap() error { return ErrInvalid }

func roleNames() []string {
	names := make([]string, len(roleTable))
	for i, row := range roleTable {
		names[i] = string(row.role)
	}
	return names
}

// lowerASCII lowers A to Z and nothing else. Names of policy are compared under
// it alone: Unicode case mapping would make names of other alphabets equal to
// the ones a rule means.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, s)
}
