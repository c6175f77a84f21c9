package eventlog

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/google/uuid"
)

// A log of another store is taken in as it is: its headers byte for byte, so
// that every chain hash and every receipt's digest is the one it was there, and
// whoever holds the other store's digests can compare them. Such a log says
// "delegated" or "full access" in exactly the words in which a native one says
// it, and anybody can write those words into a file. So what it is worth here
// must not be read off it. Each of its frames carries a flag of this store
// (frame.go), the leaf in the tree is another (hash.go), and from the flag alone
// follows:
//
//   - the session is evidence: its row, and every event as it is read, say so;
//     no resume, activation, capture, decision, append or narrowing takes it;
//   - nothing else is ever appended to it, not by an importer either, and it may
//     go on only with what the other store's log went on with;
//   - what it says of other sessions counts for nothing: no child, key, ask or
//     notice is registered by its word, and it is never attached to a native
//     parent. Only as a child of other evidence, or of nobody here, is it linked.
//
// The flag survives whatever the frame survives: a rebuilt index, a compaction,
// a backup, a salvage. A log in which flagged and other frames are mixed is
// damaged, and evidence.
//
// That a log came in, from where and how well it was proven, is recorded in the
// store's own session (store/imported) in the same unit. The record informs; no
// decision rests on it.

// TypeStoreImported records that a log of another store was taken in.
const TypeStoreImported = "store/imported"

// foreign is what a pending event of another store's log brings.
type foreign struct {
	header []byte
	event  Event
}

// ForeignEvent is an event of another store's log, decoded and checked by
// itself. It can't be changed.
type ForeignEvent struct{ p pending }

// Event returns the event as it will be read back, without its place.
func (e *ForeignEvent) Event() Event {
	ev := e.p.foreign.event
	ev.Content = e.p.content
	return ev
}

// NewForeignEvent reads one event of session from its header, as it stands in a
// frame, and the stored chunks of its content (see [EncodeChunks]). No chunks at
// all: the content was withheld, or erased there. It keeps both slices.
//
// What this version knows must be sound by itself: facts by the schema of the
// type, a content by its commitment and its media. Types of closed families
// that it does not know are taken as they are. Errors: ErrInvalid.
func NewForeignEvent(session uuid.UUID, header []byte, chunks [][]byte) (ForeignEvent, error) {
	f := &foreign{header: header}
	ev := &f.event
	refuse := func(err error) (ForeignEvent, error) {
		return ForeignEvent{}, invalidf("session %s: seq %d: %v", session, ev.Seq, err)
	}
	if err := decodeHeader(header, ev); err != nil {
		return refuse(err)
	}
	ev.Session, ev.Imported = session, true
	spec, known := coreTypes()[ev.Type]
	if !known || ev.Version == spec.version {
		if err := checkFacts(ev.Type, ev.Facts); err != nil && (known || !IsClosed(ev.Type)) {
			return refuse(err)
		}
	}
	if known && ev.PolicyBearing != (spec.policy && ev.Inherited == nil) {
		return refuse(fmt.Errorf("%s: policy mark: got %t", ev.Type, ev.PolicyBearing))
	}
	if ev.Seq == 1 {
		if c, err := ParseCreated(ev); err != nil || ev.Type != TypeSessionCreated || c.Kind == KindStore {
			return refuse(fmt.Errorf("it is no %s of an agent's session (%v)", TypeSessionCreated, err))
		}
	}
	p := pending{id: ev.ID, typ: ev.Type, version: ev.Version, source: ev.Source, ignorable: ev.Ignorable, policy: ev.PolicyBearing,
		inherited: ev.Inherited, time: ev.Time.UnixNano(), facts: ev.Facts, media: ev.Media, commitment: ev.Commitment, foreign: f}
	if len(chunks) > 0 {
		content, err := DecodeChunks(ev, chunks)
		if err != nil {
			return refuse(err)
		}
		p.content, p.chunks = content, make([]storedChunk, len(chunks))
		for i, c := range chunks {
			p.chunks[i] = c
		}
	}
	return ForeignEvent{p}, nil
}

// DecodeChunks puts a content together from its stored chunks and compares it
// with the commitment and with what its media promises. Errors: ErrInvalid.
func DecodeChunks(ev *Event, chunks [][]byte) ([]byte, error) {
	if n := chunkCount(ev.ContentLen); !ev.HasContent || uint32(len(chunks)) != n {
		return nil, invalidf("content: want %d chunks, got %d", n, len(chunks))
	}
	at := 0
	content, _, err := readContent(ev, 0, func([]byte) []byte { at++; return chunks[at-1] })
	switch {
	case err != nil:
		return nil, invalidf("%v", err)
	case ev.Media == MediaJSON:
		err = CheckJSON(content)
	case ev.Media == MediaText && !utf8.Valid(content):
		err = invalidf("media text: not valid UTF-8")
	}
	return content, err
}

// EncodeChunks cuts a content into chunks as they are stored.
func EncodeChunks(content []byte, salt Salt) [][]byte {
	chunks := encodeContent(content, salt)
	out := make([][]byte, len(chunks))
	for i, c := range chunks {
		out[i] = c
	}
	return out
}

// ForeignLog is a log of another store, or its next part.
type ForeignLog struct {
	Session uuid.UUID
	After   uint64 // the head that the events follow here; 0: the log is new
	Prev    Hash   // the chain hash at After
	Events  []ForeignEvent
	Record  ImportRecord // of a new log
}

// ImportRecord is what store/imported says of a log.
type ImportRecord struct {
	Store    uuid.UUID // the store that it was exported from; uuid.Nil: not known
	Head     uint64    // of the whole log there
	Hash     Hash      // chain hash at that head
	TreeSize uint64    // of the signed tree that held it, 0: none
	TreeRoot Hash
	Status   string // how well it was proven; a code
	By       string // who took it in; a code
}

func (r *ImportRecord) event(session uuid.UUID) (NewEvent, error) {
	m := map[string]any{"session": session, "head": r.Head, "hash": r.Hash, "status": r.Status, "by": r.By}
	if r.Store != uuid.Nil {
		m["store"] = r.Store
	}
	if r.TreeSize > 0 {
		m["tree_size"], m["tree_root"] = r.TreeSize, r.TreeRoot
	}
	facts, err := MakeFacts(m)
	return NewEvent{Type: TypeStoreImported, Facts: facts}, err
}

// ImportLogs takes in logs of other stores as evidence, or goes on with ones
// that it took in, all of them in one atomic unit. Each session is named once.
// The caller has compared the logs with whatever proves them; here only what no
// caller can be trusted with is checked: that a log follows its own chain, that
// the session is not native, and that it names no native session as its parent
// and takes no external id from one.
//
// Errors: ErrEvidence or ErrUnauthorized (the session is there and did not come
// this way), ErrConflict (another head), ErrInvalid (it does not follow),
// ErrTooLarge, and those of a commit.
func (s *Store) ImportLogs(ctx context.Context, logs ...ForeignLog) ([]Result, error) {
	var records []NewEvent
	batches := make([]Batch, len(logs))
	for i, l := range logs {
		if len(l.Events) == 0 {
			return nil, invalidf("session %s: no events", l.Session)
		}
		b := Batch{Session: l.Session, Expect: At(l.After), foreign: make([]pending, len(l.Events))}
		for k := range l.Events {
			if b.foreign[k] = l.Events[k].p; b.foreign[k].foreign.event.Session != l.Session {
				return nil, invalidf("session %s: event %d is of session %s", l.Session, k+1, b.foreign[k].foreign.event.Session)
			}
		}
		if l.After == 0 {
			record, err := l.Record.event(l.Session)
			if err != nil {
				return nil, err
			}
			records = append(records, record)
		}
		batches[i] = b
	}
	return s.transact(ctx, entryForeign, func(v *View) ([]Batch, error) {
		for _, l := range logs {
			hash := Genesis(l.Session)
			if row, err := v.Row(l.Session); err == nil {
				hash = row.Hash
			} else if !errors.Is(err, ErrNotFound) {
				return nil, err
			}
			if hash != l.Prev {
				return nil, invalidf("session %s: the chain hash after seq %d: got %x, want %x", l.Session, l.After, l.Prev[:8], hash[:8])
			}
		}
		if len(records) == 0 {
			return batches, nil
		}
		own, err := v.Row(StoreSession)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		events := records
		if own.Head == 0 {
			events = append([]NewEvent{StoreCreated()}, records...)
		}
		return append([]Batch{{Session: StoreSession, Expect: At(own.Head), Events: events}}, batches...), nil
	})
}

// notForeign says why a log takes none, or only, events of another store.
func notForeign(row *Row, via Entry) error {
	switch {
	case row.Imported && via == EntryErase:
		return fmt.Errorf("%w: session %s came from another store, so its log takes no record of a redaction or a hold here, and without one nothing is erased", ErrEvidence, row.Session)
	case row.Imported:
		return fmt.Errorf("%w: session %s came from another store, and nothing is appended to it here", ErrEvidence, row.Session)
	case row.Evidence:
		return unauthorizedf("session %s was imported from another system's log and takes no events of a store's", row.Session)
	}
	return unauthorizedf("session %s is native and takes no events of another store", row.Session)
}

// follows checks that a log goes on by its own links: seqs without a gap, and
// each policy event naming the one before. A log that does not would be stored
// as damaged. No more holds stand on it than a store sets: each is carried in
// the row, and compared with every further one.
func follows(row *Row, events []pending) error {
	seq, policy, held := row.Head, row.LastPolicy, Row{Holds: row.Holds}
	for i := range events {
		ev := &events[i].foreign.event
		if seq++; ev.Seq != seq {
			return invalidf("session %s: want seq %d, got %d", row.Session, seq, ev.Seq)
		}
		if ev.Type == TypeSessionHeld && ev.Inherited == nil {
			held.applyHeld(ev)
			if err := checkLimit("holds on one session", len(held.Holds), maxHolds); err != nil {
				return fmt.Errorf("session %s: seq %d: %w", row.Session, seq, err)
			}
		}
		if !ev.PolicyBearing {
			continue
		}
		if ev.PrevPolicy != policy {
			return invalidf("session %s: seq %d: the policy event before: want seq %d, got %d", row.Session, seq, policy, ev.PrevPolicy)
		}
		policy = seq
	}
	return nil
}

// authorizeForeign refuses a new log that would take a place in this store's own
// affairs: as a child of a native session, or under a native one's name.
func (st *stage) authorizeForeign(id uuid.UUID, events []pending, before *entry, taken map[Hash]uuid.UUID) error {
	if before != nil {
		return nil // it came this way, or admit would have refused
	}
	native := func(other uuid.UUID) (bool, error) {
		if other == uuid.Nil || other == id {
			return false, nil
		}
		e, err := st.lookup(other)
		return e != nil && !e.row.Evidence, err
	}
	if parent := events[0].facts.UUID("parent"); parent != uuid.Nil {
		if is, err := native(parent); err != nil || is {
			return orUnauthorized(err, "session %s names %s as its parent, which is native here; a log from elsewhere is never attached to one", id, parent)
		}
	}
	holder, err := st.externalHolder(id, &events[0], taken)
	if err != nil {
		return err
	}
	if is, err := native(holder); err != nil || is {
		return orUnauthorized(err, "the external id of session %s is held by session %s, which is native", id, holder)
	}
	return nil
}

func orUnauthorized(err error, format string, args ...any) error {
	if err == nil {
		err = unauthorizedf(format, args...)
	}
	return err
}
