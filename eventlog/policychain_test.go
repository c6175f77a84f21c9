package eventlog

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// pile is a source of hand-made frames.
type pile struct {
	list  []framePos
	raw   map[uint64][]byte
	doubt error
}

func (p *pile) frames(_ *entry, seq uint64, limit int) (out []framePos, _ error) {
	for i, at := range p.list {
		if i+1 < len(p.list) && p.list[i+1].first <= seq {
			continue
		}
		out = append(out, at)
	}
	return out[:min(len(out), limit)], nil
}

func (p *pile) frame(position uint64) ([]byte, error) { return p.raw[position], nil }

type doubtful struct{ *pile }

func (d doubtful) peek(position uint64, fn func([]byte) error) error {
	raw, err := d.frame(position)
	if err != nil {
		return err
	}
	return fn(raw)
}

func (d doubtful) doubt(*Row) error { return d.pile.doubt }

// put adds the frame of one event.
func (p *pile) put(seq, prev, last uint64, ev *pending) {
	f := frame{session: sid(1), first: seq, count: 1, lastPolicy: last}
	header := appendHeader(nil, ev, seq, prev)
	f.headers = append(appendUvarint(nil, uint64(len(header))), header...)
	at := framePos{pos: uint64(len(p.list)), first: seq}
	p.list = append(p.list, at)
	p.raw[at.pos] = appendFrame(nil, &f)
}

// TestPolicyChain: what a policy is read from. Each break of the chain refuses
// it, with every checksum right.
func TestPolicyChain(t *testing.T) {
	created := &pending{typ: TypeSessionCreated, version: 1, policy: true}
	narrowed := &pending{typ: TypePolicyNarrowed, version: 1, policy: true}
	talk := &pending{typ: "user/message", version: 1}
	for _, c := range []struct {
		name, want string
		build      func(*pile, *entry)
	}{
		{"sound", "", func(*pile, *entry) {}},
		{"the row knows of damage", "missing events", func(_ *pile, e *entry) { e.row.damage(2, 2, "missing events") }},
		{"a lost frame may be its newest", "in doubt", func(p *pile, _ *entry) { p.doubt = invalidf("in doubt") }},
		{"the head's frame is another session's", "the index and the head frame disagree", func(_ *pile, e *entry) { e.row.Session = sid(2) }},
		{"the head is further on", "the index and the head frame disagree", func(_ *pile, e *entry) { e.row.Head = 5 }},
		{"the head's frame is gone", "magic", func(p *pile, _ *entry) { delete(p.raw, 3) }},
		{"a policy event is gone", "frame is missing", func(p *pile, _ *entry) { delete(p.raw, 1) }},
		{"no frame at all", "no frame for the head", func(p *pile, _ *entry) { p.list = nil }},
		{"a link to what is no policy event", "policy link broken", func(p *pile, e *entry) { p.put(5, 4, 4, talk); e.row.Head = 5 }},
		{"a link to itself", "policy link broken", func(p *pile, e *entry) { p.put(5, 5, 5, narrowed); e.row.Head = 5 }},
		{"a link ahead", "policy link broken", func(p *pile, e *entry) { p.put(5, 6, 5, narrowed); p.put(6, 5, 6, narrowed); e.row.Head = 6 }},
		{"it ends before the beginning", "does not reach session/created", func(p *pile, e *entry) { p.put(5, 0, 5, narrowed); e.row.Head = 5 }},
		{"a head that knows of no policy", "does not reach session/created", func(p *pile, e *entry) { p.put(5, 0, 0, talk); e.row.Head = 5 }},
		{"it begins with something else", "does not reach session/created", func(p *pile, e *entry) {
			*p = pile{raw: map[uint64][]byte{}}
			p.put(1, 0, 1, narrowed)
			e.row.Head = 1
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &pile{raw: map[uint64][]byte{}}
			p.put(1, 0, 1, created)
			p.put(2, 1, 2, narrowed)
			p.put(3, 0, 2, talk)
			p.put(4, 0, 2, talk)
			e := &entry{row: Row{Session: sid(1), Head: 4}}
			c.build(p, e)
			events, err := policyChain(e, doubtful{p})
			if c.want == "" {
				require.NoError(t, err)
				require.Equal(t, []uint64{1, 2}, seqsOf(events))
				return
			}
			require.ErrorIs(t, err, ErrPolicyUnreadable)
			require.ErrorContains(t, err, c.want)
			require.Empty(t, events)
		})
	}
}

// TestSkippedPolicyEvent: the newest event is rewritten so that it links past
// a narrowing, with a right checksum. The fold and the check see it.
func TestSkippedPolicyEvent(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.narrow(id)
	ts.narrow(id)
	ts.change(bucketJournal, positionKey(2), func(raw []byte) []byte {
		var ev Event
		r, err := newFrameReader(raw)
		require.NoError(t, err)
		_, err = r.next(&ev)
		require.NoError(t, err)
		ev.PrevPolicy = 1
		header := encodeEvent(&ev)
		f := r.frame
		f.headers = append(appendUvarint(nil, uint64(len(header))), header...)
		return appendFrame(nil, &f)
	})
	require.NoError(t, removeIndex(ts.dir))
	unsign(t, ts.dir)
	ts.open(Options{ReadOnly: true})
	_, _, err := ts.Policy(ctx, id, 0)
	require.ErrorIs(t, err, ErrPolicyUnreadable)
	report, err := ts.Check(ctx, CheckOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{FindLink}, report.kinds())
	require.Equal(t, uint64(3), report.Findings[0].Seq)
}

// TestIndexThatLies: rows that are sealed and counted and wrong. Reads end, and
// nothing is made up.
func TestIndexThatLies(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.narrow(id)
	ts.say(id, "x")
	ts.flushIndex()
	ts.expectDamage()
	lie := func(change func(*Row)) {
		require.NoError(t, ts.Close())
		changeDB(t, filepath.Join(ts.dir, indexFile), func(tx *bolt.Tx) error {
			ix := tx.Bucket(bucketRows)
			row := Row{}
			raw, err := unseal(id[:], ix.Get(id[:]), "row")
			require.NoError(t, err)
			require.NoError(t, unmarshalRow(raw, &row))
			change(&row)
			return ix.Put(id[:], seal(id[:], marshalRow(t, &row)))
		})
		ts.open(Options{ReadOnly: true})
	}
	lie(func(r *Row) { r.Head = 9 })
	seqs, holes := ts.seqs(id)
	require.Equal(t, upTo(3), seqs)
	require.Equal(t, []string{"4-9"}, holes)
	events, _, err := ts.Policy(ctx, id, 0)
	require.ErrorIs(t, err, ErrPolicyUnreadable, "%v", seqsOf(events))
	report, err := ts.Check(ctx, CheckOptions{})
	require.NoError(t, err)
	require.Contains(t, report.kinds(), FindIndex)

	lie(func(r *Row) { r.Head, r.Label = 3, "not what the log says" })
	report, err = ts.Check(ctx, CheckOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{FindIndex}, report.kinds(), "the row is not the fold of the log")
	events, _, err = ts.Policy(ctx, id, 0)
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 2}, seqsOf(events), "policy is not read from it")
}

// TestIndexWithADamagedFreelist: bbolt panics when it opens such a file.
func TestIndexWithADamagedFreelist(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.flushIndex()
	require.NoError(t, ts.Close())
	path := filepath.Join(ts.dir, indexFile)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	size := pageSizeOf(raw)
	for meta := range 2 { // whichever of the two it uses
		list := int(binary.LittleEndian.Uint64(raw[meta*size+16+32:])) * size
		binary.LittleEndian.PutUint16(raw[list+8:], 2)
	}
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	ts.open()
	require.Contains(t, ts.Notices()[0], "index not used: ")
	row, err := ts.Row(id)
	require.NoError(t, err)
	require.Equal(t, uint64(1), row.Head)
}
