// Package harness is how a program that runs agents uses a store of childlog:
// one interface, [Harness], with a method for each thing that a harness does
// (begin roots, delegate, append, decide calls, settle, look, follow), whether
// the store is held by this process or by another one. One line says which:
//
//	h, err := harness.Open(ctx, "/var/lib/agents", eventlog.Options{})
//	h, err := harness.Dial(ctx, "unix:/var/lib/agents", harness.Options{})
//	h, err := harness.Dial(ctx, "https://logs.example:7431", harness.Options{Token: token})
//
// Requests are plain structs; answers are what the command prints with --json
// (package wire). Both are JSON, so what is said here holds for programs in any
// language: testdata/example has one in TypeScript. The paths and types of all
// operations stand in one table (operations.go), which client and service share.
//
// # What is atomic
//
// A method that writes is one commit. A batch of [Harness.Append] is in the log
// as a whole or not at all; a delegation makes the child and marks it in its
// parent's log at once; [Harness.Check] with Record decides on the policy that is
// in force in the commit that records the decision; a narrowing with Subtree
// reaches everything below, children included that are being made meanwhile. An
// answer means that it is synced, and a reader sees nothing that is not.
//
// # What an error means
//
// Every error wraps one of the sentinels of package eventlog, from either
// implementation, and the typed errors that callers decide by come over the
// network too: ConflictError, DuplicateError, FencedError, TooLargeError,
// LockedError. Nothing was written, with two exceptions: ErrOutcomeUnknown, and
// a context that ended while the answer was waited for. Then it may have been.
//
// [Failed] says of an error of either its stable code and what can be done about
// it, as a service does.
//
// A denial is no error but an answer, and so is damage that Verify finds. An error
// of Check is no permission, and neither is one in a place of CheckBatch.
//
// # What a retry means
//
// Send the same request again. A delegation under a key, a root with an id and a
// batch whose events have ids find what is there: the answer is the original one,
// with Existing or Replayed set, and for a root ErrExists. Under the same key or
// id with another content they are refused. A switch, a narrowing and rules
// that are in force already change nothing more, and of calls that were recorded
// the decision in the log is the answer. A message or a settlement has
// no key: look with [Harness.Show] before it is repeated.
//
// # What may be concurrent
//
// All methods, from any number of goroutines, on either implementation, and any
// number of clients beside each other. The events of one session are ordered by
// the commits; whoever must not be overtaken states the head that it saw
// (Expect). Two programs that run the same session keep each other out by
// activations: the older one's epoch is fenced.
//
// # Who asks
//
// childlog authenticates nobody: it takes the caller of a request at its word
// and holds it against the log. A service does authenticate, by the user id of
// a socket's peer or by tokens, and asks each request how much it takes
// ([Request]): reading, working, or acting as an operator.
//
// A program that holds a store itself lets others work on it by
// serve.Store (package childlog/cmd/childlog/serve).
//
// # Compatibility
//
// Requests and answers gain keys and lose none within a version of the paths.
// Requests with a key that a service does not know are refused: what is asked
// for and not understood is not done by half.
package harness
