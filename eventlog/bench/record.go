package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// record is one event as everybody stores it.
type record struct {
	Seq     uint64            `json:"seq"`
	ID      uuid.UUID         `json:"id"`
	Type    string            `json:"type"`
	Time    time.Time         `json:"time"`
	Facts   map[string]string `json:"facts"`
	Content string            `json:"content"`
}

// event is the record as childlog is given it. childlog sets the time and
// counts the seq.
func (r *record) event() (eventlog.NewEvent, error) {
	m := make(map[string]any, len(r.Facts))
	for k, v := range r.Facts {
		m[k] = v
	}
	facts, err := eventlog.MakeFacts(m)
	return eventlog.NewEvent{ID: r.ID, Type: r.Type, Facts: facts, Media: eventlog.MediaText, Content: []byte(r.Content)}, err
}

func (r *record) json() ([]byte, error) { return json.Marshal(r) }

const contentBytes = 300

// source makes the records of one session: calls of a tool and their results,
// in turn. It is not safe for concurrent use.
type source struct {
	seq   uint64
	texts []string
}

func newSource(session int) *source {
	r := rand.New(rand.NewPCG(uint64(session), 7))
	s := &source{texts: make([]string, 16)}
	for i := range s.texts {
		s.texts[i] = prose(r, contentBytes)
	}
	return s
}

func (s *source) next() (*record, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	s.seq++
	r := &record{Seq: s.seq, ID: id, Time: time.Now().UTC(), Content: s.texts[s.seq%uint64(len(s.texts))]}
	call := fmt.Sprintf("call-%d", s.seq/2%1000)
	if s.seq%2 == 0 {
		r.Type, r.Facts = eventlog.TypeToolCall, map[string]string{"call": call, "tool": "read_file"}
	} else {
		r.Type, r.Facts = eventlog.TypeToolResult, map[string]string{"call": call, "outcome": "ok"}
	}
	return r, nil
}

var words = strings.Fields("the session reads a file and finds that most of its lines were written by another tool which kept no order " +
	"so every entry has to be sorted again before the test can run while the parent waits for an answer about what changed in the build")

// prose is n bytes of words: nothing in it is escaped in JSON.
func prose(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(' ')
	}
	return b.String()[:n]
}

// document is about n bytes of what tools return: JSON with paths, numbers,
// hashes and words. It is what the disk rows store.
func document(r *rand.Rand, n int) []byte {
	var b strings.Builder
	b.WriteByte('[')
	for b.Len() < n-90 || b.Len() == 1 {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"path":"src/%s/%s.go","line":%d,"sha":"%08x","text":%q}`,
			words[r.IntN(len(words))], words[r.IntN(len(words))], r.IntN(2000), r.Uint32(), prose(r, 20+r.IntN(30)))
	}
	b.WriteByte(']')
	for b.Len() < n {
		b.WriteByte('\n')
	}
	return []byte(b.String())
}
