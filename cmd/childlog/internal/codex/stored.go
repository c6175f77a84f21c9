package codex

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// storedNotes are the notes of a session whose file need not be read again.
func storedNotes(ctx context.Context, s *eventlog.Store, session uuid.UUID) (*notes, error) {
	n := newNotes()
	n.stored = true
	events, _, err := s.Policy(ctx, session, 0)
	if errors.Is(err, eventlog.ErrPolicyUnreadable) {
		return n, nil // the fold says so
	}
	if err != nil {
		return nil, err
	}
	for i := range events {
		n.setting(&events[i])
	}
	if len(events) > 0 {
		if c, err := eventlog.ParseCreated(&events[0]); err == nil {
			n.parentSeq = c.ParentSeq
		}
	}
	n.policy = events
	return n, nil
}

// spawns adds to stored notes the calls by which a thread spawned others: those
// of a parent of which a child does not know its call, having been imported
// before it. Of the log only the few events that tell are read with contents.
func (n *notes) spawns(ctx context.Context, s *eventlog.Store, session uuid.UUID) error {
	var seqs []uint64
	waiting := map[string]bool{}
	err := s.ReplayBorrowed(ctx, session, false, func(ev *eventlog.Event) error {
		call, tells := ev.Facts.Str("call"), false
		switch ev.Type {
		case eventlog.TypeToolCall:
			tells = ev.Facts.Str("tool") == toolSpawn
			waiting[call] = waiting[call] || tells
		case eventlog.TypeToolResult:
			tells = waiting[call]
		case eventlog.TypeImportOther:
			tells = ev.Facts.Str("original") == originalSpawned
		}
		if tells && ev.Inherited == nil && len(seqs) < 2*maxCalls {
			seqs = append(seqs, ev.Seq)
		}
		return nil
	})
	if ce := (*eventlog.CorruptError)(nil); err != nil && !errors.As(err, &ce) {
		return err // what is damaged tells less, and is reported elsewhere
	}
	for _, seq := range seqs {
		page, err := s.Read(ctx, session, eventlog.ReadOptions{From: seq, To: seq, Contents: true})
		if err != nil {
			return err
		}
		if len(page.Events) == 0 || page.Events[0].ContentErr != nil || page.Events[0].Media != eventlog.MediaJSON {
			continue // damaged, or erased
		}
		if rec, ok := open(page.Events[0].Content); ok {
			n.line(&mapped{rec: rec}, seq)
		}
	}
	for i := range n.calls {
		c := &n.calls[i]
		c.sandbox, c.approvals = before(n.sandboxes, c.seq), before(n.approvals, c.seq)
	}
	return nil
}

// originalSpawned is the harness's own word for a thread that was spawned.
const originalSpawned = "event_msg/collab_agent_spawn_end"

// storedCall is the call at a seq of a parent's log.
func storedCall(ctx context.Context, s *eventlog.Store, parent uuid.UUID, seq uint64, n *notes) (*call, error) {
	page, err := s.Read(ctx, parent, eventlog.ReadOptions{From: seq, To: seq})
	if importer.Gone(err) || err == nil && len(page.Events) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &call{id: page.Events[0].Facts.Str("call"), tool: toolSpawn, seq: seq, sandbox: before(n.sandboxes, seq), approvals: before(n.approvals, seq)}, nil
}

// storedTurns are the ids of the turns of a session that is in the store, as
// facts hold them.
func storedTurns(ctx context.Context, s *eventlog.Store, session uuid.UUID) (map[string]bool, error) {
	turns := map[string]bool{}
	err := s.ReplayBorrowed(ctx, session, false, func(ev *eventlog.Event) error {
		if ev.Type == eventlog.TypeTurnStart && ev.Inherited == nil && len(turns) < maxTurns {
			turns[ev.Facts.Str("id")] = true
		}
		return nil
	})
	if importer.Gone(err) {
		return nil, nil
	}
	if ce := (*eventlog.CorruptError)(nil); errors.As(err, &ce) {
		return nil, nil // then the times in the ids have to do
	}
	return turns, err
}

// before is the last setting before a seq.
func before(list []setting, seq uint64) (found *setting) {
	for i := range list {
		if list[i].seq < seq {
			found = &list[i]
		}
	}
	return found
}
