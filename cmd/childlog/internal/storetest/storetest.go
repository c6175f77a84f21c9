// Package storetest makes stores for tests of what is built on one.
package storetest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

// New makes a store that is checked in full, and must be sound, when the test
// ends.
func New(t testing.TB) *eventlog.Store { return Open(t, eventlog.Options{}) }

// Open is New with options.
func Open(t testing.TB, o eventlog.Options) *eventlog.Store {
	t.Helper()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "store")
	_, err := eventlog.Init(ctx, dir)
	require.NoError(t, err)
	s, err := eventlog.Open(ctx, dir, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		RequireSound(t, dir)
	})
	return s
}

// RequireSound checks the store at dir in full.
func RequireSound(t require.TestingT, dir string) eventlog.CheckReport {
	ctx := context.Background()
	s, err := eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: true})
	require.NoError(t, err)
	report, err := s.Check(ctx, eventlog.CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
	require.NoError(t, s.Close())
	return report
}
