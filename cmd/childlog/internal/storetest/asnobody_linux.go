package storetest

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody is a user that owns no store.
const nobody = 65534

// AsNobody runs f as another user, in a thread of its own that ends with that
// identity: what f listens on or connects to is that user's. It skips the test
// where this process may not be another user.
func AsNobody(t testing.TB, f func() error) error {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), nobody, ^uintptr(0)); errno != 0 {
			done <- errno
			return
		}
		done <- f()
	}()
	return <-done
}
