package forward

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// raw is a frame of any kind and any stated length.
func raw(k kind, length int, payload string) []byte {
	b := append([]byte{byte(k)}, 0, 0, 0, 0)
	binary.BigEndian.PutUint32(b[1:], uint32(length))
	return append(b, payload...)
}

// TestHostileCaller: what is no frame, or none that a caller may send, ends its
// command and nothing else, and memory is taken for what came, not for what was
// announced.
func TestHostileCaller(t *testing.T) {
	waits := func(ctx context.Context, _ Env, _ []string) int {
		<-ctx.Done()
		return 1
	}
	for name, b := range map[string][]byte{
		"no kind":        raw(0, 0, ""),
		"HTTP":           []byte("GET / HTTP/1.1\r\n\r\n"),
		"too long":       raw(kindReply, maxReply+1, ""),
		"4 GiB":          raw(kindHello, 1<<32-1, ""),
		"a second hello": raw(kindHello, 2, "{}"),
		"a holder's":     raw(kindExit, 2, "{}"),
		"no JSON":        raw(kindReply, 3, "{x}"),
		"unasked":        raw(kindReply, 8, `{"id":1}`),
		"unasked data":   raw(kindData, 4, "\x00\x00\x00\x01"),
		"short data":     raw(kindData, 3, "\x00\x00\x01"),
		"no descriptor":  raw(kindReply, 20, `{"id":1,"file":true}`),
		"long interrupt": raw(kindInterrupt, 1, "x"),
	} {
		l, served := greet(t, waits, ServeOptions{})
		_, err := l.conn.Write(b)
		require.NoError(t, err, name)
		require.ErrorIs(t, <-served, ErrProtocol, name)
	}
	l, served := greet(t, waits, ServeOptions{})
	_, err := l.conn.Write(raw(kindReply, 100, "{"))
	require.NoError(t, err)
	require.NoError(t, l.conn.CloseWrite())
	require.ErrorIs(t, <-served, io.ErrUnexpectedEOF)
}

// TestHelloIsBounded in bytes, in form and in time.
func TestHelloIsBounded(t *testing.T) {
	never := func(context.Context, Env, []string) int {
		t.Error("a command ran")
		return 0
	}
	for name, b := range map[string][]byte{
		"too long":       raw(kindHello, maxHello+1, ""),
		"another frame":  raw(kindInterrupt, 0, ""),
		"no JSON":        raw(kindHello, 1, "{"),
		"duplicate keys": raw(kindHello, 33, `{"version":"a","version":"b"}    `),
		"nothing":        nil,
	} {
		a, b2 := pair(t)
		if b == nil {
			require.NoError(t, b2.CloseWrite())
		} else if _, err := b2.Write(b); err != nil {
			require.NoError(t, err, name)
		}
		require.Error(t, Serve(t.Context(), nil, a, nil, never, ServeOptions{}), name)
	}
	a, _ := pair(t)
	require.ErrorIs(t, Serve(t.Context(), nil, a, nil, never, ServeOptions{Hello: time.Millisecond}), os.ErrDeadlineExceeded, "and in time")
}

// TestUnwantedDescriptors are closed, and too many end the connection.
func TestUnwantedDescriptors(t *testing.T) {
	before := openFiles(t)
	l, served := greet(t, func(ctx context.Context, _ Env, _ []string) int {
		<-ctx.Done()
		return 1
	}, ServeOptions{})
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	fds := make([]int, 40)
	for i := range fds {
		fds[i] = int(f.Fd())
	}
	_, _, err = l.conn.WriteMsgUnix([]byte{byte(kindInterrupt)}, unix.UnixRights(fds...), nil)
	require.NoError(t, err)
	require.ErrorIs(t, <-served, ErrProtocol)
	l.close()
	require.LessOrEqual(t, openFiles(t), before+1)
}

// TestHostileHolder: a caller takes no frame that a holder may not send.
func TestHostileHolder(t *testing.T) {
	for name, b := range map[string][]byte{
		"a caller's": raw(kindInterrupt, 0, ""),
		"no JSON":    raw(kindExit, 1, "x"),
		"no request": raw(kindRequest, 2, "[]"),
		"too long":   raw(kindOut, maxData+1, ""),
	} {
		l, done := forged(t, "ls")
		_, err := l.conn.Write(b)
		require.NoError(t, err)
		r := done()
		require.ErrorIs(t, r.err, ErrProtocol, name)
	}
	l, done := forged(t, "ls")
	require.NoError(t, l.sendJSON(kindRequest, request{ID: 1, Op: "rm", Name: []byte("/")}, nil))
	k, b, err := l.next()
	require.NoError(t, err)
	require.Equal(t, kindReply, k)
	require.Contains(t, string(b), "a request for")
	require.NoError(t, l.sendJSON(kindRequest, request{ID: 2, Op: opCommit, Of: 9}, nil))
	_, b, err = l.next()
	require.NoError(t, err)
	require.Contains(t, string(b), "no such draft")
	require.NoError(t, l.sendJSON(kindExit, exit{Code: 3}, nil))
	require.Equal(t, 3, done().code)
}

// TestLongPath: a socket is reached however deep the store lies.
func TestLongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 120), strings.Repeat("e", 120))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	path, done, err := Short(dir, Socket)
	require.NoError(t, err)
	require.LessOrEqual(t, len(path), maxSocketPath)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	defer l.Close()
	done()
	require.FileExists(t, filepath.Join(dir, Socket))
	conn, err := Connect(t.Context(), dir)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

// TestNobodyThere: no socket, a left one, and a file of its name are all nobody.
func TestNobodyThere(t *testing.T) {
	dir := t.TempDir()
	_, err := Dial(t.Context(), dir)
	require.ErrorIs(t, err, ErrNoHolder)
	path, done, err := Short(dir, Socket)
	require.NoError(t, err)
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	_, err = Dial(t.Context(), dir)
	require.ErrorIs(t, err, ErrNoHolder, "left by a kill")
	require.NoError(t, os.Remove(filepath.Join(dir, Socket)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, Socket), nil, 0o600))
	_, err = Dial(t.Context(), dir)
	require.ErrorIs(t, err, ErrNoHolder, "a file")
}

// FuzzFrames: any bytes are frames or an error, and no frame is larger than its
// kind may be.
func FuzzFrames(f *testing.F) {
	f.Add(raw(kindHello, 2, "{}"))
	f.Add(append(raw(kindInterrupt, 0, ""), raw(kindData, 5, "\x00\x00\x00\x01x")...))
	f.Add(raw(kindReply, 1<<31, "x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bytes.NewReader(b)
		for {
			k, payload, err := readFrame(in)
			if err != nil {
				return
			}
			most, known := k.limit()
			require.True(t, known)
			require.LessOrEqual(t, len(payload), most)
			var h hello
			var q request
			var r reply
			var x exit
			for _, v := range []any{&h, &q, &r, &x} {
				_ = parse(payload, v) // an error or a message, never a panic
			}
			if r.Info != nil {
				_ = r.Info.fileInfo().Name()
			}
			if r.Failure != nil {
				require.Error(t, r.Failure.err())
			}
		}
	})
}
