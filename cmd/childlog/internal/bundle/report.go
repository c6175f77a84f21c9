package bundle

import (
	"fmt"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// Status is the outcome of a check, the worst thing that was found.
type Status string

// Outcomes.
const (
	Verified   Status = "verified"
	Redacted   Status = "verified with redactions" // contents are gone, and marked as gone
	Intact     Status = "intact"                   // it agrees with itself; nobody's key was given to prove more
	Incomplete Status = "incomplete"               // something that was named is not there, or not vouched for
	Failed     Status = "failed"                   // something is not what it was
)

// Finding is one thing that is wrong or missing, with its place.
type Finding struct {
	Kind     string // a constant of package eventlog (FindChain, ...), or one of the below
	Session  uuid.UUID
	Seq      uint64
	Position uint64
	Detail   string
	Missing  bool // something is not there; else something is not what it was
}

// Kinds of findings beside those of package eventlog.
const (
	FindSignature = "signature"
	FindTree      = "tree"
	FindPolicy    = "policy"
)

const maxFindings = 1000

// SessionReport is what was proven of one log.
type SessionReport struct {
	Listed
	Complete bool   // every frame from seq 1 to the head is there and follows
	Covered  uint64 // the last seq that the checkpoint covers
	Gone     uint64 // contents that were left out or erased, and are marked so
}

// Report is the result of a check.
type Report struct {
	Head
	Sessions   []SessionReport
	Frames     uint64
	Events     uint64
	Contents   uint64 // compared with their commitments
	Withheld   uint64 // contents that were left out when the bundle was made
	Erased     uint64 // contents that had been erased before, with a marker
	Purged     uint64 // positions whose frames had been purged
	Root       eventlog.Hash
	Digest     eventlog.Hash        // SHA-256 of the file before its trailer
	Checkpoint *eventlog.Checkpoint // the signed one inside
	Signer     string               // name and hash of the key that was given and holds
	Anchored   bool                 // it agrees with a checkpoint that was kept outside
	Findings   []Finding
	More       uint64 // findings beyond those listed
}

func (r *Report) add(f Finding) {
	if len(r.Findings) >= maxFindings {
		r.More++
		return
	}
	r.Findings = append(r.Findings, f)
}

// Status is the outcome.
func (r *Report) Status() Status {
	s := Verified
	if r.Withheld+r.Erased+r.Purged > 0 {
		s = Redacted
	}
	for _, f := range r.Findings {
		if !f.Missing {
			return Failed
		}
		s = Incomplete
	}
	if s != Incomplete && r.Signer == "" {
		s = Intact
	}
	return s
}

// Statement says in one sentence what was proven, and what was not.
func (r *Report) Statement() string {
	switch r.Status() {
	case Failed:
		return "not intact: something in the bundle is not what it was when it was written"
	case Incomplete:
		return "incomplete: what is here is intact, and something that was named is not here or not vouched for"
	}
	what := "the whole store"
	if !r.Whole {
		what = "a selection of sessions"
	}
	if r.Signer == "" {
		return fmt.Sprintf("intact, completeness unproven: %s, and no key was given to hold the checkpoint against", what)
	}
	text := fmt.Sprintf("%s: every log is whole from seq 1 to its head, in the tree of %d positions that %s signed", what, r.Checkpoint.Size, r.Signer)
	if !r.Whole {
		text += "; that no later event of these sessions is in that tree is proven by a bundle of the whole store only"
	}
	return text
}
