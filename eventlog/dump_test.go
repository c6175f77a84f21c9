package eventlog

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// dump prints bytes field by field. It follows the layouts drawn in frame.go,
// header.go and content.go and shares no code with the decoders there, so that
// a golden dump says the same as the drawings.
type dump struct {
	t    *testing.T
	b    []byte
	off  int
	out  strings.Builder
	pref string
}

// field prints the next n bytes and what they mean, and returns them.
func (d *dump) field(n int, name, meaning string) []byte {
	d.t.Helper()
	require.LessOrEqual(d.t, d.off+n, len(d.b), name)
	b := d.b[d.off : d.off+n]
	for i := 0; i == 0 || i < n; i += 16 {
		line := fmt.Sprintf("%04x  %-48s", d.off+i, fmt.Sprintf("% x", b[i:min(n, i+16)]))
		if i == 0 {
			line += fmt.Sprintf("%s%-16s %s", d.pref, name, meaning)
		}
		d.out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	d.off += n
	return b
}

func (d *dump) uvarint(name string) uint64 {
	v, n := binary.Uvarint(d.b[d.off:])
	d.field(n, name, fmt.Sprint(v))
	return v
}

func (d *dump) u8(name string, meaning func(byte) string) byte {
	v := d.b[d.off]
	return d.field(1, name, meaning(v))[0]
}

func decimal(v byte) string { return fmt.Sprint(v) }

func flagNames(names ...string) func(byte) string {
	return func(v byte) string {
		var set []string
		for i, name := range names {
			if v&(1<<i) != 0 {
				set = append(set, name)
			}
		}
		return strings.Join(set, ", ")
	}
}

func dumpFrame(t *testing.T, b []byte) string {
	d := &dump{t: t, b: b}
	d.field(4, "magic", `"CLF1"`)
	n := binary.LittleEndian.Uint32(b[4:])
	d.field(4, "len", fmt.Sprintf("%d bytes follow", n))
	require.Len(t, b, int(n)+8)
	d.u8("flags", flagNames("continues the unit"))
	d.uvarint("frames_left")
	d.field(16, "session", uuid.UUID(b[d.off:d.off+16]).String())
	d.uvarint("first seq")
	count := d.uvarint("count")
	d.field(32, "prev hash", "")
	d.uvarint("last_policy")
	for i := range count {
		hlen := d.uvarint("hlen")
		d.pref = fmt.Sprintf("%d.", i+1)
		d.header(int(hlen))
		d.pref = ""
	}
	d.field(4, "crc32c", fmt.Sprintf("%08x", binary.LittleEndian.Uint32(b[d.off:])))
	require.Equal(t, len(b), d.off)
	return d.out.String()
}

func (d *dump) header(n int) {
	end := d.off + n
	d.u8("version", decimal)
	flags := d.u8("flags", flagNames("ignorable", "policy", "inherited", "content"))
	d.u8("source", func(v byte) string { return sourceNames[v] })
	tlen := d.u8("tlen", decimal)
	d.field(int(tlen), "type", string(d.b[d.off:d.off+int(tlen)]))
	d.field(16, "id", uuid.UUID(d.b[d.off:d.off+16]).String())
	d.uvarint("seq")
	ns := int64(binary.LittleEndian.Uint64(d.b[d.off:]))
	d.field(8, "time", time.Unix(0, ns).UTC().Format(time.RFC3339Nano))
	if flags&2 != 0 {
		d.uvarint("prev_policy")
	}
	if flags&4 != 0 {
		d.field(16, "inherited from", uuid.UUID(d.b[d.off:d.off+16]).String())
		d.uvarint("inherited seq")
	}
	if flags&8 != 0 {
		d.u8("media", func(v byte) string { return mediaNames[v] })
		d.uvarint("content length")
		d.field(32, "commitment", "")
	}
	d.facts(end)
	require.Equal(d.t, end, d.off)
}

// facts prints msgpack token by token.
func (d *dump) facts(end int) {
	for d.off < end {
		c := d.b[d.off]
		length := func(size int) int { // of a payload whose length takes size bytes
			var n int
			for _, b := range d.b[d.off+1 : d.off+1+size] {
				n = n<<8 | int(b)
			}
			return n
		}
		integer := func(size int) { d.field(1+size, "facts", fmt.Sprint(length(size))) }
		str := func(head, n int) {
			s := string(d.b[d.off+head : d.off+head+n])
			d.field(head+n, "facts", fmt.Sprintf("%q", strings.Map(func(r rune) rune {
				if !unicode.IsPrint(r) {
					return '?'
				}
				return r
			}, s)))
		}
		octets := func(head, n int) { d.field(head+n, "facts", fmt.Sprintf("%d bytes", n)) }
		switch {
		case c <= 0x7f:
			d.field(1, "facts", decimal(c))
		case c <= 0x8f:
			d.field(1, "facts", fmt.Sprintf("map of %d", c&15))
		case c <= 0x9f:
			d.field(1, "facts", fmt.Sprintf("list of %d", c&15))
		case c <= 0xbf:
			str(1, int(c&31))
		case c == 0xc0:
			d.field(1, "facts", "null")
		case c == 0xc2, c == 0xc3:
			d.field(1, "facts", fmt.Sprint(c == 0xc3))
		case c == 0xc4:
			octets(2, length(1))
		case c == 0xcc, c == 0xcd, c == 0xce, c == 0xcf:
			integer(1 << (c - 0xcc))
		case c == 0xd9:
			str(2, length(1))
		case c >= 0xe0:
			d.field(1, "facts", fmt.Sprint(int8(c)))
		default:
			require.FailNow(d.t, "dump", "code %02x at %d", c, d.off)
		}
	}
}

func dumpChunk(t *testing.T, b []byte, first bool) string {
	d := &dump{t: t, b: b}
	d.u8("flags", flagNames("zstd"))
	if first {
		d.field(16, "salt", "chunk 0 only")
	}
	d.field(len(b)-d.off-4, "bytes", "")
	d.field(4, "crc32c", fmt.Sprintf("%08x", binary.LittleEndian.Uint32(b[d.off:])))
	return d.out.String()
}

// undump collects the bytes of a dump again.
func undump(t *testing.T, s string) []byte {
	var out []byte
	for _, line := range strings.Split(s, "\n") {
		if len(line) < 6 || line[0] == '#' {
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(line[6:min(len(line), 54)]), " ", ""))
		require.NoError(t, err, line)
		out = append(out, b...)
	}
	return out
}
