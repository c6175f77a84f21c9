package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
)

// costUse is what the cost task did, from its first append to after Close.
type costUse struct {
	Events  int64  `json:"events"`
	Written uint64 `json:"written_bytes"` // by write calls (wchar)
	Calls   uint64 `json:"write_calls"`   // syscw
}

// fileCost is what was done to one file, seen by strace.
type fileCost struct {
	Syncs  int   `json:"syncs"`
	Writes int   `json:"writes"`
	Bytes  int64 `json:"bytes"`
}

// runCost counts what a commit takes: syncs, pages, bytes.
func runCost(o *options, rs map[string]*row) ([]target, error) {
	r := rs["cost"]
	r.Work = "what a commit costs, events of 300 bytes"
	strace, err := findStrace()
	if err != nil {
		r.note("syncs and pages are not counted: %v", err)
	}
	for _, c := range []struct{ children, events int }{
		{1, o.size(1000, 100)}, {64, o.size(20_000, 2_000)}, {512, o.size(60_000, 8_000)},
	} {
		if err := costOf(o, r, strace, c.children, c.events); err != nil {
			return nil, fmt.Errorf("%d children: %w", c.children, err)
		}
	}
	return nil, nil
}

// findStrace returns the path of an strace that may trace here.
func findStrace() (string, error) {
	path, err := exec.LookPath("strace")
	if err != nil {
		return "", errors.New("strace is not installed")
	}
	if out, err := exec.Command(path, "-f", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		return "", fmt.Errorf("strace can't trace here: %w: %s", err, out)
	}
	return path, nil
}

func costOf(o *options, r *row, strace string, children, events int) (err error) {
	dir, done, err := o.scratch("cost")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	args := []string{dir, strconv.Itoa(children), strconv.Itoa(events)}
	trace := filepath.Join(dir, "trace")
	var wrap []string
	if strace != "" {
		wrap = []string{strace, "-f", "-y", "-s", "0", "--seccomp-bpf", "-e", "trace=pwrite64,write,fsync,fdatasync", "-o", trace}
	}
	var use costUse
	if err := answerOf(&use, wrap, "cost", args...); err != nil {
		return err
	}
	commits, err := commitsSince(dir)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d children: ", children)
	if children == 1 {
		name = "1 child: "
	}
	add := func(what, unit string, v float64) { r.add(name+what, unit, []float64{v}) }
	add("events", "/commit", float64(use.Events)/commits)
	r.detail(fmt.Sprint(children), map[string]any{"use": use, "commits": commits})
	if strace == "" {
		add("written to store.db and index.db", "B/event", float64(use.Written)/float64(use.Events))
		return nil
	}
	f, err := os.Open(trace)
	if err != nil {
		return err
	}
	defer f.Close()
	files, err := parseTrace(f)
	if err != nil {
		return err
	}
	page, err := useOf(filepath.Join(dir, "store", "store.db"))
	if err != nil {
		return err
	}
	journal, index := files["store.db"], files["index.db"]
	add("fdatasyncs of store.db", "/commit", float64(journal.Syncs)/commits)
	add("pages of store.db", "/commit", float64(journal.Bytes)/float64(page.PageSize)/commits)
	add("written to store.db", "B/commit", float64(journal.Bytes)/commits)
	add("written to store.db", "B/event", float64(journal.Bytes)/float64(use.Events))
	add("written to index.db", "B/event", float64(index.Bytes)/float64(use.Events))
	r.detail(fmt.Sprint(children, " traced"), files)
	return nil
}

// parseTrace sums strace's lines by the base name of the file. Only what lies
// between the marks of the task counts.
func parseTrace(r io.Reader) (map[string]fileCost, error) {
	out := map[string]fileCost{}
	counting := false
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<16), 1<<20)
	for lines.Scan() {
		m := traceLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		call, file, result := m[1], filepath.Base(m[2]), m[3]
		switch file {
		case markBegin:
			counting = true
		case markEnd:
			counting = false
		}
		if !counting {
			continue
		}
		c := out[file]
		switch call {
		case "fsync", "fdatasync":
			c.Syncs++
		default:
			c.Writes++
			if n, err := strconv.ParseInt(result, 10, 64); err == nil {
				c.Bytes += n
			}
		}
		out[file] = c
	}
	return out, lines.Err()
}

// A call that another thread interrupted stands on two lines, the first
// without a result: its last argument but one says how much was to be written.
var traceLine = regexp.MustCompile(`^\d+ +(write|pwrite64|fsync|fdatasync)\(\d+<([^>]*)>(?:, ""(?:\.\.\.)?, (\d+)[^)]*)?`)

const (
	markBegin = "mark.begin" // files that the task writes to, for the trace
	markEnd   = "mark.end"
	startFile = "start" // holds the transaction id before the first append
)

// costTask appends events from children that wait for each.
func costTask(args []string) error {
	if len(args) != 3 {
		return errors.New("cost: want a directory, children and events")
	}
	children, err1 := strconv.Atoi(args[1])
	events, err2 := strconv.Atoi(args[2])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	s, err := newStore(args[0], children)
	if err != nil {
		return err
	}
	// Closed once, so that its file tells how many commits came before.
	if err := s.Close(); err != nil {
		return err
	}
	if err := s.reopen(); err != nil {
		return err
	}
	use, err := s.countAppends(args[0], children, events)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return reply(use)
}

// countAppends appends, closes the store, so that the index is whole, and says
// what this process wrote meanwhile.
func (s *store) countAppends(dir string, children, events int) (use costUse, err error) {
	before, err := procFields("/proc/self/io")
	if err != nil {
		return use, err
	}
	if err := os.WriteFile(filepath.Join(dir, markBegin), []byte("."), 0o600); err != nil {
		return use, err
	}
	var left atomic.Int64
	left.Store(int64(events))
	err = parallel(children, children, func(i int) error {
		src := newSource(i)
		for left.Add(-1) >= 0 {
			r, err := src.next()
			if err == nil {
				err = s.Append(i, r)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, s.Close()); err != nil {
		return use, err
	}
	after, err := procFields("/proc/self/io")
	if err != nil {
		return use, err
	}
	if err := os.WriteFile(filepath.Join(dir, markEnd), []byte("."), 0o600); err != nil {
		return use, err
	}
	return costUse{Events: int64(events), Written: after["wchar"] - before["wchar"], Calls: after["syscw"] - before["syscw"]}, nil
}

// reopen opens a closed store again and notes how many commits its file has
// seen.
func (s *store) reopen() error {
	use, err := useOf(filepath.Join(s.Dir(), "store.db"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.Dir()), startFile), []byte(strconv.Itoa(use.LastCommit)), 0o600); err != nil {
		return err
	}
	return s.open(s.Dir())
}

// commitsSince counts the commits after reopen.
func commitsSince(dir string) (float64, error) {
	b, err := os.ReadFile(filepath.Join(dir, startFile))
	if err != nil {
		return 0, err
	}
	start, err := strconv.Atoi(string(b))
	if err != nil {
		return 0, err
	}
	use, err := useOf(filepath.Join(dir, "store", "store.db"))
	if err == nil && use.LastCommit <= start {
		err = fmt.Errorf("commits: %d at the beginning, %d at the end", start, use.LastCommit)
	}
	return float64(use.LastCommit - start), err
}
