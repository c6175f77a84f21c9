package guard

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/snapshot"
)

// code is a text as a fact.
func code(s string) string { return importer.Code(s) }

// actor is the session that an event is of: the agent's if it names one, else
// the root. Either is made if it has to be; an agent's calls are never decided
// under the root's policy. The notice is for the person, "" for none.
func (g *Guard) actor(ctx context.Context, s *eventlog.Store, ev *Event) (eventlog.Row, string, error) {
	root, notice, err := g.root(ctx, s, ev)
	if err != nil || ev.Agent == "" {
		return root, notice, err
	}
	child, _, err := g.child(ctx, s, root, ev)
	return child, notice, err
}

// root finds the root of the harness's session, or makes it. Of any number of
// hooks that find none at the same time one makes it: the external id is taken
// inside the commit.
func (g *Guard) root(ctx context.Context, s *eventlog.Store, ev *Event) (row eventlog.Row, notice string, err error) {
	find := func() (eventlog.Row, error) {
		id, err := s.ByExternal(g.Harness.System(), ev.Session)
		if err != nil {
			return eventlog.Row{}, err
		}
		return native(s, id)
	}
	if row, err = find(); !errors.Is(err, eventlog.ErrNotFound) {
		return row, "", err
	}
	p, notice, err := g.project()
	if err != nil {
		return row, "", err
	}
	request, err := g.rootRequest(p, ev)
	if err != nil {
		return row, "", err
	}
	made, err := materialize.Root(ctx, s, request)
	if errors.Is(err, eventlog.ErrExists) {
		row, err = find()
		return row, "", err
	}
	if err != nil {
		return row, "", err
	}
	row, err = s.Row(made.ID)
	return row, notice, err
}

// native is the row of a session that is no evidence.
func native(s *eventlog.Store, id uuid.UUID) (eventlog.Row, error) {
	row, err := s.Row(id)
	if err == nil && row.Evidence {
		err = fmt.Errorf("%w: session %s has the name of this one and was imported from another store; purge it, or begin a new session in the harness", eventlog.ErrEvidence, id)
	}
	return row, err
}

// project is the policy of a root that begins: what the hook's flags say, narrowed
// by the project's files. They count here and never again: a file that a guarded
// agent can write must not give it anything.
func (g *Guard) project() (p Policy, notice string, err error) {
	p = g.Policy
	for _, file := range g.Project {
		if file.Err != "" {
			return p, "", fmt.Errorf("%w: the project's policy: %s", eventlog.ErrInvalid, file.Err)
		}
		own, err := ParsePolicy(file.Doc, false)
		if err == nil {
			p, err = p.Meet(own)
		}
		if err != nil {
			return p, "", fmt.Errorf("%s: %w", file.Path, err)
		}
		if own.Profile != "" && p.Mode != own.Mode {
			notice = fmt.Sprintf("childlog guard: %s asks for the profile %s, what else counts here gives less than it: a project's file only takes away", file.Path, own.Profile)
		}
	}
	return p, notice, nil
}

func (g *Guard) rootRequest(p Policy, ev *Event) (r materialize.RootRequest, err error) {
	if !filepath.IsAbs(ev.Cwd) {
		return r, fmt.Errorf("%w: cwd: want an absolute directory, got %.200q", eventlog.ErrInvalid, ev.Cwd)
	}
	at := g.Files.Real(ev.Cwd)[0]
	if at.Err != nil {
		return r, fmt.Errorf("cwd: %w", at.Err)
	}
	label := fmt.Sprintf("%s, %s", g.Harness, p.Profile)
	if !p.equal(g.Policy) {
		label += ", narrowed by " + PolicyFile
	}
	r = materialize.RootRequest{Sandbox: p.setting(ev.Cwd, at.Path), Approvals: p.Approvals, Default: &policy.Setting{Mode: policy.ReadOnly}, Ask: p.Approvals,
		Label: label, System: g.Harness.System(), External: ev.Session, Workspace: ev.Cwd, MaxDepth: p.MaxDepth}
	r.Profile, err = p.profile()
	return r, err
}

// tagAgent is 16 bytes, like the tags of package eventlog, and never changes: an
// agent is known again by it for ever.
const tagAgent = "childlog/agent/1"

// agentID is the id of the session of an agent: a function of the root and the
// harness's own id, so that it is found whoever delegated it.
func agentID(root uuid.UUID, agent string) uuid.UUID { return derived(tagAgent, root, agent) }

// derived makes an id that is a function of its parts.
func derived(tag string, session uuid.UUID, text string) (id uuid.UUID) {
	h := sha256.New()
	h.Write([]byte(tag))
	h.Write(session[:])
	h.Write([]byte(text))
	copy(id[:], h.Sum(nil))
	id[6] = id[6]&0x0f | 0x80 // version 8 (RFC 9562)
	id[8] = id[8]&0x3f | 0x80
	return id
}

// child finds the session of an agent, or makes it by a delegation. made is nil
// if it was there. Idempotent: two hooks that make it at the same time get one.
func (g *Guard) child(ctx context.Context, s *eventlog.Store, root eventlog.Row, ev *Event) (row eventlog.Row, made *materialize.Session, err error) {
	id := agentID(root.Session, ev.Agent)
	find := func() (eventlog.Row, error) {
		row, err := native(s, id)
		if err == nil && (row.Root != root.Session || row.Kind != eventlog.KindChild) {
			err = fmt.Errorf("%w: session %s is no child of this tree", eventlog.ErrConflict, id)
		}
		return row, err
	}
	if row, err = find(); !errors.Is(err, eventlog.ErrNotFound) {
		return row, nil, err
	}
	d, err := g.delegator(ctx, s, root, ev)
	if err != nil {
		return row, nil, err
	}
	role := policy.RoleCustom // of a kind that nobody here knows: what its parent hands on
	if known, err := policy.ParseRole(ev.AgentType); err == nil {
		role = known
	}
	r := materialize.Request{ID: id, Key: "agent " + ev.Agent, Label: clipLabel(ev.AgentType + " " + ev.Agent), Prompt: d.prompt, ToolCall: d.call,
		Want: policy.Request{Role: string(role)}}
	options := snapshot.Options{}
	if d.row.Open {
		options.Epoch = d.row.Epoch
	}
	session, err := materialize.Delegate(ctx, s, d.row.Session, options, r)
	if errors.Is(err, eventlog.ErrExists) || errors.Is(err, eventlog.ErrConflict) {
		row, err = find()
		return row, nil, err
	}
	if err != nil {
		return row, nil, fmt.Errorf("the agent %.80q can't be delegated to: %w", ev.Agent, err)
	}
	row, err = s.Row(session.ID)
	return row, &session, err
}

// clipLabel bounds a label, which is for display.
func clipLabel(s string) string {
	if len(s) > 200 {
		s = s[:200]
	}
	return clip(s)
}
