package deepseek

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// fuzzSeeds are the lines of the fixtures.
func fuzzSeeds(f *testing.F) [][]byte {
	var out [][]byte
	paths, err := filepath.Glob("testdata/*/*.jsonl")
	require.NoError(f, err)
	require.NotEmpty(f, paths)
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		require.NoError(f, err)
		out = append(out, bytes.Split(raw, []byte("\n"))...)
	}
	return out
}

// FuzzLine maps any bytes behind any header: the event is one that the store
// takes, its content is the line, and a clone of the mapper says the same.
func FuzzLine(f *testing.F) {
	for _, line := range fuzzSeeds(f) {
		f.Add(line, uint64(0), false)
		f.Add(line, uint64(3), true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64, child bool) {
		h := header{id: "x", depth: -1}
		if child {
			h.parent, h.seed, h.seedState = "p", seed%8, stated
		}
		m := newMapper(&h, func(string, int64, string) {})
		for n := int64(2); n < 5; n++ {
			line := importer.Line{Number: n, Bytes: raw, Len: int64(len(raw)), Sum: sha256.Sum256(raw)}
			again := m.clone().next(line)
			out := m.next(line)
			require.Equal(t, out.event, again.event)
			require.NoError(t, eventlog.CheckType(out.event.Type))
			require.NoError(t, out.event.Facts.Check())
			require.Equal(t, raw, append([]byte{}, out.event.Content...))
			if out.event.Media == eventlog.MediaJSON {
				require.NoError(t, eventlog.CheckJSON(raw))
			}
			require.True(t, eventlog.IsCore(out.event.Type) || !eventlog.IsClosed(out.event.Type))
			require.NotEqual(t, importer.TypeSource, out.event.Type)
		}
	})
}

// FuzzImport imports any file: no panic, no error, a sound store, never more
// than the policy that the log states, and nothing to add the second time.
func FuzzImport(f *testing.F) {
	paths, err := filepath.Glob("testdata/*/*.jsonl")
	require.NoError(f, err)
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(raw)
		f.Add(raw[:len(raw)/2])
	}
	f.Add([]byte(`{"type":"session","id":"x"}` + "\n\n[\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := newStore(t)
		path := filepath.Join(t.TempDir(), "a.jsonl")
		require.NoError(t, os.WriteFile(path, raw, 0o600))
		dry := load(t, s, importer.Options{DryRun: true}, path)
		first := load(t, s, importer.Options{}, path)
		require.Equal(t, dry.Events, first.Events)
		require.Equal(t, dry.DelegationList, first.DelegationList)
		second := load(t, s, importer.Options{}, path)
		require.Zero(t, second.Events)
		for _, x := range first.SessionList {
			e := policyOf(t, s, x.ID)
			require.True(t, e.Evidence)
			require.Equal(t, e.Sandbox.Value.String(), x.Sandbox)
			require.Equal(t, string(e.Approvals), x.Approvals)
			lines := 0
			for _, ev := range events(t, s, x.ID) {
				if ev.Type != importer.TypeSource {
					lines++
				}
			}
			require.EqualValues(t, x.Lines+1, lines)
		}
	})
}
