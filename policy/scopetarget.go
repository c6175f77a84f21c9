package policy

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The path styles of a workspace, as session/created records them.
const (
	PathStylePosix   = "posix"
	PathStyleWindows = "windows"
)

// Workspace is what the targets of calls are relative to. The zero value is a
// posix workspace at an unknown place, in which every absolute target is
// outside. It is an immutable value, safe for concurrent use.
type Workspace struct {
	root    string // absolute, clean, with forward slashes; "" if unknown
	windows bool
}

// NewWorkspace returns the workspace at root, which may be "" if it is unknown.
// The style is posix or windows, or "" for the style root is written in.
// Wrapped [ErrInvalid] for another style, a malformed root (see [RootsOf]) or
// one of the other style.
func NewWorkspace(root, pathStyle string) (Workspace, error) {
	var w Workspace
	if root != "" {
		clean, err := cleanPath(root)
		if err != nil {
			return Workspace{}, err
		}
		w.windows = separator(clean) == '\\'
		// A root C:\ keeps its slash, as / does; no other root has a final one.
		if w.root = clean; w.windows {
			w.root = strings.ReplaceAll(clean, `\`, "/")
		}
	}
	switch {
	case pathStyle != "" && pathStyle != PathStylePosix && pathStyle != PathStyleWindows:
		return Workspace{}, invalid("path style: got %s, want %s or %s", quoted(pathStyle), PathStylePosix, PathStyleWindows)
	case root == "":
		w.windows = pathStyle == PathStyleWindows
	case pathStyle != "" && w.windows != (pathStyle == PathStyleWindows):
		return Workspace{}, invalid("workspace root: got %s, want a %s path", quoted(root), pathStyle)
	}
	return w, nil
}

// String renders the root, with forward slashes, and the path style.
func (w Workspace) String() string {
	if w.windows {
		return w.root + " (" + PathStyleWindows + ")"
	}
	return w.root + " (" + PathStylePosix + ")"
}

// Target returns where a call points, relative to workspaceRoot and with
// forward slashes, "." for the workspace itself; see [Workspace.Target]. It
// also returns the errors of [NewWorkspace].
func Target(workspaceRoot, pathStyle, raw string) (string, error) {
	w, err := NewWorkspace(workspaceRoot, pathStyle)
	if err != nil {
		return "", err
	}
	return w.Target(raw)
}

// Target returns the place in the workspace that raw, a path given in a call,
// names. A relative path is taken as relative to the workspace root; an
// absolute one must lie below it by its text. The name of a file is never
// changed: what would have to be trimmed, normalized or resolved to be
// compared might name another file on disk, so it is outside. Only empty and
// "." segments are read over, which no file system tells apart, and on windows
// both separators count.
//
// A [*TargetError] for a path that is empty, longer than 4,096 bytes, not valid
// UTF-8 or not NFC, has outer spaces, a control or bidi character or a ".."
// segment, in the posix style a "\", in the windows style a name that windows
// rewrites; that begins with "~" or, relative, with a drive letter, which some
// tools expand; or that is absolute and elsewhere.
func (w Workspace) Target(raw string) (string, error) {
	target, want := w.target(raw)
	if want != "" {
		return "", &TargetError{Target: raw, Want: want}
	}
	return target, nil
}

// What a target must be. One set of words, so that codes and messages agree.
const (
	wantPath      = "a path"
	wantShort     = "at most 4096 bytes"
	wantWorkspace = "a path in the workspace"
	wantRelative  = "a path relative to the workspace"
	wantNoParent  = "no .. segment"
	wantNoControl = "no control or bidi characters"
	wantNoSlash   = `no \`
	wantNoSpaces  = "no outer spaces"
	wantUTF8      = "valid UTF-8"
	wantNFC       = "a name in NFC"
	wantNoTilde   = "no leading ~"
	wantNoDrive   = "no drive letter"
	wantNoAlias   = "no colon and no final dot or space in a name"
)

// relative cuts the workspace root from an absolute path and leaves the
// segments of the rest as they are.
func (w Workspace) relative(raw string) (rel, want string) {
	switch {
	case raw == "":
		return "", wantPath
	case len(raw) > maxPathBytes:
		return "", wantShort
	case strings.TrimSpace(raw) != raw:
		return "", wantNoSpaces
	case raw[0] == '~':
		return "", wantNoTilde
	}
	if w.windows {
		raw = strings.ReplaceAll(raw, `\`, "/")
		if want := windowsNames(raw); want != "" {
			return "", want
		}
	}
	switch absolute := raw[0] == '/'; {
	case w.windows && absolute:
		// A share, a device, or relative to whatever drive is current.
		return "", wantWorkspace
	case hasDriveLetter(raw):
		if !w.windows || len(raw) == 2 || raw[2] != '/' {
			return "", wantNoDrive
		}
	case !absolute:
		return raw, ""
	}
	if w.root == "" {
		return "", wantRelative
	}
	if rel, ok := w.below(raw); ok {
		return rel, ""
	}
	// Not spelled as the root is. Tidied it may be, but only without a "..":
	// its lexical and its real meaning may differ.
	segments := strings.Split(raw, "/")
	for _, segment := range segments {
		if segment == ".." {
			return "", wantNoParent
		}
	}
	prefix := "/"
	if w.windows {
		prefix, segments = raw[:3], segments[1:]
	}
	if rel, ok := w.below(join(prefix, segments, "/")); ok {
		return rel, ""
	}
	return "", wantWorkspace
}

// below returns what follows the root in an absolute path.
func (w Workspace) below(path string) (rel string, ok bool) {
	rest, ok := strings.CutPrefix(path, w.root)
	if !ok || rest != "" && rest[0] != '/' && !strings.HasSuffix(w.root, "/") {
		return "", false
	}
	if rest = strings.TrimLeft(rest, "/"); rest == "" {
		return ".", true
	}
	return rest, true
}

// windowsNames refuses segments that windows would open under another name.
func windowsNames(path string) (want string) {
	if hasDriveLetter(path) {
		path = path[2:]
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment != "." && segment != ".." && isWindowsAlias(segment) {
			return wantNoAlias
		}
	}
	return ""
}

// cleanTarget returns a relative target without empty and "." segments, or
// what it would have to be. A tidy ASCII path is returned as it is, without
// allocating: every call of a session passes here.
func cleanTarget(p string) (clean, want string) {
	switch {
	case p == "":
		return "", wantPath
	case len(p) > maxPathBytes:
		return "", wantShort
	case p[0] == '/':
		return "", wantRelative
	}
	ascii, tidy, start := true, true, 0
	for i := 0; i <= len(p); i++ {
		if i == len(p) || p[i] == '/' {
			switch p[start:i] {
			case "..":
				return "", wantNoParent
			case "", ".":
				tidy = false
			}
			start = i + 1
			continue
		}
		switch c := p[i]; {
		case c < ' ', c == 0x7f:
			return "", wantNoControl
		case c == '\\':
			return "", wantNoSlash
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	switch {
	case strings.TrimSpace(p) != p:
		return "", wantNoSpaces
	case ascii:
	case !utf8.ValidString(p):
		return "", wantUTF8
	case strings.ContainsFunc(p, isControlOrBidi):
		return "", wantNoControl
	case !norm.NFC.IsNormalString(p):
		return "", wantNFC
	}
	if tidy {
		return p, ""
	}
	switch p = join("", strings.Split(p, "/"), "/"); {
	case p == "":
		return ".", ""
	case strings.TrimSpace(p) != p: // "./ a" hid one
		return "", wantNoSpaces
	}
	return p, ""
}
