package policy

// Ledger folds the sandbox events of one session in log order:
//
//	effective = meet(bound, own last switch)
//
// Start it with [RootLedger] or [ChildLedger], then feed it each event once. It
// does not check seqs; only provenance reads them. The zero value is read-only
// without network and cannot be switched to anything wider. A Ledger is a
// value: a copy is independent of the original.
type Ledger struct {
	bound Traced
	own   Traced // last switch; before the first one, what the session started with
	def   Traced

	unbounded bool // a root not narrowed yet: the bound is the top and no event set it
	explicit  bool
	narrowed  bool
}

// RootLedger starts a root: bounded by the top, worth its recorded default def
// until a switch. by is its creation.
func RootLedger(def Sandbox, by Cause) Ledger {
	d := Trace(def, by)
	return Ledger{bound: Trace(Top(), by), own: d, def: d, unbounded: true}
}

// ChildLedger starts a child, bounded by the value its delegation captured, or
// by its own recorded default def if there was none (captured is nil).
// createdBy set the default; capturedBy is the delegation, ignored if there is
// no captured value.
func ChildLedger(captured *Sandbox, def Sandbox, createdBy, capturedBy Cause) Ledger {
	l := Ledger{def: Trace(def, createdBy)}
	l.bound = l.def
	if captured != nil {
		l.bound, l.explicit = Trace(*captured, capturedBy), true
	}
	l.own = l.bound
	return l
}

// Switch records a change by the session itself, reversible within the bound.
// Wrapped [ErrInvalid] if v may not be recorded, a [*WideningError] if it is
// not within the bound, of a child and of a narrowed root alike. On error
// nothing changes.
func (l *Ledger) Switch(v Sandbox, by Cause) error {
	if err := v.Validate(); err != nil {
		return err
	}
	if !v.Within(l.bound.Value) {
		return &WideningError{Got: v, Bound: l.bound.Value, BoundBy: l.bound.exceeded(v)}
	}
	l.Keep(v, by)
	return nil
}

// Keep records a switch read from an imported log, which cannot be refused any
// more. It reports whether v goes beyond the bound: the effective value stays
// within it by the meet, and the importer has a finding. A foreign mode counts
// as read-only, so it never widens; that it is foreign is another finding.
func (l *Ledger) Keep(v Sandbox, by Cause) (widened bool) {
	l.own, l.explicit = Trace(v, by), true
	return !v.Within(l.bound.Value)
}

// Narrow meets ceiling into the bound. No later event undoes it, and it outlives
// every switch, also one recorded before. It reports whether the bound shrank;
// a ceiling the bound was within already leaves no trace.
func (l *Ledger) Narrow(ceiling Sandbox, by Cause) (changed bool) {
	if l.bound.Value.Within(ceiling) {
		return false
	}
	c := Trace(ceiling, by)
	if l.unbounded {
		// The creation did not set the top, so it must not be named for the
		// components the ceiling leaves open.
		l.bound, l.unbounded = c, false
	} else {
		l.bound = l.bound.Meet(c)
	}
	l.narrowed = true
	return true
}

// Effective returns what the session may do now.
func (l Ledger) Effective() Traced {
	if l.unbounded {
		return l.own
	}
	return l.bound.Meet(l.own)
}

// Bound returns the widest value the session may ever hold again. For a root
// that was never narrowed it is the top, for want of an event attributed to the
// creation.
func (l Ledger) Bound() Traced { return l.bound }

// Captured returns what a delegation snapshots: the effective value of a session
// that has an explicit override or a narrowing. A session with neither has
// nothing to hand down (false), and its child starts at its recorded default.
func (l Ledger) Captured() (Sandbox, bool) {
	if !l.explicit && !l.narrowed {
		return Sandbox{}, false
	}
	return l.Effective().Value, true
}

// Explicit reports whether the session has an override of the default: a switch
// of its own or a value captured at its delegation.
func (l Ledger) Explicit() bool { return l.explicit }

// Default returns the deployment default recorded at the creation.
func (l Ledger) Default() Traced { return l.def }
