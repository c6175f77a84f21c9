package materialize

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// Depth bounds: how many delegations may lie between a root and a session.
const (
	DefaultMaxDepth = 3
	HardMaxDepth    = policy.HardMaxDepth
)

// maxText bounds labels and directories for display, bytes.
const maxText = 4096

// RootRequest describes a root. The zero value is a root under the most
// careful default: read-only without network, approvals by asking.
type RootRequest struct {
	ID        uuid.UUID       // uuid.Nil: the store makes one
	Sandbox   *policy.Setting // an explicit override; nil: the default counts
	Approvals policy.Approval // likewise; ""
	Default   *policy.Setting // the deployment default to record; nil: read-only
	Ask       policy.Approval // the deployment default to record; "": ask
	Label     string          // content: can be redacted
	System    string          // of another system's id for this session; a code
	External  string          // that id; stored as content, looked up by hash
	Workspace string          // absolute path; the root of workspace-write
	MaxDepth  int             // 0: DefaultMaxDepth; at most HardMaxDepth
	Claimed   bool            // stands for a session outside the store: its policy is claimed
	Profile   *Profile        // what it may do and hand on beside its sandbox; nil: everything
}

// Profile is what a root may do and hand on.
type Profile struct {
	Own       policy.Wish            // what is left open is as wide as can be
	Delegable *policy.Wish           // nil: as Own; what it leaves open is as wide as can be
	Explicit  []policy.ExplicitGrant // the terms under which Delegable exceeds Own; the issuer is the profile itself
	Choices   policy.Choices
	Principal eventlog.Principal
	Palette   policy.Palette
	Lockdown  []string // the deployment's block-edit tools; they bind all children
}

// Session is what a creation returns.
type Session struct {
	ID       uuid.UUID
	Seq      uint64
	Policy   replay.Effective
	Receipt  eventlog.Hash // of a child
	Context  string        // the runtime-context sentence for the model
	Existing bool          // found under its key, not made now
}

// created is the content of session/created; eventlog's rows read it.
type created struct {
	Label      string `json:"label,omitzero"`
	Cwd        string `json:"cwd,omitzero"`
	ExternalID string `json:"external_id,omitzero"`
}

// Root creates a root session. Errors: ErrInvalid, ErrExists (the id or the
// external id is in use), ErrDepth, and those of a commit.
func Root(ctx context.Context, s *eventlog.Store, r RootRequest) (Session, error) {
	c, events, err := r.plan()
	if err != nil {
		return Session{}, err
	}
	id := r.ID
	_, err = s.Transact(ctx, eventlog.EntryCreate, func(v *eventlog.View) (_ []eventlog.Batch, err error) {
		if id == uuid.Nil {
			if id, err = v.NewSessionID(); err != nil {
				return nil, err
			}
		}
		if c.External != nil {
			if other, err := v.ByExternal(c.External.IDHash); err != nil || other != uuid.Nil {
				return nil, inUse(fmt.Sprintf("external id %s:%s is session %s", r.System, r.External, other), err)
			}
		}
		if children, err := v.Children(id); err != nil || len(children) > 0 {
			return nil, inUse("an imported log names session "+id.String()+" as its parent", err)
		}
		c.Root = id
		events[0].Facts = c.Facts()
		if r.Profile != nil {
			if events[1].Facts, err = r.Profile.facts(id); err != nil {
				return nil, err
			}
		}
		return []eventlog.Batch{{Session: id, Events: events}}, nil
	})
	if err != nil {
		return Session{}, err
	}
	return readBack(ctx, s, Session{ID: id})
}

// readBack completes what a commit made. The session exists by then, so a
// failure to read it (the store is being closed) is no failure to make it.
func readBack(ctx context.Context, s *eventlog.Store, made Session) (Session, error) {
	e, err := replay.Policy(ctx, s, made.ID, 0)
	if err != nil {
		return made, fmt.Errorf("%w: session %s was made, reading it back failed: %w", eventlog.ErrOutcomeUnknown, made.ID, err)
	}
	made.Seq, made.Policy, made.Receipt, made.Context = e.Seq, e, e.Receipt, replay.RuntimeContext(&e)
	return made, nil
}

// plan checks a request and lays out its events; the id is filled in later.
func (r *RootRequest) plan() (eventlog.Created, []eventlog.NewEvent, error) {
	c := eventlog.Created{Kind: eventlog.KindRoot, Mode: eventlog.ModeContinuable, MaxDepth: r.MaxDepth}
	if r.Claimed {
		c.Kind = eventlog.KindStub
	}
	if c.MaxDepth == 0 {
		c.MaxDepth = DefaultMaxDepth
	}
	if c.MaxDepth < 0 || c.MaxDepth > HardMaxDepth {
		return c, nil, fmt.Errorf("%w: max depth: want 1 to %d, got %d", eventlog.ErrDepth, HardMaxDepth, r.MaxDepth)
	}
	var err error
	if c.WorkspaceRoot, c.PathStyle, err = workspace(r.Workspace); err != nil {
		return c, nil, err
	}
	def := policy.Setting{Mode: policy.ReadOnly}
	if r.Default != nil {
		def = *r.Default
	}
	if c.Defaults.Sandbox, err = def.Resolve(c.WorkspaceRoot); err != nil {
		return c, nil, fmt.Errorf("default sandbox: %w", err)
	}
	if c.Defaults.Approvals = r.Ask; r.Ask == "" {
		c.Defaults.Approvals = policy.Ask
	}
	if _, err := policy.ParseApproval(string(c.Defaults.Approvals)); err != nil {
		return c, nil, fmt.Errorf("default approvals: %w", err)
	}
	text := created{Label: r.Label, Cwd: r.Workspace, ExternalID: r.External}
	if (r.System == "") != (r.External == "") {
		return c, nil, fmt.Errorf("%w: an external id is a system and an id", eventlog.ErrInvalid)
	}
	if r.External != "" {
		if err := checkSystem(r.System); err != nil {
			return c, nil, err
		}
		c.External = &eventlog.External{System: r.System, IDHash: eventlog.ExternalHash(r.System, r.External)}
	}
	first, err := text.event()
	if err != nil {
		return c, nil, err
	}
	events := []eventlog.NewEvent{first}
	if r.Profile != nil {
		events = append(events, eventlog.NewEvent{Type: eventlog.TypePolicyProfile}) // facts follow, with the id
	}
	if r.Sandbox != nil {
		value, err := r.Sandbox.Resolve(c.WorkspaceRoot)
		if err != nil {
			return c, nil, fmt.Errorf("sandbox: %w", err)
		}
		events = append(events, eventlog.NewEvent{Type: eventlog.TypeSandboxMode, Facts: eventlog.SandboxFacts(value)})
	}
	if r.Approvals != "" {
		if _, err := policy.ParseApproval(string(r.Approvals)); err != nil {
			return c, nil, fmt.Errorf("approvals: %w", err)
		}
		events = append(events, eventlog.NewEvent{Type: eventlog.TypeApprovalPolicy, Facts: eventlog.ApprovalFacts(r.Approvals)})
	}
	return c, events, nil
}

func (c created) event() (eventlog.NewEvent, error) {
	for _, f := range []struct{ name, value string }{{"label", c.Label}, {"cwd", c.Cwd}, {"external id", c.ExternalID}} {
		if len(f.value) > maxText {
			return eventlog.NewEvent{}, &eventlog.TooLargeError{What: f.name + " in bytes", Limit: maxText, Size: uint64(len(f.value))}
		}
	}
	content, err := json.Marshal(c)
	if err != nil {
		return eventlog.NewEvent{}, fmt.Errorf("%w: label, cwd or external id: %w", eventlog.ErrInvalid, err)
	}
	return eventlog.NewEvent{Type: eventlog.TypeSessionCreated, Media: eventlog.MediaJSON, Content: content}, nil
}

// Codes stand in facts, which no redaction reaches: free text must not get in.
// A system's is also what comes before the colon in SYSTEM:ID.
func checkSystem(s string) error {
	if !eventlog.IsCode(s) || len(s) > 64 || strings.ContainsAny(s, ":/@+#=") {
		return fmt.Errorf("%w: system of an external id: want 1 to 64 letters, digits or _.-, got %.40q", eventlog.ErrInvalid, s)
	}
	return nil
}

func checkName(what, s string) error {
	if !eventlog.IsCode(s) {
		return fmt.Errorf("%w: %s: want 1 to 256 letters, digits or _.:/@+#=-, got %.40q", eventlog.ErrInvalid, what, s)
	}
	return nil
}

// workspace checks a workspace root and names its path style.
func workspace(path string) (root, style string, err error) {
	if path == "" {
		return "", "", nil
	}
	roots, err := policy.RootsOf(path)
	if err != nil {
		return "", "", fmt.Errorf("workspace: %w", err)
	}
	root, style = roots.List()[0], "posix"
	if !strings.HasPrefix(root, "/") {
		style = "windows"
	}
	return root, style, nil
}

func inUse(what string, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", eventlog.ErrExists, what)
}
