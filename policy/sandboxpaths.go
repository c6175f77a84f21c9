package policy

import (
	"slices"
	"strconv"
)

// pathFinding is what one path of a mutating call comes to.
type pathFinding struct {
	target   string  // where it points; "" if its form says nothing
	want     string  // what would have been accepted; "" if nothing is wrong with it
	operator *Denial // an operator closed the place
	sandbox  *Denial // the sandbox does not hold it
	scope    bool    // the write scope does not hold it
}

// judge looks at one path of a mutating call. The rules are those of names: what
// a name leads to on disk is for scopefs, when the file is opened.
//
//   - A path that [Workspace.Target] refuses for its form is refused everywhere.
//   - What an operator closed is compared folded, at and below the entry. A call
//     that moves what the entry lies in names another place.
//   - A stated write scope must hold it.
//   - It must lie in the sandbox: under read-only nothing does; under
//     workspace-write what is in a writable root, or in /tmp unless that is
//     excluded; under danger-full-access every path, in the workspace or not.
//     $TMPDIR is environment, unknown here, so it holds nothing. A relative path
//     in a workspace at no known place lies in no root.
//   - Under workspace-write .git, .codex, .claude and .childlog below the workspace
//     or the root, at any level, are refused unless an entry of the scope or a
//     writable root names them. The root has to be within the bound as named, or a
//     session would name them for itself by a switch.
//   - The store's own directories are refused, compared folded, and so is what
//     they lie in. A workspace at no known place is not known to hold them.
//
// A recovery call may also touch what was admitted before, wherever the scope
// and the roots are now, but not under read-only, where nothing is written.
func (r *ready) judge(raw string, box *writable, admitted admittedTargets) pathFinding {
	p, want := r.Workspace.place(raw)
	if want != "" {
		return pathFinding{want: want, scope: true, sandbox: &Denial{CodeSandbox, RulePathForm, RuleOrigin{Kind: OriginNone}}}
	}
	f := pathFinding{target: p.target}
	before := admitted.hold(p.target)
	folded := fold(r.Workspace.absolute(p))
	if rule := r.operatorPath(p, folded); rule != nil {
		f.operator = &Denial{CodeOperatorDeny, RuleOperatorPath, RuleOrigin{OriginOperator, rule.Origin}}
		f.want = "a path that no operator rule closes, not " + quoted(rule.Path)
	}
	if scope := r.own.Grant.Scope; scope.Stated() && !before && !(p.inside && scope.covers(p.target)) {
		f.scope = true
		if f.want == "" {
			f.want = r.wantScope(p)
		}
	}
	if d, want := r.sandboxHolds(p, folded, box, before); want != "" {
		f.sandbox = &d
		if f.want == "" {
			f.want = want
		}
	}
	return f
}

// operatorPath returns the rule that closes a place. An absolute path may lead
// into a workspace at no known place, so it counts as closed.
func (r *ready) operatorPath(p place, folded string) *OperatorRule {
	if p.inside {
		if entry, denied := r.denyPaths.Covers(p.target); denied {
			rule := r.pathRules[entry]
			return &rule
		}
		return nil
	}
	if !r.anchored {
		return r.firstPath
	}
	for i := range r.outer {
		if isBelow(r.outer[i].folded, folded) {
			return &r.outer[i].rule
		}
	}
	return nil
}

// sandboxHolds returns why a place is not in the sandbox, and what would be; ""
// if it is.
func (r *ready) sandboxHolds(p place, folded string, box *writable, before bool) (d Denial, want string) {
	none := RuleOrigin{Kind: OriginNone}
	for _, dir := range r.stores {
		if isBelow(dir, folded) || isBelow(folded, dir) {
			return Denial{CodeSandbox, RuleStoreDirectory, none}, "a path apart from the store's own directory"
		}
	}
	if box.Mode == ReadOnly {
		return Denial{CodeSandbox, RuleSandbox, originOf(r.Sandbox.Mode)}, "no path: nothing may be written under " + string(ReadOnly)
	}
	if before {
		return Denial{}, ""
	}
	in, named := r.held(p, box)
	if in && named {
		// What the session may hold now is within the bound, except that a
		// switch may name what no one has named to it.
		in, named = r.held(p, &r.bound)
	}
	switch {
	case !in && box.Mode == DangerFullAccess: // it lists no roots, and the bound is what did not hold
		return Denial{CodeSandbox, RuleSandboxRoots, originOf(r.Sandbox.Roots)}, r.wantRoots(r.bound.Sandbox)
	case !in:
		return Denial{CodeSandbox, RuleSandboxRoots, originOf(r.Sandbox.Roots)}, r.wantRoots(box.Sandbox)
	case !named:
		return Denial{CodeSandbox, RuleProtectedName, none}, wantUnprotected
	}
	return Denial{}, ""
}

const wantUnprotected = "a path outside of .git, .codex, .claude and .childlog"

// wantScope says where the write scope would have held a path.
func (r *ready) wantScope(p place) string {
	switch {
	case !p.inside:
		return wantWorkspace
	case Protected(p.target):
		return wantUnprotected + ", which need an entry of their own"
	}
	return r.scopeText
}

// wantRoots says where a sandbox would have held one. It names a few of the
// roots: a call may have a thousand paths, and a sandbox hundreds of roots.
func (r *ready) wantRoots(box Sandbox) string {
	const most = 4
	roots := box.Roots
	if len(roots.dirs) > most {
		roots.dirs = roots.dirs[:most]
	}
	want := "a path in " + roots.text()
	if more := len(box.Roots.dirs) - most; more > 0 {
		want += " and " + strconv.Itoa(more) + " more"
	}
	if !box.ExcludeSlashTmp && !r.Workspace.windows && !slices.Contains(roots.dirs, "/tmp") {
		want += " or /tmp"
	}
	return want
}

// held reports whether a sandbox holds a place, and whether all
// protected names on the way there were named.
func (r *ready) held(p place, box *writable) (in, named bool) {
	if box.Mode != WorkspaceWrite {
		return box.Mode == DangerFullAccess, true
	}
	path := r.Workspace.absolute(p)
	if p.inside && !r.anchored {
		return false, false
	}
	scope := r.own.Grant.Scope
	inScope := p.inside && scope.Stated() && scope.covers(p.target)
	for _, dir := range box.dirs {
		if !isBelow(dir, path) {
			continue
		}
		rest := path[len(dir):]
		if p.inside && len(p.target) < len(rest) { // the workspace is the deeper
			rest = p.target
		}
		in = true
		named = named || inScope || !Protected(rest)
	}
	return in, named
}

// writable is a canonical sandbox with the directories that it lets be written
// under workspace-write, in the form of [Workspace.absolute]: worked out once
// and not for every path.
type writable struct {
	Sandbox
	dirs []string
}

func (r *ready) writable(box Sandbox) writable {
	w := writable{Sandbox: box}
	if box.Mode != WorkspaceWrite {
		return w
	}
	w.dirs = make([]string, 0, len(box.Roots.dirs)+1)
	for _, dir := range box.Roots.dirs {
		w.dirs = append(w.dirs, slashed(dir))
	}
	if !box.ExcludeSlashTmp && !r.Workspace.windows {
		w.dirs = append(w.dirs, "/tmp")
	}
	return w
}

// callPathsOf returns the paths that a mutating call is held to, and whether
// there are no others. A recovery call that names none is held to what was
// admitted before.
func callPathsOf(c *Call, m *Moment, effect Effect) (paths []string, known bool) {
	paths, known = c.Paths, c.PathsKnown
	if effect == EffectRecovery && len(paths) == 0 && len(m.Admitted) > 0 {
		return m.Admitted, true
	}
	if len(paths) > MaxCallPaths {
		paths, known = paths[:MaxCallPaths], false
	}
	return paths, known && len(paths) > 0
}

// addTarget keeps each target once, in the order of the call.
func (d *Decision) addTarget(target string) {
	if !slices.Contains(d.Targets, target) {
		d.Targets = append(d.Targets, target)
	}
}
