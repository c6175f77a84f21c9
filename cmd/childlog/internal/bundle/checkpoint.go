package bundle

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/note"

	"childlog/eventlog"
)

// Checkpoint is the text of a C2SP tlog-checkpoint: an origin, the size of the
// tree in positions, its root hash. See https://c2sp.org/tlog-checkpoint.
type Checkpoint struct {
	Origin string
	Size   uint64
	Root   eventlog.Hash
}

// parseNote reads a checkpoint off a signed note, without any signature being
// looked at.
func parseNote(signed []byte) (Checkpoint, error) {
	text, _, ok := strings.Cut(string(signed), "\n\n")
	if !ok {
		return Checkpoint{}, fmt.Errorf("%w: checkpoint: want a signed note, got %.40q", eventlog.ErrInvalid, signed)
	}
	return parseCheckpoint(text + "\n")
}

func parseCheckpoint(text string) (Checkpoint, error) {
	bad := func(what string) (Checkpoint, error) {
		return Checkpoint{}, fmt.Errorf("%w: checkpoint: %s of %.60q", eventlog.ErrInvalid, what, text)
	}
	lines := strings.Split(text, "\n")
	if len(lines) < 4 || lines[0] == "" {
		return bad("want origin, size and root, each on a line")
	}
	size, err := strconv.ParseUint(lines[1], 10, 62)
	if err != nil || strconv.FormatUint(size, 10) != lines[1] {
		return bad("size")
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != len(eventlog.Hash{}) {
		return bad("root hash")
	}
	return Checkpoint{Origin: lines[0], Size: size, Root: eventlog.Hash(root)}, nil
}

// openNote reads a checkpoint whose signature by one of the verifiers holds.
func openNote(signed []byte, keys ...note.Verifier) (Checkpoint, error) {
	n, err := note.Open(signed, note.VerifierList(keys...))
	if err != nil {
		return Checkpoint{}, err
	}
	return parseCheckpoint(n.Text)
}

func sortIDs(ids []uuid.UUID) {
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
}
