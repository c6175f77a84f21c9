package policy_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The lines of version 1. Receipts hold their digests, so they never change.
func TestFingerprintLine(t *testing.T) {
	d := derive(t, policy.TopAuthority(), policy.Request{
		Role: "explorer",
		Wish: policy.Wish{Tools: toolsOf(t, "write", "Read"), DeniedTools: []string{"EXEC_shell", "chmod"}, MaxSteps: ptr(uint64(9)), MaxChildren: ptr(2)},
	})
	assert.Equal(t, "childlog-grant/1 role=explore permissions.write=no permissions.network=yes shell=full tools=[Read write] providers=any capabilities=any "+
		"deadline=none max_steps=9 max_depth=none grant.files=read grant.shell=inspect grant.network=yes grant.desktop=no grant.surface=evidence "+
		"grant.spawn=yes grant.max_children=2 grant.write_scope=any denied_tools=[chmod exec_shell] delegable{} deny_paths=[] explicit=[]", d.Fingerprint.Line)
	sum := sha256.Sum256([]byte(d.Fingerprint.Line))
	assert.Equal(t, sum, d.Fingerprint.Sum)
	assert.Equal(t, hex.EncodeToString(sum[:]), d.Fingerprint.String())

	c := coordinator(t, scoped(t, "src", "a b]"))
	c.Explicit = []policy.ExplicitGrant{{ID: "x", Issuer: policy.Origin{Session: child, Seq: 7}, ExpiresMS: 5, Uses: 1}}
	c = c.Under(operatorRules(t, nil, []string{"secret \u00e9"}))
	assert.Equal(t, "childlog-grant/1 role=planner permissions.write=no permissions.network=no shell=none tools=[subagent] providers=any capabilities=any "+
		"deadline=none max_steps=none max_depth=none grant.files=none grant.shell=none grant.network=no grant.desktop=no grant.surface=evidence "+
		"grant.spawn=yes grant.max_children=any grant.write_scope=[] denied_tools=[] delegable{permissions.write=yes permissions.network=yes shell=full "+
		`tools=absent grant.files=write grant.shell=full grant.network=yes grant.surface=inherited grant.write_scope=["a b]" "src"]} `+
		`deny_paths=["secret \u00e9"] explicit=[x@11111111-2222-4333-8444-555555555555@7:expires=5:uses=1]`,
		policy.FingerprintOf(policy.RolePlanner, c).Line)
}

func TestFingerprintCheck(t *testing.T) {
	d := derive(t, policy.TopAuthority(), policy.Request{Role: "test"})
	require.NoError(t, d.Fingerprint.Check(policy.RoleTest, d.Granted))
	for name, change := range map[string]func(*policy.Authority){
		"own": func(a *policy.Authority) {
			a.Own.Grant.Files = policy.FilesWrite
			a.Own.Profile.Permissions.Write = true
		},
		"delegable": func(a *policy.Authority) { a.Delegable.Grant.Shell = policy.GrantFull },
		"narrower":  func(a *policy.Authority) { a.Own.Grant.Network = false },
		"operator":  func(a *policy.Authority) { a.Operator = operatorRules(t, nil, []string{"x"}) },
		"null":      func(a *policy.Authority) { a.Own.Profile.Tools = policy.ToolsNull() },
		"terms":     func(a *policy.Authority) { a.Explicit = []policy.ExplicitGrant{{ID: "x"}} },
	} {
		a := d.Granted
		change(&a)
		err := d.Fingerprint.Check(policy.RoleTest, a)
		require.ErrorIs(t, err, policy.ErrInvalid, name)
		assert.ErrorContains(t, err, "want "+d.Fingerprint.Line)
	}
	require.ErrorIs(t, d.Fingerprint.Check(policy.RoleExplore, d.Granted), policy.ErrInvalid, "role")
	require.ErrorIs(t, policy.Fingerprint{}.Check(policy.RoleTest, d.Granted), policy.ErrInvalid)
}

// The line is one line; equal authorities have equal ones, and authorities of
// which one permits what the other does not have different ones.
func TestPropertyFingerprint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genAuthority().Draw(t, "a"), genAuthority().Draw(t, "b")
		if rapid.Bool().Draw(t, "alike") {
			b.Own, b.Delegable = a.Own.Meet(b.Own), a.Delegable
		}
		fa, fb := policy.FingerprintOf("", a), policy.FingerprintOf("", b)
		require.NotContains(t, fa.Line, "\n")
		require.Equal(t, fa.Line == fb.Line, fa.Sum == fb.Sum)
		require.Equal(t, a.Equal(b), fa == fb)
		require.Equal(t, fa, policy.FingerprintOf("", a.Canonical()))
		if !a.Within(b) || !b.Within(a) {
			require.NotEqual(t, fa, fb)
		}
		require.Equal(t, 1, strings.Count(fa.Line, "delegable{"))
	})
}
