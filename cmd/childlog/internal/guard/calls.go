package guard

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/files"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/policy/objection"
	"childlog/replay"
)

// call decides one tool call and records it with its decision.
func (g *Guard) call(ctx context.Context, s *eventlog.Store, ev *Event) (Outcome, error) {
	row, notice, err := g.actor(ctx, s, ev)
	if err != nil {
		return Outcome{}, err
	}
	row, waited, err := g.goOn(ctx, s, row)
	if err != nil {
		return Outcome{}, err
	}
	r, err := g.request(ctx, s, &row, ev)
	if err != nil {
		return Outcome{}, err
	}
	j, err := replay.NewAuthorizer(s, row.Session).Record(ctx, r)
	if err != nil && !j.Denies(err) {
		return Outcome{}, err
	}
	o := g.decided(ctx, s, &row, &j)
	o.Notice, o.Context = notice, waited
	if o.Verb == Ask {
		return g.put(ctx, s, row, ev, r.Call.Escalation, o)
	}
	return o, nil
}

// decided puts a judgement into words.
func (g *Guard) decided(ctx context.Context, s *eventlog.Store, row *eventlog.Row, j *replay.Judgement) Outcome {
	switch j.Verdict {
	case policy.VerdictAllow:
		if approves(j.Subject.Authority) {
			return Outcome{Verb: Approve, Reason: "childlog: allowed, and the profile says that nobody needs to be asked"}
		}
		return Outcome{}
	case policy.VerdictNeedsApproval:
		return Outcome{Verb: Ask, Reason: "childlog: " + j.Reason()}
	}
	return Outcome{Verb: Deny, Reason: g.denial(ctx, s, row, j)}
}

// denial tells a model what refused its call, where that was stated, and what
// would have to change, so that it does not try the same again.
func (g *Guard) denial(ctx context.Context, s *eventlog.Store, row *eventlog.Row, j *replay.Judgement) string {
	var b strings.Builder
	b.WriteString("childlog: " + j.Reason() + ".")
	if where := replay.OriginText(ctx, s, row.Session, j.Origin); where != "" {
		b.WriteString(" Stated by " + where + ".")
	}
	if change := cmp.Or(changeOf(j.Rule), j.Change(&j.Subject)); change != "" {
		b.WriteString(" What would change it: " + change + ".")
	}
	if row.Kind == eventlog.KindChild {
		b.WriteString(" You are a delegated agent and nobody is asked: report this limitation to whoever delegated to you instead of retrying.")
	}
	return b.String()
}

// request lays out the call for the authorizer.
func (g *Guard) request(ctx context.Context, s *eventlog.Store, row *eventlog.Row, ev *Event) (replay.CallRequest, error) {
	r := replay.CallRequest{Call: policy.NewCall(ev.Call, ev.Tool, ev.Args), Args: ev.ArgsJSON, Advisory: g.Observe}
	if row.Open {
		r.Epoch = row.Epoch
	}
	e, err := replay.Policy(ctx, s, row.Session, 0)
	if errors.Is(err, eventlog.ErrPolicyUnreadable) || errors.Is(err, eventlog.ErrEvidence) {
		return r, nil // the authorizer denies it, and says so better
	}
	if err != nil {
		return r, err
	}
	if wantsNoSandbox(g.Harness, ev) && e.Sandbox.Value.Canonical().Mode != policy.DangerFullAccess {
		r.Call.Escalation = &policy.Escalation{Sandbox: policy.Top(), Justification: "the call asks to run outside of the sandbox"}
	}
	tool, err := e.Palette.Classify(ev.Tool)
	if err != nil {
		tool.Class = policy.ClassOpaque
	}
	switch tool.Class {
	case policy.ClassShell:
		own := e.Authority.Canonical().Own
		mayWrite := own.Grant.Shell == policy.GrantFull && (e.Sandbox.Value.Canonical().Mode == policy.ReadOnly || !own.Profile.Permissions.Write)
		if mayWrite || counts(&own, tool) {
			r.Call.Verdict, r.Found = g.classified(ev), true
		}
		if mayWrite && r.Call.Verdict.Shell() == policy.GrantFull {
			r.Outcome = refused(ruleShellMayWrite)
		}
	case policy.ClassEdit, policy.ClassOpaque:
		r.Outcome, err = g.resolved(&r.Call, &e, ev)
	}
	return r, err
}

// wantsNoSandbox reports whether a call asks to be run outside of the harness's
// sandbox (Claude Code: dangerouslyDisableSandbox of Bash).
func wantsNoSandbox(h Harness, ev *Event) bool {
	v, there := ev.Args["dangerouslyDisableSandbox"]
	off, isBool := v.(bool)
	return h == ClaudeCode && there && (!isBool || off)
}

// resolved adds to the paths of a call where their links lead, so that a call is
// decided about the files that it will change: also where all places may be
// written, since the store's directory and what an operator closed may not.
// Where they are limited, a name that can't be followed, and a file with more
// than one name, is an objection; a link to what is not there is one everywhere.
func (g *Guard) resolved(call *policy.Call, e *replay.Effective, ev *Event) (*objection.Outcome, error) {
	limited := e.Sandbox.Value.Canonical().Mode != policy.DangerFullAccess || e.Authority.Own.Grant.Scope.Stated()
	workspace := e.WorkspaceRoot
	var targets []target
	for _, path := range call.Paths {
		if to, ok := targetOf(path, workspace, ev.Cwd); ok {
			targets = append(targets, to)
		}
	}
	// All are asked for at once: each question may be a way to another process.
	var names []string
	for _, to := range targets {
		names = append(names, to.at)
	}
	if workspace != "" {
		names = append(names, workspace)
	}
	places := g.Files.Real(names...)
	top := "" // the workspace, without links
	if workspace != "" {
		place := places[len(targets)]
		if place.Err != nil && limited {
			return nil, fmt.Errorf("workspace: %w", place.Err)
		}
		top = place.Path
	}
	call.Paths = slices.Clone(call.Paths)
	for i, target := range targets {
		to, info, err := places[i].Path, places[i].Info, places[i].Err
		switch {
		case err != nil && !limited && !errors.Is(err, files.ErrDangling):
			continue // nor can whoever opens it
		case err != nil:
			return refused(rulePathUnresolved), nil
		case limited && info != nil && !info.IsDir() && (!info.Mode().IsRegular() || files.InfoOf(info).Links > 1):
			return refused(ruleNotOneFile), nil
		}
		if rel, ok := strings.CutPrefix(to, top+"/"); ok && top != "" {
			to = filepath.Join(workspace, rel)
		}
		if to != target.meant {
			call.Paths = append(call.Paths, to)
		}
	}
	return nil, nil
}

// target is a path of a call.
type target struct {
	at    string // as the harness takes it
	meant string // as policy does
}

// targetOf is where a path of a call points to; false: it is relative to nothing,
// and is decided as text.
func targetOf(path, workspace, cwd string) (target, bool) {
	if filepath.IsAbs(path) {
		return target{path, filepath.Clean(path)}, true
	}
	from := cwd
	if !filepath.IsAbs(from) {
		from = workspace
	}
	return target{from + "/" + path, filepath.Join(workspace, path)}, from != ""
}

// Rules of a guard's own: what can't be told from the text of a call.
const (
	// A session that may change no file, by its sandbox or by its permissions,
	// has a full shell: narrowed while it ran, or told so by a document. Where
	// childlog decides and somebody else sandboxes, what its commands write is
	// bound by nobody.
	ruleShellMayWrite = "shell_may_write"

	rulePathUnresolved = "path_unresolved" // a loop, a link to nothing, a directory that may not be read
	ruleNotOneFile     = "not_one_file"    // a file with several names, or no file
)

// changeOf says what would change an objection of a guard, "" for other rules.
func changeOf(rule policy.Rule) string {
	switch rule {
	case ruleShellMayWrite:
		return "nothing in this session, which may change no file, while a command may change any"
	case rulePathUnresolved:
		return "name a path whose links lead to something"
	case ruleNotOneFile:
		return "name a plain file that has one name"
	}
	return ""
}

func refused(rule string) *objection.Outcome {
	return &objection.Outcome{Refused: objection.CodeObjection, By: rule, Record: objection.Record{Checked: 1}}
}

// permission answers the question that a harness is about to put to a person. A
// child never asks and is always rejected, and so is a root whose approvals are
// never. The question of another root is the harness's own; the guard has no say
// in it, because only the person can answer it.
func (g *Guard) permission(ctx context.Context, s *eventlog.Store, ev *Event) (Outcome, error) {
	row, notice, err := g.actor(ctx, s, ev)
	if err != nil {
		return Outcome{}, err
	}
	if row.Kind != eventlog.KindChild {
		e, err := replay.Policy(ctx, s, row.Session, 0)
		if err != nil {
			return Outcome{}, err
		}
		if e.Approvals == policy.Ask {
			ask, err := g.shown(ctx, s, &row, ev)
			if err != nil {
				return Outcome{}, err
			}
			return Outcome{Notice: notice}, g.note(ctx, s, row, ev, ask)
		}
	}
	call := ev.Call
	if call == "" { // Claude Code and Codex give none with this event
		sum := sha256.Sum256(ev.Raw)
		call = "permission:" + fmt.Sprintf("%x", sum[:8])
	}
	r := replay.AskRequest{Session: row.Session, Call: call, Tool: ev.Tool, Args: ev.ArgsJSON}
	if policy.CheckToolName(ev.Tool) != nil {
		r.Tool = eventlog.InvalidTool
	}
	if row.Open {
		r.Epoch = row.Epoch
	}
	ruling, err := replay.Ask(ctx, s, r)
	if err != nil {
		return Outcome{}, err
	}
	why := "this session never asks and is always rejected. Go on without it, and say what could not be done."
	if row.Kind == eventlog.KindChild {
		why = "a delegated agent never asks and is always rejected. Report this limitation to whoever delegated to you instead of retrying."
	}
	return Outcome{Verb: Deny, Notice: notice, Reason: fmt.Sprintf("childlog: rejected: %q by %s, recorded at seq %d: %s", clipLabel(ev.Tool), ruling.Rule, ruling.DecidedSeq, why)}, nil
}

// tagResult is 16 bytes, and never changes: a result that is reported twice is
// recorded once.
const tagResult = "childlog/result1"

// result records that a call was made. One that was denied, or never decided, is
// recorded like any other: that is what a review looks for.
func (g *Guard) result(ctx context.Context, s *eventlog.Store, ev *Event) error {
	row, _, err := g.actor(ctx, s, ev)
	if err != nil {
		return err
	}
	f := map[string]any{"call": ev.Call, "outcome": "ok"}
	if ev.Kind == KindFailure {
		f["outcome"] = "error"
		if ev.Stopped {
			f["outcome"] = "interrupted"
		}
	}
	e := eventlog.NewEvent{ID: resultID(row.Session, ev.Call), Type: eventlog.TypeToolResult}
	switch {
	case len(ev.Response) > eventlog.MaxContent:
		f["left_out"] = len(ev.Response)
	case ev.Response != nil:
		e.Media, e.Content = eventlog.MediaJSON, ev.Response
	case ev.Failure != "":
		e.Media, e.Content = eventlog.MediaText, content(ev.Failure)
	}
	told := g.ran(ctx, s, &row, ev) // first: the question is open until its call has a result
	err = g.append(ctx, s, row, fact(e, f))
	if errors.Is(err, eventlog.ErrDuplicate) {
		err = nil
	}
	return errors.Join(err, told)
}

func resultID(session uuid.UUID, call string) uuid.UUID { return derived(tagResult, session, call) }
