package eventlog

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"
)

// Hash is a SHA-256 value: a chain hash, a commitment, a digest.
type Hash [sha256.Size]byte

// IsZero tells an absent hash from a present one.
func (h Hash) IsZero() bool { return h == Hash{} }

// Salt blinds a content's commitment, so that a short redacted content can't
// be found by trying its candidates. It is erased with the content.
type Salt [16]byte

// Domain tags are exactly 16 bytes, so that no tagged input is a prefix of
// another's. Changing one changes every hash: they are part of the format.
const (
	tagGenesis = "childlog/genesis"
	tagChain   = "childlog/chain/1"
	tagHeader  = "childlog/headr/1"
	tagContent = "childlog/conte/1"
	tagKey     = "childlog/dkey/01"
	tagExtern  = "childlog/extid/1"
	tagDigest  = "childlog/digst/1"
	tagArgs    = "childlog/cargs/1"
	tagCode    = "childlog/scode/1"
	tagBatch   = "childlog/batch/1"
)

// Genesis is h0 of a session's chain: the hash before its first event. No
// store identity goes in, so a log keeps its hashes when it moves.
func Genesis(session uuid.UUID) Hash {
	var b [16 + 16]byte
	copy(b[:], tagGenesis)
	copy(b[16:], session[:])
	return sha256.Sum256(b[:])
}

// chainNext is hn = SHA-256(tag, hn-1, SHA-256(tag, header)). The header
// commits to its content, so the chain covers everything that was given.
// buf is scratch space, returned for reuse.
func chainNext(prev Hash, header, buf []byte) (Hash, []byte) {
	buf = append(append(buf[:0], tagHeader...), header...)
	inner := sha256.Sum256(buf)
	var b [16 + 32 + 32]byte
	copy(b[:], tagChain)
	copy(b[16:], prev[:])
	copy(b[48:], inner[:])
	return sha256.Sum256(b[:]), buf
}

// commit is the salted commitment to a content's uncompressed bytes.
func commit(salt Salt, content []byte) Hash {
	h := sha256.New()
	var b [16 + 16 + 8]byte
	copy(b[:], tagContent)
	copy(b[16:], salt[:])
	binary.BigEndian.PutUint64(b[32:], uint64(len(content)))
	h.Write(b[:])
	h.Write(content)
	var out Hash
	h.Sum(out[:0])
	return out
}

// Kinds of leaves. The numbers are part of the format and are never reused.
const (
	leafNative   = 0x01
	leafLost     = 0x02 // see tree.go
	leafImported = 0x03 // of a frame that came from another store
)

// leaf is the frame's leaf. What makes a session evidence is no part of its
// chain, which has to stay what it was in the other store, so it is part of the
// leaf: nobody without the key turns evidence into authority unseen.
func (f *frame) leaf(after Hash) Hash {
	kind := byte(leafNative)
	if f.imported {
		kind = leafImported
	}
	return leafHash(kind, f.session, f.first, uint32(f.count), after)
}

// leafHash is a frame's leaf in the RFC 6962 tree over positions: SHA-256 of
// the leaf prefix and kind | session | first seq u64be | count u32be | chain
// hash after the frame. The chain hash covers the frame's events, so a
// tombstone that keeps only this hash still proves what was purged.
func leafHash(kind byte, session uuid.UUID, first uint64, count uint32, after Hash) Hash {
	var b [1 + 1 + 16 + 8 + 4 + 32]byte
	b[0] = 0x00 // RFC 6962 section 2.1: leaf prefix
	b[1] = kind
	copy(b[2:], session[:])
	binary.BigEndian.PutUint64(b[18:], first)
	binary.BigEndian.PutUint32(b[26:], count)
	copy(b[30:], after[:])
	return sha256.Sum256(b[:])
}

// KeyHash is what a store keeps of a caller's idempotency key: bound to the
// parent, so that equal keys of two parents show no relation.
func KeyHash(parent uuid.UUID, key string) Hash {
	return sha256.Sum256(append(append([]byte(tagKey), parent[:]...), key...))
}

// ExternalHash is what the header and the index keep of another system's id.
func ExternalHash(system, id string) Hash {
	b := append([]byte(tagExtern), byte(len(system)))
	return sha256.Sum256(append(append(b, system...), id...))
}

// Digest is the tagged SHA-256 of bytes that are not secret (a seed, a
// receipt, a capture).
func Digest(parts ...[]byte) Hash {
	h := sha256.New()
	h.Write([]byte(tagDigest))
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	var out Hash
	h.Sum(out[:0])
	return out
}
