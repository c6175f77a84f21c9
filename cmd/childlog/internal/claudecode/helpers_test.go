package claudecode

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/cmd/childlog/internal/importtest"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
)

var (
	newStore   = storetest.New
	lines      = importtest.Lines
	policyOf   = importtest.PolicyOf
	events     = importtest.Events
	types      = importtest.Types
	codes      = importtest.Codes
	finding    = importtest.Finding
	delegation = importtest.Delegation
)

const (
	garden = "5b7c2f10-3a44-4c1e-9d10-6f2a8c0b1e01"
	hedge  = "10000000-0000-4000-8000-0000000000f0"
	forked = "20000000-0000-4000-8000-0000000000f0"
	copied = "30000000-0000-4000-8000-0000000000f0"
	odd    = "40000000-0000-4000-8000-000000000bad"
)

func load(t testing.TB, s *eventlog.Store, o importer.Options, paths ...string) importer.Report {
	t.Helper()
	report, err := Import(context.Background(), s, paths, o)
	require.NoError(t, err)
	return report
}

func find(t testing.TB, s *eventlog.Store, id string) uuid.UUID {
	t.Helper()
	session, err := s.ByExternal(System, id)
	require.NoError(t, err, id)
	return session
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

// lineContents are the contents of the events that stand for lines.
func lineContents(list []eventlog.Event) (out []string) {
	for _, ev := range list[1:] {
		if ev.HasContent && ev.Type != importer.TypeSource && ev.Type != importer.TypeSidecar {
			out = append(out, string(ev.Content))
		}
	}
	return out
}
