package eventlog

import (
	"bytes"

	"github.com/google/uuid"
)

// authorizeErase: what tells of an erasure or a hold stands in the log that it
// is about, and nothing else does. Only this package erases: Transact takes no
// EntryErase, since an event that says so and erased nothing would be a lie, and
// the other way round a loss.
func authorizeErase(id uuid.UUID, events []pending, before *entry) error {
	for i := range events {
		p := &events[i]
		created := before == nil && i == 0 && p.typ == TypeSessionCreated && bytes.Equal(p.facts, StoreCreated().Facts)
		switch own := id == StoreSession; {
		case p.typ == TypeContentRedacted && before != nil:
		case p.typ == TypeSessionHeld && before != nil && !own:
		case own && (p.typ == TypeSessionPurged || created):
		default:
			return unauthorizedf("session %s: got %s, want what tells of an erasure there", id, p.typ)
		}
	}
	return nil
}
