package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"childlog/cmd/childlog/internal/bundle"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// verifyBundle checks a bundle, which needs no store.
func (a *app) verifyBundle(ctx context.Context, file string, f *againstFlags) error {
	if len(f.checkpoints) > 1 || len(f.anchors) > 0 {
		return usagef("--bundle takes --key and one --checkpoint")
	}
	against, err := f.read(a)
	if err != nil {
		return err
	}
	anchors := bundle.Anchors{Key: against.Key}
	if len(against.Checkpoints) == 1 {
		anchors.Checkpoint = against.Checkpoints[0].Note
	}
	r, err := a.checkBundle(ctx, file, anchors)
	if err != nil {
		return err
	}
	v := bundleOf(r)
	if err := a.show(v, func() { a.bundled(&v, r) }); err != nil {
		return err
	}
	switch r.Status() {
	case bundle.Failed, bundle.Incomplete:
		return withHint(fmt.Errorf("%w: the bundle is %s: verify found %s", eventlog.ErrCorrupt, v.Status, plural(len(v.Findings)+int(v.More), "problem")), bundleHint(r))
	}
	return nil
}

func (a *app) checkBundle(ctx context.Context, file string, anchors bundle.Anchors) (*bundle.Report, error) {
	in, done, err := a.openBundle(file)
	if err != nil {
		return nil, err
	}
	defer done()
	return bundle.Verify(ctx, in, anchors)
}

// openBundle opens a bundle, with a bar on a terminal.
func (a *app) openBundle(file string) (io.Reader, func(), error) {
	if file == "-" {
		return a.stdin, func() {}, nil
	}
	f, err := a.files.Open(file)
	if err != nil {
		return nil, nil, withHint(fmt.Errorf("%w: %v", eventlog.ErrNotFound, err), "name a file that `childlog export` wrote")
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	update, done := a.bar("reading", "KiB")
	return &counted{in: f, of: fi.Size(), update: update}, func() { done(); f.Close() }, nil
}

// counted reports how far a file was read.
type counted struct {
	in     io.Reader
	at, of int64
	update func(at, of int)
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	c.at += int64(n)
	c.update(int(c.at>>10), int(c.of>>10)+1)
	return n, err
}

func bundleHint(r *bundle.Report) string {
	if r.Status() == bundle.Incomplete {
		return "what is here is intact; ask for a bundle of the whole store, made after its checkpoint"
	}
	return "ask for the bundle again, and compare the SHA-256 that `childlog export` printed"
}

func bundleOf(r *bundle.Report) wire.Bundle {
	s := r.Status()
	v := wire.Bundle{OK: s != bundle.Failed && s != bundle.Incomplete, Status: strings.ReplaceAll(string(s), " ", "_"), Statement: r.Statement(), Whole: r.Whole,
		Filtered: r.Filtered, Store: r.Store.String(), Anchored: r.Anchored, TreeSize: r.Size, TreeRoot: wire.Hex(r.Root), Frames: r.Frames, Events: r.Events,
		Contents: r.Contents, Withheld: r.Withheld, Erased: r.Erased, Purged: r.Purged, Sessions: []wire.BundleSession{}, Findings: []wire.Finding{}, More: r.More}
	if r.Signer != "" {
		v.Signer = &r.Signer
	}
	if c := r.Checkpoint; c != nil {
		v.Checkpoint = &wire.BundleCheckpoint{Origin: c.Origin, Size: c.Size, Root: wire.Hex(c.Root)}
	}
	for _, l := range r.Sessions {
		v.Sessions = append(v.Sessions, wire.BundleSession{Session: l.Session.String(), Imported: l.Imported, Head: l.Head, Hash: wire.Hex(l.Hash),
			Complete: l.Complete, Covered: l.Covered, Gone: l.Gone})
	}
	for _, f := range r.Findings {
		v.Findings = append(v.Findings, wire.FindingOf(eventlog.Finding{Kind: f.Kind, Session: f.Session, Seq: f.Seq, Position: f.Position, Detail: f.Detail}))
	}
	return v
}

// bundled shows what was proven.
func (a *app) bundled(v *wire.Bundle, r *bundle.Report) {
	if len(v.Findings) > 0 {
		a.findings("FINDING", v.Findings, term.Bad)
		if v.More > 0 {
			a.out.Println(term.Bad(fmt.Sprintf("and %s more", grouped(v.More))))
		}
		a.out.Println()
	}
	colour := term.Good
	switch r.Status() {
	case bundle.Failed:
		colour = term.Bad
	case bundle.Incomplete:
		colour = term.Warn
	}
	a.out.Println(colour(string(r.Status())))
	a.out.Fold(2, term.Plain(v.Statement))
	rows := []term.Row{
		{Name: "store", Value: term.Plain(v.Store)},
		{Name: "tree", Value: term.Plain(grouped(v.TreeSize), " positions, root ", v.TreeRoot[:16])},
		{Name: "checkpoint", Value: term.Warn("none")},
		{Name: "signed by", Value: term.Warn("not checked"), Note: term.Dim("give --key to check it")},
		{Name: "sessions", Value: term.Plain(grouped(uint64(len(v.Sessions))))},
		{Name: "events", Value: term.Plain(grouped(v.Events))},
		{Name: "contents", Value: term.Plain(grouped(v.Contents)), Note: term.Dim(goneText(v))},
	}
	if c := v.Checkpoint; c != nil {
		rows[2].Value = term.Plain(c.Origin, fmt.Sprintf(" at %s positions", grouped(c.Size)))
	}
	if v.Signer != nil {
		rows[3] = term.Row{Name: "signed by", Value: term.Good(*v.Signer)}
	}
	if v.Anchored {
		rows[2].Note = term.Good("as the one that was kept outside")
	}
	a.out.Rows(rows...)
	if len(v.Sessions) == 0 {
		return
	}
	a.out.Println()
	table := make([][]term.Text, len(v.Sessions))
	for i, s := range v.Sessions {
		whole := term.Good("whole")
		if !s.Complete {
			whole = term.Bad("not whole")
		}
		what := ""
		if s.Session == eventlog.StoreSession.String() {
			what = "the store's own"
		} else if s.Imported {
			what = "evidence there, too"
		}
		table[i] = []term.Text{term.Plain(s.Session), term.Plain(fmt.Sprint(s.Head)), term.Plain(s.Hash[:16]), whole, term.Dim(what)}
	}
	a.out.Table([]term.Column{{Title: "SESSION", Min: 8}, {Title: "HEAD", Right: true}, {Title: "CHAIN HASH"}, {Title: "LOG"}, {Title: ""}}, table)
}

// goneText says why contents are not there, "" if all are.
func goneText(v *wire.Bundle) string {
	var parts []string
	for _, p := range []struct {
		n    uint64
		what string
	}{{v.Withheld, "withheld"}, {v.Erased, "erased, with a marker"}, {v.Purged, "positions purged"}} {
		if p.n > 0 {
			parts = append(parts, grouped(p.n)+" "+p.what)
		}
	}
	return strings.Join(parts, ", ")
}
