package materialize

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// texts are what is kept of a delegation as content of its receipt: the
// request as it was made, the manifest, and the salt under which the receipt
// commits to both. Without the salt, which goes when the content is redacted,
// nobody can test a guess against a commitment.
type texts struct {
	salt   [32]byte
	wish   []byte // the request; what a retry under the same key is compared with
	prompt string
}

// kept is the JSON of the content.
type kept struct {
	Salt     string         `json:"salt"`
	Wish     jsontext.Value `json:"wish"`
	Manifest jsontext.Value `json:"manifest,omitzero"`
}

func (r *Request) texts() (t texts, err error) {
	t.prompt = r.Prompt
	if _, err := rand.Read(t.salt[:]); err != nil {
		return t, err
	}
	t.wish, err = r.wish()
	return t, err
}

func (t *texts) content(manifest []byte) ([]byte, error) {
	return json.Marshal(kept{Salt: hex.EncodeToString(t.salt[:]), Wish: t.wish, Manifest: manifest})
}

func (t *texts) commitments(manifest []byte) eventlog.Commitments {
	c := eventlog.Commitments{Request: eventlog.Digest(t.salt[:], t.wish), Manifest: eventlog.Digest(t.salt[:], manifest)}
	if t.prompt != "" {
		c.Prompt = eventlog.Digest(t.salt[:], []byte(t.prompt))
	}
	return c
}

// manifestText is what the child is launched with, for people: its grant in
// one line and what it runs as.
func manifestText(d policy.Derived) ([]byte, error) {
	return json.Marshal(struct {
		Grant      string `json:"grant"`
		Model      string `json:"model,omitzero"`
		Provider   string `json:"provider,omitzero"`
		Effort     string `json:"effort,omitzero"`
		Background bool   `json:"background"`
	}{d.Fingerprint.Line, d.Choices.Model, d.Choices.Provider, d.Choices.Effort, d.Choices.Background})
}

// wish is the JSON of a request. It holds nothing that was captured, so that
// equal requests are equal bytes whatever the parent holds by then.
type wish struct {
	ID        string            `json:"id,omitzero"`
	Label     string            `json:"label,omitzero"`
	Prompt    string            `json:"prompt,omitzero"`
	Mode      string            `json:"mode"`
	Fork      uint64            `json:"fork,omitzero"`
	Adopt     string            `json:"adopt,omitzero"`
	Workspace string            `json:"workspace,omitzero"`
	ToolCall  string            `json:"tool_call,omitzero"`
	Provider  string            `json:"provider"`
	InProcess bool              `json:"in_process"`
	Own       half              `json:"own"`
	Delegable *half             `json:"delegable,omitzero"`
	Explicit  []explicit        `json:"explicit_grants,omitzero"`
	WallMS    *int64            `json:"wall_ms,omitzero"`
	Role      string            `json:"role,omitzero"`
	Model     string            `json:"model,omitzero"`
	Effort    string            `json:"effort,omitzero"`
	Backgr    *bool             `json:"background,omitzero"`
	Merge     string            `json:"merge_policy,omitzero"`
	Palette   map[string]string `json:"palette,omitzero"`
	Lockdown  []string          `json:"lockdown,omitzero"`
	Inspected string            `json:"inspection,omitzero"`
}

// half is a [policy.Wish]; a missing field was not stated.
type half struct {
	Write        *bool          `json:"write,omitzero"`
	Network      *bool          `json:"network,omitzero"`
	Shell        *policy.Shell  `json:"shell,omitzero"`
	Tools        jsontext.Value `json:"tools,omitzero"`
	Denied       []string       `json:"denied_tools,omitzero"`
	DeadlineMS   *int64         `json:"deadline,omitzero"`
	MaxSteps     *uint64        `json:"max_steps,omitzero"`
	MaxDepth     *int           `json:"max_depth,omitzero"`
	MaxChildren  *int           `json:"max_children,omitzero"`
	Spawn        *bool          `json:"spawn,omitzero"`
	Providers    *[]string      `json:"providers,omitzero"`
	Capabilities *[]string      `json:"capabilities,omitzero"`
	WriteScope   *[]string      `json:"write_scope,omitzero"`
}

type explicit struct {
	ID      string `json:"id"`
	Expires int64  `json:"expires"`
	Uses    uint64 `json:"uses"`
}

func halfOf(w policy.Wish) (half, error) {
	h := half{Shell: w.Shell, Denied: w.DeniedTools, DeadlineMS: w.DeadlineMS, MaxSteps: w.MaxSteps, MaxDepth: w.MaxDepth, MaxChildren: w.MaxChildren,
		Spawn: w.Spawn, Providers: names(w.Providers), Capabilities: names(w.Capabilities), WriteScope: w.WriteScope}
	if p := w.Permissions; p != nil {
		h.Write, h.Network = &p.Write, &p.Network
	}
	var err error
	switch w.Tools.State() {
	case policy.StateNull:
		h.Tools = jsontext.Value("null")
	case policy.StateList:
		h.Tools, err = json.Marshal(w.Tools.List())
	}
	return h, err
}

func names(s policy.NameSet) *[]string {
	if !s.Recorded() {
		return nil
	}
	list := s.List()
	return &list
}

func (r *Request) wish() ([]byte, error) {
	own, err := halfOf(r.Want.Wish)
	if err != nil {
		return nil, fmt.Errorf("%w: request: %w", eventlog.ErrInvalid, err)
	}
	w := wish{Label: r.Label, Prompt: r.Prompt, Mode: r.Mode, Fork: r.Fork, Workspace: r.Workspace, ToolCall: r.ToolCall, Provider: r.Provider.Name,
		InProcess: r.Provider.InProcess, Own: own, WallMS: r.Want.WallMS, Role: r.Want.Role, Model: r.Want.Model, Effort: r.Want.Effort, Backgr: r.Want.Background,
		Merge: string(r.Want.MergePolicy), Lockdown: lockdownNames(r.Lockdown), Inspected: r.Inspection}
	if r.ID != uuid.Nil {
		w.ID = r.ID.String()
	}
	if r.Adopt != uuid.Nil {
		w.Adopt = r.Adopt.String()
	}
	if r.Want.Delegable != nil {
		d, err := halfOf(*r.Want.Delegable)
		if err != nil {
			return nil, fmt.Errorf("%w: request: %w", eventlog.ErrInvalid, err)
		}
		w.Delegable = &d
	}
	for _, g := range r.Want.ExplicitGrants {
		w.Explicit = append(w.Explicit, explicit{g.ID, g.ExpiresMS, g.Uses})
	}
	for _, e := range r.Palette.Entries() {
		if w.Palette == nil {
			w.Palette = map[string]string{}
		}
		w.Palette[e.Name] = string(e.Class)
	}
	b, err := json.Marshal(w, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("%w: request: %w", eventlog.ErrInvalid, err)
	}
	return b, nil
}

// sameWish compares a request with the one in a receipt.
func sameWish(receipt *eventlog.Event, r Request) error {
	want, err := r.wish()
	if err != nil {
		return err
	}
	if receipt.ContentErr != nil {
		return fmt.Errorf("%w: the request of session %s can't be compared: %w", eventlog.ErrConflict, receipt.Session, receipt.ContentErr)
	}
	if by := receipt.Redacted; by != nil {
		return fmt.Errorf("%w: the request of session %s was redacted at seq %d and can't be compared", eventlog.ErrConflict, receipt.Session, by.Seq)
	}
	var have kept
	if err := json.Unmarshal(receipt.Content, &have); err != nil {
		return fmt.Errorf("%w: the request of session %s can't be compared: %w", eventlog.ErrConflict, receipt.Session, err)
	}
	if string(have.Wish) != string(want) {
		return fmt.Errorf("%w: the key stands for another request, of session %s", eventlog.ErrConflict, receipt.Session)
	}
	return nil
}
