package eventlog

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A golden store is a store that a released version wrote. Every later version
// has to read it and to go on writing it. It is made once, by -update on a
// machine that has no file for it yet, and never again.

const goldenStore = "stores/v1.tar.gz"

// makeGoldenStore writes a history with everything the format has: a root from
// outside, children, a seed, units of several frames, contents of all kinds.
func makeGoldenStore(t *testing.T, dir string) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	ts := newStoreAt(t, dir, Options{Clock: func() time.Time { now = now.Add(time.Second); return now }})
	ts.busy(2)
	created := Created{Kind: KindRoot, Root: sid(9), Mode: ModeOneShot, Evidence: true, External: &External{System: "codex", IDHash: ExternalHash("codex", "thread-9")},
		WorkspaceRoot: "/home/x/project", PathStyle: "posix", Defaults: readOnlyDefaults()}
	_, err := ts.transact(EntryImport, Batch{Session: sid(9), Events: []NewEvent{{Type: TypeSessionCreated, Facts: created.Facts(), Media: MediaJSON, Content: []byte(`{"label":"Zoë's import","external_id":"thread-9"}`)}}})
	require.NoError(t, err)
	unit := ts.delegation(sid(0), sid(3), "seeded")
	seed := NewEvent{Type: "user/message", Source: SourceUser, Media: MediaText, Content: []byte("from the parent"), Inherited: &Ref{Session: sid(0), Seq: 1}}
	_, err = ts.transact(EntryDelegation, withSeed(unit, seed)...)
	require.NoError(t, err)
	_, err = ts.Append(ctx, Batch{Session: sid(3), Expect: Any(), Events: []NewEvent{
		{Type: "user/message", Media: MediaText},
		{Type: "tool/output", Media: MediaOctets, Content: bytes.Repeat([]byte{0, 1, 2, 0xff}, 20_000)},
		{Type: "tool/output", Media: MediaOctets, Content: noise(1, 3000)},
		{Type: "plugin/note", Ignorable: true, Media: MediaJSON, Content: []byte(` {"b":1,"a":"\ud800"} `), Facts: goldenFacts(t, map[string]any{"n": -1, "list": []any{true, nil}})},
	}})
	require.NoError(t, err)
	require.NoError(t, ts.Close())
	require.NoError(t, removeIndex(dir)) // derived
	require.NoError(t, os.Truncate(filepath.Join(dir, journalFile), journalSize(t, dir)))
}

func TestGoldenStoreV1(t *testing.T) {
	path := filepath.Join("..", "testdata", filepath.FromSlash(goldenStore))
	if _, err := os.Stat(path); os.IsNotExist(err) && *update {
		dir := filepath.Join(t.TempDir(), "store")
		makeGoldenStore(t, dir)
		packStore(t, dir, path)
	}
	dir := filepath.Join(t.TempDir(), "store")
	unpackStore(t, path, dir)
	ts := useStore(t, dir, Options{ReadOnly: true})
	require.Equal(t, 1, ts.Identity().Format)
	golden(t, "stores/v1.golden", describe(t, ts))

	// It is written on, and what was there stays what it was.
	ts.reopen()
	before := describe(t, ts)
	ts.say(sid(3), "a later version")
	ts.narrow(sid(3))
	ts.child(sid(0), sid(7), "later")
	ts.reopen(Options{ReadOnly: true})
	after := describe(t, ts)
	for _, line := range strings.Split(before, "\n") {
		if strings.HasPrefix(line, "  ") {
			require.Contains(t, after, line)
		}
	}
}

// describe prints what a store says about every session, event by event.
func describe(t *testing.T, ts *testStore) string {
	var out strings.Builder
	for _, row := range ts.rows() {
		events, _, err := ts.Policy(ctx, row.Session, 0)
		require.NoError(t, err)
		fmt.Fprintf(&out, "%s %s %q head %d hash %x policy %v settled %d usage %d denials %v\n", row.Session, row.Kind, row.Label, row.Head, row.Hash[:], seqsOf(events), row.SettledSeq, row.Usage.Input, row.Denials)
		require.NoError(t, ts.Replay(ctx, row.Session, true, func(ev *Event) error {
			facts, err := ev.Facts.JSON()
			require.NoError(t, err)
			fmt.Fprintf(&out, "  %s/%d %s %s v%d %s", row.Session.String()[34:], ev.Seq, ev.Time.Format(time.RFC3339), ev.Type, ev.Version, ev.Source)
			if ev.Inherited != nil {
				fmt.Fprintf(&out, " from %s/%d", ev.Inherited.Session.String()[34:], ev.Inherited.Seq)
			}
			if ev.Ignorable {
				out.WriteString(" ignorable")
			}
			if ev.HasContent {
				fmt.Fprintf(&out, " %s of %d %.40q", ev.Media, ev.ContentLen, ev.Content)
			}
			fmt.Fprintf(&out, " %s %x\n", facts, ev.Hash[:8])
			return ev.ContentErr
		}))
	}
	return out.String()
}

func packStore(t *testing.T, dir, path string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	f, err := os.Create(path)
	require.NoError(t, err)
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	for _, name := range []string{identityFile, lockFile, journalFile} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(raw))}))
		_, err = w.Write(raw)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
}

func unpackStore(t *testing.T, path, dir string) {
	require.NoError(t, os.MkdirAll(dir, 0o700))
	f, err := os.Open(path)
	require.NoError(t, err, "run the test with -update once")
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
		raw, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), raw, 0o600))
	}
}

// TestRowLayoutHasItsFoldVersion: rows are stored by position of their fields.
// Whoever changes them, or what they mean, counts foldVersion up, else an old
// index would be read as something else; then -update writes this file.
func TestRowLayoutHasItsFoldVersion(t *testing.T) {
	var out strings.Builder
	fmt.Fprintf(&out, "fold version %d\n", foldVersion)
	var layout func(typ reflect.Type, indent string)
	layout = func(typ reflect.Type, indent string) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Name == "_msgpack" {
				continue
			}
			fmt.Fprintf(&out, "%s%s %s\n", indent, f.Name, f.Type)
			elem := f.Type
			if elem.Kind() == reflect.Slice {
				elem = elem.Elem()
			}
			if elem.Kind() == reflect.Struct {
				layout(elem, indent+"  ")
			}
		}
	}
	layout(reflect.TypeFor[Row](), "")
	layout(reflect.TypeFor[cover](), "cover ")
	golden(t, "row.golden", out.String())
}
