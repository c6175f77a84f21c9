package wire

import (
	"encoding/hex"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"childlog/policy"
)

// Tools is a tool scope, of which absent, null and [] are three things: a field
// of this type is left out where nothing was stated. It needs omitzero.
type Tools struct{ policy.Tools }

// IsZero reports whether nothing was stated.
func (t Tools) IsZero() bool { return t.State() == policy.StateAbsent }

// MarshalJSONTo writes null, or the names.
func (t Tools) MarshalJSONTo(enc *jsontext.Encoder) error {
	if t.Inherits() {
		return enc.WriteToken(jsontext.Null)
	}
	return json.MarshalEncode(enc, t.List())
}

// UnmarshalJSONFrom reads what MarshalJSONTo writes.
func (t *Tools) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == 'n' {
		t.Tools = policy.ToolsNull()
		_, err := dec.ReadToken()
		return err
	}
	var names []string
	err := json.UnmarshalDecode(dec, &names)
	if err == nil {
		t.Tools, err = policy.ToolsList(names...)
	}
	return err
}

// Permissions are what a profile permits beyond reading.
type Permissions struct {
	Write   bool `json:"write"`
	Network bool `json:"network"`
}

// DenyEntry is a deny rule. Origin is null where no event stated it yet.
type DenyEntry struct {
	Pattern string  `json:"pattern"`
	Kind    string  `json:"kind"`
	Origin  *Origin `json:"origin"`
}

// Grant is what decisions are made on. MaxChildren is null for any number,
// WriteScope null where no scope limits and [] where nothing may be written.
type Grant struct {
	Files       string    `json:"files"`
	Shell       string    `json:"shell"`
	Network     bool      `json:"network"`
	Desktop     bool      `json:"desktop"`
	Surface     string    `json:"surface"`
	Spawn       bool      `json:"spawn"`
	MaxChildren *int64    `json:"max_children"`
	WriteScope  *[]string `json:"write_scope"`
}

// Half is one half of an authority: the profile, and the grant under it. A
// limit is null where there is none; of the lists of names null admits any and
// [] admits none.
type Half struct {
	Permissions  Permissions `json:"permissions"`
	Shell        string      `json:"shell"`
	Tools        Tools       `json:"tools,omitzero"`
	DeniedTools  []DenyEntry `json:"denied_tools"`
	Deadline     *string     `json:"deadline"`
	MaxSteps     *uint64     `json:"max_steps"`
	MaxDepth     *int        `json:"max_depth"`
	Providers    *[]string   `json:"providers"`
	Capabilities *[]string   `json:"capabilities"`
	Grant        Grant       `json:"grant"`
}

// HalfOf converts a half as it stands, which is best its canonical form.
func HalfOf(h policy.Half) Half {
	p, g := h.Profile, h.Grant
	out := Half{
		Permissions:  Permissions(p.Permissions),
		Shell:        p.Shell.String(),
		Tools:        Tools{p.Tools},
		DeniedTools:  []DenyEntry{},
		Deadline:     MilliTime(p.Limits.DeadlineMS),
		Providers:    stated(p.Providers.Recorded(), p.Providers.List()),
		Capabilities: stated(p.Capabilities.Recorded(), p.Capabilities.List()),
		Grant: Grant{Files: g.Files.String(), Shell: g.Shell.String(), Network: g.Network, Desktop: g.Desktop, Surface: g.Surface.String(),
			Spawn: g.Spawn, WriteScope: stated(g.Scope.Stated(), g.Scope.Entries())},
	}
	for _, e := range p.Denied.Entries() {
		out.DeniedTools = append(out.DeniedTools, DenyEntry{Pattern: e.Pattern, Kind: string(e.Kind), Origin: originOf(e.Origin)})
	}
	if n := p.Limits.MaxSteps; n != 0 {
		n = min(n, policy.MaxNumber)
		out.MaxSteps = &n
	}
	if n := p.Limits.MaxDepth; n != 0 {
		out.MaxDepth = &n
	}
	if g.MaxChildren != nil {
		n := min(int64(*g.MaxChildren), policy.MaxNumber)
		out.Grant.MaxChildren = &n
	}
	return out
}

// stated keeps a list that was not stated apart from an empty one.
func stated(is bool, list []string) *[]string {
	if !is {
		return nil
	}
	return &list
}

// originOf is null for the origin that is none.
func originOf(o policy.Origin) *Origin {
	if o.Session == uuid.Nil {
		return nil
	}
	return &Origin{Session: o.Session.String(), Seq: o.Seq}
}

// MilliTime renders a time in ms since 1970 UTC; 0, no time, is null. A time
// beyond the year 9999, which takes a wall time of millennia, has a year of
// more digits than RFC 3339 knows.
func MilliTime(ms int64) *string {
	if ms == 0 {
		return nil
	}
	s := Time(time.UnixMilli(min(ms, policy.MaxNumber)))
	return &s
}

// OperatorRule is a rule bound to a store: a pattern of tools, or a place. The
// other of the two is null.
type OperatorRule struct {
	Tool   *string `json:"tool"`
	Path   *string `json:"path"`
	Origin *Origin `json:"origin"`
}

// Operator are operator rules, and the digest of what they say.
type Operator struct {
	Digest string         `json:"digest"`
	Rules  []OperatorRule `json:"rules"`
}

// OperatorOf converts operator rules.
func OperatorOf(o policy.OperatorRules) Operator {
	digest := o.Digest()
	out := Operator{Digest: hex.EncodeToString(digest[:]), Rules: []OperatorRule{}}
	for _, r := range o.Entries() {
		out.Rules = append(out.Rules, OperatorRule{Tool: optional(r.Tool), Path: optional(r.Path), Origin: originOf(r.Origin)})
	}
	return out
}

// ExplicitGrant are the terms under which more is handed on than held. Expires
// is null for never, Uses for any number, Issuer where no event holds it yet.
type ExplicitGrant struct {
	ID      string  `json:"id"`
	Issuer  *Origin `json:"issuer"`
	Expires *string `json:"expires"`
	Uses    *uint64 `json:"uses"`
}

// ExplicitGrantsOf converts explicit grants; the list is never null.
func ExplicitGrantsOf(grants []policy.ExplicitGrant) []ExplicitGrant {
	out := []ExplicitGrant{}
	for _, g := range grants {
		e := ExplicitGrant{ID: g.ID, Issuer: originOf(g.Issuer), Expires: MilliTime(g.ExpiresMS)}
		if n := min(g.Uses, policy.MaxNumber); n != 0 {
			e.Uses = &n
		}
		out = append(out, e)
	}
	return out
}

// Authority is what a session may do and what it may hand on.
type Authority struct {
	Own            Half            `json:"own"`
	Delegable      Half            `json:"delegable"`
	Operator       Operator        `json:"operator"`
	ExplicitGrants []ExplicitGrant `json:"explicit_grants"`
}

// AuthorityOf converts an authority as it stands.
func AuthorityOf(a policy.Authority) Authority {
	return Authority{Own: HalfOf(a.Own), Delegable: HalfOf(a.Delegable), Operator: OperatorOf(a.Operator), ExplicitGrants: ExplicitGrantsOf(a.Explicit)}
}
