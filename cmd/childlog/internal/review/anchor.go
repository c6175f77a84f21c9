package review

import "childlog/eventlog"

// anchor follows up to where a checkpoint covers a session's log.
type anchor struct {
	there  bool
	origin string
	size   uint64 // of the tree: positions below it are covered
	seq    uint64 // the last that lies below
}

// anchorOf looks for the store's checkpoint. A store of this version has none.
func anchorOf(*eventlog.Store) (anchor, error) { return anchor{}, nil }

func (a *anchor) event(ev *eventlog.Event) {
	if a.there && ev.Position < a.size {
		a.seq = ev.Seq
	}
}

// statement says what the anchor is worth for a log with this head.
func (a *anchor) statement(head uint64) string {
	switch {
	case !a.there:
		return "no checkpoint: that nothing was cut off at the end is unproven"
	case a.seq == 0:
		return "the checkpoint is older than this log and covers none of it"
	case a.seq < head:
		return "covered by the checkpoint up to seq " + grouped(a.seq) + " of " + grouped(head) + "; what came after is unproven"
	}
	return "covered by the checkpoint as a whole"
}

func (a *anchor) done(head uint64) Anchor {
	out := Anchor{Checkpoint: a.there, Positions: a.size, Seq: a.seq, Statement: a.statement(head)}
	if a.there {
		out.Origin = &a.origin
	}
	return out
}
