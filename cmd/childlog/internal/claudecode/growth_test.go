package claudecode

import (
	"context"
	"encoding/json"
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

// without leaves out the marks of runs.
func without(list []eventlog.Event) (out []eventlog.Event) {
	for _, ev := range list {
		if ev.Type != importer.TypeSource {
			out = append(out, ev)
		}
	}
	return out
}

// TestGrowingFile: wherever a first run stopped, a second goes on there and a
// third adds nothing, and the logs are those of one run but for its marks. So
// it is with sidechains, whose lines lie between others.
func TestGrowingFile(t *testing.T) {
	for _, path := range []string{"testdata/inline/old-session-1.jsonl", "testdata/tree/-srv-garden/" + garden + ".jsonl"} {
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		want := map[string][]string{}
		once := newStore(t)
		for _, x := range load(t, once, importer.Options{}, path).SessionList {
			for _, ev := range without(events(t, once, x.ID)) {
				want[x.External] = append(want[x.External], ev.ID.String()+" "+ev.Type+" "+string(ev.Content))
			}
		}
		step := 211
		if testing.Short() {
			step = 701
		}
		for cut := 1; cut < len(whole); cut += step {
			s := newStore(t)
			grown := filepath.Join(t.TempDir(), filepath.Base(path))
			require.NoError(t, os.WriteFile(grown, whole[:cut], 0o600))
			load(t, s, importer.Options{}, grown)
			require.NoError(t, os.WriteFile(grown, whole, 0o600))
			dry := load(t, s, importer.Options{DryRun: true}, grown)
			second := load(t, s, importer.Options{}, grown)
			require.Equal(t, dry.Events, second.Events)
			require.Zero(t, load(t, s, importer.Options{}, grown).Events)
			for _, x := range second.SessionList {
				var got []string
				for _, ev := range without(events(t, s, x.ID)) {
					got = append(got, ev.ID.String()+" "+ev.Type+" "+string(ev.Content))
				}
				require.Equal(t, want[x.External][1:], got[1:], "%s cut at %d", x.External, cut) // a label may come later
			}
		}
	}
}

// TestRewrittenFile: another line where one was imported stops everything.
func TestRewrittenFile(t *testing.T) {
	s := newStore(t)
	say := func(n int) string {
		return fmt.Sprintf(`{"type":"user","uuid":"u-%d","sessionId":"s","message":{"role":"user","content":"%d"}}`, n, n)
	}
	dir := t.TempDir()
	path := lines(t, dir, "s.jsonl", say(1), say(2), say(3))
	load(t, s, importer.Options{}, path)
	lines(t, dir, "s.jsonl", say(1), say(7), say(3), say(4))
	report := load(t, s, importer.Options{}, path)
	require.EqualValues(t, 2, finding(t, report, importer.CodeChanged).Line)
	require.Zero(t, report.Events)
	require.Equal(t, 1, report.Skipped)
	lines(t, dir, "s.jsonl", say(1))
	report = load(t, s, importer.Options{}, path)
	require.Equal(t, []string{importer.CodeShorter}, codes(report))
	require.Zero(t, report.Events)

	// An older copy beside the newer file changes nothing, whichever is first;
	// a file of the same name that begins otherwise is another session.
	lines(t, dir, "s/s.jsonl", say(1), say(2), say(3), say(4))
	dry := load(t, s, importer.Options{DryRun: true}, dir)
	report = load(t, s, importer.Options{}, dir)
	require.Equal(t, dry.Events, report.Events)
	require.EqualValues(t, 4, report.Events, "the line, the turn it ends, the one it begins, and the mark")
	require.Zero(t, load(t, s, importer.Options{}, dir).Events)
	lines(t, dir, "other/s.jsonl", say(9))
	report = load(t, s, importer.Options{}, dir)
	require.Contains(t, codes(report), importer.CodeCollision)
	require.Equal(t, 1, report.NewSessions)
}

// TestCopiesInOneRun: in a dry run, too, copies of a file count once.
func TestCopiesInOneRun(t *testing.T) {
	say := func(n int) string {
		return fmt.Sprintf(`{"type":"system","uuid":"u-%d","sessionId":"s"}`, n)
	}
	dir := t.TempDir()
	lines(t, dir, "a/s.jsonl", say(1), say(2))
	lines(t, dir, "b/s.jsonl", say(1), say(2), say(3))
	lines(t, dir, "c/s.jsonl", say(1))
	s := newStore(t)
	dry := load(t, s, importer.Options{DryRun: true}, dir)
	report := load(t, s, importer.Options{}, dir)
	require.Equal(t, dry.Events, report.Events)
	require.Equal(t, 1, report.Sessions)
	require.Zero(t, load(t, s, importer.Options{}, dir).Events)
}

// TestSidecarChanges: each version of a .meta.json is kept, and its coming or
// going is no change of the log.
func TestSidecarChanges(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	lines(t, dir, "p.jsonl", `{"type":"assistant","uuid":"1","sessionId":"p","message":{"id":"m","content":[{"type":"tool_use","id":"t9","name":"Task","input":{"prompt":"go"}}]}}`)
	lines(t, dir, "p/subagents/agent-x.jsonl", `{"type":"user","uuid":"2","sessionId":"p","agentId":"x","isSidechain":true,"message":{"role":"user","content":"went"}}`)
	report := load(t, s, importer.Options{}, dir)
	require.Contains(t, codes(report), codeNoCall)
	first := `{"agentType":"explore","toolUseId":"t9"}`
	for i, meta := range []string{first, `{"agentType":"explore","toolUseId":"t9","spawnDepth":1}`, first, `no json`} {
		lines(t, dir, "p/subagents/agent-x.meta.json", meta)
		dry := load(t, s, importer.Options{DryRun: true}, dir)
		report = load(t, s, importer.Options{}, dir)
		require.EqualValues(t, 2, report.Events, "it, and the run's last word")
		require.Equal(t, dry.Events, report.Events)
		require.Len(t, of(events(t, s, find(t, s, "p/x")), importer.TypeSidecar), i+1)
		require.Zero(t, load(t, s, importer.Options{}, dir).Events)
	}
	require.Contains(t, codes(report), codeSidecar)
	require.NoError(t, os.Remove(filepath.Join(dir, "p/subagents/agent-x.meta.json")))
	require.Zero(t, load(t, s, importer.Options{}, dir).Events)
}

// TestCompressed: a zstd file gives the same session as its text.
func TestCompressed(t *testing.T) {
	path := "testdata/tree/-srv-garden/" + garden + ".jsonl"
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	dir := t.TempDir()
	packed := filepath.Join(dir, garden+".jsonl.zst")
	require.NoError(t, os.WriteFile(packed, enc.EncodeAll(raw, nil), 0o600))
	s := newStore(t)
	report := load(t, s, importer.Options{}, dir)
	require.Equal(t, find(t, s, garden), report.SessionList[0].ID)
	source := of(events(t, s, find(t, s, garden)), importer.TypeSource)
	require.Equal(t, "zstd", source[0].Facts.Str("compressed"))
	require.Zero(t, load(t, s, importer.Options{}, dir, path).Events, "the same session, packed and not")
}

// TestInterrupted: a run that ended between two batches is taken up where it
// stopped, also where sidechains lie in each other's way.
func TestInterrupted(t *testing.T) {
	s := newStore(t)
	var all []string
	last := map[int]string{}
	for i := range 600 {
		chain := i % 3 // 0: the session
		line := map[string]any{"type": "user", "uuid": fmt.Sprintf("u-%d", i), "sessionId": "big", "isSidechain": chain > 0,
			"message": map[string]any{"role": "user", "content": strings.Repeat("x", 16<<10)}}
		if last[chain] != "" {
			line["parentUuid"] = last[chain]
		}
		last[chain] = line["uuid"].(string)
		b, err := json.Marshal(line)
		require.NoError(t, err)
		all = append(all, string(b))
	}
	path := lines(t, t.TempDir(), "big.jsonl", all...)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Import(ctx, s, []string{path}, importer.Options{Progress: func(done, of int64) {
		if done > of*95/100 { // in the second pass, after the first flush
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	row, err := s.Row(find(t, s, "big"))
	require.NoError(t, err)
	require.NotZero(t, row.Head)
	report := load(t, s, importer.Options{}, path)
	require.Equal(t, 3, report.Sessions)
	kept := 0
	for _, x := range report.SessionList {
		list := events(t, s, x.ID)
		kept += len(lineContents(list))
		require.Len(t, of(list, importer.TypeSource), 1)
	}
	require.Equal(t, 600, kept)
	require.Zero(t, load(t, s, importer.Options{}, path).Events)
}
