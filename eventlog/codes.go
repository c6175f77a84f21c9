package eventlog

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// This file finds what a session recorded under a code of its own: the decision
// of a call, a question and its decision. A retry asks by the code, in the
// commit in which it would write, so that of two that race only one does. The
// names stand in the table that holds keys and external ids, one short row each,
// and are exact however long ago they were written.

// codeName names a code of a session. Its first half is the session, so that the
// codes of one are neighbours in the index, and go with it.
func codeName(space nameSpace, session uuid.UUID, code string) name {
	sum := sha256.Sum256(append(append([]byte(tagCode), session[:]...), code...))
	n := name{space: space}
	copy(n.hash[:16], session[:])
	copy(n.hash[16:], sum[:16])
	return n
}

// of is the session that a name leads to, or uuid.Nil: id is what the table has
// for it.
func (n name) of(id uuid.UUID) uuid.UUID {
	switch n.space {
	case nameCall, nameAsk, nameDecided, nameBatch:
		return uuid.UUID(n.hash[:16])
	case namePurged:
		return uuid.Nil
	}
	return id
}

// asSeq puts a seq into what a name leads to, which else is a session.
func asSeq(seq uint64) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[8:], seq)
	return id
}

func seqIn(id uuid.UUID) uint64 { return binary.BigEndian.Uint64(id[8:]) }

// codes calls fn with the codes that an event of its session states.
func (ev *Event) codes(fn func(name, uuid.UUID)) {
	if isKeyed(ev.ID, 0) {
		fn(keyedName(ev.Session, ev.ID), asSeq(ev.Seq))
	}
	switch {
	case ev.Source == SourceImport: // a foreign log may use a code twice, and answers no retry
	case ev.Type == TypeToolDecision:
		fn(codeName(nameCall, ev.Session, ev.Facts.Str("call")), asSeq(ev.Seq))
	case ev.Type == TypeApprovalAsked:
		fn(codeName(nameAsk, ev.Session, ev.Facts.Str("ask")), asSeq(ev.Seq))
	case ev.Type == TypeApprovalDecided:
		fn(codeName(nameDecided, ev.Session, ev.Facts.Str("ask")), asSeq(ev.Seq))
	}
}

// DecisionOf returns the newest tool/decision on a call, with its content, and
// false if there is none. The index only says where it stands; an event there
// that is another one is damage. Errors: ErrCorrupt and those of Event.
func (v *View) DecisionOf(session uuid.UUID, call string) (Event, bool, error) {
	return v.coded(nameCall, session, TypeToolDecision, "call", call)
}

// AskOf returns the approval/asked and the approval/decided of an ask with their
// contents. A question that was never put is ErrNotFound; one that waits has a
// decision without a seq. Errors: ErrCorrupt and those of Event.
func (v *View) AskOf(session uuid.UUID, ask string) (asked, decided Event, err error) {
	asked, found, err := v.coded(nameAsk, session, TypeApprovalAsked, "ask", ask)
	if err == nil && !found {
		err = fmt.Errorf("%w: session %s has no ask %s", ErrNotFound, session, ask)
	}
	if err != nil {
		return asked, decided, err
	}
	decided, _, err = v.coded(nameDecided, session, TypeApprovalDecided, "ask", ask)
	return asked, decided, err
}

// AskSeqs says where a question and its decision stand, outside of a commit; 0
// for a decision that there is not. Errors: ErrNotFound, ErrCorrupt.
func (s *Store) AskSeqs(session uuid.UUID, ask string) (asked, decided uint64, err error) {
	if err := s.usable(); err != nil {
		return 0, 0, err
	}
	at, err := s.st.byName(codeName(nameAsk, session, ask))
	if err == nil && at == uuid.Nil {
		err = fmt.Errorf("%w: session %s has no ask %s", ErrNotFound, session, ask)
	}
	if err != nil {
		return 0, 0, err
	}
	answer, err := s.st.byName(codeName(nameDecided, session, ask))
	return seqIn(at), seqIn(answer), err
}

func (v *View) coded(space nameSpace, session uuid.UUID, typ, field, code string) (Event, bool, error) {
	at, err := v.st.byName(codeName(space, session, code))
	if err != nil || at == uuid.Nil {
		return Event{}, false, err
	}
	ev, err := v.Event(session, seqIn(at))
	if errors.Is(err, ErrNotFound) || err == nil && (ev.Type != typ || ev.Inherited != nil || ev.Facts.Str(field) != code) {
		return Event{}, false, &CorruptError{Session: session, Seq: seqIn(at), Type: typ, Reason: "the index says that " + field + " " + code + " stands here; run reindex"}
	}
	return ev, err == nil, err
}
