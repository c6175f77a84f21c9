package wire

import (
	"encoding/hex"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/eventlog"
)

// Checkpoint is a signed head of a store's journal. Note is the whole text, as
// it is kept in a file.
type Checkpoint struct {
	Origin string `json:"origin"`
	Size   uint64 `json:"size"`
	Root   string `json:"root"`
	Note   string `json:"note"`
}

// CheckpointOf converts a checkpoint.
func CheckpointOf(c eventlog.Checkpoint) Checkpoint {
	return Checkpoint{Origin: c.Origin, Size: c.Size, Root: hex.EncodeToString(c.Root[:]), Note: string(c.Note)}
}

// Checkpointed is the answer of checkpoint.
type Checkpointed struct {
	Checkpoint
	Key string `json:"key"`
}

// Signed says how a journal compares with what was signed. KeyFrom is given
// (--key), store (the store's own) or none. Anchored is up to which position a
// checkpoint that was kept elsewhere vouches for the journal, Positions how many
// it has; Heads are the anchors of single sessions that hold.
type Signed struct {
	Key       string   `json:"key"`
	KeyFrom   string   `json:"key_from"`
	Origin    string   `json:"origin"`
	Size      uint64   `json:"size"` // of CHECKPOINT
	Holds     bool     `json:"holds"`
	Positions uint64   `json:"positions"`
	Outside   []Held   `json:"outside"`
	Anchored  uint64   `json:"anchored"`
	Heads     []string `json:"heads"`
}

// Held is a checkpoint that was given, and whether it holds.
type Held struct {
	File   string `json:"file"`
	Origin string `json:"origin"`
	Size   uint64 `json:"size"`
	Holds  bool   `json:"holds"`
}

// Proven is what a proof shows. Content is proven, not_given or absent (the
// event has none).
type Proven struct {
	Session  string         `json:"session"`
	Seq      uint64         `json:"seq"`
	Type     string         `json:"type"`
	ID       string         `json:"id"`
	Time     string         `json:"time"`
	Source   string         `json:"source"`
	Facts    jsontext.Value `json:"facts"`
	Hash     string         `json:"hash"`
	Position uint64         `json:"position"`
	Origin   string         `json:"origin"`
	Size     uint64         `json:"size"`
	Content  string         `json:"content"`
	Imported bool           `json:"imported"` // of another store's log: evidence in this one
}

// Consistent is what a proof of consistency shows.
type Consistent struct {
	OldOrigin string `json:"old_origin"`
	OldSize   uint64 `json:"old_size"`
	NewOrigin string `json:"new_origin"`
	NewSize   uint64 `json:"new_size"`
}

// Proof is the answer of prove. File is null and Proof the text if it was
// written nowhere.
type Proof struct {
	Kind  string  `json:"kind"` // event or consistency
	File  *string `json:"file"`
	Proof *string `json:"proof"`
}

// Accepted is the answer of accept-rollback.
type Accepted struct {
	Evidence  string `json:"evidence"`
	Origin    string `json:"origin"`
	Size      uint64 `json:"size"`
	Found     uint64 `json:"found"`
	NewOrigin string `json:"new_origin"`
	Seq       uint64 `json:"seq"`
}
