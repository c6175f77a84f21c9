package materialize

import (
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// builder lays out a child inside the commit.
type builder struct {
	c           *snapshot.Capture
	r           Request
	spent       error // why the capture can't make a child, if so
	texts       texts
	text        eventlog.NewEvent
	root, style string
	seed        seed
	palette     policy.Palette // of the parent's tree and of the request
	id          uuid.UUID
	existing    bool
}

func (b *builder) plan(v *eventlog.View) ([]eventlog.Batch, error) {
	b.id, b.existing = uuid.Nil, false // what a run before this one found may be gone
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
	handed, err := b.c.Still(v)
	if err != nil {
		return nil, err
	}
	// The meet of two large sets of roots can be larger than what is read back.
	if handed.Sandbox != nil {
		if err := handed.Sandbox.Validate(); err != nil {
			return nil, fmt.Errorf("captured sandbox: %w", err)
		}
	}
	if err := b.c.Defaults().Sandbox.Validate(); err != nil {
		return nil, fmt.Errorf("default sandbox: %w", err)
	}
	if err := b.name(v); err != nil {
		return nil, err
	}
	derived, err := b.derive(v, handed)
	if err != nil {
		return nil, err
	}
	if err := b.inherit(derived); err != nil {
		return nil, err
	}
	g, manifest, err := b.receipt(v, handed, derived, key)
	if err != nil {
		return nil, err
	}
	granted, err := g.Facts()
	if err != nil {
		return nil, fmt.Errorf("receipt: %w", err)
	}
	started := map[string]any{"child": b.id, "receipt": eventlog.Digest(granted)}
	if b.r.ToolCall != "" {
		started["tool_call"] = b.r.ToolCall
	}
	startedFacts, err := eventlog.MakeFacts(started)
	if err != nil {
		return nil, err
	}
	content, err := b.texts.content(manifest)
	if err != nil {
		return nil, err
	}
	return []eventlog.Batch{
		{Session: b.id, Events: b.events(g, granted, content)},
		{Session: b.c.Parent(), Expect: eventlog.Any(), Epoch: b.c.Epoch(), Events: []eventlog.NewEvent{{Type: eventlog.TypeDelegationStarted, Facts: startedFacts}}},
	}, nil
}

// name picks the child's id, or refuses the given one.
func (b *builder) name(v *eventlog.View) (err error) {
	if b.id = b.r.ID; b.id == uuid.Nil {
		if b.id, err = v.NewSessionID(); err != nil {
			return err
		}
	}
	if _, err := v.Row(b.id); b.id == b.c.Parent() || err == nil {
		return inUse("session "+b.id.String(), nil)
	} else if errors.Is(err, eventlog.ErrPurged) {
		return inUse("session "+b.id.String()+", which was purged", nil)
	} else if !errors.Is(err, eventlog.ErrNotFound) {
		return err
	}
	if children, err := v.Children(b.id); err != nil || len(children) > 0 {
		return inUse("an imported log names session "+b.id.String()+" as its parent", err)
	}
	return nil
}

// found ends the plan with the child that exists under the key.
func (b *builder) found(v *eventlog.View, id uuid.UUID, err error) error {
	if err != nil {
		return err
	}
	_, e, err := replay.View(v, id)
	if err != nil {
		return keyOfPurged(err)
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

// receiptSeq is the place of the receipt in the child's log: after
// session/created and the seed with its end.
func (b *builder) receiptSeq() uint64 {
	if n := uint64(len(b.seed.events)); n > 0 {
		return n + 3
	}
	return 2
}

// derive asks package policy what the child gets.
func (b *builder) derive(v *eventlog.View, handed snapshot.Handed) (policy.Derived, error) {
	depth, _ := b.c.Depth()
	receipt := policy.Origin{Session: b.id, Seq: b.receiptSeq()}
	return policy.Derive(handed.Authority, policy.DeriveInput{Depth: depth + 1, Children: int(min(handed.Started, math.MaxInt)),
		NowMS: handed.NowMS, Parent: b.c.Choices(), Operator: handed.Rules, Receipt: receipt, Issuer: receipt, Uses: handed.Used}, b.r.Want)
}

// receipt states everything that was decided. It also returns the manifest's
// text.
func (b *builder) receipt(v *eventlog.View, handed snapshot.Handed, d policy.Derived, key eventlog.Hash) (eventlog.Granted, []byte, error) {
	depth, ceiling := b.c.Depth()
	if n := d.Granted.Delegable.Profile.Limits.MaxDepth; n != 0 {
		ceiling = min(ceiling, max(n, depth+1))
	}
	manifest, err := manifestText(d)
	if err != nil {
		return eventlog.Granted{}, nil, err
	}
	seq, head := b.c.Head()
	g := eventlog.Granted{Principal: b.c.Principal(), IssuerEpoch: b.c.Epoch(), IssuerClaimed: b.c.Claimed(), Parent: b.c.Parent(), Child: b.id,
		Root: b.c.Root(), Depth: depth + 1, MaxDepth: ceiling, ParentReceipt: b.c.Receipt(), ParentSeq: seq, ParentHead: head, Capture: b.c.Digest(),
		ToolCall: b.r.ToolCall, Ceiling: d.Ceiling, Requested: d.Requested, Granted: d.Granted, Cuts: d.Cuts, Relied: d.Relied, Sandbox: handed.Sandbox,
		Defaults: b.c.Defaults(), Lockdown: lockdownNames(b.c.Lockdown(), b.r.Lockdown), Inspection: b.r.Inspection, Merge: d.Merge, WorkspaceRoot: b.root,
		NotBefore: uint64(max(0, v.Now().UnixMilli())), Choices: d.Choices, Palette: b.palette.Entries(), ClassTable: policy.ClassTableVersion,
		SeedLen: uint64(len(b.seed.events)), SeedDigest: b.seed.digest, Evidence: b.evidence(d), Commitments: b.texts.commitments(manifest),
		Fingerprint: d.Fingerprint.Sum, Key: key}
	return g, manifest, nil
}

// evidence says of each field that may be left open whether somebody stated it.
func (b *builder) evidence(d policy.Derived) map[string]string {
	out := map[string]string{}
	say := func(field string, stated, known bool) {
		switch {
		case stated:
			out[field] = eventlog.EvidenceRecorded
		case known:
			out[field] = eventlog.EvidenceInferred
		default:
			out[field] = eventlog.EvidenceAbsent
		}
	}
	w := b.r.Want
	say("principal", !b.c.Principal().IsZero(), false)
	say("role", w.Role != "", true)
	say("model", w.Model != "", d.Choices.Model != "")
	say("provider", w.Provider != "", d.Choices.Provider != "")
	say("effort", w.Effort != "", d.Choices.Effort != "")
	say("background", w.Background != nil, true)
	say("permissions", w.Permissions != nil, true)
	say("shell", w.Shell != nil, true)
	say("tools", !w.Tools.Inherits() || w.Tools.State() == policy.StateNull, true)
	say("write_scope", w.WriteScope != nil, d.Granted.Own.Grant.Scope.Stated())
	say("merge_policy", w.MergePolicy != "", false)
	say("deadline", w.WallMS != nil || w.DeadlineMS != nil, d.Granted.Own.Profile.Limits.DeadlineMS != 0)
	say("delegable", w.Delegable != nil, true)
	say("workspace_root", b.r.Workspace != "", b.root != "")
	say("tool_call", b.r.ToolCall != "", false)
	say("prompt", b.r.Prompt != "", false)
	say("palette", len(b.r.Palette.Entries()) > 0, len(b.palette.Entries()) > 0)
	say("inspection", b.r.Inspection != "", false)
	return out
}

func (b *builder) events(g eventlog.Granted, granted eventlog.Facts, content []byte) []eventlog.NewEvent {
	c := eventlog.Created{Kind: eventlog.KindChild, Parent: g.Parent, ParentSeq: g.ParentSeq, ParentHead: g.ParentHead, Root: g.Root, Depth: g.Depth,
		MaxDepth: g.MaxDepth, Mode: b.r.Mode, Provider: b.r.Provider, WorkspaceRoot: b.root, PathStyle: b.style, SeedLen: g.SeedLen, Defaults: g.Defaults}
	text := b.text
	text.Facts = c.Facts()
	events := append([]eventlog.NewEvent{text}, b.seed.events...)
	if len(b.seed.events) > 0 {
		events = append(events, eventlog.NewEvent{Type: eventlog.TypeSessionEndSeed})
	}
	events = append(events, eventlog.NewEvent{Type: eventlog.TypeDelegationGranted, Facts: granted, Media: eventlog.MediaJSON, Content: content})
	if g.Sandbox != nil {
		events = append(events, eventlog.NewEvent{Type: eventlog.TypeSandboxMode, Facts: eventlog.SandboxFacts(*g.Sandbox)})
	}
	return append(events, eventlog.NewEvent{Type: eventlog.TypeApprovalPolicy, Facts: eventlog.ApprovalFacts(policy.Never)})
}
