package importer

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// Finding is something about an input that a reader should know. It never
// widens anything.
type Finding struct {
	Code    string    `json:"code"`
	File    string    `json:"file"`
	Line    int64     `json:"line"`
	Session uuid.UUID `json:"session"`
	Seq     uint64    `json:"seq"`
	Detail  string    `json:"detail"`
}

// Codes of findings that every format shares; a format adds its own, and the
// fold those of package replay. They are stable.
const (
	CodeUnreadableFile = "unreadable-file" // it can't be opened, or reading failed on the way
	CodeNoHeader       = "no-header"       // the first line is no session's
	CodeTorn           = "torn"            // bytes behind the last newline, left for a later run
	CodeUnreadable     = "unreadable"      // a line that is no unambiguous JSON, kept as octets
	CodeTooLong        = "too-long"        // a line over the limit of a content, kept as its digest
	CodeMalformed      = "malformed"       // a line of a known type without what the type needs
	CodeUnknownType    = "unknown-type"    // kept as it is
	CodeTime           = "time"            // a time that is none
	CodeChanged        = "changed"         // the file differs from what was imported; nothing was added
	CodeShorter        = "shorter"         // the file holds less than what was imported; nothing was added
	CodeRefused        = "refused"         // strict: nothing of the file was taken
	CodeParentMissing  = "parent-missing"
	CodeParentInferred = "parent-inferred"
	CodeParentCycle    = "parent-cycle"
	CodeNativeParent   = "native-parent" // the named parent is native; nothing is attached to it
	CodeNativeID       = "native-id"     // the id is registered to a native session
	CodePurged         = "purged"        // its session was removed from this store on record; nothing was added
	CodeDamaged        = "damaged"       // the store's own copy can't be read
	CodeCollision      = "id-collision"  // another session has this id
	CodeRewritten      = "rewritten"     // the file changed while it was read
)

// perCode bounds the findings of one code in one file: a file of a million
// broken lines must not fill the memory, or the screen.
const perCode = 50

// Findings collects what an import finds.
type Findings struct {
	list []Finding
	more map[[2]string]int
	seen map[[2]string]int
}

// Add keeps a finding, or counts it if its file has enough of its code.
func (fs *Findings) Add(f Finding) {
	if fs.seen == nil {
		fs.seen, fs.more = map[[2]string]int{}, map[[2]string]int{}
	}
	key := [2]string{f.File, f.Code}
	if fs.seen[key]++; fs.seen[key] > perCode {
		fs.more[key]++
		return
	}
	fs.list = append(fs.list, f)
}

// List returns what was found by file and line; a count stands for what was
// left out. It is never nil.
func (fs *Findings) List() []Finding {
	out := append([]Finding{}, fs.list...)
	for key, n := range fs.more {
		out = append(out, Finding{Code: key[1], File: key[0], Line: 1<<63 - 1, Detail: fmt.Sprintf("and %d more of this kind in this file", n)})
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Code, b.Code))
	})
	for i := range out {
		if out[i].Line == 1<<63-1 {
			out[i].Line = 0
		}
	}
	return out
}
