package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/claudecode"
	"childlog/cmd/childlog/internal/codex"
	"childlog/cmd/childlog/internal/deepseek"
	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// format is a kind of foreign log. Each line of the table is a format: its name,
// what the help says of it, and what reads it.
type format struct {
	name  string
	about string
	load  func(context.Context, *eventlog.Store, []string, importer.Options) (importer.Report, error)
	own   func(*app, context.Context, []string, importer.Options) error // of childlog's own formats, in place of load
}

var formats = []format{
	{name: deepseek.System, about: "session logs of the DeepSeek Harness", load: deepseek.Import},
	{name: codex.System, about: "rollouts of Codex: ~/.codex/sessions, archived_sessions", load: codex.Import},
	{name: claudecode.System, about: "transcripts of Claude Code: ~/.claude/projects", load: claudecode.Import},
	{name: "bundle", about: "what `childlog export` wrote", own: (*app).importBundle},
	{name: "jsonl", about: "what `childlog export --format jsonl` wrote", own: (*app).importLines},
}

// formatsHelp is the formats as the help lists them.
func formatsHelp() string {
	var b strings.Builder
	for _, f := range formats {
		fmt.Fprintf(&b, "  %-17s %s\n", f.name, f.about)
	}
	return b.String()
}

func formatNames() []string {
	var out []string
	for _, f := range formats {
		out = append(out, f.name)
	}
	return out
}

func newImportCmd(a *app) *cobra.Command {
	var o importer.Options
	cmd := &cobra.Command{
		Use:     "import FORMAT PATH...",
		GroupID: groupAudit,
		Short:   "Import logs from elsewhere as evidence",
		Long: long(`
Read another system's logs into the store, as evidence: they can be read,
explained and checked; they are never resumed, activated or delegated from.
Of other systems they are JSON lines, plain or compressed with zstd. FORMAT is

` + formatsHelp() + `
A bundle is checked in full before anything of it is written. Its logs keep
every event byte for byte, so digests and receipts are the ones they had; what
they say of their own rights counts for nothing here. A second import adds
nothing, and a later bundle of the same logs goes on where the first one ended.
A session that is native here is left alone if its log is the same, else the
bundle is refused.

PATH is a file or a directory; of a directory its *.jsonl and *.jsonl.zst are
taken, without following links. Each line becomes one event with the line as
its content, in order; the files of one tree may come in any order. A file that
was imported before is continued behind what is there, so a growing file may be
imported again and again: a line without its newline is left for the next time.
A file that was rewritten since is reported, and nothing of it is added.

Two reports are the point: who delegated whom under what, and drift, where a
child's policy at work is not the one of its delegation. Every fact is marked
recorded (an event states it), inferred (from what the model was told, or from
a label) or absent. Absence is never permission: what no event states counts as
read-only and never.

Findings do not change the exit code. With --strict a file with an unreadable
line is not taken at all, and the exit code is 1 if there was one. A path that
does not exist ends the import before it began (exit 5).`),
		Example: `  childlog import codex ~/.codex/sessions ~/.codex/archived_sessions
  childlog import deepseek-harness ./sessions
  childlog import deepseek-harness --dry-run --json a.jsonl b.jsonl.zst
  childlog import deepseek-harness --strict ./sessions
  childlog import bundle audit.bundle`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("FORMAT is missing: want %s", strings.Join(formatNames(), ", "))
			case !slices.Contains(formatNames(), args[0]):
				return usagef("format %q: want %s", args[0], strings.Join(formatNames(), ", "))
			case len(args) == 1:
				return usagef("PATH is missing")
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return formatNames(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f := formats[slices.Index(formatNames(), args[0])]
			if f.own != nil {
				return f.own(a, cmd.Context(), args[1:], o)
			}
			open := a.write
			if o.DryRun {
				open = a.read
			}
			var report importer.Report
			begun := false
			err := open(cmd.Context(), func(s *eventlog.Store) (err error) {
				o.Files = a.files
				done := a.importProgress(&o)
				report, err = f.load(cmd.Context(), s, args[1:], o)
				done()
				begun = report.Sessions > 0 || err == nil
				return err
			})
			if !begun {
				if errors.Is(err, eventlog.ErrNotFound) && strings.Contains(err.Error(), "no file or directory") {
					return withHint(err, "nothing was imported; name files or directories that exist")
				}
				return err
			}
			if a.json {
				err = errors.Join(err, a.emitReport(&report))
			} else {
				a.imported(&report)
				err = errors.Join(err, a.out.Err())
			}
			if err == nil && report.Refused > 0 {
				return withHint(fmt.Errorf("strict: of %s with unreadable lines nothing was taken", plural(report.Refused, "file")),
					"mend the lines that the findings name, or import without --strict: then they are kept as they are")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "read, check and report; write nothing")
	cmd.Flags().BoolVar(&o.Strict, "strict", false, "take nothing of a file that has an unreadable line")
	return cmd
}

// importProgress shows a bar while files are read, on a terminal only.
func (a *app) importProgress(o *importer.Options) (done func()) {
	o.Progress = nil
	if a.json || !a.msg.Rich() {
		return func() {}
	}
	var bar *progressbar.ProgressBar
	o.Progress = func(at, of int64) {
		if bar == nil {
			bar = progressbar.NewOptions64(of, progressbar.OptionSetWriter(a.stderr), progressbar.OptionSetDescription("importing"),
				progressbar.OptionSetWidth(20), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		}
		_ = bar.Set64(at) // a bar that can't be drawn is no reason to stop
	}
	return func() {
		if bar != nil {
			_ = bar.Finish()
		}
	}
}

// emitReport prints the report as one line of JSON, ids that are not there as null.
func (a *app) emitReport(r *importer.Report) error {
	ids := json.MarshalToFunc(func(enc *jsontext.Encoder, id uuid.UUID) error {
		if id == uuid.Nil {
			return enc.WriteToken(jsontext.Null)
		}
		return enc.WriteToken(jsontext.String(id.String()))
	})
	b, err := json.Marshal(r, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), json.WithMarshalers(ids))
	if err == nil {
		_, err = a.stdout.Write(append(b, '\n'))
	}
	return err
}
