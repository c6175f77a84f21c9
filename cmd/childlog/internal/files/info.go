package files

import (
	"io/fs"
	"syscall"
	"time"
)

// Info is what a caller's process said of a file of its own.
type Info struct {
	Base          string
	Bytes         int64
	Bits          fs.FileMode
	Modified      time.Time
	Device, Inode uint64
	Links         uint64 // names that the file has; 0: unknown
}

// InfoOf copies what there is to know of a file.
func InfoOf(fi fs.FileInfo) *Info {
	if i, ok := fi.(*Info); ok {
		return i
	}
	i := &Info{Base: fi.Name(), Bytes: fi.Size(), Bits: fi.Mode(), Modified: fi.ModTime()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		i.Device, i.Inode, i.Links = uint64(st.Dev), uint64(st.Ino), uint64(st.Nlink) // their widths differ by system
	}
	return i
}

var _ fs.FileInfo = (*Info)(nil)

func (i *Info) Name() string       { return i.Base }
func (i *Info) Size() int64        { return i.Bytes }
func (i *Info) Mode() fs.FileMode  { return i.Bits }
func (i *Info) ModTime() time.Time { return i.Modified }
func (i *Info) IsDir() bool        { return i.Bits.IsDir() }
func (i *Info) Sys() any           { return nil }
