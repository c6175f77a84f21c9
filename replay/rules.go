package replay

import (
	"context"
	"errors"
	"fmt"

	"childlog/eventlog"
	"childlog/policy"
)

// RuleFile is what an operator binds to a store.
type RuleFile struct {
	DenyTools []string // patterns, see [policy.DenyEntry]
	DenyPaths []string // places below a workspace, each with all below it
	Text      []byte   // the file as given; kept as content
}

// SetRules replaces the operator rules bound to the store. Roots follow them
// from their next decision on. Children keep what they captured: new rules
// reach them by Narrow with Rules, and rules that are gone here stay there.
// A file that says what is in force already writes nothing.
//
// Errors: ErrInvalid (a pattern or a path), ErrTooLarge, ErrPolicyUnreadable:
// the present rules can't be read.
func SetRules(ctx context.Context, s *eventlog.Store, f RuleFile) (policy.OperatorRules, error) {
	facts, err := eventlog.StoreRulesFacts(f.DenyTools, f.DenyPaths, "operator")
	if err != nil {
		return policy.OperatorRules{}, err
	}
	want, err := policy.NewOperatorRules(policy.Origin{}, f.DenyTools, f.DenyPaths)
	if err != nil {
		return policy.OperatorRules{}, err
	}
	_, err = s.Transact(ctx, eventlog.EntryStore, func(v *eventlog.View) ([]eventlog.Batch, error) {
		have, err := RulesIn(v)
		if err != nil {
			return nil, err
		}
		row, err := v.Row(eventlog.StoreSession)
		switch {
		case err != nil && !errors.Is(err, eventlog.ErrNotFound):
			return nil, err
		case err == nil && have.Digest() == want.Digest():
			return nil, nil
		}
		var events []eventlog.NewEvent
		if row.Head == 0 {
			events = append(events, eventlog.StoreCreated())
		}
		media := eventlog.MediaOctets
		if eventlog.CheckJSON(f.Text) == nil {
			media = eventlog.MediaJSON
		}
		events = append(events, eventlog.NewEvent{Type: eventlog.TypeStoreRules, Facts: facts, Media: media, Content: f.Text})
		return []eventlog.Batch{{Session: eventlog.StoreSession, Expect: eventlog.At(row.Head), Events: events}}, nil
	})
	if err != nil {
		return policy.OperatorRules{}, err
	}
	return Rules(ctx, s)
}

// Rules reads the operator rules that are bound to the store now; a store that
// never had any has none. Errors: ErrPolicyUnreadable; then every root and
// every capture is refused, since what is denied is not known.
func Rules(ctx context.Context, s *eventlog.Store) (policy.OperatorRules, error) {
	events, _, err := s.Policy(ctx, eventlog.StoreSession, 0)
	return foldRules(events, err, s.Whole)
}

// RulesIn is Rules inside a commit.
func RulesIn(v *eventlog.View) (policy.OperatorRules, error) {
	events, err := v.Policy(eventlog.StoreSession)
	return foldRules(events, err, v.Whole)
}

// rulesBefore reads the rules as they were at a position of the journal: the
// one order that sessions share.
func rulesBefore(ctx context.Context, s *eventlog.Store, position uint64) (policy.OperatorRules, error) {
	events, _, err := s.Policy(ctx, eventlog.StoreSession, 0)
	for i := range events {
		if events[i].Position > position {
			events = events[:i]
			break
		}
	}
	return foldRules(events, err, s.Whole)
}

func foldRules(events []eventlog.Event, err error, whole func() error) (policy.OperatorRules, error) {
	if errors.Is(err, eventlog.ErrNotFound) {
		// Its only frame may be the one that was lost.
		if err := whole(); err != nil {
			return policy.OperatorRules{}, unreadable(err)
		}
		return policy.OperatorRules{}, nil
	}
	if err != nil {
		return policy.OperatorRules{}, unreadable(err)
	}
	var rules policy.OperatorRules
	for i := range events {
		ev := &events[i]
		switch {
		case !eventlog.IsKnown(ev.Type, ev.Version):
			return policy.OperatorRules{}, fmt.Errorf("%w: %w: %s version %d at seq %d of the store's own session", eventlog.ErrPolicyUnreadable, eventlog.ErrUnknownType, ev.Type, ev.Version, ev.Seq)
		case ev.Type == eventlog.TypeStoreRules && ev.Source == eventlog.SourceOperator:
			if rules, err = eventlog.ParseStoreRules(ev); err != nil {
				return policy.OperatorRules{}, unreadable(err)
			}
		case i > 0 || ev.Type != eventlog.TypeSessionCreated || ev.Source != eventlog.SourceStore:
			return policy.OperatorRules{}, unreadable(&eventlog.CorruptError{Session: ev.Session, Seq: ev.Seq, Type: ev.Type, Reason: "not an event of the store's own session"})
		}
	}
	return rules, nil
}
