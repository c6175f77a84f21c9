package failure

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"unicode"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
)

// sentinels lists the errors that package eventlog declares.
func sentinels(t *testing.T) []string {
	f, err := parser.ParseFile(token.NewFileSet(), "../../../../eventlog/errors.go", nil, 0)
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
	rows := map[string]Failure{}
	for _, f := range failures() {
		require.NotContains(t, rows, f.Code)
		require.NotEmpty(t, f.Hint)
		require.NotEqual(t, ExitOK, f.Exit)
		require.Equal(t, f.Code, Of(fmt.Errorf("while testing: %w", f.Is)).Code, "another row comes first")
		rows[f.Code] = f
		require.Equal(t, f.Is, Sentinel(f.Code))
	}
	names := sentinels(t)
	require.Greater(t, len(names), 20)
	for _, name := range names {
		require.Contains(t, rows, snake(name), "%s has no row", name)
	}
	require.NoError(t, Sentinel("no such code"))
}

func TestExitCodes(t *testing.T) {
	for code, errs := range map[int][]error{
		ExitOther:       {errors.New("anything")},
		ExitUsage:       {eventlog.ErrInvalid, eventlog.ErrTooLarge, &eventlog.TooLargeError{}, Usagef("no")},
		ExitRefused:     {eventlog.ErrUnauthorized, eventlog.ErrNotResumable, eventlog.ErrEvidence, eventlog.ErrStaleCapture, eventlog.ErrDepth, eventlog.ErrOpenTurn, eventlog.ErrSessionClosed, eventlog.ErrWidening},
		ExitConflict:    {eventlog.ErrConflict, eventlog.ErrDuplicate, eventlog.ErrExists, eventlog.ErrFenced, &eventlog.FencedError{}, &eventlog.ConflictError{}},
		ExitNotFound:    {eventlog.ErrNotFound, eventlog.ErrAmbiguous},
		ExitCorrupt:     {eventlog.ErrCorrupt, eventlog.ErrStoreLost, eventlog.ErrRollback, eventlog.ErrPolicyUnreadable, eventlog.ErrUnknownType, eventlog.ErrNewerFormat, &eventlog.CorruptError{}},
		ExitUnavailable: {eventlog.ErrLocked, eventlog.ErrNoSpace, eventlog.ErrOutcomeUnknown, eventlog.ErrReadOnly, eventlog.ErrStoreClosed, &eventlog.LockedError{}},
	} {
		for _, err := range errs {
			require.Equal(t, code, Of(fmt.Errorf("wrapped: %w", err)).Exit, "%v", err)
		}
	}
	// Errors that wrap two: the one that says what may be done decides.
	stale := fmt.Errorf("%w: %w", eventlog.ErrStaleCapture, eventlog.ErrSessionClosed)
	require.Equal(t, "stale_capture", Of(stale).Code)
	unreadable := fmt.Errorf("%w: %w", eventlog.ErrPolicyUnreadable, &eventlog.CorruptError{Session: uuid.New()})
	require.Equal(t, "policy_unreadable", Of(unreadable).Code)
	own := Of(WithAPIHint(WithHint(eventlog.ErrNotFound, "try"), "ask"))
	require.Equal(t, "try", own.Hint)
	require.Equal(t, "ask", own.API)
	require.Equal(t, "last", Of(WithHint(WithHint(eventlog.ErrNotFound, "first"), "last")).Hint)
}

// TestHintsForProgramsNameNoCommandLine: whoever gets one over HTTP has no flags,
// no environment of the store and no terminal. What it names of childlog are
// operations.
func TestHintsForProgramsNameNoCommandLine(t *testing.T) {
	errs := []error{errors.New("anything"), Usagef("no"), &eventlog.FencedError{}, &eventlog.FencedError{Open: 2, Got: 2}, &eventlog.FencedError{Open: 2, Got: 3}, &eventlog.FencedError{Open: 2, Got: 1},
		&eventlog.BackupError{}, &policy.UnknownRoleError{}, &materialize.LockdownError{}, WithHint(eventlog.ErrLocked, "--wait 5s")}
	for _, rule := range []policy.Rule{policy.RuleSpawn, policy.RuleMaxChildren, policy.RuleCapability, policy.RuleRequest, policy.RuleProviderList, "another"} {
		errs = append(errs, &policy.RefusedError{Rule: rule})
	}
	for _, f := range failures() {
		errs = append(errs, f.Is)
	}
	for _, err := range errs {
		hint := Of(err).API
		require.NotEmpty(t, hint, "%v", err)
		for _, local := range []string{"`", "--", "CHILDLOG_"} {
			require.NotContains(t, hint, local, "%T %v", err, err)
		}
	}
}
