//go:build darwin || freebsd

package forward

import "golang.org/x/sys/unix"

// peerUID is the effective user id that the other end had when it connected or
// began to listen (LOCAL_PEERCRED, which getpeereid(3) reads).
func peerUID(fd int) (int, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
