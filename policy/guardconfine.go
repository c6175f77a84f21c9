package policy

import (
	"fmt"
	"strings"
)

// Confine decides whether a mutating child may run: only under a guard that is
// there, and no broader than the scope declared for the child, by containment.
// A guard of src/a under a declared src is fine; the reverse would give the
// child what nobody delegated. An empty guard is always narrow enough: the
// child runs and may write nothing.
//
// A nil guard is a session that nothing holds to a scope. A guard that is not
// stated is the same in other words, also where the declared scope is not
// stated either. Returns a [*ConfinementError] or nil.
func Confine(declared Scope, guard *Scope) error {
	if guard == nil || !guard.Stated() {
		return &ConfinementError{Declared: declared}
	}
	if extra := guard.beyond(declared); len(extra) > 0 {
		return &ConfinementError{Declared: declared, Guard: guard, Extra: extra}
	}
	return nil
}

// ConfinementError says why a mutating child is not confined. It unwraps to
// [ErrUnconfined].
type ConfinementError struct {
	Declared Scope
	Guard    *Scope   // nil if there is none
	Extra    []string // the paths of the guard that the declared scope does not contain, in path order
}

// Error names the scope that was declared and what the guard allows beyond it.
func (e *ConfinementError) Error() string {
	if e.Guard == nil {
		return fmt.Sprintf("%v: got no guard, want one within %v", ErrUnconfined, e.Declared)
	}
	shown := make([]string, len(e.Extra))
	for i, p := range e.Extra {
		shown[i] = quoted(p)
	}
	return fmt.Sprintf("%v: got a guard that also allows %s, want it within %v", ErrUnconfined, strings.Join(shown, ", "), e.Declared)
}

// Unwrap returns ErrUnconfined.
func (e *ConfinementError) Unwrap() error { return ErrUnconfined }

// RefusalStage orders the reasons for which one call can be refused at once,
// in the order in which they are reported. The first is the one a child can
// act on: a guarded shell call inside an open batch must learn that it will
// never be allowed, not that the batch is in the way, or it closes the batch
// and tries again.
type RefusalStage uint8

// The stages, first to last. Zero is not a stage and comes after all of them.
const (
	StageScope     RefusalStage = 1 // [Guard.Check]: write_scope_violation, path_unknown
	StageBatch     RefusalStage = 2 // what an open batch of edits does not permit
	StageIsolation RefusalStage = 3 // what the isolation of the child does not permit
)

// Refusal is one reason to refuse a call. The codes of the later stages are the
// harness's own.
type Refusal struct {
	Stage RefusalStage
	Code  string
	Err   error
}

// FirstRefusal returns the refusal to report, the first of the lowest stage,
// whatever order they were found in; false if there is none.
func FirstRefusal(found ...Refusal) (first Refusal, refused bool) {
	for i, r := range found {
		// Zero wraps to the highest value.
		if i == 0 || r.Stage-1 < first.Stage-1 {
			first = r
		}
	}
	return first, len(found) > 0
}

// Refusal returns the verdict as a reason of [StageScope]; false if the call is
// allowed.
func (v GuardVerdict) Refusal() (r Refusal, refused bool) {
	if v.Allowed {
		return Refusal{}, false
	}
	return Refusal{Stage: StageScope, Code: v.Code, Err: v.Err()}, true
}
