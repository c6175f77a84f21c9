package review

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// What a report can list.
const (
	ListTotals      = "totals" // nothing beside them
	ListExceptions  = "exceptions"
	ListSessions    = "sessions"
	ListDelegations = "delegations"
	ListCalls       = "calls"
	ListDecisions   = "decisions"
	ListDenials     = "denials"
)

// Lists names what a report can list.
var Lists = []string{ListTotals, ListExceptions, ListSessions, ListDelegations, ListCalls, ListDecisions, ListDenials}

// Query says what a report is about.
type Query struct {
	Sessions []eventlog.Row       // the population, in the order in which it is reported
	Within   func(time.Time) bool // the period: events outside of it count nothing; nil: all do
	List     string               // what is listed beside the totals
	Sample   int                  // at most so many of the list; 0: all
	Seed     string               // picks the sample
	Progress func(done, of int)   // sessions; may be nil
}

// Report is what is out of the ordinary in a population, with the totals that a
// sample is drawn from.
type Report struct {
	Totals Totals
	Items  []Item
	Listed uint64 // items before sampling
}

// Totals count a population in a period. Lists are in the fixed order of their
// codes, or sorted by them.
type Totals struct {
	Since       *string          `json:"since"`
	Until       *string          `json:"until"` // excluded
	Sessions    uint64           `json:"sessions"`
	Roots       uint64           `json:"roots"`
	Children    uint64           `json:"children"`
	Evidence    uint64           `json:"evidence"`
	Incomplete  uint64           `json:"incomplete"` // sessions that can't be read in full, or for which the check found something
	Unreadable  uint64           `json:"policy_unreadable"`
	Findings    uint64           `json:"findings"` // of the check of the store
	Delegations uint64           `json:"delegations"`
	Calls       uint64           `json:"calls"`
	Decided     uint64           `json:"decided"` // calls with a decision
	Results     uint64           `json:"results"`
	Decisions   uint64           `json:"decisions"`
	Allowed     uint64           `json:"allowed"`
	Denied      uint64           `json:"denied"`
	Needed      uint64           `json:"needed_approval"`
	Asks        uint64           `json:"asks"`
	Elsewhere   uint64           `json:"allowed_elsewhere"` // calls that a harness let pass by a question of its own, by its word
	Denials     []CodeCount      `json:"denials"`
	Exceptions  []ExceptionCount `json:"exceptions"` // all kinds, those without any too
	Usage       wire.Usage       `json:"usage"`      // of the sessions as a whole, whatever the period
	List        string           `json:"list"`
	Listed      uint64           `json:"listed"` // items of the list
	Shown       uint64           `json:"shown"`  // after sampling
	Sample      int              `json:"sample"` // 0: all are shown
	Seed        string           `json:"seed"`
}

// CodeCount is a number of denials with a code.
type CodeCount struct {
	Code  string `json:"code"`
	Count uint64 `json:"count"`
}

// ExceptionCount is how often an exception was found, and in how many sessions.
// Unrun is in how many it could not be looked for.
type ExceptionCount struct {
	Code     string `json:"code"`
	Count    uint64 `json:"count"`
	Sessions uint64 `json:"sessions"`
	Unrun    uint64 `json:"unrun"`
}

// Item is one line of a list. What does not apply is null; Seq is 0 for what
// stands at no event.
type Item struct {
	Kind    string  `json:"kind"` // what is listed, or the code of an exception
	Session string  `json:"session"`
	Label   string  `json:"label"`
	Seq     uint64  `json:"seq"`
	Until   uint64  `json:"until"` // a second seq that belongs to it; 0: none
	Time    *string `json:"time"`
	Parent  *string `json:"parent"`
	Call    *string `json:"call"`
	Tool    *string `json:"tool"`
	Verdict *string `json:"verdict"`
	Code    *string `json:"code"`
	Rule    *string `json:"rule"`
	Decider *string `json:"decider"`
	Detail  *string `json:"detail"`
}

// allPlaces is no bound: a report lists every place, or samples all of them.
const allPlaces = int(^uint(0) >> 1)

// Build makes the report. Every log of the population is read once, and the whole
// store once more for the check. Memory grows with the items that are listed;
// with a sample, with its size and the exceptions of one session.
//
// Errors: a canceled context, a damaged index.
func (q *Query) Build(ctx context.Context, s *eventlog.Store) (*Report, error) {
	if q.Within == nil {
		q.Within = func(time.Time) bool { return true }
	}
	check, err := s.Check(ctx, eventlog.CheckOptions{})
	if err != nil {
		return nil, err
	}
	t := tally{q: q, r: &Report{}, denials: map[string]uint64{}, kept: sampler{n: q.Sample, seed: q.Seed}, bad: map[uuid.UUID]bool{}}
	t.r.Totals = Totals{Denials: []CodeCount{}, List: q.List, Sample: q.Sample, Seed: q.Seed, Findings: uint64(len(check.Findings)) + check.More}
	for _, code := range Codes() {
		t.r.Totals.Exceptions = append(t.r.Totals.Exceptions, ExceptionCount{Code: code})
	}
	for _, f := range check.Findings {
		t.bad[f.Session] = true
	}
	t.doubt = check.More > 0 || t.bad[uuid.Nil]
	for i := range q.Sessions {
		if err := t.session(ctx, s, &q.Sessions[i]); err != nil {
			return nil, err
		}
		if q.Progress != nil {
			q.Progress(i+1, len(q.Sessions))
		}
	}
	for code, n := range t.denials {
		t.r.Totals.Denials = append(t.r.Totals.Denials, CodeCount{code, n})
	}
	slices.SortFunc(t.r.Totals.Denials, func(a, b CodeCount) int { return cmp.Compare(a.Code, b.Code) })
	t.r.Items = t.kept.list()
	t.r.Totals.Listed, t.r.Totals.Shown = t.kept.seen, uint64(len(t.r.Items))
	return t.r, nil
}

// tally is a report in the making.
type tally struct {
	q       *Query
	r       *Report
	denials map[string]uint64
	bad     map[uuid.UUID]bool // sessions of which the check found something
	doubt   bool               // it may have found something of any
	kept    sampler
}

func (t *tally) session(ctx context.Context, s *eventlog.Store, row *eventlog.Row) error {
	n := &t.r.Totals
	tell := func(it item) {
		if it.kind == t.q.List {
			t.kept.add(Item{Kind: it.kind, Session: row.Session.String(), Label: row.Label, Seq: it.seq, Time: timeText(it.time), Parent: wire.ID(row.Parent),
				Call: optional(it.call), Tool: optional(it.tool), Verdict: optional(it.verdict), Code: optional(it.code), Rule: optional(it.rule), Decider: optional(it.decider)})
		}
	}
	b, err := examine(ctx, s, row.Session, Options{Places: allPlaces, Moments: 2}, t.q.Within, tell)
	if err != nil {
		return err
	}
	born := time.Unix(0, row.FirstTime)
	n.Sessions++
	switch row.Kind {
	case eventlog.KindChild:
		n.Children++
		if t.q.Within(born) {
			n.Delegations++
			t.delegation(b, born)
		}
	default:
		n.Roots++
	}
	if row.Evidence {
		n.Evidence++
	}
	if b.policyErr != nil {
		n.Unreadable++
	}
	if t.doubt || t.bad[row.Session] || len(b.holes) > 0 || b.policyErr != nil {
		n.Incomplete++
	}
	c := &b.calls.cov
	n.Calls += c.Calls
	n.Decided += c.Decided
	n.Results += c.Results
	n.Decisions += c.Decisions
	n.Allowed += c.Allowed
	n.Denied += c.Denied
	n.Needed += c.Needed
	n.Asks += c.Asks
	n.Elsewhere += c.Elsewhere
	for code, d := range b.calls.denials {
		t.denials[code] += d.Count
	}
	u := usageOf(&row.Usage)
	n.Usage.Input += u.Input
	n.Usage.Output += u.Output
	n.Usage.CacheRead += u.CacheRead
	n.Usage.CacheWrite += u.CacheWrite
	n.Usage.CostMicros += u.CostMicros
	n.Usage.Records += u.Records
	if t.q.List == ListSessions {
		it := t.item(b, ListSessions)
		it.Time, it.Detail = timeText(born), optional(row.Kind+", "+row.Status(s.Boot()))
		t.kept.add(it)
	}
	t.exceptions(b)
	return nil
}

func (t *tally) item(b *builder, kind string) Item {
	return Item{Kind: kind, Session: b.row.Session.String(), Label: b.row.Label, Parent: wire.ID(b.row.Parent)}
}

func (t *tally) delegation(b *builder, born time.Time) {
	if t.q.List != ListDelegations {
		return
	}
	it := t.item(b, ListDelegations)
	it.Time, it.Seq = timeText(born), 1
	switch {
	case b.policyErr != nil:
		it.Detail = optional("the policy can't be read")
	case b.row.Evidence:
		it.Detail = optional("imported, with " + strings.Join(b.delegated(), ", "))
	default:
		it.Seq = b.policy.ReceiptSeq
		it.Detail = optional(string(b.policy.Choices.Role) + " with " + strings.Join(b.delegated(), ", ") + ", " + term(b.policy.Authority.Own.Profile.Limits.DeadlineMS, &b.row))
	}
	t.kept.add(it)
}

func (t *tally) exceptions(b *builder) {
	found, checks := b.x.list()
	for i, c := range checks {
		if !c.Run {
			t.r.Totals.Exceptions[i].Unrun++
		}
	}
	for _, x := range found {
		i := slices.Index(Codes(), x.Code)
		t.r.Totals.Exceptions[i].Count += x.Count
		t.r.Totals.Exceptions[i].Sessions++
		if t.q.List != ListExceptions {
			continue
		}
		for _, p := range x.Places {
			it := t.item(b, x.Code)
			it.Seq, it.Until, it.Time, it.Call, it.Tool, it.Detail = p.Seq, p.Until, p.Time, p.Call, p.Tool, optional(p.Detail)
			t.kept.add(it)
		}
	}
}

// sampler keeps n of the items that it is given, or all if n is 0. Which ones is
// decided by a hash over the seed and what names the item, so the same seed over
// the same items always picks the same, in whatever order they come, and nobody
// picks by hand. Picked are the n smallest hashes.
type sampler struct {
	n    int
	seed string
	seen uint64
	kept kept
}

type ranked struct {
	rank  [sha256.Size]byte
	order uint64
	item  Item
}

// kept is a heap with the greatest rank on top.
type kept []ranked

func (k kept) Len() int           { return len(k) }
func (k kept) Less(i, j int) bool { return bytes.Compare(k[i].rank[:], k[j].rank[:]) > 0 }
func (k kept) Swap(i, j int)      { k[i], k[j] = k[j], k[i] }
func (k *kept) Push(x any)        { *k = append(*k, x.(ranked)) }
func (k *kept) Pop() any {
	last := (*k)[len(*k)-1]
	*k = (*k)[:len(*k)-1]
	return last
}

func (s *sampler) add(it Item) {
	r := ranked{order: s.seen, item: it}
	s.seen++
	if s.n == 0 {
		s.kept = append(s.kept, r)
		return
	}
	r.rank = s.rank(&it)
	if heap.Push(&s.kept, r); len(s.kept) > s.n {
		heap.Pop(&s.kept)
	}
}

// rank hashes what names an item: it does not depend on labels, which may change
// or be erased.
func (s *sampler) rank(it *Item) [sha256.Size]byte {
	var b []byte
	for _, part := range []string{s.seed, it.Kind, it.Session, deref(it.Call), deref(it.Code), deref(it.Detail)} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	b = binary.BigEndian.AppendUint64(b, it.Seq)
	return sha256.Sum256(binary.BigEndian.AppendUint64(b, it.Until))
}

// list returns what was kept in the order in which it came.
func (s *sampler) list() []Item {
	slices.SortFunc(s.kept, func(a, b ranked) int { return cmp.Compare(a.order, b.order) })
	out := make([]Item, len(s.kept))
	for i := range s.kept {
		out[i] = s.kept[i].item
	}
	return out
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
