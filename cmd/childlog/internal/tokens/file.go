package tokens

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"

	"childlog/eventlog"
)

// FileName is the file in the store's directory, of mode 0600.
const FileName = "TOKENS"

// fileVersion is that of the form below; another one is refused.
const fileVersion = 1

// file is TOKENS as it is written.
type file struct {
	Version int     `json:"version"`
	Tokens  []entry `json:"tokens"`
}

type entry struct {
	ID      string     `json:"id"`
	Role    Role       `json:"role"`
	Label   string     `json:"label"`
	SHA256  string     `json:"sha256"` // of the whole token, lower-case hex
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires"` // null: never
}

func (e *entry) token() Token {
	t := Token{ID: e.ID, Role: e.Role, Label: e.Label, Created: e.Created}
	if e.Expires != nil {
		t.Expires = *e.Expires
	}
	return t
}

// Request describes a token to be made.
type Request struct {
	Role  Role
	Label string
	Life  time.Duration // until it expires; 0: it does not
	Now   time.Time
}

// New makes a token for the store at dir and returns it with its secret, which
// is nowhere else and is not told again. Errors: ErrInvalid, ErrTooLarge, and
// those of the file.
func New(dir string, r Request) (Token, string, error) {
	if _, err := ParseRole(string(r.Role)); err != nil {
		return Token{}, "", err
	}
	if err := checkLabel(r.Label); err != nil {
		return Token{}, "", err
	}
	if r.Life < 0 {
		return Token{}, "", fmt.Errorf("%w: a token that has expired: want a time of 0 or more, got %s", eventlog.ErrInvalid, r.Life)
	}
	secret := mint()
	hash := hashOf(secret)
	e := entry{Role: r.Role, Label: r.Label, SHA256: hex.EncodeToString(hash[:]), Created: r.Now.UTC().Truncate(time.Second)}
	if r.Life > 0 {
		at := r.Now.Add(r.Life).UTC().Truncate(time.Second)
		e.Expires = &at
	}
	err := change(dir, func(f *file) error {
		if len(f.Tokens) >= MaxTokens {
			return &eventlog.TooLargeError{What: "tokens of a store", Limit: MaxTokens, Size: uint64(len(f.Tokens)) + 1}
		}
		for e.ID = mintID(); slices.ContainsFunc(f.Tokens, func(o entry) bool { return o.ID == e.ID }); e.ID = mintID() {
		}
		f.Tokens = append(f.Tokens, e)
		return nil
	})
	if err != nil {
		return Token{}, "", err
	}
	return e.token(), secret, nil
}

// List returns the tokens of the store at dir in the order in which they were
// made, expired ones included. No file: none.
func List(dir string) ([]Token, error) {
	f, _, err := load(dir)
	if err != nil {
		return nil, err
	}
	list := make([]Token, 0, len(f.Tokens))
	for i := range f.Tokens {
		list = append(list, f.Tokens[i].token())
	}
	return list, nil
}

// Revoke removes the token with that id. Errors: ErrNotFound.
func Revoke(dir, id string) (Token, error) {
	var was Token
	err := change(dir, func(f *file) error {
		i := slices.IndexFunc(f.Tokens, func(e entry) bool { return e.ID == id })
		if i < 0 {
			return fmt.Errorf("%w: token %.40q", eventlog.ErrNotFound, id)
		}
		was = f.Tokens[i].token()
		f.Tokens = slices.Delete(f.Tokens, i, i+1)
		return nil
	})
	return was, err
}

// load reads the file. It fails rather than to leave out what it does not
// understand: a token that was to be revoked could be what it left out.
func load(dir string) (*file, []byte, error) {
	raw, err := read(dir)
	if err != nil || raw == nil {
		return &file{Version: fileVersion}, nil, err
	}
	f := &file{}
	if err := json.Unmarshal(raw, f, json.RejectUnknownMembers(true)); err != nil {
		return nil, nil, corruptf(dir, "%v", err)
	}
	if f.Version != fileVersion {
		return nil, nil, corruptf(dir, "version %d, want %d", f.Version, fileVersion)
	}
	if len(f.Tokens) > MaxTokens {
		return nil, nil, corruptf(dir, "%d tokens, want at most %d", len(f.Tokens), MaxTokens)
	}
	for i, e := range f.Tokens {
		h, err := hex.DecodeString(e.SHA256)
		_, roleErr := ParseRole(string(e.Role))
		if err != nil || len(h) != sha256.Size || roleErr != nil || e.ID == "" || slices.ContainsFunc(f.Tokens[:i], func(o entry) bool { return o.ID == e.ID }) {
			return nil, nil, corruptf(dir, "token %d of %d is not complete", i+1, len(f.Tokens))
		}
	}
	return f, raw, nil
}

// read returns the bytes of the file, nil if there is none.
func read(dir string) ([]byte, error) {
	f, err := os.OpenFile(filepath.Join(dir, FileName), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, corruptf(dir, "not a regular file")
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%w: %s: mode %04o lets others at it, want 0600", eventlog.ErrInvalid, f.Name(), fi.Mode().Perm())
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = corruptf(dir, "more than %d bytes", maxFile)
	}
	if raw == nil {
		raw = []byte{}
	}
	return raw, err
}

func corruptf(dir, format string, args ...any) error {
	return &eventlog.CorruptError{Reason: filepath.Join(dir, FileName) + ": " + fmt.Sprintf(format, args...)}
}

// change replaces the file by what edit makes of it. Two changes at a time wait
// for each other on the directory itself: no lock file is left behind, and the
// store's own lock, which a running service holds, is not needed.
func change(dir string, edit func(*file) error) error {
	d, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: store %s", eventlog.ErrNotFound, dir)
	}
	if err != nil {
		return err
	}
	defer d.Close() // gives the lock back
	if _, err := os.Stat(filepath.Join(dir, "IDENTITY")); err != nil {
		return fmt.Errorf("%w: store %s", eventlog.ErrNotFound, dir)
	}
	for {
		if err = unix.Flock(int(d.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	f, _, err := load(dir)
	if err != nil {
		return err
	}
	if err := edit(f); err != nil {
		return err
	}
	if f.Tokens == nil {
		f.Tokens = []entry{}
	}
	raw, err := json.Marshal(f, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return replace(d, append(raw, '\n'))
}

// replace writes the file anew: after a crash it is the old or the new one.
func replace(d *os.File, raw []byte) error {
	tmp, err := os.CreateTemp(d.Name(), FileName+".tmp-*") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // nothing is there any more once it was renamed
	_, err = tmp.Write(raw)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), filepath.Join(d.Name(), FileName)); err != nil {
		return err
	}
	return d.Sync()
}
