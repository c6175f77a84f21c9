package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// expectFlag is a head seq, or any.
type expectFlag struct{ seq *uint64 }

func (f *expectFlag) String() string {
	if f.seq == nil {
		return "any"
	}
	return strconv.FormatUint(*f.seq, 10)
}

func (f *expectFlag) Set(s string) error {
	if s == "any" {
		f.seq = nil
		return nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return fmt.Errorf("want a seq or any")
	}
	f.seq = &n
	return nil
}

func (f *expectFlag) Type() string { return "seq" }

func newAppendCmd(a *app) *cobra.Command {
	var (
		expect expectFlag
		epoch  uint64
		key    string
	)
	cmd := &cobra.Command{
		Use:     "append ID [FILE|-]",
		GroupID: groupSessions,
		Short:   "Append a batch of events",
		Long: long(`
Append events to a session's log: one JSON object a line, from a file or from
stdin. All lines are one atomic batch.

  type            family/name, such as user/message or tool/call (required)
  facts           an object of codes, integers and booleans; hashed for ever
  content         any JSON; its bytes are kept exactly as they stand
  content_text    text
  content_base64  bytes
  id              a UUID, for retries: the same id and body at its --expect
                  place, or among the session's last 256 events, are stored
                  once; --key does without
  ignorable       true if a reader that does not know the type may skip it

An event has at most one content. Facts are hashed and stay for ever, so free
text is refused there: it belongs into the content. Duplicate, unknown and
differently cased keys are refused with their place, and then nothing is
written.

childlog's own families (delegation, sandbox, approval, session and so on) are
written by their own commands only (exit 3).

--key makes the whole batch safe to repeat: it names this one batch of the
session, for ever. Whoever lost the answer sends the same lines under the same
key and gets the original result; other lines under it are refused (exit 4). The
events have their ids from it, so the lines carry none.

--expect makes the append fail if the head is another one (exit 4). While an
activation is open its --epoch is needed; a superseded one is fenced (exit 4).`),
		Example: `  echo '{"type":"user/message","content_text":"hi"}' | childlog append 0a1b2c3d
  childlog append 0a1b2c3d --expect 12 --epoch 2 batch.jsonl
  childlog append 0a1b2c3d --key 'run 4, step 7' --json - < batch.jsonl`,
		Args: between(1, "ID", "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := a.stdin
			if len(args) == 2 && args[1] != "-" {
				f, err := a.files.Open(args[1])
				if err != nil {
					return withHint(usagef("%v", err), "name a file of JSON lines that exists, or - for stdin")
				}
				defer f.Close()
				in = f
			}
			if key == "" && cmd.Flags().Changed("key") {
				return usagef("--key: want a name for this batch, got none")
			}
			b := eventlog.Batch{Expect: eventlog.Any(), Epoch: epoch, Key: key}
			if expect.seq != nil {
				b.Expect = eventlog.At(*expect.seq)
			}
			// The input is read and checked before the store is taken: whoever
			// writes it may be slow, and a bad line costs nobody anything.
			var err error
			if b.Events, err = interruptible(cmd.Context(), func() ([]eventlog.NewEvent, error) { return readBatch(in) }); err != nil {
				return err
			}
			return a.write(cmd.Context(), func(s *eventlog.Store) error {
				if b.Session, err = resolve(cmd.Context(), s, args[0]); err != nil {
					return err
				}
				res, err := s.Append(cmd.Context(), b)
				if key != "" && errors.Is(err, eventlog.ErrDuplicate) {
					err = withHint(err, "a key names one batch of its session: send those lines again as they were, or take another key")
				}
				if err != nil {
					return err
				}
				return a.show(wire.WrittenOf(res), func() { a.appended(res, len(b.Events)) })
			})
		},
	}
	cmd.Flags().Var(&expect, "expect", "the head seq that the log must have, 0 for an empty one")
	cmd.Flags().Uint64Var(&epoch, "epoch", 0, "the activation that appends")
	cmd.Flags().StringVar(&key, "key", "", "name this batch, so that a retry of it is written once")
	return cmd
}

func (a *app) appended(res eventlog.Result, n int) {
	verb := term.Good("appended ")
	if res.Replayed {
		verb = term.Warn("already there: ")
	}
	a.out.Println(verb, term.Plain(fmt.Sprintf("%s to ", plural(n, "event"))), term.Bold(res.Session.String()))
	a.out.Rows(
		term.Row{Name: "seq", Value: term.Plain(seqRange(res.FirstSeq, res.LastSeq))},
		term.Row{Name: "hash", Value: term.Plain(wire.Hex(res.Hash))},
	)
}

func seqRange(from, to uint64) string {
	if from == to {
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d to %d", from, to)
}

func plural(n int, what string) string { return ops.Plural(n, what) }

// interruptible gives up on reading input when ctx ends: a read of a terminal
// or a pipe can't be stopped, only left behind.
func interruptible[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		v, err := read()
		done <- answer{v, err}
	}()
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}

// readText reads a text argument, "-" being stdin, up to the limit of a content.
func (a *app) readText(ctx context.Context, arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	b, err := interruptible(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(a.stdin, eventlog.MaxContent+1)) })
	if err == nil && len(b) > eventlog.MaxContent {
		err = &eventlog.TooLargeError{What: "text in bytes", Limit: eventlog.MaxContent, Size: uint64(len(b))}
	}
	return string(b), err
}
