package command

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/failure"
)

// Damaged pages, whichever they are and however much they keep from being
// read, are findings in words: verify answers with a report and exit 6, never
// with what Go says of a panic, and does not send the reader to itself.
func TestVerifyDamagedPages(t *testing.T) {
	dir := newStore(t)
	for range 40 {
		code, _, msg := inProcess(t, dir, strings.Repeat(`{"type":"a/b","content_text":"`+strings.Repeat("x", 500)+`"}`+"\n", 10), "append", rootID)
		require.Zero(t, code, msg)
	}
	path := filepath.Join(dir, "store.db")
	sound := journal(t, dir)
	page := int(binary.LittleEndian.Uint32(sound[16+8:])) // of the first meta page
	reports := 0
	for at := 0; at < min(len(sound), 60*page); at += page {
		for _, fill := range []byte{0xff, 0x01} {
			hurt := append([]byte(nil), sound...)
			for i := at + 8; i < at+64 && i < len(hurt); i++ {
				hurt[i] = fill
			}
			require.NoError(t, os.WriteFile(path, hurt, 0o600))
			code, out, msg := inProcess(t, dir, "", "verify", "--json")
			if code == failure.ExitOK { // a free page
				continue
			}
			reports++
			require.Equal(t, failure.ExitCorrupt, code, msg)
			require.Contains(t, out, `{"ok":false,`, msg)
			require.Contains(t, out, `"kind":"`)
			require.NotContains(t, msg, "childlog verify", "it has just run")
			for _, text := range []string{"runtime error", "goroutine", "assertion failed", "panic"} {
				require.NotContains(t, out+msg, text)
			}
		}
	}
	require.Greater(t, reports, 10)
}
