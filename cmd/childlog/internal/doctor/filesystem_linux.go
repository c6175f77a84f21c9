package doctor

import "golang.org/x/sys/unix"

// remoteTypes are the file systems of other machines, by their magic numbers
// (statfs(2), linux/magic.h). FUSE may be one or not, and is not held against
// anybody.
var remoteTypes = map[uint32]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS", unix.SMB2_SUPER_MAGIC: "SMB2",
	unix.AFS_SUPER_MAGIC: "AFS", unix.AFS_FS_MAGIC: "AFS", unix.CODA_SUPER_MAGIC: "Coda", unix.NCP_SUPER_MAGIC: "NCP",
	unix.CEPH_SUPER_MAGIC: "Ceph", unix.V9FS_MAGIC: "9P", 0x0BD00BD0: "Lustre",
}

func fileSystem(st *unix.Statfs_t) (kind string, remote bool) {
	kind, remote = remoteTypes[uint32(st.Type)]
	return kind, remote
}

func readOnly(st *unix.Statfs_t) bool { return st.Flags&unix.ST_RDONLY != 0 }
