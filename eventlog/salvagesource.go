package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"childlog/eventlog/pagecheck"
)

// Where a salvaged store's identity comes from.
const (
	identityFromFile = "IDENTITY"
	identityFromDB   = "store.db"
	identityNew      = "new"
)

// openTree finds the tree that counts. The file is read through patches: a
// meta page of which one byte is wrong reads as it was, and a root page that no
// meta page names any more is given one. The file itself is never written.
func (s *salvager) openTree(f io.ReaderAt, size int64) error {
	s.size, s.report.FileBytes = size, size
	if err := s.survey(f); err != nil {
		return err
	}
	before := s.pages.Metas
	if patches := pagecheck.RepairMetas(f, size); len(patches) > 0 {
		if err := s.survey(pagecheck.Patched{R: f, Patches: patches}); err != nil {
			return err
		}
	}
	for i, m := range s.pages.Metas {
		s.report.Metas[i] = SalvageMeta{State: "valid", Txid: m.Txid, Reason: before[i].Reason}
		switch {
		case !m.Valid:
			s.report.Metas[i].State = "invalid"
			s.doubt(fmt.Sprintf("meta page %d is invalid (%s): the last commit may be missing", i, m.Reason))
		case !before[i].Valid:
			s.report.Metas[i].State = "repaired"
		}
	}
	if a, b := s.pages.Metas[0], s.pages.Metas[1]; a.Valid && b.Valid && max(a.Txid, b.Txid)-min(a.Txid, b.Txid) != 1 {
		s.doubt(fmt.Sprintf("the meta pages are of transactions %d and %d: one of them is an old one", a.Txid, b.Txid))
	}
	s.report.Base = BaseNewest
	switch err := s.otherTree(); {
	case err != nil:
		return err
	case s.pages.PageSize == 0:
		return fmt.Errorf("%w: %s: nothing to salvage: none of its %d bytes are a page of a store", ErrStoreLost, journalFile, size)
	}
	for _, b := range s.pages.Buckets {
		if bytes.Equal(b.Name, bucketJournal) {
			s.sequence = b.Sequence
		}
	}
	s.report.PageSize = s.pages.PageSize
	var err error
	if s.carver, err = pagecheck.NewCarver(s.r, size, s.pages.PageSize); err != nil {
		return err
	}
	s.report.Pages = s.carver.Pages()
	damaged := map[uint64]bool{}
	for _, p := range s.pages.Problems {
		if p.Kind != pagecheck.KindUnaccounted && p.Kind != pagecheck.KindMore {
			damaged[p.Page] = true
		}
		if len(s.report.Problems) < maxListed {
			s.report.Problems = append(s.report.Problems, p.String())
		} else {
			s.report.MoreProblems++
		}
	}
	s.report.PagesDamaged = uint64(len(damaged))
	return nil
}

// survey reads the pages through r, which becomes the way to read the file.
func (s *salvager) survey(r io.ReaderAt) error {
	s.r = r
	rep, states, err := pagecheck.Survey(s.ctx, r, s.size)
	if ctxErr := s.ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	if err != nil { // no meta page can be read; other pages may
		rep = pagecheck.Report{Metas: [2]pagecheck.MetaState{{Reason: err.Error()}, {Reason: err.Error()}}}
	}
	s.pages, s.states = rep, states
	return nil
}

func hasBuckets(list []pagecheck.Bucket) bool {
	for _, name := range [][]byte{bucketJournal, bucketContents, bucketTombstones} {
		if !slices.ContainsFunc(list, func(b pagecheck.Bucket) bool { return bytes.Equal(b.Name, name) }) {
			return false
		}
	}
	return true
}

// otherTree takes another tree if the newest meta page leads to none.
func (s *salvager) otherTree() error {
	if hasBuckets(s.pages.Buckets) {
		return nil
	}
	r, metas := s.r, s.pages.Metas
	pageSize := s.pages.PageSize
	if metas[0].Valid && metas[1].Valid {
		s.doubt("the root page of the last commit is damaged")
		newest := 0
		if metas[1].Txid > metas[0].Txid {
			newest = 1
		}
		if err := s.survey(pagecheck.Patched{R: r, Patches: []pagecheck.Patch{pagecheck.NoMeta(newest, pageSize)}}); err != nil {
			return err
		}
		if hasBuckets(s.pages.Buckets) {
			s.report.Base = BaseOlder
			return nil
		}
	}
	s.doubt("no meta page leads to the journal")
	if pageSize == 0 {
		if pageSize = pagecheck.GuessPageSize(r, s.size); pageSize == 0 {
			s.pages.PageSize = 0
			return nil
		}
	}
	root, err := s.newestRoot(r, pageSize)
	if err != nil {
		return err
	}
	if root != 0 {
		patch := pagecheck.MetaFor(pageSize, root, uint64(s.size)/uint64(pageSize), 0)
		if err := s.survey(pagecheck.Patched{R: r, Patches: []pagecheck.Patch{patch}}); err != nil {
			return err
		}
		if s.report.Base = BaseRoot; hasBuckets(s.pages.Buckets) {
			return nil
		}
	}
	s.report.Base, s.pages.PageSize = BaseNone, pageSize
	s.pages.Buckets = nil
	return nil
}

// newestRoot looks through the whole file for pages of a root bucket and
// returns the one with the longest journal, 0 if there is none. Two that are
// equally new and have other contents leave open which contents were erased in
// between: then no content is taken.
func (s *salvager) newestRoot(r io.ReaderAt, pageSize int) (root uint64, err error) {
	c, err := pagecheck.NewCarver(r, s.size, pageSize)
	if err != nil {
		return 0, err
	}
	var longest, contents uint64
	var equal []uint64
	for id := uint64(2); id < c.Pages(); id++ {
		if id%4096 == 0 {
			if err := s.ctx.Err(); err != nil {
				return 0, err
			}
		}
		buckets, ok, err := c.RootBucket(id)
		if err != nil || !ok || !hasBuckets(buckets) {
			continue // an unreadable page is counted when it is carved
		}
		var sequence, at uint64
		for _, b := range buckets {
			switch {
			case bytes.Equal(b.Name, bucketJournal):
				sequence = b.Sequence
			case bytes.Equal(b.Name, bucketContents):
				at = b.Root
			}
		}
		switch {
		case root == 0 || sequence > longest:
			root, longest, contents, s.noContents = id, sequence, at, false
			equal = append(equal[:0], id)
		case sequence == longest:
			s.noContents = s.noContents || at != contents
			equal = append(equal, id)
		}
	}
	// What any of them says was purged stays so.
	for _, id := range equal {
		p := pagecheck.Patched{R: r, Patches: []pagecheck.Patch{pagecheck.MetaFor(pageSize, id, c.Pages(), 0)}}
		_, err := pagecheck.WalkLeaves(s.ctx, p, s.size, bucketTombstones, func(l pagecheck.Leaf) error { s.addTombs(l); return nil })
		if isStop(err) {
			return 0, err
		}
	}
	return root, nil
}

// findIdentity reads who the store is: from IDENTITY, else from the copy in
// store.db. If both are gone the new store gets an id of its own; the logs do
// not depend on it.
func (s *salvager) findIdentity(dir string) (Identity, error) {
	ok := func(id Identity, err error) bool {
		return err == nil && id.Store != uuid.Nil && id.Incarnation > 0 && id.Format > 0
	}
	var file, inside Identity
	raw, err := os.ReadFile(filepath.Join(dir, identityFile))
	if err == nil {
		err = json.Unmarshal(raw, &file)
	}
	fileOK := ok(file, err)
	insideOK := false
	_, err = pagecheck.WalkLeaves(s.ctx, s.r, s.size, bucketMeta, func(l pagecheck.Leaf) error {
		for _, e := range l.Entries {
			if bytes.Equal(e.Key, keyIdentity) {
				insideOK = ok(inside, json.Unmarshal(e.Value, &inside))
			}
		}
		return nil
	})
	if ctxErr := s.ctx.Err(); ctxErr != nil {
		return file, ctxErr
	}
	_ = err // no such bucket: then there is no identity inside
	id := file
	switch {
	case fileOK && insideOK && file.Store != inside.Store:
		// Somebody mixed the files of two stores: the logs are in store.db.
		id, s.report.IdentityFrom = inside, identityFromDB
		s.report.Problems = append(s.report.Problems, fmt.Sprintf("IDENTITY is of store %s, store.db of store %s", file.Store, inside.Store))
	case fileOK:
		s.report.IdentityFrom = identityFromFile
		if id.Incarnation = max(id.Incarnation, inside.Incarnation); id.Key == "" {
			id.Key = inside.Key // it is written into store.db first
		}
	case insideOK:
		id, s.report.IdentityFrom = inside, identityFromDB
	default:
		id = Identity{Format: FormatVersion}
		s.report.IdentityFrom = identityNew
		if id.Store, err = uuid.NewRandom(); err != nil {
			return id, err
		}
	}
	if id.Format > FormatVersion {
		return id, fmt.Errorf("%w: store format: want 1 to %d, got %d; it was written by a newer childlog", ErrNewerFormat, FormatVersion, id.Format)
	}
	s.report.Store, s.report.SourceIncarnation, s.report.Incarnation = id.Store, id.Incarnation, nextIncarnation(id.Incarnation)
	return id, nil
}

// doubt notes the first reason why frames may be missing behind the last one.
func (s *salvager) doubt(why string) {
	if s.report.TailDoubt == "" {
		s.report.TailDoubt = why
	}
}

// isStop tells errors that end a salvage from those that are damage.
func isStop(err error) bool {
	return err != nil && !errors.Is(err, pagecheck.ErrDamaged) && !errors.Is(err, pagecheck.ErrNoBucket)
}
