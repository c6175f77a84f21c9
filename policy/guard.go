package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Effect says what a call does to files, as far as a guard is concerned. The
// names are those of the tool classes, and recovery. Anything else, the zero
// value included, counts as opaque.
type Effect string

// The effects a guard tells apart.
const (
	EffectRead     Effect = "read"     // changes no file
	EffectEdit     Effect = "edit"     // changes the files its arguments name
	EffectShell    Effect = "shell"    // changes whatever its command changes
	EffectNetwork  Effect = "network"  // changes no file of the workspace
	EffectDelegate Effect = "delegate" // the child has a scope of its own
	EffectOpaque   Effect = "opaque"   // nobody knows
	EffectRecovery Effect = "recovery" // undoes what earlier calls changed
)

// recoveryTools undo an open batch of edits.
var recoveryTools = []string{"rollback", "repair", "abort"}

// EffectOf returns the effect of a tool of the given class. The tools rollback,
// repair and abort, by these exact names, are recovery where their class says
// edit, opaque or nothing; a harness that declares its "repair" as a shell tool
// is believed.
func EffectOf(tool, class string) Effect {
	switch e := Effect(class); e {
	case EffectRead, EffectShell, EffectNetwork, EffectDelegate:
		return e
	case EffectEdit, EffectOpaque, "":
		if slices.Contains(recoveryTools, tool) {
			return EffectRecovery
		}
		if e == EffectEdit {
			return e
		}
	}
	return EffectOpaque
}

// IsRecovery reports whether a tool of this name may be one that undoes what
// earlier calls changed, so that [Moment.Admitted] matters to its calls.
func IsRecovery(tool string) bool { return slices.Contains(recoveryTools, tool) }

// GuardCall is what a guard has to know about one call.
type GuardCall struct {
	Tool   string // as given; only for messages
	Effect Effect

	// Paths are all paths of the call, as given, and PathsKnown says that
	// there is no other; see [CallPaths].
	Paths      []string
	PathsKnown bool

	// Admitted are the targets, as [Target] returns them, for which this guard
	// or a wider one before a narrowing has allowed an earlier call of the
	// session. Only a recovery call makes use of them.
	Admitted []string
}

// NewGuardCall reads the paths of a call from its final arguments.
func NewGuardCall(tool, class string, args map[string]any, admitted []string) GuardCall {
	paths, known := CallPaths(tool, args)
	return GuardCall{Tool: tool, Effect: EffectOf(tool, class), Paths: paths, PathsKnown: known, Admitted: admitted}
}

// Guard holds the mutating calls of a child to its scope. The zero value
// allows nothing that could change a file. It is an immutable value, safe for
// concurrent use.
//
// A guard compares names. What a name leads to on disk is for the scopefs
// package, which a harness asks when it opens the file.
type Guard struct {
	scope     Scope
	workspace Workspace
}

// NewGuard returns the guard of a scope in a workspace. Wrapped [ErrInvalid]
// for a scope that is not stated: a guard without a scope would guard nothing,
// and look as if it did.
func NewGuard(scope Scope, workspace Workspace) (Guard, error) {
	if !scope.Stated() {
		return Guard{}, invalid("guard: got no write scope, want one, if only an empty one")
	}
	return Guard{scope: scope, workspace: workspace}, nil
}

// Scope returns the scope that calls are held to.
func (g Guard) Scope() Scope { return g.scope }

// OutsidePath is one path of a call that is not in the scope.
type OutsidePath struct {
	Path string // as given
	Want string // what would have been accepted
}

// GuardVerdict is the answer of a guard to one call. The zero value refuses.
type GuardVerdict struct {
	Allowed bool

	// Code is "" if allowed, else [CodeWriteScopeViolation] or
	// [CodePathUnknown].
	Code string

	// Reason says in one line, for people, why the call is refused; "" if it is
	// allowed.
	Reason string

	// Targets are the paths of the call that are in the scope, relative to the
	// workspace, in the order of the call and without duplicates. If the call
	// is allowed and mutating these are all it may touch: a recovery call that
	// names no path is held to them.
	Targets []string

	// Outside are the other paths, in the order of the call; all of them, so
	// that one refusal is enough to correct the call.
	Outside []OutsidePath

	Scope Scope // what the call was held to
}

// Err returns nil if the call is allowed, else a [*GuardError].
func (v GuardVerdict) Err() error {
	if v.Allowed {
		return nil
	}
	return &GuardError{Verdict: v}
}

// GuardError is a refusal as an error. It unwraps to [ErrPathUnknown] or
// [ErrOutside], by the code of the verdict.
type GuardError struct{ Verdict GuardVerdict }

// Error renders code, reason and up to three paths with what the scope wants
// instead on one line.
func (e *GuardError) Error() string {
	v := e.Verdict
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.Code, v.Reason)
	for i, p := range v.Outside {
		if i == 3 {
			fmt.Fprintf(&b, " and %d more", len(v.Outside)-i)
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s (want %s)", quoted(p.Path), p.Want)
	}
	return b.String()
}

// Unwrap returns ErrPathUnknown or ErrOutside.
func (e *GuardError) Unwrap() error {
	if e.Verdict.Code == CodePathUnknown {
		return ErrPathUnknown
	}
	return ErrOutside
}

// Check decides one call:
//
//   - read, network and delegate calls are allowed: they change no file here;
//   - shell and opaque calls are refused, whatever they name;
//   - an edit is allowed if all its paths are known and all are in the scope;
//   - a recovery is allowed if all its paths are in the scope or at or below an
//     earlier admitted target, and without any path if there is such a target.
//     So what was written before a narrowing can still be undone after it, and
//     nothing else can be.
//
// A path outside is reported before a path unknown: it is the surer finding.
// The verdict comes before any error about batches or isolation; see
// [FirstRefusal].
func (g Guard) Check(call GuardCall) GuardVerdict {
	v := GuardVerdict{Scope: g.scope}
	switch call.Effect {
	case EffectRead, EffectNetwork, EffectDelegate:
		v.Allowed = true
		return v
	case EffectEdit, EffectRecovery:
		return g.checkPaths(call, v)
	}
	effect := string(EffectOpaque)
	if call.Effect == EffectShell {
		effect = string(EffectShell)
	}
	v.Code = CodeWriteScopeViolation
	v.Reason = fmt.Sprintf("got a call of %s, class %s, want one that names the files it changes, within %v", quoted(call.Tool), effect, g.scope)
	return v
}

func (g Guard) checkPaths(call GuardCall, v GuardVerdict) GuardVerdict {
	recovery := call.Effect == EffectRecovery
	var before admittedTargets
	if recovery {
		before = admittedOf(call.Admitted)
	}
	seen := map[string]bool{}
	paths, known := call.Paths, call.PathsKnown
	if recovery && len(paths) == 0 && len(call.Admitted) > 0 {
		paths, known = call.Admitted, true
	}
	for _, p := range paths {
		target, err := g.workspace.Target(p)
		switch {
		case err != nil:
			want := wantWorkspace
			if e, ok := err.(*TargetError); ok {
				want = e.Want
			}
			v.Outside = append(v.Outside, OutsidePath{Path: p, Want: want})
		case !g.scope.Admits(target) && !before.hold(target):
			v.Outside = append(v.Outside, OutsidePath{Path: p, Want: g.scope.Want(target)})
		case !seen[target]:
			seen[target] = true
			v.Targets = append(v.Targets, target)
		}
	}
	switch {
	case len(v.Outside) > 0:
		v.Code, v.Reason = CodeWriteScopeViolation, fmt.Sprintf("got %d of %d paths outside:", len(v.Outside), len(paths))
	case !known || len(paths) == 0:
		v.Code = CodePathUnknown
		v.Reason = fmt.Sprintf("got a call of %s with %d recognized paths, want every path it changes", quoted(call.Tool), len(paths))
		if recovery {
			v.Reason += ", or earlier calls to undo"
		}
	default:
		v.Allowed = true
	}
	return v
}

// admittedTargets are the targets that a recovery call may undo. A long session
// has many, and a call that names none is held to each, so they are looked up
// and not gone through. Nil holds nothing.
type admittedTargets map[string]bool

func admittedOf(targets []string) admittedTargets {
	a := make(admittedTargets, len(targets))
	for _, t := range targets {
		a[t] = true
	}
	return a
}

// hold reports whether target is one of the admitted targets or below one,
// which may have been a directory. The workspace itself, ".", is never
// admitted, so a "." that found its way into the list admits only itself.
func (a admittedTargets) hold(target string) bool {
	for end := len(target); end > 0; end = strings.LastIndexByte(target[:end], '/') {
		if a[target[:end]] {
			return true
		}
	}
	return false
}
