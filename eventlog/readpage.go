package eventlog

import (
	"context"
	"errors"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
)

// Hole is a range of seqs that a read could not return.
type Hole struct {
	From, To uint64
	Err      error
}

// ReadOptions bounds one page.
type ReadOptions struct {
	From      uint64 // first seq; 0 is 1
	To        uint64 // last seq; 0 is the head
	MaxEvents int    // holes included; 0: 256
	MaxBytes  int    // of contents and facts; 0: 4 MiB. One event always fits
	Contents  bool   // load contents

	enough int // bytes after which no further frame is begun; 0: MaxBytes alone
}

// Page is a part of a log. Next is the seq to go on from, 0 at the end.
type Page struct {
	Events []Event
	Holes  []Hole
	Next   uint64
	Head   uint64
}

// Read returns one page of a session's log and always advances: a range that
// can't be read becomes a hole and the read goes on behind it. No transaction
// outlives the call. Errors: ErrNotFound, ErrCorrupt (the index).
func (s *Store) Read(ctx context.Context, session uuid.UUID, o ReadOptions) (Page, error) {
	e, err := s.lookup(session)
	if err != nil {
		return Page{}, err
	}
	r := logReader{s: s, e: e}
	return r.page(ctx, o)
}

// logReader reads pages of one session's log. A reader that reuses what it
// reads into takes nothing from the heap once it is warm; the events of a page
// are then overwritten by the next one.
type logReader struct {
	s     *Store
	e     *entry
	reuse bool

	dec      decoder
	contents contentReader
	mem      arena   // the frames and the contents of the page
	events   []Event // of the page, with reuse
	ahead    *readAhead

	lookup int        // how many frame positions are looked up at a time; 0: framesPage
	list   []framePos // looked up and not passed; from the frame on that holds the seq that is due
	more   bool       // the last of list only tells where the one before ends
}

// framesPage is how many frame positions a read of one page looks up at a time.
const framesPage = 64

// slabMost bounds the events for which a page takes room beforehand.
const slabMost = 512

var errMissing = errors.New("missing events")

func (r *logReader) page(ctx context.Context, o ReadOptions) (Page, error) {
	head, session := r.e.row.Head, r.e.row.Session
	o.From = max(o.From, 1)
	toHead := o.To == 0 || o.To > head
	if toHead {
		o.To = head
	}
	if o.MaxEvents <= 0 {
		o.MaxEvents = 256
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 4 << 20
	}
	page := Page{Head: head}
	if err := ctx.Err(); err != nil {
		return page, err
	}
	r.mem.reused = r.reuse
	r.mem.reset()
	if r.reuse {
		page.Events = r.events[:0]
	}
	seq, bytes := o.From, 0
	hole := func(to uint64, err error) {
		page.Holes = append(page.Holes, Hole{seq, to, err})
		seq = to + 1
	}
	full := func(events int) bool { return events+len(page.Holes) >= o.MaxEvents }
	err := r.s.journal.view(func(tx *bolt.Tx) error {
		frames := keyWalk{b: tx.Bucket(bucketJournal)}
		r.contents.in(tx)
		for seq <= o.To {
			list, err := r.positions(seq)
			if err != nil {
				return err
			}
			if cap(page.Events) == 0 && len(list) > 0 {
				page.Events = make([]Event, 0, min(o.To-seq+1, uint64(o.MaxEvents), slabMost))
			}
			before := seq
			for i, p := range list {
				if r.more && i == len(list)-1 || seq > o.To {
					break
				}
				if p.first > seq {
					if hole(min(p.first-1, o.To), errMissing); seq > o.To {
						break
					}
				}
				end := head // of the frame, as far as the next one tells
				if i+1 < len(list) {
					end = list[i+1].first - 1
				}
				kept := len(page.Events)
				if full(kept) || o.enough > 0 && bytes >= o.enough {
					page.Next = seq
					return nil
				}
				all, err := r.frame(tx, &frames, page.Events, p)
				if err != nil {
					hole(min(end, o.To), err)
					continue
				}
				for k := kept; k < len(all); k++ {
					ev := &all[k]
					if ev.Seq < seq || ev.Seq > o.To {
						continue
					}
					size := len(ev.Facts)
					if o.Contents {
						size += int(ev.ContentLen)
					}
					if full(kept) || kept > 0 && bytes+size > o.MaxBytes {
						page.Events, page.Next = all[:kept], seq
						return nil
					}
					if o.Contents {
						r.contents.load(ev, uint32(ev.Seq-p.first), &r.mem)
					}
					if k != kept {
						all[kept] = *ev
					}
					kept++
					bytes += size
					seq = ev.Seq + 1
				}
				page.Events = all[:kept]
			}
			if seq == before { // no frame holds it, nor begins behind it
				hole(o.To, errMissing)
			}
		}
		return nil
	})
	if r.reuse {
		r.events = page.Events
	}
	if err == nil {
		err = r.s.explainMissing(session, &page)
	}
	if d, ok := r.e.row.cutOff(); ok && toHead && err == nil && page.Next == 0 {
		page.Holes = append(page.Holes, Hole{d.From, d.To, &CorruptError{Session: session, Seq: d.From, Reason: d.Reason}})
	}
	return page, err
}

// positions returns where the frames are, from the one on that holds seq.
func (r *logReader) positions(seq uint64) ([]framePos, error) {
	for len(r.list) > 1 && r.list[1].first <= seq {
		r.list = r.list[1:]
	}
	if len(r.list) > 1 && r.list[0].first <= seq {
		return r.list, nil
	}
	limit := r.lookup
	if limit == 0 {
		limit = framesPage
	}
	list, err := r.s.st.frames(r.e, seq, limit+1)
	r.list, r.more = list, len(list) > limit
	return list, err
}

// frame appends the events of the frame at p; they live in a copy of its
// bytes, so that they outlive the transaction. Damage in the pages that lead
// to the frame, or below it, fails this one frame.
func (r *logReader) frame(tx *bolt.Tx, frames *keyWalk, events []Event, p framePos) ([]Event, error) {
	var raw []byte
	var damage error
	err := protect("store.db", func() error {
		v := frames.position(p.pos)
		if v == nil {
			return nil
		}
		r.ahead.note(tx, v)
		if damage = checkFrameLength(v); damage == nil {
			raw = r.mem.copy(v)
		}
		return nil
	})
	if err != nil {
		frames.forget()
		return events, err
	}
	session := r.e.row.Session
	switch {
	case damage != nil:
		return events, damagedFrame(session, p, damage.Error())
	case raw == nil:
		return events, damagedFrame(session, p, "frame is missing")
	}
	f, err := promised(raw, session, p)
	if err != nil {
		return events, err
	}
	all, err := r.dec.events(events, &f, p.pos)
	if err != nil {
		return events, damagedFrame(session, p, err.Error())
	}
	return all, nil
}
