// Package wire holds the JSON shapes that the command prints: names in
// snake_case, stable, absent and empty told apart. Whatever else serves a
// store prints the same ones.
//
// Times are RFC 3339 in UTC, ids are UUIDs, hashes lower-case hex. A pointer
// is null where there is nothing; a list is never null.
package wire

import (
	"encoding/hex"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// Line renders one value as one line of JSON: the same bytes for the same value.
func Line(v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

// ID is a session, event or message id; uuid.Nil is null.
func ID(id uuid.UUID) *string {
	if id == uuid.Nil {
		return nil
	}
	s := id.String()
	return &s
}

// Time renders a time.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Hex renders a hash.
func Hex(h eventlog.Hash) string { return hex.EncodeToString(h[:]) }

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Origin is the place of the event that set something.
type Origin struct {
	Session string `json:"session"`
	Seq     uint64 `json:"seq"`
}

// Cause is an origin with the kind of event it is.
type Cause struct {
	Source string `json:"source"`
	Origin Origin `json:"origin"`
}

// CauseOf converts a cause.
func CauseOf(c policy.Cause) Cause {
	return Cause{Source: string(c.Source), Origin: Origin{Session: c.Origin.Session.String(), Seq: c.Origin.Seq}}
}

// Sandbox is a sandbox tuple. WritableRoots is null where no roots are
// recorded and [] where nothing is writable.
type Sandbox struct {
	Mode                string    `json:"mode"`
	WritableRoots       *[]string `json:"writable_roots"`
	Network             bool      `json:"network"`
	ExcludeTmpdirEnvVar bool      `json:"exclude_tmpdir_env_var"`
	ExcludeSlashTmp     bool      `json:"exclude_slash_tmp"`
}

// SandboxOf converts a sandbox.
func SandboxOf(v policy.Sandbox) Sandbox {
	s := Sandbox{Mode: string(v.Mode), Network: v.Network, ExcludeTmpdirEnvVar: v.ExcludeTmpdirEnvVar, ExcludeSlashTmp: v.ExcludeSlashTmp}
	if v.Roots.Recorded() {
		list := v.Roots.List()
		s.WritableRoots = &list
	}
	return s
}

// TracedSandbox is a sandbox with what set it: as a whole, which is what set
// the mode, and field by field.
type TracedSandbox struct {
	Sandbox
	Cause
	Fields SandboxCauses `json:"fields"`
}

// SandboxCauses names what set each field of a sandbox.
type SandboxCauses struct {
	Mode                Cause `json:"mode"`
	WritableRoots       Cause `json:"writable_roots"`
	Network             Cause `json:"network"`
	ExcludeTmpdirEnvVar Cause `json:"exclude_tmpdir_env_var"`
	ExcludeSlashTmp     Cause `json:"exclude_slash_tmp"`
}

func tracedOf(t policy.Traced) TracedSandbox {
	return TracedSandbox{Sandbox: SandboxOf(t.Value.Canonical()), Cause: CauseOf(t.Cause()), Fields: SandboxCauses{
		CauseOf(t.Mode), CauseOf(t.Roots), CauseOf(t.Network), CauseOf(t.ExcludeTmpdirEnvVar), CauseOf(t.ExcludeSlashTmp)}}
}

// Approvals is an approval policy: Policy is what counts, Recorded the raw
// value, which in an imported log may be another system's.
type Approvals struct {
	Policy   string `json:"policy"`
	Recorded string `json:"recorded"`
	Meaning  string `json:"meaning"`
	Cause
}

// Defaults is the deployment default recorded at creation.
type Defaults struct {
	Sandbox   Sandbox `json:"sandbox"`
	Approvals string  `json:"approvals"`
	Origin    Origin  `json:"origin"`
}

// Provider names what runs a session.
type Provider struct {
	Name      string `json:"name"`
	InProcess bool   `json:"in_process"`
}

// Receipt locates a child's delegation/granted.
type Receipt struct {
	Seq    uint64 `json:"seq"`
	Digest string `json:"digest"`
}

// PolicyFinding is something a reader of a policy should know.
type PolicyFinding struct {
	Code   string `json:"code"`
	Seq    uint64 `json:"seq"`
	Detail string `json:"detail"`
}

// Policy is an effective policy as of a seq, with provenance.
type Policy struct {
	Session       string        `json:"session"`
	Seq           uint64        `json:"seq"`
	Kind          string        `json:"kind"`
	Evidence      bool          `json:"evidence"`
	Claimed       bool          `json:"claimed"`
	Enforced      bool          `json:"enforced"`
	Parent        *string       `json:"parent"`
	ParentSeq     uint64        `json:"parent_seq"`
	Root          string        `json:"root"`
	Depth         int           `json:"depth"`
	MaxDepth      int           `json:"max_depth"`
	Mode          string        `json:"mode"`
	Provider      *Provider     `json:"provider"`
	WorkspaceRoot *string       `json:"workspace_root"`
	Sandbox       TracedSandbox `json:"sandbox"`
	Approvals     Approvals     `json:"approvals"`
	Bound         TracedSandbox `json:"bound"`
	Explicit      bool          `json:"explicit"`
	Defaults      Defaults      `json:"defaults"`
	Authority     *Authority    `json:"authority"`   // null: evidence has none
	Fingerprint   *Fingerprint  `json:"fingerprint"` // of the authority
	Standing
	Receipt    *Receipt        `json:"receipt"`
	PolicySeqs []uint64        `json:"policy_seqs"`
	Findings   []PolicyFinding `json:"findings"`
}

// PolicyOf converts an effective policy.
func PolicyOf(e *replay.Effective) Policy {
	by := CauseOf(e.DefaultsBy)
	p := Policy{Session: e.Session.String(), Seq: e.Seq, Kind: e.Kind, Evidence: e.Evidence, Claimed: e.Claimed(), Enforced: e.Enforced(),
		Parent: ID(e.Parent), ParentSeq: e.ParentSeq, Root: e.Root.String(), Depth: e.Depth, MaxDepth: e.MaxDepth, Mode: e.Mode,
		WorkspaceRoot: optional(e.WorkspaceRoot), Sandbox: tracedOf(e.Sandbox), Bound: tracedOf(e.Bound), Explicit: e.Explicit,
		Approvals: Approvals{Policy: string(e.Approvals), Recorded: string(e.ApprovalRaw), Meaning: e.Approvals.Meaning(), Cause: CauseOf(e.ApprovalBy)},
		Defaults:  Defaults{Sandbox: SandboxOf(e.Defaults.Sandbox), Approvals: string(e.Defaults.Approvals), Origin: by.Origin},
		Standing:  standingOf(e), PolicySeqs: e.Seqs(), Findings: []PolicyFinding{}}
	if e.Provider.Name != "" {
		p.Provider = &Provider{Name: e.Provider.Name, InProcess: e.Provider.InProcess}
	}
	if !e.Evidence {
		a, f := AuthorityOf(e.Authority), fingerprintOf(policy.FingerprintOf(e.Choices.Role, e.Authority))
		p.Authority, p.Fingerprint = &a, &f
	}
	if e.ReceiptSeq != 0 {
		p.Receipt = &Receipt{Seq: e.ReceiptSeq, Digest: Hex(e.Receipt)}
	}
	for _, f := range e.Findings {
		p.Findings = append(p.Findings, PolicyFinding{Code: f.Code, Seq: f.Seq, Detail: f.Detail})
	}
	return p
}

// Head is where a log ends; the hash stands for the whole log.
type Head struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

// Written says where events were written.
type Written struct {
	Session  string `json:"session"`
	Seq      uint64 `json:"seq"` // of the last one
	FirstSeq uint64 `json:"first_seq"`
	LastSeq  uint64 `json:"last_seq"`
	Hash     string `json:"hash"`
	Replayed bool   `json:"replayed"`
}

// WrittenOf converts a result.
func WrittenOf(r eventlog.Result) Written {
	return Written{Session: r.Session.String(), Seq: r.LastSeq, FirstSeq: r.FirstSeq, LastSeq: r.LastSeq, Hash: Hex(r.Hash), Replayed: r.Replayed}
}
