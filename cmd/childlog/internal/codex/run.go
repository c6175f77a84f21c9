package codex

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
	tree  *importer.Tree
	files []*file
	done  map[uuid.UUID]*outcome // by session
	order []uuid.UUID
	seeds seeds
	w     *importer.Writer // nil in a dry run
}

// outcome is what is known of a session when its files were read. Of several
// copies the longest counts.
type outcome struct {
	f         *file
	prefix    importer.Prefix
	notes     *notes
	effective importer.Effective
}

// Import reads the rollouts at paths into s as evidence and reports on them.
// What is wrong with a file is a finding and never ends the import. The session
// of a file that was imported before is continued behind what is there; a file
// that has not changed since is not taken apart again.
//
// Errors: eventlog.ErrNotFound, ErrInvalid (paths); the end of ctx; those of a
// commit or of reading the store. The report then covers what was done, which
// is kept: a further run goes on from there.
func Import(ctx context.Context, s *eventlog.Store, paths []string, o importer.Options) (importer.Report, error) {
	r := &run{Run: importer.NewRun(s, System, o), done: map[uuid.UUID]*outcome{}}
	r.seeds.s = s
	if !o.DryRun {
		r.w = importer.NewWriter(s)
	}
	err := r.all(ctx, paths)
	if more := r.flush(ctx); err == nil {
		err = more
	}
	if r.w != nil {
		r.w.Close()
	}
	if err != nil {
		r.cutShort()
	}
	for _, id := range r.order {
		if more := r.delegation(ctx, r.done[id]); err == nil {
			err = more
		}
	}
	return r.Finish(), err
}

// flush waits until what was read so far is durable.
func (r *run) flush(ctx context.Context) error {
	if r.w == nil {
		return nil
	}
	return r.w.Flush(ctx)
}

// cutShort makes the report of a run that failed say what is durable.
func (r *run) cutShort() {
	if r.w == nil {
		return
	}
	r.Report.Events = 0
	counted := map[uuid.UUID]int64{}
	for i := range r.Report.SessionList {
		x := &r.Report.SessionList[i]
		x.Events = min(x.Events, r.w.Committed(x.ID)-counted[x.ID])
		counted[x.ID] += x.Events
	}
	seen := map[uuid.UUID]bool{}
	for _, f := range r.files {
		if !seen[f.Session] {
			seen[f.Session] = true
			r.Report.Events += r.w.Committed(f.Session)
		}
	}
}

func (r *run) all(ctx context.Context, paths []string) error {
	files, err := r.Paths(paths)
	if err != nil {
		return err
	}
	if err := r.plan(ctx, files); err != nil {
		return err
	}
	for _, f := range r.files {
		r.Expect(f.path, 1)
	}
	return r.Each(len(r.files), func(i int) error { return r.file(ctx, r.files[i]) })
}

func (r *run) find(f *file, code string, line int64, detail string) {
	r.Find(f.path, &f.Place, code, line, detail)
}

// file imports one rollout.
func (r *run) file(ctx context.Context, f *file) error {
	in, err := r.Open(f.path, &f.Place)
	if err != nil {
		return err
	}
	defer in.Close() // read only
	end := r.Read() + in.Size()
	defer func() { r.Progress(end - r.Read()) }() // however often it was read
	if done, err := r.known(ctx, f, in); done || err != nil {
		return err
	}
	if r.O.Strict {
		if err := r.strict(ctx, f, in); err != nil {
			return err
		}
	}
	if f.New {
		f.label = labelOf(ctx, &f.h, in)
	}
	if r.done[f.Session] != nil { // a copy is compared with what the one before it has brought
		if err := r.flush(ctx); err != nil {
			return err
		}
	}
	p, err := newPass(ctx, r, f)
	if err != nil {
		return err
	}
	err = p.run(ctx, in)
	if ce := (*eventlog.CorruptError)(nil); errors.As(err, &ce) && ce.Session == f.Session {
		r.find(f, importer.CodeDamaged, 0, "the store's copy can't be read, and nothing is added to it: "+err.Error())
		return importer.ErrSkip
	}
	r.Report.Events += p.events
	r.Report.Lines += p.prefix.Lines
	r.Report.Kept.Add(&p.mapper.kept)
	if err != nil {
		return err
	}
	if p.prefix.Lines == 0 || p.changed {
		return importer.ErrSkip
	}
	return r.account(ctx, f, p.prefix, p.events, p.mapper.zone.lines, p.notes, p.beyond > 0)
}

// known takes a file that has not changed since it was imported: what is
// reported of it then comes from the store.
func (r *run) known(ctx context.Context, f *file, in *importer.Input) (bool, error) {
	if f.New {
		return false, nil
	}
	prefix, source, ok, err := importer.Unchanged(ctx, r.S, f.Session, in, func(n int) { r.Progress(int64(n)) }, func(code string, line int64, detail string) { r.find(f, code, line, detail) })
	if err == nil && ok {
		var n *notes
		if n, err = storedNotes(ctx, r.S, f.Session); err == nil {
			return true, r.unchanged(ctx, f, prefix, source, n)
		}
	}
	if ctx.Err() == nil {
		err = nil // the store's copy is damaged, which its lines will tell
	}
	return false, err
}

func (r *run) unchanged(ctx context.Context, f *file, prefix importer.Prefix, source map[string]any, n *notes) error {
	if r.Report.Unchanged++; r.Report.Unchanged%releaseAfter == 0 {
		r.S.ReleasePages()
	}
	r.Report.Lines += prefix.Lines
	inherited, _ := source["inherited"].(int64)
	return r.account(ctx, f, prefix, 0, inherited, n, len(n.policy) == 0)
}

// releaseAfter is after how many files that are known the pages of the store that
// were read for them are given back.
const releaseAfter = 256

// account adds a file to the report.
func (r *run) account(ctx context.Context, f *file, prefix importer.Prefix, events, inherited int64, n *notes, stored bool) error {
	effective, err := r.effective(ctx, f, n, stored)
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
	label := f.label
	if row, err := r.S.Row(f.Session); err == nil {
		label = row.Label
	}
	r.Report.SessionList = append(r.Report.SessionList, importer.Session{ID: f.Session, External: f.Key, File: f.path, Kind: f.Kind(),
		Label: label, New: f.New && first, Lines: prefix.Lines, Events: events, Inherited: inherited,
		Bytes: prefix.Bytes, SHA256: hex.EncodeToString(prefix.Sum[:]), Sandbox: effective.Sandbox, Approvals: effective.Approvals})
	if prefix.Lines > out.prefix.Lines {
		out.f, out.prefix, out.notes, out.effective = f, prefix, n, effective
	}
	n.policy, n.policyLine = nil, nil
	return nil
}
