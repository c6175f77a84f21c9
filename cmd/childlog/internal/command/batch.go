package command

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/strict"
	"childlog/eventlog"
)

// maxLine bounds one line of a batch: any content that a batch may hold fits,
// in base64 or with escapes.
const maxLine = eventlog.MaxBatchContent * 2

// readBatch reads JSON lines strictly: what JSON readers disagree about is
// refused with line and byte offset. Blank lines are passed over. Events beyond
// a limit are counted and not kept, so that memory stays bounded and the error
// can name the size.
func readBatch(in io.Reader) ([]eventlog.NewEvent, error) {
	r := bufio.NewReaderSize(in, 64<<10)
	var events []eventlog.NewEvent
	count, content := 0, 0
	for number := 1; ; number++ {
		line, err := readLine(r)
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			ev, bad := parseLine(line)
			if bad != nil {
				return nil, fmt.Errorf("line %d: %w", number, bad)
			}
			count++
			content += len(ev.Content)
			if count > eventlog.MaxBatchEvents || content > eventlog.MaxBatchContent {
				events = nil
			} else {
				events = append(events, ev)
			}
		}
		if err == io.EOF {
			break
		}
	}
	switch {
	case count > eventlog.MaxBatchEvents:
		return nil, &eventlog.TooLargeError{What: "events of a batch", Limit: eventlog.MaxBatchEvents, Size: uint64(count)}
	case content > eventlog.MaxBatchContent:
		return nil, &eventlog.TooLargeError{What: "content of a batch in bytes", Limit: eventlog.MaxBatchContent, Size: uint64(content)}
	case count == 0:
		return nil, fmt.Errorf("%w: the input holds no event", eventlog.ErrInvalid)
	}
	return events, nil
}

// readLine reads a line of any length up to maxLine, without its end. The last
// one comes with io.EOF.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, &eventlog.TooLargeError{What: "line in bytes", Limit: maxLine, Size: uint64(len(line))}
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		return bytes.TrimSuffix(line, []byte("\n")), err
	}
}

// parseLine reads one event.
func parseLine(line []byte) (ev eventlog.NewEvent, err error) {
	v, err := strict.Document(line)
	if err != nil {
		return ev, err
	}
	contentKey := ""
	err = v.Members(func(key string, value strict.Value) error {
		if strings.HasPrefix(key, "content") {
			if contentKey != "" {
				return value.Bad("the event has a /%s already; want at most one content", contentKey)
			}
			contentKey = key
		}
		return setField(&ev, key, value)
	})
	if err == nil && ev.Type == "" {
		err = &strict.Error{Path: "/type", Reason: "required"}
	}
	return ev, err
}

// lineKeys are the keys of a line.
var lineKeys = []string{"type", "facts", "content", "content_text", "content_base64", "id", "ignorable"}

// setField takes one member of the object.
func setField(ev *eventlog.NewEvent, key string, value strict.Value) (err error) {
	var text string
	switch key {
	case "type", "id", "content_text", "content_base64":
		if text, err = value.Text(); err != nil {
			return err
		}
	}
	switch key {
	case "type":
		ev.Type = text
		return value.Wrong(eventlog.CheckType(text))
	case "id":
		if ev.ID, err = uuid.Parse(text); err != nil || len(text) != 36 || ev.ID == uuid.Nil {
			return value.Bad("got %.60q, want a UUID", text)
		}
	case "facts":
		if err := value.Want('{'); err != nil {
			return err
		}
		ev.Facts, err = eventlog.FactsFromJSON(value.Raw())
		return value.Wrong(err)
	case "ignorable":
		ev.Ignorable, err = value.Bool()
		return err
	case "content":
		ev.Media, ev.Content = eventlog.MediaJSON, value.Raw()
		if value.MaybeSurrogates() { // the decoder could not compare its keys
			return value.Wrong(eventlog.CheckJSON(ev.Content))
		}
	case "content_text":
		ev.Media, ev.Content = eventlog.MediaText, []byte(text)
	case "content_base64":
		ev.Media = eventlog.MediaOctets
		if ev.Content, err = base64.StdEncoding.Strict().DecodeString(text); err != nil {
			return value.Bad("%v", err)
		}
	default:
		return value.Unknown(key, lineKeys)
	}
	return nil
}
