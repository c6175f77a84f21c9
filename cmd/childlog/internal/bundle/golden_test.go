package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

var update = flag.Bool("update", false, "write the golden bundle anew")

// TestGoldenBundle: the bundle of the golden store is byte for byte the one that
// was written when the format was new, and reads for ever.
func TestGoldenBundle(t *testing.T) {
	dir := unpack(t, filepath.Join("..", "..", "..", "..", "testdata", "stores", "v1.tar.gz"))
	s, err := eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: true})
	require.NoError(t, err)
	got := export(t, s, Options{})
	require.NoError(t, s.Close())
	name := filepath.Join("testdata", "v1.bundle")
	if *update {
		require.NoError(t, os.WriteFile(name, got, 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err, "run the test with -update once")
	require.True(t, bytes.Equal(want, got), "the format is on disks out there and does not change")
	r := verify(t, want, Anchors{})
	for _, f := range r.Findings { // the store's logs were made for their bytes, not for their sense
		require.Contains(t, []string{FindSignature, FindPolicy, eventlog.FindDelegation}, f.Kind, "%v", f)
	}
	require.NotEmpty(t, r.Sessions)
	for _, l := range r.Sessions {
		require.True(t, l.Complete)
	}
}

// unpack makes a directory of an archive.
func unpack(t testing.TB, name string) string {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	dir := t.TempDir()
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		require.NoError(t, err)
		if h.Typeflag != tar.TypeReg {
			continue
		}
		b, err := io.ReadAll(files)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), b, 0o600))
	}
}
