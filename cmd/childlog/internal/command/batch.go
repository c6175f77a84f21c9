package command

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"childlog/cmd/childlog/internal/manifest"
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
			ev, bad := manifest.ParseEvent(line)
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
