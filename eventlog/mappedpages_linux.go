package eventlog

import "golang.org/x/sys/unix"

// releaseMapped drops the pages of a read-only map of a file. Advice that is
// not taken changes nothing.
func releaseMapped(at, size uintptr) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, at, size, unix.MADV_DONTNEED)
}
