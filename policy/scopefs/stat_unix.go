//go:build unix

package scopefs

import (
	"io/fs"
	"syscall"
)

// nonblock keeps an open from waiting for the other end of a FIFO that took the
// place of a file. It has no effect on regular files, the only ones returned.
const nonblock = syscall.O_NONBLOCK

// hardLinks returns how many names a file has.
func hardLinks(info fs.FileInfo) (n uint64, known bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return uint64(st.Nlink), true
}
