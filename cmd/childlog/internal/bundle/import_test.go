package bundle

import (
	"bytes"
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

func importInto(t testing.TB, s *eventlog.Store, b []byte, a Anchors) (*Imported, error) {
	t.Helper()
	return Import(ctx, s, bytes.NewReader(b), ImportOptions{Anchors: a, By: "tester"})
}

// TestImport: the digests are those of the store that the logs came from, a
// second import adds nothing, and a later bundle goes on.
func TestImport(t *testing.T) {
	from, to := newStore(t), newStore(t)
	_, child, _, _ := family(t, from)
	n := newNotary(t, "demo")
	o := Options{Note: n.checkpoint(t, from, from.Durable())}
	b := export(t, from, o)
	got, err := importInto(t, to, b, Anchors{Key: n.verifier})
	require.NoError(t, err)
	require.Equal(t, "verified", got.Status)
	require.Len(t, got.Sessions, 4)
	equalLogs(t, from, to)
	size := to.Durable()
	got, err = importInto(t, to, b, Anchors{})
	require.NoError(t, err)
	require.Zero(t, got.Events)
	require.Equal(t, size, to.Durable())

	say(t, from, child, "later", "still later")
	got, err = importInto(t, to, export(t, from, Options{}), Anchors{})
	require.NoError(t, err)
	require.Equal(t, uint64(2), got.Events)
	equalLogs(t, from, to)
	got, err = importInto(t, to, b, Anchors{}) // the older one again
	require.NoError(t, err)
	require.Zero(t, got.Events)

	// What was taken in is handed on and proves itself.
	again := export(t, to, Options{Note: n.checkpoint(t, to, to.Durable())})
	r := verify(t, again, Anchors{Key: n.verifier})
	require.Empty(t, r.Findings)
	third := newStore(t)
	_, err = importInto(t, third, again, Anchors{})
	require.NoError(t, err)
	equalLogs(t, from, third)

	// Where it came from it is native, and stays so.
	got, err = importInto(t, from, again, Anchors{})
	require.NoError(t, err)
	require.Zero(t, got.Events)
	row, err := from.Row(child)
	require.NoError(t, err)
	require.False(t, row.Evidence)
}

func equalLogs(t testing.TB, a, b *eventlog.Store) {
	t.Helper()
	require.NoError(t, a.EachRow(ctx, func(row *eventlog.Row) (bool, error) {
		if row.Session == eventlog.StoreSession {
			return true, nil
		}
		other, err := b.Row(row.Session)
		require.NoError(t, err)
		require.Equal(t, row.Head, other.Head)
		require.Equal(t, row.Hash, other.Hash)
		require.Equal(t, row.Label, other.Label)
		require.True(t, other.Evidence)
		require.True(t, other.Imported)
		require.Empty(t, other.Damage)
		mine, err := replay.Policy(ctx, a, row.Session, 0)
		require.NoError(t, err)
		its, err := replay.Policy(ctx, b, row.Session, 0)
		require.NoError(t, err)
		require.Equal(t, mine.Receipt, its.Receipt)
		require.Equal(t, mine.Sandbox.Value, its.Sandbox.Value)
		require.True(t, its.Evidence)
		return true, nil
	}))
}

// TestCase56_ForgedBundle: a log in childlog's own words, with source delegation
// and full access, is evidence wherever it came in, and nothing makes more of it.
func TestCase56_ForgedBundle(t *testing.T) {
	forged := newStore(t) // whoever writes a store can write any log into a bundle
	root, child := sid(1), sid(2)
	full := &policy.Setting{Mode: policy.DangerFullAccess}
	_, err := materialize.Root(ctx, forged, materialize.RootRequest{ID: root, Sandbox: full, Label: "mine"})
	require.NoError(t, err)
	delegate(t, forged, root, child)
	b := export(t, forged, Options{})

	to := newStore(t)
	_, err = importInto(t, to, b, Anchors{})
	require.NoError(t, err)
	refuses := func(s *eventlog.Store) {
		t.Helper()
		for _, id := range []uuid.UUID{root, child} {
			row, err := s.Row(id)
			require.NoError(t, err)
			require.True(t, row.Evidence)
			require.Equal(t, eventlog.StatusEvidence, row.Status(s.Boot()))
			_, err = replay.Resume(ctx, s, replay.Request{Session: id, By: replay.AsOperator()})
			require.ErrorIs(t, err, eventlog.ErrEvidence)
			_, err = snapshot.Take(ctx, s, id, snapshot.Options{})
			require.ErrorIs(t, err, eventlog.ErrEvidence)
			if s.Boot() == uuid.Nil {
				continue
			}
			_, err = replay.Activate(ctx, s, id, replay.AsOperator())
			require.ErrorIs(t, err, eventlog.ErrEvidence)
			_, err = materialize.Delegate(ctx, s, id, snapshot.Options{}, materialize.Request{})
			require.ErrorIs(t, err, eventlog.ErrEvidence)
			_, err = s.Append(ctx, eventlog.Batch{Session: id, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: eventlog.TypeAssistantMessage}}})
			require.ErrorIs(t, err, eventlog.ErrEvidence)
			for _, via := range []eventlog.Entry{eventlog.EntryOperator, eventlog.EntryRuntime, eventlog.EntryImport} {
				_, err = s.Transact(ctx, via, func(*eventlog.View) ([]eventlog.Batch, error) {
					ev := eventlog.NewEvent{Type: eventlog.TypeSandboxMode, Facts: eventlog.SandboxFacts(policy.Top())}
					return []eventlog.Batch{{Session: id, Expect: eventlog.Any(), Events: []eventlog.NewEvent{ev}}}, nil
				})
				require.ErrorIs(t, err, eventlog.ErrEvidence, via)
			}
		}
		answer, err := replay.DecideAt(ctx, s, child, 0, policy.Call{Tool: "read_file"})
		require.NoError(t, err)
		require.Equal(t, policy.CodeEvidence, answer.Code)
		x, err := replay.Explain(ctx, s, child, "sandbox", 0)
		require.NoError(t, err)
		require.Contains(t, x.Rule, "evidence and never authority")
	}
	refuses(to)
	before, err := to.Row(child)
	require.NoError(t, err)

	// A rebuilt index, a backup's restore and a salvage read it off the frames.
	dir := t.TempDir()
	_, err = to.Backup(ctx, filepath.Join(dir, "backup"), eventlog.BackupOptions{})
	require.NoError(t, err)
	_, err = eventlog.Restore(ctx, filepath.Join(dir, "backup"), filepath.Join(dir, "restored"), eventlog.RestoreOptions{})
	require.NoError(t, err)
	_, err = eventlog.Salvage(ctx, filepath.Join(dir, "restored"), filepath.Join(dir, "salvaged"), eventlog.SalvageOptions{})
	require.NoError(t, err)
	for _, name := range []string{"backup", "restored", "salvaged"} {
		s, err := eventlog.Open(ctx, filepath.Join(dir, name), eventlog.Options{ReadOnly: name == "backup"})
		require.NoError(t, err, name)
		row, err := s.Row(child)
		require.NoError(t, err)
		before.LastPos, row.LastPos = 0, 0
		require.Equal(t, before, row)
		refuses(s)
		require.NoError(t, s.Close())
		requireSound(t, filepath.Join(dir, name))
	}
}

// TestCase56_NativeParent: a log that names a native session as its parent, or
// takes a native one's external id, is not taken in, and a native session never
// becomes the parent of one that is.
func TestCase56_NativeParent(t *testing.T) {
	from, to := newStore(t), newStore(t)
	root, child, _, _ := family(t, from)
	_, err := materialize.Root(ctx, to, materialize.RootRequest{ID: root, Label: "native"})
	require.NoError(t, err)
	b := export(t, from, Options{Sessions: []uuid.UUID{child}})
	_, err = importInto(t, to, b, Anchors{})
	require.ErrorIs(t, err, eventlog.ErrUnauthorized)
	require.ErrorContains(t, err, "never attached")
	_, err = to.Row(child)
	require.ErrorIs(t, err, eventlog.ErrNotFound)

	third := newStore(t)
	_, err = importInto(t, third, b, Anchors{})
	require.NoError(t, err)
	_, err = materialize.Root(ctx, third, materialize.RootRequest{ID: root})
	require.ErrorIs(t, err, eventlog.ErrExists)

	fourth := newStore(t)
	_, err = materialize.Root(ctx, fourth, materialize.RootRequest{ID: sid(77), System: "demo", External: "one"})
	require.NoError(t, err)
	_, err = importInto(t, fourth, export(t, from, Options{}), Anchors{})
	require.ErrorIs(t, err, eventlog.ErrUnauthorized)
	require.ErrorContains(t, err, "external id")
}

// TestImportConflict: another log under the same id is refused with the first
// seq that differs, and nothing of the bundle is taken in.
func TestImportConflict(t *testing.T) {
	build := func(texts ...string) *eventlog.Store {
		s := newStore(t)
		ids := []uuid.UUID{sid(1), sid(2)}
		for _, id := range ids {
			_, err := materialize.Root(ctx, s, materialize.RootRequest{ID: id})
			require.NoError(t, err)
		}
		say(t, s, ids[1], texts...)
		return s
	}
	one, two, to := build("a", "b"), build("a", "b"), newStore(t)
	_, err := importInto(t, to, export(t, one, Options{Sessions: []uuid.UUID{sid(2)}}), Anchors{})
	require.NoError(t, err)
	_, err = importInto(t, to, export(t, two, Options{}), Anchors{})
	require.ErrorIs(t, err, eventlog.ErrConflict)
	require.ErrorContains(t, err, "seq 1 here is another event")
	_, err = to.Row(sid(1))
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	_, err = importInto(t, two, export(t, one, Options{}), Anchors{})
	require.ErrorIs(t, err, eventlog.ErrConflict)

	// What is native here does not go on from a bundle, not even with what its own
	// log went on with elsewhere.
	dir := t.TempDir()
	_, err = one.Backup(ctx, filepath.Join(dir, "backup"), eventlog.BackupOptions{})
	require.NoError(t, err)
	_, err = eventlog.Restore(ctx, filepath.Join(dir, "backup"), filepath.Join(dir, "older"), eventlog.RestoreOptions{})
	require.NoError(t, err)
	older, err := eventlog.Open(ctx, filepath.Join(dir, "older"), eventlog.Options{})
	require.NoError(t, err)
	defer older.Close()
	say(t, one, sid(2), "c")
	_, err = importInto(t, older, export(t, one, Options{}), Anchors{})
	require.ErrorIs(t, err, eventlog.ErrConflict)
	require.ErrorContains(t, err, "is native here")
}
