// Package scopefs holds a write scope against the file system: it finds out
// where a target of a call really leads, and opens it without leaving that
// place. It is the companion of package policy, which compares names and knows
// no files, and the only place where a path of a call meets a system call.
//
// [Check] answers, [OpenWithin] answers and opens. Both refuse alike, with a
// [*policy.TargetError], whatever the reason; a harness that only checks and
// then opens by name has a gap in which the child can swap a directory for a
// link, and OpenWithin is there to close it.
//
// # What is inside
//
// A target is inside if its name is, and if the place it leads to is:
//
//   - every directory on the way is resolved, and every link, absolute or
//     relative, with ".." meaning the real parent; more than 40 links are a
//     loop;
//   - a link at the end counts by what it points to, also if nothing is there
//     yet: writing to it would create that file;
//   - where nothing exists yet, the rest of the name is appended to the deepest
//     existing ancestor;
//   - the place must be in the workspace and admitted by the scope. A link out
//     of the scope is outside even if it stays in the workspace, and a scope
//     whose own directory is a link to elsewhere admits nothing.
//
// # What is outside wherever it lies
//
//   - a file with more than one hard link: the other name may be anywhere.
//     Tools that link files from a cache, as some package managers do, make
//     files a child cannot write;
//   - devices, FIFOs, sockets and anything else that is neither a regular file
//     nor a directory;
//   - the directories of [Options.Protected], which nothing grants: the store's
//     own. A directory on the way to one is outside too, since moving it would
//     move the store;
//   - [policy.Protected] places: .git, .codex, .claude and .childlog at any level,
//     not only at the top, because a nested repository or a submodule runs its
//     hooks as well. An entry of the scope that names the place grants it; where
//     no scope is stated nothing does;
//   - whatever cannot be found out: a directory that may not be read, a name
//     too long, a link to nowhere through "..".
//
// # Caveats
//
// The answer of Check is about the moment it is given. OpenWithin holds on to
// the directories it checked, and that is all the operating system offers: a
// directory that is renamed to another place while a file in it is created
// takes the file along, and a directory swapped for a FIFO in the instant
// before it is opened blocks the caller until somebody writes to it. Mount points
// are followed as directories: who can mount can do more than this package can
// see. A call that works on a whole tree, such as removing a directory, is
// checked for the directory it names and not for what lies below.
//
// Names are compared exactly. On a file system that ignores case, a link or a
// scope in other letters is refused although it is the same place.
//
// The package reads no environment variable and no working directory: roots are
// absolute. It is for Unix; elsewhere an existing file is refused, because its
// hard links cannot be counted. All functions are safe for concurrent use.
package scopefs
