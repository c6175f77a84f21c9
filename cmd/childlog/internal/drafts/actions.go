package drafts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/logwalk"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// ActionDraft is the revision that [Actions] follows.
const ActionDraft = "draft-sahu-agent-action-receipts-00"

// actionLine is one decision, its members in the draft's order.
type actionLine struct {
	StepID   string         `json:"step_id"`   // the event's id
	ActionID string         `json:"action_id"` // the tool
	Params   map[string]any `json:"params"`    // ids, codes and digests; integers only
	Success  bool           `json:"success"`
	TS       uint64         `json:"ts_ms"`
	Actor    *actor         `json:"actor,omitzero"`     // only if both are known
	Prev     string         `json:"prev_hash,omitzero"` // "": the first line
	Childlog record         `json:"childlog"`
}

type actor struct {
	Agent string `json:"agent"` // the session
	User  string `json:"user"`  // the opaque reference of the principal
}

// mostWaiting is how many decisions wait for their results. Lines keep the order
// of the decisions, so the oldest of more is written without.
const mostWaiting = 4096

// failures are outcomes of a result that do not count as success.
var failures = []string{"error", "failed", "failure", "outcome-unknown", "unknown", "unrecorded", "not-started", "denied", "rejected", "cancelled", "canceled", "aborted", "interrupted", "timeout"}

// Actions writes the decisions of the sessions as one log of action receipts,
// each line chained to the one before. Errors: ErrNotFound, ErrCorrupt for a log
// or a decision that can't be read, a canceled context, what w returns.
func Actions(ctx context.Context, w io.Writer, s *eventlog.Store, sessions []uuid.UUID, o Options) error {
	a := actions{w: w, o: o}
	for _, id := range sessions {
		a.actor = nil
		if e, err := replay.Policy(ctx, s, id, 0); err == nil && !e.Principal.IsZero() {
			a.actor = &actor{Agent: id.String(), User: e.Principal.Ref}
		}
		if err := logwalk.Each(ctx, s, id, o.Contents, a.event, broken(id)); err != nil {
			return err
		}
		if err := a.flush(0); err != nil {
			return err
		}
	}
	return nil
}

// actions writes lines.
type actions struct {
	w       io.Writer
	o       Options
	actor   *actor
	waiting []*actionLine
	prev    string
}

func (a *actions) event(ev *eventlog.Event) error {
	switch {
	case ev.Inherited != nil:
	case ev.Type == eventlog.TypeToolDecision:
		line, err := a.decision(ev)
		if err != nil {
			return err
		}
		a.waiting = append(a.waiting, line)
		return a.flush(mostWaiting)
	case ev.Type == eventlog.TypeToolResult:
		call, outcome := ev.Facts.Str("call"), ev.Facts.Str("outcome")
		for _, line := range slices.Backward(a.waiting) {
			if line.Params["call"] == call && line.Params["outcome"] == nil {
				line.Params["outcome"] = outcome
				line.Success = line.Params["verdict"] == string(policy.VerdictAllow) && !slices.Contains(failures, outcome)
				break
			}
		}
	}
	return nil
}

func (a *actions) decision(ev *eventlog.Event) (*actionLine, error) {
	d, err := eventlog.ParseDecision(ev)
	if err != nil {
		return nil, err
	}
	gone := []missing{{"public_key", "childlog signs log heads, not decisions"}, {"signature", "childlog signs log heads, not decisions"}}
	line := &actionLine{StepID: ev.ID.String(), ActionID: d.Tool.Given, TS: d.EvaluatedMS, Actor: a.actor, Params: map[string]any{
		"session": d.Session.String(), "root": d.Root.String(), "seq": ev.Seq, "call": d.Call, "tool": d.Tool.Canonical, "class": string(d.Tool.Class),
		"verdict": string(d.Verdict), "code": string(d.Code), "decider": string(d.Decider), "enforcement": d.Enforcement, "outcome": nil,
		"evaluated_seq": d.EvaluatedSeq, "policy": wire.Hex(d.Policy), "args": wire.Hex(d.ArgsAfter)}}
	for name, v := range map[string]string{"rule": string(d.Rule), "ask": d.Ask, "decider_ref": d.Ref} {
		if v != "" {
			line.Params[name] = v
		}
	}
	if !d.Receipt.IsZero() {
		line.Params["receipt"] = wire.Hex(d.Receipt)
	}
	line.Childlog, err = a.o.record(ActionDraft, ev, gone)
	return line, err
}

// flush writes the oldest lines until at most the given number wait.
func (a *actions) flush(most int) error {
	for len(a.waiting) > most {
		line := a.waiting[0]
		a.waiting = a.waiting[1:]
		line.Prev = a.prev
		b, err := a.o.line(line)
		if err != nil {
			return err
		}
		a.prev = link(b)
		if _, err := a.w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// link is the prev_hash of the line that follows.
func link(line []byte) string {
	sum := sha256.Sum256(line[:len(line)-1]) // without the newline
	return hex.EncodeToString(sum[:])
}

func sortedOnce(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
