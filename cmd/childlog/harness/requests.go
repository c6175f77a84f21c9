package harness

import "childlog/eventlog"

// NoRequest asks for something that there is one of.
type NoRequest struct{}

// SessionRequest names one session.
type SessionRequest struct {
	Session string `json:"session"`
}

// CloseRequest names the session to end for good.
type CloseRequest struct {
	Session string `json:"session"`
}

// Sandbox is a sandbox as it is asked for. Directories are absolute, with their
// links resolved (see [Directory]); nobody resolves them again.
type Sandbox struct {
	Mode                string   `json:"mode"`                    // read-only, workspace-write or danger-full-access
	WritableRoots       []string `json:"writable_roots,omitzero"` // beside the workspace, with workspace-write
	Network             *bool    `json:"network,omitzero"`        // nil: only under danger-full-access
	ExcludeTmpdirEnvVar bool     `json:"exclude_tmpdir_env_var,omitzero"`
	ExcludeSlashTmp     bool     `json:"exclude_slash_tmp,omitzero"`
}

// Defaults is the deployment's default: of Root the one to record, of Delegate
// and Resume the one in force. What is left out is read-only and ask for a root,
// and as recorded elsewhere. Neither implementation reads the environment.
type Defaults struct {
	Sandbox   *Sandbox `json:"sandbox,omitzero"`
	Approvals string   `json:"approvals,omitzero"` // ask, or never: never ask, always reject
}

// RootRequest describes a root. The zero value is one under the most careful
// default: read-only without network, approvals by asking.
type RootRequest struct {
	ID        string    `json:"id,omitzero"`        // a UUID; "": a random one
	Sandbox   *Sandbox  `json:"sandbox,omitzero"`   // an explicit override; nil: the default counts
	Approvals string    `json:"approvals,omitzero"` // likewise: ask or never
	Defaults  *Defaults `json:"defaults,omitzero"`
	Label     string    `json:"label,omitzero"`     // for people; content, so that it can be redacted
	External  string    `json:"external,omitzero"`  // another system's id of this session, as SYSTEM:ID
	Workspace string    `json:"workspace,omitzero"` // absolute, see [Directory]; the root of workspace-write
	MaxDepth  int       `json:"max_depth,omitzero"` // how many delegations may follow one below the other, 1 to 8; 0: 3
	Claimed   bool      `json:"claimed,omitzero"`   // a stub for a session outside the store
	Profile   *Profile  `json:"profile,omitzero"`   // what it may do and hand on; nil: everything beside the sandbox
}

// DelegateRequest describes a delegation.
type DelegateRequest struct {
	Parent   string    `json:"parent"`
	Epoch    uint64    `json:"epoch,omitzero"`    // the parent's activation, refused once superseded; 0: not looked at
	Defaults *Defaults `json:"defaults,omitzero"` // in force
	Adopt    string    `json:"adopt,omitzero"`    // evidence whose conversation the child begins with, up to the child's Fork, 0 being all of it
	Child    Child     `json:"child"`             // what is asked for; the zero value is as much as the parent hands on
}

// Event is an event to append. At most one of the contents is given.
type Event struct {
	ID            string         `json:"id,omitzero"`    // a UUID, for retries; "": a random one, and no retry finds it
	Type          string         `json:"type"`           // family/name, of an open family
	Facts         map[string]any `json:"facts,omitzero"` // codes, integers, booleans; hashed for ever, so no free text
	Content       JSON           `json:"content,omitzero"`
	ContentText   *string        `json:"content_text,omitzero"`
	ContentBase64 *string        `json:"content_base64,omitzero"` // standard encoding, padded
	Ignorable     bool           `json:"ignorable,omitzero"`      // a reader that does not know the type may skip it

	given JSON
	read  *eventlog.NewEvent // of given; nil: not read yet
}

// AppendRequest is a batch of events, all or nothing.
type AppendRequest struct {
	Session string  `json:"session"`
	Expect  *uint64 `json:"expect,omitzero"` // the head seq that the log must have, 0 for an empty one; nil: any
	Epoch   uint64  `json:"epoch,omitzero"`  // the activation that appends; 0: none is open
	Key     string  `json:"key,omitzero"`    // names this batch of the session, for ever, so that a retry of it is written once; its events have their ids from it
	Events  []Event `json:"events"`
}

// SwitchRequest changes what a session sets for itself.
type SwitchRequest struct {
	Session   string   `json:"session"`
	Epoch     uint64   `json:"epoch,omitzero"` // the activation that switches; 0: an operator does
	Sandbox   *Sandbox `json:"sandbox,omitzero"`
	Approvals string   `json:"approvals,omitzero"`
}

// NarrowRequest lowers what one session may do, with Subtree also all below it,
// with All every session of the store. It needs a reason, and at least one of
// the three ceilings.
type NarrowRequest struct {
	Session string   `json:"session,omitzero"` // "" with All
	Subtree bool     `json:"subtree,omitzero"`
	All     bool     `json:"all,omitzero"`
	Sandbox *Sandbox `json:"sandbox,omitzero"` // a ceiling; its roots, if it names any, stand instead of the workspace
	Ceiling *Wish    `json:"ceiling,omitzero"` // of what it may do beside it; what is stated narrows
	Rules   bool     `json:"rules,omitzero"`   // the operator rules that the store has now
	Reason  string   `json:"reason"`           // for the record; content
}

// SendRequest is a message for a session.
type SendRequest struct {
	Session string `json:"session"`
	By      string `json:"by"` // the recorded parent, or [Operator]
	Text    string `json:"text"`
}

// InterruptRequest asks whatever runs a session to stop its turn.
type InterruptRequest struct {
	Session   string `json:"session"`
	By        string `json:"by"`                  // the recorded parent, or [Operator]
	KeepInbox bool   `json:"keep_inbox,omitzero"` // else messages that nobody claimed are dropped
}

// ClaimRequest takes the messages that are pending.
type ClaimRequest struct {
	Session string `json:"session"`
	Epoch   uint64 `json:"epoch"` // the activation that claims
}

// ActivateRequest takes a session up for work.
type ActivateRequest struct {
	Session string `json:"session"`
	By      string `json:"by"` // the recorded parent, or [Operator]
}

// EndRequest lets go of a session.
type EndRequest struct {
	Session string `json:"session"`
	Epoch   uint64 `json:"epoch"`           // the activation to end
	Reason  string `json:"reason,omitzero"` // a code; "": released
}

// SettleRequest records how a run ended.
type SettleRequest struct {
	Session string `json:"session"`
	Outcome string `json:"outcome"`        // a code such as completed, failed or cancelled
	Epoch   uint64 `json:"epoch,omitzero"` // the activation that settles; 0: an operator does
}

// ConsumeRequest takes the notices of one child.
type ConsumeRequest struct {
	Session string `json:"session"` // the parent
	Child   string `json:"child"`
	Through uint64 `json:"through,omitzero"` // up to the notice of this settled seq; 0: all that are pending
}

// SetRulesRequest replaces the operator rules of the store.
type SetRulesRequest struct {
	Rules Rules `json:"rules"`
}
