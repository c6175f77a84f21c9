package eventlog

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/uuid"
	signednote "golang.org/x/mod/sumdb/note"
)

// checkpointFile holds the last checkpoint that was signed: what the journal
// must at least contain. It lies outside of the database, so that an older
// store.db is found out.
const checkpointFile = "CHECKPOINT"

// Checkpoint is a signed tree head: the statement that the journal of one
// origin had this root when it had this many positions. It is a signed note of
// C2SP's tlog-checkpoint format (https://c2sp.org/tlog-checkpoint):
//
//	childlog/0a1b2c3d-0000-4000-8000-000000000001/1
//	1234
//	CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=
//
//	— childlog/0a1b2c3d-0000-4000-8000-000000000001 Az3grlgt...
//
// The origin is childlog/STORE/INCARNATION. Under one origin a key signs only
// trees that continue each other; a store that starts again from an older state
// (a restore, a salvage, a rollback that was accepted) has another incarnation.
// Two that contradict each other under one origin therefore prove that the
// directory was cloned and both went on, or that it was put back.
type Checkpoint struct {
	Origin string
	Size   uint64 // positions, from 0
	Root   Hash
	Note   []byte // the whole text, signatures included
}

const maxCheckpoint = 64 << 10 // bytes of a note

// ParseCheckpoint reads a checkpoint without verifying who signed it; see
// [Checkpoint.Verify]. Lines after the third are ignored, as the format wants.
// Errors: ErrInvalid.
func ParseCheckpoint(text []byte) (Checkpoint, error) {
	c := Checkpoint{Note: text}
	if len(text) > maxCheckpoint {
		return c, invalidf("checkpoint: want at most %d bytes, got %d", maxCheckpoint, len(text))
	}
	n, err := signednote.Open(text, signednote.VerifierList())
	if ue := (*signednote.UnverifiedNoteError)(nil); errors.As(err, &ue) {
		n, err = ue.Note, nil
	}
	if err != nil {
		return c, invalidf("checkpoint: %v", err)
	}
	lines := strings.Split(strings.TrimSuffix(n.Text, "\n"), "\n")
	if len(lines) < 3 {
		return c, invalidf("checkpoint: want origin, size and root, got %d lines", len(lines))
	}
	if c.Origin = lines[0]; c.Origin == "" {
		return c, invalidf("checkpoint: the origin is empty")
	}
	c.Size, err = strconv.ParseUint(lines[1], 10, 63)
	if err != nil || strconv.FormatUint(c.Size, 10) != lines[1] {
		return c, invalidf("checkpoint: size: want a number from 0 to %d, got %.40q", int64(math.MaxInt64), lines[1])
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != len(c.Root) {
		return c, invalidf("checkpoint: root: want %d bytes in base64, got %.60q", len(c.Root), lines[2])
	}
	c.Root = Hash(root)
	return c, nil
}

// Verify checks that the key signed the checkpoint. Signatures of others, such
// as witnesses, are ignored. Errors: ErrUnverified.
func (c *Checkpoint) Verify(key signednote.Verifier) error {
	if _, err := signednote.Open(c.Note, signednote.VerifierList(key)); err != nil {
		by := "nobody"
		if ue := (*signednote.UnverifiedNoteError)(nil); errors.As(err, &ue) && len(ue.Note.UnverifiedSigs) > 0 {
			sig := ue.Note.UnverifiedSigs[0]
			by = fmt.Sprintf("%s+%08x", sig.Name, sig.Hash)
		} else if ie := (*signednote.InvalidSignatureError)(nil); errors.As(err, &ie) {
			by = "a signature in its name that does not hold"
		}
		return fmt.Errorf("%w: checkpoint of %s at size %d: want it signed by %s+%08x, got %s", ErrUnverified, c.Origin, c.Size, key.Name(), key.KeyHash(), by)
	}
	return nil
}

// Of reports which store and which incarnation of it a checkpoint is of; ok is
// false for an origin that is not childlog's.
func (c *Checkpoint) Of() (store uuid.UUID, incarnation uint64, ok bool) {
	parts := strings.Split(c.Origin, "/")
	if len(parts) != 3 || parts[0] != "childlog" {
		return uuid.Nil, 0, false
	}
	store, err1 := uuid.Parse(parts[1])
	incarnation, err2 := strconv.ParseUint(parts[2], 10, 64)
	ok = err1 == nil && err2 == nil && originOf(store, incarnation) == c.Origin
	return store, incarnation, ok
}

// body is what is signed.
func (c *Checkpoint) body() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:]))
}

// sign makes the note. It is the only place that uses the key; who calls it
// has made sure that the head continues what was signed before.
func (c *Checkpoint) sign(key *signKey) (err error) {
	c.Note, err = signednote.Sign(&signednote.Note{Text: c.body()}, key)
	return err
}

func originOf(store uuid.UUID, incarnation uint64) string {
	return fmt.Sprintf("%s/%d", keyName(store), incarnation)
}

// Origin names the log that checkpoints of this store are of now.
func (id Identity) Origin() string { return originOf(id.Store, id.Incarnation) }

// firstCheckpoint is that of the empty tree: a store that has a key has a
// checkpoint from its birth on.
func firstCheckpoint(key *signKey, id Identity) (Checkpoint, error) {
	var empty treeEdge
	root, _ := empty.root()
	c := Checkpoint{Origin: id.Origin(), Root: root}
	return c, c.sign(key)
}

// readCheckpoint reads the CHECKPOINT of a directory. Errors: os.ErrNotExist,
// ErrInvalid.
func readCheckpoint(dir string) (Checkpoint, error) {
	f, err := os.Open(filepath.Join(dir, checkpointFile))
	if err != nil {
		return Checkpoint{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCheckpoint+1))
	if err != nil {
		return Checkpoint{}, err
	}
	return ParseCheckpoint(text)
}
