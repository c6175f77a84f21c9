package review

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/replay"
)

// chain goes from the session up to its root, receipt by receipt.
func (b *builder) chain(ctx context.Context) ([]Link, error) {
	return chainOf(ctx, b.s, b.row.Session)
}

func chainOf(ctx context.Context, s *eventlog.Store, session uuid.UUID) ([]Link, error) {
	var out []Link
	seen := map[uuid.UUID]bool{}
	for id := session; id != uuid.Nil; {
		if seen[id] || len(out) >= maxAncestors {
			out[len(out)-1].Note = "the logs name each other as parents; no root is reached"
			return out, nil
		}
		seen[id] = true
		link, parent, err := linkOf(ctx, s, id)
		if err != nil {
			return nil, err
		}
		out = append(out, link)
		id = parent
	}
	return out, nil
}

// linkOf reads one link, and names the session above it.
func linkOf(ctx context.Context, s *eventlog.Store, id uuid.UUID) (Link, uuid.UUID, error) {
	row, err := s.Row(id)
	if gone(err) {
		note := "it has no log in this store: what it held is a claim"
		if errors.Is(err, eventlog.ErrPurged) {
			note = "its log was purged: what it held is a claim"
		}
		return Link{Party: Party{Session: id.String(), Kind: "unknown", Missing: true}, Claimed: true, Note: note}, uuid.Nil, nil
	}
	if err != nil {
		return Link{}, uuid.Nil, err
	}
	l := Link{Party: Party{Session: id.String(), Label: row.Label, Kind: row.Kind}, Depth: row.Depth, Status: row.Status(s.Boot()),
		Claimed: row.Evidence || row.Kind == eventlog.KindStub}
	e, err := replay.Policy(ctx, s, id, 0)
	switch {
	case ctx.Err() != nil:
		return l, uuid.Nil, ctx.Err()
	case err != nil:
		l.Note = "its policy can't be read, and its receipt neither"
	case row.Evidence:
		l.Note = "imported: the link upwards is the word of another system"
		l.ParentSeq = e.ParentSeq
	case row.Kind == eventlog.KindStub:
		l.Note = "it stands for a session outside of this store: its authority is a claim"
	case row.Kind == eventlog.KindChild:
		l.Seq, l.ParentSeq = e.ReceiptSeq, e.ParentSeq
		digest := wire.Hex(e.Receipt)
		l.Receipt = &digest
		if err := agrees(ctx, s, &l, &e); err != nil {
			return l, uuid.Nil, err
		}
	default:
		l.Agrees = true // nobody is above
	}
	return l, row.Parent, nil
}

// gone reports whether an error says that a session has no log here, or no more.
func gone(err error) bool {
	return errors.Is(err, eventlog.ErrNotFound) || errors.Is(err, eventlog.ErrPurged)
}

// agrees looks in the log above for the receipt, and for the head that it was
// captured at.
func agrees(ctx context.Context, s *eventlog.Store, l *Link, e *replay.Effective) error {
	row, err := s.Row(e.Parent)
	if gone(err) {
		l.Note = "the log above is not in this store"
		return nil
	}
	if err != nil {
		return err
	}
	headOK, holes := e.ParentSeq == 0, false
	for from := max(e.ParentSeq, 1); from != 0 && from <= row.Head && l.Started == 0; {
		page, err := s.Read(ctx, e.Parent, eventlog.ReadOptions{From: from, To: row.Head, MaxEvents: 1024})
		if err != nil {
			return err
		}
		holes = holes || len(page.Holes) > 0
		for i := range page.Events {
			ev := &page.Events[i]
			if ev.Seq == e.ParentSeq && ev.Hash == e.Granted.ParentHead {
				headOK = true
			}
			if ev.Type == eventlog.TypeDelegationStarted && ev.Inherited == nil && ev.Facts.UUID("child") == e.Session {
				l.Started = ev.Seq
				l.Agrees = receiptOf(ev) == *l.Receipt
				break
			}
		}
		from = page.Next
	}
	switch {
	case l.Started == 0 && holes:
		l.Note = "a part of the log above can't be read, and what is left names no such child"
	case l.Started == 0:
		l.Note = "the log above names no such child"
	case !l.Agrees:
		l.Note = fmt.Sprintf("the log above names another receipt at its seq %d", l.Started)
	case !headOK:
		l.Agrees, l.Note = false, fmt.Sprintf("the log above is not the one at seq %d from which this was captured", e.ParentSeq)
	}
	return nil
}

// receiptOf is the digest that delegation/started names.
func receiptOf(ev *eventlog.Event) string {
	m, err := ev.Facts.Map()
	if err != nil {
		return ""
	}
	b, _ := m["receipt"].([]byte)
	return fmt.Sprintf("%x", b)
}
