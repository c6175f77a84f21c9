// Package bundle writes logs into one file that proves itself offline, reads and
// checks such files, and takes them in elsewhere as evidence.
//
// # What is in it
//
// A bundle is of a whole store or of a selection of sessions, whole logs each,
// and always of the store's own session: what was purged, and which rollbacks
// were accepted, stands there. Frames are byte for byte those of the journal,
// contents with their salts are as stored, compressed where that helped. Leaves
// and subtree hashes in place of all that is not handed on make up the RFC 6962
// tree over the positions of the journal, so that each frame is proven to stand
// where it stood, and the store's last signed checkpoint says who vouches for
// that tree.
//
// # Format, version 1
//
//	file:   "childlog/bundle\n" | record*
//	record: kind u8 | len u32le | body (len bytes) | crc32c u32le of all before it in the record
//
// Integers without a width are minimal uvarints. Records come in this order:
//
//	H  version u8 (1) | flags u8 | store 16 | incarnation | tree size
//	     flags bit 0: of the whole store; bit 1: a filter left contents out.
//	     tree size is the number of positions that the bundle accounts for.
//	K  verifier key, text                              at most one; informs, proves nothing
//	N  signed note, text (C2SP tlog-checkpoint)        at most one, of a size up to tree size
//	S  session 16 | flags u8 | head seq | chain hash 32    each session, in the order of ids
//	     flags bit 0: the session is evidence there, too
//	then, for the positions from 0 to tree size - 1, in order and without a gap:
//	F  position | frame                                as in the journal (eventlog/frame.go)
//	C  event index | chunk | stored chunk              contents of the frame before it
//	     (eventlog/content.go), in order of event index and chunk
//	W  event index | reason u8                         in place of a content that was left
//	     out, with its salt. reason 1: by the filter
//	T  position | leaf hash 32                         a purged frame
//	P  level u8 | index | hash 32                      a full subtree that is not handed on:
//	     the 2^level leaves from index<<level on
//	E  sessions | frames | events | contents | withheld | root 32 | sha256 32
//	     root is that of the tree of tree size; sha256 is of all bytes before this record
//
// Nothing follows. An event with a content, but without C and W, is one whose
// content the store did not have any more. No subtree spans the size of the
// checkpoint, so that a reader has the root at that size on its way. A reader
// needs one subtree hash for each bit of a position to hold the tree, and for the
// rest the sessions' heads and one batch's contents: memory grows with the number
// of sessions and not with their length.
//
// The same state of a store gives the same bytes: nothing in a bundle says when
// or by whom it was made.
//
// # What a check proves
//
// With a key: the frames are in the tree of size N that the key signed, each log
// follows its own chain from seq 1 to the head that the bundle names, what the
// contents are is what was appended, and each policy folds to what its log says,
// with receipts that parent and child agree on. Of a whole store also that there
// was nothing else, at that size. Of a selection it is not proven that no later
// frame of the same sessions lies under one of the subtree hashes. Without a key
// the bundle is only shown to agree with itself: whoever can write a file can
// write one that does.
package bundle

// Flags of the head and of a session.
const (
	flagWhole    = 1
	flagFiltered = 2
	flagImported = 1
)

// withheldByFilter is the reason of a record W.
const withheldByFilter = 1
