package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

// rec is a record of a bundle that is taken apart.
type rec struct {
	kind byte
	body []byte
}

func split(t testing.TB, b []byte) (out []rec) {
	t.Helper()
	require.True(t, bytes.HasPrefix(b, []byte(magic)))
	for b = b[len(magic):]; len(b) > 0; {
		n := int(binary.LittleEndian.Uint32(b[1:]))
		out = append(out, rec{b[0], bytes.Clone(b[recordHead : recordHead+n])})
		b = b[recordHead+n+4:]
	}
	return out
}

// join puts records together with checksums, and a trailer, that fit: what
// somebody does who knows the format and not the key.
func join(list []rec) []byte {
	b := []byte(magic)
	counts := map[byte]uint64{}
	events := uint64(0)
	for _, r := range list {
		counts[r.kind]++
		if r.kind == kindFrame {
			_, n := binary.Uvarint(r.body)
			if f, err := eventlog.ParseRawFrame(r.body[n:]); err == nil {
				events += uint64(len(f.Events))
			}
		}
		if r.kind == kindChunk {
			_, n := binary.Uvarint(r.body)
			if chunk, _ := binary.Uvarint(r.body[n:]); chunk > 0 {
				counts[kindChunk]--
			}
		}
		if r.kind == kindEnd {
			c := cursor{b: r.body}
			for range 5 {
				c.uvarint()
			}
			var body []byte
			for _, n := range []uint64{counts[kindSession], counts[kindFrame], events, counts[kindChunk], counts[kindWithout]} {
				body = binary.AppendUvarint(body, n)
			}
			sum := sha256.Sum256(b)
			r.body = append(append(body, c.take(32)...), sum[:]...)
		}
		start := len(b)
		b = append(b, r.kind)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(r.body)))
		b = append(b, r.body...)
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
	}
	return b
}

// rewrite changes bytes of a frame and mends its checksum.
func rewrite(t testing.TB, r rec, old, new string) rec {
	t.Helper()
	require.Contains(t, string(r.body), old)
	_, n := binary.Uvarint(r.body)
	raw := bytes.Replace(r.body[n:len(r.body)-4], []byte(old), []byte(new), 1)
	raw = binary.LittleEndian.AppendUint32(raw, crc32.Checksum(raw, castagnoli))
	return rec{r.kind, append(bytes.Clone(r.body[:n]), raw...)}
}

// flipped changes the last bit of a record's body.
func flipped(r rec) rec {
	body := bytes.Clone(r.body)
	body[len(body)-1] ^= 1
	return rec{r.kind, body}
}

// TestTampered: whatever is changed in a bundle, with everything mended that can
// be mended without the key, is found and named for what it is.
func TestTampered(t *testing.T) {
	s := newStore(t)
	_, child, grandchild, _ := family(t, s)
	n := newNotary(t, "demo")
	note := n.checkpoint(t, s, s.Durable())
	whole := split(t, export(t, s, Options{Note: note}))
	some := split(t, export(t, s, Options{Sessions: []uuid.UUID{child, grandchild}, Note: note}))
	require.Equal(t, export(t, s, Options{Note: note}), join(whole), "taking apart and putting together changes nothing")
	at := func(list []rec, kind byte, nth int) int {
		for i, r := range list {
			if r.kind == kind {
				if nth--; nth < 0 {
					return i
				}
			}
		}
		t.Fatalf("no record %c", kind)
		return 0
	}
	with := func(list []rec, i int, r rec) []rec { return slices.Replace(slices.Clone(list), i, i+1, r) }
	without := func(list []rec, i ...int) []rec {
		var out []rec
		for k, r := range list {
			if !slices.Contains(i, k) {
				out = append(out, r)
			}
		}
		return out
	}
	// the frames of a session, with their contents, give way to nothing
	dropped := func(list []rec, id uuid.UUID) (out []rec) {
		skip := false
		for _, r := range list {
			if r.kind == kindFrame {
				skip = bytes.Contains(r.body[:64], id[:])
			} else if r.kind != kindChunk {
				skip = r.kind == kindSession && bytes.HasPrefix(r.body, id[:])
			}
			if !skip {
				out = append(out, r)
			}
		}
		return out
	}
	swapped := slices.Clone(whole)
	a, b := at(whole, kindSession, 0), at(whole, kindSession, 1)
	swapped[a].body, swapped[b].body = append(bytes.Clone(whole[a].body[:17]), whole[b].body[17:]...), append(bytes.Clone(whole[b].body[:17]), whole[a].body[17:]...)
	receipt := slices.IndexFunc(whole, func(r rec) bool { return r.kind == kindFrame && bytes.Contains(r.body, []byte("delegation/granted")) })
	other := newNotary(t, "demo")
	cutChunk := at(whole, kindChunk, 1)
	long := at(whole, kindChunk, 3)
	for _, c := range []struct {
		name   string
		list   []rec
		status Status
		kind   string
	}{
		{"nothing", whole, Verified, ""},
		{"nothing of a selection", some, Verified, ""},
		{"an event's type in its header", with(whole, at(whole, kindFrame, 1), rewrite(t, whole[at(whole, kindFrame, 1)], "assistant/", "assistent/")), Failed, FindTree},
		{"a receipt", with(whole, receipt, rewrite(t, whole[receipt], "never", "asked")), Failed, eventlog.FindDelegation},
		{"a frame left out", without(whole, at(whole, kindFrame, 2), cutChunk), Failed, ""},
		{"the last frame left out", without(whole, at(whole, kindFrame, len(framesOf(whole))-1), len(whole)-2), Failed, FindTree},
		{"a whole child left out", dropped(whole, child), Failed, ""},
		{"frames exchanged", with(with(whole, at(whole, kindFrame, 1), whole[at(whole, kindFrame, 2)]), at(whole, kindFrame, 2), whole[at(whole, kindFrame, 1)]), Failed, ""},
		{"a content left out", without(whole, cutChunk), Incomplete, eventlog.FindContent},
		{"a content of another", with(whole, long, rec{kindChunk, append(bytes.Clone(whole[long].body[:2]), whole[cutChunk].body[2:]...)}), Failed, eventlog.FindContent},
		{"heads exchanged", swapped, Failed, ""},
		{"the checkpoint left out", without(whole, at(whole, kindNote, 0)), Incomplete, FindSignature},
		{"signed by another key of the same name", with(whole, at(whole, kindNote, 0), rec{kindNote, other.checkpoint(t, s, s.Durable())}), Failed, FindSignature},
		{"a subtree left out", without(some, at(some, kindSubtree, 0)), Failed, ""},
		{"a subtree changed", with(some, at(some, kindSubtree, 0), flipped(some[at(some, kindSubtree, 0)])), Failed, FindTree},
		{"a selection that says whole", with(some, 0, rec{kindHead, append([]byte{formatVersion, flagWhole}, some[0].body[2:]...)}), Incomplete, eventlog.FindMissing},
	} {
		r := verify(t, join(c.list), Anchors{Key: n.verifier, Checkpoint: note})
		require.Equal(t, c.status, r.Status(), "%s: %v", c.name, r.Findings)
		if c.kind != "" {
			require.True(t, slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Kind == c.kind }), "%s: %v", c.name, r.Findings)
		}
		if c.status != Failed {
			continue
		}
		to := newStore(t)
		_, err := importInto(t, to, join(c.list), Anchors{Key: n.verifier})
		require.Error(t, err, c.name)
		require.Zero(t, to.Durable(), c.name)
	}
}

func framesOf(list []rec) (out []rec) {
	for _, r := range list {
		if r.kind == kindFrame {
			out = append(out, r)
		}
	}
	return out
}

// TestEveryByte: a byte that is changed anywhere, and a file that ends anywhere,
// is found.
func TestEveryByte(t *testing.T) {
	s := newStore(t)
	family(t, s)
	n := newNotary(t, "demo")
	b := export(t, s, Options{Note: n.checkpoint(t, s, s.Durable())})
	step := 1
	if testing.Short() {
		step = 41
	}
	for i := 0; i < len(b); i += step {
		bad := bytes.Clone(b)
		bad[i] ^= 1 << (i % 8)
		r, err := Verify(ctx, bytes.NewReader(bad), Anchors{Key: n.verifier})
		require.True(t, err != nil || r.Status() == Failed, "byte %d", i)
		r, err = Verify(ctx, bytes.NewReader(b[:i]), Anchors{Key: n.verifier})
		require.True(t, err != nil || r.Status() == Failed, "cut at %d", i)
	}
	r, err := Verify(ctx, bytes.NewReader(append(bytes.Clone(b), 0)), Anchors{Key: n.verifier})
	require.NoError(t, err)
	require.Equal(t, Failed, r.Status())
}

// TestForeignCheckpoint: a checkpoint that was kept outside tells a bundle that
// ends before it from one that does not continue it.
func TestForeignCheckpoint(t *testing.T) {
	s := newStore(t)
	root, _, _, _ := family(t, s)
	n := newNotary(t, "demo")
	o := Options{Note: n.checkpoint(t, s, s.Durable())}
	b := export(t, s, o)
	say(t, s, root, "later")
	later := n.checkpoint(t, s, s.Durable())
	r := verify(t, b, Anchors{Key: n.verifier, Checkpoint: later})
	require.Equal(t, Incomplete, r.Status(), "it is older, or its end was cut off")
	require.Contains(t, r.Findings[0].Detail, "older, or its end was cut off")
	r = verify(t, export(t, s, Options{Note: later}), Anchors{Key: n.verifier, Checkpoint: o.Note})
	require.Equal(t, Verified, r.Status(), "the tree continues what was signed before")
	require.True(t, r.Anchored)
	forked := newStore(t)
	family(t, forked)
	_, err := Verify(ctx, bytes.NewReader(b), Anchors{Key: newNotary(t, "demo").verifier, Checkpoint: later})
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	r = verify(t, b, Anchors{Checkpoint: n.checkpoint(t, forked, 3)})
	require.Equal(t, Incomplete, r.Status())
	require.Contains(t, r.Findings[0].Detail, "or it is another")
}

// TestFilter: what the filter finds is left out with its salt, what is left
// proves itself, and facts can't be left out.
func TestFilter(t *testing.T) {
	s := newStore(t)
	root, _, _, _ := family(t, s)
	say(t, s, root, "the token is s3cr3t")
	n := newNotary(t, "demo")
	o := Options{Note: n.checkpoint(t, s, s.Durable()), Filter: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("s3cr3t"), nil) }}
	b := export(t, s, o)
	require.NotContains(t, string(b), "s3cr3t")
	r := verify(t, b, Anchors{Key: n.verifier})
	require.Equal(t, Redacted, r.Status())
	require.Equal(t, uint64(1), r.Withheld)
	to := newStore(t)
	_, err := importInto(t, to, b, Anchors{Key: n.verifier})
	require.NoError(t, err)
	equalLogs(t, s, to)
	again := verify(t, export(t, to, Options{Note: n.checkpoint(t, to, to.Durable())}), Anchors{Key: n.verifier})
	require.Equal(t, Redacted, again.Status(), "it came without it")
	_, err = Export(ctx, s, &bytes.Buffer{}, Options{Filter: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("read-only"), nil) }})
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	require.ErrorContains(t, err, "a bundle can't leave out")
}

// FuzzBundle: no input makes the reader panic, take memory out of proportion or
// call something proven that the key did not sign.
func FuzzBundle(f *testing.F) {
	s := newStore(f)
	_, child, _, _ := family(f, s)
	n := newNotary(f, "demo")
	note := n.checkpoint(f, s, s.Durable())
	whole, some := export(f, s, Options{Note: note}), export(f, s, Options{Note: note, Sessions: []uuid.UUID{child}})
	f.Add(whole, false)
	f.Add(some, true)
	f.Add([]byte(magic), false)
	f.Fuzz(func(t *testing.T, b []byte, mend bool) {
		if mend && bytes.HasPrefix(b, []byte(magic)) && parts(b) {
			b = join(split(t, b))
		}
		r, err := Verify(ctx, bytes.NewReader(b), Anchors{Key: n.verifier})
		if err == nil && r.Status() == Verified && !bytes.Equal(b, whole) && !bytes.Equal(b, some) {
			require.Equal(t, note, r.Note, "proven by another checkpoint")
		}
	})
}

// parts reports whether b can be taken apart.
func parts(b []byte) bool {
	for b = b[len(magic):]; len(b) > 0; {
		if len(b) < recordHead+4 {
			return false
		}
		n := uint64(binary.LittleEndian.Uint32(b[1:]))
		if n > uint64(len(b)-recordHead-4) || b[0] == kindEnd && n < 5+64 {
			return false
		}
		b = b[recordHead+int(n)+4:]
	}
	return true
}
