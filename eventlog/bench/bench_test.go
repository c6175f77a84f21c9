package main

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	require.Zero(t, median(nil))
	require.Equal(t, 3.0, median([]float64{3}))
	require.Equal(t, 2.5, median([]float64{4, 1, 3, 2}))
	in := []float64{9, 1, 5}
	require.Equal(t, 5.0, median(in))
	require.Equal(t, []float64{9, 1, 5}, in, "the rounds keep their order")
}

// TestRatio: the ratio is of each round, so a slow round of the machine, which
// slows both, does not move it.
func TestRatio(t *testing.T) {
	require.Equal(t, 4.0, ratio([]float64{400, 40, 4000}, []float64{100, 10, 1000}))
	require.Zero(t, ratio(nil, nil))
	require.Equal(t, 2.0, ratio([]float64{1, 2}, []float64{0, 1}), "a round without a figure does not count")
}

func TestTargetLines(t *testing.T) {
	for _, c := range []struct {
		t    target
		want string
	}{
		{atLeast("append-64/jsonl", 4.312, 4), "ratio append-64/jsonl 4.31 reach 4 ok"},
		{atLeast("append-64/jsonl", 3.999, 4), "ratio append-64/jsonl 4.00 reach 4 short"},
		{atLeast("append-1/bbolt-bare", 0.9, 0.9), "ratio append-1/bbolt-bare 0.90 reach 0.9 ok"},
		{atMost("policy-1m-us", 285.4, 100), "ratio policy-1m-us 285 reach 100 short"},
		{atMost("memory-mib", 22.14, 64), "ratio memory-mib 22.1 reach 64 ok"},
		{atLeast("replay-events/s", 1234567, 700000), "ratio replay-events/s 1234567 reach 700000 ok"},
		{atLeast("x", math.NaN(), 1), "ratio x NaN reach 1 short"},
		{atMost("x", math.NaN(), 1), "ratio x NaN reach 1 short"},
	} {
		require.Equal(t, c.want, c.t.String())
	}
}

func TestGrouped(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 1.234: "1.23", 12.34: "12.3", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234", -123456: "-123,456"} {
		require.Equal(t, want, grouped(v))
	}
}

// TestInterleave: everyone has one turn a round, the order rotates, and the
// first round is a warm-up.
func TestInterleave(t *testing.T) {
	var order strings.Builder
	turn := func(name string) func() (float64, error) {
		return func() (float64, error) {
			order.WriteString(name)
			return float64(order.Len()), nil
		}
	}
	got, err := interleave(time.Hour, 2, turn("a"), turn("b"), turn("c"))
	require.NoError(t, err)
	require.Equal(t, "abcbcacab", order.String())
	require.Len(t, got, 3)
	for i, want := range [][]float64{{6, 8}, {4, 9}, {5, 7}} {
		require.Equal(t, want, got[i].values)
		require.Len(t, got[i].busy, 2)
	}
	half := measured{values: []float64{100, 10}, busy: []float64{0.5, 1}}
	require.Equal(t, []float64{200, 10}, half.perCPU())
	require.Equal(t, []float64{50, 10}, half.onCPU())

	_, err = interleave(time.Hour, 1, func() (float64, error) { return 0, errors.New("broken") })
	require.EqualError(t, err, "broken")

	few, err := repeat(0, 100, func() (float64, error) { return 1, nil })
	require.NoError(t, err)
	require.Len(t, few, fewestRounds, "the time is up at once")
}

// TestParallel: every number once, and a failure ends the goroutine it is in.
func TestParallel(t *testing.T) {
	seen := make([]int, 100)
	require.NoError(t, parallel(7, len(seen), func(i int) error { seen[i]++; return nil }))
	for i, n := range seen {
		require.Equal(t, 1, n, "%d", i)
	}
	calls := 0
	require.Error(t, parallel(1, 100, func(int) error { calls++; return errors.New("broken") }))
	require.Equal(t, 1, calls)
}

func TestParseTrace(t *testing.T) {
	files, err := parseTrace(strings.NewReader(`
100   pwrite64(5</d/store/store.db>, ""..., 8192, 4096) = 8192
100   write(7</d/mark.begin>, ""..., 1) = 1
100   pwrite64(5</d/store/store.db>, ""..., 4096, 8192) = 4096
101   fdatasync(5</d/store/store.db> <unfinished ...>
100   pwrite64(6</d/store/index.db>, ""..., 100, 0 <unfinished ...>
101   <... fdatasync resumed>)          = 0
100   <... pwrite64 resumed>)           = 100
101   fdatasync(5</d/store/store.db>)   = 0
100   write(7</d/mark.end>, ""..., 1)   = 1
100   fsync(6</d/store/index.db>)       = 0
`))
	require.NoError(t, err)
	require.Equal(t, fileCost{Syncs: 2, Writes: 1, Bytes: 4096}, files["store.db"])
	require.Equal(t, fileCost{Writes: 1, Bytes: 100}, files["index.db"], "what comes after the mark does not count")
}

// TestTexts: the text of the appends costs JSON no escape, and what is stored
// for the disk row is valid JSON of the size asked for.
func TestTexts(t *testing.T) {
	r, err := newSource(3).next()
	require.NoError(t, err)
	require.Len(t, r.Content, contentBytes)
	quoted, err := json.Marshal(r.Content)
	require.NoError(t, err)
	require.Len(t, quoted, contentBytes+2)
	for n := range 200 {
		doc := toolOutput(n)
		require.True(t, json.Valid(doc), "%s", doc)
		require.InDelta(t, contentBytes, len(doc), 60)
	}
}

// TestRun measures one row as the command does and reads the files that a
// script would read.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	o := &options{quick: true, dir: dir, rounds: 2, warm: 5 * time.Millisecond, window: 100 * time.Millisecond}
	rows := map[string]*row{"append-1": {Name: "append-1"}}
	targets, err := runAppend1(o, rows)
	require.NoError(t, err)
	require.Equal(t, []string{"append-1/bbolt-bare", "append-1/index-lag-frames"}, []string{targets[0].Name, targets[1].Name})
	require.Len(t, rows["append-1"].Series, 5)
	for _, s := range rows["append-1"].Series {
		require.Len(t, s.Rounds, 2, s.Name)
		require.Positive(t, s.Median, s.Name)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "the row removes what it wrote")

	res := &result{Env: environmentOf(dir), Rows: []*row{rows["append-1"]}, Targets: targets}
	require.NotEqual(t, "unknown", res.Env.FileSystem)
	path := filepath.Join(dir, "result.json")
	require.NoError(t, res.save(path))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var back result
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Equal(t, res.Targets, back.Targets)

	var out strings.Builder
	res.print(&out)
	require.Contains(t, out.String(), "\nratio append-1/bbolt-bare ")
	require.Contains(t, out.String(), "waiting for each")
}

func TestRunRefuses(t *testing.T) {
	out := filepath.Join(t.TempDir(), "result.json")
	require.ErrorContains(t, run([]string{"-quick", "-run", "nothing", "-dir", t.TempDir(), "-out", out}), "matches no row: append-64, ")
	require.ErrorContains(t, run([]string{"-run", "("}), "-run: ")
	require.ErrorContains(t, run([]string{"surplus"}), `unknown argument "surplus"`)
	require.NoFileExists(t, out)
}

// TestOpenCrash builds a small store, kills its writer, and opens it.
func TestOpenCrash(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, buildAndKill(dir, 20, 5))
	r := &row{Name: "open-crash"}
	targets, events, err := openRow(&options{quick: true}, r, filepath.Join(dir, "store"))
	require.NoError(t, err)
	require.Len(t, targets, 1)
	require.Greater(t, events, 20.0*(2+5), "what was built, and single events after it")
}
