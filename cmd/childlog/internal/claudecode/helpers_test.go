package claudecode

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/replay"
)

const (
	garden = "5b7c2f10-3a44-4c1e-9d10-6f2a8c0b1e01"
	hedge  = "10000000-0000-4000-8000-0000000000f0"
	forked = "20000000-0000-4000-8000-0000000000f0"
	copied = "30000000-0000-4000-8000-0000000000f0"
	odd    = "40000000-0000-4000-8000-000000000bad"
)

// newStore makes a store that is checked in full when the test ends.
func newStore(t testing.TB) *eventlog.Store {
	t.Helper()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "store")
	_, err := eventlog.Init(ctx, dir)
	require.NoError(t, err)
	s, err := eventlog.Open(ctx, dir, eventlog.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		s, err := eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: true})
		require.NoError(t, err)
		report, err := s.Check(ctx, eventlog.CheckOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
		require.NoError(t, s.Close())
	})
	return s
}

func load(t testing.TB, s *eventlog.Store, o importer.Options, paths ...string) importer.Report {
	t.Helper()
	report, err := Import(context.Background(), s, paths, o)
	require.NoError(t, err)
	return report
}

// lines writes a file of the given lines.
func lines(t testing.TB, dir, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(append(lines, ""), "\n")), 0o600))
	return path
}

func find(t testing.TB, s *eventlog.Store, id string) uuid.UUID {
	t.Helper()
	session, err := s.ByExternal(System, id)
	require.NoError(t, err, id)
	return session
}

func policyOf(t testing.TB, s *eventlog.Store, session uuid.UUID) replay.Effective {
	t.Helper()
	e, err := replay.Policy(context.Background(), s, session, 0)
	require.NoError(t, err)
	return e
}

// events reads a whole log with its contents.
func events(t testing.TB, s *eventlog.Store, session uuid.UUID) []eventlog.Event {
	t.Helper()
	var out []eventlog.Event
	require.NoError(t, s.Replay(context.Background(), session, true, func(ev *eventlog.Event) error {
		require.NoError(t, ev.ContentErr)
		out = append(out, *ev)
		return nil
	}))
	return out
}

// types lists what a log holds, import/other with what it stands for.
func types(list []eventlog.Event) []string {
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

// of lists the events of one type.
func of(list []eventlog.Event, typ string) (out []eventlog.Event) {
	for _, ev := range list {
		if ev.Type == typ {
			out = append(out, ev)
		}
	}
	return out
}

// codes lists the codes of findings in order.
func codes(r importer.Report) []string {
	out := []string{}
	for _, f := range r.Findings {
		out = append(out, f.Code)
	}
	return out
}

func finding(t testing.TB, r importer.Report, code string) importer.Finding {
	t.Helper()
	for _, f := range r.Findings {
		if f.Code == code {
			return f
		}
	}
	require.Fail(t, "no such finding", "%s in %+v", code, r.Findings)
	return importer.Finding{}
}

// delegation finds the report of one child.
func delegation(t testing.TB, r importer.Report, child uuid.UUID) importer.Delegation {
	t.Helper()
	for _, d := range r.DelegationList {
		if d.Child == child {
			return d
		}
	}
	require.Fail(t, "no delegation of this child", "%s", child)
	return importer.Delegation{}
}

// lineContents are the contents of the events that stand for lines.
func lineContents(list []eventlog.Event) (out []string) {
	for _, ev := range list[1:] {
		if ev.HasContent && ev.Type != importer.TypeSource && ev.Type != importer.TypeSidecar {
			out = append(out, string(ev.Content))
		}
	}
	return out
}
