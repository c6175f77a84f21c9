// Package lines writes logs as JSON lines, one an event, and takes such lines in
// again, as evidence with the digests that they had.
//
// A line says everything that the event's header says, in words, and the content:
// JSON as it is, text as a string, anything else as base64. Beside the words
// stands the header itself, in base64, and the content's salt. So whoever has the
// lines alone can compute every chain hash and every commitment, and no rounding
// of the words is ever hashed.
//
// A content that is JSON is spliced in byte for byte. One with a line break between
// its tokens, which would end the line, or with blanks around it, which nobody
// could tell from the line's own, is given as content_text. Either way the bytes
// come back as they were.
//
// Where a filter rewrote a content the line says so and has no salt: what is left
// in it is not what was committed to, and with the salt a reader could try out
// what is missing. Such a content is not taken in again; the event is. Where the
// filter rewrote facts the line has no header: the log can't be proven from there
// on, and is not taken in at all.
//
// Lines of one session stand in the order of their seqs; sessions may be mixed.
package lines
