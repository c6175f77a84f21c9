package harness

import (
	"context"
	"fmt"
	"slices"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// Root implements [Harness].
func (h *Store) Root(ctx context.Context, r RootRequest) (wire.Created, error) {
	if err := h.usable(); err != nil {
		return wire.Created{}, err
	}
	req, err := r.domain()
	if err != nil {
		return wire.Created{}, err
	}
	v, _, err := ops.Root(ctx, h.s, req)
	return v, err
}

// Delegate implements [Harness].
func (h *Store) Delegate(ctx context.Context, r DelegateRequest) (wire.Delegated, error) {
	doc, req, err := r.Child.domain()
	if err != nil {
		return wire.Delegated{}, err
	}
	if r.Parent == "" {
		return wire.Delegated{}, missing("parent")
	}
	parent, err := h.session(ctx, r.Parent)
	if err != nil {
		return wire.Delegated{}, err
	}
	if r.Adopt != "" {
		if req.Adopt, err = h.session(ctx, r.Adopt); err != nil {
			return wire.Delegated{}, err
		}
	}
	o := snapshot.Options{Epoch: r.Epoch}
	if o.Present, err = h.present(ctx, parent, r.Defaults); err != nil {
		return wire.Delegated{}, err
	}
	if req.Inspection, err = ops.Inspect(ctx, h.s, parent, doc); err != nil {
		return wire.Delegated{}, err
	}
	v, _, err := ops.Delegate(ctx, h.s, parent, o, req)
	return v, err
}

// Append implements [Harness].
func (h *Store) Append(ctx context.Context, r AppendRequest) (wire.Written, error) {
	b, err := r.batch()
	if err != nil {
		return wire.Written{}, err
	}
	if b.Session, err = h.session(ctx, r.Session); err != nil {
		return wire.Written{}, err
	}
	return written(h.s.Append(ctx, b))
}

// written is the answer of what only writes.
func written(res eventlog.Result, err error) (wire.Written, error) {
	if err != nil {
		return wire.Written{}, err
	}
	return wire.WrittenOf(res), nil
}

// Switch implements [Harness].
func (h *Store) Switch(ctx context.Context, r SwitchRequest) (wire.Switched, error) {
	c := replay.Change{Epoch: r.Epoch}
	var err error
	if c.Sandbox, err = r.Sandbox.setting("sandbox"); err != nil {
		return wire.Switched{}, err
	}
	if c.Approvals, err = approvals("approvals", r.Approvals); err != nil {
		return wire.Switched{}, err
	}
	if c.Sandbox == nil && c.Approvals == "" {
		return wire.Switched{}, fmt.Errorf("%w: switch what? give /sandbox, /approvals or both", eventlog.ErrInvalid)
	}
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return wire.Switched{}, err
	}
	res, e, err := replay.Switch(ctx, h.s, id, c)
	if err != nil {
		return wire.Switched{}, err
	}
	return wire.Switched{Written: wire.WrittenOf(res), Policy: wire.PolicyOf(&e)}, nil
}

// Narrow implements [Harness].
func (h *Store) Narrow(ctx context.Context, r NarrowRequest) (Items[wire.Narrowed], error) {
	n := replay.Narrowing{Rules: r.Rules, Reason: r.Reason, Subtree: r.Subtree, All: r.All}
	out := Items[wire.Narrowed]{Items: []wire.Narrowed{}}
	var err error
	if n.Sandbox, err = r.Sandbox.setting("sandbox"); err != nil {
		return out, err
	}
	if r.Ceiling != nil {
		doc, err := text(*r.Ceiling)
		var w policy.Wish
		if err == nil {
			w, err = manifest.ParseCeiling(doc)
		}
		if err != nil {
			return out, at("ceiling", err)
		}
		n.Authority = &w
	}
	switch {
	case n.All == (r.Session != ""):
		return out, fmt.Errorf("%w: narrow whom? give /session, or /all for every session", eventlog.ErrInvalid)
	case n.All && n.Subtree:
		return out, fmt.Errorf("%w: /all takes every session already; leave /subtree out", eventlog.ErrInvalid)
	case n.Sandbox == nil && n.Authority == nil && !n.Rules:
		return out, fmt.Errorf("%w: narrow to what? give /sandbox, /ceiling, /rules or several of them", eventlog.ErrInvalid)
	case n.Reason == "":
		return out, missing("reason")
	case n.All:
		err = h.usable()
	default:
		n.Session, err = h.session(ctx, r.Session)
	}
	if err != nil {
		return out, err
	}
	done, err := replay.Narrow(ctx, h.s, n)
	if err != nil {
		return out, err
	}
	for i := range done {
		out.Items = append(out.Items, ops.Narrowed(&done[i]))
	}
	return out, nil
}

// SetRules implements [Harness].
func (h *Store) SetRules(ctx context.Context, r SetRulesRequest) (wire.RulesSet, error) {
	doc, err := text(r.Rules)
	var f manifest.Rules
	if err == nil {
		f, err = manifest.ParseRules(doc)
	}
	if err != nil {
		return wire.RulesSet{}, at("rules", err)
	}
	if err := h.usable(); err != nil {
		return wire.RulesSet{}, err
	}
	v, _, err := ops.SetRules(ctx, h.s, replay.RuleFile{DenyTools: f.DenyTools, DenyPaths: f.DenyPaths, Text: slices.Clone(doc)})
	return v, err
}
