package ops

import (
	"context"

	"github.com/google/uuid"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/replay"
)

// Released is the reason of an activation that ends without another one.
const Released = "released"

// Messages reads the texts of inbox messages; the list is never nil.
func Messages(ctx context.Context, s *eventlog.Store, session uuid.UUID, pending []eventlog.Message) ([]wire.Message, error) {
	out := []wire.Message{}
	for _, m := range pending {
		page, err := s.Read(ctx, session, eventlog.ReadOptions{From: m.Seq, To: m.Seq, Contents: true})
		if err != nil {
			return nil, err
		}
		var text *string
		if len(page.Events) == 1 && page.Events[0].Content != nil {
			t := string(page.Events[0].Content)
			text = &t
		}
		out = append(out, wire.MessageOf(m, text))
	}
	return out, nil
}

// Activate takes a session up for work.
func Activate(ctx context.Context, s *eventlog.Store, id uuid.UUID, by replay.Caller) (wire.Activated, replay.Activation, error) {
	run, err := replay.Activate(ctx, s, id, by)
	if err != nil {
		return wire.Activated{}, run, err
	}
	v := wire.Activated{Session: id.String(), Epoch: run.Epoch, Seq: run.Seq, Head: run.Head, Closed: []wire.Closed{},
		Policy: wire.PolicyOf(&run.Policy), RuntimeContext: replay.RuntimeContext(&run.Policy)}
	for _, c := range run.Closed {
		v.Closed = append(v.Closed, wire.Closed(c))
	}
	v.Inbox, err = Messages(ctx, s, id, run.Inbox)
	return v, run, err
}

// Resume rebuilds a session.
func Resume(ctx context.Context, s *eventlog.Store, r replay.Request) (wire.Resumption, replay.Resumption, error) {
	res, err := replay.Resume(ctx, s, r)
	if err != nil {
		return wire.Resumption{}, res, err
	}
	v := wire.ResumptionOf(&res)
	v.Inbox, err = Messages(ctx, s, r.Session, res.Inbox)
	return v, res, err
}

// Notice converts a notice.
func Notice(n *replay.Notice) wire.Notice {
	return wire.Notice{Child: n.Child.String(), SettledSeq: n.SettledSeq, Outcome: n.Outcome, Denied: n.Denied, Denials: n.Denials, Usage: n.Usage}
}

// Consume takes the notices of a child up to one that was looked at, so that
// none is taken which nobody was told about. through 0 looks now.
func Consume(ctx context.Context, s *eventlog.Store, parent, child uuid.UUID, through uint64) (wire.Consumed, error) {
	if through == 0 {
		pending, err := replay.Notices(ctx, s, parent)
		if err != nil {
			return wire.Consumed{}, err
		}
		for _, n := range pending {
			if n.Child == child {
				through = max(through, n.SettledSeq)
			}
		}
	}
	var res eventlog.Result
	var err error
	if through > 0 {
		res, err = replay.ConsumeThrough(ctx, s, parent, child, through)
	} else {
		res, err = replay.Consume(ctx, s, parent, child) // says why there is none
	}
	if err != nil {
		return wire.Consumed{}, err
	}
	return wire.Consumed{Written: wire.WrittenOf(res), Child: child.String(), SettledSeq: through}, nil
}
