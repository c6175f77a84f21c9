package deepseek

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// run is one import.
type run struct {
	s        *eventlog.Store
	o        importer.Options
	report   importer.Report
	findings importer.Findings
	plan     *plan
	done     map[uuid.UUID]*outcome // by session
	order    []uuid.UUID
	read, of int64 // bytes, of twice the size of the files in all
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
	r := &run{s: s, o: o, done: map[uuid.UUID]*outcome{}}
	r.report = importer.Report{System: System, DryRun: o.DryRun, SessionList: []importer.Session{},
		DelegationList: []importer.Delegation{}, Drift: []importer.Drift{}}
	err := r.all(ctx, paths)
	for _, id := range r.order {
		r.delegations(r.done[id])
	}
	r.report.Findings = r.findings.List()
	r.report.Delegations = len(r.report.DelegationList)
	return r.report, err
}

func (r *run) all(ctx context.Context, paths []string) error {
	files, findings, err := importer.Find(paths, r.s.Dir())
	if err != nil {
		return err
	}
	for _, f := range findings {
		r.findings.Add(f)
	}
	r.report.Files = len(files)
	if r.plan, err = makePlan(ctx, r.s, files, r.findings.Add); err != nil {
		return err
	}
	r.report.Skipped = r.plan.skipped
	r.measure()
	for _, f := range r.plan.files {
		err := r.file(ctx, f)
		if errors.Is(err, errSkip) {
			r.report.Skipped++
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// measure prepares the progress: every file is read once to check it and once
// to write it.
func (r *run) measure() {
	for _, f := range r.plan.files {
		if in, err := importer.OpenInput(f.path); err == nil {
			r.of += 2 * in.Size()
			in.Close() // nothing was written through it
		}
	}
}

func (r *run) progress(n int64) {
	r.read += n
	if r.o.Progress != nil {
		r.o.Progress(min(r.read, r.of), r.of)
	}
}

// file imports one log.
func (r *run) file(ctx context.Context, f *file) error {
	in, err := importer.OpenInput(f.path)
	if err != nil {
		r.find(f, importer.CodeUnreadableFile, 0, err.Error())
		return errSkip
	}
	defer in.Close() // read only
	before := r.read
	read := func(n int) { r.progress(int64(n)) }
	sc, err := scanFile(ctx, r.s, f, in, read, r.findings.Add)
	if ce := (*eventlog.CorruptError)(nil); errors.As(err, &ce) && ce.Session == f.session {
		r.find(f, importer.CodeDamaged, 0, "the store's copy can't be read, and nothing is added to it: "+err.Error())
		return errSkip
	}
	if err != nil {
		return err
	}
	r.report.Lines += sc.prefix.Lines
	r.addKept(&sc.kept)
	if sc.prefix.Lines == 0 || sc.changed {
		return errSkip
	}
	if r.o.Strict && sc.bad > 0 {
		r.find(f, importer.CodeRefused, 0, fmt.Sprintf("%d unreadable lines: strict, so nothing of this file is taken", sc.bad))
		r.report.Refused++
		return errSkip
	}
	var events int64
	if r.o.DryRun {
		events = sc.pending()
		if copied := r.done[f.session]; copied != nil { // only what is new in it would be added
			events = max(0, sc.prefix.Lines-copied.lines)
		}
	} else if events, err = r.write(ctx, f, in, sc, read); err != nil {
		return err
	}
	r.progress(before + 2*in.Size() - r.read) // a pass that was not needed
	return r.account(ctx, f, sc, events)
}

func (r *run) find(f *file, code string, line int64, detail string) {
	r.findings.Add(importer.Finding{Code: code, File: f.path, Line: line, Session: f.session, Detail: detail})
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
	out := r.done[f.session]
	first := out == nil
	if first {
		out = &outcome{}
		r.done[f.session] = out
		r.order = append(r.order, f.session)
		r.report.Sessions++
		if f.isNew {
			r.report.NewSessions++
		}
	}
	r.report.Events += events
	r.report.SessionList = append(r.report.SessionList, importer.Session{ID: f.session, External: f.key, File: f.path, Kind: f.kind(),
		Label: sc.notes.displayLabel(), New: f.isNew && first, Lines: sc.prefix.Lines, Events: events, Inherited: sc.inherited,
		Bytes: sc.prefix.Bytes, SHA256: hex.EncodeToString(sc.prefix.Sum[:]), Sandbox: effective.Sandbox, Approvals: effective.Approvals})
	if sc.prefix.Lines > out.lines {
		out.f, out.lines, out.notes, out.effective = f, sc.prefix.Lines, sc.notes, effective
	}
	sc.notes.policy, sc.notes.policyLine = nil, nil
	return nil
}

func (r *run) addKept(k *importer.Kept) {
	t := &r.report.Kept
	t.Blank += k.Blank
	t.NonObject += k.NonObject
	t.Untyped += k.Untyped
	t.Unreadable += k.Unreadable
	t.TooLong += k.TooLong
	t.Malformed += k.Malformed
	t.Unknown += k.Unknown
}
