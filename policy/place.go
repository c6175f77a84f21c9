package policy

import "strings"

// place is where a path of a call points, by its text.
type place struct {
	// target is relative to the workspace as [Workspace.Target] has it, or
	// absolute with forward slashes if the path points outside.
	target string
	inside bool
}

// place returns where raw points: as Target, and elsewhere if raw is absolute.
// A non-empty want refuses a path for its form, which no grant makes good: what
// would have to be rewritten to be compared might name another file.
func (w Workspace) place(raw string) (p place, want string) {
	if p.target, want = w.target(raw); want == "" {
		p.inside = true
		return p, ""
	}
	if want != wantWorkspace && want != wantRelative {
		return place{}, want
	}
	// Well formed so far, and absolute.
	if w.windows {
		raw = strings.ReplaceAll(raw, `\`, "/")
	}
	prefix := "/"
	if w.windows {
		if !hasDriveLetter(raw) {
			return place{}, wantWorkspace
		}
		prefix = raw[:3]
	}
	rest := strings.TrimLeft(raw[len(prefix):], "/")
	if rest == "" {
		return place{target: prefix}, ""
	}
	clean, want := cleanTarget(rest)
	switch {
	case want != "":
		return place{}, want
	case clean == ".":
		return place{target: prefix}, ""
	case len(prefix)+len(clean) == len(raw): // tidy
		return place{target: raw}, ""
	}
	return place{target: prefix + clean}, ""
}

// target is Target without an error to allocate.
func (w Workspace) target(raw string) (target, want string) {
	rel, want := w.relative(raw)
	if want != "" {
		return "", want
	}
	return cleanTarget(rel)
}

// absolute returns a place as an absolute path with forward slashes and none at
// its end: "" is the root of a posix system, and a relative path stays one where
// the workspace is at no known place.
func (w Workspace) absolute(p place) string {
	switch {
	case !p.inside:
		return strings.TrimRight(p.target, "/")
	case w.root == "":
		return p.target
	case p.target == ".":
		return strings.TrimRight(w.root, "/")
	}
	return strings.TrimRight(w.root, "/") + "/" + p.target
}

// slashed returns a directory, as [RootsOf] accepts it, in the form of
// [Workspace.absolute].
func slashed(dir string) string {
	if clean, err := cleanPath(dir); err == nil {
		if dir = clean; separator(clean) == '\\' {
			dir = strings.ReplaceAll(clean, `\`, "/")
		}
	}
	return strings.TrimRight(dir, "/")
}
