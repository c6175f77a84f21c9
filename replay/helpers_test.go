package replay_test

import (
	"context"
	"crypto/sha256"
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

// testingT is what *testing.T and *rapid.T have in common.
type testingT interface {
	require.TestingT
	Helper()
	Cleanup(func())
}

// fixture is a store under test. When the test ends it is closed, opened for
// reading and checked as a whole: a test that leaves anything inconsistent
// behind fails, whatever it was about. Tests that damage a store say so.
type fixture struct {
	*eventlog.Store
	t       testingT
	ctx     context.Context
	dir     string
	damaged bool
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return fixtureIn(t, t.TempDir())
}

// fixtureIn makes the store below dir, for rapid, whose T has no TempDir.
func fixtureIn(t testingT, dir string) *fixture {
	t.Helper()
	f := &fixture{t: t, ctx: context.Background(), dir: filepath.Join(dir, "store")}
	_, err := eventlog.Init(f.ctx, f.dir)
	require.NoError(t, err)
	f.open(eventlog.Options{})
	t.Cleanup(f.check)
	return f
}

func (f *fixture) open(o eventlog.Options) {
	f.t.Helper()
	s, err := eventlog.Open(f.ctx, f.dir, o)
	require.NoError(f.t, err)
	f.Store = s
}

// reopen is what a new process does, with an empty memory.
func (f *fixture) reopen(o eventlog.Options) {
	f.t.Helper()
	require.NoError(f.t, f.Store.Close())
	f.open(o)
}

func (f *fixture) check() {
	f.t.Helper()
	require.NoError(f.t, f.Store.Close())
	if f.damaged {
		return
	}
	f.open(eventlog.Options{ReadOnly: true})
	report, err := f.Store.Check(f.ctx, eventlog.CheckOptions{})
	require.NoError(f.t, err)
	require.True(f.t, report.OK(), "%v", report.Findings)
	require.NoError(f.t, f.Store.Close())
}

// files is a digest of the bytes of the two databases.
func (f *fixture) files() map[string][sha256.Size]byte {
	f.t.Helper()
	out := map[string][sha256.Size]byte{}
	for _, name := range []string{"store.db", "index.db", "IDENTITY"} {
		b, err := os.ReadFile(filepath.Join(f.dir, name))
		require.NoError(f.t, err)
		out[name] = sha256.Sum256(b)
	}
	return out
}

const workspace = "/srv/project"

func (f *fixture) root(r materialize.RootRequest) uuid.UUID {
	f.t.Helper()
	if r.Workspace == "" {
		r.Workspace = workspace
	}
	made, err := materialize.Root(f.ctx, f.Store, r)
	require.NoError(f.t, err)
	return made.ID
}

// rootWith is a root that switched to a mode.
func (f *fixture) rootWith(mode policy.Mode) uuid.UUID {
	f.t.Helper()
	return f.root(materialize.RootRequest{Sandbox: &policy.Setting{Mode: mode}})
}

func (f *fixture) child(parent uuid.UUID) materialize.Session {
	f.t.Helper()
	return f.childOf(parent, materialize.Request{})
}

func (f *fixture) childOf(parent uuid.UUID, r materialize.Request) materialize.Session {
	f.t.Helper()
	made, err := materialize.Delegate(f.ctx, f.Store, parent, snapshot.Options{}, r)
	require.NoError(f.t, err)
	return made
}

func (f *fixture) policy(id uuid.UUID) replay.Effective {
	f.t.Helper()
	e, err := replay.Policy(f.ctx, f.Store, id, 0)
	require.NoError(f.t, err)
	return e
}

func (f *fixture) row(id uuid.UUID) eventlog.Row {
	f.t.Helper()
	row, err := f.Store.Row(id)
	require.NoError(f.t, err)
	return row
}

func (f *fixture) switchTo(id uuid.UUID, mode policy.Mode) {
	f.t.Helper()
	_, _, err := replay.Switch(f.ctx, f.Store, id, replay.Change{Sandbox: &policy.Setting{Mode: mode}})
	require.NoError(f.t, err)
}

func (f *fixture) narrow(id uuid.UUID, mode policy.Mode, subtree bool) []replay.Narrowed {
	f.t.Helper()
	out, err := replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: id, Sandbox: &policy.Setting{Mode: mode}, Reason: "a test", Subtree: subtree})
	require.NoError(f.t, err)
	return out
}

func (f *fixture) activate(id uuid.UUID) replay.Activation {
	f.t.Helper()
	a, err := replay.Activate(f.ctx, f.Store, id, replay.AsOperator())
	require.NoError(f.t, err)
	return a
}

func (f *fixture) settle(id uuid.UUID, epoch uint64, outcome string) eventlog.Result {
	f.t.Helper()
	r, err := replay.Settle(f.ctx, f.Store, id, epoch, outcome)
	require.NoError(f.t, err)
	return r
}

// say appends events of open families as the harness that holds epoch.
func (f *fixture) say(id uuid.UUID, epoch uint64, events ...eventlog.NewEvent) eventlog.Result {
	f.t.Helper()
	r, err := f.Store.Append(f.ctx, eventlog.Batch{Session: id, Expect: eventlog.Any(), Epoch: epoch, Events: events})
	require.NoError(f.t, err)
	return r
}

func (f *fixture) resume(id uuid.UUID, by replay.Caller) replay.Resumption {
	f.t.Helper()
	r, err := replay.Resume(f.ctx, f.Store, replay.Request{Session: id, By: by})
	require.NoError(f.t, err)
	return r
}

// log reads a whole log with its contents.
func (f *fixture) log(id uuid.UUID) []eventlog.Event {
	f.t.Helper()
	var out []eventlog.Event
	require.NoError(f.t, f.Store.Replay(f.ctx, id, true, func(ev *eventlog.Event) error { out = append(out, *ev); return nil }))
	return out
}

// types lists the event types of a log in order.
func (f *fixture) types(id uuid.UUID) []string {
	f.t.Helper()
	var out []string
	for _, ev := range f.log(id) {
		out = append(out, ev.Type)
	}
	return out
}

func facts(t testingT, pairs ...any) eventlog.Facts {
	t.Helper()
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	out, err := eventlog.MakeFacts(m)
	require.NoError(t, err)
	return out
}

// event makes one event of an open family.
func event(t testingT, typ string, pairs ...any) eventlog.NewEvent {
	t.Helper()
	return eventlog.NewEvent{Type: typ, Facts: facts(t, pairs...)}
}

// resolved is what a setting is worth in the usual workspace.
func resolved(t testingT, s policy.Setting) policy.Sandbox {
	t.Helper()
	v, err := s.Resolve(workspace)
	require.NoError(t, err)
	return v
}

// evidence imports a session: one creation of source import that names a
// parent, which may be a native one.
func (f *fixture) evidence(kind string, parent uuid.UUID, more ...eventlog.NewEvent) uuid.UUID {
	f.t.Helper()
	id, err := uuid.NewRandom()
	require.NoError(f.t, err)
	c := eventlog.Created{Kind: kind, Parent: parent, Root: id, MaxDepth: 3, Mode: eventlog.ModeContinuable, Evidence: true,
		Defaults: policy.Defaults{Sandbox: policy.Top(), Approvals: policy.Ask}}
	if kind == eventlog.KindChild {
		c.Root, c.Depth = parent, 1
	}
	_, err = f.Store.Transact(f.ctx, eventlog.EntryImport, func(*eventlog.View) ([]eventlog.Batch, error) {
		return []eventlog.Batch{{Session: id, Events: append([]eventlog.NewEvent{{Type: eventlog.TypeSessionCreated, Facts: c.Facts()}}, more...)}}, nil
	})
	require.NoError(f.t, err)
	return id
}

// fillIndex appends enough frames that the index is written at the close. With
// fewer, an open folds the journal and the index plays no part.
func (f *fixture) fillIndex(id uuid.UUID) {
	f.t.Helper()
	for range 80 {
		f.say(id, 0, event(f.t, "user/message"))
	}
}

// must is for what a test states itself.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
