package replay_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/policy"
)

// TestCase16_MissingFieldsAreRestrictive: a delegation event of an older
// version lacks a field of this one. It loads, and the field has the value
// that permits least.
func TestCase16_MissingFieldsAreRestrictive(t *testing.T) {
	wide := func() *handLog { // everything that could be lost by a missing field is granted
		v := policy.Sandbox{Mode: policy.WorkspaceWrite, Network: true}
		roots, err := policy.RootsOf(workspace)
		require.NoError(t, err)
		v.Roots = roots
		return childLog(t, &v)
	}
	// The receipt and the sandbox event are of one version, so both lack it.
	without := func(field string) *handLog { return wide().set(3, field, nil).setIn(2, "sandbox", field, nil) }

	for field, check := range map[string]func(policy.Sandbox){
		"network":                func(v policy.Sandbox) { require.False(t, v.Network) },
		"exclude_tmpdir_env_var": func(v policy.Sandbox) { require.True(t, v.ExcludeTmpdirEnvVar) },
		"exclude_slash_tmp":      func(v policy.Sandbox) { require.True(t, v.ExcludeSlashTmp) },
		"writable_roots": func(v policy.Sandbox) {
			require.False(t, v.Roots.Recorded())
			require.False(t, v.Roots.Contains(workspace))
		},
	} {
		t.Run(field, func(t *testing.T) {
			e, err := without(field).fold()
			require.NoError(t, err)
			check(e.Sandbox.Value)
			full, err := wide().fold()
			require.NoError(t, err)
			require.False(t, full.Sandbox.Value.Within(e.Sandbox.Value), "the field did matter")
		})
	}

	t.Run("in session/created", func(t *testing.T) {
		e, err := childLog(t, nil).set(1, "defaults", nil).set(2, "defaults", nil).fold()
		require.NoError(t, err)
		require.True(t, e.Sandbox.Value.Equal(readOnly()), "no default: read-only without network")
		require.Equal(t, policy.Never, e.Defaults.Approvals)

		e, err = childLog(t, nil).setIn(1, "defaults", "sandbox", nil).setIn(2, "defaults", "sandbox", nil).fold()
		require.NoError(t, err)
		require.True(t, e.Sandbox.Value.Equal(readOnly()))

		e, err = rootLog(t).setIn(1, "defaults", "approvals", nil).fold()
		require.NoError(t, err)
		require.Equal(t, policy.Never, e.Approvals, "nothing says that anybody may be asked")

		e, err = childLog(t, nil).set(1, "mode", nil).fold()
		require.NoError(t, err)
		require.Equal(t, eventlog.ModeOneShot, e.Mode, "a session that may not be continued")

		e, err = childLog(t, nil).set(1, "mode", "forever").fold()
		require.NoError(t, err)
		require.Equal(t, eventlog.ModeOneShot, e.Mode)

		e, err = rootLog(t).set(1, "max_depth", nil).fold()
		require.NoError(t, err)
		require.Equal(t, 0, e.MaxDepth, "no further depth is allowed")

		e, err = childLog(t, nil).set(1, "provider", nil).fold()
		require.NoError(t, err)
		require.False(t, e.Provider.InProcess)

		e, err = childLog(t, nil).setIn(1, "provider", "in_process", nil).fold()
		require.NoError(t, err)
		require.False(t, e.Enforced(), "a provider that is not said to be in this process keeps its own policy")
	})

	t.Run("a receipt that is not said to be ours", func(t *testing.T) {
		_, err := childLog(t, nil).setIn(2, "issuer", "claimed", nil).fold()
		require.NoError(t, err)
	})
}

// TestCase16_BrokenFieldsAreNamed: a field of the wrong kind is damage. The
// error names session, seq, type and field and is never "not found", which a
// caller might take for a session without a policy.
func TestCase16_BrokenFieldsAreNamed(t *testing.T) {
	narrowed := func() *handLog {
		return childLog(t, fullAccess()).add(eventlog.TypePolicyNarrowed, eventlog.SourceOperator, eventlog.NarrowedFacts(readOnly(), "operator"))
	}
	for _, c := range []struct {
		seq   uint64
		field string
		log   *handLog
	}{
		{1, "kind", narrowed().set(1, "kind", nil)},
		{1, "parent", narrowed().set(1, "parent", "22222222")},
		{1, "parent", narrowed().set(1, "parent", []byte{1, 2})},
		{1, "parent_seq", narrowed().set(1, "parent_seq", -1)},
		{1, "parent_head", narrowed().set(1, "parent_head", []byte{1})},
		{1, "root", narrowed().set(1, "root", nil)},
		{1, "depth", narrowed().set(1, "depth", "2")},
		{1, "depth", narrowed().set(1, "depth", -1)},
		{1, "max_depth", narrowed().set(1, "max_depth", true)},
		{1, "mode", narrowed().set(1, "mode", 1)},
		{1, "defaults", narrowed().set(1, "defaults", "read-only")},
		{1, "defaults/sandbox", narrowed().setIn(1, "defaults", "sandbox", []any{})},
		{1, "defaults/sandbox/mode", narrowed().setIn(1, "defaults", "sandbox", map[string]any{})},
		{1, "defaults/approvals", narrowed().setIn(1, "defaults", "approvals", false)},
		{1, "evidence", narrowed().set(1, "evidence", "no")},
		{1, "provider/in_process", narrowed().setIn(1, "provider", "in_process", "yes")},
		{2, "parent", narrowed().set(2, "parent", nil)},
		{2, "child", narrowed().set(2, "child", nil)},
		{2, "issuer", narrowed().set(2, "issuer", nil)},
		{2, "issuer/claimed", narrowed().setIn(2, "issuer", "claimed", 0)},
		{2, "sandbox", narrowed().set(2, "sandbox", "danger-full-access")},
		{2, "sandbox/mode", narrowed().setIn(2, "sandbox", "mode", nil)},
		{2, "approvals", narrowed().set(2, "approvals", nil)},
		{2, "approvals", narrowed().set(2, "approvals", "ask")},
		{2, "key", narrowed().set(2, "key", "run 4, call 7")},
		{3, "mode", narrowed().set(3, "mode", nil)},
		{3, "mode", narrowed().set(3, "mode", 3)},
		{3, "network", narrowed().set(3, "network", 1)},
		{3, "exclude_slash_tmp", narrowed().set(3, "exclude_slash_tmp", "no")},
		{3, "writable_roots", narrowed().set(3, "writable_roots", "/")},
		{3, "writable_roots", narrowed().set(3, "writable_roots", []any{7})},
		{3, "writable_roots", narrowed().set(3, "writable_roots", []any{"relative"})},
		{3, "writable_roots", narrowed().set(3, "writable_roots", []any{"/srv/../etc"})},
		{4, "policy", narrowed().set(4, "policy", nil)},
		{4, "policy", narrowed().set(4, "policy", 0)},
		{5, "ceiling", narrowed().set(5, "ceiling", nil)},
		{5, "ceiling/sandbox", narrowed().set(5, "ceiling", map[string]any{})},
		{5, "ceiling/budget", narrowed().setIn(5, "ceiling", "budget", 3)},
		{5, "ceiling/sandbox/mode", narrowed().set(5, "ceiling", map[string]any{"sandbox": map[string]any{"mode": 1}})},
	} {
		_, err := c.log.fold()
		require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
		require.NotErrorIs(t, err, eventlog.ErrNotFound)
		var ce *eventlog.CorruptError
		require.True(t, errors.As(err, &ce), "%v", err)
		require.Equal(t, c.seq, ce.Seq, "%v", err)
		require.Equal(t, c.log.at(int(c.seq)).Type, ce.Type)
		require.Equal(t, handChild, ce.Session)
		require.Equal(t, c.field, ce.Field, "%v", err)
	}

	t.Run("facts that are no map", func(t *testing.T) {
		for seq := 1; seq <= 5; seq++ {
			for _, raw := range [][]byte{{0xc0}, {0x81}, {0x01}, append([]byte(nil), narrowed().at(seq).Facts[:4]...)} {
				l := narrowed()
				l.at(seq).Facts = raw
				_, err := l.fold()
				require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable, "seq %d, %x", seq, raw)
				var ce *eventlog.CorruptError
				require.True(t, errors.As(err, &ce))
				require.Equal(t, uint64(seq), ce.Seq)
			}
		}
	})
}
