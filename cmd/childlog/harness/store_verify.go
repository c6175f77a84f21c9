package harness

import (
	"context"
	"fmt"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// Bounds of what a verification is held against.
const (
	maxCheckpoints = 100
	maxAnchors     = 10_000
)

// Verify implements [Harness].
func (h *Store) Verify(ctx context.Context, r VerifyRequest) (wire.Verified, error) {
	if err := h.usable(); err != nil {
		return wire.Verified{}, err
	}
	o := ops.VerifyOptions{Session: r.Session, Key: r.Key}
	var err error
	if o.Against, err = r.against(); err != nil {
		return wire.Verified{}, err
	}
	for _, c := range r.Checkpoints {
		o.Names = append(o.Names, c.Name)
	}
	return ops.Verify(ctx, h.s, o)
}

// against reads what was kept elsewhere.
func (r *VerifyRequest) against() (out eventlog.Against, err error) {
	if len(r.Checkpoints) > maxCheckpoints {
		return out, &eventlog.TooLargeError{What: "checkpoints", Limit: maxCheckpoints, Size: uint64(len(r.Checkpoints))}
	}
	if len(r.Anchors) > maxAnchors {
		return out, &eventlog.TooLargeError{What: "anchors", Limit: maxAnchors, Size: uint64(len(r.Anchors))}
	}
	if r.Key != "" {
		if out.Key, err = eventlog.ParseVerifierKey(r.Key); err != nil {
			return out, at("key", err)
		}
	}
	for i, c := range r.Checkpoints {
		kept, err := eventlog.ParseCheckpoint([]byte(c.Note))
		if err != nil {
			return out, at(fmt.Sprintf("checkpoints/%d/note", i), err)
		}
		out.Checkpoints = append(out.Checkpoints, kept)
	}
	for i, text := range r.Anchors {
		anchor, err := eventlog.ParseAnchor(text)
		if err != nil {
			return out, at(fmt.Sprint("anchors/", i), err)
		}
		out.Anchors = append(out.Anchors, anchor)
	}
	return out, nil
}
