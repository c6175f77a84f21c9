package eventlog

import (
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
		Root: r.id("root", true), Depth: r.int("depth"), MaxDepth: r.int("max_depth"), Mode: r.str("mode"),
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
	// ClaimedInferred marks a delegation that the log itself does not state: an
	// importer took it from what the parent's log had in force when it delegated.
	ClaimedInferred = "delegation-inferred"
)

// ClaimsDelegation reports whether an imported policy event counts as what its
// session was delegated with, by the log's own word or by an importer's.
func ClaimsDelegation(ev *Event) bool {
	c := Claimed(ev)
	return c == ClaimedDelegation || c == ClaimedInferred
}

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
