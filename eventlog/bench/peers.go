package main

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tidwall/wal"
	bolt "go.etcd.io/bbolt"
	_ "modernc.org/sqlite" // database/sql driver "sqlite", pure Go
)

// peer keeps session logs. Append returns when the record is synced; it is
// called by one goroutine a session at a time.
type peer interface {
	Append(session int, r *record) error
	Close() error
}

// jsonl is a file of lines a session.
type jsonl struct{ files []*os.File }

func newJSONL(dir string, sessions int) (peer, error) {
	p := &jsonl{files: make([]*os.File, sessions)}
	for i := range p.files {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%04d.jsonl", i)), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.files[i] = f
	}
	return p, nil
}

func (p *jsonl) Append(session int, r *record) error {
	line, err := r.json()
	if err != nil {
		return err
	}
	if _, err := p.files[session].Write(append(line, '\n')); err != nil {
		return err
	}
	return p.files[session].Sync()
}

func (p *jsonl) Close() (err error) {
	for _, f := range p.files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// sqlite is one table in WAL mode. One connection writes, as SQLite has one
// writer at a time; callers wait for it outside, which costs less than its
// busy handler.
type sqlite struct {
	mu     sync.Mutex
	db     *sql.DB
	conn   *sql.Conn
	insert *sql.Stmt
}

func newSQLite(dir string, _ int) (peer, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "log.sqlite")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	p := &sqlite{db: db}
	if err := p.init(context.Background()); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *sqlite) init(ctx context.Context) (err error) {
	if p.conn, err = p.db.Conn(ctx); err != nil {
		return err
	}
	if _, err := p.conn.ExecContext(ctx, `CREATE TABLE events (
		session INTEGER NOT NULL, seq INTEGER NOT NULL, id BLOB NOT NULL, type TEXT NOT NULL, time INTEGER NOT NULL, facts TEXT NOT NULL, content TEXT,
		PRIMARY KEY (session, seq)) WITHOUT ROWID`); err != nil {
		return err
	}
	journal, synchronous, err := p.durability(ctx)
	if err != nil {
		return err
	}
	if journal != "wal" || synchronous != synchronousFull {
		return fmt.Errorf("sqlite: want journal_mode wal and synchronous %d, got %s and %d", synchronousFull, journal, synchronous)
	}
	p.insert, err = p.conn.PrepareContext(ctx, `INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)`)
	return err
}

const synchronousFull = 2 // of PRAGMA synchronous: sync the WAL in every commit

// durability reads the pragmas back from the connection that writes.
func (p *sqlite) durability(ctx context.Context) (journal string, synchronous int, err error) {
	err = p.conn.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&journal)
	return journal, synchronous, errors.Join(err, p.conn.QueryRowContext(ctx, `PRAGMA synchronous`).Scan(&synchronous))
}

func (p *sqlite) Append(session int, r *record) error {
	facts, err := json.Marshal(r.Facts)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err = p.insert.Exec(session, int64(r.Seq), r.ID[:], r.Type, r.Time.UnixNano(), facts, r.Content)
	return err
}

func (p *sqlite) Close() (err error) {
	if p.insert != nil {
		err = p.insert.Close()
	}
	if p.conn != nil {
		err = errors.Join(err, p.conn.Close())
	}
	return errors.Join(err, p.db.Close())
}

// boltTx is a bucket a session and a transaction an append.
type boltTx struct {
	db    *bolt.DB
	names [][]byte
}

func newBoltTx(dir string, sessions int) (peer, error) {
	db, err := openBolt(filepath.Join(dir, "log.bolt"))
	if err != nil {
		return nil, err
	}
	p := &boltTx{db: db}
	err = db.Update(func(tx *bolt.Tx) error {
		for i := range sessions {
			p.names = append(p.names, binary.BigEndian.AppendUint64(nil, uint64(i)))
			if _, err := tx.CreateBucket(p.names[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return p, nil
}

// openBolt opens bbolt with the options of childlog's journal, all syncs on.
func openBolt(path string) (*bolt.DB, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{FreelistType: bolt.FreelistMapType, InitialMmapSize: 64 << 30})
	if err != nil {
		return nil, err
	}
	if db.NoSync || db.NoFreelistSync || db.NoGrowSync {
		return nil, errors.Join(errors.New("bbolt: a sync is off"), db.Close())
	}
	return db, nil
}

func (p *boltTx) Append(session int, r *record) error {
	value, err := r.json()
	if err != nil {
		return err
	}
	return p.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(p.names[session])
		b.FillPercent = 1
		return b.Put(binary.BigEndian.AppendUint64(nil, r.Seq), value)
	})
}

func (p *boltTx) Close() error { return p.db.Close() }

// boltBare puts ready bytes.
type boltBare struct {
	db    *bolt.DB
	value []byte
}

var bareBucket = []byte("log")

// newBoltBare puts values of size bytes, see storedBytes.
func newBoltBare(dir string, size int) (peer, error) {
	db, err := openBolt(filepath.Join(dir, "bare.bolt"))
	if err != nil {
		return nil, err
	}
	if err := db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket(bareBucket); return err }); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &boltBare{db: db, value: []byte(strings.Repeat("x", size))}, nil
}

func (p *boltBare) Append(_ int, r *record) error {
	return p.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bareBucket)
		b.FillPercent = 1
		return b.Put(binary.BigEndian.AppendUint64(nil, r.Seq), p.value)
	})
}

func (p *boltBare) Close() error { return p.db.Close() }

// walLog is a tidwall/wal log a session.
type walLog struct{ logs []*wal.Log }

// walOptions are the library's own, which sync every write; stated here so that
// a change of its default can't change the comparison.
func walOptions() *wal.Options {
	o := *wal.DefaultOptions
	o.NoSync = false
	return &o
}

func newWAL(dir string, sessions int) (peer, error) {
	p := &walLog{logs: make([]*wal.Log, sessions)}
	for i := range p.logs {
		l, err := wal.Open(filepath.Join(dir, fmt.Sprintf("%04d.wal", i)), walOptions())
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.logs[i] = l
	}
	return p, nil
}

func (p *walLog) Append(session int, r *record) error {
	value, err := r.json()
	if err != nil {
		return err
	}
	return p.logs[session].Write(r.Seq, value)
}

func (p *walLog) Close() (err error) {
	for _, l := range p.logs {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}
