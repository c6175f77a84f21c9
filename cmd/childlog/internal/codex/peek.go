package codex

import (
	"context"
	"strings"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// Bounds of looking into a file for what a thread is about.
const (
	peekLines = 64
	labelLen  = 80 // bytes
)

// labelOf is what a thread is called in lists: a child by its name, another by
// the beginning of the first thing a person said.
func labelOf(ctx context.Context, h *header, in *importer.Input) string {
	if h.isChild() {
		return h.label()
	}
	lines, err := in.Lines(ctx, nil)
	if err != nil {
		return ""
	}
	for range peekLines {
		line, err := lines.Next()
		if err != nil {
			return ""
		}
		if line.Number == 1 || line.TooLong || eventlog.CheckJSON(line.Bytes) != nil {
			continue
		}
		rec, _ := open(line.Bytes)
		text := ""
		switch role, _ := importer.Text(rec.p.role); {
		case rec.sub == "user_message":
			text, _ = importer.Text(rec.p.raw, "message")
		case h.bare && rec.sub == "message" && role == "user":
			text = said(rec.p.content)
		}
		if text = strings.TrimSpace(text); text != "" && text[0] != '<' { // what the harness tells stands in tags
			text, _, _ = strings.Cut(text, "\n")
			return strings.ToValidUTF8(text[:min(len(text), labelLen)], "")
		}
	}
	return ""
}

// strict refuses a file that has an unreadable line, or can't be read.
func (r *run) strict(ctx context.Context, f *file, in *importer.Input) error {
	lines, err := in.Lines(ctx, nil)
	report := func(code string, line int64, detail string) { r.find(f, code, line, detail) }
	var kept importer.Kept
	bad := int64(0)
	for err == nil {
		var line importer.Line
		if line, err = lines.Next(); err != nil {
			if lines.Ended(err, func(string, int64, string) {}) {
				bad++
			}
			break
		}
		if kept.Object(line, report).Bad {
			bad++
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if bad == 0 {
		return nil
	}
	r.Report.Kept.Add(&kept)
	return r.Refuse(f.path, &f.Place, bad)
}
