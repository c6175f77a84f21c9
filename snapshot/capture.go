// Package snapshot captures a parent's policy at the delegation boundary.
//
// A delegation takes time: a child is chosen, its prompt is built, something
// blocks. What the child may do must not depend on what the parent does
// meanwhile, so the capture is the first thing that happens: one synchronous
// read of the parent's fold at one head. The result is immutable and can't be
// asked for more than was captured; package materialize turns it into a child,
// once.
//
// Captured are the sandbox override met with its narrowings, the authority the
// parent may hand on, the operator rules of the store, depth, and the recorded
// defaults. An ordinary switch of the parent after the capture belongs to the
// parent's future and never reaches the child. A narrowing does, and so does an
// operator rule: materialize meets them in, inside the commit.
//
// The parent's approval policy is not read at all: no child inherits it. Every
// child is pinned to never.
package snapshot

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// Options refine a capture.
type Options struct {
	// Epoch is the caller's activation of the parent; 0 if it holds none. A
	// superseded one is refused, at the capture and again at the commit.
	Epoch uint64
	// Present is the deployment default in force, nil if there is none other
	// than the parent's recorded one. The child's recorded default is the meet
	// of both, so it is never wider than what the parent was created under.
	Present *policy.Defaults
}

// Capture is a parent's policy at one head. It may be read by any number of
// goroutines, is worth one child, and dies with the store handle it was taken
// from.
type Capture struct {
	store     *eventlog.Store
	parent    uuid.UUID
	root      uuid.UUID
	kind      string
	seq       uint64
	head      eventlog.Hash
	epoch     uint64
	sandbox   *policy.Sandbox
	defaults  policy.Defaults
	depth     int
	maxDepth  int
	workspace string // workspace root
	authority policy.Authority
	rules     policy.OperatorRules // the store's at the capture
	choices   policy.Choices
	principal eventlog.Principal
	lockdown  []string
	palette   policy.Palette
	receipt   eventlog.Hash // of the parent; zero for roots
	used      atomic.Bool
}

// Take captures the parent's policy now.
//
// Errors (of package eventlog): ErrNotFound; ErrSessionClosed; ErrEvidence;
// ErrFenced: Epoch is not the open activation; ErrPolicyUnreadable.
func Take(ctx context.Context, s *eventlog.Store, parent uuid.UUID, o Options) (*Capture, error) {
	row, err := s.Row(parent)
	if err != nil {
		return nil, err
	}
	if err := admissible(&row, o.Epoch); err != nil {
		return nil, err
	}
	// As of the row's head: one cut, even if the log goes on meanwhile.
	e, err := replay.Policy(ctx, s, parent, row.Head)
	if err != nil {
		return nil, err
	}
	if e.Evidence { // by the log itself, whatever the row says
		return nil, fmt.Errorf("%w: session %s was imported and delegates nothing", eventlog.ErrEvidence, parent)
	}
	c := &Capture{store: s, parent: parent, root: e.Root, kind: e.Kind, seq: row.Head, head: row.Hash, epoch: o.Epoch, defaults: e.Defaults,
		depth: e.Depth, maxDepth: e.MaxDepth, workspace: e.WorkspaceRoot, authority: e.Authority, choices: e.Choices, principal: e.Principal,
		lockdown: slices.Clone(e.Lockdown), palette: e.Palette, receipt: e.Receipt}
	if c.rules, err = replay.Rules(ctx, s); err != nil {
		return nil, fmt.Errorf("the store's operator rules: %w", err)
	}
	if o.Present != nil {
		c.defaults = c.defaults.Meet(*o.Present)
	}
	if v, ok := e.Captured(); ok {
		if !e.Explicit { // narrowings alone: they narrow the child's own default
			v = v.Meet(c.defaults.Sandbox)
		}
		c.sandbox = &v
	}
	return c, nil
}

// admissible says whether a session may delegate.
func admissible(row *eventlog.Row, epoch uint64) error {
	switch {
	case row.Evidence:
		return fmt.Errorf("%w: session %s was imported and delegates nothing", eventlog.ErrEvidence, row.Session)
	case row.ClosedSeq != 0:
		return fmt.Errorf("%w: session %s was closed at seq %d", eventlog.ErrSessionClosed, row.Session, row.ClosedSeq)
	case epoch != 0 && (!row.Open || epoch != row.Epoch):
		return &eventlog.FencedError{Session: row.Session, Got: epoch, Open: row.Epoch}
	}
	return nil
}

// Handed is what a parent hands on at the moment of the commit: the captured
// values met with every narrowing since.
type Handed struct {
	Sandbox   *policy.Sandbox // nil: neither an override nor a narrowing
	Authority policy.Authority
	Rules     policy.OperatorRules // the store's: those of the capture and those set since
	Started   uint64               // delegations the parent has started so far
	NowMS     int64                // ms since 1970: the store's clock or the parent's latest event, whichever is later
	Used      []policy.GrantUse    // of the parent's explicit grants, by all who relied on them
}

// Still checks, inside the commit that makes the child, that the parent may
// still delegate, and returns what it hands on. Operator rules that were set
// since the capture bind the child like a narrowing does: they only deny.
// Errors: ErrStaleCapture and those of Take.
func (c *Capture) Still(v *eventlog.View) (Handed, error) {
	row, e, err := replay.View(v, c.parent)
	if err != nil {
		return Handed{}, err
	}
	if err := admissible(&row, c.epoch); err != nil {
		return Handed{}, fmt.Errorf("%w: %w", eventlog.ErrStaleCapture, err)
	}
	ceilings, err := e.CeilingsSince(c.seq)
	if err != nil {
		return Handed{}, err
	}
	present, err := replay.RulesIn(v)
	if err != nil {
		return Handed{}, fmt.Errorf("the store's operator rules: %w", err)
	}
	h := Handed{Sandbox: c.Sandbox(), Authority: c.authority, Rules: c.rules.Union(present), Started: row.Delegations,
		NowMS: max(0, v.Now().UnixMilli(), row.LastTime/1e6)} // a clock set back revives no grant that has expired
	for _, ceiling := range ceilings {
		if ceiling.Sandbox != nil {
			if h.Sandbox == nil {
				h.Sandbox = &c.defaults.Sandbox
			}
			met := h.Sandbox.Meet(*ceiling.Sandbox)
			h.Sandbox = &met
		}
		if ceiling.Half != nil {
			h.Authority = h.Authority.Narrow(*ceiling.Half)
		}
		h.Authority = h.Authority.Under(ceiling.Rules)
	}
	h.Used, err = usedGrants(v, h.Authority.Explicit)
	return h, err
}

// Use marks the capture as spent on the store, or refuses. Errors:
// ErrStaleCapture: it was used, or its store handle was closed or is another.
func (c *Capture) Use(s *eventlog.Store) error {
	switch {
	case c.store != s:
		return fmt.Errorf("%w: it was taken from another store handle", eventlog.ErrStaleCapture)
	case s.Closed():
		return fmt.Errorf("%w: its store handle was closed", eventlog.ErrStaleCapture)
	case !c.used.CompareAndSwap(false, true):
		return fmt.Errorf("%w: a capture makes one child; take another", eventlog.ErrStaleCapture)
	}
	return nil
}

// Unuse gives a capture back after a commit that certainly wrote nothing.
func (c *Capture) Unuse() { c.used.Store(false) }

// Parent is the session that was captured.
func (c *Capture) Parent() uuid.UUID { return c.parent }

// Root is the root of the parent's tree.
func (c *Capture) Root() uuid.UUID { return c.root }

// Claimed reports whether the parent stands for a session outside the store.
func (c *Capture) Claimed() bool { return c.kind == eventlog.KindStub }

// Head is the parent's seq and chain hash at the capture.
func (c *Capture) Head() (uint64, eventlog.Hash) { return c.seq, c.head }

// Epoch is the caller's activation of the parent, 0 if none.
func (c *Capture) Epoch() uint64 { return c.epoch }

// Sandbox is a copy of the captured override, nil if the parent had neither an
// override nor a narrowing.
func (c *Capture) Sandbox() *policy.Sandbox {
	if c.sandbox == nil {
		return nil
	}
	v := *c.sandbox
	return &v
}

// Authority is what the parent may do and hand on, as captured.
func (c *Capture) Authority() policy.Authority { return c.authority.Canonical() }

// Choices is what the parent runs as: what a child that wishes nothing else
// runs as too.
func (c *Capture) Choices() policy.Choices { return c.choices }

// Principal is for whom the parent's root works; zero if that is not recorded.
func (c *Capture) Principal() eventlog.Principal { return c.principal }

// Lockdown is a copy of the deployment's block-edit tools that the parent's
// tree is held to, beside the built-in ones.
func (c *Capture) Lockdown() []string { return slices.Clone(c.lockdown) }

// Palette is what the parent's tree knows about tools beside the built-in
// table. A child knows them as the same, or it could call a parent's shell a
// reading tool.
func (c *Capture) Palette() policy.Palette { return c.palette }

// Receipt is the digest of the parent's own receipt; zero for a root.
func (c *Capture) Receipt() eventlog.Hash { return c.receipt }

// Defaults is the deployment default that a child records.
func (c *Capture) Defaults() policy.Defaults { return c.defaults }

// Depth is the parent's depth and the absolute ceiling of its tree.
func (c *Capture) Depth() (depth, ceiling int) { return c.depth, c.maxDepth }

// WorkspaceRoot is the parent's, "" if none is recorded.
func (c *Capture) WorkspaceRoot() string { return c.workspace }

// Digest identifies what was captured: equal captures of one head are equal.
func (c *Capture) Digest() eventlog.Hash {
	parts := [][]byte{c.parent[:], c.head[:], []byte(c.defaults.Approvals), eventlog.SandboxFacts(c.defaults.Sandbox)}
	if c.sandbox != nil {
		parts = append(parts, eventlog.SandboxFacts(*c.sandbox))
	}
	sum := policy.FingerprintOf(c.choices.Role, c.authority).Sum
	rules, palette := c.rules.Digest(), c.palette.Digest()
	return eventlog.Digest(append(parts, sum[:], rules[:], palette[:])...)
}
