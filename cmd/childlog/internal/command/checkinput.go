package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/eventlog"
)

// calls reads the input: one call, or with --batch one a line.
func (c *checkRun) calls(ctx context.Context, name string) ([]checked, error) {
	if c.batch {
		in := c.stdin
		if name != "-" {
			f, err := c.files.Open(name)
			if err != nil {
				return nil, usagef("%v", err)
			}
			defer f.Close()
			in = f
		}
		return interruptible(ctx, func() ([]checked, error) { return readCalls(in) })
	}
	doc, err := c.document(ctx, name, manifest.MaxCall)
	if err != nil {
		return nil, err
	}
	call, err := parseCall(doc)
	if err != nil {
		return nil, err
	}
	return []checked{{call: call}}, nil
}

// parseCall is [manifest.ParseCall] with where to read what a call is made of.
func parseCall(doc []byte) (*manifest.Call, error) {
	call, err := manifest.ParseCall(doc)
	if err != nil {
		return nil, withHint(err, "nothing was decided; `childlog schema call` describes the document")
	}
	return call, nil
}

// readCalls reads calls, one a line; blank lines are passed over. A line that
// holds none is kept with what is wrong with it. The limits are those of a batch
// of events, so that one run holds no more in memory than an append does.
func readCalls(in io.Reader) ([]checked, error) {
	r := bufio.NewReaderSize(in, 64<<10)
	var out []checked
	size := 0
	for number := uint64(1); ; number++ {
		line, err := readLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if size += len(line); size > eventlog.MaxBatchContent {
				return nil, &eventlog.TooLargeError{What: "batch of calls in bytes", Limit: eventlog.MaxBatchContent, Size: uint64(size)}
			}
			if len(out) == eventlog.MaxBatchEvents {
				return nil, &eventlog.TooLargeError{What: "calls of a batch", Limit: eventlog.MaxBatchEvents, Size: uint64(len(out) + 1)}
			}
			one := checked{line: number}
			one.call, one.bad = manifest.ParseCall(line)
			out = append(out, one)
		}
		if err != nil {
			break
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: the input holds no call", eventlog.ErrInvalid)
	}
	return out, nil
}
