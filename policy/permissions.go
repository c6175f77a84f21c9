package policy

import (
	"slices"
	"strings"
)

// Permissions are what a profile may do beyond reading, which no profile takes
// away. The zero value permits neither.
type Permissions struct {
	Write   bool // change files
	Network bool // reach the network; in effect only where the sandbox does too
}

// ParsePermissions is the inverse of [Permissions.String], compared exactly,
// else a wrapped [ErrInvalid].
func ParsePermissions(s string) (Permissions, error) {
	for _, p := range []Permissions{{}, {Write: true}, {Network: true}, {Write: true, Network: true}} {
		if s == p.String() {
			return p, nil
		}
	}
	return Permissions{}, invalid("permissions: got %s, want read, then optionally ,write and ,network", quoted(s))
}

// String renders the permissions as "read", "read,write", "read,network" or
// "read,write,network".
func (p Permissions) String() string {
	s := "read"
	if p.Write {
		s += ",write"
	}
	if p.Network {
		s += ",network"
	}
	return s
}

// Meet returns what both permit.
func (p Permissions) Meet(o Permissions) Permissions {
	return Permissions{Write: p.Write && o.Write, Network: p.Network && o.Network}
}

// Within reports whether p permits nothing that o does not.
func (p Permissions) Within(o Permissions) bool { return p.Meet(o) == p }

// NetworkInEffect reports whether a session under both reaches the network: a
// sandbox that has it lends it to nobody whose profile does not.
func (p Permissions) NetworkInEffect(s Sandbox) bool { return p.Network && s.Canonical().Network }

// Shell is how far a profile reaches for a shell. The strings are recorded in
// logs. The zero value and anything unknown are worth none.
type Shell string

// The shells of a profile, each permitting what the one before does.
const (
	ShellNone     Shell = "none"
	ShellReadOnly Shell = "read_only"
	ShellFull     Shell = "full"
)

var shells = []Shell{ShellNone, ShellReadOnly, ShellFull}

// ParseShell returns the shell named s, compared exactly, else a wrapped
// [ErrInvalid].
func ParseShell(s string) (Shell, error) { return parseLevel("shell", s, shells) }

// String returns the name of what s is worth.
func (s Shell) String() string { return string(worth(s, shells)) }

// Meet returns the lower of both.
func (s Shell) Meet(o Shell) Shell { return lower(s, o, shells) }

// Within reports whether s is at most o.
func (s Shell) Within(o Shell) bool { return rank(s, shells) <= rank(o, shells) }

// Cap returns the most a grant may hold under a profile with shell s: a
// profile that only reads is worth inspecting, never verifying, since a test
// run executes whatever the tests say.
func (s Shell) Cap() GrantShell {
	return []GrantShell{GrantNone, GrantInspect, GrantFull}[rank(s, shells)]
}

// GrantShell is what a grant says of shell calls. Inspect and verify admit only
// calls that carry the verdict of a named classifier; a call without one needs
// full. The strings are recorded in logs. The zero value and anything unknown
// are worth none.
type GrantShell string

// The shells of a grant, each permitting what the one before does.
const (
	GrantNone    GrantShell = "none"
	GrantInspect GrantShell = "inspect" // commands that change nothing
	GrantVerify  GrantShell = "verify"  // and the checks of the workspace
	GrantFull    GrantShell = "full"    // and raw commands
)

var grantShells = []GrantShell{GrantNone, GrantInspect, GrantVerify, GrantFull}

// ParseGrantShell returns the shell named s, compared exactly, else a wrapped
// [ErrInvalid].
func ParseGrantShell(s string) (GrantShell, error) { return parseLevel("grant shell", s, grantShells) }

// String returns the name of what g is worth.
func (g GrantShell) String() string { return string(worth(g, grantShells)) }

// Meet returns the lower of both.
func (g GrantShell) Meet(o GrantShell) GrantShell { return lower(g, o, grantShells) }

// Within reports whether g is at most o.
func (g GrantShell) Within(o GrantShell) bool { return rank(g, grantShells) <= rank(o, grantShells) }

// Admits reports whether a shell call that needs the given level may run.
// A need of none, or an unknown one, counts as full: no shell call needs
// nothing, so whoever says so has not classified it.
func (g GrantShell) Admits(need GrantShell) bool {
	if need != GrantInspect && need != GrantVerify {
		need = GrantFull
	}
	return need.Within(g)
}

// Transport returns the word for a grant's shell in the three-valued field of
// other harnesses: none, read_only, and full for verify and full. It is for
// output only. Read back, it would turn verify into full.
func Transport(g GrantShell) string {
	return []string{"none", "read_only", "full", "full"}[rank(g, grantShells)]
}

// Files is what a grant says of files. The strings are recorded in logs. The
// zero value and anything unknown are worth none.
type Files string

// The levels of file access, each permitting what the one before does.
const (
	FilesNone  Files = "none"
	FilesRead  Files = "read"
	FilesWrite Files = "write"
)

var filesLevels = []Files{FilesNone, FilesRead, FilesWrite}

// ParseFiles returns the level named s, compared exactly, else a wrapped
// [ErrInvalid].
func ParseFiles(s string) (Files, error) { return parseLevel("files", s, filesLevels) }

// String returns the name of what f is worth.
func (f Files) String() string { return string(worth(f, filesLevels)) }

// Meet returns the lower of both.
func (f Files) Meet(o Files) Files { return lower(f, o, filesLevels) }

// Within reports whether f is at most o.
func (f Files) Within(o Files) bool { return rank(f, filesLevels) <= rank(o, filesLevels) }

// Surface says which of its harness's tools a session is meant to be shown:
// those that gather evidence, or those its parent has. The strings are recorded
// in logs. The zero value and anything unknown are worth evidence.
type Surface string

// The surfaces, each showing what the one before does.
const (
	SurfaceEvidence  Surface = "evidence"
	SurfaceInherited Surface = "inherited"
)

var surfaces = []Surface{SurfaceEvidence, SurfaceInherited}

// ParseSurface returns the surface named s, compared exactly, else a wrapped
// [ErrInvalid].
func ParseSurface(s string) (Surface, error) { return parseLevel("surface", s, surfaces) }

// String returns the name of what s is worth.
func (s Surface) String() string { return string(worth(s, surfaces)) }

// Meet returns the lower of both.
func (s Surface) Meet(o Surface) Surface { return lower(s, o, surfaces) }

// Within reports whether s is at most o.
func (s Surface) Within(o Surface) bool { return rank(s, surfaces) <= rank(o, surfaces) }

// rank is the place of l in a ladder that begins with the narrowest level. An
// unknown level, from a newer version or a forger, stands at the bottom.
func rank[L ~string](l L, ladder []L) int { return max(0, slices.Index(ladder, l)) }

func worth[L ~string](l L, ladder []L) L { return ladder[rank(l, ladder)] }

func lower[L ~string](a, b L, ladder []L) L { return ladder[min(rank(a, ladder), rank(b, ladder))] }

func parseLevel[L ~string](what, s string, ladder []L) (L, error) {
	if l := L(s); slices.Contains(ladder, l) {
		return l, nil
	}
	names := make([]string, len(ladder))
	for i, l := range ladder {
		names[i] = string(l)
	}
	return ladder[0], invalid("%s: got %s, want %s", what, quoted(s), strings.Join(names, ", "))
}

// checkLevel is parseLevel for a value that was decoded or written as a literal.
func checkLevel[L ~string](what string, l L, ladder []L) error {
	_, err := parseLevel(what, string(l), ladder)
	return err
}
