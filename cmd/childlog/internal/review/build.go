package review

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/logwalk"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/replay"
)

// Options bounds a review. The zero value takes the defaults.
type Options struct {
	Places  int // places listed of an exception, seqs of a denial or a redaction; 0: 100
	Moments int // entries of the timeline; 0: 200

	// Check is a report of this store that was made already: of all sessions, or
	// of this one. Nil: the session is checked now, which reads the whole store.
	Check    *eventlog.CheckReport
	Progress func(done, of int) // of that check, in frames; may be nil
}

const (
	defaultPlaces  = 100
	defaultMoments = 200
	maxHistory     = 200  // policy events that are compared
	maxFindings    = 100  // findings of the check that are listed
	maxAncestors   = 1000 // of a chain; natively eight are the most, an imported log may claim any
)

func (o *Options) defaults() {
	o.Places, o.Moments = cmp.Or(o.Places, defaultPlaces), cmp.Or(o.Moments, defaultMoments)
}

// Build reviews a session as it stands at its head. What can't be read makes the
// review incomplete and is no error: an auditor needs the rest all the more.
//
// The log is read once, and the store once more for the check. Memory grows with
// the calls that have no result and with what is listed, not with the log.
//
// Errors: ErrNotFound; ErrInvalid for the store's own session, which is no
// agent's; a canceled context.
func Build(ctx context.Context, s *eventlog.Store, session uuid.UUID, o Options) (Review, error) {
	o.defaults()
	b, err := examine(ctx, s, session, o, nil, nil)
	if err != nil {
		return Review{}, err
	}
	r := Review{Session: wire.SessionOf(&b.row, s.Boot()), AsOf: AsOf{b.row.Head, wire.Hex(b.row.Hash)}, Coverage: b.calls.cov,
		Denials: b.calls.denied(), Timeline: b.timeline.done(b.holes)}
	r.Exceptions, r.Checks = b.x.list()
	if r.Chain, err = b.chain(ctx); err != nil {
		return Review{}, err
	}
	r.Sentence = b.sentence(r.Chain)
	r.Receipt = b.receipt()
	if r.Policy, err = b.history(ctx); err != nil {
		return Review{}, err
	}
	if r.Redactions, err = b.redactions(ctx); err != nil {
		return Review{}, err
	}
	if r.Usage, err = b.usage(ctx); err != nil {
		return Review{}, err
	}
	check := o.Check
	if check == nil {
		report, err := s.Check(ctx, eventlog.CheckOptions{Session: session, Progress: o.Progress})
		if err != nil {
			return Review{}, err
		}
		check = &report
	}
	r.Trust = b.trust(check, r.Chain)
	return r, nil
}

// builder is what was read of one session.
type builder struct {
	s   *eventlog.Store
	o   Options
	row eventlog.Row

	policy    replay.Effective
	policyErr error // why there is none

	x        *exceptions
	calls    *calls
	timeline *timeline
	erased   *erased
	anchor   anchor
	holes    []wire.Damage
	unread   uint64
	seed     uuid.UUID // whose conversation the log begins with; Nil: its own
}

// examine reads a session's policy and then its log, once. within picks the
// events that count, nil all of them; tell is told of what is counted.
func examine(ctx context.Context, s *eventlog.Store, session uuid.UUID, o Options, within func(time.Time) bool, tell func(item)) (*builder, error) {
	if session == eventlog.StoreSession {
		return nil, fmt.Errorf("%w: the store's own session is no agent, and nobody delegated to it", eventlog.ErrInvalid)
	}
	row, err := s.Row(session)
	if err != nil {
		return nil, err
	}
	if within == nil {
		within = func(time.Time) bool { return true }
	}
	b := &builder{s: s, o: o, row: row, x: newExceptions(o.Places), timeline: newTimeline(o.Moments), erased: newErased(o.Places)}
	b.anchor = anchorOf(s)
	b.calls = newCalls(b.x, row.Evidence, o.Places, within)
	b.calls.tell = tell
	if b.policy, b.policyErr = replay.Policy(ctx, s, session, 0); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := b.standing(ctx, within); err != nil {
		return nil, err
	}
	if err := logwalk.Each(ctx, s, session, false, b.event, b.gap); err != nil {
		return nil, err
	}
	b.calls.end()
	b.calls.cov.Unread = b.unread
	return b, nil
}

func (b *builder) event(ev *eventlog.Event) error {
	b.calls.cov.Events++
	b.anchor.event(ev)
	if ev.Inherited != nil {
		if b.calls.cov.Inherited++; b.seed == uuid.Nil { // another's past, not this session's
			b.seed = ev.Inherited.Session
		}
		return nil
	}
	b.calls.event(ev)
	b.erased.event(ev)
	b.timeline.event(ev)
	return nil
}

func (b *builder) gap(g logwalk.Gap) error {
	if !g.Readable {
		b.unread += g.To - g.From + 1
		b.calls.gap()
	}
	if len(b.holes) < b.o.Places {
		b.holes = append(b.holes, wire.Damage{From: g.From, To: g.To, Error: g.Err.Error()})
	}
	return nil
}

// standing finds the exceptions that stand in the policy and not in the calls,
// and says which checks can't be made. A native log that was widened, or a child
// without its pin, is refused by the fold: its policy can't be read.
func (b *builder) standing(ctx context.Context, within func(time.Time) bool) error {
	child := b.row.Kind == eventlog.KindChild
	if b.row.Evidence {
		b.x.skip("the log was imported, and records no decisions", ExecutedWithoutDecision, DegradedObjector)
		b.x.skip("the log was imported, and records no revocations", InFlight)
		b.x.skip("the log was imported, and no expiry is recorded in it", NoExpiry)
	}
	if !child {
		b.x.skip("nobody delegated to it", Unpinned, Drift, NoExpiry)
	}
	if b.policyErr != nil {
		b.x.skip("the policy can't be read", Widened, Unpinned, Drift, NoExpiry, ForeignValue)
		return nil
	}
	times := map[uint64]time.Time{}
	if events, _, err := b.s.Policy(ctx, b.row.Session, 0); err == nil {
		for i := range events {
			times[events[i].Seq] = events[i].Time
		}
	}
	add := func(code string, seq uint64, detail string) {
		if t := times[seq]; within(t) {
			b.x.add(code, Place{Seq: seq, Time: timeText(t), Detail: detail})
		}
	}
	e := &b.policy
	codes := map[string]string{replay.FindingWidened: Widened, replay.FindingUnpinned: Unpinned, replay.FindingForeignMode: ForeignValue, replay.FindingForeignAsk: ForeignValue}
	for _, f := range e.Findings {
		add(codes[f.Code], f.Seq, f.Detail)
	}
	if !child {
		return nil
	}
	if !e.Evidence && e.Authority.Own.Profile.Limits.DeadlineMS == 0 {
		detail := "it holds until somebody narrows or closes it"
		if b.row.ClosedSeq != 0 {
			detail = "it held until the session was closed"
		}
		add(NoExpiry, e.ReceiptSeq, detail)
	}
	return b.drift(ctx, add)
}

// drift compares with what the parent and the store hold. Of evidence both sides
// are imported: what the parent's log had in force at the delegation is compared
// with what the child's has.
func (b *builder) drift(ctx context.Context, add func(code string, seq uint64, detail string)) error {
	e := &b.policy
	if b.row.ClosedSeq != 0 {
		b.x.skip("the session is closed: what it was handed down is over", Drift)
		return nil
	}
	if !e.Evidence {
		list, err := replay.DriftOf(ctx, b.s, e)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			b.x.skip("the parent's policy can't be read: "+err.Error(), Drift)
			return nil
		}
		for _, d := range list {
			add(Drift, e.ReceiptSeq, d.Field+": "+d.Recorded+" here, "+d.Present+" there; "+d.Detail)
		}
		return nil
	}
	parent, err := replay.Policy(ctx, b.s, e.Parent, e.ParentSeq)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case gone(err):
		b.x.skip("the parent's log is not in this store", Drift)
	case err != nil:
		b.x.skip("the parent's policy can't be read", Drift)
	default:
		had, stated := parent.Captured()
		if has := e.Bound.Value; stated && !had.Equal(has) {
			add(Drift, e.Bound.Mode.Origin.Seq, "sandbox: "+has.String()+" here, "+had.String()+" in the parent's log when it delegated")
		}
	}
	return nil
}

// usage sums what was recorded, each session once however often it is named.
func (b *builder) usage(ctx context.Context) (Usage, error) {
	u := Usage{Own: usageOf(&b.row.Usage)}
	seen := map[uuid.UUID]bool{b.row.Session: true}
	sum := eventlog.Usage{}
	for queue := []uuid.UUID{b.row.Session}; len(queue) > 0; {
		id := queue[0]
		queue = queue[1:]
		if err := ctx.Err(); err != nil {
			return u, err
		}
		row, err := b.s.Row(id)
		if err != nil {
			return u, err
		}
		u.Sessions++
		sum.Input += row.Usage.Input
		sum.Output += row.Usage.Output
		sum.CacheRead += row.Usage.CacheRead
		sum.CacheWrite += row.Usage.CacheWrite
		sum.CostMicros += row.Usage.CostMicros
		sum.Of += row.Usage.Of
		children, err := b.s.Children(id)
		if err != nil {
			return u, err
		}
		children = slices.DeleteFunc(children, func(c uuid.UUID) bool { return seen[c] })
		for _, c := range children {
			seen[c] = true
			if _, err := b.s.Row(c); err == nil { // a child whose log is gone recorded nothing here
				queue = append(queue, c)
			}
		}
	}
	u.Subtree = usageOf(&sum)
	return u, nil
}

func usageOf(u *eventlog.Usage) wire.Usage {
	return wire.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, CostMicros: u.CostMicros, Records: u.Of}
}
