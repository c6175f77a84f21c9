// Command bench measures childlog side by side with its peers and holds the
// result against what the design asks for.
//
//	cd eventlog/bench && go run . [-quick] [-run REGEX] [-dir DIR] [-out FILE]
//
// It is a module of its own, so that the peers are no dependency of childlog.
// Progress goes to stderr; a table and one line for each target,
//
//	ratio NAME VALUE reach TARGET ok|short
//
// to stdout; every single round, with the machine it ran on, to FILE. A short
// ratio is a result and no failure: the exit code says whether it was measured.
//
// # How the comparison is kept fair
//
// Everybody's append returns when its event is synced to the same file system:
//
//   - jsonl: a file a session, opened once; one write and one fsync an append.
//     Sessions sync side by side.
//   - sqlite: WAL with synchronous FULL, both read back from the database; a
//     prepared insert in a transaction of its own, over one connection. The
//     table is clustered by (session, seq), so that the index which a session
//     log needs costs no second page.
//   - bbolt-tx: a transaction an append, in a bucket a session, leaves filled
//     to the end as an append-only writer would ask for.
//   - bbolt-bare: one put of as many bytes as childlog stores for the same
//     event, at the end of one bucket, and the commit. Nothing is encoded,
//     hashed or checked. It is the floor of what one synced bbolt transaction
//     costs.
//   - tidwall/wal: a log a session, NoSync false, so that its sessions sync
//     side by side too.
//   - childlog: as a harness uses it: an id of the caller's, the head that is
//     expected, facts, content, default options.
//
// Tests count the syncs of each under strace where that is installed.
//
// All store the same event: seq, id, type, time, two facts, 300 bytes of text.
// The peers write it as the JSON that encoding/json makes. The text has no
// character that JSON escapes, so their encoding is as cheap as it gets.
//
// In each round every contender runs once, and the order rotates. A turn is a
// warm-up and, without a break, a window in which finished appends are counted,
// so what a contender leaves to the background it pays for within its turn.
// Before the next turn begins, what is left is waited for. A ratio is the
// median of the ratios of the rounds, since rounds of one machine differ more
// than contenders of one round.
//
// Where reading is measured, both sides read files that are in the page cache,
// on one core (GOMAXPROCS 1), the garbage collector included. CPU time is shown
// beside the time that passed: on a machine that others use it tells what a
// quiet one would give. There the contents
// are JSON as tools return it, whose quotes are escaped in JSONL. The peer
// decodes each line into a struct with the facts left as raw JSON, as childlog
// leaves its facts encoded. Dearer ways to decode, into maps, and the cheapest
// text, without an escape, are shown beside it.
//
// The crash is a real one: another process of this program writes and is killed
// while it does. Memory is that of a process of its own: the peak of anonymous
// pages (RssAnon, sampled each millisecond) over what was there when the store
// was open. Mapped pages of the file are the page cache's, which the kernel
// takes back; their peak is shown beside it.
package main
