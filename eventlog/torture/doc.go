// Package torture holds no code but tests: what becomes of a store when the
// process that writes it is killed, when the disk fails, lies or is full, when
// its bytes are damaged, and when many write at once.
//
// Each test drives the store through its exported calls, as a harness would,
// and holds what it finds against a record that is kept outside the store: the
// acknowledgements of a writer, and a model of sandboxes and authority that
// shares no code with package policy. What the contract says is in the
// documentation of package eventlog.
//
// A short form of everything runs with the other tests; `make torture` runs
// the long one. Both end by printing what was done and what was found.
package torture
