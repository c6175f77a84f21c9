// Package tokens keeps the bearer tokens with which a service of a store is
// used over TCP. They stand in the file TOKENS of the store's directory, each
// with a role, and only as hashes: whoever reads the file can't use one.
//
// The hash is a plain SHA-256. Slow, salted hashes are for secrets that people
// choose and that can be guessed; a token is 256 bits of chance, so a table of
// guesses never begins to cover it, and checking one costs microseconds where a
// password hash would let anybody on the network keep a processor busy.
//
// The file is replaced as a whole, under a lock on the directory, and read anew
// at every check: what was revoked or has expired is refused by a running
// service from the next request on. A file that can't be read, that others may
// read, or that says anything unknown admits nobody. No backup, bundle or
// export holds it; a restored store begins without tokens.
package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"childlog/eventlog"
)

// Role is what the bearer of a token may do. The zero value may do nothing.
type Role string

// The roles. Which operations each may call is said in package service.
const (
	Harness  Role = "harness"  // runs agents: creates, delegates, appends, asks, decides calls
	Operator Role = "operator" // all of that, and what only people order: narrowings, rules, erasing
	Auditor  Role = "auditor"  // reads
)

// Roles lists them.
func Roles() []Role { return []Role{Harness, Operator, Auditor} }

// ParseRole reads a role's name. Errors: ErrInvalid.
func ParseRole(text string) (Role, error) {
	if r := Role(text); slices.Contains(Roles(), r) {
		return r, nil
	}
	return "", fmt.Errorf("%w: role %.40q: want harness, operator or auditor", eventlog.ErrInvalid, text)
}

// Limits of the file: checking one token compares it with every other one.
const (
	MaxTokens = 256
	MaxLabel  = 200 // bytes
	maxFile   = 1 << 20
)

// Token is what is kept of one, but for its hash.
type Token struct {
	ID      string // names it in lists and logs; eight hex digits, and no secret
	Role    Role
	Label   string    // whose it is, in somebody's words; may be empty
	Created time.Time // UTC, in seconds
	Expires time.Time // from then on it is refused; zero: never
}

// Expired reports whether the token is refused at that time.
func (t Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// prefix begins every token, so that a scanner of sources and logs finds one
// that was left there.
const (
	prefix    = "clt_"
	secretLen = 32 // bytes of chance
)

// textLen is how long every token is.
var textLen = len(prefix) + base64.RawURLEncoding.EncodedLen(secretLen)

// mint makes a secret. crypto/rand.Read never fails: it ends the process if the
// system has no randomness to give.
func mint() string {
	b := make([]byte, secretLen)
	_, _ = rand.Read(b)
	return prefix + base64.RawURLEncoding.EncodeToString(b)
}

func mintID() string {
	b := make([]byte, 4)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

func hashOf(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// checkLabel keeps a label to one line of plain text.
func checkLabel(label string) error {
	switch {
	case len(label) > MaxLabel:
		return &eventlog.TooLargeError{What: "label of a token in bytes", Limit: MaxLabel, Size: uint64(len(label))}
	case !utf8.ValidString(label):
		return fmt.Errorf("%w: label of a token: not valid UTF-8", eventlog.ErrInvalid)
	case strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%w: label of a token: control and invisible characters are not allowed", eventlog.ErrInvalid)
	}
	return nil
}
