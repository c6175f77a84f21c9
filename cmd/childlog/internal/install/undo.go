package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"childlog/eventlog"
)

// undo is the note that install leaves: what it takes to put everything back.
type undo struct {
	Version  int      `json:"childlog"` // of this note
	Original string   `json:"original"` // digest of the file before, "" if there was none
	Left     string   `json:"left"`     // digest of the file as install left it
	Backup   string   `json:"backup"`   // the name, beside this note, "" if there was no file
	Dirs     []string `json:"dirs"`     // that install made, the outermost first
}

const undoVersion = 1

func (f *settings) undoPath() string { return f.path + undoSuffix }

// readUndo reads the note, nil if there is none. One that can't be understood is
// an error: a guess could put the wrong bytes back. Errors: ErrInvalid.
func (f *settings) readUndo() (*undo, error) {
	b, err := readPlain(f.undoPath(), maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, denied(f.undoPath(), "can't be read", err)
	}
	var u undo
	if err := json.Unmarshal(b, &u, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", eventlog.ErrInvalid, f.undoPath(), err)
	}
	if u.Version != undoVersion || u.Backup != filepath.Base(u.Backup) && u.Backup != "" {
		return nil, fmt.Errorf("%w: %s: got version %d, want %d; use the version of childlog that wrote it", eventlog.ErrInvalid, f.undoPath(), u.Version, undoVersion)
	}
	return &u, nil
}

func (f *settings) writeUndo(u *undo) error {
	b, err := json.Marshal(u, jsontext.WithIndent("  "))
	if err == nil {
		err = replaceFile(f.undoPath(), append(b, '\n'), 0o600)
	}
	return err
}

func (u *undo) backupPath(f *settings) string {
	if u == nil || u.Backup == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(f.path), u.Backup)
}

// original reads the bytes of before, if the backup still holds them.
func (u *undo) original(f *settings) ([]byte, bool) {
	if u == nil || u.Backup == "" {
		return nil, false
	}
	b, err := readPlain(u.backupPath(f), maxSettings)
	return b, err == nil && digest(b) == u.Original
}

// is reports whether the file is what a digest says, "" being no file.
func (f *settings) is(want string) bool {
	return f.exists == (want != "") && (!f.exists || digest(f.data) == want)
}

// clear removes the note, and the backup if its bytes are back in the file.
func (f *settings) clear(u *undo, backupToo bool) error {
	if path := u.backupPath(f); backupToo && path != "" {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Remove(f.undoPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeDirs removes directories that install made and that hold nothing now.
func removeDirs(dirs []string) {
	for i := len(dirs) - 1; i >= 0; i-- {
		if os.Remove(dirs[i]) != nil {
			return // something is in it, so it stays, and all above it
		}
	}
}
