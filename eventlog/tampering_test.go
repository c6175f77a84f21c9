package eventlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// forgedFrame is a frame in the hands of somebody who knows the format.
type forgedFrame struct {
	session  uuid.UUID
	events   []Event
	contents map[uint32]map[uint32][]byte // chunks by event
}

// forge rewrites the journal: it hands edit all frames, and writes what comes
// back with positions, seqs, policy links, hashes and checksums that fit again.
// Units become single frames. Index and nothing else goes.
func forge(t *testing.T, dir string, edit func([]forgedFrame) []forgedFrame) {
	t.Helper()
	changeDB(t, filepath.Join(dir, journalFile), func(tx *bolt.Tx) error {
		journal, contents := tx.Bucket(bucketJournal), tx.Bucket(bucketContents)
		var frames []forgedFrame
		require.NoError(t, journal.ForEach(func(k, raw []byte) error {
			f, err := decodeFrame(bytes.Clone(raw))
			require.NoError(t, err)
			var d decoder
			events, err := d.events(nil, &f, 0)
			require.NoError(t, err)
			held := map[uint32]map[uint32][]byte{}
			c := contents.Cursor()
			for k, v := c.Seek(k); len(k) == contentKeyLen && bytes.Equal(k[:8], positionKey(uint64(len(frames)))); k, v = c.Next() {
				index, chunk := binary.BigEndian.Uint32(k[8:]), binary.BigEndian.Uint32(k[12:])
				if held[index] == nil {
					held[index] = map[uint32][]byte{}
				}
				held[index][chunk] = bytes.Clone(v)
			}
			frames = append(frames, forgedFrame{f.session, events, held})
			return nil
		}))
		frames = edit(frames)
		for _, name := range [][]byte{bucketJournal, bucketContents} {
			require.NoError(t, tx.DeleteBucket(name))
		}
		journal, contents = must(tx.CreateBucket(bucketJournal)), must(tx.CreateBucket(bucketContents))
		type at struct {
			seq, policy uint64
			hash        Hash
		}
		logs := map[uuid.UUID]at{}
		for position, ff := range frames {
			l, ok := logs[ff.session]
			if !ok {
				l.hash = Genesis(ff.session)
			}
			f := frame{session: ff.session, first: l.seq + 1, count: uint64(len(ff.events)), prev: l.hash}
			for i := range ff.events {
				ev := &ff.events[i]
				l.seq++
				if ev.Seq = l.seq; ev.PolicyBearing {
					ev.PrevPolicy, l.policy = l.policy, l.seq
				}
				header := encodeEvent(ev)
				f.headers = append(appendUvarint(f.headers, uint64(len(header))), header...)
				l.hash, _ = chainNext(l.hash, header, nil)
			}
			f.lastPolicy = l.policy
			logs[ff.session] = l
			require.NoError(t, journal.Put(positionKey(uint64(position)), appendFrame(nil, &f)))
			for index, chunks := range ff.contents {
				for chunk, v := range chunks {
					require.NoError(t, contents.Put(contentKey(uint64(position), index, chunk), v))
				}
			}
		}
		return journal.SetSequence(uint64(len(frames)))
	})
	require.NoError(t, removeIndex(dir))
}

// signAnew writes the CHECKPOINT of what the journal is now, as who has the key
// can. A journal that has no tree keeps the one that it has.
func signAnew(t *testing.T, dir string) {
	t.Helper()
	s, err := Open(ctx, dir, Options{ReadOnly: true})
	require.NoError(t, err)
	defer s.Close()
	c := Checkpoint{Origin: s.identity.Origin(), Size: s.st.durable()}
	if c.Root, err = s.rootAt(ctx, c.Size); err != nil {
		return
	}
	key, err := readSignKey(filepath.Join(dir, keyFile), s.identity.Store)
	require.NoError(t, err)
	require.NoError(t, c.sign(key))
	require.NoError(t, os.WriteFile(filepath.Join(dir, checkpointFile), c.Note, 0o600))
}

// anotherKey makes the store name a key of the forger's, and signs with it.
func anotherKey(t *testing.T, dir string) {
	require.NoError(t, os.Remove(filepath.Join(dir, keyFile)))
	id, err := readIdentity(dir)
	require.NoError(t, err)
	key, err := makeSignKey(filepath.Join(dir, keyFile), id.Store)
	require.NoError(t, err)
	id.Key = key.verifier
	raw, err := json.Marshal(id)
	require.NoError(t, err)
	changeDB(t, filepath.Join(dir, journalFile), func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyIdentity, raw) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, identityFile), raw, 0o600))
	signAnew(t, dir)
}

// message is the position of the n-th frame of a session.
func message(frames []forgedFrame, session uuid.UUID, n int) int {
	for i := range frames {
		if frames[i].session == session {
			if n--; n == 0 {
				return i
			}
		}
	}
	panic("no such frame")
}

func without(session uuid.UUID) func([]forgedFrame) []forgedFrame {
	return func(frames []forgedFrame) []forgedFrame {
		return slices.DeleteFunc(frames, func(f forgedFrame) bool { return f.session == session })
	}
}

// tampering is one way to change a store behind its back, and what finds it:
// in the logs alone, by the CHECKPOINT beside them, by one that was kept
// elsewhere with the key (and the forger signed anew), and by a note of the heads
// of two sessions (likewise). "" is: by nothing.
type tampering struct {
	name                               string
	change                             func(t *testing.T, dir, early string)
	alone, checkpoint, outside, anchor string
}

var tamperings = []tampering{
	{"a byte of a frame", func(t *testing.T, dir, _ string) {
		changeDB(t, filepath.Join(dir, journalFile), func(tx *bolt.Tx) error {
			b := tx.Bucket(bucketJournal)
			raw := bytes.Clone(b.Get(positionKey(4)))
			raw[len(raw)/2] ^= 1
			return b.Put(positionKey(4), raw)
		})
	}, "frame missing", "frame missing", "frame missing tree", "frame missing"},
	{"a byte of a content", func(t *testing.T, dir, _ string) {
		changeDB(t, filepath.Join(dir, journalFile), func(tx *bolt.Tx) error {
			b := tx.Bucket(bucketContents)
			raw := bytes.Clone(b.Get(contentKey(4, 0, 0)))
			raw[len(raw)/2] ^= 1
			return b.Put(contentKey(4, 0, 0), raw)
		})
	}, "content", "content", "content", "content"},
	{"a record removed", func(t *testing.T, dir, _ string) {
		changeDB(t, filepath.Join(dir, journalFile), func(tx *bolt.Tx) error { return tx.Bucket(bucketJournal).Delete(positionKey(4)) })
	}, "missing", "missing", "missing tree", "missing"},
	{"an event removed, the log chained anew", func(t *testing.T, dir, _ string) {
		forge(t, dir, func(frames []forgedFrame) []forgedFrame {
			i := message(frames, sid(1), 4)
			return slices.Delete(frames, i, i+1)
		})
	}, "", "rollback", "rollback", "anchor"},
	{"an event replaced, the log chained anew", func(t *testing.T, dir, _ string) {
		forge(t, dir, func(frames []forgedFrame) []forgedFrame {
			frames[message(frames, sid(1), 4)].events[0].ID = eid(77)
			return frames
		})
	}, "", "tree", "two-heads", "anchor"},
	{"events reordered", func(t *testing.T, dir, _ string) {
		changeDB(t, filepath.Join(dir, journalFile), func(tx *bolt.Tx) error {
			b := tx.Bucket(bucketJournal)
			x, y := bytes.Clone(b.Get(positionKey(4))), bytes.Clone(b.Get(positionKey(5)))
			require.NoError(t, b.Put(positionKey(4), y))
			return b.Put(positionKey(5), x)
		})
	}, "content missing", "content missing tree", "content missing two-heads", "content missing"},
	{"events reordered, the log chained anew", func(t *testing.T, dir, _ string) {
		forge(t, dir, func(frames []forgedFrame) []forgedFrame {
			i, k := message(frames, sid(1), 4), message(frames, sid(1), 5)
			frames[i], frames[k] = frames[k], frames[i]
			return frames
		})
	}, "", "tree", "two-heads", "anchor"},
	{"the tail cut", func(t *testing.T, dir, _ string) {
		forge(t, dir, func(frames []forgedFrame) []forgedFrame { return frames[:len(frames)-3] })
	}, "", "rollback", "rollback", "anchor"},
	{"a whole child removed", func(t *testing.T, dir, _ string) { forge(t, dir, without(sid(2))) },
		"delegation", "delegation rollback", "delegation rollback", "anchor delegation"},
	{"a whole child removed, and what names it", func(t *testing.T, dir, _ string) {
		forge(t, dir, func(frames []forgedFrame) []forgedFrame {
			return slices.DeleteFunc(without(sid(2))(frames), func(f forgedFrame) bool {
				return f.events[0].Type == TypeDelegationStarted && f.events[0].Facts.UUID("child") == sid(2)
			})
		})
	}, "", "rollback", "rollback", "anchor"},
	{"a receipt changed", func(t *testing.T, dir, _ string) { forge(t, dir, widen(false)) },
		"delegation", "delegation tree", "delegation two-heads", "anchor delegation"},
	{"a receipt changed, and the parent's record of it", func(t *testing.T, dir, _ string) { forge(t, dir, widen(true)) },
		"", "tree", "two-heads", "anchor"},
	{"an older store.db put back", func(t *testing.T, dir, early string) {
		copyFile(t, filepath.Join(early, journalFile), filepath.Join(dir, journalFile))
		require.NoError(t, removeIndex(dir))
	}, "", "rollback", "rollback", "anchor"},
	{"an older copy of everything put back", func(t *testing.T, dir, early string) {
		require.NoError(t, os.RemoveAll(dir))
		copyDir(t, early, dir)
	}, "", "", "rollback", "anchor"},
	{"a cloned directory that went on", func(t *testing.T, dir, early string) {
		require.NoError(t, os.RemoveAll(dir))
		copyDir(t, early, dir)
		s := useStore(t, dir)
		s.say(sid(1), numbers(20)...)
		require.NoError(t, s.Close())
		s.Store = nil
	}, "", "", "two-heads", "anchor"},
	{"signed anew with another key", func(t *testing.T, dir, _ string) { anotherKey(t, dir) },
		"", "", "signature", ""},
	{"changed, and signed anew with another key", func(t *testing.T, dir, _ string) {
		forge(t, dir, func(frames []forgedFrame) []forgedFrame { return frames[:len(frames)-3] })
		anotherKey(t, dir)
	}, "", "", "rollback signature", "anchor"},
}

// widen gives a child more than it was granted.
func widen(parentToo bool) func([]forgedFrame) []forgedFrame {
	return func(frames []forgedFrame) []forgedFrame {
		var digest Hash
		for i := range frames {
			for k := range frames[i].events {
				ev := &frames[i].events[k]
				if ev.Type == TypeDelegationGranted && frames[i].session == sid(2) {
					g := must(ParseGranted(&Event{Type: ev.Type, Version: ev.Version, Facts: ev.Facts}))
					g.ToolCall = "another-call"
					ev.Facts = must(g.Facts())
					digest = Digest(ev.Facts)
				}
			}
		}
		for i := range frames {
			ev := &frames[i].events[0]
			if parentToo && ev.Type == TypeDelegationStarted && ev.Facts.UUID("child") == sid(2) {
				ev.Facts = mustFacts(map[string]any{"child": sid(2), "receipt": digest})
			}
		}
		return frames
	}
}

// TestTamperingTable tries each and prints what finds it. What no column finds
// without help from outside is the reason to keep a checkpoint elsewhere.
func TestTamperingTable(t *testing.T) {
	base := newStore(t)
	base.root(sid(1))
	base.child(sid(1), sid(2), "a")
	base.say(sid(1), "one", "two", "three", "four")
	require.NoError(t, base.Close())
	early := aside(base, "early")
	copyDir(t, base.dir, early)
	base.open()
	base.child(sid(1), sid(3), "b")
	base.say(sid(1), "five", "six")
	base.say(sid(2), "its own")
	outside, err := base.Checkpoint(ctx)
	require.NoError(t, err)
	key, err := ParseVerifierKey(base.VerifierKey())
	require.NoError(t, err)
	var anchors []Anchor
	for n := 1; n <= 2; n++ {
		row := must(base.Row(sid(n)))
		anchors = append(anchors, Anchor{sid(n), row.Head, row.Hash})
	}
	require.NoError(t, base.Close())

	found := func(dir string, against Against) string {
		s, err := Open(ctx, dir, Options{ReadOnly: true})
		require.NoError(t, err)
		defer s.Close()
		report, err := s.Check(ctx, CheckOptions{Against: against})
		require.NoError(t, err)
		kinds := map[string]bool{}
		for _, f := range report.Findings {
			kinds[f.Kind] = true
		}
		names := make([]string, 0, len(kinds))
		for k := range kinds {
			names = append(names, k)
		}
		return strings.Join(sorted(names), " ")
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-50s %-18s %-28s %-28s %s\n", "", "logs alone", "CHECKPOINT beside them", "checkpoint elsewhere + key", "heads elsewhere")
	for i, c := range tamperings {
		t.Run(c.name, func(t *testing.T) {
			dir := func(what string) string {
				dir := filepath.Join(t.TempDir(), what)
				copyDir(t, base.dir, dir)
				c.change(t, dir, early)
				return dir
			}
			forged := strings.Contains(c.name, "another key")
			alone := dir("alone")
			unsign(t, alone)
			beside := dir("beside")
			elsewhere := dir("elsewhere")
			if !forged {
				signAnew(t, elsewhere)
			}
			got := tampering{c.name, nil, found(alone, Against{}), found(beside, Against{}), found(elsewhere, Against{Key: key, Checkpoints: []Checkpoint{outside}}), found(elsewhere, Against{Anchors: anchors})}
			want := c
			want.change = nil
			fmt.Fprintf(&table, "%-50s %-18s %-28s %-28s %s\n", c.name, orDash(got.alone), orDash(got.checkpoint), orDash(got.outside), orDash(got.anchor))
			require.Equal(t, want, got, "row %d", i)
		})
	}
	require.Empty(t, found(base.dir, Against{Key: key, Checkpoints: []Checkpoint{outside}, Anchors: anchors}), "the store itself")
	t.Log("what finds it, by the kinds of the findings:\n" + table.String())
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// TestTwoHeadsUnderOneOrigin: two checkpoints that one key signed and that no log
// can continue both. Neither has to be of the store that is looked at.
func TestTwoHeadsUnderOneOrigin(t *testing.T) {
	ts, early := grown(t)
	clone := useStore(t, early)
	clone.say(sid(1), numbers(6)...)
	theirs, err := clone.Checkpoint(ctx)
	require.NoError(t, err)
	ts.open()
	ours, err := ts.Checkpoint(ctx)
	require.NoError(t, err)
	require.Equal(t, ours.Size, theirs.Size)
	report, err := ts.Check(ctx, CheckOptions{Against: Against{Checkpoints: []Checkpoint{theirs}}})
	require.NoError(t, err)
	require.Equal(t, []string{FindTwoHeads}, report.kinds())
	require.Equal(t, StatusFailed, report.Status())

	// Both are ahead of a third copy, which can say nothing of either but that
	// they contradict each other.
	third := newStoreFrom(t, ts, early)
	report, err = third.Check(ctx, CheckOptions{Against: Against{Checkpoints: []Checkpoint{ours, theirs}}})
	require.NoError(t, err)
	require.Contains(t, report.kinds(), FindTwoHeads)
	third.expectDamage()
}

// newStoreFrom reads the state that both copies had.
func newStoreFrom(t *testing.T, ts *testStore, _ string) *testStore {
	dir := aside(ts, "third")
	copyDir(t, ts.dir, dir)
	forge(t, dir, func(frames []forgedFrame) []forgedFrame { return frames[:200] })
	return useStore(t, dir, Options{ReadOnly: true})
}
