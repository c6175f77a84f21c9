package redact

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"childlog/eventlog"
)

// Root is a directory whose absolute path gives way to its id: in /srv/acme/a
// with the root /srv/acme and the id w1 the text becomes <root:w1>/a. Without
// the path of the workspace a reader still sees which of its files is meant.
type Root struct {
	Path string // absolute, of either style
	ID   string // as the name of a rule
}

// detector names of the paths in counts.
const (
	rootCount = "root-path"
	homeCount = "home-path"
)

// sortedRoots checks roots and puts the longest first, so that the innermost
// one names a path.
func sortedRoots(roots []Root) ([]Root, error) {
	var out []Root
	for _, r := range roots {
		r.Path = strings.TrimRight(r.Path, `/\`)
		switch {
		case !ruleName().MatchString(r.ID):
			return nil, fmt.Errorf("%w: root: id: want 1 to 64 lower-case letters, digits and dashes, got %.40q", eventlog.ErrInvalid, r.ID)
		case len(r.Path) < 2 || r.Path[0] != '/' && !isDrive(r.Path):
			return nil, fmt.Errorf("%w: root %s: want the absolute path of a directory below the root of its file system", eventlog.ErrInvalid, r.ID)
		}
		out = append(out, r)
		if strings.Contains(r.Path, `\`) { // as it stands in a text that quotes another
			out = append(out, Root{strings.ReplaceAll(r.Path, `\`, `\\`), r.ID}, Root{strings.ReplaceAll(r.Path, `\`, `/`), r.ID})
		}
	}
	slices.SortStableFunc(out, func(a, b Root) int { return len(b.Path) - len(a.Path) })
	return out, nil
}

func isDrive(p string) bool {
	return len(p) > 3 && letters[p[0]] && p[1] == ':' && (p[2] == '\\' || p[2] == '/')
}

// paths masks the roots and home directories of a text.
func (f *Filter) paths(t []byte, c Counts) []byte {
	for _, r := range f.roots {
		t = maskPath(t, []byte(r.Path), func(at int) (int, bool) {
			end := at + len(r.Path)
			return end, end == len(t) || !pathByte[t[end]]
		}, "<root:"+r.ID+">", rootCount, c)
	}
	if f.homes {
		for _, parent := range []string{"/home/", "/Users/", `:\Users\`, `:\\Users\\`, ":/Users/"} {
			t = maskPath(t, []byte(parent), func(at int) (int, bool) {
				end := pathByte.run(t, at+len(parent), 256)
				return end, end > at+len(parent)
			}, "<root:home>", homeCount, c)
		}
	}
	return t
}

var pathByte = func() *alphabet {
	a := newAlphabet("09azAZ", "_-.~+@")
	for c := 0x80; c < 0x100; c++ {
		a[c] = true
	}
	return a
}()

// maskPath replaces what begins with a prefix where a path can begin. A drive's
// letter before the prefix goes with it.
func maskPath(t, prefix []byte, end func(at int) (int, bool), with, count string, c Counts) []byte {
	var out []byte
	done := 0
	for at := 0; ; {
		i := bytes.Index(t[at:], prefix)
		if i < 0 {
			break
		}
		from := at + i
		to, ok := end(from)
		at = from + len(prefix)
		if prefix[0] == ':' && from > done && letters[t[from-1]] {
			from--
		}
		if !ok || from > 0 && (pathByte[t[from-1]] && !endsEscape(t, from) || t[from-1] == '/') && !bytes.HasSuffix(t[:from], []byte("://")) {
			continue
		}
		out = append(append(out, t[done:from]...), with...)
		done, at = to, to
		c.add(count)
	}
	if done == 0 {
		return t
	}
	return append(out, t[done:]...)
}
