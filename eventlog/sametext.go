package eventlog

import (
	"context"

	"github.com/google/uuid"
)

// SameText is an event that may repeat a text which is to be erased. Seq 0
// stands for a child that the call made: its receipt and its label.
type SameText struct {
	Session uuid.UUID
	Seq     uint64
	Type    string
	Why     string
}

// sameTexts adds to named the events of the session that hold the same texts
// for certain, and returns those that may. It reads the headers of the whole
// log, which is not held up for it: what is appended meanwhile came after the
// order. Memory grows with the number of calls.
func (s *Store) sameTexts(ctx context.Context, session uuid.UUID, named map[uint64]string) ([]SameText, error) {
	also := []SameText{}
	var texts []Event // that may repeat another's
	err := s.eachHeader(ctx, session, func(ev *Event) {
		if ev.Inherited != nil && named[ev.Seq] != "" {
			also = append(also, SameText{ev.Inherited.Session, ev.Inherited.Seq, ev.Type, "the original of the copy"})
		}
		switch ev.Type {
		case TypeSessionCreated, TypeDelegationGranted, TypeSessionTitled, TypeDelegationStarted, TypeHistoryCompacted,
			TypeToolCall, TypeToolDecision, TypeApprovalAsked, TypeToolResult:
			texts = append(texts, *ev)
		}
	})
	if err != nil {
		return nil, err
	}
	calls, asks, labels := map[string]bool{}, map[string]bool{}, false
	known := func() int { return len(named) + len(calls) + len(asks) }
	for found := -1; found != known(); { // a question ties its call to the decision on it
		found = known()
		for i := range texts {
			switch ev := &texts[i]; ev.Type {
			case TypeToolCall, TypeToolDecision, TypeApprovalAsked:
				call, ask := ev.Facts.Str("call"), ev.Facts.Str("ask")
				if named[ev.Seq] == "" && (calls[call] || asks[ask]) && ev.HasContent {
					named[ev.Seq] = WhySame
				}
				if named[ev.Seq] != "" {
					calls[call], asks[ask] = call != "", ask != ""
				}
			case TypeSessionCreated, TypeDelegationGranted:
				if ev.Inherited != nil {
					continue
				}
				if named[ev.Seq] == "" && labels && ev.HasContent {
					named[ev.Seq] = WhySame
				}
				if named[ev.Seq] != "" && !labels {
					labels, found = true, -1
				}
			}
		}
	}
	for i := range texts {
		ev := &texts[i]
		add := func(why string) { also = append(also, SameText{session, ev.Seq, ev.Type, why}) }
		switch {
		case named[ev.Seq] != "":
		case ev.Type == TypeToolResult && calls[ev.Facts.Str("call")]:
			add("the result of the call")
		case ev.Type == TypeDelegationStarted && calls[ev.Facts.Str("tool_call")]:
			also = append(also, SameText{ev.Facts.UUID("child"), 0, TypeDelegationGranted, "the request of the child that the call made"})
		case ev.Type == TypeSessionTitled && labels:
			add("another label")
		case ev.Type == TypeHistoryCompacted:
			from, to := ev.Facts.Uint("from"), ev.Facts.Uint("to")
			for seq := range named {
				if from <= seq && seq <= to {
					add("a summary of it")
					break
				}
			}
		}
	}
	return also, nil
}

// eachHeader calls fn with a session's events, without their contents. A hole
// is passed over: nothing in it can be erased, and the commit refuses a damaged
// log.
func (s *Store) eachHeader(ctx context.Context, session uuid.UUID, fn func(*Event)) error {
	for from := uint64(1); from != 0; {
		page, err := s.Read(ctx, session, ReadOptions{From: from, MaxEvents: replayEvents})
		if err != nil {
			return err
		}
		for i := range page.Events {
			fn(&page.Events[i])
		}
		from = page.Next
	}
	return nil
}
