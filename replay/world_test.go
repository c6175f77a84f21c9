package replay_test

import (
	"fmt"
	"reflect"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// world runs random operations against a store and the model at once.
type world struct {
	*fixture
	t        *rapid.T
	sessions []*msession
	captures []capture
	keyed    map[key]keyed
	turn     int
}

// key is an idempotency key of a parent; keyed is what was asked under it
// first, and what came of it.
type key struct {
	parent uuid.UUID
	key    string
}

type keyed struct {
	request materialize.Request
	child   uuid.UUID
}

// capture is one taken and not yet spent, with what the model says of it.
type capture struct {
	c       *snapshot.Capture
	parent  *msession
	seq     uint64
	def     bits
	sandbox bits
	has     bool
}

func genSetting() *rapid.Generator[policy.Setting] {
	return rapid.Custom(func(t *rapid.T) policy.Setting {
		s := policy.Setting{Mode: rapid.SampledFrom([]policy.Mode{policy.ReadOnly, policy.WorkspaceWrite, policy.WorkspaceWrite, policy.DangerFullAccess}).Draw(t, "mode")}
		if s.Mode == policy.DangerFullAccess {
			return s
		}
		if network := rapid.IntRange(0, 2).Draw(t, "network"); network > 0 {
			s.Network = ptr(network == 2)
		}
		if s.Mode == policy.WorkspaceWrite {
			s.WritableRoots = rapid.SliceOfN(rapid.SampledFrom(modelDirs), 0, 3).Draw(t, "roots")
			s.ExcludeTmpdirEnvVar, s.ExcludeSlashTmp = rapid.Bool().Draw(t, "no $TMPDIR"), rapid.Bool().Draw(t, "no /tmp")
		}
		return s
	})
}

func (w *world) pick() *msession { return rapid.SampledFrom(w.sessions).Draw(w.t, "session") }

func (w *world) root() {
	r := materialize.RootRequest{Workspace: rapid.SampledFrom([]string{"", "/w", "/x"}).Draw(w.t, "workspace"),
		Approvals: rapid.SampledFrom([]policy.Approval{"", policy.Ask, policy.Never}).Draw(w.t, "approvals"),
		Ask:       rapid.SampledFrom([]policy.Approval{"", policy.Ask, policy.Never}).Draw(w.t, "default approvals"),
		MaxDepth:  rapid.IntRange(1, 4).Draw(w.t, "max depth")}
	m := &msession{maxDepth: r.MaxDepth, workspace: r.Workspace, born: 1, states: map[uint64]state{}, narrowings: map[uint64]bits{}, bound: allBits, asks: r.Ask != policy.Never}
	if rapid.Bool().Draw(w.t, "has default") {
		r.Default = ptr(genSetting().Draw(w.t, "default"))
		m.def = stated(*r.Default, r.Workspace)
	}
	m.own = m.def
	m.moved(1)
	head := uint64(1)
	if rapid.Bool().Draw(w.t, "has override") {
		r.Sandbox = ptr(genSetting().Draw(w.t, "override"))
		m.own, m.explicit = stated(*r.Sandbox, r.Workspace), true
		head++
		m.moved(head)
	}
	if r.Approvals != "" {
		m.asks = r.Approvals == policy.Ask
		head++
		m.moved(head)
	}
	made, err := materialize.Root(w.ctx, w.Store, r)
	require.NoError(w.t, err)
	m.id = made.ID
	require.Equal(w.t, head, made.Seq)
	w.sessions = append(w.sessions, m)
}

func (w *world) take(parent *msession) (capture, bool) {
	var o snapshot.Options
	def := parent.def
	if rapid.Bool().Draw(w.t, "has present default") {
		s := genSetting().Draw(w.t, "present")
		v, err := s.Resolve(parent.workspace)
		require.NoError(w.t, err)
		o.Present = &policy.Defaults{Sandbox: v, Approvals: policy.Ask}
		def &= stated(s, parent.workspace)
	}
	c, err := snapshot.Take(w.ctx, w.Store, parent.id, o)
	if parent.closed {
		require.ErrorIs(w.t, err, eventlog.ErrSessionClosed)
		return capture{}, false
	}
	require.NoError(w.t, err)
	out := capture{c: c, parent: parent, seq: parent.head, def: def}
	out.sandbox, out.has = parent.captured(def)
	require.Equal(w.t, out.has, c.Sandbox() != nil)
	if out.has {
		require.Equal(w.t, out.sandbox, permitted(*c.Sandbox()))
	}
	require.Equal(w.t, def, permitted(c.Defaults().Sandbox))
	return out, true
}

func (w *world) spend(c capture) {
	r := materialize.Request{Workspace: rapid.SampledFrom([]string{"", "/wx"}).Draw(w.t, "child workspace"),
		Mode: rapid.SampledFrom([]string{eventlog.ModeContinuable, eventlog.ModeContinuable, eventlog.ModeOneShot}).Draw(w.t, "child mode")}
	if rapid.Bool().Draw(w.t, "forked") {
		r.Fork = c.seq
	}
	r.Key = rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(w.t, "key")
	p := c.parent
	made, err := materialize.Child(w.ctx, w.Store, c.c, r)
	first, known := w.keyed[key{p.id, r.Key}]
	switch {
	case known && !reflect.DeepEqual(first.request, r): // before anything else that could be wrong
		require.ErrorIs(w.t, err, eventlog.ErrConflict)
		return
	case known:
		require.NoError(w.t, err)
		require.True(w.t, made.Existing)
		require.Equal(w.t, first.child, made.ID)
		return
	case p.depth+1 > p.maxDepth:
		require.ErrorIs(w.t, err, eventlog.ErrDepth)
		return
	case p.closed:
		require.ErrorIs(w.t, err, eventlog.ErrStaleCapture)
		return
	}
	require.NoError(w.t, err)
	m := &msession{id: made.ID, parent: p, depth: p.depth + 1, maxDepth: p.maxDepth, workspace: p.workspace, oneShot: r.Mode == eventlog.ModeOneShot,
		def: c.def, bound: c.def, explicit: c.has, born: made.Policy.BornSeq, states: map[uint64]state{}, narrowings: map[uint64]bits{}}
	if r.Workspace != "" {
		m.workspace = r.Workspace
	}
	if c.has {
		m.bound = c.sandbox
	}
	for seq, b := range p.narrowings { // a narrowing since the capture is met in, a switch is not
		if seq > c.seq {
			m.bound &= b
			m.explicit = true
		}
	}
	m.own = m.bound
	if r.Key != "" {
		w.keyed[key{p.id, r.Key}] = keyed{r, made.ID}
	}
	p.children = append(p.children, m)
	p.moved(p.head + 1)
	m.moved(made.Seq)
	w.sessions = append(w.sessions, m)

	at, err := replay.Policy(w.ctx, w.Store, p.id, c.seq)
	require.NoError(w.t, err)
	require.True(w.t, made.Policy.Sandbox.Value.Within(at.Sandbox.Value), "a child holds no more than its parent held at the capture")
}

func (w *world) switched(m *msession) {
	c := replay.Change{Sandbox: ptr(genSetting().Draw(w.t, "switch"))}
	b := stated(*c.Sandbox, m.workspace)
	if rapid.Bool().Draw(w.t, "with approvals") {
		c.Approvals = rapid.SampledFrom([]policy.Approval{policy.Ask, policy.Never}).Draw(w.t, "approvals")
	}
	result, after, err := replay.Switch(w.ctx, w.Store, m.id, c)
	switch {
	case !m.within(b) || m.parent != nil && c.Approvals == policy.Ask:
		require.ErrorIs(w.t, err, eventlog.ErrWidening)
		return
	case m.closed:
		require.ErrorIs(w.t, err, eventlog.ErrSessionClosed)
		return
	}
	require.NoError(w.t, err)
	m.own, m.explicit = b, true
	m.moved(result.FirstSeq)
	if c.Approvals != "" {
		m.asks = c.Approvals == policy.Ask
		m.moved(result.LastSeq)
	}
	require.Equal(w.t, m.now().effective, permitted(after.Sandbox.Value))
}

func (w *world) narrowed(m *msession) {
	n := replay.Narrowing{Session: m.id, Sandbox: new(genSetting().Draw(w.t, "ceiling")), Reason: "drawn", Subtree: rapid.Bool().Draw(w.t, "subtree")}
	workspace := m.workspace
	if len(n.Sandbox.WritableRoots) > 0 {
		workspace = "" // named roots stand instead of it
	}
	b := stated(*n.Sandbox, workspace)
	targets := []*msession{m}
	if n.Subtree {
		targets = m.subtree()
	}
	out, err := replay.Narrow(w.ctx, w.Store, n)
	require.NoError(w.t, err)
	require.Len(w.t, out, len(targets))
	done := map[uuid.UUID]replay.Narrowed{}
	for _, o := range out {
		done[o.Session] = o
	}
	for _, m := range targets {
		o := done[m.id]
		switch {
		case m.closed:
			require.Equal(w.t, replay.SkipClosed, o.Skipped)
			continue
		case m.bound&^b == 0:
			require.Equal(w.t, replay.SkipNarrower, o.Skipped)
		default:
			require.Empty(w.t, o.Skipped)
			require.Equal(w.t, m.head+1, o.Seq)
			require.Equal(w.t, m.now().effective, permitted(o.Before))
			m.bound &= b
			m.narrowed = true
			m.narrowings[o.Seq] = b
			m.moved(o.Seq)
			require.Equal(w.t, m.now().effective, permitted(o.After))
		}
		require.Zero(w.t, permitted(w.policy(m.id).Sandbox.Value)&^b, "every descendant is within the ceiling")
	}
}

func (w *world) lived(m *msession) {
	if m.closed {
		_, err := replay.Activate(w.ctx, w.Store, m.id, replay.AsOperator())
		require.ErrorIs(w.t, err, eventlog.ErrSessionClosed)
		return
	}
	a, err := replay.Activate(w.ctx, w.Store, m.id, replay.AsOperator())
	require.NoError(w.t, err)
	m.settled = false
	require.Equal(w.t, m.now().effective, permitted(a.Policy.Sandbox.Value))
	w.turn++
	turn := fmt.Sprint("c", w.turn)
	events := []eventlog.NewEvent{event(w.t, "turn/start", "turn", w.turn), event(w.t, "tool/call", "call", turn, "tool", "read"),
		event(w.t, "tool/result", "call", turn, "outcome", "ok"), event(w.t, "usage/recorded", "usage", turn, "input", 7), event(w.t, "turn/end", "turn", w.turn)}
	head := w.say(m.id, a.Epoch, events...).LastSeq
	if rapid.Bool().Draw(w.t, "settles") {
		head = w.settle(m.id, a.Epoch, "completed").LastSeq
		m.settled, m.closed = true, m.oneShot
	} else if rapid.Bool().Draw(w.t, "ends") {
		r, err := replay.End(w.ctx, w.Store, m.id, a.Epoch, "released")
		require.NoError(w.t, err)
		head = r.LastSeq
	}
	m.moved(head)
}

func (w *world) told(m *msession) {
	r, _, err := replay.Send(w.ctx, w.Store, m.id, replay.AsOperator(), "go on")
	if m.closed {
		require.ErrorIs(w.t, err, eventlog.ErrSessionClosed)
		return
	}
	require.NoError(w.t, err)
	m.moved(r.LastSeq)
}

func (w *world) ended(m *msession) {
	r, err := replay.Close(w.ctx, w.Store, m.id)
	if m.closed {
		require.ErrorIs(w.t, err, eventlog.ErrSessionClosed)
		return
	}
	require.NoError(w.t, err)
	m.closed = true
	m.moved(r.LastSeq)
}

// step draws and runs one operation.
func (w *world) step() {
	switch op := rapid.SampledFrom([]string{"root", "take", "spend", "spend", "delegate", "delegate", "switch", "switch", "switch", "narrow", "narrow", "live", "live", "tell", "end"}).Draw(w.t, "op"); op {
	case "root":
		if len(w.sessions) < 4 {
			w.root()
		}
	case "take":
		if c, ok := w.take(w.pick()); ok {
			w.captures = append(w.captures, c)
		}
	case "spend":
		if n := len(w.captures); n > 0 {
			i := rapid.IntRange(0, n-1).Draw(w.t, "capture")
			c := w.captures[i]
			w.captures = append(w.captures[:i], w.captures[i+1:]...)
			w.spend(c)
		}
	case "delegate":
		if c, ok := w.take(w.pick()); ok {
			w.spend(c)
		}
	case "switch":
		w.switched(w.pick())
	case "narrow":
		w.narrowed(w.pick())
	case "live":
		w.lived(w.pick())
	case "tell":
		w.told(w.pick())
	case "end":
		if rapid.IntRange(0, 2).Draw(w.t, "really") == 0 {
			w.ended(w.pick())
		}
	}
}
