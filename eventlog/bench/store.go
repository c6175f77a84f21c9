package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/snapshot"
)

// maxLag is the cap of the design on how many frames the index may be behind.
const maxLag = 32 << 10

// store is childlog as a contender.
type store struct {
	*eventlog.Store
	ids  []uuid.UUID
	base []uint64 // head of each session before the first record
}

// newStore creates a store at dir/store with this many children of one root.
func newStore(dir string, children int) (*store, error) {
	ctx := context.Background()
	path := filepath.Join(dir, "store")
	if _, err := eventlog.Init(ctx, path); err != nil {
		return nil, err
	}
	s := &store{ids: make([]uuid.UUID, children), base: make([]uint64, children)}
	if err := s.open(path); err != nil {
		return nil, err
	}
	if err := s.populate(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *store) open(path string) (err error) {
	s.Store, err = eventlog.Open(context.Background(), path, eventlog.Options{})
	return err
}

func (s *store) populate(ctx context.Context) error {
	root, err := materialize.Root(ctx, s.Store, materialize.RootRequest{Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}, Workspace: "/srv/project"})
	if err != nil {
		return err
	}
	return parallel(min(len(s.ids), 64), len(s.ids), func(i int) error {
		made, err := materialize.Delegate(ctx, s.Store, root.ID, snapshot.Options{}, materialize.Request{})
		s.ids[i], s.base[i] = made.ID, made.Seq
		if err == nil && made.Seq == 0 {
			err = fmt.Errorf("child %s has no head", made.ID)
		}
		return err
	})
}

func (s *store) batch(session int, r *record) (eventlog.Batch, error) {
	ev, err := r.event()
	return eventlog.Batch{Session: s.ids[session], Expect: eventlog.At(s.base[session] + r.Seq - 1), Events: []eventlog.NewEvent{ev}}, err
}

// Append implements peer.
func (s *store) Append(session int, r *record) error {
	b, err := s.batch(session, r)
	if err != nil {
		return err
	}
	_, err = s.Store.Append(context.Background(), b)
	return err
}

// pipelined keeps so many appends in flight, each counted when it is durable.
func (s *store) pipelined(inFlight int) loop {
	return func(session int, src *source, stop *atomic.Bool, done *atomic.Int64) error {
		ctx := context.Background()
		var ring []*eventlog.Pending
		for !stop.Load() || len(ring) > 0 {
			if !stop.Load() && len(ring) < inFlight {
				r, err := src.next()
				if err != nil {
					return err
				}
				b, err := s.batch(session, r)
				if err != nil {
					return err
				}
				p, err := s.AppendAsync(ctx, b)
				if err != nil {
					return err
				}
				ring = append(ring, p)
				continue
			}
			if _, err := ring[0].Wait(ctx); err != nil {
				return err
			}
			ring = ring[1:]
			done.Add(1)
		}
		return nil
	}
}

// lag is how many frames the index does not cover.
func (s *store) lag() (uint64, error) {
	st, err := s.Stats()
	return st.Lag, err
}

// settle waits until the index has caught up, so that the next contender has
// the machine to itself.
func (s *store) settle() error {
	for deadline := time.Now().Add(stalled); ; time.Sleep(5 * time.Millisecond) {
		if lag, err := s.lag(); err != nil || lag == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the index did not catch up within %v", stalled)
		}
	}
}

// filling says what fill writes.
type filling struct {
	per     int                // events a session
	batch   int                // events an append
	content func(n int) []byte // of event n of all sessions; nil: the text of the appends
	until   time.Time          // after it no further session is begun; zero: all are
}

// fill appends events to each session, with many appends in flight. It is for
// making logs, not for measuring: the store sets the ids, and what can be made
// beforehand is.
func (s *store) fill(sessions []uuid.UUID, f filling) error {
	const writers = 8
	const inFlight = 128
	ctx := context.Background()
	// A writer owns sessions, so that the order within each is its own.
	return parallel(writers, writers, func(w int) error {
		templates, err := templates(w)
		if err != nil {
			return err
		}
		var ring []*eventlog.Pending
		for i := w; i < len(sessions) && (f.until.IsZero() || time.Now().Before(f.until)); i += writers {
			for n := 0; n < f.per; n += f.batch {
				b := eventlog.Batch{Session: sessions[i], Expect: eventlog.Any(), Events: make([]eventlog.NewEvent, 0, f.batch)}
				for k := n; k < min(n+f.batch, f.per); k++ {
					ev := templates[k%len(templates)]
					if f.content != nil {
						ev.Content = f.content(i*f.per + k)
					}
					b.Events = append(b.Events, ev)
				}
				p, err := s.AppendAsync(ctx, b)
				if err != nil {
					return err
				}
				if ring = append(ring, p); len(ring) < inFlight {
					continue
				}
				if _, err := ring[0].Wait(ctx); err != nil {
					return err
				}
				ring = ring[1:]
			}
		}
		for _, p := range ring {
			if _, err := p.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// templates are events of one source without ids.
func templates(session int) ([]eventlog.NewEvent, error) {
	out := make([]eventlog.NewEvent, 64)
	src := newSource(session)
	for i := range out {
		r, err := src.next()
		if err != nil {
			return nil, err
		}
		if out[i], err = r.event(); err != nil {
			return nil, err
		}
		out[i].ID = uuid.Nil
	}
	return out, nil
}

// parallel calls fn for 0 to n-1 from so many goroutines and returns the first
// error of each, joined.
func parallel(goroutines, n int, fn func(int) error) error {
	var next atomic.Int64
	errs := make([]error, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && errs[g] == nil; i = next.Add(1) - 1 {
				errs[g] = fn(int(i))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// fileUse is what a closed bbolt file holds.
type fileUse struct {
	PageSize   int   `json:"page_size"`
	UsedPages  int64 `json:"used_pages"` // up to the high-water mark, free ones excluded
	FreePages  int64 `json:"free_pages"`
	FileBytes  int64 `json:"file_bytes"`
	LastCommit int   `json:"last_commit"` // transaction id, one a commit
}

func (u fileUse) bytes() float64 { return float64(u.UsedPages) * float64(u.PageSize) }

func useOf(path string) (u fileUse, err error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, PreLoadFreelist: true, Timeout: time.Second})
	if err != nil {
		return u, err
	}
	defer db.Close()
	fi, err := os.Stat(path)
	if err != nil {
		return u, err
	}
	return u, db.View(func(tx *bolt.Tx) error {
		u.PageSize, u.FileBytes, u.LastCommit = db.Info().PageSize, fi.Size(), tx.ID()
		u.FreePages = int64(db.Stats().FreePageN + db.Stats().PendingPageN)
		u.UsedPages = tx.Size()/int64(u.PageSize) - u.FreePages
		return nil
	})
}

// storedBytes is how many bytes of values childlog stores for one record: its
// frame and its content.
func storedBytes(dir string) (int, error) {
	s, err := newStore(dir, 1)
	if err != nil {
		return 0, err
	}
	r, err := newSource(0).next()
	if err == nil {
		err = s.Append(0, r)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return 0, err
	}
	db, err := bolt.Open(filepath.Join(dir, "store", "store.db"), 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	n := 0
	return n, db.View(func(tx *bolt.Tx) error {
		for _, name := range []string{"journal", "contents"} {
			b := tx.Bucket([]byte(name))
			if b == nil {
				return fmt.Errorf("store.db has no bucket %s", name)
			}
			_, v := b.Cursor().Last()
			if len(v) == 0 {
				return fmt.Errorf("store.db: bucket %s is empty", name)
			}
			n += len(v)
		}
		return nil
	})
}
