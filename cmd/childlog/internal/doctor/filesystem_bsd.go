//go:build darwin || freebsd

package doctor

import "golang.org/x/sys/unix"

func fileSystem(st *unix.Statfs_t) (kind string, remote bool) {
	return unix.ByteSliceToString(st.Fstypename[:]), st.Flags&unix.MNT_LOCAL == 0
}

func readOnly(st *unix.Statfs_t) bool { return st.Flags&unix.MNT_RDONLY != 0 }
