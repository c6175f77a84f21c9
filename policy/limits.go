package policy

// MaxNumber is the largest number a policy states: 2^53, beyond which other
// readers of JSON lose digits.
const MaxNumber = 1 << 53

// HardMaxDepth is the deepest a session may ever lie below its root.
const HardMaxDepth = 8

// Limits bound a session's life. The zero value limits nothing.
type Limits struct {
	DeadlineMS int64  // ms since 1970 UTC; at and after it nothing is allowed; 0: none
	MaxSteps   uint64 // counted by the fold of the log, seeds excluded; 0: unbounded
	MaxDepth   int    // of any descendant, counted from the root down; 0: not stated
}

// Meet returns the tighter of each limit. Zero is absent, not nothing: under a
// parent without a limit the child's own counts, and the other way round.
func (l Limits) Meet(o Limits) Limits {
	return Limits{
		DeadlineMS: tighter(l.DeadlineMS, o.DeadlineMS),
		MaxSteps:   tighter(l.MaxSteps, o.MaxSteps),
		MaxDepth:   tighter(l.MaxDepth, o.MaxDepth),
	}
}

// Within reports whether l is at least as tight as o in every limit.
func (l Limits) Within(o Limits) bool { return l.Meet(o) == l }

// Validate reports, as a wrapped [ErrInvalid], why l must not be recorded: a
// negative limit, one beyond [MaxNumber], a depth beyond [HardMaxDepth].
func (l Limits) Validate() error {
	switch {
	case l.DeadlineMS < 0 || l.DeadlineMS > MaxNumber:
		return invalid("deadline: got %d ms, want 0 to 2^53", l.DeadlineMS)
	case l.MaxSteps > MaxNumber:
		return invalid("max steps: got %d, want 0 to 2^53", l.MaxSteps)
	case l.MaxDepth < 0 || l.MaxDepth > HardMaxDepth:
		return invalid("max depth: got %d, want 0 to %d", l.MaxDepth, HardMaxDepth)
	}
	return nil
}

// Deadline turns a wall time into a deadline: now + wallMS, or the parent's if
// that is earlier. All are ms since 1970; a parent deadline of 0 is none, and a
// wall time of 0 or less states none. It is called once, when a child is made,
// so that a continuation never restarts the clock. The sum saturates at
// [MaxNumber].
func Deadline(parentDeadline, now, wallMS int64) int64 {
	if wallMS <= 0 {
		return parentDeadline
	}
	own := int64(MaxNumber)
	if now < MaxNumber-min(wallMS, MaxNumber) {
		own = min(MaxNumber, max(1, now+wallMS)) // 0 would be no deadline at all
	}
	return tighter(parentDeadline, own)
}

// tighter returns the lower of two limits of which zero is absent. A negative
// one, which no valid policy states, stays the lowest.
func tighter[N int | int64 | uint64](a, b N) N {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return min(a, b)
}
