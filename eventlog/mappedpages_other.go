//go:build !linux

package eventlog

func releaseMapped(uintptr, uintptr) {}
