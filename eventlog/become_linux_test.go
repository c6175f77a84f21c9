package eventlog

import "golang.org/x/sys/unix"

// become makes a descriptor one of what another is of. Not every Linux has dup2.
func become(what, fd int) error { return unix.Dup3(what, fd, unix.O_CLOEXEC) }
