package eventlog

import (
	"context"
	"errors"
	"sync"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
)

// A scan reads the journal from one position to another. What can be done to
// a frame by itself (its checksum, its events, its hashes, its contents) is
// done by several workers, each on a range of positions; what needs the frames
// before it is done by one consumer that gets every position in order. So the
// result is the same with any number of workers.
//
// A worker hands over blocks of bounded size and waits while the consumer has
// not come to them: memory is bounded by the number of workers, whatever the
// frames are like.

// scanned is what a scan found at a position. It lives during the call.
type scanned struct {
	position uint64
	stored   bool    // there is a frame, sound or not
	purged   bool    // there is none, and a tombstone says so
	frame    frame   // with err: only if envelope
	envelope bool    // the envelope is sound
	events   []Event // with chain hashes, and contents as far as the scan wants them
	err      error   // why the frame can't be decoded
	guess    frame   // of a damaged one: what it may have been
	guessed  bool
	mark     bool   // it is salvage's mark of a lost frame
	leaf     Hash   // in the tree
	leafErr  error  // why nothing says what it is
	size     uint64 // of the frame, bytes
	contents uint64 // of its contents that were read, bytes as stored
}

// scanOptions says what a scan does with contents: those that a row is folded
// from are always loaded.
type scanOptions struct {
	from, to uint64
	workers  int                          // 1 or less: no goroutine is started
	verify   func(session uuid.UUID) bool // whose contents are verified; nil: nobody's
}

// A block ends before the first frame behind one of these.
const (
	blockFrames   = 1024
	blockEvents   = 2048
	blockBytes    = 256 << 10 // of frames and of contents that are kept
	blockContents = 4 << 20   // bytes of contents that are only verified
)

// scanBlock is a run of positions, decoded.
type scanBlock struct {
	frames []scanned
	events []Event
	mem    arena
}

func (b *scanBlock) reset() {
	b.frames, b.events = b.frames[:0], b.events[:0]
	b.mem.reused = true
	b.mem.reset()
}

// scanner decodes ranges of positions; each worker has one.
type scanner struct {
	j        *journal
	salvaged bool // a hole is a stated loss
	o        *scanOptions
	gone     map[uuid.UUID]bool // sessions of an interrupted purge: their frames count as purged
	ahead    *readAhead
	dec      decoder
	contents contentReader
}

var errBlockFull = errors.New("block is full")

// run decodes the positions from..to-1 and hands them on block by block; emit
// returns the block to go on with. No transaction is open meanwhile.
func (s *scanner) run(ctx context.Context, from, to uint64, b *scanBlock, emit func(*scanBlock) (*scanBlock, error)) error {
	for at := from; at < to; {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.reset()
		err := s.j.view(func(tx *bolt.Tx) error {
			s.contents.in(tx)
			verified := s.contents.bytes
			return eachPosition(tx, at, to, func(position uint64, raw []byte) error {
				if len(b.frames) >= blockFrames || len(b.events) >= blockEvents || b.mem.used >= blockBytes || s.contents.bytes-verified >= blockContents {
					return errBlockFull
				}
				s.position(tx, b, position, raw)
				at = position + 1
				return nil
			})
		})
		if errors.Is(err, errBlockFull) {
			err = nil
		}
		if len(b.frames) > 0 {
			next, emitErr := emit(b)
			if emitErr != nil {
				return emitErr
			}
			b = next
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// position decodes what stands at one position into the block. Nothing is in
// the block before every byte of the frame was read: a fault until then means
// that the position is tried again.
func (s *scanner) position(tx *bolt.Tx, b *scanBlock, position uint64, raw []byte) {
	p := scanned{position: position, stored: raw != nil, size: uint64(len(raw))}
	if !p.stored {
		tombstone, err := getCopy(tx.Bucket(bucketTombstones), positionKey(position))
		p.purged = err == nil && tombstone != nil
		p.leaf, s.dec.scratch, p.leafErr = leafOf(tx, position, nil, s.salvaged, s.dec.scratch)
		b.frames = append(b.frames, p)
		return
	}
	s.ahead.note(tx, raw)
	if p.err = checkFrameLength(raw); p.err == nil {
		raw = b.mem.copy(raw)
		p.frame, p.err = decodeFrame(raw)
	}
	if p.err == nil && s.gone[p.frame.session] {
		gone := scanned{position: position, purged: true} // its leaf stays what it was
		gone.leaf, s.dec.scratch, gone.leafErr = frameLeaf(raw, s.dec.scratch)
		b.frames = append(b.frames, gone)
		return
	}
	if p.err == nil {
		p.envelope = true
		before := len(b.events)
		if b.events, p.err = s.dec.events(b.events, &p.frame, position); p.err == nil {
			p.events = b.events[before:]
			p.contents = s.read(&p, &b.mem)
			p.leaf = p.frame.leaf(p.events[len(p.events)-1].Hash)
		}
	}
	if p.err != nil {
		p.guess, p.guessed = guessFrame(raw)
		if p.mark = isMark(raw); p.mark {
			p.leaf = lostLeaf(position)
		} else {
			p.leafErr = corruptf(position, "%v", p.err)
		}
	}
	b.frames = append(b.frames, p)
}

// read reads the contents of a frame's events, those that are wanted.
func (s *scanner) read(p *scanned, mem *arena) uint64 {
	before := s.contents.bytes
	verify := s.o.verify != nil && s.o.verify(p.frame.session)
	for i := range p.events {
		ev := &p.events[i]
		switch {
		case foldsContent(ev.Type) && (verify || ev.Inherited == nil):
			s.contents.load(ev, uint32(i), mem)
		case verify:
			s.contents.verify(ev, uint32(i))
		}
	}
	return s.contents.bytes - before
}

// scan calls fn with every position of the range in order. All goroutines have
// ended when it returns. Errors: those of fn, ctx, and ErrCorrupt if the pages
// do not lead to the frames.
func (s *Store) scan(ctx context.Context, o scanOptions, fn func(*scanned) error) error {
	consume := func(b *scanBlock) (err error) {
		return protect("store.db", func() error {
			for i := range b.frames {
				if err := fn(&b.frames[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	ahead, contentsAhead := s.journal.readAhead(), s.journal.readAhead()
	var gone map[uuid.UUID]bool
	if ids := s.condemned.Load(); ids != nil {
		gone = *ids
	}
	worker := func() *scanner {
		return &scanner{j: s.journal, salvaged: s.identity.Salvaged, o: &o, gone: gone, ahead: ahead, contents: contentReader{ahead: contentsAhead}}
	}
	if o.workers <= 1 {
		return worker().run(ctx, o.from, o.to, new(scanBlock), func(b *scanBlock) (*scanBlock, error) { return b, consume(b) })
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	jobs := make(chan *scanJob, 2*o.workers)
	defer close(jobs)
	free := make(chan *scanBlock, 4*o.workers)
	for range o.workers {
		wg.Go(func() {
			w := worker()
			for job := range jobs {
				job.run(ctx, w, free)
			}
		})
	}
	var queue []*scanJob
	size := scanSize{frames: 64}
	for at := o.from; at < o.to || len(queue) > 0; {
		for at < o.to && len(queue) < cap(jobs) {
			job := &scanJob{from: at, to: min(o.to, at+size.frames), blocks: make(chan *scanBlock, 1)}
			queue, at = append(queue, job), job.to
			jobs <- job
		}
		job := queue[0]
		queue = queue[1:]
		for b := range job.blocks {
			if err := consume(b); err != nil {
				return err
			}
			size.note(b)
			select {
			case free <- b:
			default:
			}
		}
		if job.err != nil {
			return job.err
		}
	}
	return nil
}

// scanJob is a range of positions that one worker decodes.
type scanJob struct {
	from, to uint64
	blocks   chan *scanBlock // closed at the end
	err      error           // set before
}

func (j *scanJob) run(ctx context.Context, w *scanner, free <-chan *scanBlock) {
	defer close(j.blocks)
	block := func() *scanBlock {
		select {
		case b := <-free:
			return b
		default:
			return new(scanBlock)
		}
	}
	j.err = w.run(ctx, j.from, j.to, block(), func(b *scanBlock) (*scanBlock, error) {
		select {
		case j.blocks <- b:
			return block(), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
}

// scanSize chooses how many positions a job has: about as many as fill one
// block, as far as the blocks before tell. It changes the pace, not the result.
type scanSize struct {
	frames uint64
}

func (z *scanSize) note(b *scanBlock) {
	n := uint64(len(b.frames))
	most := max(float64(n)/blockFrames, float64(len(b.events))/blockEvents, float64(b.mem.used)/blockBytes)
	want := uint64(blockFrames)
	if most > 0 {
		want = uint64(float64(n) / most * 0.9)
	}
	z.frames = min(max((3*z.frames+want)/4, 1), blockFrames)
}
