package command

import (
	"fmt"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
)

// childFlags say what a child shall be: a document, flags, or both where they
// do not say the same.
type childFlags struct {
	request                                     string
	label, key, mode, id, cwd, toolCall, prompt string
	provider, role                              string
	scope                                       []string
	fork                                        uint64
	outOfProcess                                bool

	doc manifest.Request // as read; zero without a document
}

func (c *childFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.request, "request", "", "what is asked for, a JSON document: a file, or - for stdin")
	f.StringVar(&c.role, "role", "", "what kind of work the child is made for, such as explore, implement or test (default: the parent's, else general)")
	f.StringArrayVar(&c.scope, "write-scope", nil, "a place below the workspace that the child may write in; nothing else then (may be repeated)")
	f.StringVar(&c.label, "label", "", "a name for people")
	f.StringVar(&c.key, "key", "", "idempotency key, unique for the parent: a retry finds its child")
	f.StringVar(&c.mode, "mode", "", "one-shot (settling closes it) or continuable (takes follow-ups; the default)")
	f.Uint64Var(&c.fork, "fork", 0, "begin with the parent's conversation up to this seq of its log")
	f.StringVar(&c.id, "id", "", "the child's id, a UUID (default: a random one)")
	f.StringVar(&c.cwd, "cwd", "", "the child's working directory (default: the parent's); it never moves a captured root")
	f.StringVar(&c.toolCall, "tool-call", "", "the parent's tool call that delegates")
	f.StringVar(&c.prompt, "prompt", "", "the task, kept with the receipt")
	f.StringVar(&c.provider, "provider", "", "what runs the child (default: this process)")
	f.BoolVar(&c.outOfProcess, "out-of-process", false, "the provider keeps its own policy: recorded, not enforced; one-shot only")
	complete(cmd, "mode", eventlog.ModeOneShot, eventlog.ModeContinuable)
	completeRole(cmd)
}

// childRequest reads flags and document into one request.
func (a *app) childRequest(cmd *cobra.Command, c *childFlags) (materialize.Request, error) {
	r, err := c.fromFlags(a)
	if err != nil || c.request == "" {
		return r, err
	}
	doc, err := a.document(cmd.Context(), c.request, manifest.MaxDocument)
	if err != nil {
		return r, err
	}
	m, err := manifest.ParseRequest(doc)
	if err != nil {
		return r, withHint(fmt.Errorf("--request: %w", err), "nothing was made; `childlog schema request` describes the document")
	}
	c.doc = *m
	if err := c.merge(a, cmd, &r); err != nil {
		return r, err
	}
	return r, nil
}

func (c *childFlags) fromFlags(a *app) (r materialize.Request, err error) {
	r = materialize.Request{Key: c.key, Label: c.label, Prompt: c.prompt, Mode: c.mode, Fork: c.fork, ToolCall: c.toolCall}
	if r.ID, err = parseID("--id", c.id); err != nil {
		return r, err
	}
	if err := oneOf("--mode", c.mode, eventlog.ModeOneShot, eventlog.ModeContinuable); err != nil {
		return r, err
	}
	if r.Workspace, err = a.directory(c.cwd); err != nil {
		return r, err
	}
	if c.outOfProcess && c.provider == "" {
		return r, usagef("--out-of-process needs the name of the --provider")
	}
	if c.provider != "" {
		r.Provider = eventlog.Provider{Name: c.provider, InProcess: !c.outOfProcess}
	}
	if c.role != "" {
		if _, err := policy.ParseRole(c.role); err != nil {
			return r, usagef("--role: %w", err)
		}
		r.Want.Role = c.role
	}
	if len(c.scope) > 0 {
		if err := policy.CheckEntries(c.scope); err != nil {
			return r, usagef("--write-scope: %w", err)
		}
		r.Want.WriteScope = &c.scope
	}
	return r, nil
}

// merge adds what the document states. A flag that says the same is refused:
// which of the two would count is not for us to guess.
func (c *childFlags) merge(a *app, cmd *cobra.Command, r *materialize.Request) error {
	m := &c.doc
	for _, k := range []struct {
		flag, key string
		stated    bool
	}{
		{"role", "role", m.Role != ""},
		{"write-scope", "write_scope", m.WriteScope != nil},
		{"label", "label", m.Label != ""},
		{"key", "key", m.Key != ""},
		{"mode", "mode", m.Mode != ""},
		{"fork", "fork", m.Fork != 0},
		{"id", "id", m.ID != uuid.Nil},
		{"cwd", "workspace", m.Workspace != ""},
		{"tool-call", "tool_call", m.ToolCall != ""},
		{"prompt", "prompt", m.Prompt != ""},
		{"provider", "provider", m.RunBy.Name != ""},
	} {
		if k.stated && cmd.Flags().Changed(k.flag) {
			return usagef("--%s: the document states %s too; say it once", k.flag, k.key)
		}
	}
	flags := *r
	r.Want = m.Request
	r.Palette, r.Lockdown = policy.Palette{}, m.Lockdown
	if m.Palette != nil {
		r.Palette = *m.Palette
	}
	if flags.Want.Role != "" {
		r.Want.Role = flags.Want.Role
	}
	if flags.Want.WriteScope != nil {
		r.Want.WriteScope = flags.Want.WriteScope
	}
	r.Label, r.Key, r.Mode = either(m.Label, flags.Label), either(m.Key, flags.Key), either(m.Mode, flags.Mode)
	r.ToolCall, r.Prompt = either(m.ToolCall, flags.ToolCall), either(m.Prompt, flags.Prompt)
	if m.Fork != 0 {
		r.Fork = m.Fork
	}
	if m.ID != uuid.Nil {
		r.ID = m.ID
	}
	if m.RunBy.Name != "" {
		r.Provider = m.RunBy
	}
	switch {
	case m.Workspace == "":
	case !filepath.IsAbs(m.Workspace): // absolute elsewhere: a Windows path
		r.Workspace = m.Workspace
	default:
		dir, err := a.directory(m.Workspace)
		if err != nil {
			return err
		}
		r.Workspace = dir
	}
	return nil
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
