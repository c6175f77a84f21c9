//go:build !linux && !darwin && !freebsd

package doctor

import "golang.org/x/sys/unix"

// Where the system does not say it in a known way, nothing is said.
func fileSystem(*unix.Statfs_t) (string, bool) { return "", false }

func readOnly(*unix.Statfs_t) bool { return false }
