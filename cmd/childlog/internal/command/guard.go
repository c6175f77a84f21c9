package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/forward"
	"childlog/cmd/childlog/internal/guard"
	"childlog/cmd/childlog/internal/term"
	"childlog/eventlog"
)

func newGuardCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "guard",
		GroupID: groupPolicy,
		Short:   "Answer the hooks of Claude Code and Codex",
		Long: long(`
Guards are hook commands: a harness starts one for each event of a session, with
the event as JSON on stdin, and does what it is answered.

  guard claude-code   answer a hook of Claude Code
  guard codex         answer a hook of Codex
  guard profiles      print what the shipped profiles permit

The session becomes a root, each of its agents a child with what its parent may
hand on and approvals pinned to never, and every tool call is decided and
recorded in the log of whoever makes it. What is denied comes with its reason;
what is allowed goes on to the harness's own permission flow, which a guard
never shortens unless a profile says so.

A guard fails closed: without a store, a policy or an answer in time it blocks.
Its exit code is 0 or 2 and never another one.`),
		Example: `  childlog guard claude-code --profile edit-here
  childlog guard profiles`,
		RunE: func(*cobra.Command, []string) error {
			return usagef("guard: want claude-code, codex or profiles")
		},
	}
	for _, h := range guard.Harnesses() {
		cmd.AddCommand(a.runs(newGuardHarnessCmd(a, h)))
	}
	cmd.AddCommand(a.runs(newGuardProfilesCmd(a)), a.runs(newGuardHandleCmd(a)))
	return cmd
}

// guardNames are the harnesses' names for people.
var guardNames = map[guard.Harness]string{guard.ClaudeCode: "Claude Code", guard.Codex: "Codex"}

func newGuardHarnessCmd(a *app, h guard.Harness) *cobra.Command {
	g := &guardRun{app: a, harness: h}
	cmd := &cobra.Command{
		Use:   string(h),
		Short: "Answer a hook of " + guardNames[h],
		Long: long(`
Answer one hook event of ` + guardNames[h] + `, read as JSON from stdin. The answer is on
stdout in the form that the harness reads; nothing at all means that the harness
goes on as it would without a guard.

The root is made at the first event of a session, in the event's working
directory, and is found again as ` + h.System() + `:ID, ID being the session's
id in the harness. What it may do is what --profile or --policy says, narrowed
by .childlog/guard.json of the project; see 'childlog guard profiles'. It is
recorded then, and from then on only the log counts: neither flags nor files
widen a session that exists.

A policy document is a JSON object; every key may be left out:

  {"profile": "edit-here", "sandbox": "read-only", "network": false,
   "shell": "none", "spawn": false, "approvals": "never",
   "deny_tools": ["exec_shell*"], "write_scope": ["src"], "max_depth": 2,
   "approve": false, "palette": [{"name": "mcp__x__y", "class": "read"}]}

With "approve": true an allowed call skips the harness's own question; that is a
grant, so it has to be stated by a document that --policy names, as a palette
has. A project's file only takes away.

Whatever keeps the guard from answering blocks: exit 2 with the reason on
stderr. After the fact (a result, a stop) there is nothing to block, and the
person is told instead. --observe records everything and blocks nothing: it
grants whatever is asked for.`),
		Example: fmt.Sprintf(`  childlog guard %[1]s --profile read-only < event.json
  childlog guard %[1]s --policy policy.json --init
  childlog guard %[1]s --observe`, h),
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("profile") && cmd.Flags().Changed("policy") {
				return usagef("what may the root do? give --profile or --policy, not both")
			}
			if !cmd.Flags().Changed("wait") {
				a.wait = g.timeout * 4 / 5
			}
			return g.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&g.profile, "profile", guard.DefaultProfile, "what a new root may do: read-only, edit-here or trusted")
	f.StringVar(&g.document, "policy", "", "a document that says what a new root may do")
	f.BoolVar(&g.observe, "observe", false, "record, and let everything through: this grants whatever is asked for")
	f.DurationVar(&g.timeout, "timeout", guardTimeout, "block if there is no answer by then")
	f.BoolVar(&g.init, "init", false, "create the store if there is none")
	complete(cmd, "profile", guard.ProfileReadOnly, guard.ProfileEditHere, guard.ProfileTrusted)
	return cmd
}

// guardTimeout is well below what the harnesses wait by themselves: both 600 s
// (Claude Code before 2.1.3: 60 s; 30 s for a prompt, 1.5 s for the end of a
// session), and install asks for 30. Past their time they go on as if nobody had
// objected.
const guardTimeout = 5 * time.Second

// guardRun is one run of a guard.
type guardRun struct {
	*app
	harness           guard.Harness
	profile, document string
	observe, init     bool
	timeout           time.Duration
}

func (g *guardRun) run(ctx context.Context) (err error) {
	var ev *guard.Event
	defer func() {
		if p := recover(); p != nil {
			err = g.fail(ev, fmt.Errorf("the guard itself failed: %v", p))
		}
	}()
	if g.timeout <= 0 {
		return g.fail(nil, usagef("--timeout: want more than 0, got %s", g.timeout))
	}
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	doc, err := interruptible(ctx, func() ([]byte, error) { return guard.Read(g.stdin) })
	if err != nil {
		return g.fail(nil, g.late(ctx, err))
	}
	if ev, err = guard.Parse(doc); err != nil {
		return g.fail(nil, err)
	}
	outcome, err := g.handle(ctx, ev)
	if err != nil {
		return g.fail(ev, g.late(ctx, err))
	}
	return g.give(g.harness.Answer(ev, outcome), false)
}

// late names the guard's own deadline, which an error of a commit or of a lock
// does not know about.
func (g *guardRun) late(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s (--timeout): %w", g.timeout, err)
	}
	return err
}

// handle does what the event asks for: in the process that holds the store, if
// there is one, else in this one.
func (g *guardRun) handle(ctx context.Context, ev *guard.Event) (guard.Outcome, error) {
	order := &guard.Order{Harness: g.harness, Observe: g.observe, Profile: g.profile, Event: ev.Raw}
	if g.document != "" {
		b, err := g.readFile(g.document)
		if err != nil {
			return guard.Outcome{}, usagef("--policy: %v", err)
		}
		if _, err := guard.ParsePolicy(b, true); err != nil {
			return guard.Outcome{}, fmt.Errorf("--policy %s: %w", g.document, err)
		}
		order.Policy = b
	}
	one, err := order.Guard(g.files)
	if err != nil {
		return guard.Outcome{}, err
	}
	order.Project = guard.FindProject(g.files, g.getenv("HOME"), ev.Cwd)
	one.Project = order.Project
	if g.init && !access.Exists(g.place()) {
		if _, err := access.Init(ctx, g.place()); err != nil && !errors.Is(err, eventlog.ErrExists) { // another hook may be first
			return guard.Outcome{}, err
		}
	}
	return g.reach(ctx, order, one, ev)
}

// reach finds who holds the store, or takes it. Hooks come at the same time and
// each holds the store for a moment, and a holder may begin to serve meanwhile:
// so while the store is locked it is asked for again.
func (g *guardRun) reach(ctx context.Context, order *guard.Order, one *guard.Guard, ev *guard.Event) (outcome guard.Outcome, err error) {
	until := time.Now().Add(g.wait)
	for {
		call, err := forward.Dial(ctx, g.store)
		if err == nil {
			return g.ask(ctx, call, order)
		}
		if !errors.Is(err, forward.ErrNoHolder) {
			return outcome, heldError(err)
		}
		left := time.Until(until)
		g.wait = min(max(left, 0), guardTurn)
		err = g.write(ctx, func(s *eventlog.Store) (err error) {
			outcome, err = one.Handle(ctx, s, ev)
			return err
		})
		if errors.Is(err, eventlog.ErrLocked) && left > 0 && ctx.Err() == nil {
			continue
		}
		if err != nil && errors.Is(err, eventlog.ErrNotFound) && !access.Exists(g.place()) {
			err = withHint(err, "`childlog install "+string(g.harness)+"` sets it up, `childlog init` creates it, --store or CHILDLOG_STORE says where it is")
		}
		return outcome, err
	}
}

// guardTurn is how long a guard waits for a lock before it looks for a holder
// again.
const guardTurn = 250 * time.Millisecond

// ask has the holder of the store carry an order out.
func (g *guardRun) ask(ctx context.Context, call *forward.Call, order *guard.Order) (guard.Outcome, error) {
	b, err := order.Encode()
	if err != nil {
		return guard.Outcome{}, err
	}
	var out, said bytes.Buffer
	env := g.env.Env
	env.Stdin, env.Input, env.Stdout, env.Stderr, env.Out, env.Err = bytes.NewReader(b), b, &out, &said, term.Console{}, term.Console{}
	env.Version, env.Store = version(), access.Abs(g.place())
	code, err := call.Run(ctx, env, []string{"guard", "handle"})
	if lost := (*forward.LostError)(nil); errors.As(err, &lost) {
		return guard.Outcome{}, g.lost(lost, writes)
	}
	if err != nil {
		return guard.Outcome{}, fmt.Errorf("%w: %w", eventlog.ErrStoreClosed, err)
	}
	if code != 0 {
		message := strings.TrimPrefix(strings.TrimSpace(said.String()), "childlog: error: ")
		message, hint, _ := strings.Cut(message, "\nhint: ")
		return guard.Outcome{}, withHint(fmt.Errorf("%s (exit code %d of the process that holds the store)", message, code), hint)
	}
	return guard.ParseOutcome(out.Bytes())
}

// fail answers for a guard that could not do its work.
func (g *guardRun) fail(ev *guard.Event, err error) error {
	reason := strings.TrimSpace(err.Error())
	if hint := failure.Of(err).Hint; hint != "" {
		reason += " (" + hint + ")"
	}
	return g.give(guard.Failed(ev, reason), true)
}

// give prints an answer, in one write: half of one would be read as none.
func (g *guardRun) give(answer guard.Answer, failed bool) error {
	if g.observe {
		answer = guard.Observed(answer, failed)
	}
	if answer.Told != "" && unread(g.stdout) {
		answer = guard.Answer{Stderr: answer.Told, Exit: guard.ExitBlocked}
	}
	if len(answer.Stdout) > 0 {
		if _, err := g.stdout.Write(answer.Stdout); err != nil {
			answer = guard.Answer{Stderr: "childlog guard: blocked: the answer could not be written: " + err.Error(), Exit: guard.ExitBlocked}
		}
	}
	if answer.Stderr != "" {
		fmt.Fprintln(g.stderr, answer.Stderr) // where nobody listens the exit code is left
	}
	if answer.Exit != guard.ExitAnswered && !g.observe {
		return verdict(answer.Exit)
	}
	return nil
}
