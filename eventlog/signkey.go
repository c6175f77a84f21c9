package eventlog

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	signednote "golang.org/x/mod/sumdb/note"
)

// keyFile is where the signing key of a store is, unless it is kept elsewhere.
// It is never part of a copy: a restored store has another key.
const keyFile = "KEY"

// signKey is an Ed25519 key under the name of a store.
//
// The name is childlog/STORE, the origin of a checkpoint without its
// incarnation. tlog-checkpoint says that key name and origin SHOULD be the
// same; they differ so that the one line that an auditor keeps stays good when
// a rollback is accepted, which the log then says, instead of a new key that
// nobody can tell from a forger's.
type signKey struct {
	signednote.Signer
	verifier string // the verifier key, for people and IDENTITY
}

func keyName(store uuid.UUID) string { return "childlog/" + store.String() }

const algEd25519 = 1 // https://c2sp.org/signed-note

// newSignKey is the seed's key under the store's name.
func newSignKey(store uuid.UUID, seed []byte) (*signKey, string, error) {
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	verifier, err := signednote.NewEd25519VerifierKey(keyName(store), public)
	if err != nil {
		return nil, "", err
	}
	// Both spellings are NAME+HASH+KEY; the hash is that of the public key.
	hash := strings.Split(verifier, "+")[1]
	text := "PRIVATE+KEY+" + keyName(store) + "+" + hash + "+" + base64.StdEncoding.EncodeToString(append([]byte{algEd25519}, seed...))
	signer, err := signednote.NewSigner(text)
	return &signKey{signer, verifier}, text, err
}

// readSignKey reads a key file. One that was made for another store signs for
// this one too, under this one's name: whoever keeps keys apart from stores may
// have one for many, and no two stores share an origin. Errors: ErrInvalid,
// os.ErrNotExist.
func readSignKey(path string, store uuid.UUID) (*signKey, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(string(raw))
	if _, err := signednote.NewSigner(text); err != nil {
		return nil, invalidf("signing key %s: %v", path, err)
	}
	parts := strings.SplitN(text, "+", 5) // PRIVATE+KEY+NAME+HASH+KEY, in which KEY may hold a + of its own
	seed, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(seed) != 1+ed25519.SeedSize || seed[0] != algEd25519 {
		return nil, invalidf("signing key %s: want an Ed25519 key", path)
	}
	key, _, err := newSignKey(store, seed[1:])
	return key, err
}

// makeSignKey writes a new key to a file that must not exist. The file is whole
// or not there.
func makeSignKey(path string, store uuid.UUID) (*signKey, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := rand.Read(seed); err != nil {
		return nil, err
	}
	key, text, err := newSignKey(store, seed)
	if err != nil {
		return nil, err
	}
	tmp := path + ".new"
	if err := errors.Join(freshFile(tmp), writeSynced(tmp, []byte(text+"\n"))); err != nil {
		return nil, err
	}
	defer os.Remove(tmp)
	if err := os.Link(tmp, path); err != nil { // not a rename: a key is never replaced
		return nil, err
	}
	return key, syncDir(filepath.Dir(path))
}

// openSignKey reads the key at path, or makes one there.
func openSignKey(path string, store uuid.UUID) (*signKey, error) {
	key, err := readSignKey(path, store)
	if errors.Is(err, os.ErrNotExist) {
		key, err = makeSignKey(path, store)
	}
	return key, err
}

// ParseVerifierKey reads a verifier key, as init, checkpoint and stats print it:
// NAME+HASH+KEY, see https://c2sp.org/signed-note. Errors: ErrInvalid.
func ParseVerifierKey(text string) (signednote.Verifier, error) {
	v, err := signednote.NewVerifier(strings.TrimSpace(text))
	if err != nil {
		return nil, invalidf("verifier key %.100q: %v; want NAME+HASH+KEY", text, err)
	}
	return v, nil
}

// keyPath is where the signing key of this store is.
func (s *Store) keyPath() string {
	if s.opts.KeyFile != "" {
		return s.opts.KeyFile
	}
	return filepath.Join(s.dir, keyFile)
}

// VerifierKey is the public key of the store's checkpoints as IDENTITY has it,
// "" if nothing was ever signed. Whoever can write the directory can replace it:
// it proves something only where it was kept elsewhere.
func (s *Store) VerifierKey() string { return s.identity.Key }

// loadKey finds the key of a store that is open for writing. A store of a
// version that signed nothing, one that was restored or salvaged, gets its key
// now; one that has a key and lacks the file is written unsigned, since a new
// key would look like a forger's. Errors: ErrUnverified (another key than
// IDENTITY names), ErrInvalid.
func (s *Store) loadKey() error {
	if s.identity.Key == "" {
		return s.adoptKey()
	}
	key, err := readSignKey(s.keyPath(), s.identity.Store)
	if errors.Is(err, os.ErrNotExist) && s.opts.KeyFile == "" {
		s.notice(FindKey, 0, "the signing key is not here: nothing is signed until it is named")
		return nil
	}
	if err != nil {
		return err
	}
	if key.verifier != s.identity.Key {
		return fmt.Errorf("%w: the signing key %s is not the one that %s names: want %s, got %s", ErrUnverified, s.keyPath(), identityFile, s.identity.Key, key.verifier)
	}
	s.key = key
	return nil
}

// adoptKey gives a store its first key. Its first checkpoint is on the disk
// before IDENTITY names the key: from then on a store without CHECKPOINT has
// lost it.
func (s *Store) adoptKey() error {
	key, err := openSignKey(s.keyPath(), s.identity.Store)
	if err != nil {
		return fmt.Errorf("signing key: %w", err)
	}
	id := s.identity
	id.Key = key.verifier
	first, err := firstCheckpoint(key, id)
	if err != nil {
		return err
	}
	if err := replaceSynced(filepath.Join(s.dir, checkpointFile), first.Note); err != nil {
		return err
	}
	if err := s.replaceIdentity(id); err != nil {
		return err
	}
	s.key, s.signing.last = key, first
	return nil
}
