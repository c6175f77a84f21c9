package replay_test

import (
	"encoding/binary"
	"hash/crc32"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	bolt "go.etcd.io/bbolt"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// editIndex changes index.db behind the store's back and leaves the store
// closed. What is put with putSealed has a sound checksum: the index says it
// and it is not so.
func (f *fixture) editIndex(edit func(tx *bolt.Tx)) {
	f.t.Helper()
	require.NoError(f.t, f.Store.Close())
	db, err := bolt.Open(filepath.Join(f.dir, "index.db"), 0o600, nil)
	require.NoError(f.t, err)
	require.NoError(f.t, db.Update(func(tx *bolt.Tx) error { edit(tx); return nil }))
	require.NoError(f.t, db.Close())
}

func putSealed(t testingT, b *bolt.Bucket, key, value []byte) {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(crc32.Checksum(key, table), table, value)
	require.NoError(t, b.Put(key, binary.LittleEndian.AppendUint32(append([]byte(nil), value...), sum)))
}

// lie changes the row of a session.
func (f *fixture) lie(id uuid.UUID, change func(*eventlog.Row)) {
	f.t.Helper()
	f.editIndex(func(tx *bolt.Tx) {
		b := tx.Bucket([]byte("rows"))
		v := b.Get(id[:])
		require.NotEmpty(f.t, v, "the index has a row")
		var row eventlog.Row
		require.NoError(f.t, msgpack.Unmarshal(v[:len(v)-4], &row))
		change(&row)
		out, err := msgpack.Marshal(&row)
		require.NoError(f.t, err)
		putSealed(f.t, b, id[:], out)
	})
}

// reported says whether a check finds that the index and the journal differ.
func (f *fixture) reported() bool {
	f.t.Helper()
	report, err := f.Store.Check(f.ctx, eventlog.CheckOptions{})
	require.NoError(f.t, err)
	for _, finding := range report.Findings {
		if finding.Kind == eventlog.FindIndex {
			return true
		}
	}
	return false
}

// TestCase19_AnIndexRowThatLies: whatever a row of the derived index says, the
// policy is the one of the log, and a check reports the row.
func TestCase19_AnIndexRowThatLies(t *testing.T) {
	attacker := uuid.MustParse("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
	for name, change := range map[string]func(*eventlog.Row){
		"another last policy seq": func(r *eventlog.Row) { r.LastPolicy = 1 },
		"no last policy seq":      func(r *eventlog.Row) { r.LastPolicy = 0 },
		"another parent":          func(r *eventlog.Row) { r.Parent = attacker },
		"a root":                  func(r *eventlog.Row) { r.Kind, r.Parent = eventlog.KindRoot, uuid.Nil },
		"another depth":           func(r *eventlog.Row) { r.Depth, r.MaxDepth = 0, 8 },
		"another mode":            func(r *eventlog.Row) { r.Mode = eventlog.ModeContinuable },
		"another workspace":       func(r *eventlog.Row) { r.WorkspaceRoot = "/" },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.damaged = true // of the index, which is what the test is about
			root := f.rootWith(policy.WorkspaceWrite)
			child := f.childOf(root, materialize.Request{Mode: eventlog.ModeOneShot}).ID
			f.narrow(child, policy.ReadOnly, false)
			f.fillIndex(root)
			truth := f.policy(child)
			f.lie(child, change)
			f.open(eventlog.Options{})

			e := f.policy(child)
			require.Equal(t, rendered(&truth), rendered(&e))
			require.True(t, f.reported())
			for _, by := range []replay.Caller{replay.AsParent(attacker), replay.AsParent(root), replay.AsOperator()} {
				_, err := replay.Resume(f.ctx, f.Store, replay.Request{Session: child, By: by})
				require.Error(t, err, "it is one-shot and of another parent than the attacker")
				if by.Parent == attacker {
					_, err = replay.Activate(f.ctx, f.Store, child, by)
					require.ErrorIs(t, err, eventlog.ErrUnauthorized)
				}
			}
			_, _, err := replay.Switch(f.ctx, f.Store, child, replay.Change{Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}})
			require.ErrorIs(t, err, eventlog.ErrWidening)
			c, err := snapshot.Take(f.ctx, f.Store, child, snapshot.Options{})
			require.NoError(t, err)
			depth, ceiling := c.Depth()
			require.Equal(t, []int{1, 3}, []int{depth, ceiling})
		})
	}

	t.Run("evidence that is said to be native", func(t *testing.T) {
		f := newFixture(t)
		f.damaged = true
		root := f.rootWith(policy.WorkspaceWrite)
		forged := f.forge(root, "k")
		f.fillIndex(root)
		f.lie(forged, func(r *eventlog.Row) { r.Evidence = false })
		f.open(eventlog.Options{})
		require.False(t, f.row(forged).Evidence)
		_, err := replay.Resume(f.ctx, f.Store, replay.Request{Session: forged, By: replay.AsOperator()})
		require.ErrorIs(t, err, eventlog.ErrEvidence)
		_, err = replay.Activate(f.ctx, f.Store, forged, replay.AsOperator())
		require.ErrorIs(t, err, eventlog.ErrEvidence)
		_, err = snapshot.Take(f.ctx, f.Store, forged, snapshot.Options{})
		require.ErrorIs(t, err, eventlog.ErrEvidence)
		_, _, err = replay.Switch(f.ctx, f.Store, forged, replay.Change{Sandbox: &policy.Setting{Mode: policy.ReadOnly}})
		require.ErrorIs(t, err, eventlog.ErrEvidence)
		require.True(t, f.reported())
	})
}

// TestAKeyThatLeadsElsewhere: a name of the index leads from an idempotency
// key to a foreign log, or to another parent's child. A caller that retries
// gets no policy but an error.
func TestAKeyThatLeadsElsewhere(t *testing.T) {
	f := newFixture(t)
	f.damaged = true
	root, other := f.rootWith(policy.ReadOnly), f.rootWith(policy.DangerFullAccess)
	r := materialize.Request{Key: "run 4, call 7"}
	child := f.childOf(root, r).ID
	for _, elsewhere := range []uuid.UUID{f.forge(root, r.Key), f.childOf(other, r).ID, other} {
		f.fillIndex(root)
		hash := eventlog.KeyHash(root, r.Key)
		f.editIndex(func(tx *bolt.Tx) {
			b, name := tx.Bucket([]byte("names")), append([]byte{'k'}, hash[:]...)
			require.NotEmpty(t, b.Get(name))
			putSealed(t, b, name, elsewhere[:])
		})
		f.open(eventlog.Options{})
		made, err := materialize.Delegate(f.ctx, f.Store, root, snapshot.Options{}, r)
		require.ErrorIs(t, err, eventlog.ErrEvidence)
		require.Equal(t, materialize.Session{}, made)
		require.True(t, f.reported())
		f.dropIndexAndReopen()
		require.Equal(t, child, f.childOf(root, r).ID)
	}
}

// TestCase64_APolicyEventsIndexRowIsGone: the index lost what leads to a
// narrowing, or leads somewhere else. The chain of policy seqs finds the
// narrowing, or the policy is refused. It is never the wider one.
func TestCase64_APolicyEventsIndexRowIsGone(t *testing.T) {
	setup := func(t *testing.T) (f *fixture, child uuid.UUID) {
		f = newFixture(t)
		f.damaged = true
		child = f.child(f.rootWith(policy.DangerFullAccess)).ID
		for range 70 { // positions of the session fill more than one row
			f.say(child, 0, event(t, "user/message"))
		}
		f.narrow(child, policy.ReadOnly, false)
		for range 70 {
			f.say(child, 0, event(t, "user/message"))
		}
		return f, child
	}
	judge := func(t *testing.T, f *fixture, child uuid.UUID) {
		t.Helper()
		e, err := replay.Policy(f.ctx, f.Store, child, 0)
		if err != nil {
			require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
		} else {
			require.True(t, e.Sandbox.Value.Equal(readOnly()), "a wider policy: %v", e.Sandbox.Value)
		}
		if _, _, err = replay.Switch(f.ctx, f.Store, child, replay.Change{Sandbox: &policy.Setting{Mode: policy.DangerFullAccess}}); err == nil {
			t.Fatal("switched past the narrowing")
		}
		if c, err := snapshot.Take(f.ctx, f.Store, child, snapshot.Options{}); err == nil {
			require.True(t, c.Sandbox().Equal(readOnly()))
		}
	}
	positions := func(tx *bolt.Tx, child uuid.UUID, chunk uint32) (*bolt.Bucket, []byte) {
		return tx.Bucket([]byte("positions")), binary.BigEndian.AppendUint32(append([]byte(nil), child[:]...), chunk)
	}
	for name, edit := range map[string]func(t *testing.T, tx *bolt.Tx, child uuid.UUID){
		"the positions row that holds it": func(t *testing.T, tx *bolt.Tx, child uuid.UUID) {
			b, key := positions(tx, child, 1)
			require.NotEmpty(t, b.Get(key))
			require.NoError(t, b.Delete(key))
		},
		"all positions": func(t *testing.T, tx *bolt.Tx, child uuid.UUID) {
			require.NoError(t, tx.DeleteBucket([]byte("positions")))
		},
		"the positions of another chunk in its place": func(t *testing.T, tx *bolt.Tx, child uuid.UUID) {
			b, first := positions(tx, child, 0)
			_, second := positions(tx, child, 1)
			putSealed(t, b, second, b.Get(first)[:len(b.Get(first))-4])
		},
		"the session's row": func(t *testing.T, tx *bolt.Tx, child uuid.UUID) {
			require.NoError(t, tx.Bucket([]byte("rows")).Delete(child[:]))
		},
		"the links": func(t *testing.T, tx *bolt.Tx, child uuid.UUID) { require.NoError(t, tx.DeleteBucket([]byte("links"))) },
		"a byte of the row": func(t *testing.T, tx *bolt.Tx, child uuid.UUID) {
			b := tx.Bucket([]byte("rows"))
			v := append([]byte(nil), b.Get(child[:])...)
			v[len(v)/2] ^= 4
			require.NoError(t, b.Put(child[:], v))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, child := setup(t)
			f.editIndex(func(tx *bolt.Tx) { edit(t, tx, child) })
			f.open(eventlog.Options{})
			judge(t, f, child)
			f.reopen(eventlog.Options{ReadOnly: true})
			e, err := replay.Policy(f.ctx, f.Store, child, 0)
			require.True(t, err != nil || e.Sandbox.Value.Equal(readOnly()))
		})
	}

	t.Run("without an index", func(t *testing.T) {
		f, child := setup(t)
		f.dropIndexAndReopen()
		judge(t, f, child)
		require.True(t, f.policy(child).Sandbox.Value.Equal(readOnly()))
	})
	t.Run("in a narrowing of the subtree", func(t *testing.T) {
		// The link to the child is gone; narrowing the parent must still reach it.
		f, child := setup(t)
		parent := f.row(child).Parent
		grandchild := f.child(child).ID
		f.fillIndex(parent)
		f.editIndex(func(tx *bolt.Tx) {
			b := tx.Bucket([]byte("links"))
			require.NoError(t, b.Delete(append(append([]byte(nil), parent[:]...), child[:]...)))
		})
		f.open(eventlog.Options{})
		out, err := replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: parent, Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Reason: "r", Subtree: true})
		if err == nil {
			require.Len(t, out, 3, "narrowed without %s and %s", child, grandchild)
		}
	})
}

// TestAStaleIndexRow: a row of the index is an older version of itself, sound
// and with a head that the journal did have once. A narrowing lies behind that
// head and must not be hidden by it.
func TestAStaleIndexRow(t *testing.T) {
	f := newFixture(t)
	f.damaged = true
	root := f.rootWith(policy.DangerFullAccess)
	child := f.child(root).ID
	f.fillIndex(root)
	require.NoError(t, f.Store.Close())
	var old []byte
	f.open(eventlog.Options{})
	f.editIndex(func(tx *bolt.Tx) { old = append(old, tx.Bucket([]byte("rows")).Get(child[:])...) })
	require.NotEmpty(t, old)
	f.open(eventlog.Options{})
	f.narrow(child, policy.ReadOnly, false)
	f.fillIndex(root)
	f.editIndex(func(tx *bolt.Tx) { require.NoError(t, tx.Bucket([]byte("rows")).Put(child[:], old)) })
	f.open(eventlog.Options{})
	e, err := replay.Policy(f.ctx, f.Store, child, 0)
	if err != nil {
		require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
		return
	}
	require.True(t, e.Sandbox.Value.Equal(readOnly()), "the stale row hid the narrowing: %v", e.Sandbox.Value)
}
