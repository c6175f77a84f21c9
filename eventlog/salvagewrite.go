package eventlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	bolt "go.etcd.io/bbolt"
)

// A mark stands at the position of a lost frame whose session is known. It is
// no frame, and reads as a damaged one that names its session and the first seq
// that was lost there.
//
//	"CLL1" | len u32le | 0 u8 | 0 u8 | session 16 | first seq uvarint | crc32c u32le
const markMagic = "CLL1"

func appendMark(b []byte, n lostName) []byte {
	start := len(b)
	b = append(b, markMagic...)
	b = append(b, 0, 0, 0, 0, 0, 0)
	b = append(b, n.session[:]...)
	b = appendUvarint(b, n.first)
	binary.LittleEndian.PutUint32(b[start+len(markMagic):], uint32(len(b)-start-frameHead+4))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// isMark tells a mark from a damaged frame.
func isMark(raw []byte) bool {
	n := len(raw) - 4
	return n > frameHead && string(raw[:len(markMagic)]) == markMagic && binary.LittleEndian.Uint32(raw[n:]) == crc32.Checksum(raw[:n], castagnoli)
}

const (
	salvageFile = "SALVAGE.json"
	// salvageTx is how many bytes one transaction of the new store takes. None is
	// synced before the last: until it is renamed the new store is nobody's.
	salvageTx = 8 << 20
)

// freePlace checks that a new store can be made at dir.
func freePlace(dir string) error {
	fi, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return fmt.Errorf("%w: %s is not a directory", ErrExists, dir)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		return errors.Join(err, fmt.Errorf("%w: %s is not empty", ErrExists, dir))
	}
	return nil
}

// write makes the new store under a temporary name, checks it, puts the
// statement in and gives it its name.
func (s *salvager) write(id Identity) error {
	return publishDir(s.ctx, s.report.Target, "salvage", nil, func(tmp string) error {
		if err := fillStore(tmp, id, journalPageSize); err != nil {
			return err
		}
		if err := s.fill(filepath.Join(tmp, journalFile)); err != nil {
			return err
		}
		if err := s.check(tmp); err != nil {
			return err
		}
		raw, err := json.Marshal(s.report, jsontext.WithIndent("  "))
		if err != nil {
			return err
		}
		return writeSynced(filepath.Join(tmp, salvageFile), append(raw, '\n'))
	})
}

// fill writes the buckets in the order of their keys.
func (s *salvager) fill(path string) (err error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType, NoSync: true})
	if err != nil {
		return err
	}
	db.AllocSize = allocSize
	defer func() { err = errors.Join(err, db.Close()) }()
	w := &bucketWriter{db: db}
	defer w.abandon()

	w.bucket = bucketJournal
	marks := make([]uint64, 0, len(s.named))
	for p := range s.named {
		marks = append(marks, p)
	}
	slices.Sort(marks)
	mark := func(below uint64) {
		for len(marks) > 0 && marks[0] < below {
			w.put(positionKey(marks[0]), appendMark(nil, s.named[marks[0]]))
			marks = marks[1:]
		}
	}
	next := s.end
	for i := range s.frames {
		f := &s.frames[i]
		mark(f.position)
		raw, err := s.readFrame(f, nil)
		if err != nil {
			return err
		}
		w.put(positionKey(f.position), raw)
		next = max(next, f.position+1)
		if err := errors.Join(w.err, s.ctx.Err()); err != nil {
			return err
		}
		s.progress(stageWriting, 1)
	}
	mark(next)
	if s.report.TailDoubt != "" {
		next++ // a position that is missing: nobody may write, and no policy be read
	}
	w.sequence(next)

	w.use(bucketTombstones)
	for _, t := range s.tombs {
		w.put(positionKey(t.position), t.value)
	}
	w.use(bucketContents)
	for i := range s.chunks {
		c := &s.chunks[i]
		if !c.whole {
			continue
		}
		value, err := s.readChunk(c, nil)
		if err != nil {
			return err
		}
		w.put(contentKey(c.position, c.index, c.chunk), value)
		if err := errors.Join(w.err, s.ctx.Err()); err != nil {
			return err
		}
	}
	w.commit()
	if w.err != nil {
		return w.err
	}
	return db.Sync()
}

// bucketWriter puts ascending keys in transactions of some size.
type bucketWriter struct {
	db     *bolt.DB
	tx     *bolt.Tx
	bucket []byte
	b      *bolt.Bucket
	bytes  int
	err    error
}

func (w *bucketWriter) begin() bool {
	if w.err == nil && w.tx == nil {
		if w.tx, w.err = w.db.Begin(true); w.err == nil {
			w.b = w.tx.Bucket(w.bucket)
			w.b.FillPercent = 1
		}
	}
	return w.err == nil
}

func (w *bucketWriter) put(key, value []byte) {
	if !w.begin() {
		return
	}
	w.err = w.b.Put(key, value)
	if w.bytes += len(key) + len(value); w.bytes >= salvageTx {
		w.commit()
	}
}

func (w *bucketWriter) sequence(n uint64) {
	if w.begin() {
		w.err = w.b.SetSequence(n)
	}
}

// use goes on with another bucket.
func (w *bucketWriter) use(bucket []byte) {
	w.commit()
	w.bucket = bucket
}

func (w *bucketWriter) commit() {
	if w.tx == nil {
		return
	}
	tx := w.tx
	w.tx, w.b, w.bytes = nil, nil, 0
	if w.err == nil {
		w.err = tx.Commit()
	} else {
		w.err = errors.Join(w.err, tx.Rollback())
	}
}

func (w *bucketWriter) abandon() {
	if w.tx != nil {
		_ = w.tx.Rollback() // after an error that is reported
	}
}

// check opens the new store as a reader does and compares everything in it.
func (s *salvager) check(dir string) error {
	st, err := Open(s.ctx, dir, Options{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("the new store can't be opened: %w", err)
	}
	defer st.Close()
	report, err := st.Check(s.ctx, CheckOptions{Progress: func(done, of int) {
		if s.opts.Progress != nil {
			s.opts.Progress(stageCheck, uint64(done), uint64(of))
		}
	}})
	if err != nil {
		return err
	}
	s.report.Findings = uint64(len(report.Findings)) + report.More
	return nil
}
