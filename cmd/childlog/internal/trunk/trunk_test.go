package trunk_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/trunk"
	"childlog/cmd/childlog/internal/trunk/trunktest"
)

// patience ends a test that hangs. No test asserts a time.
const patience = time.Minute

func reader(conn *net.UnixConn, most int, slow time.Duration) *trunk.Reader {
	return trunk.NewReader(conn, bufio.NewReader(conn), most, slow)
}

// TestFramesOfManySenders: each arrives once and whole, whether it was written
// alone or with others, and is larger than the system takes at once or empty.
func TestFramesOfManySenders(t *testing.T) {
	a, b := trunktest.Pair(t)
	w := trunk.NewWriter(a, 1<<16, patience)
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(); err != nil {
			t.Error(err)
		}
		_ = a.Close()
	})
	const senders, each = 8, 60
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for n := range each {
				id := uint32(s*each + n)
				w.Send(id, uint16(n), n%3 == 0, []byte(strconv.Itoa(int(id))), bytes.Repeat([]byte{byte(n)}, n*n*n))
			}
		})
	}
	go func() {
		sending.Wait()
		w.Close()
	}()
	seen := map[uint32]bool{}
	in := reader(b, 1<<20, patience)
	for {
		f, err := in.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.False(t, seen[f.ID])
		seen[f.ID] = true
		n := int(f.ID) % each
		require.Equal(t, uint16(n), f.Code)
		require.Equal(t, strconv.Itoa(int(f.ID))+strings.Repeat(string([]byte{byte(n)}), n*n*n), string(f.Body))
	}
	running.Wait()
	require.Len(t, seen, senders*each)
}

// TestWhatIsNoFrame is refused, and takes no memory for what is only announced.
func TestWhatIsNoFrame(t *testing.T) {
	const most = 100_000
	for name, c := range map[string]struct {
		sent string
		want error
	}{
		"nothing":        {"", io.EOF},
		"half a header":  {"\x00\x00", io.ErrUnexpectedEOF},
		"no body":        {"\x00\x00\x00\x05\x00\x00\x00\x01\x00\x01", io.ErrUnexpectedEOF},
		"half a body":    {"\x00\x00\x00\x05\x00\x00\x00\x01\x00\x01abc", io.ErrUnexpectedEOF},
		"half of a lot":  {"\x00\x01\x70\x00\x00\x00\x00\x01\x00\x01abc", io.ErrUnexpectedEOF},
		"one too large":  {"\x00\x01\x86\xa1\x00\x00\x00\x01\x00\x01", trunk.ErrProtocol},
		"a huge one":     {"\xff\xff\xff\xff\x00\x00\x00\x01\x00\x01", trunk.ErrProtocol},
		"HTTP":           {"POST /v1/append HTTP/1.1\r\n\r\n", trunk.ErrProtocol},
		"a name too far": {"\x00\x00\x00\x02\x00\x00\x00\x01\x00\x03ab", trunk.ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := trunktest.Pair(t)
			_, err := io.WriteString(a, c.sent)
			require.NoError(t, err)
			require.NoError(t, a.Close())
			f, err := reader(b, most, patience).Next()
			if err == nil {
				_, _, err = f.Request()
			}
			require.ErrorIs(t, err, c.want)
		})
	}
}

// TestHalfAFrame has its time; the beginning of one has all time.
func TestHalfAFrame(t *testing.T) {
	a, b := trunktest.Pair(t)
	in := reader(b, 10, time.Millisecond)
	go func() {
		time.Sleep(20 * time.Millisecond) // longer than a frame may take
		_, _ = io.WriteString(a, "\x00\x00\x00\x01\x00\x00\x00\x01\x00\x01a\x00")
	}()
	f, err := in.Next()
	require.NoError(t, err)
	name, body, err := f.Request()
	require.NoError(t, err)
	require.Equal(t, "a", name)
	require.Empty(t, body)
	_, err = in.Next()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// TestNobodyReads: the writer gives up, and whoever waits for room or sends
// later is let go. What was handed over whole is told apart from what was not,
// whoever handed it over.
func TestNobodyReads(t *testing.T) {
	for _, alone := range []bool{true, false} {
		a, _ := trunktest.Pair(t)
		w := trunk.NewWriter(a, 1<<10, 50*time.Millisecond)
		done := make(chan error, 1)
		run := func() { done <- w.Run() }
		if alone {
			go run()
		}
		small := []uint64{w.Send(1, 1, alone, []byte("a")), w.Send(2, 1, alone, nil)}
		large := w.Send(3, 1, alone, make([]byte, 4<<20)) // more than a socket takes
		if !alone {
			go run() // all with one call
		}
		for range 3 {
			w.Send(4, 1, false, make([]byte, 1<<20))
		}
		require.ErrorIs(t, <-done, os.ErrDeadlineExceeded)
		for _, number := range small {
			require.True(t, w.Taken(number))
		}
		require.False(t, w.Taken(large), "half of it is no request")
		require.False(t, w.Taken(w.Send(5, 1, true, nil)))
		w.Close()
		require.False(t, w.Taken(w.Send(6, 1, false, nil)))
	}
}

// TestNobodyIsThere: what the system refused was never sent.
func TestNobodyIsThere(t *testing.T) {
	a, b := trunktest.Pair(t)
	w := trunk.NewWriter(a, 0, patience)
	require.NoError(t, b.Close())
	alone, queued := w.Send(1, 1, true, []byte("a")), w.Send(2, 1, false, []byte("b"))
	require.ErrorIs(t, w.Run(), syscall.EPIPE)
	require.False(t, w.Taken(alone))
	require.False(t, w.Taken(queued))
}

func FuzzNext(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x01\x00\x00\x00\x01\x00\x01a\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00ab"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		if len(sent) > 1<<16 {
			return
		}
		_, b := trunktest.Pair(t) // for its deadlines
		in := trunk.NewReader(b, bufio.NewReader(bytes.NewReader(sent)), 1<<10, patience)
		var again bytes.Buffer
		for {
			fr, err := in.Next()
			if err != nil {
				break
			}
			require.LessOrEqual(t, len(fr.Body), 1<<10)
			fmt.Fprintf(&again, "%s", []byte{0, 0, byte(len(fr.Body) >> 8), byte(len(fr.Body)), byte(fr.ID >> 24), byte(fr.ID >> 16), byte(fr.ID >> 8), byte(fr.ID), byte(fr.Code >> 8), byte(fr.Code)})
			again.Write(fr.Body)
		}
		require.True(t, bytes.HasPrefix(sent, again.Bytes()), "frames are what was sent, and nothing else")
	})
}
