package forward

import "golang.org/x/sys/unix"

// peerUID is the effective user id that the other end had when it connected or
// began to listen (unix(7), SO_PEERCRED).
func peerUID(fd int) (int, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
