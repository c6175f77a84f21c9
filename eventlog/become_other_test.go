//go:build !linux

package eventlog

import "golang.org/x/sys/unix"

// become makes a descriptor one of what another is of.
func become(what, fd int) error { return unix.Dup2(what, fd) }
