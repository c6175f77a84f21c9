package command

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/failure"
	"childlog/policy"
)

// TestSaidOnce: what a flag says the document must not say too, for each of
// them. It is refused before any store is looked for.
func TestSaidOnce(t *testing.T) {
	for _, c := range []struct{ flag, value, doc string }{
		{"role", "test", `{"role":"test"}`},
		{"write-scope", "src", `{"write_scope":["src"]}`},
		{"write-scope", "src", `{"write_scope":[]}`},
		{"label", "x", `{"label":"x"}`},
		{"key", "k", `{"key":"k"}`},
		{"mode", "one-shot", `{"mode":"one-shot"}`},
		{"fork", "3", `{"fork":3}`},
		{"id", "0a1b2c3d-0000-4000-8000-000000000001", `{"id":"0a1b2c3d-0000-4000-8000-000000000001"}`},
		{"cwd", "/srv", `{"workspace":"/srv"}`},
		{"tool-call", "c1", `{"tool_call":"c1"}`},
		{"prompt", "p", `{"prompt":"p"}`},
		{"provider", "x", `{"provider":{"name":"x"}}`},
	} {
		var out, msg bytes.Buffer
		args := []string{"--store", filepath.Join(t.TempDir(), "none"), "delegate", "--parent", "0a1b2c3d", "--request", "-"}
		code := Run(context.Background(), args, strings.NewReader(c.doc), &out, &msg)
		require.Equal(t, failure.ExitNotFound, code, "the document alone is accepted: %s", msg.String())
		msg.Reset()
		code = Run(context.Background(), append(args, "--"+c.flag, c.value), strings.NewReader(c.doc), &out, &msg)
		require.Equal(t, failure.ExitUsage, code, c.flag)
		require.Contains(t, msg.String(), "say it once", c.flag)
		require.Contains(t, msg.String(), "--"+c.flag, c.flag)
	}
}

// TestRulesHaveAMeaning: each rule that cuts is explained where a cut is shown.
func TestRulesHaveAMeaning(t *testing.T) {
	for _, r := range []policy.Rule{policy.RuleRolePreset, policy.RuleParent, policy.RuleGrantExpired, policy.RuleGrantSpent, policy.RuleMergeReadOnly,
		policy.RuleMergeScope, policy.RuleOwnLimits, policy.RuleDenyNetwork, policy.RuleDenyTests, policy.RuleDenyShell, policy.RulePermissions,
		policy.RuleProfileShell, policy.RuleToolsEmpty} {
		require.NotEmpty(t, ruleMeaning(r), r)
	}
	require.Empty(t, ruleMeaning(policy.RuleReceipt))
}
