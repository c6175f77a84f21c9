package deepseek

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// run is one import.
type run struct {
	*importer.Run
	plan  *plan
	done  map[uuid.UUID]*outcome // by session
	order []uuid.UUID
}

// outcome is what is known of a session when its files were read. Of several
// copies the longest counts.
type outcome struct {
	f         *file
	lines     int64
	notes     *notes
	effective importer.Effective
}

// Import reads the logs at paths into s as evidence and reports on them. What
// is wrong with a file is a finding and never ends the import. The session of
// a file that was imported before is continued behind what is there.
//
// Errors: eventlog.ErrNotFound, ErrInvalid (paths); the end of ctx; those of a
// commit or of reading the store. The report then covers what was done, which
// is kept: a further run goes on from there.
func Import(ctx context.Context, s *eventlog.Store, paths []string, o importer.Options) (importer.Report, error) {
	r := &run{Run: importer.NewRun(s, System, o), done: map[uuid.UUID]*outcome{}}
	err := r.all(ctx, paths)
	for _, id := range r.order {
		r.delegations(r.done[id])
	}
	return r.Finish(), err
}

func (r *run) all(ctx context.Context, paths []string) error {
	files, err := r.Paths(paths)
	if err != nil {
		return err
	}
	if r.plan, err = makePlan(ctx, r.O.Files, r.S, files, r.Findings.Add); err != nil {
		return err
	}
	r.Report.Skipped = r.plan.skipped
	for _, f := range r.plan.files {
		r.Expect(f.path, 2) // once to check it and once to write it
	}
	return r.Each(len(r.plan.files), func(i int) error { return r.file(ctx, r.plan.files[i]) })
}

// file imports one log.
func (r *run) file(ctx context.Context, f *file) error {
	in, err := r.Open(f.path, &f.Place)
	if err != nil {
		return err
	}
	defer in.Close() // read only
	before := r.Read()
	read := func(n int) { r.Progress(int64(n)) }
	sc, err := scanFile(ctx, r.S, f, in, read, r.Findings.Add)
	if ce := (*eventlog.CorruptError)(nil); errors.As(err, &ce) && ce.Session == f.Session {
		r.find(f, importer.CodeDamaged, 0, "the store's copy can't be read, and nothing is added to it: "+err.Error())
		return importer.ErrSkip
	}
	if err != nil {
		return err
	}
	r.Report.Lines += sc.prefix.Lines
	r.Report.Kept.Add(&sc.kept)
	if sc.prefix.Lines == 0 || sc.changed {
		return importer.ErrSkip
	}
	if r.O.Strict && sc.bad > 0 {
		return r.Refuse(f.path, &f.Place, sc.bad)
	}
	var events int64
	if r.O.DryRun {
		events = sc.pending()
		if copied := r.done[f.Session]; copied != nil { // only what is new in it would be added
			events = max(0, sc.prefix.Lines-copied.lines)
		}
	} else if events, err = r.write(ctx, f, in, sc, read); err != nil {
		return err
	}
	r.Progress(before + 2*in.Size() - r.Read()) // a pass that was not needed
	return r.account(ctx, f, sc, events)
}

func (r *run) find(f *file, code string, line int64, detail string) {
	r.Find(f.path, &f.Place, code, line, detail)
}

// pending is how many events a run would add.
func (sc *scan) pending() int64 {
	n := sc.prefix.Lines - sc.known
	if sc.known == 0 {
		n++ // the header is two events
	}
	if sc.needsSource() {
		n++
	}
	return n
}

// needsSource: lines were added, or an earlier run ended between its lines and
// its last word.
func (sc *scan) needsSource() bool {
	return sc.prefix.Lines > sc.known || sc.prefix.Lines == sc.known && sc.source < uint64(sc.known)
}

// account adds a file to the report.
func (r *run) account(ctx context.Context, f *file, sc *scan, events int64) error {
	effective, err := r.effective(ctx, f, sc)
	if err != nil {
		return err
	}
	out := r.done[f.Session]
	first := out == nil
	if first {
		out = &outcome{}
		r.done[f.Session] = out
		r.order = append(r.order, f.Session)
		r.Report.Sessions++
		if f.New {
			r.Report.NewSessions++
		}
	}
	r.Report.Events += events
	r.Report.SessionList = append(r.Report.SessionList, importer.Session{ID: f.Session, External: f.Key, File: f.path, Kind: f.Kind(),
		Label: sc.notes.displayLabel(), New: f.New && first, Lines: sc.prefix.Lines, Events: events, Inherited: sc.inherited,
		Bytes: sc.prefix.Bytes, SHA256: hex.EncodeToString(sc.prefix.Sum[:]), Sandbox: effective.Sandbox, Approvals: effective.Approvals})
	if sc.prefix.Lines > out.lines {
		out.f, out.lines, out.notes, out.effective = f, sc.prefix.Lines, sc.notes, effective
	}
	sc.notes.policy, sc.notes.policyLine = nil, nil
	return nil
}
