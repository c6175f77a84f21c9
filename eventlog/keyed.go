package eventlog

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"
)

// A batch under a key has event ids that follow from its session, its key and the
// place of each event in it, so that a caller who remembers nothing but the key
// can send it again. They are UUIDs of version 8 (RFC 9562, section 5.8): 14 bytes
// of a hash and the place. The first of a batch is a name of its session in the
// index, so the batch is found however long ago it was written.

// KeyedID is the id of the event at a place, from 0, of the batch that has the
// key in its session.
func KeyedID(session uuid.UUID, key string, place int) uuid.UUID {
	sum := sha256.Sum256(append(append([]byte(tagBatch), session[:]...), key...))
	id := uuid.UUID(sum[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	binary.BigEndian.PutUint16(id[14:], uint16(place))
	return id
}

// isKeyed reports whether an id has the form of one at a place of its batch. A
// caller may give such ids too, which are found no less exactly.
func isKeyed(id uuid.UUID, place int) bool {
	return id.Version() == 8 && int(binary.BigEndian.Uint16(id[14:])) == place
}

// keyed gives the events of a batch the ids of its key.
func (b *Batch) keyed() error {
	if b.Key == "" {
		return nil
	}
	events := make([]NewEvent, len(b.Events))
	copy(events, b.Events)
	for i := range events {
		if events[i].ID != uuid.Nil {
			return inBatch(events, i, invalidf("id %s: the batch has a key, and its events have their ids from it", events[i].ID))
		}
		events[i].ID = KeyedID(b.Session, b.Key, i)
	}
	b.Events = events
	return nil
}

// findKeyed returns the seq of the first event of a batch that was appended under
// a key, 0 if none was.
func (st *stage) findKeyed(session uuid.UUID, events []pending) (uint64, error) {
	if !isKeyed(events[0].id, 0) {
		return 0, nil
	}
	at, err := st.byName(keyedName(session, events[0].id))
	return seqIn(at), err
}

func keyedName(session, first uuid.UUID) name {
	return codeName(nameBatch, session, string(first[:]))
}

// longer reports whether the batch that was stored under a key goes on behind
// the events of a retry.
func longer(events []pending, next *seqEvent) bool {
	want := events[0].id
	binary.BigEndian.PutUint16(want[14:], uint16(len(events)))
	return isKeyed(events[0].id, 0) && next.ID == want
}
