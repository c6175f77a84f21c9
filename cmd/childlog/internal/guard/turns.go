package guard

import (
	"context"
	"errors"
	"strings"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/replay"
)

// prompt begins a turn with what the person said.
func (g *Guard) prompt(ctx context.Context, s *eventlog.Store, ev *Event) (Outcome, error) {
	row, notice, err := g.actor(ctx, s, ev)
	if err != nil {
		return Outcome{}, err
	}
	row, waited, err := g.goOn(ctx, s, row)
	if err != nil {
		return Outcome{}, err
	}
	if row, err = g.leave(ctx, s, row); err != nil {
		return Outcome{}, err
	}
	events := turnStart(&row, ev)
	if ev.Prompt != "" {
		events = append(events, eventlog.NewEvent{Type: eventlog.TypeUserMessage, Source: eventlog.SourceUser, Media: eventlog.MediaText, Content: content(ev.Prompt)})
	}
	return Outcome{Context: waited, Notice: notice}, g.append(ctx, s, row, events...)
}

// turnStart begins a turn; one that nobody ended was interrupted.
func turnStart(row *eventlog.Row, ev *Event) []eventlog.NewEvent {
	var events []eventlog.NewEvent
	if row.TurnSeq != 0 {
		events = append(events, turnEnd(row, replay.ReasonInterrupted))
	}
	f := map[string]any{"turn": row.Turns + 1}
	if eventlog.IsCode(ev.Turn) {
		f["turn_id"] = ev.Turn
	}
	return append(events, fact(eventlog.NewEvent{Type: eventlog.TypeTurnStart}, f))
}

func turnEnd(row *eventlog.Row, reason string) eventlog.NewEvent {
	return fact(eventlog.NewEvent{Type: eventlog.TypeTurnEnd}, map[string]any{"turn": row.Turn, "reason": reason})
}

// said ends an open turn with the last words of the model.
func said(row *eventlog.Row, ev *Event, reason string) []eventlog.NewEvent {
	var events []eventlog.NewEvent
	if ev.Last != "" {
		events = append(events, eventlog.NewEvent{Type: eventlog.TypeAssistantMessage, Media: eventlog.MediaText, Content: content(ev.Last)})
	}
	if row.TurnSeq != 0 {
		events = append(events, turnEnd(row, reason))
	}
	return events
}

// content bounds a text to what one event may hold, in whole characters.
func content(s string) []byte {
	if len(s) > eventlog.MaxContent {
		s = strings.ToValidUTF8(s[:eventlog.MaxContent], "")
	}
	return []byte(s)
}

// stop ends a turn of the root.
func (g *Guard) stop(ctx context.Context, s *eventlog.Store, ev *Event) error {
	row, _, err := g.actor(ctx, s, ev)
	if err != nil {
		return err
	}
	if row, err = g.leave(ctx, s, row); err != nil {
		return err
	}
	reason := "completed"
	if ev.Name == "StopFailure" {
		reason = "failed"
	}
	events := said(&row, ev, reason)
	if len(events) == 0 {
		return g.note(ctx, s, row, ev)
	}
	return g.append(ctx, s, row, events...)
}

// agentStart makes the session of an agent, or goes on with it, and tells the
// agent its bounds.
func (g *Guard) agentStart(ctx context.Context, s *eventlog.Store, ev *Event) (Outcome, error) {
	root, notice, err := g.root(ctx, s, ev)
	if err != nil {
		return Outcome{}, err
	}
	row, made, err := g.child(ctx, s, root, ev)
	if err != nil {
		return Outcome{}, err
	}
	row, waited, err := g.goOn(ctx, s, row)
	if err != nil {
		return Outcome{}, err
	}
	if row.TurnSeq == 0 {
		if err := g.append(ctx, s, row, turnStart(&row, ev)...); err != nil {
			return Outcome{}, err
		}
	}
	bounds, err := g.bounds(ctx, s, row, made)
	if waited != "" {
		bounds += "\n\n" + waited
	}
	return Outcome{Context: bounds, Notice: notice}, err
}

func (g *Guard) bounds(ctx context.Context, s *eventlog.Store, row eventlog.Row, made *materialize.Session) (string, error) {
	if made != nil {
		return made.Context, nil
	}
	e, err := replay.Policy(ctx, s, row.Session, 0)
	if err != nil {
		return "", err
	}
	return replay.RuntimeContext(&e), nil
}

// agentStop settles the session of an agent. One that nobody saw start is not
// made to be settled.
func (g *Guard) agentStop(ctx context.Context, s *eventlog.Store, ev *Event) error {
	root, _, err := g.root(ctx, s, ev)
	if err != nil {
		return err
	}
	row, err := native(s, agentID(root.Session, ev.Agent))
	if errors.Is(err, eventlog.ErrNotFound) {
		return g.note(ctx, s, root, ev)
	}
	if err != nil || row.SettledSeq != 0 || row.ClosedSeq != 0 {
		return err
	}
	if events := said(&row, ev, "completed"); len(events) > 0 {
		if err := g.append(ctx, s, row, events...); err != nil {
			return err
		}
		if row, err = s.Row(row.Session); err != nil {
			return err
		}
	}
	return g.settle(ctx, s, row, "completed")
}
