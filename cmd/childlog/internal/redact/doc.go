// Package redact replaces secrets in what leaves a store: in texts, in JSON at
// any depth and in labels. It changes copies on their way out and never a store.
//
// A detector knows the shape of one kind of secret: an issuer's prefix, a block
// of a private key, the user and password in a URL, a header, a value behind a
// name such as password. What it finds becomes [redacted:NAME] with the
// detector's name: the same text for every secret of its kind, never a hash or
// a length, which would let a reader try guesses.
//
// The filter replaces what its detectors know. It does not know every secret,
// and it never says that none is left: see [Counts.Summary].
//
// # What is looked into
//
// In JSON, names and string values are read as what they stand for, so an
// escape hides nothing. A string that is JSON itself is filtered as JSON and
// quoted again, up to [maxWrapped] levels; what lies deeper is filtered as text.
// A member whose name promises a secret loses its value whatever it looks like,
// numbers included; so do the element behind "--password" in a list of
// arguments and the "value" behind a "name". Valid JSON stays valid JSON without
// duplicate names. A string that nothing was found in keeps its exact bytes.
//
// Runs of base64 that hold readable text are filtered inside and encoded again.
// Other wrappings (hex, compression, UTF-16, a secret cut in two) are not undone.
//
// # Why it is written here
//
// The known libraries with rule sets are scanners: they report places in files
// of a repository and rewrite nothing. The one with the best rules, gitleaks,
// brings 58 indirect modules (a configuration framework, archive readers, a
// second regular expression engine). Half of what an export needs (names of JSON members, values
// in values, paths, equal output for equal input) would still be left to do. The shapes of
// tokens are facts that their issuers publish; tokens.go lists them.
//
// # Cost
//
// One pass over the bytes finds all the literals that any secret of the table
// begins with or stands behind. Detectors read on from there: over a bounded
// distance, or over a run that is not read again from inside, so the time is
// linear in the input. A value is filtered as a whole: an export passes one
// content at a time, which the store bounds.
package redact
