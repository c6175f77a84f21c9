package importer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// lastEvents is how far from a session's head its last import/source is looked
// for. Behind it there is at most what others than importers wrote.
const lastEvents = 64

// Unchanged reports whether a file is, byte for byte, what the session's last
// import/source says was read of it, so that none of its lines need be looked
// at again. It costs one digest of the file. A part of a line behind what was
// read is no change; it is reported through find. ok is false whenever there is
// any doubt, and then the lines are compared one by one. source are the facts of
// that import/source.
func Unchanged(ctx context.Context, s *eventlog.Store, session uuid.UUID, in *Input, read func(int), find func(code string, line int64, detail string)) (prefix Prefix, source map[string]any, ok bool, err error) {
	facts, err := lastSource(ctx, s, session)
	if facts == nil || err != nil {
		return Prefix{}, nil, false, err
	}
	number := func(name string) int64 { n, _ := facts[name].(int64); return n }
	sum := func(name string) []byte { b, _ := facts[name].([]byte); return b }
	prefix = Prefix{Lines: number("lines"), Bytes: number("bytes")}
	if prefix.Lines == 0 || copy(prefix.Sum[:], sum("sha256")) != len(prefix.Sum) {
		return Prefix{}, nil, false, nil
	}
	if in.Packed() {
		if in.Size() != number("file_bytes") {
			return Prefix{}, nil, false, nil
		}
		whole, _, err := in.digest(ctx, in.Size(), read)
		return prefix, facts, err == nil && bytes.Equal(whole[:], sum("file_sha256")), wrongFile(ctx, err)
	}
	if in.Size() < prefix.Bytes {
		return Prefix{}, nil, false, nil
	}
	whole, rest, err := in.digest(ctx, prefix.Bytes, read)
	if err != nil || whole != prefix.Sum {
		return Prefix{}, nil, false, wrongFile(ctx, err)
	}
	torn, grown, err := tornBytes(rest)
	if err != nil || grown {
		return Prefix{}, nil, false, wrongFile(ctx, err)
	}
	if torn > 0 {
		find(CodeTorn, prefix.Lines+1, tornText(torn, prefix.Bytes))
	}
	return prefix, facts, true, nil
}

// wrongFile lets only the end of ctx end an import: what is wrong with a file
// shows again when its lines are read.
func wrongFile(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return ctx.Err()
}

// tornBytes counts what is behind the last newline that was read; whole: there
// is another newline.
func tornBytes(r io.Reader) (torn int64, whole bool, err error) {
	var b [64 << 10]byte
	for {
		n, err := r.Read(b[:])
		if bytes.IndexByte(b[:n], '\n') >= 0 {
			return 0, true, nil
		}
		if torn += int64(n); err == io.EOF {
			return torn, false, nil
		} else if err != nil {
			return 0, false, err
		}
	}
}

func tornText(bytes, offset int64) string {
	return fmt.Sprintf("%d bytes at byte offset %d have no newline yet and are left for a later run", bytes, offset)
}

// digest hashes the first n bytes of the file as it lies, and returns a reader
// of the rest.
func (in *Input) digest(ctx context.Context, n int64, read func(int)) (sum [32]byte, rest io.Reader, err error) {
	if _, err := in.f.Seek(0, io.SeekStart); err != nil {
		return sum, nil, err
	}
	src := &meter{ctx: ctx, r: io.LimitReader(in.f, in.size), read: read}
	in.release()
	buf := buffers.Get().(*bufio.Reader) // hands its bytes over without copying them
	buf.Reset(io.LimitReader(src, n))
	defer func() { buf.Reset(nil); buffers.Put(buf) }()
	h := sha256.New()
	if _, err := buf.WriteTo(h); err != nil {
		return sum, nil, err
	}
	h.Sum(sum[:0])
	return sum, src, nil
}

// lastSource finds the facts of the import/source that ends what importers
// wrote of a session: nil if another event of theirs comes last, as after a
// run that was interrupted.
func lastSource(ctx context.Context, s *eventlog.Store, session uuid.UUID) (map[string]any, error) {
	row, err := s.Row(session)
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for seq := row.Head; seq > 0 && row.Head-seq < lastEvents; seq-- {
		page, err := s.Read(ctx, session, eventlog.ReadOptions{From: seq, To: seq})
		if err != nil {
			return nil, err
		}
		if len(page.Events) == 0 {
			return nil, nil // a hole
		}
		switch ev := &page.Events[0]; {
		case ev.Source != eventlog.SourceImport:
		case ev.Type != TypeSource:
			return nil, nil
		default:
			facts, err := ev.Facts.Map()
			if err != nil {
				return nil, nil // damaged: the lines are compared
			}
			return facts, nil
		}
	}
	return nil, nil
}
