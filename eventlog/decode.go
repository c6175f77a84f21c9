package eventlog

import (
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// decoder turns the headers of frames into events, with nothing allocated per
// event: the events go into the caller's slice and their facts point into the
// frame. It belongs to one goroutine at a time.
type decoder struct {
	scratch []byte // of the chain's hashes
}

// events appends the events of a frame whose envelope was checked, with their
// chain hashes. On an error dst comes back as it was.
func (d *decoder) events(dst []Event, f *frame, position uint64) ([]Event, error) {
	r := frameReader{frame: *f, rest: f.headers}
	base := len(dst)
	dst = slices.Grow(dst, int(f.count))[:base+int(f.count)]
	hash := f.prev
	for i := base; i < len(dst); i++ {
		ev := &dst[i]
		header, err := r.next(ev)
		if err != nil {
			return dst[:base], err
		}
		ev.prev = hash
		hash, d.scratch = chainNext(hash, header, d.scratch)
		ev.Hash, ev.Position = hash, position
	}
	if _, err := r.next(nil); err != nil { // bytes after the last header
		return dst[:base], err
	}
	return dst, nil
}

// promised checks the envelope of a frame, and that it is the session's frame
// that the index promised at p.
func promised(raw []byte, session uuid.UUID, p framePos) (frame, error) {
	f, err := decodeFrame(raw)
	switch {
	case err != nil:
		return f, damagedFrame(session, p, err.Error())
	case f.session != session || f.first != p.first:
		return f, damagedFrame(session, p, fmt.Sprintf("the index points to session %s seq %d", f.session, f.first))
	}
	return f, nil
}

func damagedFrame(session uuid.UUID, p framePos, reason string) error {
	return &CorruptError{Session: session, Seq: p.first, Position: p.pos, HasPosition: true, Reason: reason}
}

// arena hands out bytes from blocks, so that the many small values of a page
// cost few allocations. A block is never moved: what was handed out stays
// until reset.
type arena struct {
	block  []byte
	size   int  // of the newest block
	used   int  // handed out since reset
	reused bool // reset keeps a block: what was handed out before is overwritten
}

// Blocks of an arena, bytes. A larger value gets a block of its own.
const (
	arenaFirst = 4 << 10
	arenaMost  = 256 << 10
	arenaKeep  = 4 << 20 // the largest block that is kept for reuse
)

// take returns an empty slice, never nil, with room for n bytes.
func (a *arena) take(n int) []byte {
	if cap(a.block)-len(a.block) < n || a.block == nil {
		a.size = max(n, min(max(2*a.size, arenaFirst), arenaMost))
		a.block = make([]byte, 0, a.size)
	}
	a.used += n
	at := len(a.block)
	a.block = a.block[:at+n]
	return a.block[at : at : at+n]
}

// copy returns a copy of b.
func (a *arena) copy(b []byte) []byte { return append(a.take(len(b)), b...) }

// reset begins anew.
func (a *arena) reset() {
	used := a.used
	a.used, a.size = 0, min(a.size, arenaMost)/2
	switch {
	case !a.reused || cap(a.block) > arenaKeep:
		a.block = nil
	case used > cap(a.block) && used <= arenaKeep: // one block for all, from now on
		a.block = make([]byte, 0, used+used/4)
	default:
		a.block = a.block[:0]
	}
}
