package materialize_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// fixture is a store under test. When the test ends it is closed, opened for
// reading and checked as a whole.
type fixture struct {
	*eventlog.Store
	t       *testing.T
	ctx     context.Context
	dir     string
	damaged bool // declared by a test that damages it
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, ctx: context.Background(), dir: filepath.Join(t.TempDir(), "store")}
	_, err := eventlog.Init(f.ctx, f.dir)
	require.NoError(t, err)
	f.open(eventlog.Options{})
	t.Cleanup(func() {
		f.reopen(eventlog.Options{ReadOnly: true})
		report, err := f.Store.Check(f.ctx, eventlog.CheckOptions{})
		require.NoError(t, err)
		require.True(t, f.damaged || report.OK(), "%v", report.Findings)
		require.NoError(t, f.Store.Close())
	})
	return f
}

func (f *fixture) open(o eventlog.Options) {
	f.t.Helper()
	s, err := eventlog.Open(f.ctx, f.dir, o)
	require.NoError(f.t, err)
	f.Store = s
}

func (f *fixture) reopen(o eventlog.Options) {
	f.t.Helper()
	require.NoError(f.t, f.Store.Close())
	f.open(o)
}

const workspace = "/srv/project"

func (f *fixture) rootWith(mode policy.Mode) uuid.UUID {
	f.t.Helper()
	made, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{Workspace: workspace, Sandbox: &policy.Setting{Mode: mode}})
	require.NoError(f.t, err)
	return made.ID
}

func (f *fixture) delegate(parent uuid.UUID, r materialize.Request) (materialize.Session, error) {
	f.t.Helper()
	return materialize.Delegate(f.ctx, f.Store, parent, snapshot.Options{}, r)
}

func (f *fixture) made(parent uuid.UUID, r materialize.Request) materialize.Session {
	f.t.Helper()
	s, err := f.delegate(parent, r)
	require.NoError(f.t, err)
	return s
}

func (f *fixture) say(id uuid.UUID, events ...eventlog.NewEvent) eventlog.Result {
	f.t.Helper()
	r, err := f.Store.Append(f.ctx, eventlog.Batch{Session: id, Expect: eventlog.Any(), Events: events})
	require.NoError(f.t, err)
	return r
}

func (f *fixture) row(id uuid.UUID) eventlog.Row {
	f.t.Helper()
	row, err := f.Store.Row(id)
	require.NoError(f.t, err)
	return row
}

func (f *fixture) policy(id uuid.UUID) replay.Effective {
	f.t.Helper()
	e, err := replay.Policy(f.ctx, f.Store, id, 0)
	require.NoError(f.t, err)
	return e
}

func (f *fixture) log(id uuid.UUID) []eventlog.Event {
	f.t.Helper()
	var out []eventlog.Event
	require.NoError(f.t, f.Store.Replay(f.ctx, id, true, func(ev *eventlog.Event) error { out = append(out, *ev); return nil }))
	return out
}

func (f *fixture) types(id uuid.UUID) (out []string) {
	f.t.Helper()
	for _, ev := range f.log(id) {
		out = append(out, ev.Type)
	}
	return out
}

// receipt reads a child's delegation/granted.
func (f *fixture) receipt(id uuid.UUID) (eventlog.Granted, eventlog.Event) {
	f.t.Helper()
	e := f.policy(id)
	ev := f.log(id)[e.ReceiptSeq-1]
	g, err := eventlog.ParseGranted(&ev)
	require.NoError(f.t, err)
	return g, ev
}

// sessions is how many sessions the store has.
func (f *fixture) sessions() (n int) {
	f.t.Helper()
	require.NoError(f.t, f.EachRow(f.ctx, func(*eventlog.Row) (bool, error) { n++; return true, nil }))
	return n
}

// files returns the bytes of the store's two databases, closed for the look.
func (f *fixture) files() []byte {
	f.t.Helper()
	require.NoError(f.t, f.Store.Close())
	var out []byte
	for _, name := range []string{"store.db", "index.db"} {
		b, err := os.ReadFile(filepath.Join(f.dir, name))
		require.NoError(f.t, err)
		out = append(out, b...)
	}
	f.open(eventlog.Options{})
	return out
}

func event(t *testing.T, typ string, pairs ...any) eventlog.NewEvent {
	t.Helper()
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	facts, err := eventlog.MakeFacts(m)
	require.NoError(t, err)
	return eventlog.NewEvent{Type: typ, Facts: facts}
}

func text(typ, s string) eventlog.NewEvent {
	return eventlog.NewEvent{Type: typ, Media: eventlog.MediaText, Content: []byte(s)}
}

func turn(t *testing.T, n int, between ...eventlog.NewEvent) []eventlog.NewEvent {
	t.Helper()
	return append(append([]eventlog.NewEvent{event(t, "turn/start", "turn", n)}, between...), event(t, "turn/end", "turn", n))
}
