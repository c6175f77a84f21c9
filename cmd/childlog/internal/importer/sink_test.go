package importer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
)

var newStore = storetest.New

// place is a session to import into, with its first event.
func place(t testing.TB, key string) (*Place, eventlog.NewEvent) {
	t.Helper()
	p := &Place{System: "test", Key: key, Session: SessionID("test", key), New: true}
	p.Root = p.Session
	ev, err := p.CreatedEvent(p.Created(0), "", "", time.Time{})
	require.NoError(t, err)
	return p, ev
}

func text(content string) eventlog.NewEvent {
	return eventlog.NewEvent{Type: eventlog.TypeUserMessage, Facts: Facts(), Media: eventlog.MediaText, Content: []byte(content)}
}

// TestSink appends everything in order, whatever the batches, and copies what it
// is given.
func TestSink(t *testing.T) {
	s := newStore(t)
	p, created := place(t, "a")
	sink := NewSink(s, p.Session, 0, p.Admit)
	require.NoError(t, sink.Add(t.Context(), created))
	buf := make([]byte, 0, 5<<20)
	for i := range 5000 {
		size := 10
		if i%1000 == 999 {
			size = 5 << 20 // more than a batch
		}
		buf = append(append(buf[:0], fmt.Sprint(i)...), strings.Repeat("x", size)...)
		require.NoError(t, sink.Add(t.Context(), text(string(buf)), eventlog.NewEvent{Type: eventlog.TypeUserMessage, Facts: Facts(), Media: eventlog.MediaOctets, Content: buf}))
	}
	require.NoError(t, sink.Flush(t.Context()))
	require.NoError(t, sink.Add(t.Context(), text("given up")))
	require.EqualValues(t, 10001, sink.Close())
	n := 0
	require.NoError(t, s.Replay(t.Context(), p.Session, true, func(ev *eventlog.Event) error {
		if ev.Seq > 1 {
			require.True(t, bytes.HasPrefix(ev.Content, fmt.Appendf(nil, "%dx", n/2)), "seq %d", ev.Seq)
			n++
		}
		return nil
	}))
	require.Equal(t, 10000, n)
}

// TestSinkFails: after a failure nothing more is appended, every call says why,
// and Close returns what is there.
func TestSinkFails(t *testing.T) {
	s := newStore(t)
	p, created := place(t, "a")
	reason := errors.New("no")
	refuse := false
	sink := NewSink(s, p.Session, 0, func(*eventlog.View) error {
		if refuse {
			return reason
		}
		return nil
	})
	require.NoError(t, sink.Add(t.Context(), created))
	require.NoError(t, sink.Flush(t.Context()))
	refuse = true
	var err error
	for i := 0; err == nil; i++ {
		require.Less(t, i, 100*batchEvents, "it has to end")
		err = sink.Add(t.Context(), text("x"))
	}
	require.ErrorIs(t, err, reason)
	require.ErrorIs(t, sink.Flush(t.Context()), reason)
	require.EqualValues(t, 1, sink.Close())

	wrong := NewSink(s, p.Session, 7, nil)
	require.NoError(t, wrong.Add(t.Context(), text("x")))
	require.ErrorIs(t, wrong.Flush(t.Context()), eventlog.ErrConflict)
	require.Zero(t, wrong.Close())

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	stopped := NewSink(s, p.Session, 1, nil)
	for err = nil; err == nil; {
		err = stopped.Add(ended, text("x"))
	}
	require.ErrorIs(t, err, context.Canceled)
	handed := stopped.Close()
	row, err := s.Row(p.Session)
	require.NoError(t, err)
	require.EqualValues(t, handed+1, row.Head, "what was handed over is there, and counted")
}

// TestUnchanged: a file is known again by what the last run wrote of it, and
// not if anything of that differs.
func TestUnchanged(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	whole := "one\ntwo\nthree\n"
	for name, c := range map[string]struct {
		first, now string
		packed     bool
		ended      bool // the run wrote its last word
		ok         bool
		torn       string
	}{
		"the same":            {whole, whole, false, true, true, ""},
		"with a torn line":    {whole, whole + "fou", false, true, true, "3 bytes at byte offset 14"},
		"grown":               {whole, whole + "four\n", false, true, false, ""},
		"grown and torn":      {whole, whole + "four\nfi", false, true, false, ""},
		"shorter":             {whole, "one\ntwo\n", false, true, false, ""},
		"changed":             {whole, "one\ntwO\nthree\n", false, true, false, ""},
		"empty":               {whole, "", false, true, false, ""},
		"interrupted before":  {whole, whole, false, false, false, ""},
		"packed":              {whole, whole, true, true, true, ""},
		"packed and grown":    {whole, whole + "four\n", true, true, false, ""},
		"packed, no last run": {whole, whole, true, false, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			p, created := place(t, "a")
			path := filepath.Join(t.TempDir(), "a.jsonl")
			put := func(text string) *Input {
				raw := []byte(text)
				if c.packed {
					raw = enc.EncodeAll(raw, nil)
				}
				require.NoError(t, os.WriteFile(path, raw, 0o600))
				in, err := OpenInput(files.Local{}, path)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, in.Close()) })
				return in
			}
			in := put(c.first)
			sink := NewSink(s, p.Session, 0, nil)
			require.NoError(t, sink.Add(t.Context(), created))
			lines, err := in.Lines(t.Context(), nil)
			require.NoError(t, err)
			for err == nil {
				var line Line
				if line, err = lines.Next(); err == nil {
					require.NoError(t, sink.Add(t.Context(), text(string(line.Bytes))))
				}
			}
			if c.ended {
				require.NoError(t, sink.Add(t.Context(), p.SourceEvent(in, path, lines.Prefix(), c.packed, time.Time{}, time.Time{}, "of-mine", 7)))
			}
			require.NoError(t, sink.Flush(t.Context()))
			sink.Close()

			said := ""
			prefix, source, ok, err := Unchanged(t.Context(), s, p.Session, put(c.now), nil, func(code string, line int64, detail string) {
				require.Equal(t, CodeTorn, code)
				require.EqualValues(t, 4, line)
				said = detail
			})
			require.NoError(t, err)
			require.Equal(t, c.ok, ok)
			if ok {
				require.Equal(t, Prefix{Lines: 3, Bytes: 14, Sum: sha256.Sum256([]byte(whole))}, prefix)
				require.EqualValues(t, 7, source["of-mine"])
			}
			require.Contains(t, said, c.torn)
		})
	}
	_, _, ok, err := Unchanged(t.Context(), newStore(t), uuid.New(), nil, nil, nil)
	require.NoError(t, err)
	require.False(t, ok, "of a session that is not there")
}
