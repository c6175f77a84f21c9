//go:build !linux

package eventlog

import "os"

func adviseWillNeed(*os.File, int64, int64) {}

func releaseMapped(uintptr, uintptr) {}
