package harness

import (
	"bytes"
	"encoding/base64"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// JSON is JSON whose bytes are kept as they are, such as harness.JSON(`{"a": 1}`).
type JSON = wire.Exact

// Tools is a tool scope that is asked for. The zero value says nothing, and so
// does [AnyTools] in so many words: what the parent has.
type Tools struct {
	null  bool
	names []string // nil: no list
}

// AnyTools states that the tools are the parent's.
func AnyTools() Tools { return Tools{null: true} }

// OnlyTools are just these, by exact names; without names no tool at all.
func OnlyTools(names ...string) Tools { return Tools{names: append([]string{}, names...)} }

// IsZero reports whether nothing is stated.
func (t Tools) IsZero() bool { return !t.null && t.names == nil }

// MarshalJSON writes null or the names.
func (t Tools) MarshalJSON() ([]byte, error) {
	if t.names == nil {
		return []byte("null"), nil
	}
	return json.Marshal(t.names)
}

// UnmarshalJSON reads null or the names.
func (t *Tools) UnmarshalJSON(b []byte) error {
	*t = Tools{null: jsontext.Value(b).Kind() == 'n'}
	if t.null {
		return nil
	}
	t.names = []string{}
	return json.Unmarshal(b, &t.names)
}

// Permissions are what is permitted beyond reading; they are stated together.
type Permissions struct {
	Write   bool `json:"write"`
	Network bool `json:"network"`
}

// Wish is a half of an authority as it is asked for, or a ceiling that one is
// lowered to: the document of `childlog schema ceiling`. What is left out asks
// for no less than there is. A list that is nil is left out; one without
// entries is a list of nothing.
type Wish struct {
	Permissions  *Permissions `json:"permissions,omitzero"`
	Shell        string       `json:"shell,omitzero"` // none, read_only or full
	Tools        Tools        `json:"tools,omitzero"`
	DeniedTools  []string     `json:"denied_tools,omitzero"` // names, or the beginning of one and a final *
	Deadline     string       `json:"deadline,omitzero"`     // RFC 3339 in UTC, to the millisecond at most
	MaxSteps     *uint64      `json:"max_steps,omitzero"`    // 0 is no limit
	MaxDepth     *int         `json:"max_depth,omitzero"`
	MaxChildren  *int         `json:"max_children,omitzero"`
	Spawn        *bool        `json:"spawn,omitzero"`
	Providers    []string     `json:"providers,omitzero"`
	Capabilities []string     `json:"capabilities,omitzero"`
	WriteScope   []string     `json:"write_scope,omitzero"`

	given JSON
}

// ExplicitGrant are the terms under which more is handed on than is held.
type ExplicitGrant struct {
	ID      string `json:"id"`
	Expires string `json:"expires,omitzero"` // RFC 3339 in UTC; "": never
	Uses    uint64 `json:"uses,omitzero"`    // 0: any number
}

// PaletteTool is a tool beside the built-in table.
type PaletteTool struct {
	Name  string `json:"name"`
	Class string `json:"class"` // read, edit, shell, network, delegate or opaque
}

// Provider is what runs a session.
type Provider struct {
	Name      string `json:"name"`
	InProcess *bool  `json:"in_process,omitzero"` // false: it keeps its own policy, recorded and not enforced; nil: true
}

// Child is what a delegation asks for: the document of `childlog schema
// request`. A wish beyond what the parent hands on is cut, and the answer says so.
type Child struct {
	ID        string `json:"id,omitzero"`  // a UUID; "": a random one
	Key       string `json:"key,omitzero"` // idempotency key, unique for the parent
	Label     string `json:"label,omitzero"`
	Prompt    string `json:"prompt,omitzero"` // the task; content
	Role      string `json:"role,omitzero"`   // such as explore, implement or test; "": the parent's, else general
	Mode      string `json:"mode,omitzero"`   // one-shot or continuable, the default
	Fork      uint64 `json:"fork,omitzero"`   // begin with the parent's conversation up to this seq
	Workspace string `json:"workspace,omitzero"`
	ToolCall  string `json:"tool_call,omitzero"` // the parent's call that delegates; a code

	Permissions  *Permissions `json:"permissions,omitzero"`
	Shell        string       `json:"shell,omitzero"`
	Tools        Tools        `json:"tools,omitzero"`
	DeniedTools  []string     `json:"denied_tools,omitzero"`
	WriteScope   []string     `json:"write_scope,omitzero"`  // nil: none stated; empty: nothing may be written
	MergePolicy  string       `json:"merge_policy,omitzero"` // read_only or transactional_write
	Deadline     string       `json:"deadline,omitzero"`
	WallMS       int64        `json:"wall_ms,omitzero"` // from the creation on, once
	MaxSteps     *uint64      `json:"max_steps,omitzero"`
	MaxDepth     *int         `json:"max_depth,omitzero"`
	MaxChildren  *int         `json:"max_children,omitzero"`
	Spawn        *bool        `json:"spawn,omitzero"`
	Providers    []string     `json:"providers,omitzero"`
	Capabilities []string     `json:"capabilities,omitzero"`

	Delegable      *Wish           `json:"delegable,omitzero"` // nil: the same as its own half
	ExplicitGrants []ExplicitGrant `json:"explicit_grants,omitzero"`

	Model          string        `json:"model,omitzero"`
	Effort         string        `json:"effort,omitzero"`
	Background     *bool         `json:"background,omitzero"`
	Provider       *Provider     `json:"provider,omitzero"` // nil: this process
	Palette        []PaletteTool `json:"palette,omitzero"`
	ForeignPalette bool          `json:"foreign_palette,omitzero"`
	Lockdown       []string      `json:"lockdown,omitzero"`

	given JSON
}

// Principal is for whom a tree works.
type Principal struct {
	Kind string `json:"kind"` // person or service
	Ref  string `json:"ref"`  // an opaque code
}

// Profile is what a root may do and hand on: the document of `childlog schema
// profile`. What is left out is open.
type Profile struct {
	Principal      *Principal      `json:"principal,omitzero"`
	Role           string          `json:"role,omitzero"`
	Model          string          `json:"model,omitzero"`
	Provider       string          `json:"provider,omitzero"`
	Effort         string          `json:"effort,omitzero"`
	Background     bool            `json:"background,omitzero"`
	Palette        []PaletteTool   `json:"palette,omitzero"`
	Lockdown       []string        `json:"lockdown,omitzero"`
	Own            *Wish           `json:"own,omitzero"`
	Delegable      *Wish           `json:"delegable,omitzero"` // nil: as Own
	ExplicitGrants []ExplicitGrant `json:"explicit_grants,omitzero"`

	given JSON
}

// Verdict is what a named classifier says of a command.
type Verdict struct {
	By   string `json:"by"`
	Need string `json:"need"` // inspect or verify
}

// Escalation asks for one call under a wider sandbox.
type Escalation struct {
	Sandbox       Sandbox `json:"sandbox"`
	Justification string  `json:"justification"` // content
}

// Call is a tool call with its final arguments: the document of `childlog
// schema call`.
type Call struct {
	ID         string      `json:"call"` // a code
	Tool       string      `json:"tool"` // as the harness names it
	Args       JSON        `json:"args"` // an object, {} if there are none; a record commits to these bytes
	Verdict    *Verdict    `json:"verdict,omitzero"`
	Escalation *Escalation `json:"escalation,omitzero"`
	Ask        string      `json:"ask,omitzero"` // an approval of this call to make use of; a code

	given JSON
	read  *manifest.Call // of given; nil: not read yet
}

// Rules are operator rules: the document of `childlog schema rules`.
type Rules struct {
	DenyTools []string `json:"deny_tools,omitzero"` // names, or the beginning of one and a final *
	DenyPaths []string `json:"deny_paths,omitzero"` // places below a workspace

	given JSON
}

// A document that was read keeps its text, which says more than the fields: a
// null and a key that is missing are not the same everywhere. It is read by
// package manifest wherever it comes from, so that each is held to the same
// rules. To change one that was read, fill in a new one.
type (
	plainWish    Wish
	plainChild   Child
	plainProfile Profile
	plainCall    Call
	plainRules   Rules
	plainEvent   Event
)

// The encodings, for either generation of encoders.

func (w Wish) MarshalJSONTo(enc *jsontext.Encoder) error { return encode(enc, w.given, plainWish(w)) }
func (c Child) MarshalJSONTo(enc *jsontext.Encoder) error {
	return encode(enc, c.given, plainChild(c))
}
func (p Profile) MarshalJSONTo(enc *jsontext.Encoder) error {
	return encode(enc, p.given, plainProfile(p))
}
func (c Call) MarshalJSONTo(enc *jsontext.Encoder) error  { return encode(enc, c.given, plainCall(c)) }
func (r Rules) MarshalJSONTo(enc *jsontext.Encoder) error { return encode(enc, r.given, plainRules(r)) }
func (e Event) MarshalJSONTo(enc *jsontext.Encoder) error { return encode(enc, e.given, plainEvent(e)) }

func (w Wish) MarshalJSON() ([]byte, error)    { return wire.Body(w) }
func (c Child) MarshalJSON() ([]byte, error)   { return wire.Body(c) }
func (p Profile) MarshalJSON() ([]byte, error) { return wire.Body(p) }
func (c Call) MarshalJSON() ([]byte, error)    { return wire.Body(c) }
func (r Rules) MarshalJSON() ([]byte, error)   { return wire.Body(r) }
func (e Event) MarshalJSON() ([]byte, error)   { return wire.Body(e) }

// UnmarshalJSON leaves the check to whoever reads the wish: what one may state
// depends on where it stands.
func (w *Wish) UnmarshalJSON(b []byte) error { return decode(b, nil, (*plainWish)(w), &w.given) }

func (c *Child) UnmarshalJSON(b []byte) error {
	_, err := manifest.ParseRequest(b)
	return decode(b, err, (*plainChild)(c), &c.given)
}

func (p *Profile) UnmarshalJSON(b []byte) error {
	_, err := manifest.ParseProfile(b)
	return decode(b, err, (*plainProfile)(p), &p.given)
}

func (c *Call) UnmarshalJSON(b []byte) (err error) {
	c.read, err = manifest.ParseCall(b)
	return decode(b, err, (*plainCall)(c), &c.given)
}

func (r *Rules) UnmarshalJSON(b []byte) error {
	_, err := manifest.ParseRules(b)
	return decode(b, err, (*plainRules)(r), &r.given)
}

func (e *Event) UnmarshalJSON(b []byte) error {
	read, err := manifest.ParseEvent(b)
	if err != nil {
		return err
	}
	*e = Event{Type: read.Type, Ignorable: read.Ignorable, given: bytes.Clone(b), read: &read}
	if read.ID != uuid.Nil {
		e.ID = read.ID.String()
	}
	switch text := string(read.Content); read.Media {
	case eventlog.MediaJSON:
		e.Content = read.Content
	case eventlog.MediaText:
		e.ContentText = &text
	case eventlog.MediaOctets:
		text = base64.StdEncoding.EncodeToString(read.Content)
		e.ContentBase64 = &text
	}
	if read.Facts == nil {
		return nil
	}
	e.Facts, err = read.Facts.Map()
	return err
}

// encode writes a document: as it was read, else its fields.
func encode(enc *jsontext.Encoder, given JSON, fields any) error {
	if given != nil {
		return json.MarshalEncode(enc, given)
	}
	return json.MarshalEncode(enc, fields)
}

// decode fills in the fields of a document that was read and found good, and
// keeps its text.
func decode(b []byte, bad error, fields any, given *JSON) error {
	if bad != nil {
		return bad
	}
	if err := json.Unmarshal(b, fields, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)); err != nil {
		return err
	}
	*given = bytes.Clone(b)
	return nil
}

// text is a document as its parser reads it.
func text(doc any) ([]byte, error) { return wire.Body(doc) }
