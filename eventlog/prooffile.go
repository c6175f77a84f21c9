package eventlog

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// A proof file is a C2SP tlog-proof (https://c2sp.org/tlog-proof). What its leaf
// is made of stands in the extra line: nothing of it is trusted, it has to hash
// to the leaf that the rest proves.
//
//	c2sp.org/tlog-proof@v1
//	extra BASE64
//	index POSITION
//	BASE64 hash, one a line, from the leaf's sibling up
//
//	CHECKPOINT
//
// The extra data is one JSON object, hashes and salt in hexadecimal:
//
//	{"type":"childlog/event-proof/1","session":"...","seq":7,"first":5,"count":4,
//	 "before":"...","header":"BASE64","after":["..."],"salt":"...","content":"BASE64"}
//
// salt and content are left out where they are not part of the proof; an event
// of another store's log has "imported":true. For a
// consistency proof there is no such format; it is written in its spirit, with
// the older checkpoint, whole, in place of the index:
//
//	childlog/consistency-proof@v1
//	old BASE64
//	BASE64 hash, one a line, as RFC 6962 section 2.1.2 orders them
//
//	CHECKPOINT
const (
	proofHead       = "c2sp.org/tlog-proof@v1"
	consistencyHead = "childlog/consistency-proof@v1"
	eventProofType  = "childlog/event-proof/1"

	maxProof     = 48 << 20 // bytes of a file: a content of 16 MiB, encoded twice
	maxProofPath = 63       // hashes
)

// eventProofJSON is EventProof as it is written.
type eventProofJSON struct {
	Type    string    `json:"type"`
	Session uuid.UUID `json:"session"`
	Seq     uint64    `json:"seq"`
	First   uint64    `json:"first"`
	Count   uint32    `json:"count"`
	Before  string    `json:"before"`
	Header  []byte    `json:"header"`
	After   []string  `json:"after"`
	Salt    *string   `json:"salt,omitzero"`
	Content *[]byte   `json:"content,omitzero"`

	Imported bool `json:"imported,omitzero"`
}

// Marshal writes the proof file.
func (p *Proof) Marshal() ([]byte, error) {
	e := &p.Event
	j := eventProofJSON{Type: eventProofType, Session: e.Session, Seq: e.Seq, First: e.First, Count: e.Count, Before: hex.EncodeToString(e.Before[:]), Header: e.Header, After: []string{}, Imported: e.Imported}
	for _, h := range e.After {
		j.After = append(j.After, hex.EncodeToString(h[:]))
	}
	if e.Salt != nil {
		salt := hex.EncodeToString(e.Salt[:])
		j.Salt = &salt
	}
	if e.Content != nil {
		j.Content = &e.Content
	}
	extra, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf("%s\nextra %s\nindex %d\n", proofHead, base64.StdEncoding.EncodeToString(extra), p.Position)
	return appendProof([]byte(head), p.Path, &p.Checkpoint), nil
}

// Marshal writes the proof file.
func (p *ConsistencyProof) Marshal() []byte {
	head := fmt.Sprintf("%s\nold %s\n", consistencyHead, base64.StdEncoding.EncodeToString(p.Old.Note))
	return appendProof([]byte(head), p.Path, &p.New)
}

func appendProof(b []byte, path []Hash, c *Checkpoint) []byte {
	for _, h := range path {
		b = append(base64.StdEncoding.AppendEncode(b, h[:]), '\n')
	}
	return append(append(b, '\n'), c.Note...)
}

// ParseProof reads a proof file without verifying it; it is a *Proof or a
// *ConsistencyProof. Errors: ErrInvalid, ErrTooLarge.
func ParseProof(b []byte) (any, error) {
	if len(b) > maxProof {
		return nil, &TooLargeError{What: "proof file in bytes", Limit: maxProof, Size: uint64(len(b))}
	}
	r := proofReader{rest: b}
	switch head := r.line(); head {
	case proofHead:
		return r.event()
	case consistencyHead:
		return r.consistency()
	default:
		return nil, invalidf("proof: the first line: want %s or %s, got %.60q", proofHead, consistencyHead, head)
	}
}

// proofReader reads a file line by line.
type proofReader struct{ rest []byte }

func (r *proofReader) line() string {
	line, rest, _ := bytes.Cut(r.rest, []byte("\n"))
	r.rest = rest
	return string(line)
}

// field reads the line of a name.
func (r *proofReader) field(name string) (string, error) {
	line := r.line()
	value, ok := strings.CutPrefix(line, name+" ")
	if !ok {
		return "", invalidf("proof: want a line \"%s ...\", got %.60q", name, line)
	}
	return value, nil
}

func decodeBase64(what, text string) ([]byte, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		err = invalidf("proof: %s: %v", what, err)
	}
	return b, err
}

// tail reads the hashes and the checkpoint.
func (r *proofReader) tail() (path []Hash, c Checkpoint, err error) {
	for line := r.line(); line != ""; line = r.line() {
		if len(path) == maxProofPath {
			return nil, c, invalidf("proof: want at most %d hashes", maxProofPath)
		}
		b, err := decodeBase64("a hash", line)
		if err != nil {
			return nil, c, err
		}
		if len(b) != len(Hash{}) {
			return nil, c, invalidf("proof: a hash: want %d bytes, got %d", len(Hash{}), len(b))
		}
		path = append(path, Hash(b))
	}
	c, err = ParseCheckpoint(r.rest)
	return path, c, err
}

func (r *proofReader) event() (*Proof, error) {
	text, err := r.field("extra")
	if err != nil {
		return nil, err
	}
	extra, err := decodeBase64("extra", text)
	if err != nil {
		return nil, err
	}
	p := new(Proof)
	if err := p.Event.unmarshal(extra); err != nil {
		return nil, err
	}
	if text, err = r.field("index"); err != nil {
		return nil, err
	}
	p.Position, err = strconv.ParseUint(text, 10, 63)
	if err != nil || strconv.FormatUint(p.Position, 10) != text {
		return nil, invalidf("proof: index: want a number, got %.40q", text)
	}
	p.Path, p.Checkpoint, err = r.tail()
	return p, err
}

func (r *proofReader) consistency() (*ConsistencyProof, error) {
	text, err := r.field("old")
	if err != nil {
		return nil, err
	}
	old, err := decodeBase64("old", text)
	if err != nil {
		return nil, err
	}
	p := new(ConsistencyProof)
	if p.Old, err = ParseCheckpoint(old); err != nil {
		return nil, err
	}
	p.Path, p.New, err = r.tail()
	return p, err
}

// unmarshal reads the extra data, strictly.
func (e *EventProof) unmarshal(b []byte) error {
	var j eventProofJSON
	if err := json.Unmarshal(b, &j, json.RejectUnknownMembers(true)); err != nil {
		return invalidf("proof: extra: %v", err)
	}
	if j.Type != eventProofType {
		return invalidf("proof: extra: type: want %s, got %.60q", eventProofType, j.Type)
	}
	if j.Count > MaxBatchEvents || len(j.After) > MaxBatchEvents {
		return invalidf("proof: extra: want at most %d events in a frame, got %d with %d behind this one", MaxBatchEvents, j.Count, len(j.After))
	}
	*e = EventProof{Session: j.Session, Seq: j.Seq, First: j.First, Count: j.Count, Header: j.Header, Imported: j.Imported}
	if err := decodeHex(e.Before[:], "before", j.Before); err != nil {
		return err
	}
	for _, text := range j.After {
		var h Hash
		if err := decodeHex(h[:], "after", text); err != nil {
			return err
		}
		e.After = append(e.After, h)
	}
	if j.Salt != nil {
		e.Salt = new(Salt)
		if err := decodeHex(e.Salt[:], "salt", *j.Salt); err != nil {
			return err
		}
	}
	if j.Content != nil {
		if e.Salt == nil {
			return invalidf("proof: extra: a content without its salt")
		}
		if e.Content = *j.Content; e.Content == nil {
			e.Content = []byte{}
		}
	}
	return nil
}

func decodeHex(dst []byte, what, text string) error {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(dst) {
		return invalidf("proof: extra: %s: want %d bytes in hexadecimal, got %.80q", what, len(dst), text)
	}
	copy(dst, b)
	return nil
}
