package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

func newDemoCmd(a *app) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:     "demo",
		GroupID: groupDemo,
		Short:   "Watch a delegation survive a restart",
		Long: long(`
Play the whole story in a store of its own: an agent delegates, its child begins
to work, the agent's own policy changes, the process is gone, and another
process, with another environment, resumes the child. Then the child tries what
it may not, and the log says why it may not. Everything is real: the store, the
second process, the refusals. At the end the hooks of another harness work on
the same store while a process holds it. The store is removed then.`),
		Example: `  childlog demo
  childlog demo --keep   # and look around in the store afterwards`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.json {
				return usagef("demo is for people and prints no JSON")
			}
			tmp, err := os.MkdirTemp("", "childlog-demo-")
			if err != nil {
				return err
			}
			if !keep {
				defer os.RemoveAll(tmp)
			}
			d := &demo{app: a, dir: filepath.Join(tmp, "store"), elsewhere: tmp, work: filepath.Join(tmp, "project")}
			if err := d.play(cmd.Context()); err != nil {
				return err
			}
			if keep {
				a.out.Println(term.Dim("kept: "), term.Plain("childlog --store ", d.dir, " ls"))
			}
			return a.out.Err()
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the store and say where it is")
	return cmd
}

// demo is one performance.
type demo struct {
	*app
	dir       string // of the store
	elsewhere string // where the second process runs
	work      string // the agent's workspace
	act       int

	root, child, grandchild materialize.Session
	before                  replay.Effective
	head                    eventlog.Row
}

// play is the story. The first half is one process, the harness; then its
// store is let go without a goodbye, as a killed process would leave it.
func (d *demo) play(ctx context.Context) error {
	if err := os.Mkdir(d.work, 0o700); err != nil {
		return err
	}
	if _, err := eventlog.Init(ctx, d.dir); err != nil {
		return err
	}
	s, err := eventlog.Open(ctx, d.dir, eventlog.Options{Command: "childlog demo"})
	if err != nil {
		return err
	}
	if err := d.firstProcess(ctx, s); err != nil {
		s.Close()
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	if err := d.secondProcess(ctx); err != nil {
		return err
	}
	return d.afterwards(ctx)
}

func (d *demo) firstProcess(ctx context.Context, s *eventlog.Store) (err error) {
	d.title("A person starts an agent",
		"It may write below its project, without network, and may ask its person for more. The store has a rule of its operator: nobody runs chmod. (de305d54@2 means: the event with number 2 in the log of that session says so.)")
	if _, err = replay.SetRules(ctx, s, replay.RuleFile{DenyTools: []string{"chmod*"}, Text: []byte(`{"deny_tools":["chmod*"]}`)}); err != nil {
		return err
	}
	if d.root, err = materialize.Root(ctx, s, materialize.RootRequest{Label: "release notes", Workspace: d.work,
		Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}, Approvals: policy.Ask}); err != nil {
		return err
	}
	d.session("agent", &d.root)

	d.title("It delegates",
		"Before anything else can happen, its policy is captured. The child's log begins with that snapshot, with a receipt of what was asked and what was granted, and with approvals pinned to never: never ask, always reject.")
	capture, err := snapshot.Take(ctx, s, d.root.ID, snapshot.Options{})
	if err != nil {
		return err
	}
	scope := []string{"docs"}
	if d.child, err = materialize.Child(ctx, s, capture, materialize.Request{Label: "collect changes", Key: "run 4, call 7",
		Want: policy.Request{Role: "implement", Wish: policy.Wish{WriteScope: &scope, DeniedTools: []string{"web_search"}}}}); err != nil {
		return err
	}
	own := d.child.Policy.Authority.Own
	d.session("child", &d.child, term.Row{Name: "   granted", Value: term.Plain(fmt.Sprintf("files %s below %s, shell %s", own.Grant.Files, own.Grant.Scope, own.Grant.Shell)),
		Note: term.Dim(fmt.Sprintf("receipt %s@%d, %d denied tools", short(d.child.ID), d.child.Policy.ReceiptSeq, own.Profile.Denied.Len()))})
	d.out.Println()
	d.out.Println(term.Dim("   the model is told"))
	d.out.Fold(3, term.Plain(d.child.Context))
	if d.grandchild, err = materialize.Delegate(ctx, s, d.child.ID, snapshot.Options{}, materialize.Request{Label: "read one commit", Mode: eventlog.ModeOneShot}); err != nil {
		return err
	}

	d.title("The child works; the agent's own policy changes",
		"While a tool call of the child is under way, the person gives the agent full access. That reaches the agent alone, and no child that exists.")
	run, err := replay.Activate(ctx, s, d.child.ID, replay.AsParent(d.root.ID))
	if err != nil {
		return err
	}
	if err := d.work1(ctx, s, run); err != nil {
		return err
	}
	if _, d.root.Policy, err = replay.Switch(ctx, s, d.root.ID, replay.Change{Sandbox: &policy.Setting{Mode: policy.DangerFullAccess}}); err != nil {
		return err
	}
	d.session("agent", &d.root)
	if d.before, err = replay.Policy(ctx, s, d.child.ID, 0); err != nil {
		return err
	}
	d.head, err = s.Row(d.child.ID)
	return err
}

// work1 is what the child had done when its process went away: a turn that is
// not over, a call without a result.
func (d *demo) work1(ctx context.Context, s *eventlog.Store, run replay.Activation) error {
	var events []eventlog.NewEvent
	for _, e := range []struct {
		typ   string
		facts map[string]any
		text  string
	}{
		{eventlog.TypeTurnStart, map[string]any{"turn": 1}, ""},
		{eventlog.TypeUserMessage, map[string]any{"message": "m1"}, "list the changes since v1.4"},
		{eventlog.TypeToolCall, map[string]any{"call": "c1", "tool": "read_file"}, ""},
		{eventlog.TypeToolResult, map[string]any{"call": "c1", "outcome": "ok"}, "CHANGELOG.md: 212 lines"},
		{eventlog.TypeToolCall, map[string]any{"call": "c2", "tool": "exec_command"}, ""},
	} {
		facts, err := eventlog.MakeFacts(e.facts)
		if err != nil {
			return err
		}
		ev := eventlog.NewEvent{Type: e.typ, Facts: facts}
		if e.text != "" {
			ev.Media, ev.Content = eventlog.MediaText, []byte(e.text)
		}
		events = append(events, ev)
	}
	_, err := s.Append(ctx, eventlog.Batch{Session: d.child.ID, Expect: eventlog.At(run.Head), Epoch: run.Epoch, Events: events})
	return err
}

// secondProcess resumes the child in a process that has been told everything
// that goes wrong elsewhere: a permissive default, another directory.
func (d *demo) secondProcess(ctx context.Context) error {
	d.title("The process is gone. Another one resumes the child",
		"The environment now says danger-full-access, the directory is another one, and the child's parent holds more by now. Only the child's log counts.")
	args := []string{"resume", d.child.ID.String(), "--parent", d.root.ID.String()}
	d.command("CHILDLOG_DEFAULT_SANDBOX=danger-full-access childlog", "resume", short(d.child.ID), "--parent", short(d.root.ID))
	out, pid, err := d.spawn(ctx, append(args, "--json")...)
	if err != nil {
		return err
	}
	var resumed wire.Resumption
	if err := json.Unmarshal(out, &resumed); err != nil {
		return fmt.Errorf("the second process answered %.80q: %w", out, err)
	}
	d.out.Println()
	was, is := wire.PolicyOf(&d.before), resumed.Policy
	row := func(name, a, b string) []term.Text {
		same := term.Good("same")
		if a != b {
			same = term.Bad("DIFFERS")
		}
		return []term.Text{term.Plain("   ", name), term.Plain(a), term.Plain(b), same}
	}
	d.out.Table([]term.Column{{Title: "   "}, {Title: fmt.Sprintf("process %d, before", os.Getpid())}, {Title: fmt.Sprintf("process %d, after", pid)}, {Title: ""}}, [][]term.Text{
		row("sandbox", string(was.Sandbox.Mode)+" "+place(was), string(is.Sandbox.Mode)+" "+place(is)),
		row("network", network(was), network(is)),
		row("approvals", string(was.Approvals.Policy), string(is.Approvals.Policy)),
		row("set by", d.origin(was), d.origin(is)),
		row("grant", granted(was), granted(is)),
		row("head", fmt.Sprintf("seq %d, %s", d.head.Head, wire.Hex(d.head.Hash)[:12]), fmt.Sprintf("seq %d, %s", resumed.Head.Seq, resumed.Head.Hash[:12])),
	})
	d.out.Println()
	for _, dr := range resumed.Drift {
		d.out.Fold(3, term.Warn("drift  "), term.Plain(dr.Field, ": recorded ", dr.Recorded, ", present ", dr.Present, "; ", dr.Detail))
	}
	d.out.Println(term.Plain("   status "), term.Warn(resumed.Status), term.Plain(fmt.Sprintf(", %d call without a result. Nothing was appended.", len(resumed.OpenCalls))))
	return nil
}

// afterwards shows the refusals, the explanation and the proof.
func (d *demo) afterwards(ctx context.Context) error {
	child := d.child.ID.String()
	d.title("It goes on", "What the crash left open is closed once, in the log, before the next turn.")
	if err := d.run(ctx, 0, "", "activate", child, "--parent", d.root.ID.String()); err != nil {
		return err
	}
	d.title("It tries what it may not", "A write outside of its scope, then the same with a wider sandbox. Nobody is asked: both are denied, and both denials are recorded in its log.")
	for i, escalation := range []string{"", `,"escalation":{"sandbox":{"mode":"danger-full-access"},"justification":"the task needs it"}`} {
		path := []string{"src/main.go", "docs/notes.md"}[i]
		call := fmt.Sprintf(`{"call":"c%d","tool":"write_file","args":{"path":%q}%s}`, i+3, path, escalation)
		if i > 0 {
			d.out.Println()
		}
		if err := d.run(ctx, 3, call, "check", child, "--record", "--epoch", "2"); err != nil {
			return err
		}
	}
	d.title("Why may it not?", "Which rule decided, where was it stated, and what did each session above hold when it delegated?")
	if err := d.run(ctx, 0, "", "explain", child, policy.FieldScope); err != nil {
		return err
	}
	d.title("An operator tightens the whole tree below it", "A narrowing reaches every descendant in one transaction, and nothing undoes it.")
	if err := d.run(ctx, 0, "", "narrow", child, "--sandbox", "read-only", "--subtree", "--reason", "release freeze"); err != nil {
		return err
	}
	if err := d.guarded(ctx); err != nil {
		return err
	}
	d.title("What is there now", "")
	if err := d.run(ctx, 0, "", "tree"); err != nil {
		return err
	}
	d.out.Println()
	return d.run(ctx, 0, "", "verify")
}

// run executes one command of this program, as a user would, with an input if
// there is one, and checks how it ended.
func (d *demo) run(ctx context.Context, want int, input string, args ...string) error {
	shown := make([]string, len(args))
	for i, arg := range args {
		if id, err := uuid.Parse(arg); err == nil {
			arg = short(id)
		} else if strings.Contains(arg, " ") {
			arg = fmt.Sprintf("%q", arg)
		}
		shown[i] = arg
	}
	if input != "" {
		d.out.Println(term.Dim("   $ "), term.Plain("echo '", input, "' |"))
		d.out.Println(term.Plain("       childlog ", strings.Join(shown, " ")))
	} else {
		d.command("childlog", shown...)
	}
	flags := []string{"--store", d.dir}
	if d.noColor {
		flags = append(flags, "--no-color")
	}
	// A refusal is part of the story, so it belongs to the story's stream.
	if got := Run(ctx, append(flags, args...), strings.NewReader(input), d.stdout, d.stdout); got != want {
		return fmt.Errorf("demo: childlog %s: want exit code %d, got %d", strings.Join(args, " "), want, got)
	}
	return nil
}

// spawn runs this program as another process and returns what it printed.
func (d *demo) spawn(ctx context.Context, args ...string) (out []byte, pid int, err error) {
	cmd, err := d.process(ctx, args...)
	if err != nil {
		return nil, 0, err
	}
	if out, err = cmd.Output(); err != nil {
		return nil, 0, fmt.Errorf("demo: the second process: %w", err)
	}
	return out, cmd.Process.Pid, nil
}

func (d *demo) title(head, text string) {
	d.act++
	if d.act > 1 {
		d.out.Println()
	}
	d.out.Println(term.Accent(fmt.Sprintf("%d  ", d.act)), term.Bold(head))
	if text != "" {
		d.out.Fold(3, term.Dim(text))
	}
	d.out.Println()
}

func (d *demo) command(name string, args ...string) {
	d.out.Println(term.Dim("   $ "), term.Plain(name, " ", strings.Join(args, " ")))
}

// session prints a session's policy in a few lines.
func (d *demo) session(kind string, s *materialize.Session, more ...term.Row) {
	row, v := s.Policy, s.Policy.Sandbox.Value
	d.out.Rows(append([]term.Row{
		{Name: "   " + kind, Value: term.Bold(short(s.ID)), Note: term.Dim(fmt.Sprintf("depth %d, log at seq %d", row.Depth, row.Seq))},
		{Name: "   sandbox", Value: term.Cat(modeText(v.Mode), term.Plain(" "+place(wire.PolicyOf(&row)))), Note: term.Dim(row.Sandbox.Cause().String())},
		{Name: "   approvals", Value: term.Plain(string(row.Approvals)), Note: term.Dim(row.ApprovalBy.String())},
	}, more...)...)
}

// place names the writable directories by the part that tells.
func place(p wire.Policy) string {
	if p.Sandbox.WritableRoots == nil {
		return ""
	}
	var names []string
	for _, root := range *p.Sandbox.WritableRoots {
		names = append(names, "…/"+filepath.Base(root))
	}
	return strings.Join(names, " ")
}

// granted is the fingerprint of a grant, which two readers can compare.
func granted(p wire.Policy) string {
	if p.Fingerprint == nil {
		return "none"
	}
	return "fingerprint " + p.Fingerprint.SHA256[:12]
}

func network(p wire.Policy) string {
	if p.Sandbox.Network {
		return "on"
	}
	return "off"
}

func (d *demo) origin(p wire.Policy) string {
	return fmt.Sprintf("%s, seq %d", p.Sandbox.Source, p.Sandbox.Origin.Seq)
}

func short(id uuid.UUID) string { return id.String()[:8] }
