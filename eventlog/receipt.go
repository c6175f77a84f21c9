package eventlog

import (
	"fmt"
	"strings"

	"github.com/google/uuid"

	"childlog/policy"
)

// Principal is for whom a root works. The reference is opaque: names are
// content, since facts can't be redacted.
type Principal struct {
	Kind string // person or service
	Ref  string // a code
}

// Kinds of principal.
const (
	PrincipalPerson  = "person"
	PrincipalService = "service"
)

// IsZero reports whether no principal was recorded.
func (p Principal) IsZero() bool { return p == Principal{} }

// Check refuses a principal that is not a known kind and an opaque reference.
// The zero value is no principal, and accepted. Errors: ErrInvalid.
func (p Principal) Check() error {
	switch {
	case p.IsZero():
		return nil
	case p.Kind != PrincipalPerson && p.Kind != PrincipalService:
		return invalidf("principal: kind: want %s or %s, got %.40q", PrincipalPerson, PrincipalService, p.Kind)
	case !isCode(p.Ref):
		return invalidf("principal: ref: want an opaque code of 1 to 256 letters, digits or _.:/@+#=-, got %.40q", p.Ref)
	}
	return nil
}

func (p Principal) fact() map[string]any { return map[string]any{"kind": p.Kind, "ref": p.Ref} }

func (r *factsMap) principal() (p Principal) {
	if m := r.sub("principal", false); m != nil {
		p = Principal{Kind: m.code("kind"), Ref: m.code("ref")}
		m.check("kind", p.Check())
		r.adopt(m)
	}
	return p
}

// ReceiptVersion is the schema version of delegation/granted. Version 0 knew
// no authority; see the upcaster.
const ReceiptVersion = 1

// Evidence of a field of a receipt: whether somebody stated it.
const (
	EvidenceRecorded = "recorded" // stated by the request or by the parent's log
	EvidenceInferred = "inferred" // taken over or defaulted, since nobody stated it
	EvidenceAbsent   = "absent"   // there is none
)

// Granted is delegation/granted: the receipt of a delegation, schema version 1.
// It holds enough to say, from the child's log alone, what the parent could
// hand on (ceiling), what was asked, what was granted and by which rule the
// two differ. Texts are not part of it: prompt, request and manifest are
// committed to and kept as content, where they can be redacted.
type Granted struct {
	Principal     Principal // of the root; zero: none recorded
	IssuerEpoch   uint64    // 0: the parent had no open activation
	IssuerClaimed bool      // the parent lives outside the store
	Parent, Child uuid.UUID
	Root          uuid.UUID
	Depth         int
	MaxDepth      int
	ParentReceipt Hash // digest of the parent's own receipt; zero: the parent is a root
	ParentSeq     uint64
	ParentHead    Hash
	Capture       Hash // digest of what was captured
	ToolCall      string

	// Ceiling is what the parent could hand on, Requested what request and role
	// alone would have, Granted what the child has. The operator rules stand in
	// Granted only, which has all of them.
	Ceiling, Requested, Granted policy.Authority
	Cuts                        []policy.Cut
	Relied                      []policy.ExplicitGrant // of the parent; each counts as used once

	Sandbox       *policy.Sandbox // nil: the parent had no override
	Defaults      policy.Defaults
	Lockdown      []string // the deployment's block-edit tools, sorted; the built-in ones are always locked
	Inspection    string   // how a pre-built child was held against the lockdown; "": the child is not pre-built
	Merge         policy.MergePolicy
	WorkspaceRoot string
	NotBefore     uint64 // ms since 1970, a claim of the store's clock
	Choices       policy.Choices
	Palette       []policy.PaletteEntry
	ClassTable    uint64 // version of the table of tool classes
	SeedLen       uint64
	SeedDigest    Hash
	Evidence      map[string]string // by field, see the constants
	Commitments   Commitments
	Fingerprint   Hash // of Granted under the role
	Key           Hash // zero: no idempotency key
}

// Commitments bind the texts of a delegation, each SHA-256 over a salt that is
// kept with the texts and their bytes. A zero hash is a text that there is not.
type Commitments struct {
	Prompt, Request, Manifest Hash
}

// Facts encodes g. Approvals are always never.
func (g Granted) Facts() (Facts, error) {
	var table denyTable
	authority := func(a policy.Authority) map[string]any {
		m := map[string]any{"own": halfFact(a.Own, &table), "delegable": halfFact(a.Delegable, &table)}
		if len(a.Explicit) > 0 {
			m["explicit"] = explicitFact(a.Explicit)
		}
		return m
	}
	m := map[string]any{"schema": ReceiptVersion, "issuer": map[string]any{"session": g.Parent, "epoch": g.IssuerEpoch, "source": "delegation", "claimed": g.IssuerClaimed},
		"parent": g.Parent, "child": g.Child, "root": g.Root, "depth": g.Depth, "max_depth": g.MaxDepth, "parent_seq": g.ParentSeq,
		"parent_head": g.ParentHead, "capture": g.Capture, "defaults": defaultsFact(g.Defaults), "approvals": string(policy.Never), "not_before": g.NotBefore,
		"ceiling": authority(g.Ceiling), "requested": authority(g.Requested), "granted": authority(g.Granted), "operator": operatorFact(g.Granted.Operator),
		"lockdown": g.Lockdown, "role": string(g.Choices.Role), "background": g.Choices.Background, "class_table": g.ClassTable, "fingerprint": g.Fingerprint}
	cuts := make([]any, len(g.Cuts))
	for i, c := range g.Cuts {
		cuts[i] = map[string]any{"field": c.Field, "from": clipCut(c.From), "to": clipCut(c.To), "rule": string(c.Rule)}
	}
	m["cuts"], m["denied_tools"] = cuts, table.fact()
	optional := func(name string, set bool, v any) {
		if set {
			m[name] = v
		}
	}
	optional("principal", !g.Principal.IsZero(), g.Principal.fact())
	optional("parent_receipt", !g.ParentReceipt.IsZero(), g.ParentReceipt)
	optional("tool_call", g.ToolCall != "", g.ToolCall)
	optional("relied", len(g.Relied) > 0, explicitFact(g.Relied))
	optional("workspace_root", g.WorkspaceRoot != "", g.WorkspaceRoot)
	optional("inspection", g.Inspection != "", g.Inspection)
	optional("merge_policy", g.Merge != "", string(g.Merge))
	optional("model", g.Choices.Model != "", g.Choices.Model)
	optional("provider", g.Choices.Provider != "", g.Choices.Provider)
	optional("effort", g.Choices.Effort != "", g.Choices.Effort)
	optional("key", !g.Key.IsZero(), g.Key)
	if g.Sandbox != nil {
		m["sandbox"] = sandboxFact(*g.Sandbox)
	}
	if g.SeedLen > 0 {
		m["seed"] = map[string]any{"length": g.SeedLen, "digest": g.SeedDigest}
	}
	if g.Lockdown == nil {
		m["lockdown"] = []any{}
	}
	var err error
	if m["palette"], err = paletteFact(g.Palette); err != nil {
		return nil, err
	}
	commitments := map[string]any{}
	for name, h := range map[string]Hash{"prompt": g.Commitments.Prompt, "request": g.Commitments.Request, "manifest": g.Commitments.Manifest} {
		if !h.IsZero() {
			commitments[name] = h
		}
	}
	evidence := map[string]any{}
	for name, e := range g.Evidence {
		evidence[name] = e
	}
	m["commitments"], m["evidence"] = commitments, evidence
	return MakeFacts(m)
}

// maxCut bounds each side of a cut in a receipt, bytes. A list of a thousand
// tools is there to be compared, whole, in the halves; a cut only shows it.
const maxCut = 1024

func clipCut(s string) string {
	if len(s) <= maxCut {
		return s
	}
	rest := fmt.Sprintf("... (%d bytes)", len(s))
	return strings.ToValidUTF8(s[:maxCut-len(rest)], "") + rest
}

// ParseGranted reads delegation/granted. Errors: ErrCorrupt with the field.
func ParseGranted(ev *Event) (Granted, error) {
	r, err := readFacts(ev)
	if err != nil {
		return Granted{}, err
	}
	g := Granted{Principal: r.principal(), Parent: r.id("parent", true), Child: r.id("child", true), Root: r.id("root", true), Depth: r.int("depth"),
		MaxDepth: r.int("max_depth"), ParentReceipt: r.hash("parent_receipt"), ParentSeq: r.uint("parent_seq"), ParentHead: r.hash("parent_head"),
		Capture: r.hash("capture"), ToolCall: r.str("tool_call"), Relied: r.explicit("relied"), Lockdown: r.strs("lockdown"), Inspection: r.str("inspection"),
		Merge: policy.MergePolicy(r.str("merge_policy")), WorkspaceRoot: r.str("workspace_root"), NotBefore: r.uint("not_before"),
		Choices: policy.Choices{Role: policy.Role(r.str("role")), Model: r.str("model"), Provider: r.str("provider"), Effort: r.str("effort"),
			Background: r.bool("background", false)},
		ClassTable: r.uint("class_table"), Fingerprint: r.hash("fingerprint"), Key: r.hash("key")}
	if is := r.sub("issuer", true); is != nil {
		g.IssuerEpoch, g.IssuerClaimed = is.uint("epoch"), is.bool("claimed", true)
		r.adopt(is)
	}
	rules := r.denied()
	g.Ceiling, g.Requested, g.Granted = r.authority("ceiling", rules), r.authority("requested", rules), r.authority("granted", rules)
	g.Granted.Operator = r.operator()
	r.maps("cuts", func(m *factsMap) {
		g.Cuts = append(g.Cuts, policy.Cut{Field: m.code("field"), From: m.str("from"), To: m.str("to"), Rule: policy.Rule(m.code("rule"))})
	})
	if s := r.sub("sandbox", false); s != nil {
		sandbox := s.sandbox()
		g.Sandbox = &sandbox
		r.adopt(s)
	}
	if s := r.sub("seed", false); s != nil {
		g.SeedLen, g.SeedDigest = s.uint("length"), s.hash("digest")
		r.adopt(s)
	}
	if s := r.sub("palette", false); s != nil {
		g.Palette = s.palette()
		r.adopt(s)
	}
	if s := r.sub("commitments", false); s != nil {
		g.Commitments = Commitments{Prompt: s.hash("prompt"), Request: s.hash("request"), Manifest: s.hash("manifest")}
		r.adopt(s)
	}
	if s := r.sub("evidence", false); s != nil {
		g.Evidence = make(map[string]string, len(s.m))
		for name := range s.m {
			g.Evidence[name] = s.code(name)
		}
		r.adopt(s)
	}
	if a := r.code("approvals"); r.err == nil && a != string(policy.Never) {
		r.fail("approvals", fmt.Sprintf("want never, got %q", a))
	}
	g.Defaults = r.defaults()
	return g, r.err
}

// authority reads both halves and the terms of an authority.
func (r *factsMap) authority(field string, rules []policy.DenyEntry) (a policy.Authority) {
	if m := r.sub(field, true); m != nil {
		a = policy.Authority{Own: m.half("own", true, rules), Delegable: m.half("delegable", true, rules), Explicit: m.explicit("explicit")}
		r.adopt(m)
	}
	return a
}

func paletteFact(entries []policy.PaletteEntry) (map[string]any, error) {
	p, err := policy.NewPalette(entries...)
	if err != nil {
		return nil, err
	}
	list := make([]any, len(entries))
	for i, e := range entries {
		list[i] = map[string]any{"name": e.Name, "class": string(e.Class)}
	}
	return map[string]any{"digest": Hash(p.Digest()), "entries": list}, nil
}

// palette reads the tools that a manifest declared, with their digest.
func (r *factsMap) palette() (entries []policy.PaletteEntry) {
	r.maps("entries", func(m *factsMap) {
		entries = append(entries, policy.PaletteEntry{Name: m.code("name"), Class: policy.Class(m.code("class"))})
	})
	if r.err != nil {
		return nil
	}
	p, err := policy.NewPalette(entries...)
	if r.check("entries", err); r.err == nil && r.hash("digest") != p.Digest() {
		r.fail("digest", "it is not that of the entries")
	}
	return entries
}
