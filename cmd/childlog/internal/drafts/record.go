package drafts

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/logwalk"
	"childlog/cmd/childlog/internal/redact"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// Options says what is carried along.
type Options struct {
	Contents bool           // the texts beside the facts; false: their commitments alone
	Filter   *redact.Filter // of whole lines; nil: nothing is replaced
	Counts   redact.Counts  // of the filter, added to; may be nil
}

// record is the childlog record of a line. Facts are the exact bytes that the
// log's hashes cover; a filter can't look into them, so with one they are left
// out and Filtered says so.
type record struct {
	Draft    string         `json:"draft"`
	Signed   bool           `json:"signed"` // false
	Missing  []missing      `json:"missing"`
	Session  string         `json:"session"`
	Event    jsontext.Value `json:"event"`
	Facts    *string        `json:"facts_msgpack_base64"`
	Filtered bool           `json:"filtered"`
}

// missing is a member that the draft requires and that is not there.
type missing struct {
	Member string `json:"member"`
	Why    string `json:"why"`
}

func (o *Options) record(draft string, ev *eventlog.Event, gone []missing) (record, error) {
	shown := wire.EventOf(ev)
	line, err := shown.Line()
	if err != nil {
		return record{}, err
	}
	r := record{Draft: draft, Missing: gone, Session: ev.Session.String(), Event: bytes.TrimSuffix(line, []byte("\n")), Filtered: o.Filter != nil}
	if o.Filter == nil {
		facts := base64.StdEncoding.EncodeToString(ev.Facts)
		r.Facts = &facts
	}
	return r, nil
}

// line renders a value as one filtered line.
func (o *Options) line(v any) ([]byte, error) {
	line, err := wire.Line(v)
	if err != nil || o.Filter == nil {
		return line, err
	}
	clean, err := o.Filter.JSON(bytes.TrimSuffix(line, []byte("\n")), o.Counts)
	if err != nil {
		return nil, err
	}
	return append(clean, '\n'), nil
}

// broken refuses to go on past a place that can't be read: a list of receipts
// or decisions that lacks some looks like one that is whole.
func broken(session uuid.UUID) func(logwalk.Gap) error {
	return func(g logwalk.Gap) error {
		err := g.Err
		if !errors.Is(err, eventlog.ErrCorrupt) {
			err = fmt.Errorf("%w: %w", eventlog.ErrCorrupt, err)
		}
		return fmt.Errorf("session %s: seq %d to %d: %w", session, g.From, g.To, err)
	}
}
