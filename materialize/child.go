package materialize

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// Request describes a child. What it may do is not part of it: that comes
// from the capture alone.
type Request struct {
	ID        uuid.UUID         // uuid.Nil: the store makes one
	Key       string            // idempotency key, unique for the parent; "": none
	Label     string            // content
	Prompt    string            // content
	Mode      string            // eventlog.ModeOneShot or ModeContinuable; "": continuable
	Fork      uint64            // copy the parent's conversation up to this seq of its log; 0: no seed
	Workspace string            // absolute; "": the parent's. It never moves a captured root
	ToolCall  string            // the parent's call that delegates; a code
	Provider  eventlog.Provider // zero: in this process
}

// wish is the request as it is kept, as content of the receipt: what a retry
// under the same key is compared with. It holds nothing that was captured.
type wish struct {
	ID        string `json:"id,omitzero"`
	Label     string `json:"label,omitzero"`
	Prompt    string `json:"prompt,omitzero"`
	Mode      string `json:"mode"`
	Fork      uint64 `json:"fork,omitzero"`
	Workspace string `json:"workspace,omitzero"`
	ToolCall  string `json:"tool_call,omitzero"`
	Provider  string `json:"provider"`
	InProcess bool   `json:"in_process"`
}

func (r *Request) normalize() error {
	if r.Mode == "" {
		r.Mode = eventlog.ModeContinuable
	}
	if r.Mode != eventlog.ModeOneShot && r.Mode != eventlog.ModeContinuable {
		return fmt.Errorf("%w: mode %q: want %s or %s", eventlog.ErrInvalid, r.Mode, eventlog.ModeOneShot, eventlog.ModeContinuable)
	}
	if r.Provider.Name == "" {
		r.Provider = eventlog.Provider{Name: "in-process", InProcess: true}
	}
	if !r.Provider.InProcess && r.Mode != eventlog.ModeOneShot {
		return fmt.Errorf("%w: provider %s runs outside this process and keeps its own policy: one-shot only", eventlog.ErrInvalid, r.Provider.Name)
	}
	if err := code("provider", r.Provider.Name, namePattern); err != nil {
		return err
	}
	if len(r.Key) > maxText {
		return &eventlog.TooLargeError{What: "key in bytes", Limit: maxText, Size: uint64(len(r.Key))}
	}
	return nil
}

func (r *Request) wish() ([]byte, error) {
	w := wish{Label: r.Label, Prompt: r.Prompt, Mode: r.Mode, Fork: r.Fork, Workspace: r.Workspace, ToolCall: r.ToolCall,
		Provider: r.Provider.Name, InProcess: r.Provider.InProcess}
	if r.ID != uuid.Nil {
		w.ID = r.ID.String()
	}
	b, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("%w: request: %w", eventlog.ErrInvalid, err)
	}
	return b, nil
}

// Delegate captures and creates in one call: what a harness does when nothing
// stands between the decision and the child. A key that is known finds its
// child before anything is captured, so a retry works whatever became of the
// parent. Errors: those of snapshot.Take and of Child.
func Delegate(ctx context.Context, s *eventlog.Store, parent uuid.UUID, o snapshot.Options, r Request) (Session, error) {
	if r.Key != "" {
		if found, err := Existing(ctx, s, parent, r); !errors.Is(err, eventlog.ErrNotFound) {
			return found, err
		}
	}
	c, err := snapshot.Take(ctx, s, parent, o)
	if err != nil {
		return Session{}, err
	}
	return Child(ctx, s, c, r)
}

// Existing returns the child that parent made under r's key. Errors:
// ErrNotFound; ErrConflict: the key stands for another request; ErrEvidence:
// an imported log claims the key, which makes it nobody's child.
func Existing(ctx context.Context, s *eventlog.Store, parent uuid.UUID, r Request) (Session, error) {
	if err := r.normalize(); err != nil {
		return Session{}, err
	}
	id, err := s.ByKey(parent, r.Key)
	if err != nil {
		return Session{}, err
	}
	row, err := s.Row(id)
	if err != nil {
		return Session{}, err
	}
	e, err := replay.Policy(ctx, s, id, 0)
	if err != nil {
		return Session{}, err
	}
	if err := native(&e, parent); err != nil {
		return Session{}, err
	}
	page, err := s.Read(ctx, id, eventlog.ReadOptions{From: e.ReceiptSeq, To: e.ReceiptSeq, Contents: true})
	if err != nil {
		return Session{}, err
	}
	if len(page.Events) != 1 {
		return Session{}, fmt.Errorf("%w: the receipt of session %s", eventlog.ErrPolicyUnreadable, id)
	}
	if err := sameWish(&page.Events[0], r); err != nil {
		return Session{}, err
	}
	return Session{ID: id, Seq: row.Head, Policy: e, Receipt: e.Receipt, Context: replay.RuntimeContext(&e), Existing: true}, nil
}

// native refuses a session that its log does not show to be parent's child. A
// name that an imported log brought must not lead a caller to take its policy,
// which is whatever the importer was given, for that of a child it asked for.
func native(e *replay.Effective, parent uuid.UUID) error {
	if e.Evidence || e.Parent != parent {
		return fmt.Errorf("%w: the key leads to session %s, which parent %s did not make", eventlog.ErrEvidence, e.Session, parent)
	}
	return nil
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
	if string(receipt.Content) != string(want) {
		return fmt.Errorf("%w: the key stands for another request, of session %s", eventlog.ErrConflict, receipt.Session)
	}
	return nil
}

// Child creates the child of a capture, in one atomic unit with the parent's
// delegation/started. A run of the child that fails later leaves its log as it
// is; nothing is ever deleted here.
//
// With a key that is known it returns the child that exists, also for a capture
// that was spent on it, so that a caller whose reply was lost may repeat the
// very same call.
//
// Errors: ErrStaleCapture (used, its store closed, the parent closed or fenced
// since), ErrDepth, ErrOpenTurn, ErrExists (an id in use), ErrConflict (the
// key stands for another request), ErrInvalid, ErrTooLarge, and those of a
// commit. Only after ErrOutcomeUnknown may the child exist; a retry under the
// same key tells.
func Child(ctx context.Context, s *eventlog.Store, c *snapshot.Capture, r Request) (Session, error) {
	if err := r.normalize(); err != nil {
		return Session{}, err
	}
	request, err := r.wish()
	if err != nil {
		return Session{}, err
	}
	if r.Key != "" { // before anything that could fail now and did not then
		if found, err := Existing(ctx, s, c.Parent(), r); !errors.Is(err, eventlog.ErrNotFound) {
			return found, err
		}
	}
	root, style, err := workspace(r.Workspace)
	if err != nil {
		return Session{}, err
	}
	if root == "" {
		if root, style, err = workspace(c.WorkspaceRoot()); err != nil {
			return Session{}, err
		}
	}
	text, err := created{Label: r.Label, Cwd: root}.event()
	if err != nil {
		return Session{}, err
	}
	depth, ceiling := c.Depth()
	if depth+1 > ceiling || depth+1 > HardMaxDepth {
		return Session{}, fmt.Errorf("%w: attempted depth %d, allowed %d", eventlog.ErrDepth, depth+1, min(ceiling, HardMaxDepth))
	}
	// A capture that is spent may have been spent on this key, in a unit that is
	// still on its way: then the commit, which comes after it, finds the child.
	spent := c.Use(s)
	if spent != nil && (r.Key == "" || s.Closed()) {
		return Session{}, spent
	}
	giveBack := func() {
		if spent == nil {
			c.Unuse()
		}
	}
	b := &builder{c: c, r: r, spent: spent, request: request, text: text, root: root, style: style}
	if b.seed, err = readSeed(ctx, s, c, r.Fork); err != nil {
		giveBack()
		return Session{}, err
	}
	_, err = s.Transact(ctx, eventlog.EntryDelegation, b.plan)
	if err != nil {
		if !errors.Is(err, eventlog.ErrOutcomeUnknown) {
			giveBack()
		}
		return Session{}, err
	}
	if b.existing { // the capture made nothing
		giveBack()
	}
	return readBack(ctx, s, Session{ID: b.id, Existing: b.existing})
}

// builder lays out a child inside the commit.
type builder struct {
	c           *snapshot.Capture
	r           Request
	spent       error // why the capture can't make a child, if so
	request     []byte
	text        eventlog.NewEvent
	root, style string
	seed        seed
	id          uuid.UUID
	existing    bool
}

func (b *builder) plan(v *eventlog.View) ([]eventlog.Batch, error) {
	var key eventlog.Hash
	if b.r.Key != "" {
		key = eventlog.KeyHash(b.c.Parent(), b.r.Key)
		if id, err := v.ByKey(key); err != nil || id != uuid.Nil {
			return nil, b.found(v, id, err)
		}
		if err := v.Whole(); err != nil { // the child may be there, and its frame lost
			return nil, err
		}
	}
	if b.spent != nil {
		return nil, b.spent
	}
	sandbox, err := b.c.Still(v)
	if err != nil {
		return nil, err
	}
	// The meet of two large sets of roots can be larger than what is read back.
	if sandbox != nil {
		if err := sandbox.Validate(); err != nil {
			return nil, fmt.Errorf("captured sandbox: %w", err)
		}
	}
	if err := b.c.Defaults().Sandbox.Validate(); err != nil {
		return nil, fmt.Errorf("default sandbox: %w", err)
	}
	if b.id = b.r.ID; b.id == uuid.Nil {
		if b.id, err = v.NewSessionID(); err != nil {
			return nil, err
		}
	}
	if _, err := v.Row(b.id); b.id == b.c.Parent() || err == nil {
		return nil, inUse("session "+b.id.String(), nil)
	} else if !errors.Is(err, eventlog.ErrNotFound) {
		return nil, err
	}
	if children, err := v.Children(b.id); err != nil || len(children) > 0 {
		return nil, inUse("an imported log names session "+b.id.String()+" as its parent", err)
	}
	granted, err := b.receipt(v, sandbox, key)
	if err != nil {
		return nil, err
	}
	started, err := eventlog.MakeFacts(b.startedFacts(granted))
	if err != nil {
		return nil, err
	}
	return []eventlog.Batch{
		{Session: b.id, Events: b.events(sandbox, granted)},
		{Session: b.c.Parent(), Expect: eventlog.Any(), Epoch: b.c.Epoch(), Events: []eventlog.NewEvent{{Type: eventlog.TypeDelegationStarted, Facts: started}}},
	}, nil
}

// found ends the plan with the child that exists under the key.
func (b *builder) found(v *eventlog.View, id uuid.UUID, err error) error {
	if err != nil {
		return err
	}
	_, e, err := replay.View(v, id)
	if err != nil {
		return err
	}
	if err := native(&e, b.c.Parent()); err != nil {
		return err
	}
	receipt, err := v.Event(id, e.ReceiptSeq)
	if err != nil {
		return err
	}
	b.id, b.existing = id, true
	return sameWish(&receipt, b.r)
}

func (b *builder) receipt(v *eventlog.View, sandbox *policy.Sandbox, key eventlog.Hash) (eventlog.Facts, error) {
	depth, ceiling := b.c.Depth()
	seq, head := b.c.Head()
	g := eventlog.Granted{IssuerEpoch: b.c.Epoch(), IssuerClaimed: b.c.Claimed(), Parent: b.c.Parent(), Child: b.id, Root: b.c.Root(),
		Depth: depth + 1, MaxDepth: ceiling, ParentSeq: seq, ParentHead: head, Capture: b.c.Digest(), ToolCall: b.r.ToolCall, Sandbox: sandbox,
		Defaults: b.c.Defaults(), WorkspaceRoot: b.root, NotBefore: uint64(max(0, v.Now().UnixMilli())), SeedLen: uint64(len(b.seed.events)),
		SeedDigest: b.seed.digest, Key: key}
	return g.Facts(), nil
}

func (b *builder) startedFacts(granted eventlog.Facts) map[string]any {
	m := map[string]any{"child": b.id, "receipt": eventlog.Digest(granted)}
	if b.r.ToolCall != "" {
		m["tool_call"] = b.r.ToolCall
	}
	return m
}

func (b *builder) events(sandbox *policy.Sandbox, granted eventlog.Facts) []eventlog.NewEvent {
	depth, ceiling := b.c.Depth()
	seq, head := b.c.Head()
	c := eventlog.Created{Kind: eventlog.KindChild, Parent: b.c.Parent(), ParentSeq: seq, ParentHead: head, Root: b.c.Root(), Depth: depth + 1,
		MaxDepth: ceiling, Mode: b.r.Mode, Provider: b.r.Provider, WorkspaceRoot: b.root, PathStyle: b.style, SeedLen: uint64(len(b.seed.events)),
		Defaults: b.c.Defaults()}
	text := b.text
	text.Facts = c.Facts()
	events := append([]eventlog.NewEvent{text}, b.seed.events...)
	if len(b.seed.events) > 0 {
		events = append(events, eventlog.NewEvent{Type: eventlog.TypeSessionEndSeed})
	}
	events = append(events, eventlog.NewEvent{Type: eventlog.TypeDelegationGranted, Facts: granted, Media: eventlog.MediaJSON, Content: b.request})
	if sandbox != nil {
		events = append(events, eventlog.NewEvent{Type: eventlog.TypeSandboxMode, Facts: eventlog.SandboxFacts(*sandbox)})
	}
	return append(events, eventlog.NewEvent{Type: eventlog.TypeApprovalPolicy, Facts: eventlog.ApprovalFacts(policy.Never)})
}
