package policy

import (
	"fmt"
	"strings"
)

// Mode is the coarse level of a [Sandbox]. The values are Codex's names and are
// recorded in logs. A log may hold others, such as external-sandbox: they are
// kept as read, are not [Mode.Known], and are worth read-only without network.
type Mode string

// The known modes, each permitting what the one before does.
const (
	ReadOnly         Mode = "read-only"
	WorkspaceWrite   Mode = "workspace-write"
	DangerFullAccess Mode = "danger-full-access"
)

// ParseMode returns the known mode named s, compared exactly, else a wrapped
// [ErrInvalid] that lists the three.
func ParseMode(s string) (Mode, error) {
	if m := Mode(s); m.Known() {
		return m, nil
	}
	return "", invalid("sandbox mode: got %q, want %s, %s or %s", s, ReadOnly, WorkspaceWrite, DangerFullAccess)
}

// Known reports whether m is one of the three modes.
func (m Mode) Known() bool { return m.rank() >= 0 }

// rank orders the known modes from the narrowest; unknown modes have no place
// in that order and get -1.
func (m Mode) rank() int {
	switch m {
	case ReadOnly:
		return 0
	case WorkspaceWrite:
		return 1
	case DangerFullAccess:
		return 2
	}
	return -1
}

// Sandbox is the resolved tuple an event records. It is complete at the time of
// recording, so that a replay never resolves anything again: the directory a
// child or a reader happens to run in cannot move its roots.
//
// The zero value is read-only without network. A literal can state things that
// contradict each other; [Sandbox.Validate] refuses them and
// [Sandbox.Canonical] says what they are worth.
type Sandbox struct {
	Mode    Mode
	Roots   Roots // workspace root and extra writable roots; absent with danger-full-access
	Network bool
	// The temp directories $TMPDIR and /tmp are writable under workspace-write
	// unless excluded.
	ExcludeTmpdirEnvVar, ExcludeSlashTmp bool
}

// Top returns danger-full-access: the value every other is within.
func Top() Sandbox { return Sandbox{Mode: DangerFullAccess, Network: true} }

// Validate reports, as a wrapped [ErrInvalid], why s must not be recorded: an
// unknown mode; roots, an exclusion or no network stated against
// danger-full-access, which would be dropped in silence; writable roots under
// read-only; more than 256 roots, the most that [RootsOf] reads back.
func (s Sandbox) Validate() error {
	if _, err := ParseMode(string(s.Mode)); err != nil {
		return err
	}
	roots := len(s.Roots.dirs)
	switch {
	case roots > maxRoots:
		return invalid("sandbox %s: got %d roots, want at most %d", s.Mode, roots, maxRoots)
	case s.Mode == ReadOnly && roots > 0:
		return invalid("sandbox %s: got writable roots %s, want none", s.Mode, s.Roots.text())
	case s.Mode != DangerFullAccess:
		return nil
	case s.Roots.Recorded():
		return invalid("sandbox %s: got stated roots (%s), want none stated", s.Mode, s.Roots.text())
	case !s.Network:
		return invalid("sandbox %s: got network off, want on", s.Mode)
	case s.ExcludeTmpdirEnvVar || s.ExcludeSlashTmp:
		return invalid("sandbox %s: got excluded temp directories, want none excluded", s.Mode)
	}
	return nil
}

// Canonical returns the one form of what s is worth, on which values are
// compared. Under read-only the roots are recorded as empty and the temp
// directories as excluded, since neither is writable. An unknown mode, and a
// danger-full-access that states a restriction (see [Sandbox.Validate]), are
// read-only without network: there is no saying what they meant, and reading
// either as permission would widen. Never wider than s in any component.
func (s Sandbox) Canonical() Sandbox {
	readOnly := Sandbox{
		Mode:                ReadOnly,
		Roots:               Roots{dirs: []string{}},
		Network:             s.Network,
		ExcludeTmpdirEnvVar: true,
		ExcludeSlashTmp:     true,
	}
	switch {
	case s.Mode == ReadOnly:
		return readOnly
	case s.Mode == WorkspaceWrite, s.Mode == DangerFullAccess && s.Validate() == nil:
		return s
	}
	readOnly.Network = false
	return readOnly
}

// Meet returns the most that s and o both permit, in canonical form: the lower
// mode, the roots by containment, the network if both have it, the exclusions
// of either. [Top] is its neutral element: the roots it does not list are all.
func (s Sandbox) Meet(o Sandbox) Sandbox {
	s, o = s.Canonical(), o.Canonical()
	switch {
	case s.Mode == DangerFullAccess:
		return o
	case o.Mode == DangerFullAccess:
		return s
	}
	mode := s.Mode
	if o.Mode.rank() < mode.rank() {
		mode = o.Mode
	}
	return Sandbox{
		Mode:                mode,
		Roots:               s.Roots.Meet(o.Roots),
		Network:             s.Network && o.Network,
		ExcludeTmpdirEnvVar: s.ExcludeTmpdirEnvVar || o.ExcludeTmpdirEnvVar,
		ExcludeSlashTmp:     s.ExcludeSlashTmp || o.ExcludeSlashTmp,
	}
}

// Within reports whether s permits nothing that o does not.
func (s Sandbox) Within(o Sandbox) bool { return s.Meet(o).Equal(s) }

// Equal reports whether s and o have the same canonical form.
func (s Sandbox) Equal(o Sandbox) bool {
	s, o = s.Canonical(), o.Canonical()
	return s.Mode == o.Mode && s.Roots.Equal(o.Roots) && s.Network == o.Network &&
		s.ExcludeTmpdirEnvVar == o.ExcludeTmpdirEnvVar && s.ExcludeSlashTmp == o.ExcludeSlashTmp
}

// String renders what s is worth on one line for people, such as
// "workspace-write /w (network off)". A stated mode that is not worth what it
// says is named behind. Paths and modes that could disturb the line are quoted.
func (s Sandbox) String() string {
	c := s.Canonical()
	var b strings.Builder
	b.WriteString(string(c.Mode))
	if c.Mode == WorkspaceWrite {
		b.WriteString(" " + c.Roots.text())
	}
	notes := []string{"network off"}
	if c.Network {
		notes[0] = "network on"
	}
	if c.Mode == WorkspaceWrite && c.ExcludeTmpdirEnvVar {
		notes = append(notes, "no $TMPDIR")
	}
	if c.Mode == WorkspaceWrite && c.ExcludeSlashTmp {
		notes = append(notes, "no /tmp")
	}
	if c.Mode != s.Mode {
		notes = append(notes, fmt.Sprintf("stated as %q", string(s.Mode)))
	}
	fmt.Fprintf(&b, " (%s)", strings.Join(notes, ", "))
	return b.String()
}
