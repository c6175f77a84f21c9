//go:build !unix

package scopefs

import "io/fs"

const nonblock = 0

// hardLinks cannot be asked here, so no existing file is known to be the only
// name of what it holds, and every one is outside.
func hardLinks(fs.FileInfo) (n uint64, known bool) { return 0, false }
