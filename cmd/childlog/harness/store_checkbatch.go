package harness

import (
	"context"
	"fmt"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/replay"
)

// CheckBatch implements [Harness].
func (h *Store) CheckBatch(ctx context.Context, r CheckBatchRequest) (Items[wire.Checked], error) {
	none := Items[wire.Checked]{}
	if err := checkable(r.Record, r.Epoch, r.Advisory, r.At); err != nil {
		return none, err
	}
	calls, err := r.batch()
	if err != nil {
		return none, err
	}
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return none, err
	}
	row, err := h.s.Row(id)
	if err != nil {
		return none, err
	}
	o := ops.CheckOptions{Record: r.Record, Epoch: r.Epoch, Advisory: r.Advisory, At: r.At}
	out := Items[wire.Checked]{Items: make([]wire.Checked, 0, len(calls))}
	var failed error // why no more are decided
	for i, call := range calls {
		err := failed
		var j replay.Judgement
		if err == nil {
			j, _, err = ops.Check(ctx, h.s, h.authorizer(id), &row, call, o)
		}
		switch {
		case err == nil:
			v := wire.JudgementOf(&j, call.ID)
			v.Line = uint64(i) + 1
			out.Items = append(out.Items, wire.Checked{Judgement: &v})
			continue
		case failed != nil || ops.OfOneCall(err, r.At):
		case ctx.Err() != nil || i == 0 || !r.Record: // what was recorded before, a retry finds
			return none, err
		default:
			failed = err
		}
		f := ops.Undecided(err)
		out.Items = append(out.Items, wire.Checked{Error: &f})
	}
	return out, nil
}

// checkable refuses what contradicts itself.
func checkable(record bool, epoch uint64, advisory bool, at uint64) error {
	switch {
	case at != 0 && (record || epoch != 0):
		return fmt.Errorf("%w: /at looks back; it takes no /record and no /epoch", eventlog.ErrInvalid)
	case advisory && !record:
		return fmt.Errorf("%w: /advisory says how the harness takes what is recorded; give /record too", eventlog.ErrInvalid)
	}
	return nil
}

// batch reads the calls. The limits are those of a batch of events.
func (r *CheckBatchRequest) batch() ([]*manifest.Call, error) {
	if len(r.Calls) == 0 {
		return nil, missing("calls")
	}
	if len(r.Calls) > eventlog.MaxBatchEvents {
		return nil, &eventlog.TooLargeError{What: "calls of a batch", Limit: eventlog.MaxBatchEvents, Size: uint64(len(r.Calls))}
	}
	calls := make([]*manifest.Call, len(r.Calls))
	size := 0
	for i := range r.Calls {
		var err error
		if calls[i], err = r.Calls[i].domain(fmt.Sprint("calls/", i)); err != nil {
			return nil, err
		}
		if size += len(calls[i].ArgsJSON); size > eventlog.MaxBatchContent {
			return nil, &eventlog.TooLargeError{What: "arguments of a batch of calls in bytes", Limit: eventlog.MaxBatchContent, Size: uint64(size)}
		}
	}
	return calls, nil
}
