package claudecode

import (
	"bytes"
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
)

// fixtures are the project's own transcripts.
func fixtures(t testing.TB) (out [][]byte) {
	require.NoError(t, filepath.WalkDir("testdata", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".jsonl") || strings.Contains(path, "fuzz") {
			return err
		}
		raw, err := os.ReadFile(path)
		out = append(out, raw)
		return err
	}))
	require.NotEmpty(t, out)
	return out
}

// FuzzLine maps any bytes: the events are ones that the store takes, the first
// has the line for its content, and mapping them again gives the same.
func FuzzLine(f *testing.F) {
	for _, raw := range fixtures(f) {
		for _, line := range bytes.Split(raw, []byte("\n")) {
			f.Add(line, false)
		}
	}
	f.Add([]byte(`{"type":"user","toolDenialKind":"x y","message":{"content":[{"type":"tool_result"},{"type":"tool_result","is_error":true}]}}`), true)
	f.Fuzz(func(t *testing.T, raw []byte, agent bool) {
		fl := &file{}
		if agent {
			fl.h.agent = "x"
		}
		a, b := newReader(fl, func(string, int64, string) {}), newReader(fl, nil)
		for n := int64(1); n < 4; n++ {
			line := importer.Line{Number: n, Bytes: raw, Len: int64(len(raw)), Sum: sha256.Sum256(raw)}
			i, out := a.next(line)
			j, again := b.next(line)
			require.Equal(t, i, j)
			require.Equal(t, out.events, again.events)
			require.NotEmpty(t, out.events)
			require.LessOrEqual(t, len(out.events), 250, "each is a part of its own")
			require.Equal(t, raw, append([]byte{}, out.events[0].Content...))
			for k, ev := range out.events {
				require.NoError(t, eventlog.CheckType(ev.Type))
				require.NoError(t, ev.Facts.Check())
				require.True(t, eventlog.IsCore(ev.Type), ev.Type)
				require.True(t, k == 0 || len(ev.Content) == 0)
				if ev.Media == eventlog.MediaJSON {
					require.NoError(t, eventlog.CheckJSON(ev.Content))
				}
			}
		}
	})
}

// FuzzImport imports any file, as a session's and as an agent's: no panic, no
// error, a sound store, nothing dropped, no right that no line states, and
// nothing to add the second time.
func FuzzImport(f *testing.F) {
	for _, raw := range fixtures(f) {
		f.Add(raw)
		f.Add(raw[:len(raw)/2])
	}
	f.Add([]byte(`{"type":"user","uuid":"a","isSidechain":true}` + "\n" + `{"type":"user","uuid":"b","isSidechain":true,"parentUuid":"b"}` + "\n\n[\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := newStore(t)
		dir := t.TempDir()
		for _, name := range []string{"a.jsonl", "a/subagents/agent-b.jsonl", "a/subagents/agent-b.meta.json"} {
			path := filepath.Join(dir, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, raw, 0o600))
		}
		dry := load(t, s, importer.Options{DryRun: true}, dir)
		first := load(t, s, importer.Options{}, dir)
		require.Equal(t, dry.Events, first.Events)
		require.Equal(t, dry.DelegationList, first.DelegationList)
		require.Equal(t, dry.Findings, first.Findings)
		require.Zero(t, load(t, s, importer.Options{}, dir).Events)
		var kept int64
		for _, x := range first.SessionList {
			e := policyOf(t, s, x.ID)
			require.True(t, e.Evidence)
			require.Equal(t, policy.ReadOnly, e.Sandbox.Value.Mode)
			require.Equal(t, string(e.Approvals), x.Approvals)
			require.True(t, x.Kind == eventlog.KindRoot || e.Approvals == policy.Never)
			kept += int64(len(lineContents(events(t, s, x.ID))))
		}
		require.Equal(t, first.Lines, kept, "each line is in one of the logs")
	})
}
