// Package command is the command childlog: every subcommand, and the frame that
// they run in. The process of that name only calls [Main]; a process that holds
// a store runs the commands of others through [Run].
//
// # For programs
//
// Every command that prints takes --json: one object, or one object a line for
// lists, with the names of package wire. Data goes to stdout, errors to stderr,
// for people and with --json also as {"error":{"code","message","hint"}} on the
// last line. Exit codes: 0 ok, 1 other, 2 usage or invalid input, 3 refused by
// policy, 4 conflict, 5 not found or ambiguous, 6 corrupt, lost or
// unverifiable, 7 locked or unavailable, 8 a call needs an approval, 130
// interrupted (log -f: 0). The table is in
// package failure. What check denies is an
// answer and no failure: 3 or 8 with nothing on stderr.
//
// # Choices
//
//   - Text that can't name a session (no id, no prefix, no SYSTEM:ID) is
//     answered like text that names none: exit 5.
//   - A whole id given as the caller's is taken at its word; whether it is the
//     recorded parent is a question of authority (exit 3), not of addressing.
//   - Input is read and checked before the store is taken, and output that may
//     be long is printed after it was given back: a slow pipe keeps nobody out.
//   - A command without --wait still bears for a moment with readers, which
//     come and go; a writer is reported at once.
//   - A batch of calls to be checked is read as a whole before the store is
//     taken, and every call of it is decided by itself. A line that holds no
//     call is answered in its place and makes the run end with 2, which says
//     more than a denial would; the other lines are decided all the same.
//   - A call that is denied because nothing may be recorded any more (a closed
//     session, another activation, an imported log, a policy that can't be read)
//     is answered with exit 3 under --record too, with a warning that it was not
//     recorded.
//   - Deployment defaults in force are resolved against the workspace of the
//     tree's root, as the recorded one was.
//
// # Reading the source
//
// run.go is the frame: streams, global flags, the list of commands. One file
// holds a command or a few small ones. internal/access opens stores, package
// wire is the JSON, internal/term prints for people, escaping all
// text. The tests to read first are testdata/script.
package command
