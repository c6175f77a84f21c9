package review

import "childlog/eventlog"

// anchor follows up to where a checkpoint covers a session's log.
type anchor struct {
	there  bool
	origin string
	size   uint64 // of the tree: positions below it are covered
	seq    uint64 // the last that lies below
}

// anchorOf looks for the last checkpoint that the store signed. That the journal
// continues it was verified when the store was opened.
func anchorOf(s *eventlog.Store) anchor {
	c, there := s.Signed()
	return anchor{there: there, origin: c.Origin, size: c.Size}
}

func (a *anchor) event(ev *eventlog.Event) {
	if a.there && ev.Position < a.size {
		a.seq = ev.Seq
	}
}

// statement says what the anchor is worth for a log with this head. Whoever holds
// the key can sign a shorter store too, so the store's own copy of a checkpoint
// shows what an admin without the key did, and one kept elsewhere what anybody did.
func (a *anchor) statement(head uint64) string {
	const elsewhere = "; only a copy of it that is kept elsewhere shows that nothing was cut off"
	switch {
	case !a.there:
		return "no checkpoint: that nothing was cut off at the end is unproven"
	case a.seq == 0:
		return "the store's checkpoint is older than this log and covers none of it"
	case a.seq < head:
		return "the store's checkpoint covers it up to seq " + grouped(a.seq) + " of " + grouped(head) + ", what came after is unsigned" + elsewhere
	}
	return "the store's checkpoint covers all of it" + elsewhere
}

func (a *anchor) done(head uint64) Anchor {
	out := Anchor{Checkpoint: a.there, Positions: a.size, Seq: a.seq, Statement: a.statement(head)}
	if a.there {
		out.Origin = &a.origin
	}
	return out
}
