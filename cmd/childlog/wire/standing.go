package wire

import (
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// FieldCause says which rule gave a field of an authority its value, and where
// that was stated.
type FieldCause struct {
	Rule   string     `json:"rule"`
	Origin RuleOrigin `json:"origin"`
}

// Principal is for whom the root of a tree works.
type Principal struct {
	Kind string `json:"kind"`
	Ref  string `json:"ref"`
}

// PaletteEntry is a tool that a manifest declared beside the built-in table.
type PaletteEntry struct {
	Name  string `json:"name"`
	Class string `json:"class"`
}

func paletteOf(entries []policy.PaletteEntry) []PaletteEntry {
	out := []PaletteEntry{}
	for _, e := range entries {
		out = append(out, PaletteEntry{Name: e.Name, Class: string(e.Class)})
	}
	return out
}

// Standing is what goes with an authority: whether anything stated it, what the
// harness runs the session as, and by field of the own half which rule and event
// decided. StoreRules: the store's present operator rules bind the session too,
// beside those of its authority; so it is with roots.
type Standing struct {
	Stated     bool                  `json:"authority_stated"` // false: a root without a profile, which has everything
	StoreRules bool                  `json:"store_rules"`
	Choices    Choices               `json:"choices"`
	Principal  *Principal            `json:"principal"`
	Lockdown   []string              `json:"lockdown"` // the deployment's, beside the built-in tools
	Palette    []PaletteEntry        `json:"palette"`
	Causes     map[string]FieldCause `json:"causes"`
}

func standingOf(e *replay.Effective) Standing {
	s := Standing{Stated: Stated(e), StoreRules: !e.Evidence && e.Kind != eventlog.KindChild, Choices: choicesOf(e.Choices),
		Lockdown: append([]string{}, e.Lockdown...), Palette: paletteOf(e.Palette.Entries()), Causes: map[string]FieldCause{}}
	if !e.Principal.IsZero() {
		s.Principal = &Principal{Kind: e.Principal.Kind, Ref: e.Principal.Ref}
	}
	for field, c := range e.Causes {
		s.Causes[field] = FieldCause{Rule: string(c.Rule), Origin: ruleOriginOf(c.Origin)}
	}
	return s
}

// Stated reports whether any event limited the authority of a session: a root
// that has no profile and was never narrowed holds everything.
func Stated(e *replay.Effective) bool {
	return !e.Evidence && (len(e.Causes) > 0 || e.Authority.Operator.Len() > 0)
}

// Halves are an authority without the operator rules over it.
type Halves struct {
	Own            Half            `json:"own"`
	Delegable      Half            `json:"delegable"`
	ExplicitGrants []ExplicitGrant `json:"explicit_grants"`
}

func halvesOf(a policy.Authority) Halves {
	return Halves{Own: HalfOf(a.Own), Delegable: HalfOf(a.Delegable), ExplicitGrants: ExplicitGrantsOf(a.Explicit)}
}

// Delegated is the answer of a delegation: the child, and what its receipt says
// of ceiling, request and grant. The operator rules stand in the grant, which
// has all of them. Fingerprint is that of the receipt; the manifest has that of
// the policy now, which a narrowing since the delegation changes.
type Delegated struct {
	Created
	Ceiling     Halves          `json:"ceiling"`
	Requested   Halves          `json:"requested"`
	Granted     Authority       `json:"granted"`
	Cuts        []Cut           `json:"cuts"`
	Relied      []ExplicitGrant `json:"relied"`
	Fingerprint Fingerprint     `json:"fingerprint"`
	Manifest    Manifest        `json:"manifest"`
}

// DelegatedOf adds to a creation what the child's receipt says.
func DelegatedOf(c Created, e *replay.Effective) Delegated {
	g := e.Granted
	return Delegated{Created: c, Ceiling: halvesOf(g.Ceiling), Requested: halvesOf(g.Requested), Granted: AuthorityOf(g.Granted), Cuts: CutsOf(g.Cuts),
		Relied: ExplicitGrantsOf(g.Relied), Fingerprint: fingerprintOf(policy.FingerprintOf(g.Choices.Role, g.Granted)), Manifest: ManifestOf(e)}
}

// Manifest is what a harness launches a session with. Network is in effect: the
// sandbox and the grant both have it. Shell is of the grant, Transport the same
// in the three words of other harnesses, for output only.
type Manifest struct {
	Choices
	Files       string         `json:"files"`
	Shell       string         `json:"shell"`
	Transport   string         `json:"transport"`
	Network     bool           `json:"network"`
	Tools       Tools          `json:"tools,omitzero"`
	DeniedTools []DenyEntry    `json:"denied_tools"`
	WriteScope  *[]string      `json:"write_scope"`
	MergePolicy *string        `json:"merge_policy"`
	Deadline    *string        `json:"deadline"`
	MaxSteps    *uint64        `json:"max_steps"`
	MaxDepth    *int           `json:"max_depth"`
	Spawn       bool           `json:"spawn"`
	Lockdown    []string       `json:"lockdown"`
	Palette     []PaletteEntry `json:"palette"`
	Fingerprint Fingerprint    `json:"fingerprint"`
}

// ManifestOf converts the manifest of a session.
func ManifestOf(e *replay.Effective) Manifest {
	m, own := replay.ManifestOf(e), HalfOf(e.Authority.Own)
	return Manifest{Choices: choicesOf(m.Choices), Files: m.Files.String(), Shell: m.Shell.String(), Transport: m.Transport, Network: m.Network,
		Tools: own.Tools, DeniedTools: own.DeniedTools, WriteScope: own.Grant.WriteScope, MergePolicy: optional(string(m.Merge)), Deadline: own.Deadline,
		MaxSteps: own.MaxSteps, MaxDepth: own.MaxDepth, Spawn: m.Spawn, Lockdown: append([]string{}, m.Lockdown...), Palette: paletteOf(m.Palette),
		Fingerprint: fingerprintOf(m.Fingerprint)}
}

// Rules are the operator rules that are bound to a store. Event is the one that
// set them, null if none ever did.
type Rules struct {
	Operator
	Event *Origin `json:"event"`
}

// RulesSet is the answer to rules that were set; not changed: they were in
// force already, and nothing was written.
type RulesSet struct {
	Rules
	Changed bool `json:"changed"`
}

// RuleSet is one event that set the rules of a store, with how many it set.
type RuleSet struct {
	Seq    uint64 `json:"seq"`
	Time   string `json:"time"`
	Digest string `json:"digest"`
	Tools  int    `json:"tools"`
	Paths  int    `json:"paths"`
}
