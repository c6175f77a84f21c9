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

// Unproven are the words for what no store can show of itself, the same wherever
// a state of trust is shown.
const Unproven = "completeness unproven"

// Unproven reports whether a banner has to add [Unproven] to the state. A review
// is held against nothing from outside of the store, so only a log of which
// something is known to be missing goes without.
func (t *Trust) Unproven() bool {
	return !t.Incomplete && (t.State == StateVerified || t.State == StateRedacted || t.State == StateClaimed)
}

// statement says what the anchor is worth for a log with this head. Whoever holds
// the key can sign a shorter store too, so the store's own copy of a checkpoint
// shows what an admin without the key did, and one kept elsewhere what anybody did.
func (a *anchor) statement(head uint64) string {
	const elsewhere = "; " + Unproven + " without a copy kept elsewhere"
	switch {
	case !a.there:
		return "no checkpoint; " + Unproven
	case a.seq == 0:
		return "the store's own checkpoint is older than this log and covers none of it" + elsewhere
	case a.seq < head:
		return "covered by the store's own checkpoint up to seq " + grouped(a.seq) + " of " + grouped(head) + ", what came after is unsigned" + elsewhere
	}
	return "covered by the store's own checkpoint" + elsewhere
}

func (a *anchor) done(head uint64) Anchor {
	out := Anchor{Checkpoint: a.there, Positions: a.size, Seq: a.seq, Statement: a.statement(head)}
	if a.there {
		out.Origin = &a.origin
	}
	return out
}
