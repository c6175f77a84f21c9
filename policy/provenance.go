package policy

import (
	"fmt"

	"github.com/google/uuid"
)

// Origin is the place of an event: a session and a seq in its log, from 1.
type Origin struct {
	Session uuid.UUID
	Seq     uint64
}

// String renders the origin as the first 8 hex digits of the session and the
// seq, such as "0a1b2c3d@7": for people, not unique.
func (o Origin) String() string { return fmt.Sprintf("%s@%d", o.Session.String()[:8], o.Seq) }

// Source is the kind of event that set a value. The values are recorded in logs.
type Source string

// The sources. Which one an event has is fixed by the call that writes it.
const (
	SourceDefault    Source = "default"    // the deployment default recorded at creation
	SourceDelegation Source = "delegation" // what the parent handed down
	SourceSwitch     Source = "switch"     // a change by the session itself
	SourceNarrowing  Source = "narrowing"  // an operator's or a parent's ceiling
	SourcePin        Source = "pin"        // the approval pin of a child
	SourceClaimed    Source = "claimed"    // said of a parent outside the store, unverified
	SourceImport     Source = "import"     // read from a foreign log: evidence
)

// Sources of authority, which events record by rule and origin instead.
const (
	SourceProfile  Source = "profile"  // what a root was given when it was made
	SourceRole     Source = "role"     // the preset of a role, applied by a receipt
	SourceOperator Source = "operator" // a rule bound to the store
)

// Cause is the event that set a value, and its kind.
type Cause struct {
	Source Source
	Origin Origin
}

// String renders the cause, such as "narrowing 0a1b2c3d@7".
func (c Cause) String() string { return fmt.Sprintf("%s %v", c.Source, c.Origin) }

// Traced is a sandbox with, per component, the event that set it.
type Traced struct {
	Value                                                      Sandbox
	Mode, Roots, Network, ExcludeTmpdirEnvVar, ExcludeSlashTmp Cause
}

// Trace returns the canonical form of v with every component set by one event,
// also those its mode implies: a switch to read-only does take the roots away.
func Trace(v Sandbox, by Cause) Traced {
	return Traced{v.Canonical(), by, by, by, by, by}
}

// Meet returns the meet of both values and names for each component the side
// that decided it. Where both state the result, the earlier one already
// sufficed and is named. Where neither does, which only roots can do (/a and
// /b/c against /a/x and /b), the later one completed the cut and is named.
// Within one session the seq tells which is earlier; across sessions t is.
func (t Traced) Meet(u Traced) Traced {
	a, b := t.Value.Canonical(), u.Value.Canonical()
	v := a.Meet(b)
	// The top lists no roots, as an absent set does, but means all of them.
	sameRoots := func(s Sandbox) bool {
		return (s.Mode == DangerFullAccess) == (v.Mode == DangerFullAccess) && s.Roots.Equal(v.Roots)
	}
	return Traced{
		Value:   v,
		Mode:    decided(t.Mode, a.Mode == v.Mode, u.Mode, b.Mode == v.Mode),
		Roots:   decided(t.Roots, sameRoots(a), u.Roots, sameRoots(b)),
		Network: decided(t.Network, a.Network == v.Network, u.Network, b.Network == v.Network),
		ExcludeTmpdirEnvVar: decided(
			t.ExcludeTmpdirEnvVar, a.ExcludeTmpdirEnvVar == v.ExcludeTmpdirEnvVar,
			u.ExcludeTmpdirEnvVar, b.ExcludeTmpdirEnvVar == v.ExcludeTmpdirEnvVar),
		ExcludeSlashTmp: decided(
			t.ExcludeSlashTmp, a.ExcludeSlashTmp == v.ExcludeSlashTmp,
			u.ExcludeSlashTmp, b.ExcludeSlashTmp == v.ExcludeSlashTmp),
	}
}

// decided names the cause of one component of a meet, given which sides state
// the result themselves.
func decided(t Cause, byT bool, u Cause, byU bool) Cause {
	earlier, later := t, u
	if t.Origin.Session == u.Origin.Session && u.Origin.Seq < t.Origin.Seq {
		earlier, later = u, t
	}
	switch {
	case byT && byU:
		return earlier
	case byT:
		return t
	case byU:
		return u
	}
	return later
}

// Cause returns the cause of the mode, which stands for the whole in one-line
// answers. It stays so when another component was cut by a later event, since
// the mode is what the reader sees first; ask for the component to learn more.
func (t Traced) Cause() Cause { return t.Mode }
