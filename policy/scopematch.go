package policy

import "strings"

// The one matcher. Everything that compares paths of a workspace, lexically or
// after asking the file system, goes through the functions of this file; two
// matchers that differ in one corner are a way around the stricter one.

// isBelow reports whether path is dir or lies below it. Both are relative and
// clean. Only a whole segment counts: src does not contain srcx.
func isBelow(dir, path string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/')
}

// covers reports whether the entry of a scope admits path: equal or below, and
// no protected name on the way from one to the other. It is transitive, which
// is what makes the meet of scopes a meet.
func covers(entry, path string) bool {
	return isBelow(entry, path) && !Protected(path[len(entry):])
}

// protectedNames are the directories that configure what runs next: the hooks
// and configuration of a repository, the rules and permissions of two harnesses,
// and what a guard reads of a project. A write there is a way out of every scope.
var protectedNames = [...]string{".git", ".codex", ".claude", ".childlog"}

// Protected reports whether a relative path has a segment .git, .codex, .claude
// or .childlog, at any level: a nested repository or a submodule has hooks that run
// as well. Names are compared folded, and with the short names windows gives
// them, since some file systems open .GIT, git~1 or a full-width spelling as
// the same directory.
func Protected(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment != "" && isProtectedName(segment) {
			return true
		}
	}
	return false
}

func isProtectedName(segment string) bool {
	if !isASCII(segment) {
		segment = fold(segment)
	}
	// NTFS drops final dots and spaces from a name.
	segment = strings.TrimRight(segment, ". ")
	if n := len(segment); n > 2 && segment[n-2] == '~' && '0' <= segment[n-1] && segment[n-1] <= '9' {
		for _, name := range protectedNames {
			if equalFoldASCII(segment[:n-2], name[1:min(len(name), 7)]) { // of six characters at most
				return true
			}
		}
		return false
	}
	for _, name := range protectedNames {
		if equalFoldASCII(segment, name) {
			return true
		}
	}
	return false
}

// comparePaths orders clean paths so that a directory comes right before all
// that lies below it: "/" sorts before every other byte.
func comparePaths(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] == b[i] {
			continue
		}
		switch {
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		case a[i] < b[i]:
			return -1
		}
		return 1
	}
	return len(a) - len(b)
}
