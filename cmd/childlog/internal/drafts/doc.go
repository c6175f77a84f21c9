// Package drafts writes receipts and decisions in the shapes of two
// Internet-Drafts, for readers that know those. Both are individual drafts, work
// in progress without standing at the IETF, and change: each line names the
// revision that it follows.
//
// # What these lines are not
//
// They are unsigned, and say so. A receipt of the first draft is signed by the
// person who authorizes, one of the second by whoever records; childlog holds
// neither's key and signs log heads only. A member that a draft requires and
// childlog has nothing for is left out and listed as missing with the reason;
// none is invented or filled up. Each line carries the whole childlog record:
// the event as the command show prints it, and its facts byte for byte in base64.
//
// # draft-nelson-agent-delegation-receipts
//
// [Receipts] writes the body of section 4.1 of revision 05 (26 April 2026), the
// latest whose text was at hand in full: delegationId, version, scope,
// boundaries, timeWindow, instructionHash, operatorInstructions. Of revision 15
// (21 October 2026) only the abstract was: it signs by JWS over JCS, closes the
// body to unknown members and keeps "metadata" for extensions. Nothing of it is
// used here; the record stands beside the body and not in it, which suits both.
//
// The draft's scope names resources and operations and leaves the names open.
// They are: files for any file, files/PATH for a write scope. childlog does not
// tell deleting from writing, so whoever may write there may delete there.
// executes takes hashes of programs only, of which childlog has none; what a
// session may run is a boundary, shell. Boundaries are prohibitions: tool:PATTERN,
// path:PATH, network, shell, write, desktop, approvals (nobody is asked).
//
// # draft-sahu-agent-action-receipts
//
// [Actions] writes a log of revision 00 (16 August 2026), one decision a line.
// Its text was not at hand in full; what is used is known from its abstract and
// from the author's published test vectors with their verifier: step_id,
// action_id, params, success, ts_ms, actor, prev_hash in this order, further
// members allowed, and prev_hash the SHA-256 of the line before without its
// newline. That chain is there and holds for the lines as they are written; a
// filter, which changes lines, comes before it. public_key and signature are
// missing, so a verifier of the draft reports each line as unsigned.
//
// success is true for a call that was allowed and has a result that does not say
// it failed. Whether a denied call was made all the same is in params.outcome.
package drafts
