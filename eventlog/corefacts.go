package eventlog

import (
	"fmt"

	"github.com/google/uuid"

	"childlog/policy"
)

// This file reads and writes the facts of the policy-bearing types. A field
// that an older version did not write reads as its restrictive value, named
// at the field; a field of the wrong kind is damage.

// Kinds of session.
const (
	KindRoot  = "root"  // started by a person or a service
	KindChild = "child" // started by a delegation
	KindStub  = "stub"  // stands for a parent outside the store; its policy is claimed
)

// Modes of a session's life.
const (
	ModeOneShot     = "one-shot"    // settling closes it
	ModeContinuable = "continuable" // may be activated again after settling
)

// Provider names what runs a child. One that is not in process keeps its own
// policy, which childlog can record but not enforce.
type Provider struct {
	Name      string
	InProcess bool // missing: false
}

// External is another system's id of a session. The id itself is content.
type External struct {
	System string // a code
	IDHash Hash
}

// Created is session/created.
type Created struct {
	Kind          string
	Parent        uuid.UUID // children only
	ParentSeq     uint64
	ParentHead    Hash
	Root          uuid.UUID
	Depth         int // 0 for a root
	MaxDepth      int // absolute ceiling from the root down; missing: Depth
	External      *External
	Mode          string // missing or unknown: one-shot
	Provider      Provider
	WorkspaceRoot string // absolute, or "" if not recorded
	PathStyle     string // posix or windows
	SeedLen       uint64
	Defaults      policy.Defaults // missing: read-only, never
	Evidence      bool
}

// Facts encodes c.
func (c Created) Facts() Facts {
	m := map[string]any{"kind": c.Kind, "root": c.Root, "depth": c.Depth, "max_depth": c.MaxDepth, "mode": c.Mode,
		"defaults": defaultsFact(c.Defaults)}
	if c.Parent != uuid.Nil {
		m["parent"], m["parent_seq"], m["parent_head"] = c.Parent, c.ParentSeq, c.ParentHead
	}
	if c.External != nil {
		m["external"] = map[string]any{"system": c.External.System, "id": c.External.IDHash}
	}
	if c.Provider.Name != "" {
		m["provider"] = map[string]any{"name": c.Provider.Name, "in_process": c.Provider.InProcess}
	}
	if c.WorkspaceRoot != "" {
		m["workspace_root"], m["path_style"] = c.WorkspaceRoot, c.PathStyle
	}
	if c.SeedLen > 0 {
		m["seed_len"] = c.SeedLen
	}
	if c.Evidence {
		m["evidence"] = true
	}
	return mustFacts(m)
}

// ParseCreated reads session/created.
func ParseCreated(ev *Event) (Created, error) {
	r, err := readFacts(ev)
	if err != nil {
		return Created{}, err
	}
	c := Created{Kind: r.code("kind"), Parent: r.id("parent", false), ParentSeq: r.uint("parent_seq"), ParentHead: r.hash("parent_head"),
		Root: r.id("root", true), Depth: int(r.uint("depth")), MaxDepth: int(r.uint("max_depth")), Mode: r.str("mode"),
		WorkspaceRoot: r.str("workspace_root"), PathStyle: r.str("path_style"), SeedLen: r.uint("seed_len"), Evidence: r.bool("evidence", false)}
	if c.MaxDepth < c.Depth {
		c.MaxDepth = c.Depth
	}
	if c.Mode != ModeContinuable {
		c.Mode = ModeOneShot
	}
	if p := r.sub("provider", false); p != nil {
		c.Provider = Provider{Name: p.str("name"), InProcess: p.bool("in_process", false)}
		r.adopt(p)
	}
	if x := r.sub("external", false); x != nil {
		c.External = &External{System: x.code("system"), IDHash: x.hash("id")}
		r.adopt(x)
	}
	c.Defaults = r.defaults()
	return c, r.err
}

// Granted is delegation/granted: the receipt, schema version 0.
type Granted struct {
	IssuerEpoch   uint64 // 0: the parent had no open activation
	IssuerClaimed bool   // the parent lives outside the store
	Parent, Child uuid.UUID
	Root          uuid.UUID
	Depth         int
	MaxDepth      int
	ParentSeq     uint64
	ParentHead    Hash
	Capture       Hash // digest of what was captured
	ToolCall      string
	Sandbox       *policy.Sandbox // nil: the parent had no override
	Defaults      policy.Defaults
	WorkspaceRoot string
	NotBefore     uint64 // ms since 1970, a claim of the store's clock
	SeedLen       uint64
	SeedDigest    Hash
	Key           Hash // zero: no idempotency key
}

// Facts encodes g. Approvals are always never.
func (g Granted) Facts() Facts {
	m := map[string]any{"schema": 0, "issuer": map[string]any{"session": g.Parent, "epoch": g.IssuerEpoch, "source": "delegation", "claimed": g.IssuerClaimed},
		"parent": g.Parent, "child": g.Child, "root": g.Root, "depth": g.Depth, "max_depth": g.MaxDepth, "parent_seq": g.ParentSeq,
		"parent_head": g.ParentHead, "capture": g.Capture, "defaults": defaultsFact(g.Defaults), "approvals": string(policy.Never), "not_before": g.NotBefore}
	if g.ToolCall != "" {
		m["tool_call"] = g.ToolCall
	}
	if g.Sandbox != nil {
		m["sandbox"] = sandboxFact(*g.Sandbox)
	}
	if g.WorkspaceRoot != "" {
		m["workspace_root"] = g.WorkspaceRoot
	}
	if g.SeedLen > 0 {
		m["seed"] = map[string]any{"length": g.SeedLen, "digest": g.SeedDigest}
	}
	if !g.Key.IsZero() {
		m["key"] = g.Key
	}
	return mustFacts(m)
}

// ParseGranted reads delegation/granted.
func ParseGranted(ev *Event) (Granted, error) {
	r, err := readFacts(ev)
	if err != nil {
		return Granted{}, err
	}
	g := Granted{Parent: r.id("parent", true), Child: r.id("child", true), Root: r.id("root", true), Depth: int(r.uint("depth")),
		MaxDepth: int(r.uint("max_depth")), ParentSeq: r.uint("parent_seq"), ParentHead: r.hash("parent_head"), Capture: r.hash("capture"),
		ToolCall: r.str("tool_call"), WorkspaceRoot: r.str("workspace_root"), NotBefore: r.uint("not_before"), Key: r.hash("key")}
	if is := r.sub("issuer", true); is != nil {
		g.IssuerEpoch, g.IssuerClaimed = is.uint("epoch"), is.bool("claimed", true)
		r.adopt(is)
	}
	if s := r.sub("sandbox", false); s != nil {
		sandbox := s.sandbox()
		g.Sandbox = &sandbox
		r.adopt(s)
	}
	if s := r.sub("seed", false); s != nil {
		g.SeedLen, g.SeedDigest = s.uint("length"), s.hash("digest")
		r.adopt(s)
	}
	if a := r.code("approvals"); r.err == nil && a != string(policy.Never) {
		r.fail("approvals", fmt.Sprintf("want never, got %q", a))
	}
	g.Defaults = r.defaults()
	return g, r.err
}

// SandboxFacts encodes sandbox/mode.
func SandboxFacts(s policy.Sandbox) Facts { return mustFacts(sandboxFact(s)) }

// ParseSandbox reads sandbox/mode. A mode that this version does not know is
// kept as it is; policy gives it the effect of read-only.
func ParseSandbox(ev *Event) (policy.Sandbox, error) {
	r, err := readFacts(ev)
	if err != nil {
		return policy.Sandbox{}, err
	}
	s := r.sandbox()
	return s, r.err
}

// Claimed values: what an imported log says of where a policy event came from.
const (
	ClaimedDelegation = "delegation"
	ClaimedSwitch     = "switch"
)

// Claimed is an imported policy event's own word for where it came from. It
// is evidence about another system; native events have none.
func Claimed(ev *Event) string { return ev.Facts.Str("claimed") }

// ImportedSandboxFacts encodes an imported sandbox/mode with its claim.
func ImportedSandboxFacts(s policy.Sandbox, claimed string) Facts {
	m := sandboxFact(s)
	m["claimed"] = claimed
	return mustFacts(m)
}

// ImportedApprovalFacts encodes an imported approval/policy with its claim.
func ImportedApprovalFacts(a policy.Approval, claimed string) Facts {
	return mustFacts(map[string]any{"policy": string(a), "claimed": claimed})
}

// ApprovalFacts encodes approval/policy.
func ApprovalFacts(a policy.Approval) Facts {
	return mustFacts(map[string]any{"policy": string(a)})
}

// ParseApproval reads approval/policy; foreign values are kept.
func ParseApproval(ev *Event) (policy.Approval, error) {
	r, err := readFacts(ev)
	if err != nil {
		return "", err
	}
	a := policy.Approval(r.code("policy"))
	return a, r.err
}

// NarrowedFacts encodes policy/narrowed with a sandbox ceiling.
func NarrowedFacts(ceiling policy.Sandbox, by string) Facts {
	return mustFacts(map[string]any{"ceiling": map[string]any{"sandbox": sandboxFact(ceiling)}, "by": by})
}

// ParseNarrowed reads policy/narrowed. A ceiling of a kind that this version
// does not know is an error: ignoring it would widen.
func ParseNarrowed(ev *Event) (policy.Sandbox, error) {
	r, err := readFacts(ev)
	if err != nil {
		return policy.Sandbox{}, err
	}
	out := policy.Top()
	if c := r.sub("ceiling", true); c != nil {
		for name := range c.m {
			if name != "sandbox" {
				c.fail(name, "unknown ceiling")
			}
		}
		if s := c.sub("sandbox", true); s != nil {
			out = s.sandbox()
			c.adopt(s)
		}
		r.adopt(c)
	}
	return out, r.err
}

func sandboxFact(s policy.Sandbox) map[string]any {
	m := map[string]any{"mode": string(s.Mode), "network": s.Network,
		"exclude_tmpdir_env_var": s.ExcludeTmpdirEnvVar, "exclude_slash_tmp": s.ExcludeSlashTmp}
	if s.Roots.Recorded() {
		m["writable_roots"] = s.Roots.List()
	}
	return m
}

func defaultsFact(d policy.Defaults) map[string]any {
	return map[string]any{"sandbox": sandboxFact(d.Sandbox), "approvals": string(d.Approvals)}
}

// factsMap reads typed fields of a decoded map; the first failure sticks and
// names the event and the field.
type factsMap struct {
	m    map[string]any
	ev   *Event
	path string
	err  error
}

func readFacts(ev *Event) (*factsMap, error) {
	facts, err := upcast(ev.Type, ev.Version, ev.Facts)
	if err != nil {
		return nil, &CorruptError{Session: ev.Session, Seq: ev.Seq, Type: ev.Type, Reason: err.Error()}
	}
	m, err := facts.Map()
	if err != nil {
		return nil, &CorruptError{Session: ev.Session, Seq: ev.Seq, Type: ev.Type, Reason: err.Error()}
	}
	return &factsMap{m: m, ev: ev}, nil
}

func (r *factsMap) fail(field, reason string) {
	if r.err == nil {
		r.err = &CorruptError{Session: r.ev.Session, Seq: r.ev.Seq, Type: r.ev.Type, Field: r.path + field, Reason: reason}
	}
}

func (r *factsMap) adopt(sub *factsMap) {
	if r.err == nil {
		r.err = sub.err
	}
}

// get returns a field of the wanted kind; required ones must be there.
func get[T any](r *factsMap, field string, required bool) (v T, ok bool) {
	raw, present := r.m[field]
	if !present {
		if required {
			r.fail(field, "missing")
		}
		return v, false
	}
	v, ok = raw.(T)
	if !ok {
		r.fail(field, fmt.Sprintf("want %T, got %T", v, raw))
	}
	return v, ok
}

func (r *factsMap) str(field string) string  { v, _ := get[string](r, field, false); return v }
func (r *factsMap) code(field string) string { v, _ := get[string](r, field, true); return v }

func (r *factsMap) uint(field string) uint64 {
	v, ok := get[int64](r, field, false)
	if ok && v < 0 {
		r.fail(field, fmt.Sprintf("want 0 or more, got %d", v))
		return 0
	}
	return uint64(v)
}

func (r *factsMap) bool(field string, missing bool) bool {
	v, ok := get[bool](r, field, false)
	if !ok {
		return missing
	}
	return v
}

func (r *factsMap) id(field string, required bool) (id uuid.UUID) {
	if b, ok := get[[]byte](r, field, required); ok {
		if len(b) != len(id) {
			r.fail(field, fmt.Sprintf("want 16 bytes, got %d", len(b)))
			return id
		}
		copy(id[:], b)
	}
	return id
}

func (r *factsMap) hash(field string) (h Hash) {
	if b, ok := get[[]byte](r, field, false); ok {
		if len(b) != len(h) {
			r.fail(field, fmt.Sprintf("want 32 bytes, got %d", len(b)))
			return h
		}
		copy(h[:], b)
	}
	return h
}

func (r *factsMap) sub(field string, required bool) *factsMap {
	m, ok := get[map[string]any](r, field, required)
	if !ok {
		return nil
	}
	return &factsMap{m: m, ev: r.ev, path: r.path + field + "/"}
}

// sandbox reads a sandbox tuple. Missing: mode is damage, network false, temp
// directories excluded, roots not recorded.
func (r *factsMap) sandbox() policy.Sandbox {
	s := policy.Sandbox{Mode: policy.Mode(r.code("mode")), Network: r.bool("network", false),
		ExcludeTmpdirEnvVar: r.bool("exclude_tmpdir_env_var", true), ExcludeSlashTmp: r.bool("exclude_slash_tmp", true)}
	if list, ok := get[[]any](r, "writable_roots", false); ok {
		paths := make([]string, len(list))
		for i, e := range list {
			if paths[i], ok = e.(string); !ok {
				r.fail("writable_roots", fmt.Sprintf("entry %d: want a string, got %T", i, e))
				return s
			}
		}
		roots, err := policy.RootsOf(paths...)
		if err != nil {
			r.fail("writable_roots", err.Error())
		}
		s.Roots = roots
	}
	return s
}

// defaults reads the recorded deployment default; missing: read-only, never.
func (r *factsMap) defaults() policy.Defaults {
	d := policy.Defaults{Sandbox: policy.Sandbox{Mode: policy.ReadOnly}.Canonical(), Approvals: policy.Never}
	if m := r.sub("defaults", false); m != nil {
		if s := m.sub("sandbox", false); s != nil {
			d.Sandbox = s.sandbox()
			m.adopt(s)
		}
		if a := m.str("approvals"); a != "" {
			d.Approvals = policy.Approval(a)
		}
		r.adopt(m)
	}
	return d
}
