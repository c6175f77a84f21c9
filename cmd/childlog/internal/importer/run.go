package importer

import (
	"context"
	"errors"
	"fmt"

	"childlog/cmd/childlog/internal/files"
	"childlog/eventlog"
)

// Run is one import: what every format's has in common. A format embeds it.
type Run struct {
	S        *eventlog.Store
	O        Options
	Report   Report
	Findings Findings

	read, of int64 // bytes
}

// NewRun begins an import of another system's logs.
func NewRun(s *eventlog.Store, system string, o Options) *Run {
	if o.Files == nil {
		o.Files = files.Local{}
	}
	return &Run{S: s, O: o, Report: Report{System: system, DryRun: o.DryRun, SessionList: []Session{},
		DelegationList: []Delegation{}, Drift: []Drift{}}}
}

// Paths lists the files to import and counts them.
func (r *Run) Paths(paths []string) ([]string, error) {
	files, findings, err := Find(r.O.Files, paths, r.S.Dir())
	if err != nil {
		return nil, err
	}
	for _, f := range findings {
		r.Findings.Add(f)
	}
	r.Report.Files = len(files)
	return files, nil
}

// Finish sums up and returns the report.
func (r *Run) Finish() Report {
	r.Report.Findings = r.Findings.List()
	r.Report.Delegations = len(r.Report.DelegationList)
	return r.Report
}

// Each imports n files in turn. One of which nothing is taken (ErrSkip) is
// counted, and the others go on.
func (r *Run) Each(n int, file func(i int) error) error {
	for i := range n {
		switch err := file(i); {
		case errors.Is(err, ErrSkip):
			r.Report.Skipped++
		case err != nil:
			return err
		}
	}
	return nil
}

// Taken returns those of list that take does not skip (ErrSkip), in order. The
// first other error ends it.
func Taken[T any](list []T, take func(T) error) ([]T, error) {
	var out []T
	for _, x := range list {
		switch err := take(x); {
		case err == nil:
			out = append(out, x)
		case !errors.Is(err, ErrSkip):
			return nil, err
		}
	}
	return out, nil
}

// Open opens a file of the run. Errors: ErrSkip, with a finding.
func (r *Run) Open(path string, p *Place) (*Input, error) {
	in, err := OpenInput(r.O.Files, path)
	if err != nil {
		r.Find(path, p, CodeUnreadableFile, 0, err.Error())
		return nil, ErrSkip
	}
	return in, nil
}

// Refuse reports a file of which strict takes nothing: ErrSkip.
func (r *Run) Refuse(path string, p *Place, bad int64) error {
	r.Find(path, p, CodeRefused, 0, fmt.Sprintf("%d unreadable lines: strict, so nothing of this file is taken", bad))
	r.Report.Refused++
	return ErrSkip
}

// Expect adds a file to what the progress counts to, passes times.
func (r *Run) Expect(path string, passes int64) {
	if in, err := OpenInput(r.O.Files, path); err == nil {
		r.of += passes * in.Size()
		in.Close() // nothing was written through it
	}
}

// Read is how many bytes were read so far.
func (r *Run) Read() int64 { return r.read }

// Progress counts bytes that were read, or need not be.
func (r *Run) Progress(n int64) {
	r.read += n
	if r.O.Progress != nil {
		r.O.Progress(min(r.read, r.of), r.of)
	}
}

// Find adds a finding about a file and its session.
func (r *Run) Find(path string, p *Place, code string, line int64, detail string) {
	r.Findings.Add(Finding{Code: code, File: path, Line: line, Session: p.Session, Detail: detail})
}

// Rewritten reports a file that is not what it was a moment ago. What was
// committed of it stays, without an import/source; the next run compares.
func (r *Run) Rewritten(ctx context.Context, path string, p *Place, detail string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.Find(path, p, CodeRewritten, 0, "the file changed while it was read; import it again"+detail)
	return nil
}
