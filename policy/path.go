package policy

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPathBytes is the longest path accepted, in bytes as given: PATH_MAX of
// Linux. It also keeps an error message that quotes a path of a bounded size.
const maxPathBytes = 4096

// separator returns the one separator of a cleaned path. Only posix paths
// begin with a slash; windows paths begin with a drive letter.
func separator(clean string) byte {
	if clean[0] == '/' {
		return '/'
	}
	return '\\'
}

// contains reports whether path is dir or lies below it; both are cleaned.
// Only a whole segment counts, so /src does not contain /srcx. A posix and a
// windows path never contain each other: they differ in the first byte.
func contains(dir, path string) bool {
	if !strings.HasPrefix(path, dir) {
		return false
	}
	sep := separator(dir)
	return len(path) == len(dir) || dir[len(dir)-1] == sep || path[len(dir)] == sep
}

// cleanPath returns the one spelling under which an absolute path is stored
// and compared: empty and "." segments dropped, no trailing separator, on
// windows backslashes throughout. Case and Unicode form stay as given, because
// they tell real files apart.
//
// ".." is refused rather than resolved: behind a symbolic link its lexical and
// its real meaning differ, and the lexical one may be the wider.
func cleanPath(p string) (string, error) {
	switch {
	case len(p) > maxPathBytes:
		return "", invalid("root: got a path of %d bytes, want at most %d", len(p), maxPathBytes)
	case !utf8.ValidString(p):
		return "", invalid("root: got %q, want valid UTF-8", p)
	case strings.ContainsFunc(p, unicode.IsControl):
		return "", invalid("root: got %q, want no control characters", p)
	}
	isSlash := func(r rune) bool { return r == '/' || r == '\\' }
	// Both separators count here in both styles: a reader that takes the
	// backslash of a posix name for a separator must not climb out either.
	for segment := range strings.FieldsFuncSeq(p, isSlash) {
		if segment == ".." {
			return "", invalid("root: got %q, want no .. segment", p)
		}
	}
	switch {
	case strings.HasPrefix(p, "/"):
		return join("/", strings.Split(p, "/"), "/"), nil
	case hasDrive(p):
		segments := strings.FieldsFunc(p[3:], isSlash)
		for _, segment := range segments {
			if segment != "." && isWindowsAlias(segment) {
				return "", invalid("root: got %q, want no colon and no final dot or space in %q", p, segment)
			}
		}
		return join(p[:2]+`\`, segments, `\`), nil
	}
	return "", invalid(`root: got %q, want an absolute path, /... or C:\...`, p)
}

// join puts the segments that name something below prefix.
func join(prefix string, segments []string, sep string) string {
	kept := make([]string, 0, len(segments))
	for _, segment := range segments {
		if segment != "" && segment != "." {
			kept = append(kept, segment)
		}
	}
	return prefix + strings.Join(kept, sep)
}

// hasDrive reports whether p is C:\... or C:/... with any ASCII letter. C:a is
// relative to the drive's current directory, so it is not absolute.
func hasDrive(p string) bool {
	return len(p) >= 3 && (p[2] == '\\' || p[2] == '/') && p[1] == ':' &&
		('a' <= p[0] && p[0] <= 'z' || 'A' <= p[0] && p[0] <= 'Z')
}

// isWindowsAlias reports whether windows would open another name than the one
// written: it drops final dots and spaces, and a colon selects a stream.
func isWindowsAlias(segment string) bool {
	return strings.Contains(segment, ":") || strings.HasSuffix(segment, ".") || strings.HasSuffix(segment, " ")
}
