package eventlog

import (
	"os"

	"golang.org/x/sys/unix"
)

// adviseWillNeed starts reading a part of a file, and does not wait. Advice
// that is not taken changes only the speed. The system takes a limited length
// at a time and drops the rest: callers ask for small parts.
func adviseWillNeed(f *os.File, from, n int64) {
	_ = unix.Fadvise(int(f.Fd()), from, n, unix.FADV_WILLNEED)
}

// releaseMapped drops the pages of a read-only map of a file. Advice that is
// not taken changes nothing.
func releaseMapped(at, size uintptr) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, at, size, unix.MADV_DONTNEED)
}
