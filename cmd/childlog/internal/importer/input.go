package importer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"childlog/cmd/childlog/internal/files"
	"childlog/eventlog"
)

// maxWindow is the largest zstd window accepted: what `zstd --long` writes.
// More is refused, so that a small file can't ask for gigabytes.
const maxWindow = 128 << 20

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// Input is an open file of lines, plain or compressed with zstd, which is told
// by its first bytes. It can be read more than once; what was appended after
// it was opened is left for the next run.
type Input struct {
	f      *os.File
	size   int64
	packed bool
	dec    *zstd.Decoder
	raw    hash.Hash
	lines  *LineReader // of the pass that goes on
}

// OpenInput opens a regular file.
func OpenInput(from files.Files, path string) (*Input, error) {
	fi, err := from.Stat(path) // before the open, which would wait on a pipe
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is no regular file", eventlog.ErrInvalid, path)
	}
	f, err := from.Open(path)
	if err != nil {
		return nil, err
	}
	if fi, err = f.Stat(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	var magic [4]byte
	n, err := f.ReadAt(magic[:], 0)
	if err != nil && err != io.EOF {
		return nil, errors.Join(err, f.Close())
	}
	return &Input{f: f, size: fi.Size(), packed: n == len(magic) && bytes.Equal(magic[:], zstdMagic)}, nil
}

// Size is the number of bytes on disk when the input was opened.
func (in *Input) Size() int64 { return in.size }

// Packed reports whether the file is compressed. Offsets and digests of lines
// are then those of the uncompressed text.
func (in *Input) Packed() bool { return in.packed }

// Lines begins a pass over the whole file. It ends the pass before. read is
// told how many bytes on disk were read; it may be nil.
func (in *Input) Lines(ctx context.Context, read func(n int)) (*LineReader, error) {
	in.release()
	if _, err := in.f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	in.raw = sha256.New()
	src := io.Reader(&meter{ctx: ctx, r: io.LimitReader(in.f, in.size), read: read})
	if !in.packed {
		in.lines = NewLineReader(src, eventlog.MaxContent)
		return in.lines, nil
	}
	if in.dec == nil {
		// One goroutine, ours: the decoder works inside Read.
		dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		in.dec = dec
	}
	if err := in.dec.Reset(io.TeeReader(src, in.raw)); err != nil {
		return nil, err
	}
	in.lines = NewLineReader(cut{in.dec}, eventlog.MaxContent)
	return in.lines, nil
}

// RawSum is the SHA-256 of the file as it lies on disk, known when a pass over
// a compressed file reached its end.
func (in *Input) RawSum() [32]byte {
	var out [32]byte
	if in.raw != nil {
		in.raw.Sum(out[:0])
	}
	return out
}

// release ends the pass that goes on.
func (in *Input) release() {
	if in.lines != nil {
		in.lines.release()
		in.lines = nil
	}
}

// Close gives the file back.
func (in *Input) Close() error {
	in.release()
	if in.dec != nil {
		in.dec.Close()
	}
	return in.f.Close()
}

// meter counts what is read and stops when ctx ends.
type meter struct {
	ctx  context.Context
	r    io.Reader
	read func(int)
}

func (m *meter) Read(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := m.r.Read(p)
	if m.read != nil {
		m.read(n)
	}
	return n, err
}

// cut takes a compressed file that ends inside a frame for one that is still
// being written: its last line is torn.
type cut struct{ r io.Reader }

func (c cut) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}
