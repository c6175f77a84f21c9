package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/cmd/childlog/internal/ops"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
)

// Directory makes a path absolute and, as far as it exists, resolves its links:
// what a request names is to be the directory that is meant, on the machine
// where the agent runs. "" stays "".
func Directory(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for rest := ""; ; {
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			return filepath.Join(real, rest), nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("%w: directory %q: %w", eventlog.ErrInvalid, path, err)
		}
		if abs == filepath.Dir(abs) {
			return filepath.Join(abs, rest), nil
		}
		abs, rest = filepath.Dir(abs), filepath.Join(filepath.Base(abs), rest)
	}
}

// at says where in a request an error is. What a limit or a rule of policy
// refused keeps what it is.
func at(key string, err error) error {
	if err == nil || errors.Is(err, eventlog.ErrTooLarge) {
		return err
	}
	if !errors.Is(err, eventlog.ErrInvalid) {
		return fmt.Errorf("%w: /%s: %w", eventlog.ErrInvalid, key, err)
	}
	return fmt.Errorf("/%s: %w", key, err)
}

// newID reads an id that is to be given to something new.
func newID(key, text string) (uuid.UUID, error) {
	if text == "" {
		return uuid.Nil, nil
	}
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 || id == uuid.Nil {
		return uuid.Nil, fmt.Errorf("%w: /%s: got %.60q, want a UUID such as 0a1b2c3d-0000-4000-8000-000000000001", eventlog.ErrInvalid, key, text)
	}
	return id, nil
}

// setting reads a sandbox; nil stays nil.
func (s *Sandbox) setting(key string) (*policy.Setting, error) {
	if s == nil {
		return nil, nil
	}
	mode, err := policy.ParseMode(s.Mode)
	if err == nil {
		_, err = policy.RootsOf(s.WritableRoots...)
	}
	if err != nil {
		return nil, at(key, err)
	}
	return &policy.Setting{Mode: mode, WritableRoots: s.WritableRoots, Network: s.Network, ExcludeTmpdirEnvVar: s.ExcludeTmpdirEnvVar, ExcludeSlashTmp: s.ExcludeSlashTmp}, nil
}

// approvals reads an approval; "" stays "".
func approvals(key, text string) (policy.Approval, error) {
	if text == "" {
		return "", nil
	}
	a, err := policy.ParseApproval(text)
	return a, at(key, err)
}

// read reads a default; nothing is stated by nil.
func (d *Defaults) read() (*policy.Setting, policy.Approval, error) {
	if d == nil {
		return nil, "", nil
	}
	sandbox, err := d.Sandbox.setting("defaults/sandbox")
	if err != nil {
		return nil, "", err
	}
	a, err := approvals("defaults/approvals", d.Approvals)
	return sandbox, a, err
}

// present is the default in force, as it is held against a session's.
func (h *Store) present(ctx context.Context, session uuid.UUID, d *Defaults) (*policy.Defaults, error) {
	sandbox, approvals, err := d.read()
	if err != nil {
		return nil, err
	}
	return ops.Present(ctx, h.s, session, sandbox, approvals)
}

// domain reads a root's request.
func (r *RootRequest) domain() (out materialize.RootRequest, err error) {
	out = materialize.RootRequest{Label: r.Label, Workspace: r.Workspace, MaxDepth: r.MaxDepth, Claimed: r.Claimed}
	if out.ID, err = newID("id", r.ID); err != nil {
		return out, err
	}
	if r.MaxDepth < 0 || r.MaxDepth > materialize.HardMaxDepth {
		return out, fmt.Errorf("%w: /max_depth: got %d, want 1 to %d", eventlog.ErrInvalid, r.MaxDepth, materialize.HardMaxDepth)
	}
	if out.Sandbox, err = r.Sandbox.setting("sandbox"); err != nil {
		return out, err
	}
	if out.Approvals, err = approvals("approvals", r.Approvals); err != nil {
		return out, err
	}
	if out.Default, out.Ask, err = r.Defaults.read(); err != nil {
		return out, err
	}
	if r.External != "" {
		var ok bool
		if out.System, out.External, ok = strings.Cut(r.External, ":"); !ok || out.System == "" || out.External == "" {
			return out, fmt.Errorf("%w: /external: got %.60q, want SYSTEM:ID", eventlog.ErrInvalid, r.External)
		}
	}
	if r.Workspace != "" {
		if _, err := policy.NewWorkspace(r.Workspace, ""); err != nil {
			return out, at("workspace", err)
		}
	}
	if r.Profile != nil {
		doc, err := text(*r.Profile)
		if err == nil {
			out.Profile, err = manifest.ParseProfile(doc)
		}
		if err != nil {
			return out, at("profile", err)
		}
	}
	return out, nil
}

// domain reads what a delegation asks for.
func (c *Child) domain() (*manifest.Request, materialize.Request, error) {
	doc, err := text(*c)
	if err != nil {
		return nil, materialize.Request{}, at("child", err)
	}
	m, err := manifest.ParseRequest(doc)
	if err != nil {
		return nil, materialize.Request{}, at("child", err)
	}
	return m, ops.ChildRequest(m), nil
}

// domain reads a call.
func (c *Call) domain(key string) (*manifest.Call, error) {
	if c.read != nil {
		return c.read, nil
	}
	doc, err := text(*c)
	if err != nil {
		return nil, at(key, err)
	}
	m, err := manifest.ParseCall(doc)
	return m, at(key, err)
}

// domain reads an event.
func (e *Event) domain() (eventlog.NewEvent, error) {
	if e.read != nil {
		return *e.read, nil
	}
	doc, err := text(*e)
	if err != nil {
		return eventlog.NewEvent{}, err
	}
	return manifest.ParseEvent(doc)
}

// batch reads events that are to be appended.
func (r *AppendRequest) batch() (eventlog.Batch, error) {
	b := eventlog.Batch{Expect: eventlog.Any(), Epoch: r.Epoch, Key: r.Key}
	if r.Expect != nil {
		b.Expect = eventlog.At(*r.Expect)
	}
	if len(r.Events) == 0 {
		return b, missing("events")
	}
	if n := len(r.Events); n > eventlog.MaxBatchEvents {
		return b, &eventlog.TooLargeError{What: "events of a batch", Limit: eventlog.MaxBatchEvents, Size: uint64(n)}
	}
	b.Events = make([]eventlog.NewEvent, len(r.Events))
	size := 0
	for i := range r.Events {
		var err error
		if b.Events[i], err = r.Events[i].domain(); err != nil {
			return b, at(fmt.Sprintf("events/%d", i), err)
		}
		if size += len(b.Events[i].Content); size > eventlog.MaxBatchContent {
			return b, &eventlog.TooLargeError{What: "content of a batch in bytes", Limit: eventlog.MaxBatchContent, Size: uint64(size)}
		}
	}
	return b, nil
}
