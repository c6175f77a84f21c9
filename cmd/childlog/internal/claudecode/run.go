package claudecode

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// run is one import.
type run struct {
	*importer.Run
	plan     *plan
	done     map[uuid.UUID]*conv // by session; of several copies the longest
	order    []uuid.UUID
	families map[string][]*conv // by session id: those that may have called for its agents
	settled  map[string]map[*file]*known
	noted    map[eventlog.Ref]bool // calls whose exceptions were reported
}

// Import reads the transcripts at paths into s as evidence and reports on
// them. What is wrong with a file is a finding and never ends the import. What
// was imported before is continued behind what is there.
//
// Errors: eventlog.ErrNotFound, ErrInvalid (paths); the end of ctx; those of a
// commit or of reading the store. The report then covers what was done, which
// is kept: a further run goes on from there.
func Import(ctx context.Context, s *eventlog.Store, paths []string, o importer.Options) (importer.Report, error) {
	r := &run{Run: importer.NewRun(s, System, o), done: map[uuid.UUID]*conv{}, families: map[string][]*conv{},
		settled: map[string]map[*file]*known{}, noted: map[eventlog.Ref]bool{}}
	err := r.all(ctx, paths)
	if err == nil {
		err = r.missing()
	}
	for _, id := range r.order {
		r.delegation(r.done[id])
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
	return r.Each(len(r.plan.files), func(i int) (err error) {
		f := r.plan.files[i]
		if _, looked := r.settled[f.h.session]; !looked {
			if r.settled[f.h.session], err = r.unchanged(ctx, f.h.session); err != nil {
				return err
			}
		}
		return r.file(ctx, f)
	})
}

func (r *run) find(f *file, code string, line int64, detail string) {
	r.Find(f.path, &f.Place, code, line, detail)
}

// file imports one file.
func (r *run) file(ctx context.Context, f *file) error {
	in, err := r.Open(f.path, &f.Place)
	if err != nil {
		return err
	}
	defer in.Close() // read only
	before := r.Read()
	if k := r.settled[f.h.session][f]; k != nil {
		r.Progress(2 * in.Size())
		return r.accept(ctx, f, k)
	}
	read := func(n int) { r.Progress(int64(n)) }
	sc, err := r.scanFile(ctx, f, in, read)
	if ce := (*eventlog.CorruptError)(nil); errors.As(err, &ce) {
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
	for _, c := range sc.convs {
		if err := r.place(c); err != nil {
			return err
		}
	}
	if !r.O.DryRun {
		if err := r.write(ctx, in, sc, read); err != nil {
			return err
		}
	}
	r.Progress(before + 2*in.Size() - r.Read()) // a pass that was not needed
	for _, c := range sc.convs {
		c.look = nil // it holds a page of the log, and is kept with the rest until the report
		if err := r.account(ctx, sc.prefix, c); err != nil {
			return err
		}
	}
	return nil
}

// account adds a conversation to the report.
func (r *run) account(ctx context.Context, prefix importer.Prefix, c *conv) error {
	if err := r.effect(ctx, c); err != nil {
		return err
	}
	had := r.done[c.place.Session]
	if r.O.DryRun {
		c.added = c.events
		if had != nil { // of a copy only what is new in it would be added
			if c.added = max(0, c.events-had.events); c.added > 0 {
				c.added++ // and the run's last word
			}
		}
	}
	if had == nil {
		r.order = append(r.order, c.place.Session)
		r.Report.Sessions++
		if c.place.New {
			r.Report.NewSessions++
		}
	}
	r.Report.Events += c.added
	r.Report.SessionList = append(r.Report.SessionList, importer.Session{ID: c.place.Session, External: c.place.Key, File: c.f.path, Kind: c.place.Kind(),
		Label: c.title(), New: c.place.New && had == nil, Lines: c.lines, Events: c.added, Inherited: c.inherited, Bytes: prefix.Bytes,
		SHA256: hex.EncodeToString(prefix.Sum[:]), Sandbox: c.effective.Sandbox, Approvals: c.effective.Approvals})
	if had == nil || c.lines > had.lines {
		r.done[c.place.Session] = c
	}
	c.notes.policy, c.notes.policyLine = nil, nil
	return nil
}

// effect folds the policy events with the fold that every reader uses, and
// reports what it finds. In a dry run nothing is in the store, and the answer
// is the same. Two of its findings are not repeated here: that a child has no
// approval pin, as no agent of Claude Code has one, which its report says as
// absent; and that a permission mode is no value of childlog's.
func (r *run) effect(ctx context.Context, c *conv) error {
	n := c.notes
	if n.overflow {
		r.find(c.f, codeTooMuchPolicy, 0, fmt.Sprintf("more than %d policy events; this report folds only those", maxPolicy))
	}
	var e replay.Effective
	var err error
	if c.beyond > 0 || c.row != nil { // the store knows more than was read of this file
		e, err = replay.Policy(ctx, r.S, c.place.Session, 0)
	} else {
		e, err = replay.Fold(n.policy)
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.find(c.f, importer.CodeMalformed, 0, "the policy can't be folded, and nothing may be granted: "+err.Error())
		c.effective = importer.Effective{Sandbox: "unreadable", Approvals: string(policy.Never)}
		return nil
	}
	for _, found := range e.Findings {
		if c.row == nil && found.Code != replay.FindingUnpinned && found.Code != replay.FindingForeignAsk {
			r.Findings.Add(importer.Finding{Code: found.Code, File: c.f.path, Line: n.policyLine[found.Seq], Session: c.place.Session, Seq: found.Seq, Detail: found.Detail})
		}
	}
	c.effective = importer.Effective{Sandbox: e.Sandbox.Value.String(), Approvals: string(e.Approvals)}
	return nil
}
