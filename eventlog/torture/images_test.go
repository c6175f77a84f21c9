//go:build linux && amd64

package torture_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

// sector is what a disk writes whole or not at all, bytes.
const sector = 512

// disk is what a power cut would find: for each file the bytes that are surely
// there, and the changes since its last sync, each of which may be there, or a
// part of it.
type disk struct {
	files map[string]*diskFile
	drops bool // a failed sync loses what it was to write, for ever
}

type diskFile struct {
	durable  []byte
	unsynced []step
}

// newDisk takes the files of a store that nobody has open as durable.
func newDisk(t testing.TB, dir string) *disk {
	d := &disk{files: map[string]*diskFile{}}
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range names {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		d.files[e.Name()] = &diskFile{durable: b}
	}
	return d
}

// take applies a step of a process. It reports whether a power cut after it
// may find something else than before.
func (d *disk) take(s step) bool {
	switch s.call {
	case "create":
		if d.files[s.file] == nil && s.done {
			d.files[s.file] = &diskFile{}
			return true
		}
		return false
	case "unlink":
		delete(d.files, s.file)
		return true
	}
	f := d.files[s.file]
	if f == nil {
		return false
	}
	switch s.call {
	case "pwrite64", "ftruncate":
		if s.done {
			f.unsynced = append(f.unsynced, s)
		}
	case "fsync", "fdatasync":
		if s.done && !s.failed {
			for _, u := range f.unsynced {
				f.durable = u.apply(f.durable, nil)
			}
			f.unsynced = nil
		} else if d.drops && !s.done {
			f.unsynced = nil
		}
	default:
		return false
	}
	return true
}

// apply changes a file's bytes by a step, or by those sectors of it that keep
// picks.
func (s *step) apply(b []byte, keep func() bool) []byte {
	if s.call == "ftruncate" {
		if n := int(s.offset) - len(b); n > 0 {
			return append(b, make([]byte, n)...)
		}
		return b[:s.offset]
	}
	for from := 0; from < len(s.data); from += sector {
		part := s.data[from:min(from+sector, len(s.data))]
		if keep != nil && !keep() {
			continue
		}
		at := int(s.offset) + from
		if n := at + len(part) - len(b); n > 0 {
			b = append(b, make([]byte, n)...)
		}
		copy(b[at:], part)
	}
	return b
}

// A cut decides which of the unsynced changes reached the disk.
type cut struct {
	name  string
	whole func() bool // the change
	part  func() bool // a sector of it; nil: all of them
}

func cuts(random *rand.Rand) []cut {
	coin := func() bool { return random.IntN(2) == 0 }
	yes := func() bool { return true }
	return []cut{
		{"nothing", func() bool { return false }, nil},
		{"everything", yes, nil},
		{"a subset", coin, nil},
		{"most", func() bool { return random.IntN(8) > 0 }, nil},
		{"torn", yes, coin},
		{"a torn subset", coin, coin},
	}
}

// write builds the files that a power cut leaves.
func (d *disk) write(dir string, c cut) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		f := d.files[name]
		b := slices.Clone(f.durable)
		for _, u := range f.unsynced {
			if c.whole() {
				b = u.apply(b, c.part)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

const acksVar = "CHILDLOG_TORTURE_ACKS"

func init() {
	// Looks at one image after the other, as often as it is told a directory
	// and how many lines of the file of acknowledgements hold for it.
	roles["look"] = func() {
		a := assigned()
		raw, err := os.ReadFile(os.Getenv(acksVar))
		fail(err)
		lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
		for {
			var dir string
			var n int
			if _, err := fmt.Scan(&dir, &n); err != nil {
				return
			}
			r := a.Plot.record()
			for _, text := range lines[:n] {
				fail(r.note(text))
			}
			before := tally.acked.Load()
			if err := r.settle(dir, eventlog.Options{}); err != nil {
				fmt.Printf("failed: %s\n", strings.ReplaceAll(err.Error(), "\n", " | "))
			} else {
				fmt.Printf("ok %d\n", tally.acked.Load()-before)
			}
		}
	}
}

// said lists the acknowledgements among the steps of a process.
func said(steps []step) (lines []string, failures []string) {
	for _, s := range steps {
		if s.call != "say" {
			continue
		}
		for _, text := range strings.Split(strings.TrimSuffix(string(s.data), "\n"), "\n") {
			if strings.HasPrefix(text, "{") {
				lines = append(lines, text)
			} else {
				failures = append(failures, text)
			}
		}
	}
	return lines, failures
}

// lookAt builds what a power cut would leave after each step from the given one
// on, in every way, and has each image looked at. Of those images it takes
// about one in every.
func lookAt(t testing.TB, p plot, d *disk, steps []step, from, every int, random *rand.Rand) {
	t.Helper()
	lines, failures := said(steps)
	require.Empty(t, failures)
	acks := filepath.Join(t.TempDir(), "acks")
	require.NoError(t, os.WriteFile(acks, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	l := &looker{t: t, role: "look", env: []string{assignment{Plot: p}.env(), acksVar + "=" + acks}}
	defer l.end()
	dir := filepath.Join(fastDir(t), "image")
	acked := 0
	for i, s := range steps {
		if s.call == "say" {
			acked++
			continue
		}
		if !d.take(s) || i < from {
			continue
		}
		for _, c := range cuts(random) {
			if random.IntN(every) > 0 {
				continue
			}
			require.NoError(t, d.write(dir, c))
			tally.images.Add(1)
			answer, err := l.ask(fmt.Sprintf("%s %d", dir, acked))
			if err == nil && !strings.HasPrefix(answer, "ok ") {
				err = breach(answer)
			}
			if err != nil {
				where := keep(t, d, c, dir)
				require.NoError(t, count(err), "after step %d (%s %s at %d) with %d acknowledgements, of the unsynced changes %s; the image is %s", i, s.call, s.file, s.offset, acked, c.name, where)
			}
			var n int64
			_, err = fmt.Sscanf(answer, "ok %d", &n)
			require.NoError(t, err)
			tally.acked.Add(n)
		}
	}
}

// keep saves an image that was found wanting, as it was before it was opened,
// where CHILDLOG_TORTURE_KEEP says.
func keep(t testing.TB, d *disk, c cut, dir string) string {
	to := os.Getenv("CHILDLOG_TORTURE_KEEP")
	if to == "" {
		return "not kept; set CHILDLOG_TORTURE_KEEP to a directory"
	}
	copyStore(t, dir, filepath.Join(to, t.Name()))
	return filepath.Join(to, t.Name())
}

// TestCrashImages records every change that a writing process makes to its
// files and every acknowledgement, in one order, and rebuilds from it what a
// power cut at each point would leave: none, all, or any of the changes since
// the last sync, whole or torn in sectors. Each is opened in another process,
// and everything that was acknowledged at that point has to be there.
func TestCrashImages(t *testing.T) {
	canTrace(t)
	for n := range scale(2, 16) {
		p := plot{Seed: uint32(100 + n), Workers: 1 + n%4, Shared: 1, Small: n%4 != 3}
		dir := filepath.Join(fastDir(t), "store")
		r := newPlot(t, dir, p)
		d := newDisk(t, dir)
		a := assignment{Plot: p, Dir: dir, From: r.acked, Count: scale(8, 24) / p.Workers}
		steps := trace(t, "write", dir, nil, a.env())
		random := rand.New(rand.NewPCG(2, uint64(n)))
		lookAt(t, p, d, steps, 0, scale(12, 1), random)
	}
}

// TestCrashImagesOfTheIndex: the same while the index is written: enough
// frames for a flush at the close.
func TestCrashImagesOfTheIndex(t *testing.T) {
	canTrace(t)
	p := plot{Seed: 200, Workers: 1, Small: true}
	dir := filepath.Join(fastDir(t), "store")
	r := newPlot(t, dir, p)
	d := newDisk(t, dir)
	steps := trace(t, "write", dir, nil, assignment{Plot: p, Dir: dir, From: r.acked, Count: 80}.env())
	first := slices.IndexFunc(steps, func(s step) bool { return s.file == "index.db" && s.call == "pwrite64" })
	require.Positive(t, first, "the index was written")
	lookAt(t, p, d, steps, first, scale(60, 1), rand.New(rand.NewPCG(3, 0)))
}

// TestCrashAfterACrash: a process dies at any step, another one goes on with
// what the first left in the system's memory, repeats what was in flight, and
// then the power is cut. What the second was told counts, be it that the first
// had written it.
func TestCrashAfterACrash(t *testing.T) {
	canTrace(t)
	for n := range scale(3, 60) {
		p := plot{Seed: uint32(300 + n), Workers: 1 + n%2, Shared: 1, Small: true}
		dir := filepath.Join(fastDir(t), "store")
		r := newPlot(t, dir, p)
		d := newDisk(t, dir)
		random := rand.New(rand.NewPCG(4, uint64(n)))
		f := &fault{file: "store.db", nth: 10 + random.IntN(40), kill: true}
		steps := trace(t, "write", dir, f, assignment{Plot: p, Dir: dir, From: r.acked, Count: 12}.env())
		tally.kills.Add(1)
		lines, failures := said(steps)
		require.Empty(t, failures)
		for _, text := range lines {
			require.NoError(t, r.note(text))
		}
		second := trace(t, "write", dir, nil, assignment{Plot: p, Dir: dir, From: r.acked, Count: 2}.env())
		lookAt(t, p, d, append(steps, second...), len(steps), scale(10, 1), random)
	}
}

// TestFoundIsDurable: the process dies after it wrote the meta page of a commit
// and before that was synced. The next process finds the unit there and says
// so to a caller who repeats it. From then on it is acknowledged, so a power
// cut may not take it back.
func TestFoundIsDurable(t *testing.T) {
	canTrace(t)
	for nth := 2; nth <= scale(4, 8); nth += 2 { // a commit syncs its data, then its meta page
		p := plot{Seed: uint32(400 + nth), Workers: 1, Small: true}
		dir := filepath.Join(fastDir(t), "store")
		r := newPlot(t, dir, p)
		d := newDisk(t, dir)
		f := &fault{call: "fdatasync", file: "store.db", nth: nth, kill: true}
		steps := trace(t, "write", dir, f, assignment{Plot: p, Dir: dir, From: r.acked, Count: 6}.env())
		lines, _ := said(steps)
		for _, text := range lines {
			require.NoError(t, r.note(text))
		}
		second := trace(t, "write", dir, nil, assignment{Plot: p, Dir: dir, From: r.acked, Count: 1}.env())
		again, _ := said(second)
		require.Len(t, again, 1)
		require.Contains(t, again[0], `"Found":true`, "the test is about a unit that was there")
		lookAt(t, p, d, append(steps, second...), len(steps), scale(4, 1), rand.New(rand.NewPCG(5, 0)))
	}
}
