package wire

import (
	"encoding/hex"

	"childlog/eventlog"
)

// Redaction says why a content is not there: it was erased on record.
type Redaction struct {
	Seq   uint64  `json:"seq"` // of the content/redacted
	Time  string  `json:"time"`
	Code  string  `json:"code"`
	Basis *string `json:"basis"`
	By    string  `json:"by"`
}

// RedactionOf converts a redaction; nil is nil.
func RedactionOf(r *eventlog.Redaction) *Redaction {
	if r == nil {
		return nil
	}
	return &Redaction{r.Seq, Time(r.Time), r.Code, optional(r.Basis), r.By}
}

// RedactedLine is a redacted event of a resumption.
type RedactedLine struct {
	Seq       uint64    `json:"seq"`
	Type      string    `json:"type"`
	Length    uint64    `json:"content_len"`
	Redaction Redaction `json:"redaction"`
}

// Erased is a content that a redaction erased, or would erase.
type Erased struct {
	Seq    uint64 `json:"seq"`
	Type   string `json:"type"`
	Length uint64 `json:"content_len"`
	Why    string `json:"why"`
}

// Passed is an event of which nothing was erased.
type Passed struct {
	Seq uint64 `json:"seq"`
	Why string `json:"why"`
}

// RedactedLog is what was erased of one session.
type RedactedLog struct {
	Session string   `json:"session"`
	Markers []uint64 `json:"markers"`
	Erased  []Erased `json:"erased"`
	Passed  []Passed `json:"passed"`
}

// SameText is an event that may repeat what was erased. Seq 0 is the receipt and
// the label of a child.
type SameText struct {
	Session string `json:"session"`
	Seq     uint64 `json:"seq"`
	Type    string `json:"type"`
	Why     string `json:"why"`
}

// Redacted is what a redaction did.
type Redacted struct {
	DryRun   bool          `json:"dry_run"`
	Contents int           `json:"contents"`
	Bytes    uint64        `json:"bytes"`
	Sessions []RedactedLog `json:"sessions"`
	Also     []SameText    `json:"also"`
	Remains  []string      `json:"remains"`
}

// RedactedOf converts what a redaction did.
func RedactedOf(r *eventlog.Redacted, remains []string) Redacted {
	out := Redacted{DryRun: r.DryRun, Sessions: []RedactedLog{}, Also: []SameText{}, Remains: remains}
	out.Contents, out.Bytes = r.Count()
	for _, l := range r.Sessions {
		log := RedactedLog{Session: l.Session.String(), Markers: append([]uint64{}, l.Markers...), Erased: []Erased{}, Passed: []Passed{}}
		for _, e := range l.Erased {
			log.Erased = append(log.Erased, Erased(e))
		}
		for _, p := range l.Passed {
			log.Passed = append(log.Passed, Passed(p))
		}
		out.Sessions = append(out.Sessions, log)
	}
	for _, s := range r.Also {
		out.Also = append(out.Also, SameText{s.Session.String(), s.Seq, s.Type, s.Why})
	}
	return out
}

// Hold is a legal hold.
type Hold struct {
	Hold    string `json:"hold"`
	Seq     uint64 `json:"seq"`
	Code    string `json:"code"`
	By      string `json:"by"`
	Subtree bool   `json:"subtree"`
}

// HoldOf converts a hold.
func HoldOf(h eventlog.Hold) Hold { return Hold{h.ID, h.Seq, h.Code, h.By, h.Subtree} }

// HeldSession is a hold that was set or released.
type HeldSession struct {
	Session string `json:"session"`
	State   string `json:"state"`
	Hold    string `json:"hold"`
	Seq     uint64 `json:"seq"`
}

// Purged is what is kept of a purged session.
type Purged struct {
	Session  string    `json:"session"`
	Top      string    `json:"top"`
	Kind     string    `json:"kind"`
	Parent   *string   `json:"parent"`
	Root     string    `json:"root"`
	Evidence bool      `json:"evidence"`
	Events   uint64    `json:"events"`
	Frames   uint64    `json:"frames"`
	Hash     string    `json:"hash"`
	Receipt  *string   `json:"receipt"`
	External *External `json:"external"` // the id is null: its hash is kept
	Created  string    `json:"created"`
	Last     string    `json:"last_activity"`
	Time     string    `json:"time"`
	Code     string    `json:"code"`
	Basis    *string   `json:"basis"`
	By       string    `json:"by"`
	Seq      uint64    `json:"seq"` // in the store's own session; 0: not written
}

// PurgedOf converts what is kept of a purged session.
func PurgedOf(p *eventlog.Purged) Purged {
	out := Purged{Session: p.Session.String(), Top: p.Top.String(), Kind: p.Kind, Parent: ID(p.Parent), Root: p.Root.String(), Evidence: p.Evidence,
		Events: p.Head, Frames: p.Frames, Hash: Hex(p.Hash), Created: Time(p.Created), Last: Time(p.Last), Time: Time(p.At), Code: p.Code, Basis: optional(p.Basis),
		By: p.By, Seq: p.Seq}
	if !p.Receipt.IsZero() {
		h := hex.EncodeToString(p.Receipt[:])
		out.Receipt = &h
	}
	if p.External != nil {
		out.External = &External{System: p.External.System}
	}
	return out
}

// PurgeLine is one order of a purge: done, or why not.
type PurgeLine struct {
	Session  string           `json:"session"`
	DryRun   bool             `json:"dry_run"`
	Purged   bool             `json:"purged"`
	Error    *string          `json:"error"`
	Events   uint64           `json:"events"`
	Frames   uint64           `json:"frames"`
	Sessions []Purged         `json:"sessions"`
	Before   *PurgeCheckpoint `json:"checkpoint_before"` // null: nothing was signed
	After    *PurgeCheckpoint `json:"checkpoint_after"`
	Remains  []string         `json:"remains"`
}

// PurgeCheckpoint is one that was made around a purge.
type PurgeCheckpoint struct {
	Origin string `json:"origin"`
	Size   uint64 `json:"size"`
	Root   string `json:"root"`
}

// PurgeCheckpointOf converts a checkpoint, nil if there is none.
func PurgeCheckpointOf(c eventlog.Checkpoint) *PurgeCheckpoint {
	if c.Size == 0 {
		return nil
	}
	return &PurgeCheckpoint{c.Origin, c.Size, Hex(c.Root)}
}

// Retained is one session that a retention looked at and that is old enough.
type Retained struct {
	Session  string  `json:"session"`
	Label    string  `json:"label"`
	Status   string  `json:"status"`
	Last     string  `json:"last_activity"`
	Action   string  `json:"action"` // redact, purge, skip or fail
	Why      *string `json:"why"`
	Sessions int     `json:"sessions"` // that go
	Events   uint64  `json:"events"`   // that go
	Contents int     `json:"contents"` // that are erased
	Bytes    uint64  `json:"bytes"`
}

// Retention is what a retention did, or would do.
type Retention struct {
	DryRun   bool   `json:"dry_run"`
	Class    string `json:"class"`
	Before   string `json:"before"` // sessions without activity since
	Floor    string `json:"floor"`  // and the preset below which an order has to say so
	Sessions int    `json:"sessions"`
	Events   uint64 `json:"events"`
	Contents int    `json:"contents"`
	Bytes    uint64 `json:"bytes"`
	Skipped  int    `json:"skipped"`
	Failed   int    `json:"failed"`
}
