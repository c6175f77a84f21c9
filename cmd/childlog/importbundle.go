package main

import (
	"context"
	"fmt"
	"os"

	"childlog/cmd/childlog/internal/bundle"
	"childlog/cmd/childlog/internal/importer"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/internal/wire"
	"childlog/eventlog"
)

// importedBy is what the record of an import says of who took the logs in.
const importedBy = "operator"

// importBundle takes in one bundle after the other.
func (a *app) importBundle(ctx context.Context, files []string, o importer.Options) error {
	if o.Strict {
		return usagef("--strict is for lines; a bundle is taken in as a whole or not at all")
	}
	open := a.write
	if o.DryRun {
		open = a.read
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return withHint(fmt.Errorf("%w: %v", eventlog.ErrNotFound, err), "name a file that `childlog export` wrote")
		}
		var done *bundle.Imported
		err = open(ctx, func(s *eventlog.Store) (err error) {
			done, err = bundle.Import(ctx, s, f, bundle.ImportOptions{DryRun: o.DryRun, By: importedBy})
			return err
		})
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		v := importedOf(name, done, o.DryRun)
		if err := a.show(v, func() { a.importedLogs(&v) }); err != nil {
			return err
		}
	}
	return nil
}

func importedOf(name string, done *bundle.Imported, dry bool) wire.ImportedLogs {
	v := wire.ImportedLogs{File: name, Store: done.Report.Store.String(), Status: done.Status, DryRun: dry, Events: done.Events, Withheld: done.Report.Withheld,
		Erased: done.Report.Erased, Sessions: []wire.ImportedLog{}}
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
	a.out.Println(term.Good(verb), term.Bold(v.File), term.Dim("  all of it evidence, never authority"))
	a.out.Rows(
		term.Row{Name: "store", Value: term.Plain(v.Store), Note: term.Dim("where the logs come from")},
		term.Row{Name: "proven", Value: term.Plain(v.Status), Note: term.Dim("childlog verify --bundle says how far")},
		term.Row{Name: "events", Value: term.Plain(grouped(v.Events)), Note: term.Dim(without(v.Withheld, v.Erased))},
	)
	if len(v.Sessions) == 0 {
		return
	}
	a.out.Println()
	rows := make([][]term.Text, len(v.Sessions))
	for i, s := range v.Sessions {
		outcome := term.Good(s.Outcome)
		if s.Outcome == bundle.OutcomeSame {
			outcome = term.Dim(s.Outcome)
		}
		rows[i] = []term.Text{term.Plain(s.Session), term.Plain(fmt.Sprint(s.Head)), term.Plain(s.Hash[:16]), outcome}
	}
	a.out.Table([]term.Column{{Title: "SESSION", Min: 8}, {Title: "HEAD", Right: true}, {Title: "CHAIN HASH"}, {Title: "LOG"}}, rows)
}
