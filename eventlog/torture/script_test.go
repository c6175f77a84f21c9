package torture_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// plot says what is written to a store: by how many goroutines, each with a
// tree of sessions that it alone writes, and into how many sessions that all of
// them write. Everything follows from the seed, so what was written can be told
// without having seen it.
type plot struct {
	Seed    uint32
	Workers int
	Shared  int
	Small   bool // no unit larger than some pages
}

func (p plot) sharedID(i int) uuid.UUID { return p.session(255, i) }

func (p plot) session(g, n int) uuid.UUID {
	id := uuid.UUID{5: 0x5e, 6: 0x80, 8: 0x80}
	binary.BigEndian.PutUint32(id[0:], p.Seed*2654435761) // ids of one store share no prefix by which they would sort
	id[4] = byte(g)
	binary.BigEndian.PutUint32(id[10:], uint32(n))
	return id
}

// eventID carries whose operation an event belongs to and which part it is.
func (p plot) eventID(g, n, i int) uuid.UUID {
	id := uuid.UUID{5: 0xe7, 6: 0x80, 8: 0x80}
	binary.BigEndian.PutUint32(id[0:], p.Seed)
	id[4] = byte(g)
	binary.BigEndian.PutUint32(id[10:], uint32(n))
	binary.BigEndian.PutUint16(id[14:], uint16(i))
	return id
}

func ownerOf(id uuid.UUID) (g, n, i int) {
	return int(id[4]), int(binary.BigEndian.Uint32(id[10:])), int(binary.BigEndian.Uint16(id[14:]))
}

// set makes the sessions that every script starts from.
func (p plot) set(s *eventlog.Store) error {
	for g := range p.Workers {
		r := materialize.RootRequest{ID: p.session(g, 0), Workspace: workspace, MaxDepth: 4, Default: &policy.Setting{Mode: policy.WorkspaceWrite}}
		if g%2 == 0 {
			r.Sandbox = anything.setting()
		}
		if _, err := materialize.Root(ctx, s, r); err != nil {
			return err
		}
	}
	for i := range p.Shared {
		if _, err := materialize.Root(ctx, s, materialize.RootRequest{ID: p.sharedID(i)}); err != nil {
			return err
		}
	}
	return nil
}

type kind int

const (
	say      kind = iota // events of a session
	delegate             // a child: its log and its parent's, in one unit
	narrow               // a session, or all of its subtree in one unit
	change               // a root's own sandbox
)

// op is one operation of a script: one atomic unit.
type op struct {
	g, n    int
	kind    kind
	session uuid.UUID
	target  int     // of the script's members; -1: a shared session
	sizes   []int   // of the contents; -1: large facts instead
	child   *member // of a delegation
	preset  int
	ceiling *sandbox
	deny    string
	subtree bool
	value   sandbox
	refused bool // a switch beyond the bound
}

// script is the endless sequence of operations of one goroutine, and the model
// of its tree after those that were taken.
type script struct {
	plot
	g, n    int
	members []*member
}

func (p plot) script(g int) *script {
	return &script{plot: p, g: g, members: []*member{newRoot(p.session(g, 0), g%2 == 0)}}
}

// maxMembers keeps trees small enough to be looked at after each round.
const maxMembers = 24

// next takes the next operation and applies it to the model.
func (s *script) next() *op {
	r := rand.New(rand.NewPCG(uint64(s.Seed), uint64(s.g)<<32|uint64(s.n)))
	o := &op{g: s.g, n: s.n, target: r.IntN(len(s.members))}
	s.n++
	m := s.members[o.target]
	o.session = m.id
	values := []sandbox{{0, false}, {0, true}, {1, false}, {1, true}, {2, true}}
	switch at := r.IntN(100); {
	case at < 55:
		o.sizes = []int{r.IntN(400)}
	case at < 75:
		for range 2 + r.IntN(8) {
			o.sizes = append(o.sizes, r.IntN(3000))
		}
	case at < 79 && !s.Small: // more headers than a frame holds
		for range 18 {
			o.sizes = append(o.sizes, -1)
		}
	case at < 82 && !s.Small:
		o.sizes = []int{100_000 + r.IntN(500_000), 5}
	case at < 82:
		o.sizes = []int{5, 9_000 + r.IntN(30_000)}
	case at < 90 && len(s.members) < maxMembers && m.depth < 4:
		o.kind, o.preset = delegate, r.IntN(len(presets))
		o.child = m.delegate(s.session(s.g, len(s.members)), o.target, o.preset)
		s.members = append(s.members, o.child)
		o.child = o.child.clone()
	case at < 97:
		o.kind, o.subtree = narrow, r.IntN(2) == 0
		if what := r.IntN(3); what != 0 {
			o.ceiling = &values[r.IntN(len(values))]
		}
		if o.ceiling == nil || r.IntN(3) == 0 {
			o.deny = fmt.Sprintf("tool_%d", r.IntN(12))
		}
		for i, other := range s.members {
			if i == o.target || o.subtree && s.below(i, o.target) {
				other.narrow(o.ceiling, o.deny)
			}
		}
	default:
		o.kind, o.target, o.value = change, 0, values[r.IntN(len(values))]
		o.session = s.members[0].id
		o.refused = s.members[0].set(o.value)
	}
	if o.kind == say && s.Shared > 0 && r.IntN(3) == 0 {
		o.target, o.session = -1, s.sharedID(r.IntN(s.Shared))
	}
	return o
}

func (s *script) below(i, top int) bool {
	for ; i >= 0; i = s.members[i].parent {
		if i == top {
			return true
		}
	}
	return false
}

// state is the model's tree in words, a line a session.
func (s *script) state() string {
	var lines []string
	for _, m := range s.members {
		lines = append(lines, m.describe())
	}
	return strings.Join(lines, "\n")
}

// wide makes facts so large that a frame holds few of them.
func wide(part int) (eventlog.Facts, error) {
	return eventlog.MakeFacts(map[string]any{"part": part, "pad": slices.Repeat([]string{strings.Repeat("x", 250)}, 235)})
}

// content is what an event of an operation holds, half of the time text that
// can be compressed.
func (p plot) content(g, n, i, size int) []byte {
	if size%2 == 0 {
		line := fmt.Sprintf("goroutine %d, operation %d, part %d. ", g, n, i)
		return []byte(strings.Repeat(line, size/len(line)+1)[:size])
	}
	var seed [32]byte
	id := p.eventID(g, n, i)
	copy(seed[:], id[:])
	out := make([]byte, size)
	_, _ = rand.NewChaCha8(seed).Read(out)
	return out
}

// events are those of an operation that says something.
func (o *op) events(p plot) ([]eventlog.NewEvent, error) {
	events := make([]eventlog.NewEvent, len(o.sizes))
	for i, size := range o.sizes {
		ev := &events[i]
		ev.ID, ev.Type = p.eventID(o.g, o.n, i), "plugin/note"
		if size >= 0 {
			ev.Media, ev.Content = eventlog.MediaOctets, p.content(o.g, o.n, i, size)
			continue
		}
		var err error
		if ev.Facts, err = wide(i); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// at is where a session stood after an operation, in the writer's eyes.
type at struct {
	Session uuid.UUID
	Seq     uint64
	Hash    string
}

// ack is what a writer says once an operation was acknowledged.
type ack struct {
	G, N  int
	Found bool // the store says that it was there already
	At    []at
}

// do runs an operation. before is the head that the session has without it, for
// a session that nobody else writes.
func (o *op) do(s *eventlog.Store, p plot, before uint64) (ack, error) {
	a := ack{G: o.g, N: o.n}
	where := func(ids ...uuid.UUID) (ack, error) {
		for _, id := range ids {
			row, err := s.Row(id)
			if err != nil {
				return a, err
			}
			a.At = append(a.At, at{id, row.Head, fmt.Sprintf("%x", row.Hash)})
		}
		return a, nil
	}
	switch o.kind {
	case delegate:
		made, err := materialize.Delegate(ctx, s, o.session, snapshot.Options{}, materialize.Request{ID: o.child.id, Key: fmt.Sprint(o.n),
			Label: "child", Want: policy.Request{Role: presets[o.preset].role}})
		if err != nil {
			return a, err
		}
		a.Found = made.Existing
		return where(o.session, made.ID)
	case narrow:
		n := replay.Narrowing{Session: o.session, Subtree: o.subtree, Reason: "a test"}
		if o.ceiling != nil {
			n.Sandbox = o.ceiling.setting()
		}
		if o.deny != "" {
			n.Authority = &policy.Wish{DeniedTools: []string{o.deny}}
		}
		if _, err := replay.Narrow(ctx, s, n); err != nil {
			return a, err
		}
		return where(o.session)
	case change:
		_, _, err := replay.Switch(ctx, s, o.session, replay.Change{Sandbox: o.value.setting()})
		if errors.Is(err, eventlog.ErrWidening) == o.refused && (err == nil || o.refused) {
			return where(o.session)
		}
		if err == nil {
			err = fmt.Errorf("%w: %+v should have refused a switch to %+v", errPolicy, o.session, o.value)
		}
		return a, err
	}
	events, err := o.events(p)
	if err != nil {
		return a, err
	}
	expect := eventlog.Any()
	if o.target >= 0 {
		expect = eventlog.At(before)
	}
	res, err := s.Append(ctx, eventlog.Batch{Session: o.session, Expect: expect, Events: events})
	if err != nil {
		return a, err
	}
	a.Found = res.Replayed
	a.At = []at{{o.session, res.LastSeq, fmt.Sprintf("%x", res.Hash)}}
	return a, nil
}
