package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/forward"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// app is one run of the command: its streams and the global flags. Data goes
// to stdout, everything that is about the run to stderr.
type app struct {
	env            Env
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	out, msg       *term.Writer // stdout and stderr for people
	getenv         func(string) string
	files          files.Files

	store   string
	json    bool
	noColor bool
	wait    time.Duration
	waited  time.Duration // for a holder, out of wait
	keyFile string

	running string // the command's path once its arguments were accepted
}

// Main runs the command line of this process, and returns its exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends what does not listen
	code := failClosed(os.Args[1:], os.Stderr, func() int { return Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr) })
	if runsGuard(os.Args[1:]) {
		takeAll(os.Stdin, guardDeadline(os.Args[1:]))
	}
	return code
}

// Env is what a run of a command has of whoever asked for it, and the store that
// this process holds, if it holds one.
type Env struct {
	forward.Env
	Held *access.Held // nil: a command opens the store that it needs
}

// Run executes one command line for this process and returns its exit code
// (package failure). It reads the environment and, where a command says so,
// stdin.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return RunIn(ctx, Env{Env: forward.Env{Stdin: stdin, Stdout: stdout, Stderr: stderr, Out: term.ConsoleOf(stdout), Err: term.ConsoleOf(stderr),
		Getenv: os.Getenv, Files: files.Local{}}}, args)
}

// RunIn executes one command line for whoever env is of, and returns its exit
// code. It opens no file by itself but the store, and not that if it is held.
func RunIn(ctx context.Context, env Env, args []string) int {
	a := &app{env: env, args: args, stdin: env.Stdin, stdout: env.Stdout, stderr: env.Stderr, getenv: env.Getenv, files: env.Files}
	root := a.root(args...)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if a.msg == nil { // refused before the flags were read
		a.json = slices.Contains(args, "--json")
		a.style()
	}
	switch {
	case err != nil && a.running == "" && env.Held != nil && env.Version != version():
		// The caller understood its command line, or it had not come here.
		err = withHint(fmt.Errorf("%w: the process that holds the store is childlog %s, the caller %s: %w", eventlog.ErrLocked, version(), env.Version, err),
			"start the process that holds the store again, with this version")
	case err != nil && a.running == "":
		err = asUsage(err)
		if near := nearest(args); near != "" {
			err = withHint(err, "did you mean `childlog "+near+"`?")
		}
	}
	return a.report(err)
}

// nearest is the command that a word which is none may have meant, or "".
func nearest(args []string) string {
	root := (&app{getenv: func(string) string { return "" }}).root() // with all commands, of which none is run
	if _, _, err := root.Find(args); err == nil {
		return ""
	}
	root.SuggestionsMinimumDistance = 2
	for _, word := range args {
		if strings.HasPrefix(word, "-") {
			continue
		}
		if near := root.SuggestionsFor(word); len(near) > 0 {
			return near[0]
		}
	}
	return ""
}

// Groups of commands, in the order of the overview.
const (
	groupSessions = "sessions"
	groupPolicy   = "policy"
	groupAudit    = "audit"
	groupStore    = "store"
	groupDemo     = "demo"
)

var groups = []cobra.Group{
	{ID: groupSessions, Title: "Sessions:"},
	{ID: groupPolicy, Title: "Policy:"},
	{ID: groupAudit, Title: "Audit:"},
	{ID: groupStore, Title: "Store:"},
	{ID: groupDemo, Title: "See it work:"},
}

// subcommand is one of the list: its name, and what builds it.
type subcommand struct {
	name  string
	build func(*app) *cobra.Command
}

// subcommands lists them all, in the order of the overview.
func subcommands() []subcommand {
	return []subcommand{
		{"root", newRootCmd},
		{"delegate", newDelegateCmd},
		{"adopt", newAdoptCmd},
		{"append", newAppendCmd},
		{"switch", newSwitchCmd},
		{"narrow", newNarrowCmd},
		{"send", newSendCmd},
		{"interrupt", newInterruptCmd},
		{"inbox", newInboxCmd},
		{"activate", newActivateCmd},
		{"end", newEndCmd},
		{"settle", newSettleCmd},
		{"close", newCloseCmd},
		{"notices", newNoticesCmd},
		{"ls", newLsCmd},
		{"tree", newTreeCmd},
		{"show", newShowCmd},
		{"log", newLogCmd},
		{"search", newSearchCmd},
		{"policy", newPolicyCmd},
		{"resume", newResumeCmd},
		{"check", newCheckCmd},
		{"ask", newAskCmd},
		{"answer", newAnswerCmd},
		{"asks", newAsksCmd},
		{"guard", newGuardCmd},
		{"explain", newExplainCmd},
		{"diff", newDiffCmd},
		{"rules", newRulesCmd},
		{"scope", newScopeCmd},
		{"schema", newSchemaCmd},
		{"install", newInstallCmd},
		{"uninstall", newUninstallCmd},
		{"review", newReviewCmd},
		{"report", newReportCmd},
		{"who", newWhoCmd},
		{"verify", newVerifyCmd},
		{"checkpoint", newCheckpointCmd},
		{"prove", newProveCmd},
		{"verify-proof", newVerifyProofCmd},
		{"accept-rollback", newAcceptRollbackCmd},
		{"redact", newRedactCmd},
		{"hold", newHoldCmd},
		{"release", newReleaseCmd},
		{"purge", newPurgeCmd},
		{"retention", newRetentionCmd},
		{"types", newTypesCmd},
		{"export", newExportCmd},
		{"import", newImportCmd},
		{"init", newInitCmd},
		{"serve", newServeCmd},
		{"stats", newStatsCmd},
		{"token", newTokenCmd},
		{"backup", newBackupCmd},
		{"restore", newRestoreCmd},
		{"compact", newCompactCmd},
		{"reindex", newReindexCmd},
		{"salvage", newSalvageCmd},
		{"doctor", newDoctorCmd},
		{"demo", newDemoCmd},
	}
}

// commands builds the subcommands that a command line may mean: those whose names
// are among its words, or all of them where it names none or is about others (help
// and completion). A process that decides one call would else spend more on the
// flags of sixty commands than on its own. No arguments: all.
func (a *app) commands(args ...string) []*cobra.Command {
	list := subcommands()
	all := !slices.ContainsFunc(list, func(s subcommand) bool { return slices.Contains(args, s.name) }) || slices.ContainsFunc(args, func(word string) bool {
		return word == "help" || word == "completion" || strings.HasPrefix(word, "__")
	})
	var cmds []*cobra.Command
	for _, s := range list {
		if all || slices.Contains(args, s.name) {
			cmds = append(cmds, s.build(a))
		}
	}
	return cmds
}

// helpWidth is how many columns help takes: it is read on terminals of any width.
const helpWidth = 80

// Cobra keeps the order of commands in a variable of its own. It is set once,
// because several runs may share a process.
func init() { cobra.EnableCommandSorting = false }

func (a *app) root(args ...string) *cobra.Command {
	root := &cobra.Command{
		Use:   "childlog",
		Short: "Append-only logs for delegated agents",
		Long: `childlog keeps one append-only log for every session of an AI agent. When a
session delegates work to a child, the child's log begins with a snapshot of
what the parent was allowed to do, and with approvals pinned to never (never
ask, always reject). Whoever resumes the child later, in another process, gets
exactly that policy back by replaying the log, and appends nothing by doing so.

Begin with:

  childlog init
  childlog root --sandbox workspace-write --cwd . --label "my agent"
  childlog delegate --parent ID --label "a helper"
  childlog tree

A session is named by its id, by a unique prefix of it (four digits or more),
or by another system's id as SYSTEM:ID. childlog records and decides; it does
not sandbox anything, and it authenticates nobody.`,
		Example: `  childlog init
  childlog --store /var/lib/agents ls
  childlog policy 0a1b2c3d --json`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		// Suggestions become a hint.
		DisableSuggestions: true,
		RunE:               func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", helpWidth)))
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	p := root.PersistentFlags()
	p.StringVar(&a.store, "store", "", "directory of the store (default $CHILDLOG_STORE, else the XDG data directory)")
	p.BoolVar(&a.json, "json", false, "print JSON: one object, or one object a line for lists")
	p.BoolVar(&a.noColor, "no-color", false, "print without colour (also NO_COLOR and TERM=dumb)")
	p.StringVar(&a.keyFile, "key-file", a.getenv("CHILDLOG_KEY_FILE"), "the store's signing key, if it is kept outside of it (default $CHILDLOG_KEY_FILE)")
	p.DurationVar(&a.wait, "wait", 0, "how long to wait for a store that another process holds, such as 5s")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		a.style()
		if a.wait < 0 {
			return usagef("--wait: want 0 or more, got %s", a.wait)
		}
		return a.findStore()
	}
	used := map[string]bool{}
	cmds := a.commands(args...)
	for _, cmd := range cmds {
		used[cmd.GroupID] = true
		a.completeSessions(cmd)
		a.runs(cmd)
	}
	for i := range groups {
		if used[groups[i].ID] {
			root.AddGroup(&groups[i])
		}
	}
	root.AddCommand(cmds...)
	return root
}

// runs makes a command note its path once its arguments were accepted: an error
// before that is one of usage.
func (a *app) runs(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.running = cmd.CommandPath()
		if follow := cmd.Flags().Lookup("follow"); follow != nil && follow.Changed { // also where a holder runs it
			ctx, stop := untilUnread(cmd.Context(), a.stdout)
			defer stop()
			cmd.SetContext(ctx)
		}
		if done, err := a.forward(cmd.Context(), cmd); done {
			return err
		}
		return run(cmd, args)
	}
	return cmd
}

// style prepares the writers for people once the flags are known.
func (a *app) style() {
	out, msg := a.env.Out, a.env.Err
	if a.getenv("TERM") == "dumb" {
		out, msg = term.Console{}, term.Console{}
	}
	plain := a.noColor || a.getenv("NO_COLOR") != ""
	a.out = term.New(a.stdout, out, plain)
	a.msg = term.New(a.stderr, msg, plain)
}

// findStore fills in where the store is if nobody says. What is held is not
// looked for: in a holder the name is a caller's, and is not gone by.
func (a *app) findStore() error {
	if a.env.Held != nil {
		a.store = a.env.Held.Dir()
		return nil
	}
	if a.store == "" {
		a.store = a.getenv("CHILDLOG_STORE")
	}
	if dir := a.getenv("XDG_DATA_HOME"); a.store == "" && filepath.IsAbs(dir) {
		a.store = filepath.Join(dir, "childlog")
	}
	if home := a.getenv("HOME"); a.store == "" && home != "" {
		a.store = filepath.Join(home, ".local", "share", "childlog")
	}
	if a.store == "" {
		return usagef("no place for a store: give --store or set CHILDLOG_STORE")
	}
	return nil
}

func (a *app) place() access.Place {
	p := access.Place{Dir: a.store, Wait: a.wait, Command: a.running, KeyFile: a.keyFile, Waited: a.waited}
	if a.env.Held != nil {
		p = access.Shared(a.env.Held, a.env.Store, p)
	}
	return p
}

// read runs fn on the store, opened so that nothing can be written.
func (a *app) read(ctx context.Context, fn func(*eventlog.Store) error) error {
	return a.orInit(access.Read(ctx, a.place(), func(s *eventlog.Store) error {
		a.warnRolledBack(s)
		return fn(s)
	}))
}

// warnRolledBack says of what is read that it is not what it was. verify tells it
// at length.
func (a *app) warnRolledBack(s *eventlog.Store) {
	if re := s.RolledBack(); re != nil && a.running != "childlog verify" {
		a.msg.Println(term.Warn("childlog: warning: "), term.Plain(re.Error()), term.Plain("; what is left can be read, and grants nothing"))
	}
}

// write runs fn on the store, held for writing. What fn reported is durable
// even if giving the store back fails; that is a warning, not an error.
func (a *app) write(ctx context.Context, fn func(*eventlog.Store) error) error {
	err := access.Write(ctx, a.place(), fn)
	if ce := (*access.CloseError)(nil); errors.As(err, &ce) {
		a.msg.Println(term.Warn("childlog: warning: "), term.Plain(ce.Error()))
		return nil
	}
	return a.orInit(err)
}

// orInit tells a store that is not there from a session that is not.
func (a *app) orInit(err error) error {
	if errors.Is(err, eventlog.ErrNotFound) && !access.Exists(a.place()) {
		return withHint(err, "create one with `childlog init`, or say with --store or CHILDLOG_STORE where it is")
	}
	return err
}

// emit prints one JSON object on a line of its own.
func (a *app) emit(v any) error {
	b, err := wire.Line(v)
	if err == nil {
		_, err = a.stdout.Write(b)
	}
	return err
}

// show prints v as JSON if asked to, else through human.
func (a *app) show(v any, human func()) error {
	if a.json {
		return a.emit(v)
	}
	human()
	return a.out.Err()
}

// long trims the indentation that a raw string has in the source.
func long(text string) string { return strings.TrimSpace(text) }
