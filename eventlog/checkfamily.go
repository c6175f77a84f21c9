package eventlog

import (
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// family is what the logs of a store say of each other: parents name their
// children and the receipts they gave, children hold the receipts. Each log
// is chained on its own, so a store from which a whole log was taken, and the
// rest renumbered, is sound in every log that is left.
type family struct {
	started map[linkKey]statement
	granted map[uuid.UUID]statement
}

// statement is one side's word for a delegation.
type statement struct {
	seq, position uint64
	other         uuid.UUID // the child of a start, the parent of a receipt
	receipt       Hash
	imported      bool // of a log from another store
}

// note keeps what an event says of a delegation. Imported logs are evidence of
// another store, where the other side may well be: of them only what both sides
// say here is compared.
func (f *family) note(ev *Event) {
	if ev.Inherited != nil || ev.Source != SourceDelegation {
		return
	}
	at := statement{seq: ev.Seq, position: ev.Position, imported: ev.Imported}
	switch ev.Type {
	case TypeDelegationStarted:
		at.other, at.receipt = ev.Facts.UUID("child"), ev.Facts.hash("receipt")
		f.started[linkKey{parent: ev.Session, child: at.other}] = at
	case TypeDelegationGranted:
		at.other, at.receipt = ev.Facts.UUID("parent"), Digest(ev.Facts)
		f.granted[ev.Session] = at
	}
}

// family reports where parents and children disagree. Of a log that is known
// to lack events nothing more is said than that.
func (c *checker) family() {
	rows := c.fold.st.over.rows
	purged := c.erasures.purged
	lacks := func(id uuid.UUID) bool {
		return len(rows[id].row.Damage) > 0 || c.fold.st.doubt(&rows[id].row) != nil
	}
	report := func(session uuid.UUID, at statement, format string, args ...any) {
		c.add(Finding{Kind: FindDelegation, Session: session, Seq: at.seq, Position: at.position, Detail: fmt.Sprintf(format, args...)})
	}
	for _, k := range sortedLinks(c.relatives.started) {
		at := c.relatives.started[k]
		held, ok := c.relatives.granted[k.child]
		switch {
		case rows[k.child] == nil && purged[k.child].Session == k.child:
			if was := purged[k.child].Receipt; was != at.receipt {
				report(k.parent, at, "child %s was started here with receipt %x, its purge names %x", k.child, at.receipt[:8], was[:8])
			}
		case at.imported && (!ok || !held.imported):
		case rows[k.child] == nil:
			report(k.parent, at, "child %s was started here and has no log in this store", k.child)
		case !ok && !lacks(k.child):
			report(k.parent, at, "child %s was started here and its log holds no receipt", k.child)
		case ok && (held.receipt != at.receipt || held.other != k.parent):
			report(k.parent, at, "child %s was started with receipt %x of this parent, its log holds %x of %s", k.child, at.receipt[:8], held.receipt[:8], held.other)
			if c.o.Session == k.child { // the finding above is about another log
				report(k.child, held, "the receipt is %x of parent %s, parent %s recorded %x", held.receipt[:8], held.other, k.parent, at.receipt[:8])
			}
		}
	}
	for _, child := range sortedIDs(c.relatives.granted) {
		at := c.relatives.granted[child]
		_, ok := c.relatives.started[linkKey{parent: at.other, child: child}]
		switch {
		case ok || at.imported:
		case rows[at.other] == nil && purged[at.other].Session == at.other:
			report(child, at, "its parent %s was purged without it", at.other)
		case rows[at.other] == nil:
			report(child, at, "its parent %s has no log in this store", at.other)
		case !lacks(at.other):
			report(child, at, "the log of its parent %s does not name it", at.other)
		}
	}
}

func sortedLinks(set map[linkKey]statement) []linkKey {
	out := make([]linkKey, 0, len(set))
	for k := range set {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b linkKey) int {
		if n := slices.Compare(a.parent[:], b.parent[:]); n != 0 {
			return n
		}
		return slices.Compare(a.child[:], b.child[:])
	})
	return out
}
