package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"childlog/eventlog/pagecheck"
)

// SalvageOptions say how a salvage is done.
type SalvageOptions struct {
	// DryRun writes nothing and only makes the statement.
	DryRun bool
	// IncludeTail takes over frames that fit behind the end of a session's log
	// but of which nothing proves that they were ever committed. They can be
	// read; no policy can be, see SalvageReport.TailDoubt.
	IncludeTail bool
	Wait        time.Duration // how long to wait for the source's lock
	// Progress is called now and then; units differ by stage. May be nil.
	Progress func(stage string, done, of uint64)
}

// Salvage reads what is left of the store at from, however it is damaged, and
// writes it into a new store at to, which must not exist or be empty. The source
// is only read. What was lost is in the report, and in SALVAGE.json beside the
// new store; an error means that there is no new store.
//
// What is taken over keeps its position, its bytes and so its hashes. What is
// lost stays a hole at its place: nothing is renumbered, filled in or guessed.
// The new store has the source's id and the next incarnation.
//
// # What counts
//
// The tree of the newest meta page counts. A meta page with one damaged byte is
// read as it was before: its checksum says which byte. A frame is taken
//
//   - from the tree, if its own checksum holds and the keys of its page agree
//     about its position;
//   - from a page of the tree that no branch leads to any more: one that is
//     neither in use nor in the list of free pages, if that list is sound;
//   - from a free page, where bbolt leaves older copies, only if the hash chain
//     proves it: the frame behind the gap in its session's log names its hash.
//     The tree must have lost it; a position that a sound tree has not got, or
//     that has a tombstone, was purged and stays so.
//
// Two different frames for one position decide in this order; two of one rank
// are both left out unless the chain proves one. All are in the report. Bytes
// inside of a content are never taken for a page, so a content that was made to
// look like one forges nothing.
//
// A content is taken from the tree or its cut-off pages, never from a free page:
// it may have been erased since, and erasing leaves older copies there. It must
// be whole and be what its event committed to.
//
// If no meta page is valid, the newest root page that the file has stands in for
// it. If there is none either, every page is taken for what it seems to be. Both
// leave the end of the journal in doubt, so that all of it can be read and
// nothing be granted.
//
// # Why no policy comes back wider
//
// A session that lost events has a gap, which every store refuses to read a
// policy across: it can be shown, and nothing is granted from it. A lost frame
// whose session is not known may have been the newest of any session that has
// nothing behind it, a narrowing perhaps: all of those are refused too. It is
// known if the gaps in the logs account for every lost position around, if the
// damaged frame still names a session that expects it, or if the index, whole and
// of this store, has it; then a mark at the position names it, and the others go
// on as before. If the end of the journal
// itself is in doubt, because a meta page is gone and with it perhaps the last
// commit, no session may be granted anything: the new store's sequence says that
// a position is missing at the end, so it opens for reading only. There is no
// way to accept such a loss, as nobody can say whose narrowing it was; authority
// is given anew, in another store, by whoever holds it.
//
// So is a journal that is not the one that CHECKPOINT was signed over: a store
// that was rolled back is salvaged to be read. AcceptRollback is the way to go on
// with it, on record.
//
// # Cost
//
// The file is read three times, once to check its pages, and the frames of a
// store that signs once more. Memory is 24 bytes a
// frame, 32 a chunk of content, some 150 a session, and one bit a page.
//
// Errors: ErrLocked, ErrNotFound, ErrExists (the target), ErrStoreLost (nothing
// to salvage), ErrNewerFormat, ErrCorrupt (the file changed, or can't be read).
func Salvage(ctx context.Context, from, to string, o SalvageOptions) (*SalvageReport, error) {
	from, err := filepath.Abs(from)
	if err != nil {
		return nil, err
	}
	s := &salvager{ctx: ctx, opts: o, report: newSalvageReport(), end: math.MaxUint64, named: map[uint64]lostName{}}
	s.report.Source = from
	if !o.DryRun {
		if to, err = newPlace(from, to); err != nil {
			return nil, err
		}
		s.report.Target = to
	}
	path := filepath.Join(from, journalFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(from, identityFile)); err == nil {
			return nil, fmt.Errorf("%w: %s has an %s but no %s: nothing to salvage", ErrStoreLost, from, identityFile, journalFile)
		}
		return nil, fmt.Errorf("%w: no store at %s", ErrNotFound, from)
	}
	lock, err := acquireLock(ctx, from, false, o.Wait, "")
	if err != nil {
		return nil, err
	}
	defer lock.release(false)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if fi.Size() == 0 {
		return nil, fmt.Errorf("%w: %s is empty: nothing to salvage", ErrStoreLost, path)
	}
	return s.run(f, fi.Size())
}

// newPlace checks where the new store is to be: nowhere near the old one.
func newPlace(from, to string) (string, error) {
	if to == "" {
		return "", invalidf("salvage needs a place for the new store")
	}
	to, err := filepath.Abs(to)
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(realPath(from), realPath(to)); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return "", invalidf("the new store can't be in the one that is salvaged: %s", to)
	}
	return to, freePlace(to)
}

// realPath resolves links as far as the path exists.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(realPath(dir), filepath.Base(path))
	}
	return path
}

// salvager is the state of one salvage.
type salvager struct {
	ctx    context.Context
	opts   SalvageOptions
	report *SalvageReport

	r        io.ReaderAt
	size     int64
	pages    pagecheck.Report
	states   pagecheck.PageStates
	carver   *pagecheck.Carver
	sequence uint64 // of the journal, as its bucket says
	end      uint64 // position behind the last one that was committed

	used         []uint64 // a bit for each page that the tree handed out
	frames       []foundFrame
	other, alone []foundFrame // not sorted in yet; on no other of their page
	stale        []foundFrame // to be proven
	broken       []brokenFrame
	tombs        []foundTomb
	chunks       []foundChunk
	tail         []foundFrame
	tailChunks   []foundChunk
	leafFrames   []leafFrame     // scratch
	journalPages map[uint64]bool // pages of the journal in which something is wrong
	tombsSound   bool
	journalSound bool
	noContents   bool

	logs       map[uuid.UUID]*salvagedLog
	gaps       []gap
	named      map[uint64]lostName
	redacted   map[Ref]redactedEvent // what the logs say was erased
	frameFirst uint64                // first seq of the frame in readLogs

	stage    string
	done, of uint64
}

func (s *salvager) run(f io.ReaderAt, size int64) (*SalvageReport, error) {
	if err := s.openTree(f, size); err != nil {
		return nil, err
	}
	id, err := s.findIdentity(s.report.Source)
	if err != nil {
		return nil, err
	}
	if err := s.findFrames(); err != nil {
		return nil, err
	}
	if err := s.heldToSigned(id); err != nil {
		return nil, err
	}
	lost := s.lostRanges()
	if err := s.nameByIndex(lost); err != nil {
		return nil, err
	}
	s.nameByChain(lost)
	s.stateLoss(lost)
	if err := s.takeTail(); err != nil {
		return nil, err
	}
	s.report.settle()
	if s.report.Base == BaseNone && s.report.Events == 0 {
		return nil, fmt.Errorf("%w: %s: nothing to salvage: no frame is left in its %d bytes", ErrStoreLost, journalFile, size)
	}
	if s.opts.DryRun {
		return s.report, s.ctx.Err()
	}
	id.Incarnation, id.Backup, id.Key, id.Salvaged = s.report.Incarnation, false, "", true
	id.Created = time.Now().UTC().Truncate(time.Second)
	if err := s.write(id); err != nil {
		if noSpace(err) {
			err = fmt.Errorf("%w: %w", ErrNoSpace, err)
		}
		return nil, fmt.Errorf("salvage to %s: %w", s.report.Target, err)
	}
	return s.report, nil
}

// findFrames collects all that can be taken over.
func (s *salvager) findFrames() error {
	if err := s.readTree(); err != nil {
		return err
	}
	s.findEnd()
	if err := s.carve(); err != nil {
		return err
	}
	if s.report.Base == BaseNone {
		s.end = 0
		if n := len(s.frames); n > 0 {
			s.end = s.frames[n-1].position + 1
		}
	}
	if err := s.buryCondemned(); err != nil {
		return err
	}
	if len(s.stale) > 0 {
		if err := s.readLogs(stageFrames, nil); err != nil {
			return err
		}
		if err := s.prove(); err != nil {
			return err
		}
	}
	s.dropFound()
	if err := s.readLogs(stageLogs, s.content); err != nil {
		return err
	}
	if err := s.settleRedacted(); err != nil {
		return err
	}
	for i := range s.frames {
		switch s.frames[i].origin() {
		case fromTree:
			s.report.Frames.Tree++
		case fromCutOff:
			s.report.Frames.CutOff++
		case fromStale:
			s.report.Frames.Carved++
		}
	}
	s.report.Positions, s.report.Tombstones = s.end, uint64(len(s.tombs))
	return s.findTail()
}

// dropFound forgets damaged frames of which a sound copy was found.
func (s *salvager) dropFound() {
	kept := s.broken[:0]
	for _, b := range s.broken {
		if len(s.at(b.position)) == 0 {
			kept = append(kept, b)
		}
	}
	s.broken = kept
	clear(s.named)
}

// Stages that Progress is called with, and what they count.
const (
	stageTree    = "reading the tree"    // pages
	stageCarving = "reading other pages" // pages
	stageFrames  = "reading frames"      // frames
	stageLogs    = "reading logs"        // frames
	stageWriting = "writing"             // frames
	stageCheck   = "checking"            // frames
)

func (s *salvager) progress(stage string, n uint64) {
	if s.opts.Progress == nil {
		return
	}
	if stage != s.stage {
		s.stage, s.done, s.of = stage, 0, s.carver.Pages()
		if stage == stageFrames || stage == stageLogs || stage == stageWriting {
			s.of = uint64(len(s.frames))
		}
	}
	was := s.done
	if s.done += n; was/1024 != s.done/1024 || s.done >= s.of {
		s.opts.Progress(stage, min(s.done, s.of), s.of)
	}
}
