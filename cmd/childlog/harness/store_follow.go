package harness

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/filter"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// Head implements [Harness].
func (h *Store) Head(ctx context.Context, r HeadRequest) (Head, error) {
	if r.Session == "" {
		return Head{place{position: h.s.Durable()}.String()}, h.usable()
	}
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return Head{}, err
	}
	row, err := h.s.Row(id)
	return Head{strconv.FormatUint(row.Head, 10)}, err
}

// errStopped ends a follow whose caller has enough.
var errStopped = errors.New("stopped")

// following is the sequence of a follow. Behind a false of its caller nothing is
// yielded any more, whatever run comes back with: it may have met the end of its
// context or a closed store on the way out, and a call after a false panics.
func following(run func(give func(wire.Followed) error) error) iter.Seq2[wire.Followed, error] {
	return func(yield func(wire.Followed, error) bool) {
		stopped := false
		err := run(func(v wire.Followed) error {
			if stopped = stopped || !yield(v, nil); stopped {
				return errStopped
			}
			return nil
		})
		if err != nil && !stopped {
			yield(wire.Followed{}, err)
		}
	}
}

// Follow implements [Harness].
//
// The cursor of a session is the seq of an event; that of the store is the
// position of a frame, a dot, and how many of its events are handled. Events of
// sessions that were purged are no more, and are passed over. A cursor behind the
// end of what there is was given by another store, or this one was put back:
// ErrNotFound.
func (h *Store) Follow(ctx context.Context, r FollowRequest) iter.Seq2[wire.Followed, error] {
	return following(func(give func(wire.Followed) error) error {
		f := follower{h: h, r: r, give: func(cursor string, ev *eventlog.Event) error {
			if r.NoContent {
				ev.Content, ev.ContentErr = nil, nil
			}
			return give(wire.Followed{Cursor: cursor, Session: ev.Session.String(), Event: wire.EventOf(ev)})
		}}
		return f.run(ctx)
	})
}

// follower is one follow.
type follower struct {
	h    *Store
	r    FollowRequest
	f    *filter.Filter
	give func(cursor string, ev *eventlog.Event) error
}

func (f *follower) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.h.open, cancel)()
	err := f.follow(ctx)
	if closed := f.h.usable(); closed != nil && err != nil {
		return closed
	}
	return err
}

func (f *follower) follow(ctx context.Context) (err error) {
	if f.f, err = f.h.filtered(filter.Filter{Types: f.r.Types}); err != nil {
		return err
	}
	if f.r.Session == "" {
		return f.store(ctx)
	}
	id, err := f.h.session(ctx, f.r.Session)
	if err != nil {
		return err
	}
	return f.session(ctx, id)
}

// session follows one log. The store's Tail waits and reads.
func (f *follower) session(ctx context.Context, id uuid.UUID) error {
	row, err := f.h.s.Row(id)
	if err != nil {
		return err
	}
	after := uint64(0)
	if f.r.After != "" {
		if after, err = strconv.ParseUint(f.r.After, 10, 63); err != nil {
			return fmt.Errorf("%w: /after: got %.60q, want the cursor of an event of a session", eventlog.ErrInvalid, f.r.After)
		}
		if after > row.Head {
			return fmt.Errorf("%w: /after: session %s has no seq %d, its head is %d", eventlog.ErrNotFound, id, after, row.Head)
		}
	}
	events := f.f.Events()
	return f.h.s.Tail(ctx, id, after+1, func(ev *eventlog.Event) error {
		if !events.Picks(ev) {
			return f.h.usable()
		}
		ev.Session = id
		return errors.Join(f.give(strconv.FormatUint(ev.Seq, 10), ev), f.h.usable())
	})
}

// place is where a follow of the whole store stands: before the event with the
// index of the frame at the position.
type place struct{ position, index uint64 }

func (p place) String() string { return fmt.Sprintf("%d.%d", p.position, p.index) }

// start is where to begin.
func (f *follower) start() (p place, err error) {
	end := f.h.s.Durable()
	if f.r.After == "" {
		return p, nil
	}
	at, index, _ := strings.Cut(f.r.After, ".")
	bad := fmt.Errorf("%w: /after: got %.60q, want the cursor of an event of the store", eventlog.ErrInvalid, f.r.After)
	if p.position, err = strconv.ParseUint(at, 10, 63); err != nil {
		return p, bad
	}
	if p.index, err = strconv.ParseUint(index, 10, 63); err != nil {
		return p, bad
	}
	if p.position > end || p.position == end && p.index > 0 {
		return p, fmt.Errorf("%w: /after: the store has no position %d, it ends at %d", eventlog.ErrNotFound, p.position, end)
	}
	return p, nil
}

// store follows all logs in the order of their commits.
func (f *follower) store(ctx context.Context) error {
	at, err := f.start()
	if err != nil {
		return err
	}
	for {
		changed := f.h.s.Changed() // before reading, so that nothing falls between
		if err := f.h.usable(); err != nil {
			return err
		}
		end := f.h.s.Durable()
		if at.position < end {
			// Contents are read by session, where an erased one says so.
			err := f.h.s.EachRaw(ctx, at.position, end, func(uuid.UUID) bool { return false }, func(frame *eventlog.RawFrame) error {
				if err := f.frame(ctx, frame, at.index); err != nil {
					return err
				}
				at = place{position: frame.Position + 1}
				return nil
			})
			if err != nil {
				return err
			}
			continue
		}
		if f.h.s.Boot() == uuid.Nil {
			return nil // opened for reading: nothing can come
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		if f.h.s.Closed() {
			return fmt.Errorf("%w: the store was closed", eventlog.ErrStoreClosed)
		}
	}
}

// frame gives the events of one frame from an index on.
func (f *follower) frame(ctx context.Context, frame *eventlog.RawFrame, index uint64) error {
	if frame.Tombstone {
		return nil
	}
	if frame.Lost {
		return &eventlog.CorruptError{Position: frame.Position, HasPosition: true, Reason: "the frame is lost, a salvage says"}
	}
	events := f.f.Events()
	for from := frame.First + index; from <= frame.Last(); {
		page, err := f.h.s.Read(ctx, frame.Session, eventlog.ReadOptions{From: from, To: frame.Last(), MaxBytes: maxPageBytes, Contents: !f.r.NoContent})
		if errors.Is(err, eventlog.ErrPurged) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(page.Holes) > 0 {
			return &eventlog.CorruptError{Session: frame.Session, Seq: page.Holes[0].From, Position: frame.Position, HasPosition: true, Reason: page.Holes[0].Err.Error()}
		}
		for i := range page.Events {
			ev := &page.Events[i]
			if from = ev.Seq + 1; !events.Picks(ev) {
				continue
			}
			ev.Session = frame.Session
			if err := f.give(place{frame.Position, from - frame.First}.String(), ev); err != nil {
				return err
			}
		}
		if len(page.Events) == 0 {
			return nil
		}
	}
	return nil
}
