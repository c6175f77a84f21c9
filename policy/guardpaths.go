package policy

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// The bounds of reading one call. Beyond them the call is not read further and
// its paths are not known; a mutating one is refused.
const (
	// MaxCallPaths is the most different paths one call may name.
	MaxCallPaths = 1024

	maxArgDepth = 64 // as deep as facts may nest
	maxKeyBytes = 64 // longer keys are nobody's path argument
)

// CallPaths returns every path that the arguments of a call name, as given and
// without duplicates, and whether these are all: false if there is none, or if
// something that should name one could not be read. It looks at
//
//   - path, file_path, notebook_path and paths, wherever they are nested;
//   - source and destination, at the top, in edits[], and wherever they stand
//     together: a source alone may be that of a quotation;
//   - edits[], of which an item may name a path or not;
//   - the patches in patch and diff, in an input that is an envelope of Codex
//     and, if the tool's name says that it patches, in every text that looks
//     like one, wherever it is nested; see guardpatch.go for the dialects.
//
// Keys are compared folded and without "_" and "-", so filePath is file_path,
// and an argument that only differs in case from a checked one does not slip
// past. A null is an argument left out; any other value that is no text, list
// or object is doubt, as is an empty path, and so is a list or object of a type
// that no decoder of JSON makes: what is in it is not seen. An argument under
// another name is not found: the tools a harness declares as editing must use
// these.
//
// A custom tool whose whole input is one text is passed as {"input": text}.
// The order depends on the arguments only. Time and memory are linear in their
// size; paths share the memory of the arguments.
func CallPaths(tool string, args map[string]any) (paths []string, known bool) {
	c := callPaths{patches: strings.Contains(fold(clipKey(tool)), "patch")}
	c.object(args, 0, true)
	return c.paths, !c.doubt && len(c.paths) > 0
}

// callPaths collects the paths of one call.
type callPaths struct {
	paths   []string
	seen    map[string]bool
	doubt   bool // something was not understood, or there is more than may be
	patches bool // the tool applies patches
}

func (c *callPaths) add(path string) {
	switch {
	case c.seen[path]:
	case path == "" || len(c.paths) == MaxCallPaths:
		c.doubt = true
	default:
		if c.seen == nil {
			c.seen = map[string]bool{}
		}
		c.seen[path] = true
		c.paths = append(c.paths, path)
	}
}

// object reads one level of arguments, in the order of its keys: a map has
// none, and a decision must not depend on chance. In an outer level, the top
// or an item of edits, the ambiguous names count too.
func (c *callPaths) object(m map[string]any, depth int, outer bool) {
	if depth > maxArgDepth {
		c.doubt = true
		return
	}
	moves := outer || isMove(m)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		value := m[key]
		switch k := canonicalKey(key); {
		case k == "path" || k == "filepath" || k == "notebookpath" || k == "paths",
			moves && (k == "source" || k == "destination"):
			c.path(value, depth)
		case k == "edits":
			c.edits(value, depth)
		case k == "patch", k == "diff", k == "input" && outer && isEnvelope(value):
			if text, ok := value.(string); ok && (outer || looksLikePatch(text)) {
				c.patch(text)
			} else if outer && value != nil {
				c.doubt = true
			} else {
				c.other(value, depth, true)
			}
		default:
			c.other(value, depth, c.patches)
		}
	}
}

// isMove reports whether an object has both a source and a destination.
func isMove(m map[string]any) bool {
	from, to := false, false
	for key := range m {
		k := canonicalKey(key)
		from, to = from || k == "source", to || k == "destination"
	}
	return from && to
}

// path reads the value of an argument that names one path or several.
func (c *callPaths) path(value any, depth int) {
	switch v := value.(type) {
	case nil:
	case string:
		c.add(v)
	case []string:
		for _, p := range v {
			c.add(p)
		}
	case []any:
		for _, item := range v {
			switch item := item.(type) {
			case string:
				c.add(item)
			case map[string]any:
				c.object(item, depth+1, false)
			default:
				c.doubt = true
			}
		}
	default:
		c.doubt = true
	}
}

// edits reads a list of edits. Items without a path edit the file named beside
// the list; if none is, the call names no path at all.
func (c *callPaths) edits(value any, depth int) {
	switch v := value.(type) {
	case nil:
	case []any:
		for _, item := range v {
			if m, ok := item.(map[string]any); ok {
				c.object(m, depth+1, true)
			} else {
				c.doubt = true
			}
		}
	case []map[string]any:
		for _, m := range v {
			c.object(m, depth+1, true)
		}
	default:
		c.doubt = true
	}
}

// other reads an argument that is not about paths: what is nested in it may be,
// and where patches are looked for, a text that looks like one is.
func (c *callPaths) other(value any, depth int, patches bool) {
	if depth >= maxArgDepth {
		c.doubt = c.doubt || value != nil
		return
	}
	switch v := value.(type) {
	case nil:
	case string:
		if patches && looksLikePatch(v) {
			c.patch(v)
		}
	case map[string]any:
		c.object(v, depth+1, false)
	case []any:
		for _, item := range v {
			c.other(item, depth+1, patches)
		}
	case []string:
		for _, item := range v {
			c.other(item, depth+1, patches)
		}
	case []map[string]any:
		for _, m := range v {
			c.object(m, depth+1, false)
		}
	default:
		c.doubt = c.doubt || !isScalar(v)
	}
}

// isScalar reports whether a value holds nothing but itself.
func isScalar(value any) bool {
	switch reflect.TypeOf(value).Kind() {
	case reflect.Map, reflect.Slice, reflect.Array, reflect.Struct, reflect.Pointer, reflect.Interface:
		return false
	}
	return true
}

// canonicalKey returns the form under which argument names are compared.
func canonicalKey(key string) string {
	if len(key) > maxKeyBytes {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return -1
		}
		return r
	}, fold(key))
}

// clipKey bounds the work of folding a name that no registry would accept.
func clipKey(name string) string { return name[:min(len(name), 2*maxKeyBytes)] }
