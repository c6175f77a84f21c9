package wire

import (
	"time"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// External is another system's id of a session. ID is null once redacted.
type External struct {
	System string  `json:"system"`
	ID     *string `json:"id"`
}

// Session is one session in a list.
type Session struct {
	Session      string    `json:"session"`
	Kind         string    `json:"kind"`
	Parent       *string   `json:"parent"`
	Root         string    `json:"root"`
	Label        string    `json:"label"`
	Status       string    `json:"status"`
	Mode         string    `json:"mode"`
	Depth        int       `json:"depth"`
	MaxDepth     int       `json:"max_depth"`
	Events       uint64    `json:"events"`
	Epoch        uint64    `json:"epoch"`
	Evidence     bool      `json:"evidence"`
	Damaged      bool      `json:"damaged"`
	Created      string    `json:"created"`
	LastActivity string    `json:"last_activity"`
	External     *External `json:"external"`
}

// SessionOf converts a row. present is the boot id of whoever holds the store
// for writing, uuid.Nil if nobody is known to.
func SessionOf(r *eventlog.Row, present uuid.UUID) Session {
	s := Session{Session: r.Session.String(), Kind: r.Kind, Parent: ID(r.Parent), Root: r.Root.String(), Label: r.Label, Status: r.Status(present),
		Mode: r.Mode, Depth: r.Depth, MaxDepth: r.MaxDepth, Events: r.Head, Epoch: r.Epoch, Evidence: r.Evidence, Damaged: len(r.Damage) > 0,
		Created: Time(time.Unix(0, r.FirstTime)), LastActivity: Time(r.LastActivity())}
	if r.System != "" {
		s.External = &External{System: r.System, ID: optional(r.ExternalID)}
	}
	return s
}

// Listed is a session in a list. PolicyError is null where nothing hints at a
// policy that can't be read; else nothing may be granted to the session.
type Listed struct {
	Session
	PolicyError *string `json:"policy_error"`
}

// ListedOf converts a row; why is "" for a policy that can be read.
func ListedOf(r *eventlog.Row, present uuid.UUID, why string) Listed {
	return Listed{SessionOf(r, present), optional(why)}
}

// Node is a session in a tree, in preorder. Orphan: its parent is not in the
// store. Policy fields are null if the policy can't be read.
type Node struct {
	Session
	Level     int      `json:"level"`
	Orphan    bool     `json:"orphan"`
	Sandbox   *Sandbox `json:"sandbox"`
	Approvals *string  `json:"approvals"`
	Role      *string  `json:"role"`  // null: none was stated
	Grant     *Grant   `json:"grant"` // null: a root without a profile, or evidence
	Error     *string  `json:"error"`
	Purged    *Purged  `json:"purged,omitzero"` // it is no more: what is kept of it
}

// OpenCall is a tool call without a result.
type OpenCall struct {
	Call    string `json:"call"`
	Tool    string `json:"tool"`
	Seq     uint64 `json:"seq"`
	Started bool   `json:"started"`
}

// OpenCallsOf converts open calls.
func OpenCallsOf(calls []eventlog.OpenCall) []OpenCall {
	out := []OpenCall{}
	for _, c := range calls {
		out = append(out, OpenCall{c.Call, c.Tool, c.Seq, c.Started})
	}
	return out
}

// OpenAsk is an approval that was asked for and not decided.
type OpenAsk struct {
	Ask  string `json:"ask"`
	Call string `json:"call"`
	Seq  uint64 `json:"seq"`
}

// Message is a follow-up in a session's inbox.
type Message struct {
	Message     string  `json:"message"`
	From        *string `json:"from"` // null: an operator
	Seq         uint64  `json:"seq"`
	ContentText *string `json:"content_text"` // null: gone, or not read
}

// MessageOf converts a message; text is nil if it is not at hand.
func MessageOf(m eventlog.Message, text *string) Message {
	return Message{Message: m.ID.String(), From: ID(m.From), Seq: m.Seq, ContentText: text}
}

// Damage is a range of a log that can't be read, or a break of its chain.
type Damage struct {
	From  uint64 `json:"from"`
	To    uint64 `json:"to"`
	Error string `json:"error"`
}

// Settled is one end of a run.
type Settled struct {
	Seq     uint64 `json:"seq"`
	Outcome string `json:"outcome"`
}

// Usage sums what was recorded.
type Usage struct {
	Input      uint64 `json:"input"`
	Output     uint64 `json:"output"`
	CacheRead  uint64 `json:"cache_read"`
	CacheWrite uint64 `json:"cache_write"`
	CostMicros uint64 `json:"cost_micros"`
	Records    uint64 `json:"records"`
}

// Activation is the last activation of a session.
type Activation struct {
	Epoch uint64  `json:"epoch"`
	Open  bool    `json:"open"`
	Boot  *string `json:"boot"`
}

// UnknownType names the first event that a newer version wrote.
type UnknownType struct {
	Seq  uint64 `json:"seq"`
	Type string `json:"type"`
}

// Detail is everything small about one session.
type Detail struct {
	Session
	Head          Head              `json:"head"`
	WorkspaceRoot *string           `json:"workspace_root"`
	Provider      *Provider         `json:"provider"`
	Activation    Activation        `json:"activation"`
	SeedLen       uint64            `json:"seed_len"`
	SeedFrom      *string           `json:"seed_from"` // null without a seed
	Turns         uint64            `json:"turns"`
	Steps         uint64            `json:"steps"`
	Calls         uint64            `json:"calls"`
	OpenTurn      *uint64           `json:"open_turn"`
	OpenCalls     []OpenCall        `json:"open_calls"`
	OpenAsks      []OpenAsk         `json:"open_asks"`
	Inbox         []Message         `json:"inbox"`
	Children      []string          `json:"children"`
	Settles       []Settled         `json:"settles"`
	Denials       map[string]uint64 `json:"denials"`
	Usage         Usage             `json:"usage"`
	Damage        []Damage          `json:"damage"`
	Redactions    uint64            `json:"redactions"` // contents that were erased on record
	Holds         []Hold            `json:"holds"`
	Purged        []string          `json:"purged"` // of the children
	Unknown       *UnknownType      `json:"unknown"`
	Policy        *Policy           `json:"policy"`
	PolicyError   *string           `json:"policy_error"`
}

// DetailOf converts a row; the inbox, the children and the policy are the
// caller's to add.
func DetailOf(r *eventlog.Row, present uuid.UUID) Detail {
	d := Detail{Session: SessionOf(r, present), Head: Head{r.Head, Hex(r.Hash)}, WorkspaceRoot: optional(r.WorkspaceRoot),
		Activation: Activation{r.Epoch, r.Open, ID(r.Boot)}, SeedLen: r.SeedLen, Turns: r.Turns, Steps: r.Steps, Calls: r.Calls,
		OpenCalls: OpenCallsOf(r.OpenCalls), OpenAsks: []OpenAsk{}, Inbox: []Message{}, Children: []string{}, Redactions: r.Redactions, Holds: []Hold{}, Purged: []string{}, Settles: []Settled{},
		Denials: map[string]uint64{}, Damage: []Damage{},
		Usage: Usage{r.Usage.Input, r.Usage.Output, r.Usage.CacheRead, r.Usage.CacheWrite, r.Usage.CostMicros, r.Usage.Of}}
	if r.Provider != "" {
		d.Provider = &Provider{r.Provider, r.InProcess}
	}
	if r.TurnSeq != 0 {
		d.OpenTurn = &r.Turn
	}
	for _, a := range r.OpenAsks {
		d.OpenAsks = append(d.OpenAsks, OpenAsk{a.Ask, a.Call, a.Seq})
	}
	for _, h := range r.Holds {
		d.Holds = append(d.Holds, HoldOf(h))
	}
	for _, s := range r.Settles {
		d.Settles = append(d.Settles, Settled{s.Seq, s.Outcome})
	}
	for _, c := range r.Denials {
		d.Denials[c.Code] = c.N
	}
	for _, g := range r.Damage {
		d.Damage = append(d.Damage, Damage{g.From, g.To, g.Reason})
	}
	if r.UnknownSeq != 0 {
		d.Unknown = &UnknownType{r.UnknownSeq, r.UnknownType}
	}
	return d
}

// Notice tells a parent that a run of a child settled.
type Notice struct {
	Child      string            `json:"child"`
	SettledSeq uint64            `json:"settled_seq"`
	Outcome    string            `json:"outcome"`
	Denied     uint64            `json:"denied"`
	Denials    map[string]uint64 `json:"denials"`
	Usage      map[string]uint64 `json:"usage"`
}

// Hit is an event that a search found. Before, match and after are the text
// around the first match in its content, null if no text was looked for.
type Hit struct {
	Session   string  `json:"session"`
	Label     string  `json:"label"`
	Seq       uint64  `json:"seq"`
	Type      string  `json:"type"`
	Time      string  `json:"time"`
	Inherited *Origin `json:"inherited"`
	Before    *string `json:"before"`
	Match     *string `json:"match"`
	After     *string `json:"after"`
}
