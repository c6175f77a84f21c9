package deepseek

import (
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
)

// Codes of findings of this format.
const (
	codeHeader        = "header"         // a field of the header that can't be read
	codePlaceholder   = "placeholder-id" // the id names no session
	codeCollision     = importer.CodeCollision
	codeParentUnclear = "parent-ambiguous"
	codeSeedBoundary  = "seed-boundary"    // the end of the fork seed is not where a line ends
	codeSeq           = "seq"              // the log's own numbers skip or repeat
	codeForeignField  = "foreign-field"    // a policy event says more than is understood
	codeUnknownPolicy = "unknown-policy"   // an event of a policy family that is not understood
	codeSecondHeader  = "second-header"    // a header that is not the first line
	codeBadPin        = "bad-pin"          // a delegation that pins approvals to something else
	codeRootClaim     = "root-claim"       // a root that claims a delegated policy
	codeTooManyOpen   = "too-many-open"    // calls or asks without an end
	codeTooMuchPolicy = "too-much-policy"  // policy events beyond what the report folds
	codeCapture       = "capture-differs"  // the child does not hold what its parent held
	codeUnlinked      = "seed-not-located" // the parent's events are not in the store
)

// maxDepth bounds what a header may count.
const maxDepth = 1 << 20

// header is the first line of a log.
type header struct {
	sum       [32]byte // of the line
	id        string
	parent    string // "": none named
	origin    string
	depth     int // -1: not stated
	seed      uint64
	seedState state
	created   time.Time // zero: not stated
	cwd       string
	workspace string // cwd as policy takes it, or ""
	style     string
	problems  []string
}

// state of an optional field.
type state uint8

const (
	absent state = iota
	stated
	broken
)

var errNoHeader = errors.New(`the first line is no object of type "session" with an id`)

// parseHeader reads the first line. Only its id is required; a field that
// can't be read is a problem to report and counts as the most careful value.
func parseHeader(raw []byte) (header, error) {
	h := header{sum: sha256.Sum256(raw), depth: -1}
	if eventlog.CheckJSON(raw) != nil {
		return h, errNoHeader
	}
	doc := jsontext.Value(raw)
	if typ, _ := importer.Text(doc, "type"); typ != "session" {
		return h, errNoHeader
	}
	id, ok := importer.Text(doc, "id")
	if !ok || id == "" {
		return h, errNoHeader
	}
	h.id = importer.Bounded(id)
	odd := func(field string) { h.problems = append(h.problems, field) }
	if v := importer.At(doc, "version"); v == nil || string(v) != "0" {
		odd("version is not 0")
	}
	if v := importer.At(doc, "parentSession"); v != nil && v.Kind() != 'n' {
		if h.parent, ok = importer.Text(v); !ok || h.parent == "" {
			odd("parentSession is no id")
		}
		h.parent = importer.Bounded(h.parent)
	}
	h.origin, _ = importer.Text(doc, "origin")
	if v := importer.At(doc, "delegationDepth"); v != nil {
		if n, ok := importer.Integer(v); ok && n <= maxDepth {
			h.depth = int(n)
		} else {
			odd("delegationDepth is no depth")
		}
	}
	if v := importer.At(doc, "seedLength"); v != nil && v.Kind() != 'n' {
		if h.seed, ok = importer.Integer(v); ok {
			h.seedState = stated
		} else {
			h.seedState = broken
			odd("seedLength is no number of events: every line counts as the parent's")
		}
	}
	if v := importer.At(doc, "createdAt"); v != nil {
		if t, ok := millis(v); ok {
			h.created = t
		} else {
			odd("createdAt is no time")
		}
	}
	if cwd, ok := importer.Text(doc, "cwd"); ok {
		h.cwd = importer.Clip(cwd)
		if roots, err := policy.RootsOf(cwd); err == nil {
			h.workspace, h.style = roots.List()[0], "posix"
			if !strings.HasPrefix(h.workspace, "/") {
				h.style = "windows"
			}
		}
	}
	return h, nil
}

// isChild: any one of the three says that somebody delegated this session.
func (h *header) isChild() bool { return h.parent != "" || h.origin == "subagent" || h.depth > 0 }

// placeholder: the id names no session, so the file has to.
func (h *header) placeholder() bool { return h.parent == h.id || isPlaceholder(h.id) }

// parentPlaceholder: the named parent is no session either.
func (h *header) parentPlaceholder() bool { return h.parent == h.id || isPlaceholder(h.parent) }

func isPlaceholder(id string) bool { return strings.HasPrefix(id, "{{") && strings.HasSuffix(id, "}}") }

// lastMilli is the end of the years that eventlog keeps.
var lastMilli = uint64(time.Date(2261, 12, 31, 23, 59, 59, 0, time.UTC).UnixMilli())

// millis reads a time in milliseconds since 1970.
func millis(raw jsontext.Value) (time.Time, bool) {
	n, ok := importer.Integer(raw)
	if !ok || n > lastMilli {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(n)).UTC(), true
}
