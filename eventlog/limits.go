package eventlog

// Limits bound what one call may bring. The defaults are also the hard caps:
// an option may lower one, never raise it, since readers rely on them to
// bound their memory.
const (
	MaxContent      = 16 << 20 // bytes of one content
	MaxFacts        = 64 << 10 // bytes of one event's canonical facts
	MaxBatchEvents  = 4096     // events of one append
	MaxBatchContent = 32 << 20 // bytes of content of one append
	MaxUnitFrames   = 10000    // frames of one atomic unit
	MaxNesting      = 64       // depth of JSON contents and of facts
	MaxTypeLen      = 64       // bytes of a type name

	maxFrame   = 960 << 10 // bytes; below bbolt's comfortable value size
	chunkSize  = 64 << 10  // bytes of content a chunk holds, uncompressed
	zstdMinLen = 1 << 10   // shorter contents rarely shrink below their overhead
)

// Limits lowers the caps of a store handle. A zero field means the cap.
type Limits struct {
	Content      int // bytes of one content
	Facts        int // bytes of one event's facts
	BatchEvents  int // events of one append
	BatchContent int // bytes of content of one append
	UnitFrames   int // frames of one atomic unit
}

func (l Limits) withDefaults() (Limits, error) {
	for _, f := range []struct {
		name string
		p    *int
		max  int
	}{
		{"content", &l.Content, MaxContent}, {"facts", &l.Facts, MaxFacts},
		{"batch events", &l.BatchEvents, MaxBatchEvents}, {"batch content", &l.BatchContent, MaxBatchContent},
		{"unit frames", &l.UnitFrames, MaxUnitFrames},
	} {
		if *f.p == 0 {
			*f.p = f.max
		}
		if *f.p < 0 || *f.p > f.max {
			return l, invalidf("limit %s: want 1 to %d, got %d", f.name, f.max, *f.p)
		}
	}
	return l, nil
}

func checkLimit(what string, size, limit int) error {
	if size > limit {
		return &TooLargeError{What: what, Limit: uint64(limit), Size: uint64(size)}
	}
	return nil
}
