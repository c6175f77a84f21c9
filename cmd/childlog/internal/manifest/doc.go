// Package manifest reads what people and harnesses state in JSON: the request
// of a delegation, the profile of a root, the ceiling of a narrowing, the
// operator rules of a store, a tool call to be decided. The schemas of the same
// documents are in package schema.
//
// # What a missing key means
//
// Every key may be missing unless it is said to be required, and then nothing is
// stated: the role, the parent or a default decides. An empty list is a
// statement, nothing. A null is refused, because readers disagree about it;
// tools alone knows it:
//
//	            missing           null              []        ["read"]
//	tools       inherit           inherit, as null  none      only these
//	providers   any               refused           none      only these
//	write_scope where files go    refused           nowhere   only there
//
// An empty text states nothing either; it is refused where a name is wanted.
//
// # Numbers and times
//
// Numbers are integers of at most 2^53. Durations are in milliseconds (wall_ms).
// Times are RFC 3339 in UTC, with at most three digits of fraction, such as
// 2026-03-01T12:00:00Z (deadline, expires).
//
// # Strictness
//
// Duplicate, unknown and differently cased keys and values of another type are
// refused with byte offset and path, see package strict. What policy refuses
// whatever the session may do, such as an unknown role or a path with "..", is
// refused here already, for the sake of the place. The limits are 1 MiB a
// document, 16 MiB a call, 64 levels. Errors wrap [eventlog.ErrInvalid] or
// [eventlog.ErrTooLarge]. The functions are safe for concurrent use.
package manifest
