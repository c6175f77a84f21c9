package service

import (
	"bytes"
	"net/http"
	"time"

	"childlog/cmd/childlog/harness"
)

// sse writes server-sent events. Each piece has to be taken by the reader within
// the time for it.
type sse struct {
	w        *record
	control  *http.ResponseController
	patience time.Duration
	buf      bytes.Buffer
}

// begin sends the header. The comment tells the reader at once that it is there.
func (o *sse) begin() error {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // a proxy in between is not to keep events back
	o.w.WriteHeader(http.StatusOK)
	return o.comment()
}

func (o *sse) comment() error {
	o.buf.Reset()
	o.buf.WriteString(":\n\n")
	return o.flush()
}

// item sends an event of a log, or a hole.
func (o *sse) item(it *streamed) error {
	name, cursor, v := "", it.event.Cursor, any(&it.event)
	if it.hole != nil {
		name, cursor, v = "hole", it.hole.Cursor, it.hole
	}
	line, err := harness.Encode(v)
	if err != nil {
		return err
	}
	for i, b := range line {
		if b == '\n' || b == '\r' { // between the tokens of a json content; there are none elsewhere in JSON
			line[i] = ' '
		}
	}
	o.piece(name, cursor, line)
	return o.flush()
}

// fail sends an error as the last event.
func (o *sse) fail(err error) error {
	_, body, _ := answerTo(err)
	o.w.code = body.Error.Code
	if line, encodeErr := harness.Encode(body); encodeErr == nil {
		o.piece("error", "", line)
		_ = o.flush() // the reader may be gone
	}
	return nil
}

// piece writes one event; data is one line.
func (o *sse) piece(name, id string, data []byte) {
	o.buf.Reset()
	if name != "" {
		o.buf.WriteString("event: " + name + "\n")
	}
	if id != "" {
		o.buf.WriteString("id: " + id + "\n")
	}
	o.buf.WriteString("data: ")
	o.buf.Write(data)
	o.buf.WriteString("\n\n")
}

func (o *sse) flush() error {
	_ = o.control.SetWriteDeadline(time.Now().Add(o.patience)) // a test's recorder has none
	if _, err := o.w.Write(o.buf.Bytes()); err != nil {
		return err
	}
	err := o.control.Flush()
	if o.buf.Cap() > 1<<20 { // a large event does not keep its memory
		o.buf = bytes.Buffer{}
	}
	return err
}
