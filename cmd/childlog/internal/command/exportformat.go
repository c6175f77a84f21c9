package command

import (
	"bufio"
	"bytes"
	"context"
	"io"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/bundle"
	"childlog/cmd/childlog/internal/drafts"
	"childlog/cmd/childlog/internal/lines"
	"childlog/cmd/childlog/internal/otel"
	"childlog/cmd/childlog/internal/page"
	"childlog/cmd/childlog/internal/review"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// exportFormat is a way to hand logs on.
type exportFormat struct {
	name     string
	about    string // one line of the help
	bytes    bool   // not for a terminal
	exact    bool   // paths can't be masked: what is hashed is left out or stays
	clean    bool   // filtered unless told otherwise
	mayLack  bool   // contents can be left out
	contents bool   // they are there unless told otherwise
	sign     bool   // worth more with a checkpoint of all there is
	none     string // of a format of one line a thing: what it means that there is none
	write    func(ctx context.Context, s *eventlog.Store, x *exportRun, w io.Writer) (wire.Exported, error)
}

// exportFormats are in the order of the help; the first is what is meant if
// nobody says.
var exportFormats = []exportFormat{
	{name: "bundle", about: "one file that `childlog verify --bundle` checks without a store", bytes: true, exact: true, sign: true, write: exportBundle},
	{name: "jsonl", about: "one JSON line an event; `childlog schema line` describes it", write: exportLines},
	{name: "html", about: "the reviews of the sessions, as one page that needs no network", clean: true, write: exportPage},
	{name: "otel", about: "OpenTelemetry traces, as OTLP JSON lines for collectors", clean: true, mayLack: true, write: exportTraces},
	{name: "receipts", about: "the receipts as Internet-Draft bodies, unsigned, one a line", mayLack: true, contents: true, none: "no receipt: a root has none, and what was imported neither", write: exportReceipts},
	{name: "actions", about: "the decisions as Internet-Draft bodies, unsigned, one a line", mayLack: true, contents: true, none: "no decision of childlog is recorded in these logs", write: exportActions},
}

func exportFormatNames() (names []string) {
	for _, f := range exportFormats {
		names = append(names, f.name)
	}
	return names
}

// agents are the sessions of an export that has no use for the store's own.
func (x *exportRun) agents(ctx context.Context, s *eventlog.Store) (ids []uuid.UUID, err error) {
	if x.sessions != nil {
		return x.sessions, nil
	}
	err = s.EachRow(ctx, func(row *eventlog.Row) (bool, error) {
		if row.Session != eventlog.StoreSession {
			ids = append(ids, row.Session)
		}
		return true, nil
	})
	return ids, err
}

func exportBundle(ctx context.Context, s *eventlog.Store, x *exportRun, w io.Writer) (wire.Exported, error) {
	o := bundle.Options{Sessions: x.sessions, Progress: x.progress, Filter: x.text(), Key: s.VerifierKey()}
	if last, ok := s.Signed(); ok {
		o.Note = last.Note
	}
	done, err := bundle.Export(ctx, s, w, o)
	return wire.Exported{Whole: x.sessions == nil, Sessions: done.Sessions, Frames: done.Frames, Events: done.Events, Contents: done.Contents,
		Withheld: done.Withheld, Absent: done.Absent, TreeSize: done.TreeSize, TreeRoot: wire.Hex(done.TreeRoot)}, err
}

func exportLines(ctx context.Context, s *eventlog.Store, x *exportRun, w io.Writer) (wire.Exported, error) {
	done, err := lines.Export(ctx, s, w, lines.Options{Sessions: x.sessions, Progress: x.progress, Filter: x.text()})
	return wire.Exported{Whole: x.sessions == nil, Sessions: done.Sessions, Frames: done.Frames, Events: done.Events, Contents: done.Contents,
		Withheld: done.Rewritten, Absent: done.Absent}, err
}

func exportPage(ctx context.Context, s *eventlog.Store, x *exportRun, w io.Writer) (wire.Exported, error) {
	sessions, err := x.agents(ctx, s)
	if err != nil {
		return wire.Exported{}, err
	}
	check, err := s.Check(ctx, eventlog.CheckOptions{Progress: func(done, of int) { x.progress(uint64(done), uint64(of)) }})
	if err != nil {
		return wire.Exported{}, err
	}
	reviews := make([]review.Review, len(sessions))
	for i, id := range sessions {
		if reviews[i], err = review.Build(ctx, s, id, review.Options{Check: &check}); err != nil {
			return wire.Exported{}, err
		}
	}
	err = page.Write(ctx, w, reviews, page.Options{Store: s.Identity().Store.String(), Filter: x.filter, Counts: x.counts})
	return wire.Exported{Whole: x.sessions == nil, Sessions: uint64(len(sessions))}, err
}

func exportTraces(ctx context.Context, s *eventlog.Store, x *exportRun, w io.Writer) (wire.Exported, error) {
	sessions, err := x.agents(ctx, s)
	if err == nil {
		err = otel.Write(ctx, w, s, sessions, otel.Options{Contents: x.contents, Filter: x.filter, Counts: x.counts})
	}
	return wire.Exported{Whole: x.sessions == nil, Sessions: uint64(len(sessions))}, err
}

func exportReceipts(ctx context.Context, s *eventlog.Store, x *exportRun, w io.Writer) (wire.Exported, error) {
	return exportDraft(ctx, s, x, w, drafts.Receipts)
}

func exportActions(ctx context.Context, s *eventlog.Store, x *exportRun, w io.Writer) (wire.Exported, error) {
	return exportDraft(ctx, s, x, w, drafts.Actions)
}

type draftWriter func(context.Context, io.Writer, *eventlog.Store, []uuid.UUID, drafts.Options) error

// exportDraft counts its lines as events: each is one.
func exportDraft(ctx context.Context, s *eventlog.Store, x *exportRun, w io.Writer, write draftWriter) (wire.Exported, error) {
	sessions, err := x.agents(ctx, s)
	n := lineCounter{w: bufio.NewWriterSize(w, 256<<10)}
	if err == nil {
		err = write(ctx, &n, s, sessions, drafts.Options{Contents: x.contents, Filter: x.filter, Counts: x.counts})
	}
	if err == nil {
		err = n.w.Flush()
	}
	return wire.Exported{Whole: x.sessions == nil, Sessions: uint64(len(sessions)), Events: n.lines}, err
}

// lineCounter counts the lines that pass.
type lineCounter struct {
	w     *bufio.Writer
	lines uint64
}

func (c *lineCounter) Write(b []byte) (int, error) {
	c.lines += uint64(bytes.Count(b, []byte("\n")))
	return c.w.Write(b)
}
