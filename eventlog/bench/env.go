package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// environment is what the figures depend on.
type environment struct {
	Time       time.Time         `json:"time"`
	Cores      int               `json:"cores"`
	CPU        string            `json:"cpu"`
	Go         string            `json:"go"`
	Kernel     string            `json:"kernel"`
	FileSystem string            `json:"file_system"`
	Load       string            `json:"load_average"` // at the beginning: who else works here
	Modules    map[string]string `json:"modules"`
}

func environmentOf(dir string) environment {
	e := environment{Time: time.Now().UTC(), Cores: runtime.NumCPU(), CPU: cpuName(), Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Kernel: kernel(), FileSystem: fileSystem(dir), Load: firstWords("/proc/loadavg", 3), Modules: map[string]string{}}
	if bi, ok := debug.ReadBuildInfo(); ok {
		for _, m := range bi.Deps {
			switch m.Path {
			case "go.etcd.io/bbolt", "modernc.org/sqlite", "github.com/tidwall/wal", "github.com/klauspost/compress", "github.com/vmihailenco/msgpack/v5":
				e.Modules[m.Path] = m.Version
			}
		}
	}
	return e
}

func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}

func fileSystem(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "unknown"
	}
	names := map[int64]string{unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
		unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs", unix.F2FS_SUPER_MAGIC: "f2fs", unix.NFS_SUPER_MAGIC: "nfs"}
	if n, ok := names[int64(st.Type)]; ok {
		return n
	}
	return fmt.Sprintf("%#x", st.Type)
}

func cpuName() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return "unknown"
}

func firstWords(path string, n int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	f := strings.Fields(string(b))
	return strings.Join(f[:min(n, len(f))], " ")
}

// procFields reads the "Name: number" lines of a file of /proc; sizes are as
// the file states them, kB in status and bytes in io.
func procFields(path string) (map[string]uint64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := map[string]uint64{}
	for line := range bytes.Lines(b) {
		name, rest, ok := strings.Cut(string(line), ":")
		if f := strings.Fields(rest); ok && len(f) > 0 {
			if n, err := strconv.ParseUint(f[0], 10, 64); err == nil {
				out[name] = n
			}
		}
	}
	return out, nil
}
