package command

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/eventlog"
	"childlog/replay"
)

func newNoticesCmd(a *app) *cobra.Command {
	var (
		consume string
		through uint64
	)
	cmd := &cobra.Command{
		Use:     "notices ID",
		GroupID: groupSessions,
		Short:   "List which children settled, or consume their notice",
		Long: long(`
List a session's pending notices: which of its children settled, how, and what
was denied and used. A notice is pending from the child's settle until the
parent consumes it, exactly once, across any number of crashes. It carries codes
and numbers, never text.

--consume CHILD takes the pending notices of that child and prints the last one
it took. --through SEQ takes those up to the one of that settled seq and leaves
later ones pending: what a program uses that has handled what it listed.`),
		Example: `  childlog notices 9f8e7d6c
  childlog notices 9f8e7d6c --consume 0a1b2c3d
  childlog notices 9f8e7d6c --consume 0a1b2c3d --through 12 --json`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if cmd.Flags().Changed("through") && (consume == "" || through == 0) {
				return usagef("--through is the settled seq, from 1, of the last notice that --consume takes")
			}
			if consume != "" {
				return a.write(ctx, func(s *eventlog.Store) error {
					id, err := resolve(ctx, s, args[0])
					if err != nil {
						return err
					}
					child, err := resolve(ctx, s, consume)
					if err != nil {
						return err
					}
					return a.consume(ctx, s, id, child, through)
				})
			}
			var list []replay.Notice
			labels := map[uuid.UUID]string{}
			err := a.read(ctx, func(s *eventlog.Store) error {
				id, err := resolve(ctx, s, args[0])
				if err != nil {
					return err
				}
				list, err = replay.Notices(ctx, s, id)
				for _, n := range list {
					if row, err := s.Row(n.Child); err == nil {
						labels[n.Child] = row.Label
					}
				}
				return err
			})
			if err != nil {
				return err
			}
			if a.json {
				for i := range list {
					if err := a.emit(ops.Notice(&list[i])); err != nil {
						return err
					}
				}
				return nil
			}
			a.notices(list, labels)
			return a.out.Err()
		},
	}
	cmd.Flags().StringVar(&consume, "consume", "", "take the pending notices of this child")
	cmd.Flags().Uint64Var(&through, "through", 0, "with --consume: up to the notice of this settled seq (default: all)")
	return cmd
}

// consume takes the notices of a child.
func (a *app) consume(ctx context.Context, s *eventlog.Store, parent, child uuid.UUID, through uint64) error {
	v, err := ops.Consume(ctx, s, parent, child, through)
	if errors.Is(err, eventlog.ErrNotFound) {
		return withHint(err, "each notice is consumed once; `childlog notices "+parent.String()+"` lists those that are pending")
	}
	if err != nil {
		return err
	}
	return a.show(v, func() {
		a.out.Println(term.Good("consumed "), term.Plain("the notice of "), term.Bold(child.String()), term.Plain(fmt.Sprintf(", up to settled seq %d", v.SettledSeq)))
	})
}

func (a *app) notices(list []replay.Notice, labels map[uuid.UUID]string) {
	if len(list) == 0 {
		a.out.Println(term.Dim("no notice is pending"))
		return
	}
	rows := make([][]term.Text, len(list))
	for i, n := range list {
		denied := term.Plain("0")
		if n.Denied > 0 {
			denied = term.Warn(fmt.Sprintf("%d (%s)", n.Denied, counts(n.Denials)))
		}
		rows[i] = []term.Text{term.Plain(n.Child.String()), term.Plain(labels[n.Child]), term.Bold(n.Outcome), denied, term.Dim(counts(n.Usage)), term.Plain(fmt.Sprint(n.SettledSeq))}
	}
	a.out.Table([]term.Column{{Title: "CHILD"}, {Title: "LABEL", Min: 8, Drop: 2}, {Title: "OUTCOME"}, {Title: "DENIED"}, {Title: "USAGE", Min: 10, Drop: 3}, {Title: "SEQ", Right: true, Drop: 1}}, rows)
}

// counts renders numbers by code, in code order.
func counts(m map[string]uint64) string {
	parts := make([]string, 0, len(m))
	for code, n := range m {
		parts = append(parts, fmt.Sprintf("%s %s", code, grouped(n)))
	}
	sort.Strings(parts)
	return strings.Join(parts, ", ")
}
