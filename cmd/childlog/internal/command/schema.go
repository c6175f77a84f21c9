package command

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/schema"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
)

func newSchemaCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "schema [NAME]",
		GroupID: groupPolicy,
		Short:   "Print the JSON Schema of what childlog reads and records",
		Long: long(`
Print a JSON Schema (draft 2020-12), or without NAME the list of them:

  request    what a delegation asks for
  profile    what a root is set up with
  ceiling    what a narrowing leaves
  rules      operator rules
  call       a tool call to be decided
  decision   the answer to it
  authority  what a session holds
  receipt    what a delegation recorded
  line       an event, as ` + "`childlog export --format jsonl`" + ` writes it

Every schema stands alone, and an editor or a harness can check a document by
it. childlog itself reads more strictly still: duplicate keys, and numbers that
are not written as integers, are no matter for a schema. No store is needed.`),
		Example: `  childlog schema
  childlog schema request > request.schema.json
  childlog schema receipt --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !slices.Contains(schema.Names(), args[0]) {
				return usagef("schema %q: want %s", args[0], strings.Join(schema.Names(), ", "))
			}
			return between(0, "NAME")(cmd, args)
		},
		ValidArgs: schema.Names(),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.schemas()
			}
			text, err := schema.Get(args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.emit(jsontext.Value(text))
			}
			_, err = a.stdout.Write(text)
			return err
		},
	}
}

// schemas lists the schemas.
func (a *app) schemas() error {
	var rows []term.Row
	for _, name := range schema.Names() {
		if a.json {
			if err := a.emit(wire.Schema{Name: name, ID: schema.Base + name, Title: schema.Title(name)}); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, term.Row{Name: name, Value: term.Plain(schema.Title(name))})
	}
	a.out.Rows(rows...)
	return a.out.Err()
}
