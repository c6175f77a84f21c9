package eventlog

import (
	"context"
	"encoding/binary"
	"slices"
	"time"
)

// Measured is what a scan of store.db finds.
type Measured struct {
	Frames, Contents, Tombstones BucketSize // Contents by chunks of up to 64 KiB
	Days                         []Day      // the newest first, at most maxDays; those without events are left out
	Earlier                      Day        // all days before together; its Date is the newest of them
}

// BucketSize counts keys, and the bytes of keys and values as they are stored.
type BucketSize struct{ Keys, Bytes uint64 }

// Day is how much was appended on a day.
type Day struct {
	Date   time.Time // UTC, midnight
	Events uint64
	Bytes  uint64 // of frames and contents as stored
}

// maxDays bounds the memory of Measure whatever times a log states.
const maxDays = 31

// Measure scans the journal, a page at a time, and tells what takes the space
// and how the store grew. Days are those of the times in the events, which are
// claims; the first event of a batch speaks for all of it. A frame that is not
// there or can't be read ends it. Errors: ErrCorrupt, ErrStoreClosed.
func (s *Store) Measure(ctx context.Context, progress func(done, of int)) (Measured, error) {
	var m Measured
	if err := s.usable(); err != nil {
		return m, err
	}
	days := growth{days: map[int64]*Day{}}
	sizes := [...]*BucketSize{inJournal: &m.Frames, inTombstones: &m.Tombstones, inContents: &m.Contents}
	scan := journalScan{j: s.journal, end: s.st.durable()}
	var from uint64  // position of the first of dates
	var dates []*Day // of the frames whose contents may still come
	for {
		if err := ctx.Err(); err != nil {
			return m, err
		}
		if scan.at == scan.until {
			from, dates = scan.at, dates[:0]
			days.prune()
		}
		more, err := scan.next()
		if err != nil {
			return m, err
		}
		if !more {
			break
		}
		for i := range scan.page {
			r := &scan.page[i]
			n := uint64(len(r.key) + len(r.value))
			sizes[r.bucket].Keys++
			sizes[r.bucket].Bytes += n
			switch r.bucket {
			case inJournal:
				day, err := days.frame(binary.BigEndian.Uint64(r.key), r.value)
				if err != nil {
					return m, err
				}
				day.Bytes += n
				dates = append(dates, day)
			case inTombstones:
				dates = append(dates, nil)
			case inContents:
				if at := binary.BigEndian.Uint64(r.key) - from; at < uint64(len(dates)) && dates[at] != nil {
					dates[at].Bytes += n
				}
			}
		}
		if progress != nil {
			progress(int(scan.at), int(scan.end))
		}
	}
	days.prune()
	m.Days, m.Earlier = days.list(), days.earlier
	return m, nil
}

// growth adds up days and keeps the newest.
type growth struct {
	days    map[int64]*Day // by seconds
	earlier Day
}

func (g *growth) frame(position uint64, raw []byte) (*Day, error) {
	r, err := newFrameReader(raw)
	if err != nil {
		return nil, corruptf(position, "%v", err)
	}
	var ev Event
	if _, err := r.next(&ev); err != nil {
		return nil, corruptf(position, "%v", err)
	}
	date := ev.Time.Truncate(24 * time.Hour)
	day := g.days[date.Unix()]
	if day == nil {
		day = &Day{Date: date}
		g.days[date.Unix()] = day
	}
	day.Events += r.count
	return day, nil
}

// list returns the days, the newest first.
func (g *growth) list() (days []Day) {
	for _, d := range g.days {
		days = append(days, *d)
	}
	slices.SortFunc(days, func(a, b Day) int { return b.Date.Compare(a.Date) })
	return days
}

// prune adds the oldest days up once there are too many. A day that comes back
// is older than all that are kept, and is pruned again.
func (g *growth) prune() {
	if len(g.days) <= maxDays {
		return
	}
	for _, d := range g.list()[maxDays:] {
		g.earlier.Events += d.Events
		g.earlier.Bytes += d.Bytes
		if d.Date.After(g.earlier.Date) {
			g.earlier.Date = d.Date
		}
		delete(g.days, d.Date.Unix())
	}
}
