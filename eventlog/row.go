package eventlog

import (
	"bytes"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// foldVersion numbers the fold below. An index written by another version is
// rebuilt, never trusted.
const foldVersion = 5

// usageWindow bounds how far apart two records of one usage id may lie and
// still count once: harnesses repeat a usage record while a response streams.
const usageWindow = 64

// Row is a session's small state: a running fold of its log, kept in the
// derived index so that lists and status need no replay. It holds no policy:
// policy is always read from the log. Equal to the fold of the whole log at
// every head; Check compares the two.
type Row struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused // encoding option

	Session       uuid.UUID
	Kind          string
	Evidence      bool
	Parent        uuid.UUID // uuid.Nil for roots
	Root          uuid.UUID
	Depth         int
	MaxDepth      int
	Mode          string
	Provider      string
	InProcess     bool
	Label         string // content of session/created or the last session/titled
	Cwd           string // content of session/created: for display, not authority
	System        string // of the external id
	ExternalID    string
	WorkspaceRoot string
	SeedLen       uint64

	Head       uint64 // seq of the last event; also the number of events
	Hash       Hash   // chain hash after the head
	LastPolicy uint64 // seq of the last policy-bearing event
	Frames     uint64
	LastPos    uint64 // position of the head's frame
	FirstTime  int64  // ns since 1970
	LastTime   int64  // ns since 1970, the latest of any event: last activity

	Epoch      uint64 // of the last activation
	Boot       uuid.UUID
	Open       bool // the last activation has not ended
	SettledSeq uint64
	Outcome    string
	ClosedSeq  uint64
	Settles    []Settle // the last ones, activations in between included

	Turn, TurnSeq, Step, StepSeq uint64 // the open turn and step, 0 if none
	Turns, Steps                 uint64 // started, seeds excluded
	Calls                        uint64
	Delegations                  uint64 // started from this session
	OpenCalls                    []OpenCall
	OpenAsks                     []OpenAsk
	Grants                       []OnceGrant // the last allowed-onces
	Inbox                        []Message
	CompactedSeq                 uint64 // the last history/compacted
	Denials                      []Count
	Usage                        Usage
	UsageSeen                    []uint64 // the last ids counted, hashed
	Damage                       []Damage
	Active                       int64  // ns since 1970, the latest of any event but erasures and holds: what an age is counted from
	LabelSeq                     uint64 // the event whose content gave the label
	Redacted                     uint64 // the last content/redacted
	Redactions                   uint64 // contents that were erased on record
	Holds                        []Hold // legal holds that were not released
	UnknownSeq                   uint64 // the first event of a closed family that this version does not know
	UnknownType                  string
	Imported                     bool // the log came from another store as it is: evidence, whatever it says
}

// Settle is one end of a run. It outlives a later activation, so that a parent
// that was away still gets its notice.
type Settle struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused
	Seq      uint64
	Outcome  string
}

// settleWindow bounds how many notices of one child can be pending; a newer
// one stands for those it pushes out, whose events stay in the log.
const settleWindow = 64

// OpenCall is a tool call without a result. Started tells a call that was
// recorded as made from one that was only asked about.
type OpenCall struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused
	Call     string
	Tool     string
	Seq      uint64
	Started  bool
}

// OpenAsk is an approval/asked without a decision.
type OpenAsk struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused
	Ask      string
	Call     string
	Seq      uint64
}

// Message is a follow-up that no activation has claimed.
type Message struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused
	ID       uuid.UUID
	From     uuid.UUID
	Seq      uint64
}

// Count is a number of occurrences of a code.
type Count struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused
	Code     string
	N        uint64
}

// Usage sums usage/recorded; one usage id counts once.
type Usage struct {
	_msgpack                                             struct{} `msgpack:",as_array"` //nolint:unused
	Input, Output, CacheRead, CacheWrite, CostMicros, Of uint64   // Of: records counted
}

// Damage is a range of seqs that can't be read, or a break of the chain.
type Damage struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused
	From, To uint64
	Reason   string
}

// maxDamage bounds the damage a row lists; one entry is enough to refuse.
const maxDamage = 8

// createdContent is the JSON content of session/created. All of it can be
// redacted without changing what the session may do.
type createdContent struct {
	Label      string `json:"label,omitzero"`
	Cwd        string `json:"cwd,omitzero"`
	ExternalID string `json:"external_id,omitzero"`
}

// foldsContent reports whether the row takes something from the content of
// an event of this type; everything else is folded from facts alone.
func foldsContent(typ string) bool {
	return typ == TypeSessionCreated || typ == TypeSessionTitled
}

// applyFrame folds a frame's envelope. It tolerates gaps and notes them, so
// that one damaged frame does not hide the rest of a log.
func (r *Row) applyFrame(f *frame, position uint64) {
	if f.first != r.Head+1 {
		r.damage(r.Head+1, f.first-1, "missing events")
		r.Hash = f.prev
	} else if f.prev != r.hashBefore(f.session) {
		r.damage(f.first, f.first, "chain: previous hash differs")
		r.Hash = f.prev
	} else if r.Head == 0 {
		r.Hash = f.prev
	}
	// Either all of a log came from another store or nothing. Damage that mixes
	// the two must not make a native log of it.
	if r.Frames > 0 && f.imported != r.Imported {
		r.damage(f.first, f.first, "a frame from another store in a log that is not, or the other way round")
	}
	r.Imported = r.Imported || f.imported
	r.Evidence = r.Evidence || r.Imported
	r.Session = f.session
	r.Frames++
	r.LastPos = position
}

func (r *Row) hashBefore(session uuid.UUID) Hash {
	if r.Head == 0 {
		return Genesis(session)
	}
	return r.Hash
}

func (r *Row) damage(from, to uint64, reason string) {
	if len(r.Damage) < maxDamage {
		r.Damage = append(slices.Clip(r.Damage), Damage{From: from, To: to, Reason: reason})
	}
}

// cutOff returns the damage behind the head, if there is some: events that
// were appended and can't be read any more.
func (r *Row) cutOff() (Damage, bool) {
	if n := len(r.Damage); n > 0 && r.Damage[n-1].From > r.Head {
		return r.Damage[n-1], true
	}
	return Damage{}, false
}

// apply folds one event. It replaces slices instead of changing them, so that
// a copy of a row stays what it was.
func (r *Row) apply(ev *Event, after Hash) {
	r.Head, r.Hash = ev.Seq, after
	t := ev.Time.UnixNano()
	if r.FirstTime == 0 {
		r.FirstTime = t
	}
	r.LastTime = max(r.LastTime, t) // a clock set back brings no deadline back
	if !erases(ev.Type) {
		r.Active = max(r.Active, t)
	}
	if ev.PolicyBearing {
		if ev.PrevPolicy != r.LastPolicy && len(r.Damage) == 0 {
			r.damage(ev.Seq, ev.Seq, "policy link differs")
		}
		r.LastPolicy = ev.Seq
	}
	if r.UnknownSeq == 0 && !IsKnown(ev.Type, ev.Version) {
		r.UnknownSeq, r.UnknownType = ev.Seq, ev.Type
	}
	if ev.Inherited != nil {
		return // a seed is the parent's past, not this session's
	}
	r.endsGrants(ev)
	f := ev.Facts
	switch ev.Type {
	case TypeSessionCreated:
		r.applyCreated(ev)
	case TypeSessionTitled:
		r.Label, r.LabelSeq = string(ev.Content), ev.Seq
	case TypeSessionSettled:
		r.SettledSeq, r.Outcome = ev.Seq, f.Str("outcome")
		settles := append(slices.Clip(r.Settles), Settle{Seq: ev.Seq, Outcome: r.Outcome})
		r.Settles = settles[max(0, len(settles)-settleWindow):]
	case TypeSessionClosed:
		r.ClosedSeq = ev.Seq
	case TypeActivationStarted:
		r.Epoch, r.Boot, r.Open, r.SettledSeq, r.Outcome = f.Uint("epoch"), f.UUID("boot"), true, 0, ""
	case TypeActivationEnded:
		if f.Uint("epoch") == r.Epoch {
			r.Open = false
		}
	case TypeTurnStart:
		r.Turn, r.TurnSeq = f.Uint("turn"), ev.Seq
		r.Turns++
	case TypeTurnEnd:
		r.Turn, r.TurnSeq, r.Step, r.StepSeq = 0, 0, 0, 0
	case TypeStepStart:
		r.Step, r.StepSeq = f.Uint("step"), ev.Seq
		r.Steps++
	case TypeStepEnd:
		r.Step, r.StepSeq = 0, 0
	case TypeDelegationStarted:
		r.Delegations++
	case TypeToolCall:
		// Whoever decides a call records it, and its harness may log it too: one
		// call, as long as it is open.
		if !slices.ContainsFunc(r.OpenCalls, func(o OpenCall) bool { return o.Call == f.Str("call") && o.Started }) {
			r.Calls++
		}
		r.openCall(OpenCall{Call: f.Str("call"), Tool: f.Str("tool"), Seq: ev.Seq, Started: true})
	case TypeToolResult:
		r.closeCall(f.Str("call"))
	case TypeToolDecision:
		switch f.Str("verdict") {
		case "deny":
			r.deny(f.Str("code"))
			r.closeCall(f.Str("call")) // it will never have a result
		case "needs_approval":
			r.closeCall(f.Str("call")) // the ask that follows opens it again
		}
	case TypeApprovalAsked:
		ask := OpenAsk{Ask: f.Str("ask"), Call: f.Str("call"), Seq: ev.Seq}
		r.OpenAsks = append(slices.Clip(r.OpenAsks), ask)
		if ask.Call != "" {
			r.openCall(OpenCall{Call: ask.Call, Tool: f.Str("tool"), Seq: ev.Seq})
		}
	case TypeApprovalDecided:
		if i := slices.IndexFunc(r.OpenAsks, func(a OpenAsk) bool { return a.Ask == f.Str("ask") }); i >= 0 && f.Str("outcome") == string(AskAllowedOnce) {
			r.grant(r.OpenAsks[i], ev.Seq)
		}
		r.OpenAsks = slices.DeleteFunc(slices.Clone(r.OpenAsks), func(a OpenAsk) bool { return a.Ask == f.Str("ask") })
		if f.Str("outcome") == "rejected" {
			r.deny("approval_" + f.Str("decider"))
		}
	case TypeInboxQueued:
		r.Inbox = append(slices.Clip(r.Inbox), Message{ID: f.UUID("message"), From: f.UUID("from"), Seq: ev.Seq})
	case TypeInboxClaimed:
		r.claim(f)
	case TypeControlInterrupt:
		if !f.Bool("keep_inbox") {
			r.Inbox = nil
		}
	case TypeHistoryCompacted:
		r.CompactedSeq = ev.Seq
	case TypeUsageRecorded:
		r.usage(f)
	case TypeContentRedacted:
		r.applyRedacted(ev)
	case TypeSessionHeld:
		r.applyHeld(ev)
	}
}

func (r *Row) applyCreated(ev *Event) {
	c, err := ParseCreated(ev)
	if err != nil {
		r.damage(ev.Seq, ev.Seq, err.Error())
		return
	}
	r.Kind, r.Evidence, r.Parent, r.Root, r.Depth, r.MaxDepth, r.Mode = c.Kind, c.Evidence || r.Imported, c.Parent, c.Root, c.Depth, c.MaxDepth, c.Mode
	r.Provider, r.InProcess, r.WorkspaceRoot, r.SeedLen = c.Provider.Name, c.Provider.InProcess, c.WorkspaceRoot, c.SeedLen
	if c.External != nil {
		r.System = c.External.System
	}
	r.LabelSeq = ev.Seq
	var text createdContent
	if json.Unmarshal(ev.Content, &text) == nil {
		r.Label, r.Cwd, r.ExternalID = text.Label, text.Cwd, text.ExternalID
	}
}

// openCall adds a call, or marks an asked one as started.
func (r *Row) openCall(c OpenCall) {
	calls := slices.Clone(r.OpenCalls)
	if i := slices.IndexFunc(calls, func(o OpenCall) bool { return o.Call == c.Call }); i >= 0 {
		calls[i].Started = calls[i].Started || c.Started
	} else {
		calls = append(calls, c)
	}
	r.OpenCalls = calls
}

func (r *Row) closeCall(call string) {
	r.OpenCalls = slices.DeleteFunc(slices.Clone(r.OpenCalls), func(o OpenCall) bool { return o.Call == call })
}

func (r *Row) deny(code string) {
	counts := slices.Clone(r.Denials)
	i, found := slices.BinarySearchFunc(counts, code, func(c Count, code string) int { return bytes.Compare([]byte(c.Code), []byte(code)) })
	if !found {
		counts = slices.Insert(counts, i, Count{Code: code})
	}
	counts[i].N++
	r.Denials = counts
}

func (r *Row) claim(f Facts) {
	m, err := f.Map()
	if err != nil {
		return
	}
	list, _ := m["messages"].([]any)
	claimed := make(map[uuid.UUID]bool, len(list))
	for _, c := range list {
		if id, ok := c.([]byte); ok && len(id) == len(uuid.UUID{}) {
			claimed[uuid.UUID(id)] = true
		}
	}
	r.Inbox = slices.DeleteFunc(slices.Clone(r.Inbox), func(msg Message) bool { return claimed[msg.ID] })
}

func (r *Row) usage(f Facts) {
	h := ExternalHash("usage", f.Str("usage"))
	var id uint64
	for _, b := range h[:8] {
		id = id<<8 | uint64(b)
	}
	if slices.Contains(r.UsageSeen, id) {
		return
	}
	seen := append(slices.Clip(r.UsageSeen), id)
	r.UsageSeen = seen[max(0, len(seen)-usageWindow):]
	r.Usage.Input = added(r.Usage.Input, f.Uint("input"))
	r.Usage.Output = added(r.Usage.Output, f.Uint("output"))
	r.Usage.CacheRead = added(r.Usage.CacheRead, f.Uint("cache_read"))
	r.Usage.CacheWrite = added(r.Usage.CacheWrite, f.Uint("cache_write"))
	r.Usage.CostMicros = added(r.Usage.CostMicros, f.Uint("cost_micros"))
	r.Usage.Of++
}

// added adds, and stays at the largest number that facts can hold: a sum that
// wrapped would read as little.
func added(a, b uint64) uint64 { return min(a+min(b, maxInteger), maxInteger) }

// LastActivity is the latest time of any event, a claim of the store's clock.
func (r *Row) LastActivity() time.Time { return time.Unix(0, r.LastTime).UTC() }

// Status values, in the order in which they are decided.
const (
	StatusEvidence    = "evidence"
	StatusClosed      = "closed"
	StatusSettled     = "settled"
	StatusRunning     = "running"     // an activation of the process that holds the store
	StatusInterrupted = "interrupted" // an activation whose process is gone
	StatusIdle        = "idle"        // created, or its activation ended without settling
)

// Status derives what the session is doing now. present is the boot id of the
// process that holds the store for writing, uuid.Nil if none is known: an
// activation of any other boot was interrupted.
func (r *Row) Status(present uuid.UUID) string {
	switch {
	case r.Evidence:
		return StatusEvidence
	case r.ClosedSeq != 0:
		return StatusClosed
	case r.SettledSeq != 0:
		return StatusSettled
	case r.Open && r.Boot == present && present != uuid.Nil:
		return StatusRunning
	case r.Open:
		return StatusInterrupted
	}
	return StatusIdle
}
