package eventlog

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// rowsPage is how many rows one read transaction of the index visits.
const rowsPage = 1024

// EachRow calls fn with every session's row in id order until fn returns
// false or an error. It touches no log. fn may call the store; the row's
// slices are shared and not to be changed.
func (s *Store) EachRow(ctx context.Context, fn func(*Row) (bool, error)) error {
	return s.eachRow(ctx, uuid.Nil, fn)
}

func (s *Store) eachRow(ctx context.Context, from uuid.UUID, fn func(*Row) (bool, error)) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.usable(); err != nil {
			return err
		}
		page, next, err := s.rowPage(from)
		if err != nil {
			return err
		}
		for _, row := range page {
			own := *row // the store's is shared with its writer
			if more, err := fn(&own); err != nil || !more {
				return err
			}
		}
		if from = next; from == uuid.Nil {
			return nil
		}
	}
}

// rowPage merges the overlay with a page of the index. The overlay wins: it is
// the newer version of the same session, or says that it was purged. next is the
// id to go on from, uuid.Nil at the end.
func (s *Store) rowPage(from uuid.UUID) (page []*Row, next uuid.UUID, err error) {
	newer, gone := map[uuid.UUID]*Row{}, map[uuid.UUID]bool{}
	s.st.mu.RLock()
	for id, e := range s.st.over.rows {
		if bytes.Compare(id[:], from[:]) >= 0 {
			newer[id] = &e.row
		}
	}
	for id := range s.st.over.gone {
		gone[id] = true
	}
	s.st.mu.RUnlock()
	if s.st.index != nil {
		n := 0
		err = s.st.index.eachRow(from, func(row *Row) (bool, error) {
			if newer[row.Session] == nil && !gone[row.Session] {
				newer[row.Session] = row
			}
			if n++; n == rowsPage {
				next = after(row.Session) // uuid.Nil behind the last id there can be
			}
			return n < rowsPage, nil
		})
		if err != nil {
			return nil, uuid.Nil, err
		}
	}
	for _, id := range sortedIDs(newer) {
		if next != uuid.Nil && bytes.Compare(id[:], next[:]) >= 0 {
			break // beyond the index's page: of the next one
		}
		page = append(page, newer[id])
	}
	return page, next, nil
}

func after(id uuid.UUID) uuid.UUID {
	for i := len(id) - 1; i >= 0; i-- {
		id[i]++
		if id[i] != 0 {
			break
		}
	}
	return id
}

// minPrefix keeps a slip of the keyboard from naming a session, hex digits.
const minPrefix = 4

// Resolve finds the session that text names: a whole id, a unique prefix of
// at least four hex digits, or another system's id as SYSTEM:ID. Errors:
// ErrNotFound, ErrAmbiguous (with the first candidates), ErrInvalid.
func (s *Store) Resolve(ctx context.Context, text string) (uuid.UUID, error) {
	if id, err := uuid.Parse(text); err == nil && len(text) == 36 {
		_, err := s.Row(id)
		return id, err
	}
	if system, id, ok := strings.Cut(text, ":"); ok {
		return s.ByExternal(system, id)
	}
	digits := strings.ToLower(strings.ReplaceAll(text, "-", ""))
	low, err := hex.DecodeString(digits + strings.Repeat("0", 32-min(32, len(digits))))
	if err != nil || len(low) != 16 || len(digits) < minPrefix {
		return uuid.Nil, invalidf("session %q: want an id, a prefix of at least %d hex digits, or SYSTEM:ID", text, minPrefix)
	}
	var found []string
	var id uuid.UUID
	err = s.eachRow(ctx, uuid.UUID(low), func(row *Row) (bool, error) {
		if !strings.HasPrefix(hex.EncodeToString(row.Session[:]), digits) {
			return false, nil
		}
		id = row.Session
		found = append(found, row.Session.String())
		return len(found) < 4, nil
	})
	switch {
	case err != nil:
		return uuid.Nil, err
	case len(found) == 0:
		return uuid.Nil, fmt.Errorf("%w: session %q", ErrNotFound, text)
	case len(found) > 1:
		return uuid.Nil, fmt.Errorf("%w: session %q may be %s", ErrAmbiguous, text, strings.Join(found, ", "))
	}
	return id, nil
}
