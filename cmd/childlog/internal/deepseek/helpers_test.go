package deepseek

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

func samples(t testing.TB) string { return importtest.Samples(t, "deepseek-harness") }
