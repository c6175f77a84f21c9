package replay_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"childlog/eventlog"
)

// patchLast rewrites the last frame of a session where it lies in store.db, of
// the same length and with a sound checksum: what a newer version would have
// written, or an attacker. Only the last one can be changed without breaking
// the chain. Old copies of a page may lie around in the file, so every match
// is patched.
func (f *fixture) patchLast(session uuid.UUID, patch func(frame []byte) bool) {
	f.t.Helper()
	head := f.row(session).Head
	require.Less(f.t, head, uint64(128), "seqs of more than one byte are not read here")
	f.rewrite(session, func(frame []byte) bool {
		if first, count := frame[26], frame[27]; uint64(first+count-1) != head || !patch(frame) {
			return false
		}
		sum := crc32.Checksum(frame[:len(frame)-4], crc32.MakeTable(crc32.Castagnoli))
		binary.LittleEndian.PutUint32(frame[len(frame)-4:], sum)
		return true
	})
}

// rewrite changes frames without mending the checksum: damage. patch reports
// whether it changed the frame. The store is closed for
// it and left closed.
func (f *fixture) rewrite(session uuid.UUID, patch func(frame []byte) bool) {
	f.t.Helper()
	require.NoError(f.t, f.Store.Close())
	path := filepath.Join(f.dir, "store.db")
	file, err := os.ReadFile(path)
	require.NoError(f.t, err)
	patched := 0
	for at := 0; ; at += 4 {
		i := bytes.Index(file[at:], []byte("CLF1"))
		if i < 0 {
			break
		}
		at += i
		end := at + 8
		if end > len(file) {
			break
		}
		if end += int(binary.LittleEndian.Uint32(file[at+4:])); end > len(file) || end < at+8+22 {
			continue
		}
		frame := file[at:end]
		// flags, frames_left (one byte in small units), session
		if bytes.Equal(frame[10:26], session[:]) && patch(frame) {
			patched++
		}
	}
	require.NotZero(f.t, patched, "no frame was found to patch")
	require.NoError(f.t, os.WriteFile(path, file, 0o600))
	f.resign()
}

// resign signs what the journal is now, as who has the key can: what is refused
// then is refused for what the logs say. Damage has no tree, and stays unsigned.
func (f *fixture) resign() {
	f.t.Helper()
	s, err := eventlog.Open(f.ctx, f.dir, eventlog.Options{ReadOnly: true})
	if err != nil {
		return
	}
	defer s.Close()
	stats, err := s.Stats()
	require.NoError(f.t, err)
	r, err := s.TreeHashes(f.ctx, stats.Frames)
	require.NoError(f.t, err)
	root, err := tlog.TreeHash(int64(stats.Frames), r)
	if err != nil {
		return
	}
	key, err := os.ReadFile(filepath.Join(f.dir, "KEY"))
	require.NoError(f.t, err)
	signer, err := note.NewSigner(strings.TrimSpace(string(key)))
	require.NoError(f.t, err)
	text := fmt.Sprintf("%s\n%d\n%s\n", s.Identity().Origin(), stats.Frames, root)
	signed, err := note.Sign(&note.Note{Text: text}, signer)
	require.NoError(f.t, err)
	require.NoError(f.t, os.WriteFile(filepath.Join(f.dir, "CHECKPOINT"), signed, 0o600))
}

// dropIndex removes the derived index, as anybody may at any time.
func (f *fixture) dropIndex() {
	f.t.Helper()
	err := os.Remove(filepath.Join(f.dir, "index.db"))
	if err != nil {
		require.ErrorIs(f.t, err, os.ErrNotExist)
	}
}

// header finds an event's header by its type: version, flags, source, length
// of the type, type.
func header(frame []byte, typ string) []byte {
	i := bytes.Index(frame, append([]byte{byte(len(typ))}, typ...))
	if i < 3 {
		return nil
	}
	return frame[i-3 : i+1+len(typ)]
}

// retype gives the event of a type another one of the same length.
func retype(from, to string) func([]byte) bool {
	return func(frame []byte) bool {
		h := header(frame, from)
		if h == nil {
			return false
		}
		copy(h[4:], to)
		return true
	}
}

// reversion gives the event of a type another schema version.
func reversion(typ string, version byte) func([]byte) bool {
	return func(frame []byte) bool {
		h := header(frame, typ)
		if h == nil {
			return false
		}
		h[0] = version
		return true
	}
}

// flip damages the type of an event, under the checksum.
func flip(typ string) func([]byte) bool {
	return func(frame []byte) bool {
		h := header(frame, typ)
		if h == nil {
			return false
		}
		h[4] ^= 0x20
		return true
	}
}
