package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

// sentinels lists the errors that package eventlog declares.
func sentinels(t *testing.T) []string {
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(repo, "eventlog", "errors.go"), nil, 0)
	require.NoError(t, err)
	var names []string
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			for _, id := range v.Names {
				if strings.HasPrefix(id.Name, "Err") {
					names = append(names, id.Name)
				}
			}
		}
		return true
	})
	return names
}

func snake(name string) string {
	var b strings.Builder
	for i, r := range strings.TrimPrefix(name, "Err") {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// TestEverySentinelHasItsRow: a new sentinel without an exit code, a code or a
// hint fails here.
func TestEverySentinelHasItsRow(t *testing.T) {
	rows := map[string]failure{}
	for _, f := range failures {
		require.NotContains(t, rows, f.code)
		require.NotEmpty(t, f.hint)
		require.NotEqual(t, exitOK, f.exit)
		require.Equal(t, f.code, classify(fmt.Errorf("while testing: %w", f.is)).code, "another row comes first")
		rows[f.code] = f
	}
	names := sentinels(t)
	require.Greater(t, len(names), 20)
	for _, name := range names {
		require.Contains(t, rows, snake(name), "%s has no row", name)
	}
}

func TestExitCodes(t *testing.T) {
	for code, errs := range map[int][]error{
		exitOther:       {errors.New("anything")},
		exitUsage:       {eventlog.ErrInvalid, eventlog.ErrTooLarge, &eventlog.TooLargeError{}, usagef("no")},
		exitRefused:     {eventlog.ErrUnauthorized, eventlog.ErrNotResumable, eventlog.ErrEvidence, eventlog.ErrStaleCapture, eventlog.ErrDepth, eventlog.ErrOpenTurn, eventlog.ErrSessionClosed, eventlog.ErrWidening},
		exitConflict:    {eventlog.ErrConflict, eventlog.ErrDuplicate, eventlog.ErrExists, eventlog.ErrFenced, &eventlog.FencedError{}, &eventlog.ConflictError{}},
		exitNotFound:    {eventlog.ErrNotFound, eventlog.ErrAmbiguous},
		exitCorrupt:     {eventlog.ErrCorrupt, eventlog.ErrStoreLost, eventlog.ErrRollback, eventlog.ErrPolicyUnreadable, eventlog.ErrUnknownType, eventlog.ErrNewerFormat, &eventlog.CorruptError{}},
		exitUnavailable: {eventlog.ErrLocked, eventlog.ErrNoSpace, eventlog.ErrOutcomeUnknown, eventlog.ErrReadOnly, eventlog.ErrStoreClosed, &eventlog.LockedError{}},
	} {
		for _, err := range errs {
			require.Equal(t, code, classify(fmt.Errorf("wrapped: %w", err)).exit, "%v", err)
		}
	}
	// Errors that wrap two: the one that says what may be done decides.
	stale := fmt.Errorf("%w: %w", eventlog.ErrStaleCapture, eventlog.ErrSessionClosed)
	require.Equal(t, "stale_capture", classify(stale).code)
	unreadable := fmt.Errorf("%w: %w", eventlog.ErrPolicyUnreadable, &eventlog.CorruptError{Session: uuid.New()})
	require.Equal(t, "policy_unreadable", classify(unreadable).code)
	require.Equal(t, "try", classify(withHint(eventlog.ErrNotFound, "try")).hint)
}
