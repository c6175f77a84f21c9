// Package harness is how a program that runs agents uses a store of childlog:
// one interface, [Harness], with a method for each thing that a harness does
// (begin roots, delegate, append, decide calls, settle, look), and the same
// requests and answers whether the store is held by this process or by another
// one. Requests are plain structs, answers are those that the command prints
// with --json (package wire).
package harness
