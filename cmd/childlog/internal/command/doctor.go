package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/doctor"
	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/install"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
)

func newDoctorCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "doctor",
		GroupID: groupStore,
		Short:   "Look whether the store and the guards are well, and what to do",
		Long: long(`
Look at what has to be right for a guard to run and for the logs to be safe: the
store, its disk and who may read it, the process that holds it, the signing key,
the hooks of Claude Code and Codex and what they run, the settings that turn
hooks off, the versions, the environment. Each is ok, a warning or a problem,
and what is not ok comes with what to do. Nothing is changed or repaired, and
the logs are not read: ` + "`childlog verify`" + ` does that.

The settings of the project in this directory are looked at too. A harness that
is on the path is asked for its version, nothing else.

Exit code: 0, also with warnings; 1 with a problem.`),
		Example: `  childlog doctor
  childlog --store /var/lib/agents doctor
  childlog doctor --json`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			env, err := a.surroundings()
			if err != nil {
				return err
			}
			exe, err := install.Self()
			if err != nil {
				return err
			}
			list := doctor.Run(cmd.Context(), doctor.Options{Place: a.place(), Env: env, Exe: exe,
				Version: strings.ReplaceAll(version(), "\n", ", "), GuardSeconds: int(guardTimeout / time.Second)}.Local())
			if err := a.checkup(list); err != nil {
				return err
			}
			if doctor.Worst(list) == doctor.Problem {
				return verdict(failure.ExitOther)
			}
			return nil
		},
	}
}

// checkup prints what was found.
func (a *app) checkup(list []doctor.Finding) error {
	if a.json {
		for _, f := range list {
			if err := a.emit(wire.Check{Check: f.Check, Status: string(f.Status), Subject: f.Subject, Detail: f.Detail, Fix: optionalText(f.Fix)}); err != nil {
				return err
			}
		}
		return nil
	}
	count := map[doctor.Status]int{}
	for _, f := range list {
		count[f.Status]++
		status := fmt.Sprintf("%-9s", f.Status)
		switch f.Status {
		case doctor.OK:
			line := term.Cat(term.Good(status), term.Plain(fmt.Sprintf("%-12s", f.Check)), term.Plain(f.Subject))
			if whole := term.Cat(line, term.Dim(": "), term.Dim(f.Detail)); a.out.Width() == 0 || whole.Width() <= a.out.Width() {
				a.out.Println(whole)
			} else { // as what is not well is told
				a.out.Println(line)
				a.out.Wrap(21, term.Dim(f.Detail))
			}
			continue
		case doctor.Warning:
			a.out.Println(term.Warn(status), term.Plain(fmt.Sprintf("%-12s", f.Check)), term.Bold(f.Subject))
		default:
			a.out.Println(term.Bad(status), term.Plain(fmt.Sprintf("%-12s", f.Check)), term.Bold(f.Subject))
		}
		a.out.Wrap(21, term.Plain(f.Detail))
		if f.Fix != "" {
			a.out.Wrap(21, term.Accent("do: "), term.Plain(f.Fix))
		}
	}
	a.out.Println()
	switch {
	case count[doctor.Problem] > 0:
		a.out.Println(term.Bad(plural(count[doctor.Problem], "problem")), term.Plain(", ", plural(count[doctor.Warning], "warning")))
	case count[doctor.Warning] > 0:
		a.out.Println(term.Good("no problem"), term.Plain(", ", plural(count[doctor.Warning], "warning")))
	default:
		a.out.Println(term.Good("all is well"))
	}
	return a.out.Err()
}
