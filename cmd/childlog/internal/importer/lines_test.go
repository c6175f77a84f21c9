package importer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/files"
	"childlog/eventlog"
)

// readAll reads every whole line and checks what each says of itself.
func readAll(t testing.TB, raw []byte, r io.Reader, limit int) (*LineReader, int) {
	t.Helper()
	lr := NewLineReader(r, limit)
	n := 0
	for {
		line, err := lr.Next()
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			_, again := lr.Next()
			require.Equal(t, err, again)
			return lr, n
		}
		n++
		want := raw[line.Offset : line.Offset+line.Len]
		require.EqualValues(t, n, line.Number)
		require.Equal(t, sha256.Sum256(want), line.Sum)
		require.Equal(t, byte('\n'), raw[line.Offset+line.Len])
		require.Equal(t, line.Len > int64(limit), line.TooLong)
		if !line.TooLong {
			require.Equal(t, string(want), string(line.Bytes))
		}
		end := line.Offset + line.Len + 1
		require.Equal(t, Prefix{Lines: line.Number, Bytes: end, Sum: sha256.Sum256(raw[:end])}, lr.Prefix())
	}
}

// TestLines: lines of every length around the reader's buffer and limit, and a
// torn end of every length, read through readers of every habit.
func TestLines(t *testing.T) {
	const limit = 300 << 10
	for _, size := range []int{0, 1, 100, 256<<10 - 1, 256 << 10, 256<<10 + 1, limit - 1, limit, limit + 1, 2 * limit} {
		for _, torn := range []int{0, 1, limit + 1} {
			raw := []byte("first\n" + strings.Repeat("x", size) + "\n\n\r\nlast\n" + strings.Repeat("t", torn))
			for _, r := range []io.Reader{bytes.NewReader(raw), iotest.HalfReader(bytes.NewReader(raw)), iotest.DataErrReader(bytes.NewReader(raw))} {
				lr, n := readAll(t, raw, r, limit)
				require.Equal(t, 5, n)
				require.EqualValues(t, torn, lr.Torn())
				require.EqualValues(t, len(raw)-torn, lr.Prefix().Bytes)
			}
		}
	}
	lr, n := readAll(t, nil, strings.NewReader(""), 10)
	require.Zero(t, n)
	require.Zero(t, lr.Torn())
}

// TestLinesRandom compares with bytes.Split.
func TestLinesRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		raw := make([]byte, rnd.IntN(4000))
		for i := range raw {
			raw[i] = "ab\n\xff"[rnd.IntN(4)]
		}
		_, n := readAll(t, raw, iotest.OneByteReader(bytes.NewReader(raw)), 1+rnd.IntN(20))
		require.Equal(t, bytes.Count(raw, []byte("\n")), n)
	}
}

// TestReadError: what was read before an error is sound.
func TestReadError(t *testing.T) {
	broken := errors.New("the disk is broken")
	lr := NewLineReader(io.MultiReader(strings.NewReader("one\ntwo\nthr"), iotest.ErrReader(broken)), 100)
	for range 2 {
		_, err := lr.Next()
		require.NoError(t, err)
	}
	_, err := lr.Next()
	require.ErrorIs(t, err, broken)
	require.EqualValues(t, 3, lr.Torn())
	require.EqualValues(t, 8, lr.Prefix().Bytes)
}

func write(t testing.TB, dir, name string, raw []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	return path
}

// TestInput: a file reads the same in every pass, packed or not; what was
// appended after it was opened is left out.
func TestInput(t *testing.T) {
	raw := []byte(strings.Repeat("a line of text\n", 50000))
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	packed := enc.EncodeAll(raw, nil)
	twoFrames := append(enc.EncodeAll(raw[:15], nil), enc.EncodeAll(raw[15:], nil)...)
	dir := t.TempDir()
	for name, data := range map[string][]byte{"plain.jsonl": raw, "packed.jsonl.zst": packed, "two.zst": twoFrames, "packed-by-another-name": packed} {
		path := write(t, dir, name, data)
		in, err := OpenInput(files.Local{}, path)
		require.NoError(t, err)
		require.Equal(t, !strings.HasPrefix(name, "plain"), in.Packed(), name)
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteString("later\n")
		require.NoError(t, err)
		require.NoError(t, f.Close())
		for range 2 {
			read := 0
			lr, err := in.Lines(t.Context(), func(n int) { read += n })
			require.NoError(t, err)
			for {
				if _, err = lr.Next(); err != nil {
					break
				}
			}
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, Prefix{Lines: 50000, Bytes: int64(len(raw)), Sum: sha256.Sum256(raw)}, lr.Prefix(), name)
			require.Equal(t, len(data), read, name)
			if in.Packed() {
				require.Equal(t, sha256.Sum256(data), in.RawSum())
			}
		}
		require.NoError(t, in.Close())
	}
	_, err = OpenInput(files.Local{}, dir)
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	_, err = OpenInput(files.Local{}, filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestInputCut: a packed file that ends anywhere gives whole lines and a torn
// rest, never another line.
func TestInputCut(t *testing.T) {
	raw := []byte(strings.Repeat(`{"type":"turn/start","data":{"turn":1}}`+"\n", 200))
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	packed := enc.EncodeAll(raw, nil)
	for cut := range packed {
		in, err := OpenInput(files.Local{}, write(t, t.TempDir(), "a.zst", packed[:cut]))
		require.NoError(t, err)
		lr, err := in.Lines(t.Context(), nil)
		require.NoError(t, err)
		for {
			line, err := lr.Next()
			if err != nil {
				break
			}
			if in.Packed() {
				require.Equal(t, `{"type":"turn/start","data":{"turn":1}}`, string(line.Bytes))
			}
		}
		require.NoError(t, in.Close())
	}
}

// TestInputCancelled stops reading.
func TestInputCancelled(t *testing.T) {
	in, err := OpenInput(files.Local{}, write(t, t.TempDir(), "a.jsonl", []byte("x\n")))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	lr, err := in.Lines(ctx, nil)
	require.NoError(t, err)
	_, err = lr.Next()
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, in.Close())
}
