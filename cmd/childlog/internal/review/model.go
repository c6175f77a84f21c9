package review

import "childlog/cmd/childlog/wire"

// Review is everything that is said of one session, in the order in which it is
// shown. Lists are never null. Times are RFC 3339 in UTC, digests lower-case hex.
type Review struct {
	Session    wire.Session  `json:"session"`
	AsOf       AsOf          `json:"as_of"`
	Sentence   Sentence      `json:"sentence"`
	Trust      Trust         `json:"trust"`
	Exceptions []Exception   `json:"exceptions"` // in the order of Checks; empty: none found
	Checks     []Check       `json:"checks"`     // what was looked for, whether or not it was found
	Coverage   Coverage      `json:"coverage"`
	Receipt    *Receipt      `json:"receipt"` // null: nobody delegated to it, or its receipt can't be read
	Policy     PolicyHistory `json:"policy"`
	Denials    []Denied      `json:"denials"` // by code
	Timeline   Timeline      `json:"timeline"`
	Usage      Usage         `json:"usage"`
	Redactions Redactions    `json:"redactions"`
	Chain      []Link        `json:"chain"` // from the session itself up to the root
}

// AsOf says which state of the log was reviewed. The hash stands for all of it.
type AsOf struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

// Sentence is the delegation in one line, and its parts.
type Sentence struct {
	Text      string          `json:"text"`
	Delegator *Party          `json:"delegator"` // null: a root, or nobody knows
	Delegate  Party           `json:"delegate"`
	Role      *string         `json:"role"`      // null: none was stated
	Principal *wire.Principal `json:"principal"` // null: none was recorded
	Until     *string         `json:"until"`     // null: no expiry

	AdoptedFrom *string `json:"adopted_from"` // evidence whose conversation it begins with; null: none
}

// Party is a session as somebody who delegates or is delegated to.
type Party struct {
	Session string `json:"session"`
	Label   string `json:"label"`
	Kind    string `json:"kind"`
	Missing bool   `json:"missing"` // it has no log in this store
}

// The states of [Trust], the gravest first.
const (
	StateIncomplete = "incomplete" // something can't be read or does not agree
	StateClaimed    = "claimed"    // an imported log, or an authority from outside the store
	StateRedacted   = "redacted"   // whole, and contents were erased with a marker
	StateVerified   = "verified"   // every check passed and nothing was erased
)

// Trust says how far the log can be believed. State is the gravest of what
// holds; the flags say which hold. The logs above are not checked for it, only
// what they and this one say of each other (see [Link]).
type Trust struct {
	State      string         `json:"state"`
	Incomplete bool           `json:"incomplete"`
	Claimed    bool           `json:"claimed"`
	Redacted   bool           `json:"redacted"`
	Reasons    []string       `json:"reasons"`  // why the state is not verified
	Findings   []wire.Finding `json:"findings"` // of the check, at most maxFindings
	More       uint64         `json:"more"`     // findings beyond those
	Anchor     Anchor         `json:"anchor"`
	Policing   Policing       `json:"enforcement"`
}

// Anchor says up to where the store's own signed checkpoint covers the log. Without
// one a log whose end was cut off looks like one that ended there; whoever has the
// key can sign that, too, unless a copy of the checkpoint is kept elsewhere.
type Anchor struct {
	Checkpoint bool    `json:"checkpoint"` // there is one
	Origin     *string `json:"origin"`     // of the checkpoint
	Positions  uint64  `json:"positions"`  // the size of its tree: positions below are covered
	Seq        uint64  `json:"seq"`        // the last seq of this session that lies below; 0: none
	Statement  string  `json:"statement"`
}

// Kinds of [Policing].
const (
	Enforced = "enforced" // each call that has a result was decided by childlog, and the harness obeys
	Partly   = "partly"   // some were
	Observed = "observed" // none was: the log was read from elsewhere, or its harness only records
)

// Policing says whether the policy was held against the calls. childlog knows
// what the harness reported, and no more.
type Policing struct {
	Kind   string `json:"kind"`
	Detail string `json:"detail"`
}

// Exception is one kind of thing out of the ordinary, with every place.
type Exception struct {
	Code   string  `json:"code"`
	Text   string  `json:"text"` // the kind in one sentence, with the count
	Count  uint64  `json:"count"`
	Places []Place `json:"places"` // in the order of seqs, at most Options.Places
	More   uint64  `json:"more"`   // places beyond those
}

// Place is where an exception stands.
type Place struct {
	Seq    uint64  `json:"seq"`   // 0: it stands at no event
	Time   *string `json:"time"`  // of that event, a claim
	Until  uint64  `json:"until"` // a second seq that belongs to it, such as the result or the narrowing; 0: none
	Call   *string `json:"call"`
	Tool   *string `json:"tool"`
	Detail string  `json:"detail"`
}

// Check is one thing that was looked for.
type Check struct {
	Code  string `json:"code"`
	Title string `json:"title"` // what is looked for, in a few words
	Run   bool   `json:"run"`
	Why   string `json:"why"` // why it was not run; "" if it was
}

// Coverage says how many of the calls had a decision. A call that was asked
// about and then made counts once.
type Coverage struct {
	Calls     uint64 `json:"calls"`
	Decided   uint64 `json:"decided"`
	Results   uint64 `json:"results"` // calls that have one
	Decisions uint64 `json:"decisions"`
	Allowed   uint64 `json:"allowed"`
	Denied    uint64 `json:"denied"`
	Needed    uint64 `json:"needed_approval"`
	Asks      uint64 `json:"asks"`
	Elsewhere uint64 `json:"allowed_elsewhere"` // calls that a harness let pass by a question of its own, by its word
	Events    uint64 `json:"events"`            // read
	Inherited uint64 `json:"inherited"`
	Unread    uint64 `json:"unread"` // seqs that can't be read

	// Classified says whose verdicts on commands the decisions on shell calls were
	// made with, in the order in which they came: at most a dozen.
	Classified []Classified `json:"classified"`
}

// Classified counts the decisions that were made with the verdict of a classifier.
type Classified struct {
	By      string `json:"by"` // with its version
	Allowed uint64 `json:"allowed"`
	Denied  uint64 `json:"denied"`
}

// Receipt is what the delegation asked and gave.
type Receipt struct {
	Seq         uint64               `json:"seq"`
	Digest      string               `json:"digest"`
	Parent      string               `json:"parent"`
	ParentSeq   uint64               `json:"parent_seq"`
	ToolCall    *string              `json:"tool_call"`
	Role        string               `json:"role"`
	NotBefore   *string              `json:"not_before"`
	Deadline    *string              `json:"deadline"`
	Sandbox     *wire.Sandbox        `json:"sandbox"` // captured; null: the parent had no override
	Approvals   string               `json:"approvals"`
	Fields      []ReceiptField       `json:"fields"` // of the own half, all of them
	Handed      []ReceiptField       `json:"handed"` // of what it may hand on, where that differs from the own half
	Relied      []wire.ExplicitGrant `json:"relied"` // explicit grants that gave more than the parent has
	Operator    wire.Operator        `json:"operator"`
	Lockdown    []string             `json:"lockdown"`
	MergePolicy *string              `json:"merge_policy"`
	Fingerprint wire.Fingerprint     `json:"fingerprint"`
	Evidence    map[string]string    `json:"evidence"` // by field: recorded, inferred or absent
}

// ReceiptField is one field of a receipt, from what could be handed on to what
// was. Rules are those that cut it, in order; none: nothing was taken away.
type ReceiptField struct {
	Field     string   `json:"field"`
	Ceiling   string   `json:"ceiling"`
	Requested string   `json:"requested"`
	Granted   string   `json:"granted"`
	Rules     []string `json:"rules"`
}

// Cut reports whether less was granted than was asked for.
func (f *ReceiptField) Cut() bool { return len(f.Rules) > 0 }

// PolicyHistory is how the policy came to be what it is. Now is what is in force;
// null if it can't be read.
type PolicyHistory struct {
	Now     *wire.Policy   `json:"now"`
	Error   *string        `json:"error"`
	Events  []PolicyChange `json:"events"`
	LeftOut uint64         `json:"left_out"` // earlier events that are not listed
}

// PolicyChange is one event that bears policy and what it changed. An event of
// the creation changes nothing; what the session was born with is in the receipt.
type PolicyChange struct {
	Seq      uint64        `json:"seq"`
	Time     string        `json:"time"`
	Type     string        `json:"type"`
	Source   string        `json:"source"`
	What     string        `json:"what"` // in words
	Creation bool          `json:"creation"`
	Changes  []FieldChange `json:"changes"`
}

// FieldChange is a field that an event changed.
type FieldChange struct {
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
}

// Denied is how often calls were denied with a code.
type Denied struct {
	Code  string   `json:"code"`
	Count uint64   `json:"count"`
	Rules []string `json:"rules"` // that denied, at most a dozen
	Tools []string `json:"tools"` // that were denied, at most a dozen
	Seqs  []uint64 `json:"seqs"`  // of the first decisions, at most Options.Places
}

// Timeline is what happened, as far as it bears on who may do what: creation,
// policy, delegations, denials, asks, activations, ends and what was erased.
type Timeline struct {
	Entries []Moment      `json:"entries"`
	LeftOut []TypeCount   `json:"left_out"` // events that are not listed, by type
	Holes   []wire.Damage `json:"holes"`
}

// Moment is one entry of a timeline. Gap is how many entries that would belong
// here were left out before it.
type Moment struct {
	Seq    uint64 `json:"seq"`
	Time   string `json:"time"`
	Type   string `json:"type"`
	Source string `json:"source"`
	Text   string `json:"text"`
	Tone   string `json:"tone"` // "", good, warn or bad: how it should strike the eye
	Gap    uint64 `json:"gap"`
}

// TypeCount is a number of events of a type.
type TypeCount struct {
	Type  string `json:"type"`
	Count uint64 `json:"count"`
}

// Usage is what was recorded as used: by the session itself, and by it with all
// below. Each session's own records count once, and where they were recorded.
type Usage struct {
	Own      wire.Usage `json:"own"`
	Subtree  wire.Usage `json:"subtree"`
	Sessions uint64     `json:"sessions"` // in the subtree, this one included
}

// Redactions are the contents that were erased, the children that were removed,
// and the legal holds that stand in the way of more.
type Redactions struct {
	Markers []Redaction `json:"markers"`
	Events  uint64      `json:"events"` // whose content is gone with a marker
	Purged  []Removed   `json:"purged"` // children of this session
	Holds   []Hold      `json:"holds"`
}

// Removed is a child whose whole log was removed on record. Its parent's log goes
// on naming it.
type Removed struct {
	Session string  `json:"session"`
	Seq     uint64  `json:"seq"` // of session/purged, in the store's own session
	Time    string  `json:"time"`
	By      string  `json:"by"`
	Code    string  `json:"code"`
	Basis   *string `json:"basis"`
	Events  uint64  `json:"events"` // that it had
	Receipt *string `json:"receipt"`
}

// Hold is a legal hold that was not released.
type Hold struct {
	Hold    string `json:"hold"`
	Seq     uint64 `json:"seq"`
	Code    string `json:"code"`
	By      string `json:"by"`
	Subtree bool   `json:"subtree"`
}

// Redaction is one marker: who erased which contents, when, and why by code.
type Redaction struct {
	Seq   uint64   `json:"seq"` // of the marker
	Time  string   `json:"time"`
	Type  string   `json:"type"`
	Seqs  []uint64 `json:"seqs"` // whose contents are gone, at most Options.Places
	Count uint64   `json:"count"`
	By    string   `json:"by"`
	Code  string   `json:"code"`
	Basis *string  `json:"basis"` // what it rests on, a code; null: none was stated
}

// Link is one session of the chain up, with the receipt by which it got its
// authority from the one above.
type Link struct {
	Party
	Depth     int     `json:"depth"`
	Status    string  `json:"status"`
	Receipt   *string `json:"receipt"` // digest; null: a root, or none can be read
	Seq       uint64  `json:"seq"`     // of the receipt
	ParentSeq uint64  `json:"parent_seq"`
	Started   uint64  `json:"started"` // seq in the log above that names this receipt; 0: none does
	Agrees    bool    `json:"agrees"`  // both logs name the same receipt, and the log above is the one it was made of
	Claimed   bool    `json:"claimed"` // evidence, or a stub of a session outside the store
	Note      string  `json:"note"`    // what is wrong, in words; "" if nothing
}
