// Package eventlog is an append-only event log for agent sessions on embedded
// bbolt: durable, tamper-evident, and the only place where anything is stored.
//
// # Model
//
// A store holds sessions. A session is one log: events with seqs from 1,
// contiguous, chained by hashes. An event is a header with its facts, which is
// hashed and stays for ever, and a content, which the header commits to with a
// salt and which can be erased. A [Batch] of events is all or nothing; a
// [Plan] commits batches of several sessions as one atomic unit.
//
// Who may write what is decided by the entry point, never by the caller:
// [Store.Append] takes the open families that a harness uses; the closed ones
// (delegations, policy, activations) are written by childlog's own packages
// through [Store.Transact], which sets their source. It does not rely on what
// its callers checked: inside the commit it refuses a child that its parent's
// log does not start in the same unit, or that begins wider or deeper than its
// parent allows; a switch beyond the bound of its session, which stored would
// make the log unreadable; and an import that makes anything but evidence or
// takes the name of a native session. [Types] says who writes what.
//
// The store has a session of its own ([StoreSession]) for what is bound to it
// and to no agent, such as the operator's rules.
//
// # On disk
//
//	LOCK        taken before anything is opened; names its holder
//	IDENTITY    which store this is
//	store.db    journal, contents, tombstones: the only truth
//	index.db    rows, positions, names, links, nodes of the tree: derived, disposable
//	CHECKPOINT  the last signed head of the tree: what store.db must at least contain
//	KEY         what it is signed with; may be kept elsewhere, and is in no copy
//	SOCK        where the process that holds it serves it, if that does; in no copy
//
// A backup is such a directory without index.db, marked in IDENTITY: it is read
// and never written.
//
// The journal maps a position to a frame (frame.go draws it, header.go and
// content.go the rest). Appends touch its end only. That is why a bucket for
// each child, the obvious layout, is not used: 512 children appending then
// dirty 512 leaf pages a commit instead of a few.
//
// # What is promised
//
//   - Acknowledged is synced, and never lost. A reader never sees what is not.
//   - Not acknowledged is there as a whole or not at all, and a retry with the
//     same event ids finds out: it gets the original result, or appends.
//   - A failed commit says whether nothing was written or the outcome is
//     unknown; it is never guessed.
//   - Opening for reading changes no byte.
//   - Damage is an error with its place, for the session that it is in. The
//     other sessions go on. Nothing is skipped in silence, and a policy that
//     can't be read in full is not read at all.
//   - No input and no damaged byte makes the caller panic.
//
// # What bbolt leaves to do
//
// bbolt has no checksums on its data, its freelist or its counts. Frames and
// contents carry their own. The journal's length is compared with a sequence
// that every commit sets; before a store may be written its branch pages and
// its freelist are checked (package pagecheck); an invalid meta page, which
// hides the last commit, refuses writing. A transaction is visible to readers
// before its last sync, so readers stop at the durable position.
//
// # Signatures
//
// Over all frames, in the order of their positions, stands a Merkle tree
// (tree.go); its head is signed at close, on demand and at a steady pace
// (checkpointer.go) and kept in CHECKPOINT, outside of the database. A journal
// that is shorter, or another one, was put back or cut: it is not written, and no
// policy is read of it (rollback.go), until somebody takes that on, which the log
// then says. What the signature covers is found by whoever has the key, in a check
// or from a proof of a single event (inclusion.go, prooffile.go).
//
// Whoever can write the directory can put back all of it, an older CHECKPOINT
// included; whoever has the key too can sign what they like. Against both helps
// only what was kept elsewhere: a checkpoint, or the head of a session. A copy of
// the directory that goes on by itself is found where heads of both are brought
// together, and nowhere else.
//
// # Salvage
//
// [Salvage] reads a file that is damaged in any way and writes what is left into
// a new store, with a statement of what was lost. Positions and bytes stay what
// they were, so a store may have positions without a frame, and marks in place
// of lost frames whose session is known (salvagewrite.go).
//
// # Erasing
//
// [Store.Redact] erases contents and [Store.Purge] whole sessions, each with the
// event that says so in the same commit; [Store.Hold] forbids both. A header and
// its facts are never erased, so every chain, policy and tree stays what it was.
// What holds the same text goes along, and what can't be reached is named. The
// bytes themselves go with [Compact].
//
// # Copies
//
// Deleting gives no byte back: bbolt keeps the page. [Compact] rewrites store.db
// without free pages, [Store.Backup] copies what is durable while others write,
// and [Restore] makes a store of a backup. All three are one operation: read in
// short transactions, prove, write, sync, read back, compare, rename. None takes
// damage along, none ever overwrites, and what a crash leaves has another name.
//
// # Limits
//
// One process writes a store at a time; any number may read while none does.
// Network file systems are not supported: their locks and syncs promise less.
// A store is tamper-evident only as far as a hash of it, and the key, are kept
// elsewhere. Keys are not rotated: another key is another store's.
//
// The format is versioned (see [FormatVersion]). What one release wrote, every
// later one reads; testdata holds a store of each.
package eventlog
