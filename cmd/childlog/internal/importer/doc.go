// Package importer holds what all importers of foreign logs share: finding
// and reading the files, ids that are the same in every run, the place where
// an earlier run stopped, bounded batches into the store, and the report.
//
// Everything imported is evidence. A format's package (deepseek) decides what
// a line means; this package decides how it is read and kept:
//
//   - one line is one event, in the order of the file, and the line's bytes are
//     the event's content;
//   - a line is read in one piece up to the store's limit of a content; a longer
//     one is hashed as it streams by and kept as its digest and length;
//   - what follows the last newline is torn: reported, and left for the run that
//     finds its newline;
//   - an event's id is derived from its session, its line number and the line's
//     bytes. A run that finds the ids of the lines it reads in the store has
//     been there before, and goes on behind them; other ids mean that the file
//     was rewritten, and then nothing of it is appended;
//   - a file that is, byte for byte, what the last run says it read is known by
//     one digest (Unchanged), and its lines need not be compared;
//   - what an operator redacts stays erased, and the file goes on behind it; a
//     session that was purged does not come back, its file is a finding;
//   - what an operator redacts stays erased, and the file goes on behind it; a
//     session that was purged does not come back, its file is a finding;
//   - what is appended goes through a Writer, which checks and compresses beside
//     the reading and keeps a bounded number of batches on their way.
//
// # What a redaction leaves
//
// A content is committed to with a salt, which is erased with it. The ids that
// recognize lines are not: an event's id is a digest of its session, number and
// bytes, and import/source holds a digest of all lines that were read, since a
// later run has nothing but the file to compute them from. So whoever has the
// store and knows all of an erased line but a few digits can find those by trying
// them against its id (case 62), and whoever has the file can show that it is the
// one. Calls and other names that are no codes stand in facts as digests of
// themselves (Code), and can be tried likewise. Only a purge removes these.
//
// # What a redaction leaves
//
// A content is committed to with a salt, which is erased with it. The ids that
// recognize lines are not: an event's id is a digest of its session, number and
// bytes, and import/source holds a digest of all lines that were read, since a
// later run has nothing but the file to compute them from. So whoever has the
// store and knows all of an erased line but a few digits can find those by trying
// them against its id (case 62), and whoever has the file can show that it is the
// one. Calls and other names that are no codes stand in facts as digests of
// themselves (Code), and can be tried likewise. Only a purge removes these.
package importer
