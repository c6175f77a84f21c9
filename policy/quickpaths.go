package policy

// quickPaths accepts the usual paths of edits without allocating: tidy ones in
// the workspace that nothing stands against. It says no whenever it is not sure;
// judge then says the last word. It compares within the workspace alone, so the
// roots are kept relative to it.
type quickPaths struct {
	workspace Workspace
	denied    DenyPaths
	scope     Scope
	in, bound quickBox
	stores    []string // the store's directories below the workspace, folded
	never     bool     // the workspace lies in one, or at no known place
}

// quickBox is where a sandbox lets be written, as far as it lies in a workspace.
type quickBox struct {
	all   bool     // everything, whatever its name
	whole bool     // all of the workspace but protected names
	below []string // relative directories, without protected names below them
}

func quickPathsOf(r *ready) *quickPaths {
	q := &quickPaths{
		workspace: r.Workspace, denied: r.denyPaths, scope: r.own.Grant.Scope,
		in: r.quickBoxOf(&r.box), bound: r.quickBoxOf(&r.bound), never: !r.anchored,
	}
	home := fold(r.Workspace.absolute(place{".", true}))
	for _, dir := range r.stores {
		if isBelow(dir, home) {
			q.never = true
		} else if isBelow(home, dir) {
			q.stores = append(q.stores, dir[len(home)+1:])
		}
	}
	return q
}

func (r *ready) quickBoxOf(box *writable) quickBox {
	if box.Mode != WorkspaceWrite {
		return quickBox{all: box.Mode == DangerFullAccess}
	}
	var b quickBox
	home := r.Workspace.absolute(place{".", true})
	for _, dir := range box.dirs {
		if isBelow(dir, home) {
			b.whole = true
		} else if isBelow(home, dir) {
			b.below = append(b.below, dir[len(home)+1:])
		}
	}
	return b
}

// accept returns the target of a path that nothing stands against.
func (q *quickPaths) accept(raw string) (target string, ok bool) {
	if q.never {
		return "", false
	}
	target, want := q.workspace.target(raw)
	if want != "" || target == "." {
		return "", false
	}
	if len(q.denied.entries) > 0 {
		if _, denied := q.denied.Covers(target); denied {
			return "", false
		}
	}
	named := false // by the scope
	if q.scope.Stated() {
		if named = q.scope.covers(target); !named {
			return "", false
		}
	}
	if !q.in.holds(target, named) || !q.bound.holds(target, named) {
		return "", false
	}
	if len(q.stores) > 0 && !isASCII(target) {
		return "", false
	}
	for _, dir := range q.stores {
		if isBelowFolded(dir, target) || holdsFolded(target, dir) {
			return "", false
		}
	}
	return target, true
}

func (b *quickBox) holds(target string, named bool) bool {
	if b.all || b.whole && (named || !Protected(target)) {
		return true
	}
	for _, dir := range b.below {
		if isBelow(dir, target) && (named || !Protected(target[len(dir):])) {
			return true
		}
	}
	return false
}

// holdsFolded is isBelow(fold(dir), path) for an ASCII dir and a folded path.
func holdsFolded(dir, path string) bool {
	return len(path) > len(dir) && path[len(dir)] == '/' && equalFoldASCII(dir, path[:len(dir)])
}
