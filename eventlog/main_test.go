package eventlog

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files in ../testdata")

// Some rules can only be seen from another process: a lock, a kill, a file
// size limit. The test binary then runs itself again with this variable set
// to the part it has to play.
const roleVar = "CHILDLOG_TEST_ROLE"

var roles = map[string]func(){}

func TestMain(m *testing.M) {
	if role := roles[os.Getenv(roleVar)]; role != nil {
		role()
		return
	}
	code := m.Run()
	if left := goroutinesLeft(); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, "goroutines outlived their store:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// goroutinesLeft returns the stacks of this package's goroutines other than
// tests, after some patience for those that are on their way out.
func goroutinesLeft() string {
	var left []string
	for range 100 {
		left = left[:0]
		buf := make([]byte, 1<<20)
		for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(stack, "eventlog.(*Store).runCommitter") || strings.Contains(stack, "eventlog.(*writer).run") || strings.Contains(stack, "eventlog.(*indexer).run") ||
				strings.Contains(stack, "eventlog.(*Store).scan.func") {
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return ""
		}
		time.Sleep(20 * time.Millisecond)
	}
	return strings.Join(left, "\n\n")
}
