package service_test

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/service"
	"childlog/cmd/childlog/internal/tokens"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// following is an open stream.
type following struct {
	t      *testing.T
	resp   *http.Response
	lines  *bufio.Scanner
	cancel context.CancelFunc
}

// sent is one server-sent event, or a comment.
type sent struct{ name, id, data string }

// follow opens a stream. It ends with the test.
func (v *served) follow(t *testing.T, role tokens.Role, query, last string) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url+harness.FollowPath+query, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+v.tokens[role])
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := v.client.Do(r)
	require.NoError(t, err)
	f := &following{t: t, resp: resp, lines: bufio.NewScanner(resp.Body), cancel: cancel}
	f.lines.Buffer(nil, 1<<22)
	t.Cleanup(f.close)
	return f
}

func (f *following) close() {
	f.cancel()
	f.resp.Body.Close()
}

// next reads the next event; a comment has only the name ":".
func (f *following) next() (s sent, more bool) {
	for f.lines.Scan() {
		line := f.lines.Text()
		key, value, _ := strings.Cut(line, ": ")
		switch {
		case strings.HasPrefix(line, ":"):
			s.name = ":"
		case line == "":
			return s, true
		case key == "id":
			s.id = value
		case key == "event":
			s.name = value
		case key == "data":
			s.data = value
		}
	}
	return s, false
}

// event is the next that is no comment.
func (f *following) event() sent {
	f.t.Helper()
	for {
		s, more := f.next()
		require.True(f.t, more, "the stream ended")
		if s.name != ":" {
			return s
		}
	}
}

// TestAStreamIsResumed: what was appended before and after comes once and in
// order, over two connections, of a session and of the whole store.
func TestAStreamIsResumed(t *testing.T) {
	v := serve(t, service.Options{Limits: service.Limits{Turn: 20 * time.Millisecond, Recheck: time.Millisecond}})
	id := v.root()
	v.appendText(id, 5)
	const before, after = 6, 2
	for i, query := range []string{"?session=" + id, ""} {
		var seqs []uint64
		var last string
		read := func(f *following, n int) {
			require.Equal(t, http.StatusOK, f.resp.StatusCode)
			require.Equal(t, "text/event-stream; charset=utf-8", f.resp.Header.Get("Content-Type"))
			for range n {
				s := f.event()
				require.Empty(t, s.name)
				var got wire.Followed
				require.NoError(t, json.Unmarshal([]byte(s.data), &got))
				require.Equal(t, s.id, got.Cursor)
				require.Equal(t, id, got.Session)
				seqs, last = append(seqs, got.Event.Seq), s.id
			}
		}
		f := v.follow(t, tokens.Auditor, query, "")
		read(f, 3)
		f.close()
		f = v.follow(t, tokens.Harness, query, last)
		read(f, before+i*after-3)
		v.appendText(id, after)
		read(f, after)
		f.close()
		for k, seq := range seqs {
			require.Equal(t, uint64(k+1), seq)
		}
	}
}

// TestAStreamPicksTypes: and its cursor passes what is not picked.
func TestAStreamPicksTypes(t *testing.T) {
	v := serve(t, service.Options{Limits: service.Limits{Turn: time.Millisecond}})
	id := v.root()
	f := v.follow(t, tokens.Auditor, "?types=user/*&types=assistant/message&no_content=true&session="+id, "")
	v.appendText(id, 1)
	s := f.event()
	require.Contains(t, s.data, `"type":"user/message"`)
	require.NotContains(t, s.data, "hello")
	_, head, err := v.store.Policy(t.Context(), mustID(id), 0)
	require.NoError(t, err)
	require.Equal(t, strconv.FormatUint(head.Head, 10), s.id)
}

// TestRefusedStreams: before a stream begins, errors are answers.
func TestRefusedStreams(t *testing.T) {
	v := serve(t, service.Options{Limits: service.Limits{Recheck: time.Hour}}) // else one that begins before it is refused, on a slow machine
	id := v.root()
	for query, status := range map[string]int{
		"?session=77777777":                 404,
		"?session=" + id + "&session=" + id: 400,
		"?sessions=" + id:                   400,
		"?no_content=yes":                   400,
		"?after=x":                          400,
		"?after=9.9":                        404,
		"?session=" + id + "&after=99":      404,
		"?a=%zz":                            400,
		"?a;b":                              400,
	} {
		require.Equal(t, status, v.follow(t, tokens.Auditor, query, "").resp.StatusCode, query)
	}
	require.Equal(t, 400, v.follow(t, tokens.Auditor, "", "x y").resp.StatusCode)
}

// TestHeartbeats: a stream without events has comments.
func TestHeartbeats(t *testing.T) {
	v := serve(t, service.Options{Limits: service.Limits{Heartbeat: time.Millisecond, Recheck: time.Millisecond}})
	f := v.follow(t, tokens.Auditor, "", "")
	for range 5 {
		s, more := f.next()
		require.True(t, more)
		require.Equal(t, sent{name: ":"}, s)
	}
}

// TestAStreamEndsWithItsToken: once it is revoked, though nothing is appended.
func TestAStreamEndsWithItsToken(t *testing.T) {
	v := serve(t, service.Options{Limits: service.Limits{Recheck: time.Millisecond}})
	f := v.follow(t, tokens.Auditor, "", "")
	list, err := tokens.List(v.store.Dir())
	require.NoError(t, err)
	for _, token := range list {
		if token.Role == tokens.Auditor {
			_, err := tokens.Revoke(v.store.Dir(), token.ID)
			require.NoError(t, err)
		}
	}
	s := f.event()
	require.Equal(t, "error", s.name)
	require.Contains(t, s.data, `"code":"unauthorized"`)
	_, more := f.next()
	require.False(t, more, "it is over")
	require.Equal(t, http.StatusUnauthorized, v.get("/metrics", tokens.Auditor).status)
}

// TestStreamsAreCounted: of one caller, and given back when they end.
func TestStreamsAreCounted(t *testing.T) {
	v := serve(t, service.Options{Limits: service.Limits{CallerStreams: 2, Streams: 3, Recheck: time.Millisecond}})
	a, b := v.follow(t, tokens.Auditor, "", ""), v.follow(t, tokens.Auditor, "", "")
	over := v.follow(t, tokens.Auditor, "", "")
	require.Equal(t, http.StatusTooManyRequests, over.resp.StatusCode)
	require.NotEmpty(t, over.resp.Header.Get("Retry-After"))
	c := v.follow(t, tokens.Harness, "", "")
	require.Equal(t, http.StatusOK, c.resp.StatusCode)
	require.Equal(t, http.StatusTooManyRequests, v.follow(t, tokens.Operator, "", "").resp.StatusCode, "all together")
	a.close()
	b.close()
	require.Eventually(t, func() bool { return v.streamStatus(tokens.Auditor) == http.StatusOK }, 10*time.Second, 5*time.Millisecond)
}

// endless yields large events for ever and counts them.
type endless struct {
	harness.Harness
	given chan int
}

func (e *endless) Follow(ctx context.Context, _ harness.FollowRequest) iter.Seq2[wire.Followed, error] {
	text := strings.Repeat("x", 1<<20)
	return func(yield func(wire.Followed, error) bool) {
		n := 0
		defer func() { e.given <- n }()
		for ; ctx.Err() == nil; n++ {
			if !yield(wire.Followed{Cursor: fmt.Sprint(n + 1), Event: wire.Event{Type: "user/message", Facts: []byte("{}"), ContentText: &text}}, nil) {
				return
			}
		}
	}
}

// TestASlowReaderIsLeft: who takes nothing is cut off after the time for it,
// and no more is read for it than fits into the buffers of the connection.
func TestASlowReaderIsLeft(t *testing.T) {
	e := &endless{given: make(chan int, 10)}
	v := serve(t, service.Options{Limits: service.Limits{WriteTime: 50 * time.Millisecond, Turn: time.Hour}, On: func(s *eventlog.Store) harness.Harness {
		e.Harness = harness.On(s)
		return e
	}})
	conn, err := net.Dial("tcp", strings.TrimPrefix(v.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", harness.FollowPath, v.tokens[tokens.Auditor])
	require.NoError(t, err)
	select {
	case n := <-e.given:
		require.Less(t, n, 64, "events of 1 MiB")
	case <-time.After(time.Minute):
		require.Fail(t, "the stream goes on for a reader that takes nothing")
	}
	require.Eventually(t, func() bool { return strings.Contains(v.get("/metrics", tokens.Auditor).body, "childlog_streams 0\n") }, 10*time.Second, 5*time.Millisecond)
}

// damaged has a hole at seq 2.
type damaged struct {
	harness.Harness
	session string
}

func (d *damaged) Follow(ctx context.Context, r harness.FollowRequest) iter.Seq2[wire.Followed, error] {
	return func(yield func(wire.Followed, error) bool) {
		from, _ := strconv.Atoi(r.After)
		for seq := from + 1; seq <= 4; seq++ {
			if seq == 2 {
				yield(wire.Followed{}, &eventlog.CorruptError{Session: mustID(d.session), Seq: 2, Reason: "it is torn"})
				return
			}
			if !yield(wire.Followed{Cursor: fmt.Sprint(seq), Session: d.session, Event: wire.Event{Seq: uint64(seq), Facts: []byte("{}")}}, nil) {
				return
			}
		}
		<-ctx.Done()
		yield(wire.Followed{}, ctx.Err())
	}
}

// TestDamageIsAHole: never left out. It ends the stream, unless holes are asked
// for, which are then passed.
func TestDamageIsAHole(t *testing.T) {
	d := &damaged{}
	v := serve(t, service.Options{On: func(s *eventlog.Store) harness.Harness {
		d.Harness = harness.On(s)
		return d
	}})
	d.session = v.root()
	v.appendText(d.session, 3)
	f := v.follow(t, tokens.Auditor, "?session="+d.session, "")
	require.Equal(t, "1", f.event().id)
	s := f.event()
	require.Equal(t, "error", s.name)
	require.Contains(t, s.data, `"code":"corrupt"`)
	require.Contains(t, s.data, "seq 2")
	_, more := f.next()
	require.False(t, more)

	f = v.follow(t, tokens.Auditor, "?holes=true&session="+d.session, "")
	require.Equal(t, "1", f.event().id)
	s = f.event()
	require.Equal(t, "hole", s.name)
	require.Equal(t, "2", s.id)
	require.Contains(t, s.data, `"from":2,"to":2`)
	require.Contains(t, s.data, "it is torn")
	require.Equal(t, "3", f.event().id)
	require.Equal(t, "4", f.event().id)
}

// TestStoppingEndsStreams: with a word of why, and nothing that was appended is lost.
func TestStoppingEndsStreams(t *testing.T) {
	v := serve(t, service.Options{})
	id := v.root()
	f := v.follow(t, tokens.Auditor, "?session="+id, "")
	require.Equal(t, "1", f.event().id[:1])
	v.service.Stop()
	for {
		s := f.event()
		if s.name == "error" {
			require.Contains(t, s.data, `"code":"store_closed"`)
			break
		}
	}
	_, more := f.next()
	require.False(t, more)
	require.Equal(t, "store_closed", v.post("/v1/list", tokens.Auditor, `{}`).code(t))
	require.Equal(t, "store_closed", v.get("/readyz", "").code(t))
	require.Equal(t, http.StatusOK, v.get("/healthz", "").status)
}
