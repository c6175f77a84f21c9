package eventlog

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The codec's two laws: what is encoded decodes to the same, and whatever is
// accepted encodes to the same bytes again. The second one makes hashes of
// frames comparable: no event has two encodings.

func genUUID() *rapid.Generator[uuid.UUID] {
	return rapid.Map(rapid.SliceOfN(rapid.Byte(), 16, 16), func(b []byte) uuid.UUID { return uuid.UUID(b) })
}

// genFact draws any value that MakeFacts takes, in the types that Map returns.
func genFact(depth int) *rapid.Generator[any] {
	plain := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		rapid.Int64Range(-maxInteger, maxInteger).AsAny(),
		rapid.SampledFrom([]int64{0, -1, -32, -33, -128, -129, -32768, -32769, math.MinInt32, math.MinInt32 - 1, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, maxInteger, -maxInteger}).AsAny(),
		rapid.String().AsAny(),
		rapid.Map(rapid.IntRange(0, 300), func(n int) string { return string(bytes.Repeat([]byte{'x'}, n)) }).AsAny(),
		rapid.SliceOfN(rapid.Byte(), 0, 300).AsAny(),
	}
	if depth > 0 {
		plain = append(plain,
			rapid.SliceOfN(genFact(depth-1), 0, 20).AsAny(),
			rapid.MapOfN(rapid.StringN(0, 5, 20), genFact(depth-1), 0, 20).AsAny())
	}
	return rapid.OneOf(plain...)
}

func genFacts() *rapid.Generator[Facts] {
	return rapid.Custom(func(t *rapid.T) Facts {
		f, err := MakeFacts(rapid.MapOfN(rapid.StringN(0, 5, 20), genFact(2), 0, 20).Draw(t, "facts"))
		require.NoError(t, err)
		return f
	})
}

func TestFactsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOfN(rapid.StringN(0, 5, 20), genFact(3), 0, 20).Draw(t, "facts")
		f, err := MakeFacts(m)
		if err != nil {
			require.ErrorIs(t, err, ErrTooLarge)
			return
		}
		got, err := f.Map()
		require.NoError(t, err)
		require.Equal(t, m, got)
		for key := range m { // the reader without allocations sees the same
			s, _ := m[key].(string)
			require.Equal(t, s, f.Str(key))
			n, _ := m[key].(int64)
			require.Equal(t, uint64(max(n, 0)), f.Uint(key))
			b, _ := m[key].(bool)
			require.Equal(t, b, f.Bool(key))
		}
	})
}

// genPending draws an event as it goes into a frame.
func genPending() *rapid.Generator[*pending] {
	return rapid.Custom(func(t *rapid.T) *pending {
		p := &pending{
			id:        genUUID().Draw(t, "id"),
			typ:       rapid.OneOf(rapid.SampledFrom([]string{TypeSessionCreated, "tool/call", "sandbox/mode", "a/b"}), rapid.StringMatching(`[a-z0-9.-]{1,20}/[a-z0-9./-]{1,40}`)).Draw(t, "type"),
			version:   rapid.Byte().Draw(t, "version"),
			source:    Source(rapid.Byte().Draw(t, "source")),
			ignorable: rapid.Bool().Draw(t, "ignorable"),
			policy:    rapid.Bool().Draw(t, "policy"),
			time:      rapid.Int64().Draw(t, "time"),
			facts:     genFacts().Draw(t, "facts"),
			media:     Media(rapid.IntRange(0, 3).Draw(t, "media")),
		}
		if rapid.Bool().Draw(t, "inherited") {
			p.inherited = &Ref{Session: genUUID().Draw(t, "from"), Seq: rapid.Uint64().Draw(t, "from seq")}
		}
		if p.media != MediaNone {
			p.content = make([]byte, rapid.IntRange(0, 70000).Draw(t, "length"))
			copy(p.commitment[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "commitment"))
		}
		return p
	})
}

// requireEvent compares what was encoded with what was decoded.
func requireEvent(t require.TestingT, p *pending, seq, prevPolicy uint64, ev *Event) {
	want := *p.event(ev.Session, seq, prevPolicy, ev.Position)
	want.Content = nil
	if !want.PolicyBearing {
		want.PrevPolicy = 0
	}
	got := *ev
	require.True(t, want.Time.Equal(got.Time))
	want.Time, got.Time = time.Time{}, time.Time{}
	require.Equal(t, want, got)
}

func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genPending().Draw(t, "event")
		seq, prev := rapid.Uint64().Draw(t, "seq"), rapid.Uint64().Draw(t, "prev")
		raw := appendHeader(nil, p, seq, prev)
		var ev Event
		require.NoError(t, decodeHeader(raw, &ev))
		requireEvent(t, p, seq, prev, &ev)
		require.Equal(t, raw, encodeEvent(&ev))
		for cut := range raw[:len(raw)-1] {
			require.Error(t, decodeHeader(raw[:cut], new(Event)), "cut at %d", cut)
		}
	})
}

// encodeEvent encodes what decodeHeader read.
func encodeEvent(ev *Event) []byte {
	p := &pending{id: ev.ID, typ: ev.Type, version: ev.Version, source: ev.Source, ignorable: ev.Ignorable, policy: ev.PolicyBearing, inherited: ev.Inherited,
		time: ev.Time.UnixNano(), facts: ev.Facts, media: ev.Media, content: make([]byte, ev.ContentLen), commitment: ev.Commitment}
	return appendHeader(nil, p, ev.Seq, ev.PrevPolicy)
}

func TestFrameRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(genPending(), 1, 5).Draw(t, "events")
		f := frame{continues: rapid.Bool().Draw(t, "continues"), framesLeft: rapid.Uint64Range(0, MaxUnitFrames-1).Draw(t, "left"),
			session: genUUID().Draw(t, "session"), first: rapid.Uint64Range(1, math.MaxUint64-10).Draw(t, "first"), count: uint64(len(events))}
		f.lastPolicy = rapid.Uint64Range(0, f.last()).Draw(t, "last policy")
		for i, p := range events {
			header := appendHeader(nil, p, f.first+uint64(i), 1)
			f.headers = append(appendUvarint(f.headers, uint64(len(header))), header...)
		}
		raw := appendFrame(nil, &f)
		got, err := decodeFrame(raw)
		require.NoError(t, err)
		require.Equal(t, f, got)
		decoded, err := decodeAll(raw)
		require.NoError(t, err)
		for i := range events {
			requireEvent(t, events[i], f.first+uint64(i), 1, &decoded[i])
		}

		// One flipped bit anywhere is found.
		bit := rapid.IntRange(0, len(raw)*8-1).Draw(t, "bit")
		raw[bit/8] ^= 1 << (bit % 8)
		_, err = decodeFrame(raw)
		require.Error(t, err)
	})
}

func decodeAll(raw []byte) (events []Event, err error) {
	r, err := newFrameReader(raw)
	if err != nil {
		return nil, err
	}
	for {
		var ev Event
		if header, err := r.next(&ev); err != nil || header == nil {
			return events, err
		}
		events = append(events, ev)
	}
}

// reseal recomputes a frame's length and checksum, as somebody would who
// changes a frame on purpose.
func reseal(raw []byte) []byte {
	if len(raw) < frameHead+4 {
		return raw
	}
	raw = bytes.Clone(raw)
	copy(raw, frameMagic)
	binary.LittleEndian.PutUint32(raw[4:], uint32(len(raw)-frameHead))
	binary.LittleEndian.PutUint32(raw[len(raw)-4:], crc32.Checksum(raw[:len(raw)-4], castagnoli))
	return raw
}

// TestFrameRefusals: fields that the checksum covers but that make no sense.
func TestFrameRefusals(t *testing.T) {
	ok := frame{session: sid(1), first: 1, count: 1, headers: []byte{1, 0}}
	for _, c := range []struct {
		name, want string
		change     func(*frame)
	}{
		{"seq 0", "first seq 0 and count 1 are no range", func(f *frame) { f.first = 0 }},
		{"no event", "first seq 1 and count 0 are no range", func(f *frame) { f.count = 0 }},
		{"more events than a batch has", "count 4097 are no range", func(f *frame) { f.count = MaxBatchEvents + 1 }},
		{"seqs that wrap around", "are no range", func(f *frame) { f.first, f.count = math.MaxUint64, 2 }},
		{"a unit over the limit", "frames_left: want less than 10000, got 10000", func(f *frame) { f.framesLeft = MaxUnitFrames }},
		{"policy that is still to come", "last_policy 2 lies after the frame's last seq 1", func(f *frame) { f.lastPolicy = 2 }},
	} {
		f := ok
		c.change(&f)
		_, err := decodeFrame(appendFrame(nil, &f))
		require.ErrorContains(t, err, c.want, c.name)
	}
	header := func(p *pending) error { return decodeHeader(appendHeader(nil, p, 1, 0), new(Event)) }
	require.ErrorContains(t, header(&pending{typ: "a/b", media: MediaText, content: make([]byte, MaxContent+1)}), "content length: want at most 16777216, got 16777217")
	require.ErrorContains(t, header(&pending{typ: "a/b", media: 4}), "media: want 1 to 3, got 4")
	require.ErrorContains(t, header(&pending{typ: "A/b"}), "lower case letters")
	require.ErrorContains(t, header(&pending{typ: "a/b", facts: Facts{0xc0}}), "want a map")
	unknown := appendHeader(nil, &pending{typ: "a/b"}, 1, 0)
	unknown[1] = 0x80
	require.ErrorContains(t, decodeHeader(unknown, new(Event)), "flags: unknown bits in 0x80")
	raw := appendFrame(nil, &ok)
	raw[8] = 4
	_, err := decodeFrame(reseal(raw))
	require.ErrorContains(t, err, "flags: unknown bits in 0x04")
	for n := range raw {
		_, err := decodeFrame(reseal(raw[:n]))
		require.Error(t, err, "cut at %d", n)
	}
	_, err = decodeFrame(append(raw, 0))
	require.ErrorContains(t, err, "length: want")
}
