// Package deepseek imports session logs of the DeepSeek Harness, JSON lines
// behind a header, as evidence.
//
// # Sessions
//
// A session is kept under the header's id as its external id, system
// "deepseek-harness", and under a childlog id derived from that. The header is
// believed as far as it goes: a session is a child if it names a parent, says
// that its origin is a subagent, or counts a delegation depth above 0.
//
// Ids are opaque, and not always unique:
//
//   - an id of the form {{…}}, or one that is also the id of the session's own
//     parent, is a placeholder of a normalised fixture. Such a file is kept
//     under the id, "#", and a digest of its header, its folder's name and its
//     own (finding "placeholder-id");
//   - a second file of one id with another header is another session. It is
//     kept under the id, "#", and a digest of its header ("id-collision").
//
// A parent is looked for among the files of the run, in the child's own folder
// first, then in the store. One that is nowhere is linked to by the id that it
// will have ("parent-missing"). A child of a placeholder is linked to the one
// file of its folder that carries the same placeholder and lies one delegation
// above, if there is exactly one ("parent-inferred"). Nothing is ever linked to
// a native session ("native-parent"), and no link closes a circle
// ("parent-cycle").
//
// # Events
//
// The header becomes session/created, whose content is the small JSON of label,
// directory and external id that every session has, and import/other (line
// "header") with the header's bytes. Every further line is one event whose
// content is the line. So a file of n lines gives n+1 events, and each run that
// added something ends with one import/source (lines, bytes, sha256).
//
//	sandbox/mode, approval/policy           the same, with the log's own claim
//	approval/asked, approval/decided        the same; decider "unrecorded"
//	turn/, step/, user/message, assistant/message, tool/call, tool/result    the same
//	session/end-seed                        the same, right behind a fork seed; else import/other
//	session/title and the packed …-chunks   import/other; packed lines with their number of events
//	other types of open families            the same, without facts
//	everything else                         import/other with the type, or its digest, in "original"
//
// Foreign ids and tool names that eventlog takes for free text stand as their
// digests. A line that no type can be given to is import/other with "line"
// naming the reason: blank, non-object, untyped, unreadable, too-long.
//
// # Policy
//
// What a log does not state is not permission. The deployment default is never
// recorded, so it is read-only and never. A mode means: danger-full-access the
// top; workspace-write the header's directory as the only root (none if that is
// no absolute path), no network, no temp directories; read-only no network.
// Another mode is kept as it is and counts as read-only. A sandbox/mode without
// a readable mode counts so too, an approval/policy without a readable policy
// as never ("malformed").
//
// The first seedLength events are the parent's, counted as the harness counts:
// a packed line is as many events as it holds. Their copies are marked as
// inherited and decide nothing. Where the count and a line's own seq disagree,
// or a line spans the boundary ("seed-boundary"), the line is inherited: it is
// safer to lose a child's policy, which leaves read-only and never, than to
// take the parent's for its own.
package deepseek

// System is the name of the other system in external ids.
const System = "deepseek-harness"
