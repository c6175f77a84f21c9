package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// fingerprintPrefix names the form of the line. A change to it, to the order or
// to the spelling of a field needs another number.
const fingerprintPrefix = "childlog-grant/1"

// Fingerprint identifies what a child was granted. The line is for people, who
// have to see which side differs when a launch is refused; the sum is for
// machines and for records. Equal grants have equal lines, whatever order their
// lists were stated in, and different grants different ones.
type Fingerprint struct {
	Line string
	Sum  [32]byte // SHA-256 of Line
}

// FingerprintOf returns the fingerprint of a grant under a role:
//
//	childlog-grant/1 role=R field=value ... delegable{field=value ...} deny_paths=[...] explicit=[...]
//
// All fields of the own half stand first, in a fixed order; of the delegable
// half those that differ from it. Lists are sorted, paths quoted, so no value
// can pass for a field. What does not narrow (model, provider, effort,
// background) is not part of it.
func FingerprintOf(role Role, granted Authority) Fingerprint {
	line := fingerprintPrefix + " role=" + string(role) + " " + granted.line()
	return Fingerprint{Line: line, Sum: sha256.Sum256([]byte(line))}
}

// String returns the sum in hex.
func (f Fingerprint) String() string { return hex.EncodeToString(f.Sum[:]) }

// Check is for the launch of a child: it refuses, with both lines, a grant that
// is not the one fingerprinted. Wrapped [ErrInvalid].
func (f Fingerprint) Check(role Role, granted Authority) error {
	got := FingerprintOf(role, granted)
	if got.Sum != f.Sum {
		return invalid("fingerprint: got %s, want %s", got.Line, f.Line)
	}
	return nil
}

// line renders a in one canonical spelling.
func (a Authority) line() string {
	a = a.Canonical()
	var b strings.Builder
	b.WriteString(a.Own.line() + " delegable{")
	own, sep := a.Own.fields(), ""
	for i, f := range a.Delegable.fields() {
		if f.value != own[i].value {
			b.WriteString(sep + f.name + "=" + f.value)
			sep = " "
		}
	}
	b.WriteString("} deny_paths=")
	paths := a.Operator.Paths().Entries()
	for i, p := range paths {
		paths[i] = strconv.QuoteToASCII(p)
	}
	b.WriteString(list(paths) + " explicit=")
	terms := make([]string, len(a.Explicit))
	for i, g := range a.Explicit {
		terms[i] = g.text()
	}
	slices.Sort(terms)
	b.WriteString(list(terms))
	return b.String()
}
