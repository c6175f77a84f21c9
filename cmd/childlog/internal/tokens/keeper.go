package tokens

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"childlog/eventlog"
)

// ErrRefused is what is said of a token that is not, or no longer, one of the
// store's. It does not say which of the two. It wraps ErrUnauthorized.
var ErrRefused = fmt.Errorf("%w: the token is not one of this store, or was revoked, or has expired", eventlog.ErrUnauthorized)

// Keeper checks tokens of one store. It may be used concurrently.
type Keeper struct {
	dir string

	mu   sync.Mutex
	raw  []byte // what known was read from
	list []known
}

type known struct {
	token Token
	hash  [sha256.Size]byte
}

// Keep returns a keeper of the store at dir. The file need not be there.
func Keep(dir string) *Keeper { return &Keeper{dir: dir} }

// Check finds the token that a client presented. The file is read each time and
// its bytes compared with those that were parsed last: times and inodes of files
// can't tell two changes within a tick of the kernel's clock apart, and a token
// that was revoked must never be let in.
//
// Errors: ErrRefused; others if the file can't be used, which admits nobody.
func (k *Keeper) Check(secret string, now time.Time) (Token, error) {
	list, err := k.read()
	if err != nil {
		return Token{}, err
	}
	if len(secret) != textLen || secret[:len(prefix)] != prefix {
		return Token{}, ErrRefused
	}
	hash := hashOf(secret)
	found := -1
	for i := range list { // all of them, however early one is found
		if subtle.ConstantTimeCompare(list[i].hash[:], hash[:]) == 1 {
			found = i
		}
	}
	if found < 0 || list[found].token.Expired(now) {
		return Token{}, ErrRefused
	}
	return list[found].token, nil
}

// Still reports whether a token that was checked once is still good, for what
// lasts longer than a request. Errors: as of Check.
func (k *Keeper) Still(id string, now time.Time) error {
	list, err := k.read()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(o known) bool { return o.token.ID == id && !o.token.Expired(now) }) {
		return ErrRefused
	}
	return nil
}

func (k *Keeper) read() ([]known, error) {
	raw, err := read(k.dir)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if raw != nil && k.raw != nil && bytes.Equal(raw, k.raw) {
		return k.list, nil
	}
	f, raw, err := load(k.dir)
	if err != nil {
		k.raw, k.list = nil, nil
		return nil, err
	}
	list := make([]known, 0, len(f.Tokens))
	for i := range f.Tokens {
		o := known{token: f.Tokens[i].token()}
		n, err := hex.Decode(o.hash[:], []byte(f.Tokens[i].SHA256))
		if err != nil || n != sha256.Size {
			return nil, errors.New("a hash that was read as one is none") // load checked it
		}
		list = append(list, o)
	}
	k.raw, k.list = raw, list
	return list, nil
}
