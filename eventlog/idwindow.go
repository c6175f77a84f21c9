package eventlog

import "github.com/google/uuid"

// idWindows remembers the last ids of sessions whose callers name ids, so
// that a retry without a place is recognized without reading the log each
// time. It belongs to the committer.
type idWindows struct {
	sessions map[uuid.UUID]*idWindow
}

// maxIDWindows bounds the memory of the windows: about 16 KiB each.
const maxIDWindows = 1024

type idWindow struct {
	seqs map[uuid.UUID]uint64
	ring [retryWindow]uuid.UUID
	at   int
}

func (w *idWindow) add(id storedID) {
	if w.seqs[id.id] == id.seq {
		return // read from the log when its group was durable and not yet answered
	}
	if old := w.ring[w.at]; old != uuid.Nil {
		delete(w.seqs, old)
	}
	w.ring[w.at] = id.id
	w.seqs[id.id] = id.seq
	w.at = (w.at + 1) % retryWindow
}

// recentIDs returns the durable ids of the session's last events. If they
// can't be read the append fails: it may be a retry, and would be written twice.
func (s *Store) recentIDs(e *entry, src source) (map[uuid.UUID]uint64, error) {
	if w := s.windows.sessions[e.row.Session]; w != nil {
		return w.seqs, nil
	}
	w := &idWindow{seqs: map[uuid.UUID]uint64{}}
	if durable, err := s.st.lookup(e.row.Session); err != nil {
		return nil, err
	} else if durable != nil {
		from := durable.row.Head - min(durable.row.Head, retryWindow) + 1
		events, err := readSeqs(durable, src, from, durable.row.Head)
		if err != nil {
			return nil, err
		}
		for i := range events {
			w.add(storedID{events[i].ID, events[i].Seq})
		}
	}
	if len(s.windows.sessions) >= maxIDWindows {
		clear(s.windows.sessions)
	}
	s.windows.sessions[e.row.Session] = w
	return w.seqs, nil
}

// committed adds a durable group's ids to the windows that exist.
func (ws *idWindows) committed(drafts []*draft) {
	if len(ws.sessions) == 0 {
		return
	}
	for _, d := range drafts {
		if w := ws.sessions[d.session]; w != nil {
			for i, p := range d.events {
				w.add(storedID{p.id, d.first + uint64(i)})
			}
		}
	}
}
