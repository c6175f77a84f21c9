package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// Notice tells a parent that a run of a child settled. It is pending until
// consumed, across any number of crashes and later activations, and carries
// codes and numbers, never text.
type Notice struct {
	Child      uuid.UUID
	SettledSeq uint64 // of session/settled in the child's log
	Outcome    string
	Denied     uint64            // the sum of Denials
	Denials    map[string]uint64 // by code, of the whole session up to here
	Usage      map[string]uint64 // likewise
	Unread     string            // why the counts can't be read, if so; the outcome still can
}

// Notices lists a session's pending notices by child id, oldest first for each
// child. A child whose log is damaged keeps nobody from the notices of the
// others. Errors: ErrNotFound, ErrCorrupt (the index).
func Notices(ctx context.Context, s *eventlog.Store, parent uuid.UUID) ([]Notice, error) {
	if _, err := s.Row(parent); err != nil {
		return nil, err
	}
	children, err := s.Children(parent)
	if err != nil {
		return nil, err
	}
	out := []Notice{}
	for _, id := range children {
		row, err := s.Row(id)
		if errors.Is(err, eventlog.ErrPurged) {
			continue // with what it had to say
		}
		if err != nil {
			return nil, err
		}
		consumed, err := s.Consumed(parent, id)
		if err != nil {
			return nil, err
		}
		for _, settle := range row.Settles {
			if settle.Seq <= consumed || row.Evidence {
				continue
			}
			n, err := readNotice(ctx, s, id, settle.Seq)
			if ctx.Err() != nil {
				return nil, err
			}
			if err != nil {
				n = Notice{Child: id, SettledSeq: settle.Seq, Outcome: settle.Outcome, Unread: err.Error()}
			}
			out = append(out, n)
		}
	}
	return out, nil
}

// readNotice takes the counts from the event, not from the row, which goes on
// counting when the child is activated again.
func readNotice(ctx context.Context, s *eventlog.Store, child uuid.UUID, seq uint64) (Notice, error) {
	n := Notice{Child: child, SettledSeq: seq, Denials: map[string]uint64{}, Usage: map[string]uint64{}}
	page, err := s.Read(ctx, child, eventlog.ReadOptions{From: seq, To: seq})
	if err != nil {
		return n, err
	}
	if len(page.Holes) > 0 {
		return n, page.Holes[0].Err
	}
	if len(page.Events) != 1 || page.Events[0].Type != eventlog.TypeSessionSettled {
		return n, &eventlog.CorruptError{Session: child, Seq: seq, Reason: "session/settled can't be read"}
	}
	m, err := page.Events[0].Facts.Map()
	if err != nil {
		return n, err
	}
	n.Outcome, _ = m["outcome"].(string)
	for name, counts := range map[string]map[string]uint64{"denials": n.Denials, "usage": n.Usage} {
		for code, v := range asMap(m[name]) {
			if c, ok := v.(int64); ok && c > 0 {
				counts[code] = uint64(c)
			}
		}
	}
	for _, c := range n.Denials {
		n.Denied += c
	}
	return n, nil
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// Consume takes all pending notices of a child, once: a second call finds
// nothing, ErrNotFound. It takes those too that came after the caller looked;
// a caller that handles notices one by one uses ConsumeThrough.
//
// Errors: ErrUnauthorized if child is another's, ErrEvidence.
func Consume(ctx context.Context, s *eventlog.Store, parent, child uuid.UUID) (eventlog.Result, error) {
	return consume(ctx, s, parent, child, 0)
}

// ConsumeThrough takes the pending notices of a child up to the one with this
// settled seq, and leaves what the child settled since then pending. Errors:
// those of Consume; ErrNotFound also if the child did not settle at that seq.
func ConsumeThrough(ctx context.Context, s *eventlog.Store, parent, child uuid.UUID, settledSeq uint64) (eventlog.Result, error) {
	if settledSeq == 0 {
		return eventlog.Result{}, fmt.Errorf("%w: settled seq 0", eventlog.ErrInvalid)
	}
	return consume(ctx, s, parent, child, settledSeq)
}

func consume(ctx context.Context, s *eventlog.Store, parent, child uuid.UUID, through uint64) (eventlog.Result, error) {
	results, err := s.Transact(ctx, eventlog.EntryRuntime, func(v *eventlog.View) ([]eventlog.Batch, error) {
		row, err := v.Row(child)
		if err != nil {
			return nil, err
		}
		if row.Parent != parent {
			return nil, fmt.Errorf("%w: session %s is not a child of %s", eventlog.ErrUnauthorized, child, parent)
		}
		if row.Evidence {
			return nil, fmt.Errorf("%w: session %s was imported and tells nobody anything", eventlog.ErrEvidence, child)
		}
		consumed, err := v.Consumed(parent, child)
		if err != nil {
			return nil, err
		}
		seq := through
		if n := len(row.Settles); seq == 0 && n > 0 {
			seq = row.Settles[n-1].Seq
		}
		if seq <= consumed || !slices.ContainsFunc(row.Settles, func(settle eventlog.Settle) bool { return settle.Seq == seq }) {
			return nil, fmt.Errorf("%w: child %s has no pending notice", eventlog.ErrNotFound, child)
		}
		return []eventlog.Batch{{Session: parent, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{
			Type: eventlog.TypeNoticeConsumed, Facts: facts("child", child, "settled_seq", seq)}}}}, nil
	})
	return first(results), err
}
