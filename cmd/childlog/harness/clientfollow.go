package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// Bounds of a follow over a network.
const (
	// silence is how long a stream may be without a byte, heartbeats included,
	// before it is taken for dead.
	silence = time.Minute
	// maxLine bounds a line of a stream, bytes: the largest content, escaped.
	maxLine = 6*eventlog.MaxContent + 1<<20
	// A stream that was lost is taken up again after a pause that doubles from
	// the first to the last one; after so many in vain in a row the follow fails.
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
	patience   = 12 // attempts, about half a minute
)

// Follow implements [Harness]. A stream that is lost is taken up again behind
// the last event that was yielded, so none is missed and none comes twice. JSON
// contents have blanks for line breaks between their tokens.
func (c *Client) Follow(ctx context.Context, r FollowRequest) iter.Seq2[wire.Followed, error] {
	return following(func(give func(wire.Followed) error) error {
		f := clientFollow{c: c, r: r, give: give}
		return f.run(ctx)
	})
}

// clientFollow is one follow.
type clientFollow struct {
	c    *Client
	r    FollowRequest
	give func(wire.Followed) error
	last string // cursor of the last event, the Last-Event-ID
}

// lostStream is a stream that ended on its own; it is taken up again.
type lostStream struct{ error }

func (e *lostStream) Unwrap() error { return e.error }

func (f *clientFollow) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.c.ctx, cancel)()
	ended := func() error {
		if f.c.ctx.Err() != nil {
			return fmt.Errorf("%w: the client was closed", eventlog.ErrStoreClosed)
		}
		return ctx.Err()
	}
	pause, tries, connected := firstPause, 0, false
	for ended() == nil { // a request of a closed client may still be answered
		before := f.last
		began, err := f.stream(ctx)
		if err := ended(); err != nil {
			return err
		}
		lost := (*lostStream)(nil)
		if !errors.As(err, &lost) || !began && !connected {
			return err
		}
		connected = true
		if tries++; began || f.last != before {
			pause, tries = firstPause, 0
		}
		if tries > patience {
			return fmt.Errorf("%w: following %s: %w", eventlog.ErrStoreClosed, f.c.target, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ended()
		}
		pause = min(2*pause, lastPause)
	}
	return ended()
}

// request is the request of a stream.
func (f *clientFollow) request(ctx context.Context) (*http.Request, error) {
	q := url.Values{}
	if f.r.Session != "" {
		q.Set("session", f.r.Session)
	}
	if f.r.After != "" {
		q.Set("after", f.r.After)
	}
	for _, t := range f.r.Types {
		q.Add("types", t)
	}
	if f.r.NoContent {
		q.Set("no_content", "true")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.c.base+FollowPath+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	f.c.sign(req)
	req.Header.Set("Accept", "text/event-stream")
	if f.last != "" {
		req.Header.Set("Last-Event-ID", f.last)
	}
	return req, nil
}

// stream reads one stream to its end. began: the service answered with one.
func (f *clientFollow) stream(ctx context.Context) (began bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := f.request(ctx)
	if err != nil {
		return false, err
	}
	resp, err := f.c.http.Do(req)
	if err != nil {
		return false, &lostStream{unreachable(f.c.target, err)}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, err := f.c.readAll(resp)
		if err != nil {
			return false, &lostStream{err}
		}
		re, ok := remoteError(resp.StatusCode, text)
		if !ok && resp.StatusCode >= 500 || ok && (resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests) {
			return false, &lostStream{re}
		}
		return false, re
	}
	dead := time.AfterFunc(silence, cancel)
	defer dead.Stop()
	return true, f.events(&eventStream{r: bufio.NewReaderSize(resp.Body, 64<<10), heard: func() { dead.Reset(silence) }})
}

// events yields what a stream brings.
func (f *clientFollow) events(s *eventStream) error {
	for {
		ev, err := s.next()
		if err != nil {
			return err
		}
		switch ev.name {
		case "error":
			re, _ := remoteError(0, ev.data)
			if re.Code == codeInterrupted || re.Code == "store_closed" { // the service stops; another may take over
				return &lostStream{re}
			}
			return re
		case "", "message", "event":
			var v wire.Followed
			if err := json.Unmarshal(ev.data, &v, jsontext.AllowInvalidUTF8(true)); err != nil {
				return fmt.Errorf("%w: an event of the stream: %w", eventlog.ErrInvalid, err)
			}
			if err := f.give(v); err != nil {
				return err
			}
			f.last = v.Cursor
		}
	}
}

// serverEvent is one of a stream.
type serverEvent struct {
	name string
	data []byte
}

// eventStream reads server-sent events (the HTML standard, section 9.2): lines
// that end with a line feed or both, fields up to an empty line. Comments and
// unknown fields are passed over.
type eventStream struct {
	r     *bufio.Reader
	heard func() // something came
}

func (s *eventStream) next() (ev serverEvent, err error) {
	some := false
	for {
		line, err := s.line()
		if err != nil {
			return ev, err
		}
		if len(line) == 0 {
			if some {
				return ev, nil
			}
			ev = serverEvent{}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			ev.name = strings.Clone(string(value))
		case "data":
			if some {
				ev.data = append(ev.data, '\n')
			}
			if ev.data, some = append(ev.data, value...), true; len(ev.data) > maxLine {
				return ev, &eventlog.TooLargeError{What: "event of a stream in bytes", Limit: maxLine, Size: uint64(len(ev.data))}
			}
		}
	}
}

// line reads one line without its end.
func (s *eventStream) line() ([]byte, error) {
	var line []byte
	for {
		part, err := s.r.ReadSlice('\n')
		s.heard()
		if line = append(line, part...); len(line) > maxLine {
			return nil, &eventlog.TooLargeError{What: "line of a stream in bytes", Limit: maxLine, Size: uint64(len(line))}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return nil, &lostStream{io.ErrUnexpectedEOF}
		case err != nil:
			return nil, &lostStream{err}
		}
		return bytes.TrimRight(line, "\r\n"), nil
	}
}
