package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// resolve finds the session that the user named.
func resolve(ctx context.Context, s *eventlog.Store, text string) (uuid.UUID, error) {
	return ops.Resolve(ctx, s, text)
}

// parseID reads an id that is to be given to something new.
func parseID(flag, text string) (uuid.UUID, error) {
	if text == "" {
		return uuid.Nil, nil
	}
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 || id == uuid.Nil {
		return uuid.Nil, usagef("%s: got %q, want a UUID such as 0a1b2c3d-0000-4000-8000-000000000001", flag, text)
	}
	return id, nil
}

// callerFlags say in whose name a command acts.
type callerFlags struct {
	parent   string
	operator bool
}

func (c *callerFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.parent, "parent", "", "act as this parent session")
	cmd.Flags().BoolVar(&c.operator, "operator", false, "act as an operator")
}

// check refuses both; required refuses neither as well.
func (c *callerFlags) check() error {
	if c.parent != "" && c.operator {
		return usagef("in whose name? give --parent ID or --operator, not both")
	}
	return nil
}

func (c *callerFlags) required() error {
	if c.parent == "" && !c.operator {
		return usagef("in whose name? give --parent ID or --operator")
	}
	return c.check()
}

// caller is the operator unless a parent is named.
func (c *callerFlags) caller(ctx context.Context, s *eventlog.Store) (replay.Caller, error) {
	if c.parent == "" {
		return replay.AsOperator(), nil
	}
	return ops.ParentOf(ctx, s, c.parent)
}

// sandboxFlags describe a sandbox.
type sandboxFlags struct {
	a       *app
	mode    string
	roots   []string
	network bool
	cmd     *cobra.Command
}

func (f *sandboxFlags) add(a *app, cmd *cobra.Command, what string) {
	f.a, f.cmd = a, cmd
	cmd.Flags().StringVar(&f.mode, "sandbox", "", what+": read-only, workspace-write or danger-full-access")
	cmd.Flags().StringArrayVar(&f.roots, "writable-root", nil, "with --sandbox workspace-write: a further writable directory (may be repeated)")
	cmd.Flags().BoolVar(&f.network, "network", false, "with --sandbox: allow the network (default: only under danger-full-access)")
	complete(cmd, "sandbox", string(policy.ReadOnly), string(policy.WorkspaceWrite), string(policy.DangerFullAccess))
}

// setting is nil if no sandbox was named.
func (f *sandboxFlags) setting() (*policy.Setting, error) {
	if f.mode == "" {
		if len(f.roots) > 0 || f.cmd.Flags().Changed("network") {
			return nil, usagef("--writable-root and --network say how --sandbox is meant; give it too")
		}
		return nil, nil
	}
	mode, err := policy.ParseMode(f.mode)
	if err != nil {
		return nil, usagef("--sandbox: %v", err)
	}
	s := &policy.Setting{Mode: mode}
	for _, dir := range f.roots {
		dir, err := f.a.directory(dir)
		if err != nil {
			return nil, err
		}
		s.WritableRoots = append(s.WritableRoots, dir)
	}
	if f.cmd.Flags().Changed("network") {
		s.Network = &f.network
	}
	return s, nil
}

// directory makes a path that the user gave absolute and, as far as it exists,
// resolves its links: what is recorded is the directory that is meant.
func (a *app) directory(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	abs, err := a.files.Abs(path)
	if err != nil {
		return "", err
	}
	for rest := ""; ; {
		if real, err := a.files.EvalSymlinks(abs); err == nil {
			return filepath.Join(real, rest), nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%w: directory %q: %w", eventlog.ErrInvalid, path, err)
		}
		if abs == filepath.Dir(abs) {
			return filepath.Join(abs, rest), nil
		}
		abs, rest = filepath.Dir(abs), filepath.Join(filepath.Base(abs), rest)
	}
}

// defaultFlags name the deployment default in force. Where a flag is absent,
// the environment counts.
type defaultFlags struct {
	sandbox, approvals string
	getenv             func(string) string
}

func (f *defaultFlags) add(a *app, cmd *cobra.Command) {
	f.getenv = a.getenv
	cmd.Flags().StringVar(&f.sandbox, "default-sandbox", "", "the deployment's default sandbox mode in force (default $CHILDLOG_DEFAULT_SANDBOX)")
	cmd.Flags().StringVar(&f.approvals, "default-approvals", "", "the deployment's default approvals in force (default $CHILDLOG_DEFAULT_APPROVALS)")
	complete(cmd, "default-sandbox", string(policy.ReadOnly), string(policy.WorkspaceWrite), string(policy.DangerFullAccess))
	complete(cmd, "default-approvals", string(policy.Never), string(policy.Ask))
}

// read returns the default in force; what nobody stated is nil or empty.
func (f *defaultFlags) read() (sandbox *policy.Setting, approvals policy.Approval, err error) {
	mode, from := f.sandbox, "--default-sandbox"
	if mode == "" {
		mode, from = f.getenv("CHILDLOG_DEFAULT_SANDBOX"), "CHILDLOG_DEFAULT_SANDBOX"
	}
	if mode != "" {
		m, err := policy.ParseMode(mode)
		if err != nil {
			return nil, "", usagef("%s: %v", from, err)
		}
		sandbox = &policy.Setting{Mode: m}
	}
	asked, from := f.approvals, "--default-approvals"
	if asked == "" {
		asked, from = f.getenv("CHILDLOG_DEFAULT_APPROVALS"), "CHILDLOG_DEFAULT_APPROVALS"
	}
	if asked != "" {
		if approvals, err = policy.ParseApproval(asked); err != nil {
			return nil, "", usagef("%s: %v", from, err)
		}
	}
	return sandbox, approvals, nil
}

// present is the default in force for a session's tree; nil if nothing was
// stated.
func (f *defaultFlags) present(ctx context.Context, s *eventlog.Store, session uuid.UUID) (*policy.Defaults, error) {
	sandbox, approvals, err := f.read()
	if err != nil {
		return nil, err
	}
	return ops.Present(ctx, s, session, sandbox, approvals)
}

// oneOf checks a flag against its values.
func oneOf(flag, value string, values ...string) error {
	if value == "" || slices.Contains(values, value) {
		return nil
	}
	return usagef("%s: got %q, want one of %s", flag, value, strings.Join(values, ", "))
}

// exactly and atMost are cobra's checks with the argument's name.
func exactly(names ...string) cobra.PositionalArgs {
	return between(len(names), names...)
}

func between(least int, names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("%s is missing", strings.Join(names[len(args):least], " and "))
		case len(args) > len(names):
			return usagef("unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

// ids shortens session ids for people: as few digits as tell those apart that
// are shown together, eight or more.
type ids int

func shortIDs(all []uuid.UUID) ids {
	texts := make([]string, len(all))
	for i, id := range all {
		texts[i] = id.String()
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	n := 8
	for i := 1; i < len(texts); i++ {
		same := 0
		for same < 36 && texts[i][same] == texts[i-1][same] {
			same++
		}
		n = max(n, same+1)
	}
	if n > 8 {
		n = 36 // a prefix that stops inside is harder to read than the whole
	}
	return ids(n)
}

func (n ids) of(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()[:n]
}

// approvalsText is an approval with its meaning: never is not to be mistaken
// for "no approval needed".
func approvalsText(a policy.Approval) term.Text {
	word, meaning, _ := strings.Cut(a.Meaning(), string(a.Effective())) // it begins with the value
	return term.Cat(term.Plain(word), term.Bold(string(a.Effective())), term.Plain(meaning))
}

// where names an origin as seen from a session.
func where(o policy.Origin, from uuid.UUID) string {
	switch o.Session {
	case from:
		return fmt.Sprintf("seq %d", o.Seq)
	case eventlog.StoreSession:
		return fmt.Sprintf("seq %d of the store", o.Seq)
	}
	return fmt.Sprintf("seq %d of %s", o.Seq, o.Session)
}

// by names a cause as seen from a session.
func by(c policy.Cause, from uuid.UUID) term.Text {
	return term.Dim(string(c.Source), ", ", where(c.Origin, from))
}

// statusText colours a status.
func statusText(status string) term.Text {
	switch status {
	case eventlog.StatusRunning, eventlog.StatusSettled:
		return term.Good(status)
	case eventlog.StatusInterrupted:
		return term.Warn(status)
	case eventlog.StatusClosed, eventlog.StatusEvidence:
		return term.Dim(status)
	}
	return term.Plain(status)
}

// modeText colours a sandbox mode by how much it permits.
func modeText(m policy.Mode) term.Text {
	switch m {
	case policy.ReadOnly:
		return term.Good(string(m))
	case policy.DangerFullAccess:
		return term.Bad(string(m))
	}
	return term.Warn(string(m))
}

func quoted(label string) string {
	if label == "" {
		return ""
	}
	return fmt.Sprintf("%q", label)
}
