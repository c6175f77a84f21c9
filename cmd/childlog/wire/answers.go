package wire

import (
	"childlog/eventlog"
	"childlog/replay"
)

// Drift is a difference between what a session holds and what its reader or
// its parent holds now. It has no effect.
type Drift struct {
	Kind     string `json:"kind"`
	Field    string `json:"field"`
	Recorded string `json:"recorded"`
	Present  string `json:"present"`
	Detail   string `json:"detail"`
}

// Skipped lists events of a type that childlog gives no meaning to.
type Skipped struct {
	Type      string `json:"type"`
	Required  bool   `json:"required"`
	Ignorable bool   `json:"ignorable"`
	Count     uint64 `json:"count"`
	FirstSeq  uint64 `json:"first_seq"`
}

// Range is a range of seqs.
type Range struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// Resumption is the answer of a cold resume.
type Resumption struct {
	Session        string         `json:"session"`
	Policy         Policy         `json:"policy"`
	Head           Head           `json:"head"`
	Status         string         `json:"status"`
	LastActivity   string         `json:"last_activity"`
	Epoch          uint64         `json:"epoch"`
	Drift          []Drift        `json:"drift"`
	OpenCalls      []OpenCall     `json:"open_calls"`
	Inbox          []Message      `json:"inbox"`
	Steps          uint64         `json:"steps"`
	Conversation   Range          `json:"conversation"`
	Skipped        []Skipped      `json:"skipped"`
	Redacted       []RedactedLine `json:"redacted"`
	RuntimeContext string         `json:"runtime_context"`
	Manifest       Manifest       `json:"manifest"`
}

// ResumptionOf converts a resumption; the inbox is the caller's to add.
func ResumptionOf(r *replay.Resumption) Resumption {
	out := Resumption{Session: r.Row.Session.String(), Policy: PolicyOf(&r.Policy), Head: Head{r.Row.Head, Hex(r.Row.Hash)}, Status: r.Status,
		LastActivity: Time(r.Row.LastActivity()), Epoch: r.Row.Epoch, Drift: []Drift{}, OpenCalls: OpenCallsOf(r.OpenCalls), Inbox: []Message{},
		Steps: r.Steps, Conversation: Range{max(1, r.Row.CompactedSeq), r.Row.Head}, Skipped: []Skipped{}, Redacted: []RedactedLine{}, RuntimeContext: r.Context,
		Manifest: ManifestOf(&r.Policy)}
	for _, d := range r.Drift {
		out.Drift = append(out.Drift, Drift(d))
	}
	for _, s := range r.Skipped {
		out.Skipped = append(out.Skipped, Skipped{s.Type, s.Required, !s.Required, s.Count, s.FirstSeq})
	}
	for _, e := range r.Redacted {
		out.Redacted = append(out.Redacted, RedactedLine{e.Seq, e.Type, e.Length, *RedactionOf(&e.Redaction)})
	}
	return out
}

// Captured is what a delegation took from the parent. Sandbox is null if the
// parent had no override: the recorded default counts then.
type Captured struct {
	Parent  string   `json:"parent"`
	Seq     uint64   `json:"seq"`
	Sandbox *Sandbox `json:"sandbox"`
}

// Created is the answer of a creation.
type Created struct {
	Session        string    `json:"session"`
	Seq            uint64    `json:"seq"`
	Hash           string    `json:"hash"`
	Kind           string    `json:"kind"`
	Label          string    `json:"label"`
	Parent         *string   `json:"parent"`
	External       *External `json:"external"`
	Existing       bool      `json:"existing"`
	Captured       *Captured `json:"captured"`
	Policy         Policy    `json:"policy"`
	RuntimeContext string    `json:"runtime_context"`
}

// Switched is the answer of a switch.
type Switched struct {
	Written
	Policy Policy `json:"policy"`
}

// Narrowed is what a narrowing did to one session.
type Narrowed struct {
	Session string   `json:"session"`
	Seq     uint64   `json:"seq"`
	Changed bool     `json:"changed"`
	Before  *Sandbox `json:"before"` // null: the policy was not read
	After   *Sandbox `json:"after"`
	Lost    []Cut    `json:"lost"`    // of the authority's own half
	Skipped *string  `json:"skipped"` // why nothing was written
	Unread  bool     `json:"unread"`  // written without reading the policy, which a newer version wrote
}

// Closed is something that a crash had left open.
type Closed struct {
	Kind    string `json:"kind"`
	ID      string `json:"id"`
	Outcome string `json:"outcome"`
}

// Activated is the answer of an activation.
type Activated struct {
	Session        string    `json:"session"`
	Epoch          uint64    `json:"epoch"`
	Seq            uint64    `json:"seq"`
	Head           uint64    `json:"head"`
	Closed         []Closed  `json:"closed"`
	Inbox          []Message `json:"inbox"`
	Policy         Policy    `json:"policy"`
	RuntimeContext string    `json:"runtime_context"`
}

// Sent is the answer of a message.
type Sent struct {
	Written
	Message string `json:"message"`
}

// Consumed is the answer to a consumed notice.
type Consumed struct {
	Written
	Child      string `json:"child"`
	SettledSeq uint64 `json:"settled_seq"` // of the last notice taken
}

// FieldChange is a field whose value differs between two seqs.
type FieldChange struct {
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
	Cause
}

// Diff compares a policy as of two seqs.
type Diff struct {
	Session string        `json:"session"`
	From    uint64        `json:"from"`
	To      uint64        `json:"to"`
	Changes []FieldChange `json:"changes"`
}

// Finding is one thing that a check found, with its place.
type Finding struct {
	Kind     string  `json:"kind"`
	Session  *string `json:"session"`
	Seq      uint64  `json:"seq"`
	Position uint64  `json:"position"`
	Detail   string  `json:"detail"`
}

// Verified is the answer of a check.
type Verified struct {
	OK        bool      `json:"ok"`
	Status    string    `json:"status"` // verified, verified_with_redactions, incomplete or failed
	Sessions  uint64    `json:"sessions"`
	Events    uint64    `json:"events"`
	Frames    uint64    `json:"frames"`
	Contents  uint64    `json:"contents"`
	Redacted  uint64    `json:"redacted"` // contents that were erased on record
	Withheld  uint64    `json:"withheld"` // contents that logs of other stores came without
	Purged    uint64    `json:"purged"`   // sessions that were removed on record
	Bytes     uint64    `json:"bytes"`    // of frames and contents that were read, as stored
	Signed    Signed    `json:"signed"`
	Findings  []Finding `json:"findings"`
	More      uint64    `json:"more"` // findings beyond those listed
	Notes     []Finding `json:"notes"`
	Statement string    `json:"statement"`
}

// FindingOf converts a finding.
func FindingOf(f eventlog.Finding) Finding {
	return Finding{f.Kind, ID(f.Session), f.Seq, f.Position, f.Detail}
}

// Schema names a JSON Schema.
type Schema struct {
	Name  string `json:"name"`
	ID    string `json:"id"`
	Title string `json:"title"`
}

// Failure is what a failed command says on stderr.
type Failure struct {
	Error FailureBody `json:"error"`
}

// FailureBody is the error: a stable code, a message and what to do.
type FailureBody struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}
