package torture_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/replay"
)

// record is what is known outside of the store: which operations of which
// script were acknowledged, and how. Of each script at most one more, the next,
// may have reached the disk.
type record struct {
	plot
	acked []int // by worker: how many operations
	acks  map[uuid.UUID][]at
}

func (p plot) record() *record {
	return &record{plot: p, acked: make([]int, p.Workers), acks: map[uuid.UUID][]at{}}
}

// note takes a line of a writer.
func (r *record) note(text string) error {
	var a ack
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return fmt.Errorf("the writer says %q", text)
	}
	if a.G >= r.Workers || a.N != r.acked[a.G] {
		return fmt.Errorf("worker %d acknowledges operation %d after %d", a.G, a.N, r.acked[a.G])
	}
	r.add(a)
	return nil
}

func (r *record) add(a ack) {
	r.acked[a.G]++
	for _, at := range a.At {
		if list := r.acks[at.Session]; len(list) == 0 || list[len(list)-1] != at {
			r.acks[at.Session] = append(list, at)
		}
	}
}

// clone is an independent copy.
func (r *record) clone() *record {
	c := &record{plot: r.plot, acked: slices.Clone(r.acked), acks: map[uuid.UUID][]at{}}
	for id, list := range r.acks {
		c.acks[id] = slices.Clone(list)
	}
	return c
}

// pending is what a store holds of the operations that nobody acknowledged.
type pending struct {
	*script // up to the operation
	op      *op
	there   bool
}

// compare holds a store against the record and returns the operation of each
// worker that may have been in flight. Everything acknowledged has to be there,
// unchanged; of what is beyond that, whole units only; and nothing else.
func (r *record) compare(s *eventlog.Store) ([]pending, error) {
	sessions := map[uuid.UUID]bool{}
	out := make([]pending, r.Workers)
	before, after := make([]*script, r.Workers), make([]*script, r.Workers)
	for g := range r.Workers {
		before[g], after[g] = r.script(g), r.script(g)
		for range r.acked[g] {
			before[g].next()
			after[g].next()
		}
		out[g].script, out[g].op = after[g], after[g].next()
		for _, m := range after[g].members {
			sessions[m.id] = true
		}
	}
	for i := range r.Shared {
		sessions[r.sharedID(i)] = true
	}
	logs := map[uuid.UUID]*log{}
	err := s.EachRow(ctx, func(row *eventlog.Row) (bool, error) {
		if !sessions[row.Session] {
			return false, fmt.Errorf("%w: session %s is nobody's", errPartial, row.Session)
		}
		l, err := r.read(s, row)
		logs[row.Session] = l
		return true, err
	})
	if err != nil {
		return nil, err
	}
	for id, acks := range r.acks {
		if logs[id] == nil {
			return nil, fmt.Errorf("%w: session %s", errLost, id)
		}
		for _, a := range acks {
			if got := logs[id].hashes[a.Seq]; got != a.Hash {
				return nil, fmt.Errorf("%w: session %s seq %d: hash %s, acknowledged was %s", errLost, id, a.Seq, got, a.Hash)
			}
			tally.acked.Add(1)
		}
	}
	for g := range r.Workers {
		if err := r.said(logs, g, &out[g]); err != nil {
			return nil, err
		}
		is, err := tree(s, logs, after[g])
		if err != nil {
			return nil, err
		}
		was, will := before[g].state(), after[g].state()
		if is != was && is != will {
			return nil, fmt.Errorf("%w: worker %d after %d operations: the store says\n%s\nbut it is\n%s\nor, with what was in flight,\n%s", errPolicy, g, r.acked[g], is, was, will)
		}
		if o := out[g].op; o.kind != say {
			out[g].there = is == will && was != will
			if o.kind == delegate && (logs[o.child.id] != nil) != out[g].there {
				return nil, fmt.Errorf("%w: child %s", errPartial, o.child.id)
			}
		}
	}
	return out, nil
}

// said checks a worker's appends: each acknowledged one is in its session's
// log, whole, and of others only the one in flight.
func (r *record) said(logs map[uuid.UUID]*log, g int, p *pending) error {
	s := r.script(g)
	for n := range r.acked[g] + 1 {
		o := s.next()
		if o.kind != say {
			continue
		}
		l := logs[o.session]
		if l == nil {
			if n < r.acked[g] {
				return fmt.Errorf("%w: session %s", errLost, o.session)
			}
			continue
		}
		_, there := l.first[unit{g, n}]
		if n < r.acked[g] && !there {
			return fmt.Errorf("%w: worker %d, operation %d, in session %s", errLost, g, n, o.session)
		}
		if n == r.acked[g] {
			p.there = there
		}
	}
	for _, l := range logs {
		for u := range l.first {
			if u.g == g && u.n > r.acked[g] {
				return fmt.Errorf("operation %d of worker %d is there, %d was never acknowledged", u.n, g, r.acked[g])
			}
		}
	}
	return nil
}

type unit struct{ g, n int }

// log is what a session's log says.
type log struct {
	head   uint64
	hashes map[uint64]string
	first  map[unit]uint64 // first seq of each operation's events
	counts map[string]int  // events of closed families
	starts []uuid.UUID     // children that were started
}

// read reads a session's whole log. It checks that there is no gap, that each
// operation's events are all there, in a row, and that each content is what
// the script says.
func (r *record) read(s *eventlog.Store, row *eventlog.Row) (*log, error) {
	l := &log{hashes: map[uint64]string{}, first: map[unit]uint64{}, counts: map[string]int{}}
	var open *op
	var i int
	scripts := map[int]*script{}
	take := func(g, n int) *op { // operations of one worker are in the order of its script
		sc := scripts[g]
		if sc == nil || sc.n > n {
			sc = r.script(g)
			scripts[g] = sc
		}
		var o *op
		for sc.n <= n {
			o = sc.next()
		}
		return o
	}
	err := s.Replay(ctx, row.Session, true, func(ev *eventlog.Event) error {
		l.head++
		if ev.Seq != l.head {
			return fmt.Errorf("%w: session %s: seq %d after %d", errLost, row.Session, ev.Seq, l.head-1)
		}
		l.hashes[ev.Seq] = fmt.Sprintf("%x", ev.Hash)
		if ev.ContentErr != nil {
			return fmt.Errorf("%w: session %s seq %d: %v", errLost, row.Session, ev.Seq, ev.ContentErr)
		}
		if eventlog.IsClosed(ev.Type) {
			l.counts[ev.Type]++
			if ev.Type == eventlog.TypeDelegationStarted {
				l.starts = append(l.starts, ev.Facts.UUID("child"))
			}
			if open != nil {
				return fmt.Errorf("%w: session %s seq %d is inside of another unit", errPartial, row.Session, ev.Seq)
			}
			return nil
		}
		g, n, part := ownerOf(ev.ID)
		if open == nil {
			if g >= r.Workers || n > r.acked[g] {
				return fmt.Errorf("session %s seq %d: event %s was never sent", row.Session, ev.Seq, ev.ID)
			}
			u := unit{g, n}
			if _, again := l.first[u]; again {
				return fmt.Errorf("session %s seq %d: operation %d of worker %d is there twice", row.Session, ev.Seq, n, g)
			}
			open, i, l.first[u] = take(g, n), 0, ev.Seq
		}
		if g != open.g || n != open.n || part != i || row.Session != open.session {
			return fmt.Errorf("%w: session %s seq %d: part %d of operation %d of worker %d, not part %d of %d of %d", errPartial, row.Session, ev.Seq, part, n, g, i, open.n, open.g)
		}
		if same, err := r.same(ev, open, i); err != nil || !same {
			return fmt.Errorf("%w: session %s seq %d has another content", errLost, row.Session, ev.Seq)
		}
		if i++; i == len(open.sizes) {
			open = nil
		}
		return nil
	})
	if err != nil {
		return l, err
	}
	if open != nil {
		return l, fmt.Errorf("%w: session %s ends in part %d of %d", errPartial, row.Session, i, len(open.sizes))
	}
	if l.head != row.Head {
		return l, fmt.Errorf("%w: session %s: the row says head %d, the log has %d", errLost, row.Session, row.Head, l.head)
	}
	return l, nil
}

// same reports whether an event holds what its operation put into it.
func (p plot) same(ev *eventlog.Event, o *op, i int) (bool, error) {
	if o.sizes[i] >= 0 {
		return bytes.Equal(ev.Content, p.content(o.g, o.n, i, o.sizes[i])), nil
	}
	facts, err := wide(i)
	return bytes.Equal(ev.Facts, facts), err
}

// tree is what the store says of a worker's tree, in the model's words.
func tree(s *eventlog.Store, logs map[uuid.UUID]*log, model *script) (string, error) {
	var lines []string
	for i, m := range model.members {
		l := logs[m.id]
		if l == nil && i == len(model.members)-1 {
			continue
		}
		if l == nil {
			return "", fmt.Errorf("%w: session %s", errLost, m.id)
		}
		e, err := replay.Policy(ctx, s, m.id, 0)
		if err != nil {
			return "", fmt.Errorf("policy of %s: %w", m.id, err)
		}
		text, err := stated(&e, l.counts)
		if err != nil {
			return "", err
		}
		lines = append(lines, text)
		children, err := s.Children(m.id)
		if err != nil {
			return "", err
		}
		slices.SortFunc(l.starts, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
		if !slices.Equal(children, l.starts) {
			return "", fmt.Errorf("%w: session %s started %v, its children are %v", errPartial, m.id, l.starts, children)
		}
		for _, c := range children {
			if logs[c] == nil {
				return "", fmt.Errorf("%w: session %s started %s, which is not there", errPartial, m.id, c)
			}
		}
	}
	return strings.Join(lines, "\n"), nil
}

// maxLag is the cap of what an open may have to fold beside the index: that of
// the back-pressure and a group beyond it, frames.
const maxLag = 32<<10 + 4096

// settle looks at a store that a writer left: as it is, opened for reading,
// and then by repeating each operation that may have been in flight, whose
// answer has to say what the log said. Afterwards nothing is in doubt any more.
func (r *record) settle(dir string, o eventlog.Options) error {
	read := o
	read.ReadOnly = true
	s, err := eventlog.Open(ctx, dir, read)
	if err != nil {
		return fmt.Errorf("open to read: %w", err)
	}
	inFlight, err := r.compare(s)
	if err == nil {
		err = clean(s)
	}
	if st, statsErr := s.Stats(); err == nil && (statsErr != nil || st.Lag > maxLag) {
		err = fmt.Errorf("the index is %d frames behind at open (%v)", st.Lag, statsErr)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	if s, err = eventlog.Open(ctx, dir, o); err != nil {
		return fmt.Errorf("open to write: %w", err)
	}
	defer s.Close()
	for _, p := range inFlight {
		a, err := p.repeat(s, p.op)
		if err != nil {
			return fmt.Errorf("worker %d repeats operation %d: %w", p.op.g, p.op.n, err)
		}
		if a.Found != p.there && p.op.kind != narrow {
			return fmt.Errorf("worker %d repeats operation %d: it was there: %t, the answer says %t", p.op.g, p.op.n, p.there, a.Found)
		}
		r.add(a)
	}
	after, err := r.compare(s)
	if err != nil {
		return fmt.Errorf("after the repetition: %w", err)
	}
	for _, p := range after {
		if p.there {
			return fmt.Errorf("worker %d: operation %d is there before it was sent", p.op.g, p.op.n)
		}
	}
	return s.Close()
}
