package deepseek

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
)

// defaults of an imported session: the harness records none, and absence is
// not permission.
var defaults = policy.Defaults{Sandbox: policy.Sandbox{Mode: policy.ReadOnly}.Canonical(), Approvals: policy.Never}

func (f *file) kind() string {
	if f.h.isChild() {
		return eventlog.KindChild
	}
	return eventlog.KindRoot
}

// created is session/created of a file; n may be nil.
func (f *file) created(n *notes, parentSeq uint64) eventlog.Created {
	c := eventlog.Created{Kind: f.kind(), Parent: f.parent, Root: f.root, Depth: f.depth, MaxDepth: f.depth, Mode: eventlog.ModeOneShot,
		External:      &eventlog.External{System: System, IDHash: eventlog.ExternalHash(System, f.key)},
		WorkspaceRoot: f.h.workspace, PathStyle: f.h.style, SeedLen: f.h.seed, Defaults: defaults, Evidence: true}
	if f.parent != uuid.Nil {
		c.ParentSeq = parentSeq
	}
	if n != nil {
		if n.mode == eventlog.ModeContinuable {
			c.Mode = eventlog.ModeContinuable
		}
		// Where the provider runs is not recorded, so its policy counts as not
		// enforced by anybody here.
		c.Provider = eventlog.Provider{Name: n.provider}
	}
	return c
}

func (f *file) createdFacts(parentSeq uint64) eventlog.Facts {
	return f.created(nil, parentSeq).Facts()
}

// createdEvent is the first event. Its content is what every session has
// there; the header itself is the second event.
func (f *file) createdEvent(n *notes, parentSeq uint64) (eventlog.NewEvent, error) {
	content, err := json.Marshal(struct {
		Label      string `json:"label,omitzero"`
		Cwd        string `json:"cwd,omitzero"`
		ExternalID string `json:"external_id,omitzero"`
	}{n.displayLabel(), f.h.cwd, f.key})
	if err != nil {
		return eventlog.NewEvent{}, err
	}
	return eventlog.NewEvent{ID: importer.EventID(f.session, 1, partCreated, f.h.sum), Type: eventlog.TypeSessionCreated,
		Facts: f.created(n, parentSeq).Facts(), Media: eventlog.MediaJSON, Content: content, Time: f.h.created}, nil
}

// errNative ends a commit that would have touched a native session.
var errNative = fmt.Errorf("%w: a native session has taken the place since", eventlog.ErrConflict)

// admit looks again inside the commit at what the plan rests on.
func (f *file) admit(v *eventlog.View) error {
	for _, id := range []uuid.UUID{f.session, f.parent} {
		row, err := v.Row(id)
		switch {
		case errors.Is(err, eventlog.ErrNotFound):
		case err != nil:
			return err
		case !row.Evidence:
			return errNative
		}
	}
	id, err := v.ByExternal(eventlog.ExternalHash(System, f.key))
	if err == nil && id != uuid.Nil && id != f.session {
		err = errNative
	}
	return err
}

// write appends what the store lacks of a file that was scanned. It reads the
// same open file again, up to where the scan ended.
func (r *run) write(ctx context.Context, f *file, in *importer.Input, sc *scan, read func(int)) (int64, error) {
	if !sc.needsSource() {
		return 0, nil
	}
	lines, err := in.Lines(ctx, read)
	if err != nil {
		return 0, err
	}
	sink := importer.NewSink(r.s, f.session, sc.head, f.admit)
	seed := newSeed(r.s, f)
	for n := int64(1); n <= sc.prefix.Lines; n++ {
		line, err := lines.Next()
		if err != nil {
			return sink.Events, r.rewritten(ctx, f, err)
		}
		if n <= sc.known {
			continue
		}
		if n == 1 {
			if err := r.writeHeader(ctx, f, sink, sc, line); err != nil {
				return sink.Events, err
			}
			continue
		}
		out := sc.mapper.next(line)
		out.event.ID = importer.EventID(f.session, n, partHeader, line.Sum)
		if out.inherited {
			if out.event.Inherited, err = seed.of(ctx, &out, n); err != nil {
				return sink.Events, err
			}
		}
		if err := sink.Add(ctx, out.event); err != nil {
			return sink.Events, err
		}
	}
	if lines.Prefix() != sc.prefix {
		return sink.Events, r.rewritten(ctx, f, nil)
	}
	if seed.guessed > 0 {
		r.find(f, codeUnlinked, 0, fmt.Sprintf("the parent's log is not in the store, or not that far; the places of %d inherited events in it are those that counting gives", seed.guessed))
	}
	packedWhole := false
	if in.Packed() { // the digest of the file as it lies needs the pass to reach its end
		_, err := lines.Next()
		if packedWhole = err == io.EOF; !packedWhole && ctx.Err() != nil {
			return sink.Events, ctx.Err()
		}
	}
	if err := sink.Add(ctx, f.sourceEvent(in, sc, packedWhole)); err != nil {
		return sink.Events, err
	}
	err = sink.Flush(ctx)
	return sink.Events, err
}

func (r *run) writeHeader(ctx context.Context, f *file, sink *importer.Sink, sc *scan, line importer.Line) error {
	call, _ := r.callOf(f, sc.notes)
	first, err := f.createdEvent(sc.notes, call.seq)
	if err != nil {
		return err
	}
	header := keep(lineHeader, eventlog.MediaJSON, line.Bytes)
	header.Facts = facts("original", "session", "line", lineHeader)
	header.ID, header.Time = importer.EventID(f.session, 1, partHeader, line.Sum), f.h.created
	return sink.Add(ctx, first, header)
}

// sourceEvent says what was read. It ends a run and stands for no line; its
// time is the last line's, so that a session's last activity is its own and
// not the import's.
func (f *file) sourceEvent(in *importer.Input, sc *scan, packedWhole bool) eventlog.NewEvent {
	pairs := []any{"lines", sc.prefix.Lines, "bytes", sc.prefix.Bytes, "sha256", eventlog.Hash(sc.prefix.Sum)}
	if packedWhole {
		pairs = append(pairs, "compressed", "zstd", "file_bytes", in.Size(), "file_sha256", eventlog.Hash(in.RawSum()))
	}
	return eventlog.NewEvent{ID: importer.EventID(f.session, sc.prefix.Lines, partSource, sc.prefix.Sum), Type: importer.TypeSource,
		Facts: facts(pairs...), Media: eventlog.MediaText, Content: []byte(strings.ToValidUTF8(f.path, "\ufffd")), Ignorable: true,
		Time: cmp.Or(sc.mapper.last, f.h.created)}
}

// rewritten reports a file that is not what it was a moment ago. What was
// committed of it stays, without an import/source; the next run compares.
func (r *run) rewritten(ctx context.Context, f *file, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	detail := "the file changed while it was read; import it again"
	if err != nil && err != io.EOF {
		detail += ": " + err.Error()
	}
	r.find(f, codeRewritten, 0, detail)
	return nil
}
