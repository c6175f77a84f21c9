package policy

import "slices"

// Grant is what a session may do, as decisions are made on it. It comes from
// the parent's grant, never from the parent's profile: a profile says what a
// child is set up with, and a child set up with a full shell under an explorer
// still only inspects. The zero value grants nothing, not even reading.
type Grant struct {
	Files   Files
	Shell   GrantShell
	Network bool
	Desktop bool // always false: no session is granted one
	Surface Surface
	Spawn   bool // may delegate

	// MaxChildren is how many delegations the session may start in its life;
	// nil: as many as depth allows.
	MaxChildren *int

	// Scope is where files may be written; [Unscoped] where none was stated.
	// The zero value is the scope of nothing.
	Scope Scope
}

// Meet returns what both grant.
func (g Grant) Meet(o Grant) Grant {
	return Grant{
		Files:       g.Files.Meet(o.Files),
		Shell:       g.Shell.Meet(o.Shell),
		Network:     g.Network && o.Network,
		Surface:     g.Surface.Meet(o.Surface),
		Spawn:       g.Spawn && o.Spawn,
		MaxChildren: fewer(g.MaxChildren, o.MaxChildren),
		Scope:       g.Scope.Meet(o.Scope),
	}
}

// Within reports whether g grants nothing that o does not.
func (g Grant) Within(o Grant) bool {
	return g.Files.Within(o.Files) && g.Shell.Within(o.Shell) && (o.Network || !g.Network) && g.Surface.Within(o.Surface) &&
		(o.Spawn || !g.Spawn) && notMore(g.MaxChildren, o.MaxChildren) && g.Scope.Within(o.Scope)
}

// Validate reports, as a wrapped [ErrInvalid], why g must not be recorded: an
// unknown level, a desktop, a negative number of children or one beyond
// [MaxNumber].
func (g Grant) Validate() error {
	if err := checkLevel("files", g.Files, filesLevels); err != nil {
		return err
	}
	if err := checkLevel("grant shell", g.Shell, grantShells); err != nil {
		return err
	}
	if err := checkLevel("surface", g.Surface, surfaces); err != nil {
		return err
	}
	if g.Desktop {
		return invalid("desktop: got true, want false")
	}
	return checkCount("max children", g.MaxChildren, 0, MaxNumber)
}

// canonical returns what g is worth, sharing nothing with it.
func (g Grant) canonical() Grant {
	g.Files, g.Shell, g.Surface = worth(g.Files, filesLevels), worth(g.Shell, grantShells), worth(g.Surface, surfaces)
	g.Desktop = false
	g.MaxChildren = fewer(g.MaxChildren, nil)
	return g
}

// fewer returns a copy of the smaller count; nil is no limit.
func fewer(a, b *int) *int {
	if a == nil || b != nil && *b < *a {
		a = b
	}
	if a == nil {
		return nil
	}
	n := *a
	return &n
}

func notMore(a, b *int) bool { return b == nil || a != nil && *a <= *b }

func checkCount(what string, n *int, low, high int64) error {
	if n != nil && (int64(*n) < low || int64(*n) > high) {
		return invalid("%s: got %d, want %d to %d", what, *n, low, high)
	}
	return nil
}

// Profile is what a session is set up with: what it asks its harness for, and
// the lists and limits that come with it. What it may do is its [Grant]. The
// zero value permits reading, inherits its tools and denies none.
type Profile struct {
	Permissions  Permissions
	Shell        Shell
	Tools        Tools
	Denied       DenyList
	Limits       Limits
	Providers    NameSet // that the session may run on; absent: any
	Capabilities NameSet // of the harness that the session holds; absent: any
}

// CapabilitySubagents is the capability a parent must hold to start a child
// that writes under a merge contract.
const CapabilitySubagents = "subagents"

// Meet returns what both permit. Where order counts, o is the narrower
// statement, a child's beside its parent's p: tools keep the order of o, denied
// tools begin with those of p.
func (p Profile) Meet(o Profile) Profile {
	return Profile{
		Permissions:  p.Permissions.Meet(o.Permissions),
		Shell:        p.Shell.Meet(o.Shell),
		Tools:        p.Tools.Derive(o.Tools),
		Denied:       p.Denied.Union(o.Denied),
		Limits:       p.Limits.Meet(o.Limits),
		Providers:    p.Providers.Meet(o.Providers),
		Capabilities: p.Capabilities.Meet(o.Capabilities),
	}
}

// Within reports whether p permits nothing that o does not, and denies all
// that o does.
func (p Profile) Within(o Profile) bool {
	return p.Permissions.Within(o.Permissions) && p.Shell.Within(o.Shell) && p.Tools.Within(o.Tools) && p.Denied.Covers(o.Denied) &&
		p.Limits.Within(o.Limits) && p.Providers.Within(o.Providers) && p.Capabilities.Within(o.Capabilities)
}

// Validate reports, as a wrapped [ErrInvalid], why p must not be recorded: an
// unknown shell, or limits that [Limits.Validate] refuses. Tools, rules and
// names were checked when they were made.
func (p Profile) Validate() error {
	if err := checkLevel("shell", p.Shell, shells); err != nil {
		return err
	}
	return p.Limits.Validate()
}

// checkChoice checks one of a request's non-narrowing wishes. It comes from a
// manifest and ends up in facts, which can never be redacted, so it is held to
// what a name needs.
func checkChoice(what, s string) error {
	if s == "" {
		return nil
	}
	if len(s) > maxToolName || slices.ContainsFunc([]byte(s), func(c byte) bool { return c <= ' ' || c > '~' }) {
		return invalid("%s: got %s, want at most %d printable ASCII characters without spaces", what, quoted(s), maxToolName)
	}
	return nil
}
