// Package objection lets a deployment look at tool calls before they are
// decided. Objectors run first; what they leave of a call's arguments is what
// package policy authorizes and what the record commits to.
//
//	calls -> [Sweeper.Sweep] -> outcomes: final arguments, [Record], refused or not
//	            each call            |
//	            each objector        v
//	                             policy.NewCall(ID, Tool, Args) -> authorize
//
// # What an objector can do
//
// It gets a copy of the call and may object, change the arguments, both or
// neither. A change is an amendment: the next objector and the decision see it,
// and the record names the rule and the arguments, never a value. An objection
// refuses the call.
//
// An objector that panics, returns an error, or leaves what is no JSON is
// skipped for that call: the arguments are again what they were before it ran,
// and the record names it as degraded. Nobody knows then what it would have
// said, so the call is refused. [Options].CarryOn lets a deployment go on
// without it, which the record states.
//
// # What goes into a record
//
// A [Record] is meant for facts, which are never redacted, so nothing an
// objector learns from a call may get into it. Whatever it can say is fixed
// before it sees one: the names of its rules and of the arguments it may add,
// both given to [New]. A rule it did not declare degrades it; an argument that
// it added and did not declare, or that has no name of
// [policy.CheckToolName], stands as [KeyUnnamed]. Of a failure there is a code,
// never the error's text or the panic's value. The reason of an objection is
// free text that may quote the call: it is content, and no part of the record.
// Encoded as JSON an [Outcome] has neither arguments nor reasons.
//
// Keys are those at the top: a change anywhere inside an argument names that
// argument. Paths into it would hold keys and positions of a value, which may
// say as much as the value.
//
// # Arguments
//
// Arguments are what JSON can say: nil, booleans, finite numbers of Go's types
// or json.Number, UTF-8 text, []any and map[string]any, at most [MaxDepth] deep,
// [MaxValues] values and [MaxBytes] bytes of text. []string and
// []map[string]any are taken for lists. A nil map or list below the top is
// refused, since some encoders make it null and others empty. A call whose own
// arguments are none of this is malformed, is shown to no objector, and is
// refused. Values are compared with their types: 1 and 1.0 differ, as do 0
// and -0.
//
// # Commitments
//
// Commitments are salted, and this package has no randomness: the caller makes
// them, of [Outcome].Before and [Outcome].Args. They are equal values, and one
// commitment does for both, exactly if there is no amendment.
//
// # Caveats
//
// Objectors run in this process, on the caller's goroutine, and are the
// deployment's own code. What they keep of a call is a copy that nobody reads
// again once they have returned. But one that still writes to it from another
// goroutine while it returns can crash the process, as any data race on a map
// can, and one that does not return stops the sweep; nothing here has a clock.
// An objector that ends its goroutine (runtime.Goexit, so t.FailNow in a test)
// ends the caller's.
//
// # Reading the source
//
//   - objector.go: what a deployment states
//   - sweep.go: the sweep, and why a call is refused
//   - record.go: what comes out
//   - values.go: copies and comparison
package objection
