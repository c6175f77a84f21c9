package importer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// Tags of the derivations are 16 bytes, like those of package eventlog, and
// never change: a store imported once must be recognized for ever.
const (
	tagSession = "childlog/impsn/1"
	tagEvent   = "childlog/impev/1"
)

// SessionID derives the id under which a foreign session is kept. It is a
// function of the other system's name and id alone, so that a child can name
// its parent before, or without, the parent's own file.
func SessionID(system, id string) uuid.UUID {
	h := sha256.New()
	h.Write([]byte(tagSession))
	h.Write([]byte{byte(len(system))})
	h.Write([]byte(system))
	h.Write([]byte(id))
	return derived(h.Sum(nil))
}

// EventID derives the id of the event of a line: another line, or the same
// line elsewhere, has another one. part tells apart the events that one line
// gave rise to; the line's own event is part 0.
func EventID(session uuid.UUID, line int64, part byte, sum [32]byte) uuid.UUID {
	var b [16 + 16 + 8 + 1 + 32]byte
	copy(b[:], tagEvent)
	copy(b[16:], session[:])
	binary.BigEndian.PutUint64(b[32:], uint64(line))
	b[40] = part
	copy(b[41:], sum[:])
	out := sha256.Sum256(b[:])
	return derived(out[:])
}

// derived makes a UUID of version 8 (RFC 9562: the rest is the maker's own).
func derived(sum []byte) uuid.UUID {
	var id uuid.UUID
	copy(id[:], sum)
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

// Code is s if it may stand as a fact, else its digest. Equal texts give equal
// codes, so that a call and its result stay a pair; the text itself is in the
// event's content.
func Code(s string) string {
	if eventlog.IsCode(s) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:16])
}

// Short is the beginning of a digest, enough to tell things of one import
// apart.
func Short(sum [32]byte) string { return hex.EncodeToString(sum[:8]) }
