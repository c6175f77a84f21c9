package codex

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// TestGrowingFile: a second run goes on where the first stopped, a third adds
// nothing, and the log is the same as that of one run but for the runs' marks.
func TestGrowingFile(t *testing.T) {
	whole, err := os.ReadFile("testdata/tree/c-root.jsonl")
	require.NoError(t, err)
	one := newStore(t)
	load(t, one, importer.Options{}, "testdata/tree/c-root.jsonl")
	want := types(linesOf(events(t, one, find(t, one, rootID))))
	step := 97
	if testing.Short() {
		step = 997
	}
	for cut := 1; cut < len(whole); cut += step {
		s := newStore(t)
		path := filepath.Join(t.TempDir(), "c-root.jsonl")
		require.NoError(t, os.WriteFile(path, whole[:cut], 0o600))
		first := load(t, s, importer.Options{}, path)
		if whole[cut-1] != '\n' {
			require.Contains(t, codes(first), importer.CodeTorn)
			require.Contains(t, codes(load(t, s, importer.Options{}, path)), importer.CodeTorn, "also of a file that is not read again")
		}
		require.NoError(t, os.WriteFile(path, whole, 0o600))
		second := load(t, s, importer.Options{}, path)
		require.NotContains(t, codes(second), importer.CodeTorn)
		require.Zero(t, second.Unchanged)
		third := load(t, s, importer.Options{}, path)
		require.Zero(t, third.Events)
		require.Equal(t, 1, third.Unchanged)
		require.Equal(t, second.SessionList[0].SHA256, third.SessionList[0].SHA256)
		require.Equal(t, want, types(linesOf(events(t, s, find(t, s, rootID)))), "cut at %d", cut)
	}
}

func linesOf(list []eventlog.Event) (out []eventlog.Event) {
	for _, ev := range list {
		if ev.Type != importer.TypeSource {
			out = append(out, ev)
		}
	}
	return out
}

// TestRewrittenFile: another line where one was imported stops everything, even
// if the file has the same size or has grown.
func TestRewrittenFile(t *testing.T) {
	turn := func(n int) string { return msg("task_complete", fmt.Sprintf(`,"n":%d`, n)) }
	for name, c := range map[string]struct {
		now  []string
		code string
	}{
		"same size": {[]string{meta("x", ""), turn(1), turn(7), turn(3)}, importer.CodeChanged},
		"grown":     {[]string{meta("x", ""), turn(1), turn(7), turn(3), turn(4)}, importer.CodeChanged},
		"shorter":   {[]string{meta("x", ""), turn(1)}, importer.CodeShorter},
		"reordered": {[]string{meta("x", ""), turn(2), turn(1), turn(3)}, importer.CodeChanged},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := newStore(t), t.TempDir()
			load(t, s, importer.Options{}, lines(t, dir, "a.jsonl", meta("x", ""), turn(1), turn(2), turn(3)))
			report := load(t, s, importer.Options{}, lines(t, dir, "a.jsonl", c.now...))
			finding(t, report, c.code)
			require.Zero(t, report.Events)
			require.Zero(t, report.Unchanged)
		})
	}
}

// TestCopies: a thread that lies in sessions and in archived_sessions, plain and
// packed, is one session; the longest copy counts.
func TestCopies(t *testing.T) {
	raw, err := os.ReadFile("testdata/tree/b-child.jsonl")
	require.NoError(t, err)
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	dir := t.TempDir()
	half := raw[:strings.LastIndexByte(string(raw[:len(raw)/2]), '\n')+1]
	for name, data := range map[string][]byte{"sessions/2026/03/01/rollout-a.jsonl": half, "archived_sessions/rollout-a.jsonl.zst": enc.EncodeAll(raw, nil)} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	for _, order := range [][]string{{"sessions", "archived_sessions"}, {"archived_sessions", "sessions"}} {
		s := newStore(t)
		paths := []string{filepath.Join(dir, order[0]), filepath.Join(dir, order[1])}
		dry := load(t, s, importer.Options{DryRun: true}, paths...)
		report := load(t, s, importer.Options{}, paths...)
		require.Equal(t, 1, report.Sessions)
		require.Equal(t, 2, report.Files)
		if order[0] == "archived_sessions" {
			require.Equal(t, dry.Events, report.Events)
		}
		require.Len(t, linesOf(events(t, s, find(t, s, childID))), 1+9+4)
		again := load(t, s, importer.Options{}, filepath.Join(dir, "archived_sessions"))
		require.Zero(t, again.Events)
		require.Equal(t, 1, again.Unchanged)
	}
}

// TestCopyThatDiffers: of a copy with other lines nothing is added, and a dry
// run knows that beforehand.
func TestCopyThatDiffers(t *testing.T) {
	s, dir := newStore(t), t.TempDir()
	lines(t, dir, "a.jsonl", meta("x", ""), msg("task_started", ""), msg("task_complete", ""))
	lines(t, dir, "b.jsonl", meta("x", ""), msg("task_started", ""), msg("error", ""), msg("task_complete", ""))
	dry := load(t, s, importer.Options{DryRun: true}, dir)
	report := load(t, s, importer.Options{}, dir)
	for _, r := range []importer.Report{dry, report} {
		require.EqualValues(t, 5, r.Events)
		require.Equal(t, 1, r.Skipped)
		finding(t, r, importer.CodeChanged)
	}
}

// TestSharedID: two threads of one id are two sessions, whichever comes first.
func TestSharedID(t *testing.T) {
	s, dir := newStore(t), t.TempDir()
	a := lines(t, dir, "a.jsonl", meta("same", ""))
	b := lines(t, dir, "b.jsonl", meta("same", `"source":"cli",`))
	report := load(t, s, importer.Options{}, a, b)
	require.Equal(t, 2, report.NewSessions)
	finding(t, report, importer.CodeCollision)
	require.Zero(t, load(t, s, importer.Options{}, b, a).Events, "each is found again, in any order")
}

// TestInterrupted: a run that ended between two batches is taken up where it
// stopped, and gets its mark.
func TestInterrupted(t *testing.T) {
	s := newStore(t)
	all := []string{meta("big-1", "")}
	for i := range 9000 {
		all = append(all, msg("task_complete", fmt.Sprintf(`,"n":%d,"pad":"%s"`, i, strings.Repeat("x", 900))))
	}
	path := lines(t, t.TempDir(), "a.jsonl", all...)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Import(ctx, s, []string{path}, importer.Options{Progress: func(done, of int64) {
		if done > of/2 {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	row, err := s.Row(find(t, s, "big-1"))
	require.NoError(t, err)
	require.NotZero(t, row.Head)
	require.Less(t, row.Head, uint64(9000))
	load(t, s, importer.Options{}, path)
	list := events(t, s, row.Session)
	require.Len(t, list, 9000+3)
	require.Equal(t, importer.TypeSource, list[len(list)-1].Type)
	require.Zero(t, load(t, s, importer.Options{}, path).Events)
}

// TestProgress ends at the whole, in every kind of run.
func TestProgress(t *testing.T) {
	s := newStore(t)
	for _, o := range []importer.Options{{DryRun: true}, {Strict: true}, {}} {
		var done, of int64
		o.Progress = func(d, whole int64) {
			require.LessOrEqual(t, d, whole)
			require.GreaterOrEqual(t, d, done)
			done, of = d, whole
		}
		load(t, s, o, "testdata")
		require.Equal(t, of, done)
		require.NotZero(t, of)
	}
}

// TestSamples imports real rollouts: each line is an event with its bytes.
func TestSamples(t *testing.T) {
	dir, s := samples(t), newStore(t)
	report := load(t, s, importer.Options{}, dir)
	require.Equal(t, 6, report.Files)
	require.Equal(t, 6, report.Sessions)
	require.Zero(t, report.Skipped)
	require.Equal(t, importer.Kept{Unknown: 2}, report.Kept)
	for _, x := range report.SessionList {
		raw, err := os.ReadFile(x.File)
		require.NoError(t, err)
		text := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
		next := 0
		for _, ev := range linesOf(events(t, s, x.ID))[1:] {
			if ev.HasContent {
				require.Equal(t, text[next], string(ev.Content), "%s line %d", x.File, next+1)
				next++
			}
		}
		require.Equal(t, len(text), next)
	}
	d := delegation(t, report, find(t, s, "01a0e81b-4af7-7330-a113-bad47ba77c3e"))
	require.Equal(t, importer.Fact{Value: "call_SdAv8h0y9zwTrmpiNTHyAPTW", Mark: importer.Recorded, Seq: 3}, d.Call, "found by the agent's path")
	require.Equal(t, "Boyle /root/echo_task", d.Label)
	again := load(t, s, importer.Options{}, dir)
	require.Zero(t, again.Events)
	require.Equal(t, 6, again.Unchanged)
	require.Equal(t, report.DelegationList, again.DelegationList)
}
