package policy

import (
	"errors"
	"fmt"
)

// The ways a value is refused. Errors of this package wrap exactly one of them
// and state what was given and what was wanted; test with [errors.Is].
var (
	// ErrInvalid marks input that states no policy: an unknown mode or
	// approval, a malformed root, a value that contradicts itself.
	ErrInvalid = errors.New("invalid")

	// ErrWidening marks a well-formed switch beyond what the session may ever
	// hold again. Only a new delegation can grant more.
	ErrWidening = errors.New("widening")

	// ErrDepth marks a delegation below the deepest place its tree allows.
	ErrDepth = errors.New("depth exceeded")
)

// WideningError says which bound refused a sandbox switch, with enough for the
// caller to tell what would have been accepted and whom to ask for more. It
// unwraps to [ErrWidening]. An approval refused in a child is a plain
// ErrWidening: there the bound is always never.
type WideningError struct {
	Got   Sandbox // what the switch stated
	Bound Sandbox // the widest value that would have been accepted

	// BoundBy is the event that set the first component Got exceeds, in the
	// order mode, roots, network, temp directories: the narrowing or the
	// delegation to look at, which is not always the one that set the mode.
	BoundBy Cause
}

// Error renders both values and the deciding event on one line.
func (e *WideningError) Error() string {
	return fmt.Sprintf("%v: sandbox: got %v, want within %v, set by %v", ErrWidening, e.Got, e.Bound, e.BoundBy)
}

// Unwrap returns [ErrWidening].
func (e *WideningError) Unwrap() error { return ErrWidening }

// exceeded returns the BoundBy of a switch to v, which is not within t.
func (t Traced) exceeded(v Sandbox) Cause {
	v = v.Canonical()
	m := v.Meet(t.Value)
	switch {
	case m.Mode != v.Mode:
		return t.Mode
	case !m.Roots.Equal(v.Roots):
		return t.Roots
	case m.Network != v.Network:
		return t.Network
	case m.ExcludeTmpdirEnvVar != v.ExcludeTmpdirEnvVar:
		return t.ExcludeTmpdirEnvVar
	}
	return t.ExcludeSlashTmp
}

// invalid wraps ErrInvalid. Values taken from input are formatted with %q by
// the callers, so a message stays on one line whatever was given.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}
