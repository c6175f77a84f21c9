package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

func newRulesCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rules",
		GroupID: groupPolicy,
		Short:   "Deny tools and places to every session of a store",
		Long: long(`
Operator rules are bound to the store and deny tools or places, whatever a
session was granted.

  rules set FILE   replace them
  rules show       print them, or with --history every set there was

Roots follow the rules that the store has at each decision. A child has those of
its parent and those of the store at its capture, for ever.`),
		Example: `  childlog rules set rules.json
  childlog rules show --history`,
		RunE: func(*cobra.Command, []string) error { return usagef("rules: want set or show") },
	}
	cmd.AddCommand(a.runs(newRulesSetCmd(a)), a.runs(newRulesShowCmd(a)))
	return cmd
}

func newRulesSetCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "set FILE",
		Short: "Replace the rules of the store",
		Long: long(`
Replace the operator rules of the store by those of a JSON document, from a file
or, as -, from stdin:

  {"deny_tools": ["exec_shell", "mcp__*"], "deny_paths": ["secrets"]}

A tool is a name, or the beginning of one and a final *. A place lies below a
workspace, and all below it is meant. Rules that say what is in force already
write nothing. The document is kept.

Roots follow the new rules at once. Children keep what they captured: rules that
are new here reach them by narrow --all --rules, and rules that are gone here
bind them for ever.`),
		Example: `  childlog rules set rules.json
  echo '{"deny_tools":["chmod"]}' | childlog rules set -
  childlog narrow --all --rules --reason "new rules"`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			doc, err := a.document(ctx, args[0], manifest.MaxDocument)
			if err != nil {
				return err
			}
			f, err := manifest.ParseRules(doc)
			if err != nil {
				return withHint(err, "nothing was written; `childlog schema rules` describes the document")
			}
			return a.write(ctx, func(s *eventlog.Store) error {
				v, rules, err := ops.SetRules(ctx, s, replay.RuleFile{DenyTools: f.DenyTools, DenyPaths: f.DenyPaths, Text: doc})
				if err != nil {
					return err
				}
				return a.show(v, func() { a.rulesSet(&v, rules) })
			})
		},
	}
}

func newRulesShowCmd(a *app) *cobra.Command {
	var history bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the rules of the store",
		Long: long(`
Print the operator rules that are bound to the store now, with the event that
set them; with --history each set that there was, the last one being in force.
The digest is of what the rules say: stores with the same rules have the same.`),
		Example: `  childlog rules show
  childlog rules show --history --json`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			var rules policy.OperatorRules
			var sets []ops.RuleSet
			var v wire.Rules
			err := a.read(ctx, func(s *eventlog.Store) (err error) {
				v, rules, sets, err = ops.RulesNow(ctx, s)
				return err
			})
			if err != nil {
				return err
			}
			if !history {
				return a.show(v, func() { a.rules(&v, rules) })
			}
			if !a.json {
				a.ruleSets(sets)
				return a.out.Err()
			}
			for i := range sets {
				if err := a.emit(setOf(&sets[i])); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&history, "history", false, "every set of rules that there was, oldest first")
	return cmd
}

// setCounts tells how many tools and how many places the set denies.
func setCounts(r *ops.RuleSet) (tools, paths int) {
	for _, e := range r.Rules.Entries() {
		if e.Path != "" {
			paths++
		} else {
			tools++
		}
	}
	return tools, paths
}

func setOf(r *ops.RuleSet) wire.RuleSet {
	tools, paths := setCounts(r)
	return wire.RuleSet{Seq: r.Event.Seq, Time: wire.Time(r.Event.Time), Digest: wire.OperatorOf(r.Rules).Digest, Tools: tools, Paths: paths}
}

func (a *app) rules(v *wire.Rules, rules policy.OperatorRules) {
	if v.Event == nil {
		a.out.Println(term.Plain("no rules were ever set"))
		return
	}
	a.out.Println(term.Bold(plural(rules.Len(), "rule")), term.Plain(fmt.Sprintf(", set at seq %d of the store", v.Event.Seq)))
	a.out.Println(term.Dim("digest ", v.Digest))
	rows := make([][]term.Text, 0, rules.Len())
	for _, r := range rules.Entries() {
		what, which := "tool", r.Tool
		if r.Path != "" {
			what, which = "place", r.Path
		}
		rows = append(rows, []term.Text{term.Plain(what), term.Bold(which)})
	}
	if len(rows) > 0 {
		a.out.Table([]term.Column{{Title: "DENIED"}, {Title: "PATTERN OR PLACE", Min: 16}}, rows)
	}
}

func (a *app) rulesSet(v *wire.RulesSet, rules policy.OperatorRules) {
	if !v.Changed {
		a.out.Println(term.Good("in force already: "), term.Plain("nothing was written"))
		a.rules(&v.Rules, rules)
		return
	}
	a.out.Println(term.Good("rules set"))
	a.rules(&v.Rules, rules)
	a.out.Wrap(0, term.Dim("Roots follow them from their next decision on. Children keep what they captured; to tighten them too:"))
	a.out.Println(term.Plain("  childlog narrow --all --rules --reason TEXT"))
}

func (a *app) ruleSets(sets []ops.RuleSet) {
	if len(sets) == 0 {
		a.out.Println(term.Plain("no rules were ever set"))
		return
	}
	rows := make([][]term.Text, len(sets))
	for i := range sets {
		tools, paths := setCounts(&sets[i])
		rows[i] = []term.Text{term.Plain(fmt.Sprint(sets[i].Event.Seq)), term.Dim(shortTime(sets[i].Event.Time)), term.Plain(fmt.Sprint(tools)),
			term.Plain(fmt.Sprint(paths)), term.Dim(shortDigest(sets[i].Rules))}
	}
	a.out.Table([]term.Column{{Title: "SEQ", Right: true}, {Title: "TIME"}, {Title: "TOOLS", Right: true}, {Title: "PLACES", Right: true}, {Title: "DIGEST"}}, rows)
}
