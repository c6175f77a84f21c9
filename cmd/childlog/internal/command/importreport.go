package command

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/cmd/childlog/internal/term"
)

// maxShown bounds each table for people; --json has everything.
const maxShown = 100

// imported prints the report of an import: the sum, then what it is for.
func (a *app) imported(r *importer.Report) {
	dir := commonDir(r)
	var all []uuid.UUID
	for i := range r.SessionList {
		all = append(all, r.SessionList[i].ID)
	}
	for i := range r.DelegationList {
		all = append(all, r.DelegationList[i].Parent)
	}
	short := shortIDs(all)
	verb := term.Good("imported ")
	if r.DryRun {
		verb = term.Warn("would import ")
	}
	a.out.Println(verb, term.Bold(plural(r.Files, "file")), term.Plain(" of "+r.System), term.Dim(below(dir)))
	n := func(n int64) term.Text { return term.Plain(grouped(uint64(max(0, n)))) }
	rows := []term.Row{
		{Name: "sessions", Value: n(int64(r.Sessions)), Note: term.Dim(fmt.Sprintf("%s new, all of them evidence", grouped(uint64(r.NewSessions))))},
		{Name: "events", Value: n(r.Events), Note: term.Dim(fmt.Sprintf("added, from %s lines read", grouped(uint64(r.Lines))))},
		{Name: "delegations", Value: n(int64(r.Delegations))},
		{Name: "findings", Value: n(int64(len(r.Findings)))},
		{Name: "skipped", Value: n(int64(r.Skipped)), Note: term.Dim("files of which nothing was taken")},
	}
	if r.Unchanged > 0 {
		rows = append(rows, term.Row{Name: "unchanged", Value: n(int64(r.Unchanged)), Note: term.Dim("files that are what was read before; what their lines hold was reported then")})
	}
	if kept := keptText(&r.Kept); kept != "" {
		rows = append(rows, term.Row{Name: "kept as is", Value: term.Plain(kept)})
	}
	a.out.Rows(rows...)
	a.importedDelegations(r, short)
	a.importedDrift(r, short)
	a.importedFindings(r, dir, short)
}

func below(dir string) string {
	if dir == "" {
		return ""
	}
	return " below " + dir
}

// keptText lists the lines that were kept without being understood.
func keptText(k *importer.Kept) string {
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{{k.Unreadable, "unreadable"}, {k.TooLong, "too long"}, {k.Malformed, "malformed"}, {k.Unknown, "of unknown type"}, {k.Untyped, "without type"},
		{k.NonObject, "no object"}, {k.Blank, "blank"}, {k.Duplicate, "repeated"}} {
		if p.n > 0 {
			parts = append(parts, grouped(uint64(p.n))+" "+p.what)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "lines: " + strings.Join(parts, ", ")
}

// factText shows a fact with how far the log backs it.
func factText(f importer.Fact) term.Text {
	switch f.Mark {
	case importer.Recorded:
		return term.Plain(f.Value)
	case importer.Inferred:
		return term.Cat(term.Plain(f.Value), term.Dim(" inferred"))
	}
	return term.Warn("absent")
}

func (a *app) importedDelegations(r *importer.Report, short ids) {
	if len(r.DelegationList) == 0 {
		return
	}
	a.out.Println()
	list := r.DelegationList[:min(len(r.DelegationList), maxShown)]
	absent, cells := false, make([][]term.Text, len(list))
	for i := range list {
		d := &list[i]
		label := term.Bold(d.Label)
		if d.Label == "" {
			label = term.Dim("(no label)")
		}
		absent = absent || d.Sandbox.Mark == importer.Absent || d.Approvals.Mark == importer.Absent
		cells[i] = []term.Text{label, term.Plain(short.of(d.Child)), a.parentText(d, short), term.Plain(providerText(d)),
			factText(d.Sandbox), factText(d.Approvals), toldText(d), countsText(d.Effective.Sandbox, d.Effective.Approvals), callText(d)}
	}
	a.out.Table([]term.Column{{Title: "DELEGATION", Min: 16}, {Title: "CHILD"}, {Title: "BY PARENT", Drop: 1}, {Title: "PROVIDER", Drop: 4}, {Title: "SANDBOX"},
		{Title: "APPROVALS"}, {Title: "MODEL WAS TOLD", Drop: 3}, {Title: "COUNTS AS", Min: 12, Drop: 2}, {Title: "CALL", Drop: 5}}, cells)
	a.more(len(r.DelegationList), len(list))
	if absent {
		a.out.Wrap(0, term.Warn("absent"), term.Dim(": no event states it. Without a sandbox the deployment's default was in force, which no log records; it counts as read-only. Approvals count as never."))
	}
	a.neverLegend("never")
}

func (a *app) parentText(d *importer.Delegation, short ids) term.Text {
	switch {
	case d.Parent == uuid.Nil:
		return term.Warn("not named")
	case !d.ParentKnown:
		return term.Cat(term.Plain(short.of(d.Parent)), term.Warn(" not imported"))
	case d.ParentMark == importer.Inferred:
		return term.Cat(term.Plain(short.of(d.Parent)), term.Dim(" inferred"))
	}
	return term.Plain(short.of(d.Parent))
}

func providerText(d *importer.Delegation) string {
	if d.Provider == "" {
		return d.Mode
	}
	return strings.TrimSuffix(d.Provider+", "+d.Mode, ", ")
}

// countsText is what childlog counts, without what a sandbox's value says in
// brackets.
func countsText(values ...string) term.Text {
	for i, v := range values {
		values[i], _, _ = strings.Cut(v, " (")
	}
	return term.Plain(strings.Join(values, ", "))
}

func toldText(d *importer.Delegation) term.Text {
	var parts []string
	for _, f := range []importer.Fact{d.Told.Sandbox, d.Told.Approvals} {
		if f.Mark == importer.Inferred {
			parts = append(parts, f.Value)
		}
	}
	return term.Plain(strings.Join(parts, ", "))
}

func callText(d *importer.Delegation) term.Text {
	if d.Call.Mark == importer.Absent {
		return nil
	}
	t := term.Plain(d.Tool, fmt.Sprintf(" at seq %d", d.Call.Seq))
	if d.Call.Mark == importer.Inferred {
		t = term.Cat(t, term.Dim(" inferred"))
	}
	return t
}

func (a *app) importedDrift(r *importer.Report, short ids) {
	if len(r.Drift) == 0 {
		switch {
		case r.Delegations == 0:
		case !slices.ContainsFunc(r.DelegationList, func(d importer.Delegation) bool {
			return d.Sandbox.Mark == importer.Recorded || d.Approvals.Mark == importer.Recorded
		}):
			a.out.Println()
			a.out.Println(term.Warn("drift unknown"), term.Dim(": no child's log states the policy that it worked under"))
		default:
			a.out.Println()
			unknown := 0
			for i := range r.DelegationList {
				if d := &r.DelegationList[i]; d.Sandbox.Mark == importer.Absent && d.Approvals.Mark == importer.Absent {
					unknown++
				}
			}
			text := ": no child's log goes beyond, or below, what its delegation states"
			if unknown > 0 {
				text += fmt.Sprintf("; of %s it is not known under what", plural(unknown, "delegation"))
			}
			a.out.Println(term.Good("no drift"), term.Dim(text))
		}
		return
	}
	a.out.Println()
	list := r.Drift[:min(len(r.Drift), maxShown)]
	cells := make([][]term.Text, len(list))
	for i := range list {
		d := &list[i]
		seq := ""
		if d.AtWork.Seq > 0 {
			seq = fmt.Sprint(d.AtWork.Seq)
		}
		cells[i] = []term.Text{term.Plain(short.of(d.Session)), term.Bold(d.Field), factText(d.AtDelegation), factText(d.AtWork), term.Plain(seq), countsText(d.Counts), term.Plain(d.Detail)}
	}
	columns := []term.Column{{Title: "DRIFT OF"}, {Title: "FIELD"}, {Title: "AT DELEGATION"}, {Title: "AT WORK"}, {Title: "SEQ", Right: true}, {Title: "COUNTS AS"}, {Title: "DETAIL"}}
	if !a.out.Rich() {
		a.out.Table(columns, cells)
	} else { // a detail is a sentence, which a narrow column would cut
		for _, c := range cells {
			a.out.Println(term.Warn("drift"), term.Plain("  "), c[0], term.Plain("  "), c[1], term.Plain(": "), c[2], term.Dim(" at delegation, "), c[3], term.Dim(" at work"))
			a.out.Wrap(4, c[6], term.Plain("; counts as "), c[5])
		}
	}
	a.more(len(r.Drift), len(list))
}

func (a *app) importedFindings(r *importer.Report, dir string, short ids) {
	if len(r.Findings) == 0 {
		return
	}
	a.out.Println()
	list := r.Findings[:min(len(r.Findings), maxShown)]
	cells := make([][]term.Text, len(list))
	for i := range list {
		f := &list[i]
		place := strings.TrimPrefix(f.File, dir)
		if f.Line > 0 {
			place += fmt.Sprintf(":%d", f.Line)
		}
		seq := ""
		if f.Seq > 0 {
			seq = fmt.Sprint(f.Seq)
		}
		cells[i] = []term.Text{term.Warn(f.Code), term.Plain(place), term.Plain(short.of(f.Session)), term.Plain(seq), term.Plain(f.Detail)}
	}
	if a.out.Rich() { // a detail is a sentence, which a narrow column would cut
		for _, c := range cells {
			a.out.Println(c[0], term.Plain("  "), c[1])
			a.out.Wrap(4, c[4])
		}
	} else {
		a.out.Table([]term.Column{{Title: "FINDING"}, {Title: "PLACE"}, {Title: "SESSION"}, {Title: "SEQ", Right: true}, {Title: "DETAIL"}}, cells)
	}
	a.more(len(r.Findings), len(list))
}

func (a *app) more(all, shown int) {
	if all > shown {
		a.out.Println(term.Dim(fmt.Sprintf("and %s more; --json lists all", grouped(uint64(all-shown)))))
	}
}

// commonDir is the folder, with its separator, that all files of a report lie
// below; it is shown once.
func commonDir(r *importer.Report) string {
	dir, first := "", true
	for _, path := range append(pathsOf(r), findingPaths(r)...) {
		d, _ := filepath.Split(path)
		if first {
			dir, first = d, false
		}
		for dir != "" && !strings.HasPrefix(d, dir) {
			dir, _ = filepath.Split(strings.TrimSuffix(dir, string(filepath.Separator)))
		}
	}
	return dir
}

func pathsOf(r *importer.Report) (out []string) {
	for i := range r.SessionList {
		out = append(out, r.SessionList[i].File)
	}
	return out
}

func findingPaths(r *importer.Report) (out []string) {
	for i := range r.Findings {
		if r.Findings[i].File != "" {
			out = append(out, r.Findings[i].File)
		}
	}
	return out
}
