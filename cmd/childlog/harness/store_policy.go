package harness

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/replay"
)

// Policy implements [Harness].
func (h *Store) Policy(ctx context.Context, r PolicyRequest) (wire.Policy, error) {
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return wire.Policy{}, err
	}
	e, err := replay.Policy(ctx, h.s, id, r.At)
	if err != nil {
		return wire.Policy{}, err
	}
	return wire.PolicyOf(&e), nil
}

// Resume implements [Harness].
func (h *Store) Resume(ctx context.Context, r ResumeRequest) (wire.Resumption, error) {
	id, by, err := h.by(ctx, r.Session, r.By)
	if err != nil {
		return wire.Resumption{}, err
	}
	q := replay.Request{Session: id, By: by, Role: r.Role, Known: r.Known}
	if q.Present, err = h.present(ctx, id, r.Defaults); err != nil {
		return wire.Resumption{}, err
	}
	v, _, err := ops.Resume(ctx, h.s, q)
	return v, err
}

// Check implements [Harness].
func (h *Store) Check(ctx context.Context, r CheckRequest) (wire.Judgement, error) {
	if err := checkable(r.Record, r.Epoch, r.Advisory, r.At); err != nil {
		return wire.Judgement{}, err
	}
	call, err := r.Call.domain("call")
	if err != nil {
		return wire.Judgement{}, err
	}
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return wire.Judgement{}, err
	}
	row, err := h.s.Row(id)
	if err != nil {
		return wire.Judgement{}, err
	}
	o := ops.CheckOptions{Record: r.Record, Epoch: r.Epoch, Advisory: r.Advisory, At: r.At}
	j, _, err := ops.Check(ctx, h.s, h.authorizer(id), &row, call, o)
	if err != nil {
		return wire.Judgement{}, err
	}
	return wire.JudgementOf(&j, call.ID), nil
}

// Ask implements [Harness].
func (h *Store) Ask(ctx context.Context, r AskRequest) (wire.Ruling, error) {
	doc, err := r.Call.domain("call")
	if err != nil {
		return wire.Ruling{}, err
	}
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return wire.Ruling{}, err
	}
	d, err := ops.Ask(ctx, h.s, id, doc, ops.AskOptions{Epoch: r.Epoch, Question: r.Question})
	if err != nil {
		return wire.Ruling{}, err
	}
	return wire.RulingOf(id.String(), &d), nil
}

// Asks implements [Harness].
func (h *Store) Asks(ctx context.Context, r AsksRequest) (Items[wire.Question], error) {
	id := uuid.Nil
	var err error
	if r.Session != "" {
		if id, err = h.session(ctx, r.Session); err != nil {
			return Items[wire.Question]{}, err
		}
	}
	list, err := ops.Asks(ctx, h.s, id)
	if err != nil {
		return Items[wire.Question]{}, err
	}
	out := Items[wire.Question]{Items: []wire.Question{}}
	for i := range list {
		out.Items = append(out.Items, wire.QuestionOf(&list[i]))
	}
	return out, nil
}

// Answer implements [Harness].
func (h *Store) Answer(ctx context.Context, r AnswerRequest) (wire.Ruling, error) {
	q := replay.AnswerRequest{Ask: r.Ask, Answer: replay.Reject, Decider: eventlog.DeciderHuman, Ref: r.Ref}
	if r.Allow {
		q.Answer = replay.AllowOnce
	}
	if r.Host {
		q.Decider = eventlog.DeciderHost
	}
	var err error
	if q.Session, err = h.session(ctx, r.Session); err != nil {
		return wire.Ruling{}, err
	}
	d, err := replay.Respond(ctx, h.s, q)
	if err != nil {
		return wire.Ruling{}, err
	}
	return wire.RulingOf(q.Session.String(), &d), nil
}

// ExplainField implements [Harness].
func (h *Store) ExplainField(ctx context.Context, r ExplainFieldRequest) (wire.Explanation, error) {
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return wire.Explanation{}, err
	}
	x, err := replay.Explain(ctx, h.s, id, r.Field, r.At)
	if err != nil {
		return wire.Explanation{}, err
	}
	return wire.ExplanationOf(&x), nil
}

// ExplainAll implements [Harness].
func (h *Store) ExplainAll(ctx context.Context, r PolicyRequest) (Items[wire.FieldLine], error) {
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return Items[wire.FieldLine]{}, err
	}
	list, err := replay.ExplainAll(ctx, h.s, id, r.At)
	if err != nil {
		return Items[wire.FieldLine]{}, err
	}
	return Items[wire.FieldLine]{Items: ops.FieldLines(list)}, nil
}

// ExplainCall implements [Harness].
func (h *Store) ExplainCall(ctx context.Context, r ExplainCallRequest) (wire.CallExplanation, error) {
	call, err := r.Call.domain("call")
	if err != nil {
		return wire.CallExplanation{}, err
	}
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return wire.CallExplanation{}, err
	}
	x, err := ops.ExplainCall(ctx, h.s, id, call, r.At)
	if err != nil {
		return wire.CallExplanation{}, err
	}
	return wire.CallExplanationOf(&x, call.ID), nil
}

// ExplainEvent implements [Harness].
func (h *Store) ExplainEvent(ctx context.Context, r ExplainEventRequest) (wire.EventExplanation, error) {
	if r.Seq == 0 {
		return wire.EventExplanation{}, fmt.Errorf("%w: /seq: seqs begin at 1", eventlog.ErrInvalid)
	}
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return wire.EventExplanation{}, err
	}
	x, err := replay.ExplainEvent(ctx, h.s, id, r.Seq)
	if err != nil {
		return wire.EventExplanation{}, err
	}
	return wire.EventExplanationOf(&x), nil
}

// Diff implements [Harness].
func (h *Store) Diff(ctx context.Context, r DiffRequest) (wire.Diff, error) {
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return wire.Diff{}, err
	}
	before, after, changes, err := replay.Diff(ctx, h.s, id, r.From, r.To)
	if err != nil {
		return wire.Diff{}, err
	}
	return ops.Diff(&before, &after, changes), nil
}
