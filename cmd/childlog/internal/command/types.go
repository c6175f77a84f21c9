package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

func newTypesCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "types [TYPE]",
		GroupID: groupAudit,
		Short:   "List the event types, their facts and who writes them",
		Long: long(`
List the event types that this version gives a meaning to. Types of a closed
family, and tool/decision, are written by childlog's own commands only; a
harness appends open ones, also of families and names of its own. A delegation
writes open types as copies of the parent's conversation.

With TYPE its facts are listed one by one. Codes are letters, digits or
_.:/@+#=-, at most 256: free text is content. A type that takes more facts than
are listed says so. No store is needed.`),
		Example: `  childlog types
  childlog types tool/call
  childlog types --json`,
		Args: between(0, "TYPE"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if len(args) == 0 {
				for _, t := range eventlog.Types() {
					names = append(names, t.Type)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			types := eventlog.Types()
			if len(args) == 1 {
				types = slices.DeleteFunc(types, func(t eventlog.TypeInfo) bool { return t.Type != args[0] })
				if len(types) == 0 {
					return withHint(fmt.Errorf("%w: type %q is none that this version knows", eventlog.ErrNotFound, args[0]),
						"`childlog types` lists them; a harness may append types of its own in open families")
				}
			}
			if a.json {
				for i := range types {
					if err := a.emit(wire.TypeOf(&types[i])); err != nil {
						return err
					}
				}
				return nil
			}
			if len(args) == 1 {
				a.typeDetail(&types[0])
			} else {
				a.types(types)
			}
			return a.out.Err()
		},
	}
}

func (a *app) types(types []eventlog.TypeInfo) {
	rows := make([][]term.Text, len(types))
	for i := range types {
		t := &types[i]
		rows[i] = []term.Text{term.Bold(t.Type), familyText(t), term.Plain(writtenBy(t)), term.Plain(factList(t))}
	}
	a.out.Table([]term.Column{{Title: "TYPE"}, {Title: "FAMILY"}, {Title: "WRITTEN BY", Min: 12, Drop: 1}, {Title: "FACTS (?: optional)", Min: 16}}, rows)
	a.out.Wrap(0, term.Dim("closed families: ", strings.Join(eventlog.ClosedFamilies(), ", ")))
	a.out.Wrap(0, term.Dim("`childlog types TYPE` lists a type's facts and writers in full"))
}

func (a *app) typeDetail(t *eventlog.TypeInfo) {
	rows := []term.Row{{Name: "type", Value: term.Bold(t.Type)}, {Name: "family", Value: familyText(t)}, {Name: "version", Value: term.Plain(fmt.Sprint(t.Version))}}
	if t.Policy {
		rows = append(rows, term.Row{Name: "policy", Value: term.Plain("changes what its session may do")})
	}
	for i, w := range t.Writers {
		row := term.Row{Value: term.Plain(w.By), Note: term.Dim("as source ", strings.Join(w.Sources, ", "))}
		if i == 0 {
			row.Name = "written by"
		}
		rows = append(rows, row)
	}
	more := "any others of a harness's own"
	if t.Strict {
		more = "no others"
	}
	a.out.Rows(append(rows, term.Row{Name: "facts", Value: term.Plain(fmt.Sprintf("%d, and %s", len(t.Facts), more))})...)
	if len(t.Facts) == 0 {
		return
	}
	a.out.Println()
	facts := make([][]term.Text, len(t.Facts))
	for i, f := range t.Facts {
		need := "required"
		if f.Optional {
			need = "optional"
		}
		facts[i] = []term.Text{term.Bold(f.Name), term.Plain(f.Kind), term.Dim(need)}
	}
	a.out.Table([]term.Column{{Title: "FACT"}, {Title: "KIND"}, {Title: ""}}, facts)
}

func familyText(t *eventlog.TypeInfo) term.Text {
	if t.Closed {
		return term.Warn("closed")
	}
	return term.Good("open")
}

func writtenBy(t *eventlog.TypeInfo) string {
	names := make([]string, len(t.Writers))
	for i, w := range t.Writers {
		names[i] = w.By
	}
	return strings.Join(names, ", ")
}

func factList(t *eventlog.TypeInfo) string {
	names := make([]string, 0, len(t.Facts)+1)
	for _, f := range t.Facts {
		if f.Optional {
			f.Name += "?"
		}
		names = append(names, f.Name)
	}
	if !t.Strict {
		names = append(names, "...")
	}
	return strings.Join(names, " ")
}
