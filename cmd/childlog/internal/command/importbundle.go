package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"childlog/cmd/childlog/internal/bundle"
	"childlog/cmd/childlog/internal/importer"
	"childlog/cmd/childlog/internal/lines"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// importedBy is what the record of an import says of who took the logs in.
const importedBy = "operator"

// importBundle takes in one bundle after the other.
func (a *app) importBundle(ctx context.Context, files []string, o importer.Options) error {
	return a.importOwn(ctx, files, o, func(s *eventlog.Store, f io.ReadSeeker) (wire.ImportedLogs, error) {
		done, err := bundle.Import(ctx, s, f, bundle.ImportOptions{DryRun: o.DryRun, By: importedBy})
		if err != nil {
			return wire.ImportedLogs{}, err
		}
		v := importedOf(done)
		v.Store, v.Withheld, v.Erased = wire.ID(done.Report.Store), done.Report.Withheld, done.Report.Erased
		return v, nil
	})
}

// importLines takes in one file of lines after the other.
func (a *app) importLines(ctx context.Context, files []string, o importer.Options) error {
	return a.importOwn(ctx, files, o, func(s *eventlog.Store, f io.ReadSeeker) (wire.ImportedLogs, error) {
		done, err := lines.Import(ctx, s, f, o.DryRun, importedBy)
		if err != nil {
			return wire.ImportedLogs{}, err
		}
		v := importedOf(&done.Imported)
		v.Withheld, v.Erased = done.Rewritten, done.Absent
		return v, nil
	})
}

// importOwn takes in files of childlog's own, each as a whole or not at all.
func (a *app) importOwn(ctx context.Context, files []string, o importer.Options, take func(*eventlog.Store, io.ReadSeeker) (wire.ImportedLogs, error)) error {
	if o.Strict {
		return usagef("--strict is for other systems' logs; a file of childlog's own is taken in as a whole or not at all")
	}
	open := a.write
	if o.DryRun {
		open = a.read
	}
	for _, name := range files {
		f, err := a.files.Open(name)
		if err != nil {
			return withHint(fmt.Errorf("%w: %v", eventlog.ErrNotFound, err), "name a file that `childlog export` wrote")
		}
		var v wire.ImportedLogs
		err = open(ctx, func(s *eventlog.Store) (err error) { v, err = take(s, f); return err })
		f.Close()
		if err != nil {
			return importHint(fmt.Errorf("%s: %w", name, err))
		}
		v.File, v.DryRun = name, o.DryRun
		if err := a.show(v, func() { a.importedLogs(&v) }); err != nil {
			return err
		}
	}
	return nil
}

func importHint(err error) error {
	switch {
	case errors.Is(err, eventlog.ErrCorrupt):
		return withHint(err, "nothing was written; `childlog verify --bundle` says what is wrong with a bundle; ask for the file again")
	case errors.Is(err, eventlog.ErrConflict):
		return withHint(err, "nothing was written; import it into a store of its own (`childlog --store NEW init`)")
	case errors.Is(err, eventlog.ErrUnauthorized):
		return withHint(err, "nothing was attached; import it into a store of its own (`childlog --store NEW init`)")
	}
	return err
}

func importedOf(done *bundle.Imported) wire.ImportedLogs {
	v := wire.ImportedLogs{Status: done.Status, Events: done.Events, Sessions: []wire.ImportedLog{}}
	for _, t := range done.Sessions {
		v.Sessions = append(v.Sessions, wire.ImportedLog{Session: t.Session.String(), Head: t.Head, Hash: wire.Hex(t.Hash), Was: t.Was, Outcome: t.Outcome})
	}
	return v
}

// importedLogs tells what was taken in.
func (a *app) importedLogs(v *wire.ImportedLogs) {
	verb := "imported "
	if v.DryRun {
		verb = "would import "
	}
	from := "lines do not say"
	if v.Store != nil {
		from = *v.Store
	}
	a.out.Println(term.Good(verb), term.Bold(v.File), term.Dim("  all of it evidence, never authority"))
	a.out.Rows(
		term.Row{Name: "from", Value: term.Plain(from), Note: term.Dim("the store that they come from")},
		term.Row{Name: "proven", Value: term.Plain(v.Status)},
		term.Row{Name: "events", Value: term.Plain(grouped(v.Events)), Note: term.Dim(without(v.Withheld, v.Erased))},
	)
	if len(v.Sessions) == 0 {
		return
	}
	a.out.Println()
	rows := make([][]term.Text, len(v.Sessions))
	for i, s := range v.Sessions {
		outcome := term.Good(s.Outcome)
		switch s.Outcome {
		case bundle.OutcomeSame:
			outcome = term.Dim(s.Outcome)
		case bundle.OutcomePurged:
			outcome = term.Warn(s.Outcome + " here before, not taken")
		}
		rows[i] = []term.Text{term.Plain(s.Session), term.Plain(fmt.Sprint(s.Head)), term.Plain(s.Hash[:16]), outcome}
	}
	a.out.Table([]term.Column{{Title: "SESSION", Min: 8}, {Title: "HEAD", Right: true}, {Title: "CHAIN HASH"}, {Title: "LOG"}}, rows)
}
