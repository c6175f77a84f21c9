package eventlog

import (
	"slices"

	"github.com/google/uuid"
)

// SalvageReport is the statement of a salvage: what was there, what was taken
// over and what is lost. It is written beside the new store as SALVAGE.json.
// Lists are complete unless a field says otherwise, and never null.
type SalvageReport struct {
	Source string `json:"source"` // absolute path
	Target string `json:"target"` // absolute path; "" for a dry run

	Store             uuid.UUID `json:"store"`
	IdentityFrom      string    `json:"identity_from"` // IDENTITY, store.db or new: a new id, since both were gone
	SourceIncarnation uint64    `json:"source_incarnation"`
	Incarnation       uint64    `json:"incarnation"` // of the new store

	FileBytes    int64          `json:"file_bytes"`
	PageSize     int            `json:"page_size"`
	Pages        uint64         `json:"pages"` // whole pages in the file
	PagesDamaged uint64         `json:"pages_damaged"`
	Metas        [2]SalvageMeta `json:"metas"`
	Base         string         `json:"base"`     // one of the Base constants
	Problems     []string       `json:"problems"` // of the pages, the first 200
	MoreProblems uint64         `json:"more_problems"`

	Positions  uint64        `json:"positions"` // of the journal, lost ones included
	Frames     SalvageFrames `json:"frames"`    // taken over
	Sessions   uint64        `json:"sessions"`
	Events     uint64        `json:"events"`
	Contents   uint64        `json:"contents"`
	Redacted   uint64        `json:"contents_redacted"` // erased on record: no loss
	Tombstones uint64        `json:"tombstones"`

	Lost         []LostPositions `json:"lost"`
	LostFrames   uint64          `json:"lost_frames"`
	LostContents uint64          `json:"lost_contents"`
	Damaged      []SessionLoss   `json:"damaged_sessions"`
	InDoubt      uint64          `json:"sessions_in_doubt"` // whole as far as is known, but a frame of nobody lies behind their last one

	// RulesInDoubt: the operator's rules may have been lost, or some of them.
	// They hold for every session, so nothing can be decided in the new store.
	RulesInDoubt bool `json:"rules_in_doubt"`

	// TailDoubt says why frames may be missing behind the last one, "" if none
	// can be. Then no session's policy can be read in the new store.
	TailDoubt string         `json:"tail_doubt"`
	Tail      []UnprovenTail `json:"unproven_tail"`
	Unproven  uint64         `json:"unproven_frames"` // found for lost positions, but nothing proves them: left out
	Unplaced  uint64         `json:"unplaced_frames"` // on pages whose keys leave open where they belong: left out
	Conflicts []Conflict     `json:"conflicts"`       // the first 200
	MoreConfl uint64         `json:"more_conflicts"`

	Findings uint64 `json:"check_findings"` // of a full check of the new store
	Complete bool   `json:"complete"`       // nothing was lost
}

// What the tree that counts hangs on.
const (
	BaseNewest = "newest-meta"
	BaseOlder  = "older-meta" // the newest one leads nowhere
	BaseRoot   = "root-page"  // no meta page is valid; the newest root page that was found
	BaseNone   = "none"       // pages without a tree
)

// SalvageMeta is one of the two meta pages: valid, repaired (one byte was
// wrong, and the checksum says which) or invalid.
type SalvageMeta struct {
	State  string `json:"state"`
	Txid   uint64 `json:"txid"`
	Reason string `json:"reason"`
}

// SalvageFrames counts frames by where they were found.
type SalvageFrames struct {
	Tree   uint64 `json:"tree"`   // where the tree leads to
	CutOff uint64 `json:"cutoff"` // on pages of the tree that no branch leads to any more
	Carved uint64 `json:"carved"` // on free pages, proven by the hash chain
	Tail   uint64 `json:"tail"`   // unproven, taken over because it was asked for
}

// LostPositions is a range of positions whose frames are lost. Session says
// whose they were if that is proven or if a damaged frame still says so; else
// it is nil, and every session that has nothing newer may have lost its end.
type LostPositions struct {
	From    uint64     `json:"from"`
	To      uint64     `json:"to"`
	Session *uuid.UUID `json:"session"`
	Seq     uint64     `json:"seq"`   // from which seq on the session lost events, 0 if unknown
	Known   string     `json:"known"` // how: chain, frame, index, or ""
}

// SessionLoss is what one session lost. It is read only in the new store if it
// lost events.
type SessionLoss struct {
	Session  uuid.UUID  `json:"session"`
	Head     uint64     `json:"head"` // seq of its last event in the new store
	Lost     []SeqLoss  `json:"lost"`
	Contents []SeqRange `json:"contents"` // events whose content is lost
	Count    uint64     `json:"contents_lost"`
	// Inconsistent: the frames that are left do not fit together.
	Inconsistent bool `json:"inconsistent"`
}

// SeqLoss is a range of lost events. To is 0 where the end was lost. Policy
// says whether one of them changed what the session may do: yes, no or unknown.
type SeqLoss struct {
	From   uint64 `json:"from"`
	To     uint64 `json:"to"`
	Policy string `json:"policy"`
}

// SeqRange is a range of seqs, both included.
type SeqRange struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// UnprovenTail is a frame behind the last proven one that fits the chain of its
// session. It may be of the last commit, or of one that never was.
type UnprovenTail struct {
	Position uint64    `json:"position"`
	Session  uuid.UUID `json:"session"`
	First    uint64    `json:"first"`
	Last     uint64    `json:"last"`
	Included bool      `json:"included"`
}

// Conflict is a position for which different sound frames were found. Kept says
// which one was taken: tree, cutoff, carved, or none.
type Conflict struct {
	Position uint64 `json:"position"`
	Kept     string `json:"kept"`
}

const maxListed = 200

func (r *SalvageReport) conflict(position uint64, kept string) {
	if slices.Contains(r.Conflicts, Conflict{position, kept}) {
		return
	}
	if len(r.Conflicts) == maxListed {
		r.MoreConfl++
		return
	}
	r.Conflicts = append(r.Conflicts, Conflict{position, kept})
}

// settle computes the totals. What a repair could prove is no loss.
func (r *SalvageReport) settle() {
	r.LostFrames, r.LostContents = 0, 0
	for _, l := range r.Lost {
		r.LostFrames += l.To - l.From + 1
	}
	for i := range r.Damaged {
		r.LostContents += r.Damaged[i].Count
	}
	r.Complete = r.LostFrames == 0 && r.LostContents == 0 && len(r.Damaged) == 0 && r.TailDoubt == "" && r.InDoubt == 0 && !r.RulesInDoubt && r.IdentityFrom != identityNew
}

func newSalvageReport() *SalvageReport {
	return &SalvageReport{Problems: []string{}, Lost: []LostPositions{}, Damaged: []SessionLoss{}, Tail: []UnprovenTail{}, Conflicts: []Conflict{}}
}

// addSeq extends a list of ranges by a seq that follows it.
func addSeq(list []SeqRange, seq uint64) []SeqRange {
	if n := len(list); n > 0 && list[n-1].To+1 == seq {
		list[n-1].To = seq
		return list
	}
	return append(list, SeqRange{seq, seq})
}
