package eventlog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// Stats describes a store: counts of what is durable, bytes on disk, and how
// far the index is behind.
type Stats struct {
	Totals
	Format       int
	Incarnation  uint64
	JournalBytes int64 // store.db, free pages included
	IndexBytes   int64
	FreePages    int    // of store.db
	PageSize     int    // bytes
	Lag          uint64 // frames that the index does not cover
}

// Stats returns the store's present figures.
func (s *Store) Stats() (Stats, error) {
	if err := s.usable(); err != nil {
		return Stats{}, err
	}
	s.st.mu.RLock()
	st := Stats{Totals: s.st.totals, Format: s.identity.Format, Incarnation: s.identity.Incarnation, Lag: s.st.next - s.st.covered}
	s.st.mu.RUnlock()
	st.PageSize = s.journal.pageSize
	st.FreePages = s.journal.db.Stats().FreePageN
	fi, err := os.Stat(filepath.Join(s.dir, journalFile))
	if err != nil {
		return st, err
	}
	st.JournalBytes = fi.Size()
	if fi, err := os.Stat(filepath.Join(s.dir, indexFile)); err == nil {
		st.IndexBytes = fi.Size()
	}
	return st, nil
}

// Reindex drops the index of the store at dir and builds it anew from the
// journal. Errors: those of Open; the store must not be open elsewhere.
func Reindex(ctx context.Context, dir string, opts Options) (Stats, error) {
	opts.ReadOnly, opts.fresh = false, true
	s, err := Open(ctx, dir, opts)
	if err != nil {
		return Stats{}, err
	}
	err = s.st.flush(s)
	st, statErr := s.Stats()
	return st, errors.Join(err, statErr, s.Close())
}
