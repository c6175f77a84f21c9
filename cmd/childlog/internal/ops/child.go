package ops

import (
	"context"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

// ChildRequest is a document as materialize reads it. The workspace is as the
// document states it.
func ChildRequest(m *manifest.Request) materialize.Request {
	r := materialize.Request{ID: m.ID, Key: m.Key, Label: m.Label, Prompt: m.Prompt, Mode: m.Mode, Fork: m.Fork, Workspace: m.Workspace,
		ToolCall: m.ToolCall, Provider: m.RunBy, Want: m.Request, Lockdown: m.Lockdown}
	if m.Palette != nil {
		r.Palette = *m.Palette
	}
	return r
}

// declared are the tools that a document says the child has.
type declared []string

// Tools implements [materialize.ToolLister].
func (d declared) Tools() []string { return d }

// Inspect holds the tools that a document declares against the lockdown of the
// deployment, as the parent and the request have it. What could not be looked at
// is recorded.
func Inspect(ctx context.Context, s *eventlog.Store, parent uuid.UUID, m *manifest.Request) (string, error) {
	if m.Palette == nil && !m.Foreign {
		return "", nil
	}
	names := m.Lockdown
	if e, err := replay.Policy(ctx, s, parent, 0); err == nil { // else the capture fails, and says why
		names = append(names[:len(names):len(names)], e.Lockdown...)
	}
	lock, err := policy.NewLockdown(names...)
	if err != nil {
		return "", err
	}
	child := materialize.Prebuilt{Name: m.Label, Foreign: m.Foreign}
	if m.Palette != nil {
		tools := declared{}
		for _, e := range m.Palette.Entries() {
			tools = append(tools, e.Name)
		}
		child.Agent = tools
	}
	if _, err := materialize.Inspect(lock, child); err != nil || !m.Foreign {
		return "", err
	}
	return string(materialize.InspectedForeign), nil
}
