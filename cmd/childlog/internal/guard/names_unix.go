//go:build unix

package guard

import (
	"io/fs"
	"syscall"
)

// names counts the names of a file; 1 where it is not known.
func names(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}
