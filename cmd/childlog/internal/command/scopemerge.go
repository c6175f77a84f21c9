package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/policy"
)

func newScopeMergeCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "merge FILE",
		Short: "Plan the merge of what several children wrote",
		Long: long(`
Read what siblings declared, and print how their parent takes over their work:
who only read, who wrote where, and which of them could have met in one file.
FILE, or - for stdin, is a list of

  id            of the child or the task (required)
  merge_policy  read_only or transactional_write (default: the latter)
  write_scope   where it writes; left out: anywhere, [] is nowhere

Two scopes conflict if a place of one is, contains or lies within a place of the
other, letter case apart: some file systems know none. Conflicts are an answer
and no failure.`),
		Example: `  childlog scope merge results.json
  childlog scope merge - --json < results.json`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, err := a.document(cmd.Context(), args[0], manifest.MaxDocument)
			if err != nil {
				return err
			}
			results, err := manifest.ParseMerge(doc)
			if err != nil {
				return err
			}
			plan, err := policy.PlanMerge(results)
			if err != nil {
				return err
			}
			return a.show(wire.MergePlanOf(plan), func() { a.mergePlan(plan, results) })
		},
	}
}

func (a *app) mergePlan(plan policy.MergePlan, results []policy.MergeResult) {
	a.out.Println(term.Bold(plan.Strategy), term.Plain(fmt.Sprintf("  %s, %s", plural(len(plan.MutatingIDs), "writer"), plural(len(plan.ReadOnlyIDs), "reader"))))
	var rows []term.Row
	for _, r := range results {
		what := term.Dim("reads only")
		if r.Mutating {
			what = term.Plain(r.Scope.String())
		}
		rows = append(rows, term.Row{Name: r.ID, Value: what})
	}
	a.out.Rows(rows...)
	for _, o := range plan.Conflicts {
		a.out.Println(term.Warn("conflict: "), term.Bold(o.A), term.Plain(" ", o.PathA, "  and  "), term.Bold(o.B), term.Plain(" ", o.PathB))
	}
}
