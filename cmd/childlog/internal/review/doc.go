// Package review answers what an auditor asks of one session, in the order in
// which an auditor asks it: who delegated what to whom, and can the log be
// trusted; what is out of the ordinary; what was asked, what was granted and
// what was cut; how the policy moved since; what was denied; what happened; what
// it cost; what was erased; and through which receipts the authority came down.
//
// [Build] reads one session and makes a [Review], a plain value that the command
// prints and a page shows. It reads; it decides nothing, writes nothing and asks
// no clock, so the same log gives the same review. [Trace] answers who is
// answerable for one event.
//
// # Exceptions and coverage
//
// An exception is a fact about the log that somebody should look at, never a
// verdict. Each kind has a stable code. A kind whose check can't be made, such as
// one about decisions in an imported log that records none, is listed as not run
// with the reason: "none found" says which checks were run and how many of the
// calls had a decision, and so how much it is worth.
//
// # What a text may hold
//
// Labels, roots and tool names are text from a log, whatever it holds. They stand
// in a review as they are, inside quotes that Go writes where they are part of a
// sentence; whoever shows a review escapes. Contents of events are never part of
// one, so a review shows no prompt and no argument.
package review
