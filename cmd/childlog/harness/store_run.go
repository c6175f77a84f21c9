package harness

import (
	"context"
	"fmt"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/replay"
)

// Send implements [Harness].
func (h *Store) Send(ctx context.Context, r SendRequest) (wire.Sent, error) {
	id, by, err := h.by(ctx, r.Session, r.By)
	if err != nil {
		return wire.Sent{}, err
	}
	res, message, err := replay.Send(ctx, h.s, id, by, r.Text)
	if err != nil {
		return wire.Sent{}, err
	}
	return wire.Sent{Written: wire.WrittenOf(res), Message: message.String()}, nil
}

// Interrupt implements [Harness].
func (h *Store) Interrupt(ctx context.Context, r InterruptRequest) (wire.Written, error) {
	id, by, err := h.by(ctx, r.Session, r.By)
	if err != nil {
		return wire.Written{}, err
	}
	return written(replay.Interrupt(ctx, h.s, id, by, r.KeepInbox))
}

// Inbox implements [Harness].
func (h *Store) Inbox(ctx context.Context, r SessionRequest) (Items[wire.Message], error) {
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return Items[wire.Message]{}, err
	}
	row, err := h.s.Row(id)
	if err != nil {
		return Items[wire.Message]{}, err
	}
	list, err := ops.Messages(ctx, h.s, id, row.Inbox)
	return Items[wire.Message]{Items: list}, err
}

// Claim implements [Harness].
func (h *Store) Claim(ctx context.Context, r ClaimRequest) (Items[wire.Message], error) {
	if r.Epoch == 0 {
		return Items[wire.Message]{}, fmt.Errorf("%w: /epoch: epochs begin at 1", eventlog.ErrInvalid)
	}
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return Items[wire.Message]{}, err
	}
	claimed, err := replay.Claim(ctx, h.s, id, r.Epoch)
	if err != nil {
		return Items[wire.Message]{}, err
	}
	list, err := ops.Messages(ctx, h.s, id, claimed)
	return Items[wire.Message]{Items: list}, err
}

// Activate implements [Harness].
func (h *Store) Activate(ctx context.Context, r ActivateRequest) (wire.Activated, error) {
	id, by, err := h.by(ctx, r.Session, r.By)
	if err != nil {
		return wire.Activated{}, err
	}
	v, _, err := ops.Activate(ctx, h.s, id, by)
	return v, err
}

// End implements [Harness].
func (h *Store) End(ctx context.Context, r EndRequest) (wire.Written, error) {
	if r.Epoch == 0 {
		return wire.Written{}, fmt.Errorf("%w: /epoch: epochs begin at 1", eventlog.ErrInvalid)
	}
	if r.Reason == "" {
		r.Reason = ops.Released
	}
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return wire.Written{}, err
	}
	return written(replay.End(ctx, h.s, id, r.Epoch, r.Reason))
}

// Settle implements [Harness].
func (h *Store) Settle(ctx context.Context, r SettleRequest) (wire.Written, error) {
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return wire.Written{}, err
	}
	return written(replay.Settle(ctx, h.s, id, r.Epoch, r.Outcome))
}

// CloseSession implements [Harness].
func (h *Store) CloseSession(ctx context.Context, r CloseRequest) (wire.Written, error) {
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return wire.Written{}, err
	}
	return written(replay.Close(ctx, h.s, id))
}

// Notices implements [Harness].
func (h *Store) Notices(ctx context.Context, r SessionRequest) (Items[wire.Notice], error) {
	out := Items[wire.Notice]{Items: []wire.Notice{}}
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return out, err
	}
	list, err := replay.Notices(ctx, h.s, id)
	for i := range list {
		out.Items = append(out.Items, ops.Notice(&list[i]))
	}
	return out, err
}

// Consume implements [Harness].
func (h *Store) Consume(ctx context.Context, r ConsumeRequest) (wire.Consumed, error) {
	if r.Child == "" {
		return wire.Consumed{}, missing("child")
	}
	parent, err := h.session(ctx, r.Session)
	if err != nil {
		return wire.Consumed{}, err
	}
	child, err := h.session(ctx, r.Child)
	if err != nil {
		return wire.Consumed{}, err
	}
	return ops.Consume(ctx, h.s, parent, child, r.Through)
}
