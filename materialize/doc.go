// Package materialize creates sessions: roots, and children from a capture. It
// is the only code that writes delegation events.
//
// A child's log begins, in one atomic unit with the parent's
// delegation/started, as
//
//	session/created
//	seed copies, session/end-seed      if the child is forked
//	delegation/granted                 the receipt
//	sandbox/mode                       if the capture has an override
//	approval/policy never              always
//
// The delegation events come after the seed, so nothing that was copied can
// follow, and so override, them; copies are marked with where they came from
// and the fold passes them over. A half-made child is never visible: before
// the commit there is nothing, after it everything.
//
// What the child may do is derived inside the commit, by policy.Derive, from
// what the parent hands on there: the captured authority met with every
// narrowing and every operator rule since. The receipt states ceiling,
// requested and granted, and by which rule each cut was made. Prompt, request
// and manifest are its content; the receipt commits to them under a salt that
// goes when they are redacted.
//
// Creation is idempotent under a key: a caller whose reply was lost asks again
// and gets the child that exists, unchanged, whatever has happened to the
// parent since. Keys are stored hashed.
//
// No child holds a tool that edits its own prompt, whichever way a harness
// builds it: [LockConfig] is for a configuration that the parent builds from,
// [Inspect] for an agent that was built before. Both are for the harness to
// call before it starts the child, and touch no store.
package materialize
