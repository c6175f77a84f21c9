// Package retention says which sessions are past their time and has their
// contents redacted, or the sessions purged. It decides nothing that the store
// does not: a legal hold, an open activation or damage refuses there, and is
// reported here.
//
// Age is counted from a session's last activity, to which redactions and holds
// do not belong. Times in a log are claims of
// whoever wrote it, so a log that lies about its times is kept too long or not
// long enough; order and policy do not depend on them.
//
// A preset is a floor: [SixMonths] is what Regulation (EU) 2024/1689, Articles
// 19(1) and 26(6), asks of logs at least, [TwelveMonths] what PCI DSS v4.0,
// 10.5.1, asks of audit logs. An order below it has to say so, and the record of
// what it erased then says so too.
package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// Presets, in calendar months.
const (
	SixMonths    = "6m"
	TwelveMonths = "12m"
)

// Classes of what goes.
const (
	Contents = "contents" // contents are redacted, logs stay
	Sessions = "sessions" // whole sessions are purged
)

// What outlives contents.
const (
	KeepDecisions = "decisions" // tool/decision, approval/asked, approval/decided
	KeepReceipts  = "receipts"  // delegation/granted
)

// Bases, as they are recorded.
const (
	Basis      = "retention"
	BasisBelow = "retention-below-floor"
)

// Age is a span of time as a person states it: hours, days, weeks, and calendar
// months and years, which have no fixed length.
type Age struct {
	n    int
	unit byte // h, d, w, m or y
}

// ParseAge reads a number with a unit: 12h, 90d, 26w, 6m or 1y.
func ParseAge(s string) (Age, error) {
	if n := len(s) - 1; n > 0 && slices.Contains([]byte("hdwmy"), s[n]) {
		if v, err := strconv.ParseUint(s[:n], 10, 16); err == nil {
			return Age{int(v), s[n]}, nil
		}
	}
	return Age{}, fmt.Errorf("%w: age: want a number and h, d, w, m (months) or y, such as 90d, got %.20q", eventlog.ErrInvalid, s)
}

// Before is the moment that lies the age before now.
func (a Age) Before(now time.Time) time.Time {
	switch a.unit {
	case 'h':
		return now.Add(-time.Duration(a.n) * time.Hour)
	case 'w':
		return now.AddDate(0, 0, -7*a.n)
	case 'm':
		return now.AddDate(0, -a.n, 0)
	case 'y':
		return now.AddDate(-a.n, 0, 0)
	}
	return now.AddDate(0, 0, -a.n)
}

// Rule says what goes.
type Rule struct {
	eventlog.Order
	Before time.Time // sessions whose last activity lies before
	Status []string  // and whose status is one of these
	Class  string
	Keep   []string // with Contents
	DryRun bool
}

// Actions of an item.
const (
	Redact = "redact"
	Purge  = "purge"
	Skip   = "skip" // refused by a hold, an activation or a younger descendant, or a log of another store
	Fail   = "fail" // damage, or the store can't be written
)

// Item is a session that is old enough, and what became of it.
type Item struct {
	Row      eventlog.Row
	Action   string
	Why      string // of Skip and Fail
	Err      error  // of Fail
	Sessions int    // that went: with Purge the subtree's
	Events   uint64
	Contents int
	Bytes    uint64
}

// Apply carries out a rule, or with DryRun says what it would do: the same
// items, decided by the same code, and nothing is written. One session that is
// refused or damaged keeps no other from its turn. present is the boot id of
// whoever holds the store.
//
// Errors: those that end all of it, such as a canceled context.
func Apply(ctx context.Context, s *eventlog.Store, r Rule, each func(Item) error) error {
	var rows []eventlog.Row
	err := s.EachRow(ctx, func(row *eventlog.Row) (bool, error) {
		if row.Session != eventlog.StoreSession {
			rows = append(rows, *row)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	a := &applying{s: s, r: &r, rows: rows, below: map[uuid.UUID][]int{}, at: map[uuid.UUID]int{}, due: map[uuid.UUID]uuid.UUID{}}
	for i := range rows {
		a.at[rows[i].Session] = i
		a.below[rows[i].Parent] = append(a.below[rows[i].Parent], i)
	}
	for i := range rows {
		if !a.old(&rows[i]) {
			continue
		}
		item := Item{Row: rows[i]}
		if r.Class == Contents {
			err = a.contents(ctx, &item)
		} else if parent, ok := a.at[rows[i].Parent]; ok && a.old(&rows[parent]) && a.whole(rows[parent].Session) == uuid.Nil {
			continue // it goes with its parent
		} else {
			err = a.session(ctx, &item)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		item.settle(err)
		if err := each(item); err != nil {
			return err
		}
	}
	return nil
}

// settle says what an error makes of an item.
func (i *Item) settle(err error) {
	if err == nil {
		return
	}
	i.Action, i.Why = Skip, err.Error()
	if !errors.Is(err, eventlog.ErrHeld) && !errors.Is(err, eventlog.ErrConflict) && !errors.Is(err, errYounger) && !errors.Is(err, errForeign) {
		i.Action, i.Err = Fail, err
	}
}

var (
	errYounger = errors.New("not past its time")
	errForeign = errors.New("from another store")
)

type applying struct {
	s     *eventlog.Store
	r     *Rule
	rows  []eventlog.Row
	at    map[uuid.UUID]int   // by session
	below map[uuid.UUID][]int // by parent
	due   map[uuid.UUID]uuid.UUID
}

func (a *applying) old(row *eventlog.Row) bool {
	return time.Unix(0, row.Active).Before(a.r.Before) && slices.Contains(a.r.Status, row.Status(a.s.Boot()))
}

// whole finds a descendant that has not come to its time, uuid.Nil if there is
// none: a subtree goes as a whole or not at all.
func (a *applying) whole(session uuid.UUID) uuid.UUID {
	if young, ok := a.due[session]; ok {
		return young
	}
	a.due[session] = uuid.Nil // imported logs may name each other in a circle
	for _, i := range a.below[session] {
		young := a.rows[i].Session
		if a.old(&a.rows[i]) {
			young = a.whole(young)
		}
		if young != uuid.Nil {
			a.due[session] = young
			return young
		}
	}
	return uuid.Nil
}

// session has a session purged with all below it.
func (a *applying) session(ctx context.Context, item *Item) error {
	item.Action = Purge
	if young := a.whole(item.Row.Session); young != uuid.Nil {
		return fmt.Errorf("%w: %s below it stays, and a subtree goes as a whole", errYounger, young)
	}
	out, err := a.s.Purge(ctx, eventlog.PurgeRequest{Order: a.r.Order, Session: item.Row.Session, Subtree: true, DryRun: a.r.DryRun})
	item.Sessions, item.Events = len(out.Sessions), out.Events
	return err
}

// redactAtOnce bounds the contents of one commit, for which others wait.
const redactAtOnce = 4096

// contents has what is not kept of a session redacted.
func (a *applying) contents(ctx context.Context, item *Item) error {
	item.Action = Redact
	if item.Row.Imported {
		return fmt.Errorf("%w: its log takes no record of a redaction here; redact it there, or have it purged here", errForeign)
	}
	var seqs []uint64
	gone := map[uint64]bool{}
	for from := uint64(1); from != 0; {
		page, err := a.s.Read(ctx, item.Row.Session, eventlog.ReadOptions{From: from, MaxEvents: redactAtOnce})
		if err != nil {
			return err
		}
		if len(page.Holes) > 0 {
			return page.Holes[0].Err
		}
		for i := range page.Events {
			ev := &page.Events[i]
			if ev.Type == eventlog.TypeContentRedacted {
				erased, err := eventlog.RedactedSeqs(ev)
				if err != nil {
					return err
				}
				for _, seq := range erased {
					gone[seq] = true
				}
			}
			if ev.HasContent && !a.kept(ev) {
				seqs = append(seqs, ev.Seq)
			}
		}
		from = page.Next
	}
	seqs = slices.DeleteFunc(seqs, func(seq uint64) bool { return gone[seq] })
	for part := range slices.Chunk(seqs, redactAtOnce) {
		out, err := a.s.Redact(ctx, eventlog.RedactRequest{Order: a.r.Order, Session: item.Row.Session, Seqs: part, DryRun: a.r.DryRun, Exact: true})
		if err != nil {
			return err
		}
		n, bytes := out.Count()
		item.Contents += n
		item.Bytes += bytes
	}
	if item.Sessions = 1; len(seqs) == 0 {
		item.Sessions = 0
	}
	return nil
}

// kept reports whether an event's content outlives the others. The reasons that
// operators gave for holding and erasing always do: without them a record of
// what was done would be left without its why.
func (a *applying) kept(ev *eventlog.Event) bool {
	switch ev.Type {
	case eventlog.TypeToolDecision, eventlog.TypeApprovalAsked, eventlog.TypeApprovalDecided:
		return slices.Contains(a.r.Keep, KeepDecisions)
	case eventlog.TypeDelegationGranted:
		return slices.Contains(a.r.Keep, KeepReceipts)
	case eventlog.TypeContentRedacted, eventlog.TypeSessionHeld:
		return true
	}
	return false
}
