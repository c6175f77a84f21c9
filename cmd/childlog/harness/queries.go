package harness

// PolicyRequest asks for a session's policy as of a seq.
type PolicyRequest struct {
	Session string `json:"session"`
	At      uint64 `json:"at,omitzero"` // 0: the head
}

// ResumeRequest rebuilds a session.
type ResumeRequest struct {
	Session  string    `json:"session"`
	By       string    `json:"by"`                // the recorded parent, or [Operator]
	Role     string    `json:"role,omitzero"`     // another than the recorded one is refused; "": not looked at
	Known    []string  `json:"known,omitzero"`    // types of open families that the harness knows; nil: it takes any
	Defaults *Defaults `json:"defaults,omitzero"` // in force: differences are reported and have no effect
}

// CheckRequest asks for the decision on one call.
type CheckRequest struct {
	Session  string `json:"session"`
	Call     Call   `json:"call"`
	Record   bool   `json:"record,omitzero"`   // append the call and its decision, in one commit
	Epoch    uint64 `json:"epoch,omitzero"`    // the activation that makes the call; needed to record while one is open
	Advisory bool   `json:"advisory,omitzero"` // with Record: the harness records the decision and does not obey it
	At       uint64 `json:"at,omitzero"`       // as of this seq, without Record and Epoch; 0: now
}

// CheckBatchRequest asks for the decisions on calls of one session, at most 4096.
// What is said of the request holds for each of them as it does for
// [CheckRequest].
type CheckBatchRequest struct {
	Session  string `json:"session"`
	Calls    []Call `json:"calls"`
	Record   bool   `json:"record,omitzero"`
	Epoch    uint64 `json:"epoch,omitzero"`
	Advisory bool   `json:"advisory,omitzero"`
	At       uint64 `json:"at,omitzero"`
}

// AskRequest asks whether one call, which needs an approval, may be made once.
type AskRequest struct {
	Session  string `json:"session"`
	Epoch    uint64 `json:"epoch,omitzero"`    // the activation that asks
	Call     Call   `json:"call"`              // its Ask, if given, becomes the question's id; the same call under it is the same question
	Question string `json:"question,omitzero"` // what to show a person; content
}

// AsksRequest lists the questions that wait for an answer.
type AsksRequest struct {
	Session string `json:"session,omitzero"` // "": of all sessions
}

// AnswerRequest answers a question. Who answers is for whoever calls to vouch for.
type AnswerRequest struct {
	Session string `json:"session"`
	Ask     string `json:"ask"`
	Allow   bool   `json:"allow"`         // the call may be made, once; else it may not
	Host    bool   `json:"host,omitzero"` // a program answers for the deployment; else a person
	Ref     string `json:"ref,omitzero"`  // an opaque reference of either; a code
}

// ExplainFieldRequest asks why a field of a policy has its value.
type ExplainFieldRequest struct {
	Session string `json:"session"`
	Field   string `json:"field"` // such as grant.shell; ExplainAll lists them
	At      uint64 `json:"at,omitzero"`
}

// ExplainCallRequest asks why a call is decided as it is.
type ExplainCallRequest struct {
	Session string `json:"session"`
	Call    Call   `json:"call"`
	At      uint64 `json:"at,omitzero"`
}

// ExplainEventRequest asks what one event did.
type ExplainEventRequest struct {
	Session string `json:"session"`
	Seq     uint64 `json:"seq"`
}

// DiffRequest compares a policy as of two seqs.
type DiffRequest struct {
	Session string `json:"session"`
	From    uint64 `json:"from,omitzero"` // 0: where the session's creation was whole
	To      uint64 `json:"to,omitzero"`   // 0: the head
}

// SessionFilter picks sessions; what is stated must all hold.
type SessionFilter struct {
	Parent  string `json:"parent,omitzero"`  // only the children of this session
	Subtree string `json:"subtree,omitzero"` // only this session and all below it
	Status  string `json:"status,omitzero"`  // idle, running, interrupted, settled, closed or evidence
	Kind    string `json:"kind,omitzero"`    // root, child or stub
	Role    string `json:"role,omitzero"`
	Sandbox string `json:"sandbox,omitzero"` // the mode in force now
}

// EventFilter picks events; what is stated must all hold.
type EventFilter struct {
	Types   []string `json:"types,omitzero"`   // tool/decision, or a family as policy/*; any of them
	Tool    string   `json:"tool,omitzero"`    // exact, or with one trailing *
	Verdict string   `json:"verdict,omitzero"` // allow, deny or needs_approval
	Code    string   `json:"code,omitzero"`
	Decider string   `json:"decider,omitzero"` // rule, pin, human or host
	Since   string   `json:"since,omitzero"`   // not before: a date, RFC 3339, or 36h or 7d ago
	Until   string   `json:"until,omitzero"`   // before; a date includes that day
}

// ListRequest lists sessions.
type ListRequest struct {
	SessionFilter
	EventFilter        // sessions whose log holds such an event
	Text        string `json:"text,omitzero"`  // in label, directory or ids, in any case
	After       string `json:"after,omitzero"` // the session that the page before ended with
	Limit       int    `json:"limit,omitzero"` // sessions a page, at most and by default [MaxListed]
}

// TreeRequest asks for the trees of delegations, or for that of one session.
type TreeRequest struct {
	Session string `json:"session,omitzero"`
}

// LogRequest reads a page of a log.
type LogRequest struct {
	Session string `json:"session"`
	From    uint64 `json:"from,omitzero"` // 0: the first
	To      uint64 `json:"to,omitzero"`   // 0: the head
	EventFilter
	Text      string `json:"text,omitzero"`  // in a content, in any case
	Limit     int    `json:"limit,omitzero"` // events a page, at most and by default [MaxPage]
	NoContent bool   `json:"no_content,omitzero"`
}

// SearchRequest finds events: by a text, by what picks them, or by both.
type SearchRequest struct {
	Text   string `json:"text,omitzero"`
	Regexp bool   `json:"regexp,omitzero"` // Text is an expression (RE2), and the case counts
	SessionFilter
	EventFilter
	Limit int `json:"limit,omitzero"` // events, at most and by default [MaxFound]
}

// FollowRequest says which events to follow.
type FollowRequest struct {
	Session   string   `json:"session,omitzero"`    // "": the whole store, in the order of its commits
	After     string   `json:"after,omitzero"`      // the cursor of the last event that was handled; "": from the first one on
	Types     []string `json:"types,omitzero"`      // only these, as of [EventFilter]
	NoContent bool     `json:"no_content,omitzero"` // leave the contents out
}

// HeadRequest asks where a log ends, or with "" the store.
type HeadRequest struct {
	Session string `json:"session,omitzero"`
}

// StatsRequest asks what a store holds.
type StatsRequest struct {
	Deep bool `json:"deep,omitzero"` // read the whole journal: what takes the space, growth by day
}

// VerifyRequest asks whether the store is intact, or one session. Without what
// was kept elsewhere nobody can tell a store from an older copy of it.
type VerifyRequest struct {
	Session     string           `json:"session,omitzero"`     // only what concerns this one; "": everything
	Key         string           `json:"key,omitzero"`         // the store's public key, NAME+HASH+KEY; "": its own word
	Checkpoints []KeptCheckpoint `json:"checkpoints,omitzero"` // heads that were kept elsewhere, at most 100
	Anchors     []string         `json:"anchors,omitzero"`     // heads of sessions that were kept elsewhere, "SESSION SEQ HASH", at most 10000
}

// KeptCheckpoint is a signed head of a store that was kept elsewhere.
type KeptCheckpoint struct {
	Name string `json:"name"` // for the answer, which has it as the file
	Note string `json:"note"` // the whole text
}
