// Package importtest is what the tests of all importers share: fixtures, and
// what a log and a report hold.
package importtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/replay"
)

// Lines writes a file of the given lines below dir and returns its path.
func Lines(t testing.TB, dir, name string, lines ...string) string {
	t.Helper()
	var b []byte
	for _, l := range lines {
		b = append(append(b, l...), '\n')
	}
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

// PolicyOf is the effective policy at the head.
func PolicyOf(t testing.TB, s *eventlog.Store, session uuid.UUID) replay.Effective {
	t.Helper()
	e, err := replay.Policy(context.Background(), s, session, 0)
	require.NoError(t, err)
	return e
}

// Events reads a whole log with its contents.
func Events(t testing.TB, s *eventlog.Store, session uuid.UUID) []eventlog.Event {
	t.Helper()
	var out []eventlog.Event
	require.NoError(t, s.Replay(context.Background(), session, true, func(ev *eventlog.Event) error {
		require.NoError(t, ev.ContentErr)
		out = append(out, *ev)
		return nil
	}))
	return out
}

// Types lists what a log holds, import/other with what it stands for.
func Types(list []eventlog.Event) []string {
	var out []string
	for _, ev := range list {
		typ := ev.Type
		if typ == eventlog.TypeImportOther {
			typ += " " + ev.Facts.Str("original")
		}
		if ev.Inherited != nil {
			typ += " (inherited)"
		}
		out = append(out, typ)
	}
	return out
}

// Codes lists the codes of findings in order.
func Codes(r importer.Report) []string {
	out := []string{}
	for _, f := range r.Findings {
		out = append(out, f.Code)
	}
	return out
}

// Finding is the first one of a code, which must be there.
func Finding(t testing.TB, r importer.Report, code string) importer.Finding {
	t.Helper()
	for _, f := range r.Findings {
		if f.Code == code {
			return f
		}
	}
	require.Fail(t, "no such finding", "%s in %+v", code, r.Findings)
	return importer.Finding{}
}

// Delegation is the report of one child, which must be there.
func Delegation(t testing.TB, r importer.Report, child uuid.UUID) importer.Delegation {
	t.Helper()
	for _, d := range r.DelegationList {
		if d.Child == child {
			return d
		}
	}
	require.Fail(t, "no delegation of this child", "%s", child)
	return importer.Delegation{}
}

// Samples is the folder of real logs of a format beside the repository; the
// test is skipped where it is not there.
func Samples(t testing.TB, format string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("../../../../../shared/samples", format))
	require.NoError(t, err)
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the sample logs are not beside this repository; the project's own fixtures cover the same shapes")
	}
	return dir
}
