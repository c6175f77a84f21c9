package install

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Self is the absolute path of this executable, by the name that it was started
// with: a package manager puts a link there and moves what it leads to with
// every version, and a hook that names the old version does not run.
func Self() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	if named, err := exec.LookPath(os.Args[0]); err == nil {
		if named, err = filepath.Abs(named); err == nil && sameFile(named, exe) {
			return named, nil
		}
	}
	return exe, nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}
