package eventlog

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"childlog/policy"
)

// The model is a store as one would write it without a disk: maps and slices.
// Random operations run against both. The properties:
//
//  1. every answer of the store is the model's, errors included;
//  2. after any number of flushes, restarts and lost indexes the store holds
//     exactly what the model holds;
//  3. the store ends sound (the check that every test store ends in).

type modelEvent struct {
	id      uuid.UUID
	typ     string
	content string
	policy  bool
}

type modelSession struct {
	parent   uuid.UUID
	events   []modelEvent
	epoch    uint64
	open     bool
	closed   bool
	children map[uuid.UUID]bool
}

func (m *modelSession) head() uint64 { return uint64(len(m.events)) }

type model struct {
	ts       *testStore
	sessions map[uuid.UUID]*modelSession
	keys     map[string]uuid.UUID // parent and key
	order    []uuid.UUID
	ids      int
}

func (m *model) pick(t *rapid.T) uuid.UUID {
	return m.order[rapid.IntRange(0, len(m.order)-1).Draw(t, "session")]
}

func (m *model) newSession(parent uuid.UUID, events ...modelEvent) uuid.UUID {
	id := sid(len(m.order))
	m.order = append(m.order, id)
	m.sessions[id] = &modelSession{parent: parent, events: events, children: map[uuid.UUID]bool{}}
	if parent != uuid.Nil {
		m.sessions[parent].children[id] = true
	}
	return id
}

func (m *model) createRoot(*rapid.T) {
	if len(m.order) > 20 {
		return
	}
	id := m.newSession(uuid.Nil, modelEvent{typ: TypeSessionCreated, content: `{"label":"root"}`, policy: true})
	m.ts.root(id)
	_, err := m.ts.transact(EntryCreate, Batch{Session: id, Events: rootEvents(id, "again")})
	require.ErrorIs(m.ts.t, err, ErrExists)
}

func (m *model) delegate(t *rapid.T) {
	parent, key := m.pick(t), fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "key"))
	p := m.sessions[parent]
	made, taken := m.keys[parent.String()+key]
	found, err := m.ts.ByKey(parent, key)
	if taken {
		require.NoError(t, err)
		require.Equal(t, made, found)
		return
	}
	require.ErrorIs(t, err, ErrNotFound)
	id := sid(len(m.order))
	_, err = m.ts.transact(EntryDelegation, m.ts.delegation(parent, id, key)...)
	if p.closed {
		require.ErrorIs(t, err, ErrSessionClosed)
		return
	}
	require.NoError(t, err)
	m.newSession(parent, modelEvent{typ: TypeSessionCreated, policy: true}, modelEvent{typ: TypeDelegationGranted, policy: true},
		modelEvent{typ: TypeSandboxMode, policy: true}, modelEvent{typ: TypeApprovalPolicy, policy: true})
	p.events = append(p.events, modelEvent{typ: TypeDelegationStarted})
	m.keys[parent.String()+key] = id
}

// appendTo appends one to three events, with or without ids, at the right
// place, at a wrong one or at any.
func (m *model) appendTo(t *rapid.T) {
	id := m.pick(t)
	s := m.sessions[id]
	var events []modelEvent
	for range rapid.IntRange(1, 3).Draw(t, "events") {
		ev := modelEvent{typ: TypeAssistantMessage, content: rapid.StringN(0, 8, 30).Draw(t, "content")}
		if rapid.Bool().Draw(t, "with id") {
			m.ids++
			ev.id = eid(m.ids)
		}
		events = append(events, ev)
	}
	at := s.head() + uint64(rapid.SampledFrom([]int{0, 0, 0, 0, 1, -1}).Draw(t, "off by"))
	any := rapid.Bool().Draw(t, "any")
	epoch := rapid.SampledFrom([]uint64{0, s.epoch, s.epoch, s.epoch + 1}).Draw(t, "epoch")
	res, err := m.append(id, at, any, epoch, events)
	switch {
	case s.closed:
		require.ErrorIs(t, err, ErrSessionClosed)
	case epoch != 0 && (!s.open || epoch != s.epoch), s.open && epoch == 0:
		require.ErrorIs(t, err, ErrFenced)
	case !any && at != s.head():
		require.Equal(t, &ConflictError{Session: id, Expected: at, Actual: s.head()}, err)
	default:
		require.NoError(t, err)
		require.Equal(t, s.head()+1, res.FirstSeq)
		s.events = append(s.events, events...)
		require.Equal(t, s.head(), res.LastSeq)
		require.False(t, res.Replayed)
	}
}

func (m *model) append(id uuid.UUID, at uint64, any bool, epoch uint64, events []modelEvent) (Result, error) {
	b := Batch{Session: id, Expect: At(at), Epoch: epoch}
	if any {
		b.Expect = Any()
	}
	for _, ev := range events {
		b.Events = append(b.Events, named(ev.id, ev.content))
	}
	return m.ts.Append(ctx, b)
}

// retry repeats stored events with ids, unchanged or changed.
func (m *model) retry(t *rapid.T) {
	id := m.pick(t)
	s := m.sessions[id]
	from := rapid.IntRange(0, len(s.events)-1).Draw(t, "from")
	events := append([]modelEvent(nil), s.events[from:min(len(s.events), from+rapid.IntRange(1, 3).Draw(t, "events"))]...)
	for i := range events {
		if events[i].id == uuid.Nil {
			return // a retry repeats ids
		}
	}
	change := rapid.Bool().Draw(t, "change")
	if change {
		events[len(events)-1].content += "!"
	}
	any := rapid.Bool().Draw(t, "any")
	res, err := m.append(id, uint64(from), any, rapid.SampledFrom([]uint64{0, 1, 99}).Draw(t, "epoch"), events)
	if change {
		require.ErrorIs(t, err, ErrDuplicate)
		return
	}
	require.NoError(t, err)
	require.True(t, res.Replayed)
	require.Equal(t, [2]uint64{uint64(from) + 1, uint64(from + len(events))}, [2]uint64{res.FirstSeq, res.LastSeq})
}

func (m *model) narrow(t *rapid.T) {
	id := m.pick(t)
	s := m.sessions[id]
	_, err := m.ts.transact(EntryOperator, Batch{Session: id, Expect: At(s.head()), Events: []NewEvent{{Type: TypePolicyNarrowed, Facts: NarrowedFacts(policy.Top(), "operator")}}})
	if s.closed {
		require.ErrorIs(t, err, ErrSessionClosed)
		return
	}
	require.NoError(t, err)
	s.events = append(s.events, modelEvent{typ: TypePolicyNarrowed, policy: true})
}

func (m *model) activate(t *rapid.T) {
	id := m.pick(t)
	s := m.sessions[id]
	if s.closed {
		return
	}
	m.ts.activate(id, s.epoch+1)
	s.epoch, s.open = s.epoch+1, true
	s.events = append(s.events, modelEvent{typ: TypeActivationStarted})
}

func (m *model) end(t *rapid.T) {
	id := m.pick(t)
	s := m.sessions[id]
	if s.closed || !s.open {
		return
	}
	ended := NewEvent{Type: TypeActivationEnded, Facts: mustFacts(map[string]any{"epoch": s.epoch, "reason": "done"})}
	_, err := m.ts.transact(EntryRuntime, Batch{Session: id, Expect: Any(), Epoch: s.epoch, Events: []NewEvent{ended}})
	require.NoError(t, err)
	s.open = false
	s.events = append(s.events, modelEvent{typ: TypeActivationEnded})
}

func (m *model) closeSession(t *rapid.T) {
	if id := m.pick(t); rapid.IntRange(0, 4).Draw(t, "close") == 0 && !m.sessions[id].closed {
		_, err := m.ts.transact(EntryOperator, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: TypeSessionClosed, Facts: mustFacts(map[string]any{"by": "operator"})}}})
		require.NoError(t, err)
		m.sessions[id].closed = true
		m.sessions[id].events = append(m.sessions[id].events, modelEvent{typ: TypeSessionClosed})
	}
}

func (m *model) restart(t *rapid.T) {
	switch rapid.IntRange(0, 3).Draw(t, "restart") {
	case 0:
		m.ts.flushIndex()
	case 1:
		m.ts.reopen()
	case 2:
		m.ts.dropIndex()
		m.ts.open()
	case 3:
		m.ts.reopen(Options{ReadOnly: true})
		m.compare(t)
		m.ts.reopen()
	}
}

// compare holds the whole store against the whole model.
func (m *model) compare(t *rapid.T) {
	seen := 0
	require.NoError(t, m.ts.EachRow(ctx, func(r *Row) (bool, error) {
		s := m.sessions[r.Session]
		require.NotNil(t, s, "row of %s", r.Session)
		require.Equal(t, m.order[seen], r.Session, "rows come in id order")
		seen++
		require.Equal(t, s.head(), r.Head)
		require.Equal(t, s.parent, r.Parent)
		require.Equal(t, [2]any{s.epoch, s.open}, [2]any{r.Epoch, r.Open})
		require.Equal(t, s.closed, r.ClosedSeq != 0)
		return true, nil
	}))
	require.Equal(t, len(m.order), seen)
	for id, s := range m.sessions {
		hash, i := Genesis(id), 0
		require.NoError(t, m.ts.Replay(ctx, id, true, func(ev *Event) error {
			want := s.events[i]
			i++
			if ev.Seq != uint64(i) || ev.Type != want.typ || string(ev.Content) != want.content || want.id != uuid.Nil && ev.ID != want.id || ev.prev != hash {
				return fmt.Errorf("event %d is %+v, want %+v", i, ev, want)
			}
			hash = ev.Hash
			return ev.ContentErr
		}))
		require.Len(t, s.events, i)
		var want []uint64
		for i, ev := range s.events {
			if ev.policy {
				want = append(want, uint64(i+1))
			}
		}
		events, row, err := m.ts.Policy(ctx, id, 0)
		require.NoError(t, err)
		require.Equal(t, want, seqsOf(events))
		require.Equal(t, hash, row.Hash)
		children, err := m.ts.Children(id)
		require.NoError(t, err)
		require.Equal(t, sortedIDs(s.children), children)
	}
}

// checkRapid runs a property n times, a third of that with -short.
func checkRapid(t *testing.T, n int, property func(*rapid.T)) {
	checks := flag.Lookup("rapid.checks")
	defer func(was string) { _ = checks.Value.Set(was) }(checks.Value.String())
	if testing.Short() {
		n = n/3 + 1
	}
	require.NoError(t, checks.Value.Set(strconv.Itoa(n)))
	rapid.Check(t, property)
}

func TestStoreAgainstModel(t *testing.T) {
	parent := t.TempDir()
	checkRapid(t, 15, func(t *rapid.T) {
		dir, err := os.MkdirTemp(parent, "")
		require.NoError(t, err)
		m := &model{ts: newStoreAt(t, dir), sessions: map[uuid.UUID]*modelSession{}, keys: map[string]uuid.UUID{}}
		m.createRoot(t)
		t.Repeat(map[string]func(*rapid.T){
			"root": m.createRoot, "delegate": m.delegate, "append": m.appendTo, "append again": m.appendTo, "retry": m.retry,
			"narrow": m.narrow, "activate": m.activate, "end": m.end, "close": m.closeSession, "restart": m.restart,
			"not found": func(t *rapid.T) {
				_, err := m.append(uuid.New(), 0, true, 0, []modelEvent{{}})
				require.True(t, errors.Is(err, ErrNotFound), "%v", err)
			},
		})
		m.compare(t)
	})
}
