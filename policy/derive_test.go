package policy_test

import (
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// P may only delegate, with the explicit grant that its worker may edit src/.
// The receipt tells ceiling, requested and granted apart; without the grant the
// same request is refused.
func TestCase3_ExplicitGrant(t *testing.T) {
	grant := policy.ExplicitGrant{ID: "edit-src", Issuer: issuerAt, ExpiresMS: nowMS + 1000, Uses: 2}
	p := coordinator(t, scoped(t, "src/"))
	p.Explicit = []policy.ExplicitGrant{grant}
	request := policy.Request{
		Role:        "implementer",
		MergePolicy: policy.MergeTransactionalWrite,
		Wish:        policy.Wish{WriteScope: &[]string{"src", "docs"}, Shell: ptr(policy.ShellReadOnly)},
	}
	d := derive(t, p, request)

	assert.Equal(t, policy.FilesNone, d.Ceiling.Own.Grant.Files)
	assert.Equal(t, policy.FilesWrite, d.Ceiling.Delegable.Grant.Files)
	assert.Equal(t, []string{"src"}, d.Ceiling.Delegable.Grant.Scope.Entries())

	assert.Equal(t, policy.FilesWrite, d.Requested.Own.Grant.Files)
	assert.Equal(t, []string{"docs", "src"}, d.Requested.Own.Grant.Scope.Entries())

	assert.Equal(t, policy.FilesWrite, d.Granted.Own.Grant.Files)
	assert.Equal(t, []string{"src"}, d.Granted.Own.Grant.Scope.Entries())
	assert.Equal(t, policy.GrantInspect, d.Granted.Own.Grant.Shell)
	assert.True(t, d.Granted.Delegable.Equal(d.Granted.Own))

	assert.Equal(t, []policy.Cut{{Field: policy.FieldScope, From: `["docs" "src"]`, To: `["src"]`, Rule: policy.RuleParent}}, d.Cuts)
	assert.Equal(t, []policy.ExplicitGrant{grant}, d.Relied)
	assert.Empty(t, d.Granted.Explicit, "the worker hands on no more than it holds")

	refused := func(a policy.Authority, in policy.DeriveInput, rule policy.Rule) {
		t.Helper()
		_, err := policy.Derive(a, in, request)
		require.ErrorIs(t, err, policy.ErrWidening)
		var e *policy.RefusedError
		require.ErrorAs(t, err, &e)
		assert.Equal(t, policy.FieldScope, e.Field)
		assert.Equal(t, `["src" "docs"]`, e.Got)
		assert.Equal(t, rule, e.Rule)
	}
	refused(coordinator(t, p.Own), input(), policy.RuleParent)

	// Nor with a grant that has run out, or was for somewhere else.
	late := input()
	late.NowMS = nowMS + 1000
	refused(p, late, policy.RuleGrantExpired)

	used := input()
	used.Uses = []policy.GrantUse{{ID: "edit-src", Issuer: receiptAt, Used: 9}, {ID: "edit-src", Issuer: issuerAt, Used: 1}}
	d, err := policy.Derive(p, used, request)
	require.NoError(t, err, "the second of two")
	assert.Len(t, d.Relied, 1)
	used.Uses[1].Used = 2
	refused(p, used, policy.RuleGrantSpent)

	elsewhere := p
	elsewhere.Delegable = scoped(t, "lib")
	refused(elsewhere, input(), policy.RuleParent)

	// A child that needs nothing of it relies on nothing, also when it is over.
	d, err = policy.Derive(p, late, policy.Request{Role: "advisor", Wish: policy.Wish{Tools: toolsOf(t), Shell: ptr(policy.ShellNone), Permissions: &policy.Permissions{}}})
	require.NoError(t, err)
	assert.Empty(t, d.Relied)
}

// The terms follow what they are terms of: a coordinator under a coordinator
// hands on under both.
func TestExplicitGrantsGoDown(t *testing.T) {
	p := coordinator(t, scoped(t, "src"))
	p.Explicit = []policy.ExplicitGrant{{ID: "outer", Issuer: operatorAt, Uses: 5}}
	in := input()
	middle, err := policy.Derive(p, in, policy.Request{
		Role:           "planner",
		Wish:           policy.Wish{Tools: toolsOf(t, "subagent")},
		Delegable:      &policy.Wish{WriteScope: &[]string{"src/a"}},
		ExplicitGrants: []policy.ExplicitGrant{{ID: "inner", ExpiresMS: nowMS + 10, Issuer: receiptAt}},
	})
	require.NoError(t, err)
	assert.Equal(t, policy.FilesRead, middle.Granted.Own.Grant.Files)
	assert.Equal(t, []string{"src/a"}, middle.Granted.Delegable.Grant.Scope.Entries())
	assert.Equal(t, []policy.ExplicitGrant{
		{ID: "outer", Issuer: operatorAt, Uses: 5},
		{ID: "inner", Issuer: issuerAt, ExpiresMS: nowMS + 10}, // the caller does not say who issued it
	}, middle.Granted.Explicit)
	require.NoError(t, middle.Fingerprint.Check(policy.RolePlanner, middle.Granted))

	write := policy.Request{Role: "implement", Wish: policy.Wish{WriteScope: &[]string{"src/a/x"}}}
	in.Depth = 2
	worker, err := policy.Derive(middle.Granted, in, write)
	require.NoError(t, err)
	assert.Len(t, worker.Relied, 2)
	in.NowMS += 10
	_, err = policy.Derive(middle.Granted, in, write)
	require.ErrorIs(t, err, policy.ErrWidening)

	_, err = policy.Derive(p, input(), policy.Request{ExplicitGrants: []policy.ExplicitGrant{{ID: "x"}}})
	require.ErrorIs(t, err, policy.ErrInvalid, "terms of nothing")
	for _, bad := range [][]policy.ExplicitGrant{{{ID: ""}}, {{ID: "a b"}}, {{ID: "x", ExpiresMS: -1}}, {{ID: "x", Uses: policy.MaxNumber + 1}}, {{ID: "x"}, {ID: "x"}}} {
		_, err = policy.Derive(p, input(), policy.Request{Delegable: &policy.Wish{}, ExplicitGrants: bad})
		require.ErrorIs(t, err, policy.ErrInvalid, "%+v", bad)
	}
}

// A read-only investigator makes a doer: it does not write, keeps the network,
// has a full shell by profile, and its grant inspects.
func TestCase46_DoerUnderAnInvestigator(t *testing.T) {
	for _, investigator := range []string{"explore", "reviewer"} {
		p := derive(t, policy.TopAuthority(), policy.Request{Role: investigator}).Granted
		d := derive(t, p, policy.Request{Role: "implement"})
		own := d.Granted.Own
		assert.Equal(t, policy.Permissions{Network: true}, own.Profile.Permissions)
		assert.Equal(t, policy.ShellFull, own.Profile.Shell)
		assert.Equal(t, policy.GrantInspect, own.Grant.Shell)
		assert.Equal(t, "read_only", policy.Transport(own.Grant.Shell))
		assert.Equal(t, policy.FilesRead, own.Grant.Files)
		assert.True(t, own.Grant.Network)
		assert.Equal(t, policy.SurfaceEvidence, own.Grant.Surface)
		assert.Equal(t, []policy.Cut{
			{Field: policy.FieldWrite, From: "yes", To: "no", Rule: policy.RuleParent},
			{Field: policy.FieldFiles, From: "write", To: "read", Rule: policy.RuleParent},
			{Field: policy.FieldGrantShell, From: "full", To: "inspect", Rule: policy.RuleParent},
			{Field: policy.FieldSurface, From: "inherited", To: "evidence", Rule: policy.RuleParent},
		}, d.Cuts)
	}
}

// The grant half of case 54: the child of an explorer runs no raw command,
// whatever its role and whatever it asks for.
func TestCase54_ExplorersChildOnlyInspects(t *testing.T) {
	p := derive(t, policy.TopAuthority(), policy.Request{Role: "explore"}).Granted
	d := derive(t, p, policy.Request{Role: "implement", Wish: policy.Wish{Shell: ptr(policy.ShellFull), Permissions: &policy.Permissions{Write: true, Network: true}}})
	exec := classOf(t, "exec_command")
	s := policy.Standing{Own: d.Granted.Own, Sandbox: policy.Top()}
	rule, ok := s.Permits(exec, "") // "touch x" carries no verdict
	assert.False(t, ok)
	assert.Equal(t, policy.RuleShell, rule)
	_, ok = s.Permits(exec, policy.GrantInspect)
	assert.True(t, ok)
}

// So a coordinator that may only delegate can have workers that edit.
func TestCoordinatorByRequest(t *testing.T) {
	d := derive(t, policy.TopAuthority(), policy.Request{
		Role:      "planner",
		Wish:      policy.Wish{Tools: toolsOf(t, "subagent"), MaxSteps: ptr(uint64(5)), DeadlineMS: ptr(int64(nowMS + 90)), DeniedTools: []string{"chmod"}},
		Delegable: &policy.Wish{WriteScope: &[]string{"src"}, MaxSteps: ptr(uint64(50)), DeadlineMS: ptr(int64(nowMS + 99)), DeniedTools: []string{"fetch_url"}},
	})
	assert.Equal(t, policy.FilesRead, d.Granted.Own.Grant.Files)
	assert.True(t, d.Granted.Own.Grant.Network)
	del := d.Granted.Delegable
	assert.Equal(t, policy.FilesWrite, del.Grant.Files)
	assert.Equal(t, policy.GrantFull, del.Grant.Shell)
	assert.True(t, del.Profile.Tools.Inherits(), "what is left open is what the parent can hand on")
	assert.Equal(t, uint64(50), del.Profile.Limits.MaxSteps)
	assert.Equal(t, int64(nowMS+90), del.Profile.Limits.DeadlineMS, "nobody's child outlives him")
	assert.Equal(t, []policy.DenyEntry{
		{Pattern: "chmod", Kind: policy.DenyRequest, Origin: receiptAt},
		{Pattern: "fetch_url", Kind: policy.DenyRequest, Origin: receiptAt},
	}, del.Profile.Denied.Entries(), "a deny rule of the child is one of its workers")
	assert.False(t, del.Grant.Network)
	assert.Empty(t, d.Granted.Explicit, "without terms")

	worker := derive(t, d.Granted, policy.Request{Role: "implement"})
	assert.Equal(t, []string{"src"}, worker.Granted.Own.Grant.Scope.Entries())
	assert.Empty(t, worker.Relied)
}

// A deny rule or a deadline of the own half binds descendants that the
// delegable half would let off.
func TestOwnHalfBindsDescendants(t *testing.T) {
	a := policy.TopAuthority()
	a.Own.Profile.Denied = denying(t, "chmod")
	a.Own.Profile.Limits = policy.Limits{DeadlineMS: nowMS + 5, MaxDepth: 1}
	d := derive(t, a, policy.Request{})
	assert.True(t, d.Granted.Own.Profile.Denied.Covers(a.Own.Profile.Denied))
	assert.Equal(t, policy.Limits{DeadlineMS: nowMS + 5, MaxDepth: 1}, d.Granted.Own.Profile.Limits)
	in := input()
	in.Depth = 2
	_, err := policy.Derive(d.Granted, in, policy.Request{})
	require.ErrorIs(t, err, policy.ErrDepth)
}

func TestDeriveDeadline(t *testing.T) {
	for _, c := range []struct {
		name           string
		parent         int64
		deadline, wall *int64
		want           int64
		cut            bool
	}{
		{"none", 0, nil, nil, 0, false},
		{"the parent's is inherited", nowMS + 50, nil, nil, nowMS + 50, false},
		{"wall time", 0, nil, ptr(int64(30)), nowMS + 30, false},
		{"wall time under a later deadline", nowMS + 50, nil, ptr(int64(30)), nowMS + 30, false},
		{"wall time beyond the parent's", nowMS + 50, nil, ptr(int64(80)), nowMS + 50, true},
		{"a deadline", 0, ptr(int64(nowMS + 7)), nil, nowMS + 7, false},
		{"both", 0, ptr(int64(nowMS + 7)), ptr(int64(3)), nowMS + 3, false},
		{"both, the deadline first", nowMS + 50, ptr(int64(nowMS + 7)), ptr(int64(30)), nowMS + 7, false},
		{"endless", 0, nil, ptr(int64(policy.MaxNumber)), policy.MaxNumber, false},
	} {
		a := policy.TopAuthority()
		a.Delegable.Profile.Limits.DeadlineMS = c.parent
		d := derive(t, a, policy.Request{WallMS: c.wall, Wish: policy.Wish{DeadlineMS: c.deadline}})
		assert.Equal(t, c.want, d.Granted.Own.Profile.Limits.DeadlineMS, c.name)
		assert.Equal(t, c.want, d.Granted.Delegable.Profile.Limits.DeadlineMS, c.name)
		assert.Equal(t, c.cut, len(d.Cuts) > 0, "%s: %v", c.name, d.Cuts)
	}
}

func TestDeriveDepth(t *testing.T) {
	a := policy.TopAuthority()
	a.Delegable.Profile.Limits.MaxDepth = 2
	at := func(a policy.Authority, depth int, most *int) (policy.Derived, error) {
		in := input()
		in.Depth = depth
		return policy.Derive(a, in, policy.Request{Wish: policy.Wish{MaxDepth: most}})
	}
	for _, c := range []struct {
		name               string
		a                  policy.Authority
		depth              int
		most               *int
		attempted, allowed int // 0: accepted
	}{
		{"within", a, 2, nil, 0, 0},
		{"too deep", a, 3, nil, 3, 2},
		{"too deep for what it asks", a, 2, ptr(1), 2, 1},
		{"a request for none at all", a, 1, ptr(0), 1, 0},
		{"a wish does not widen", a, 3, ptr(8), 3, 2},
		{"no ceiling but the hard one", policy.TopAuthority(), 8, nil, 0, 0},
		{"the hard ceiling", policy.TopAuthority(), 9, nil, 9, 8},
	} {
		_, err := at(c.a, c.depth, c.most)
		if c.attempted == 0 {
			require.NoError(t, err, c.name)
			continue
		}
		require.ErrorIs(t, err, policy.ErrDepth, c.name)
		var e *policy.DepthError
		require.ErrorAs(t, err, &e, c.name)
		assert.Equal(t, policy.DepthError{Attempted: c.attempted, Allowed: c.allowed}, *e, c.name)
	}
	d, err := at(a, 1, ptr(1))
	require.NoError(t, err)
	assert.Equal(t, 1, d.Granted.Delegable.Profile.Limits.MaxDepth)
	for _, depth := range []int{0, -1} {
		_, err = at(a, depth, nil)
		require.ErrorIs(t, err, policy.ErrInvalid)
	}
	d = derive(t, policy.TopAuthority(), policy.Request{Wish: policy.Wish{MaxDepth: ptr(2)}, Delegable: &policy.Wish{MaxDepth: ptr(5)}})
	assert.Equal(t, 2, d.Granted.Delegable.Profile.Limits.MaxDepth, "the child's own depth binds its workers")
	assert.Contains(t, d.Cuts, policy.Cut{Field: "delegable." + policy.FieldMaxDepth, From: "5", To: "2", Rule: policy.RuleOwnLimits})
	none := derive(t, policy.TopAuthority(), policy.Request{Delegable: &policy.Wish{MaxDepth: ptr(0)}})
	assert.Equal(t, 1, none.Granted.Delegable.Profile.Limits.MaxDepth, "0 is too little for a child, and must not read as no limit")
}

func TestDeriveSpawn(t *testing.T) {
	in := input()
	in.Children = 2
	leaf := derive(t, policy.TopAuthority(), policy.Request{Wish: policy.Wish{Spawn: ptr(false)}}).Granted
	few := policy.TopAuthority()
	few.Own.Grant.MaxChildren = ptr(2)
	for name, c := range map[string]struct {
		a    policy.Authority
		rule policy.Rule
	}{
		"a session that may not delegate": {leaf, policy.RuleSpawn},
		"nothing was granted":             {policy.Authority{}, policy.RuleSpawn},
		"the third of two":                {few, policy.RuleMaxChildren},
	} {
		_, err := policy.Derive(c.a, in, policy.Request{})
		var e *policy.RefusedError
		require.ErrorAs(t, err, &e, name)
		require.ErrorIs(t, err, policy.ErrWidening, name)
		assert.Equal(t, c.rule, e.Rule, name)
	}
	in.Children = 1
	d, err := policy.Derive(few, in, policy.Request{Wish: policy.Wish{MaxChildren: ptr(7)}})
	require.NoError(t, err)
	assert.Equal(t, 7, *d.Granted.Own.Grant.MaxChildren, "the parent's own count is not what it hands on")
	in.Children = -1
	_, err = policy.Derive(few, in, policy.Request{})
	require.ErrorIs(t, err, policy.ErrInvalid)
}

// What does not narrow is the child's wish, else its parent's.
func TestDeriveChoices(t *testing.T) {
	in := input()
	in.Parent = policy.Choices{Role: policy.RoleReviewer, Model: "m1", Provider: "p1", Effort: "low", Background: true}
	d, err := policy.Derive(policy.TopAuthority(), in, policy.Request{})
	require.NoError(t, err)
	assert.Equal(t, in.Parent, d.Choices)
	assert.Equal(t, policy.FilesRead, d.Granted.Own.Grant.Files, "the parent's role has its preset")

	d, err = policy.Derive(policy.TopAuthority(), in, policy.Request{Role: " Builder", Model: "m2", Provider: "p2", Effort: "high", Background: ptr(false)})
	require.NoError(t, err)
	assert.Equal(t, policy.Choices{Role: policy.RoleImplement, Model: "m2", Provider: "p2", Effort: "high"}, d.Choices)
	assert.Equal(t, policy.RoleGeneral, derive(t, policy.TopAuthority(), policy.Request{}).Choices.Role)

	in.Parent.Role = "wizard"
	_, err = policy.Derive(policy.TopAuthority(), in, policy.Request{})
	require.ErrorIs(t, err, policy.ErrInvalid, "a role of a newer version is no role")
}

func TestDeriveProviders(t *testing.T) {
	a := policy.TopAuthority()
	a.Delegable.Profile.Providers = namesOf(t, "deepseek", "zai")
	d := derive(t, a, policy.Request{Provider: "zai", Wish: policy.Wish{Providers: namesOf(t, "zai", "other")}})
	assert.Equal(t, []string{"zai"}, d.Granted.Own.Profile.Providers.List())
	for _, provider := range []string{"", "other", "DeepSeek"} {
		_, err := policy.Derive(a, input(), policy.Request{Provider: provider})
		var e *policy.RefusedError
		require.ErrorAs(t, err, &e, provider)
		assert.Equal(t, policy.RuleProviderList, e.Rule)
	}
}

func TestDeriveRefusesNonsense(t *testing.T) {
	wish := func(w policy.Wish) policy.Request { return policy.Request{Wish: w} }
	for name, r := range map[string]policy.Request{
		"role":                               {Role: "root"},
		"wall time 0":                        {WallMS: ptr(int64(0))},
		"wall time":                          {WallMS: ptr(int64(policy.MaxNumber + 1))},
		"model":                              {Model: "a b"},
		"long model":                         {Model: string(make([]byte, 200))},
		"provider":                           {Provider: "dеepseek"},
		"effort":                             {Effort: "high\n"},
		"shell":                              wish(policy.Wish{Shell: ptr(policy.Shell("verify"))}),
		"past deadline":                      wish(policy.Wish{DeadlineMS: ptr(int64(nowMS))}),
		"deadline":                           wish(policy.Wish{DeadlineMS: ptr(int64(policy.MaxNumber + 1))}),
		"steps":                              wish(policy.Wish{MaxSteps: ptr(uint64(policy.MaxNumber + 1))}),
		"children":                           wish(policy.Wish{MaxChildren: ptr(-1)}),
		"depth":                              wish(policy.Wish{MaxDepth: ptr(9)}),
		"denied":                             wish(policy.Wish{DeniedTools: []string{""}}),
		"scope":                              wish(policy.Wish{WriteScope: &[]string{"/etc"}}),
		"delegable's denied":                 {Delegable: &policy.Wish{DeniedTools: []string{"a*b"}}},
		"delegable's scope":                  {Delegable: &policy.Wish{WriteScope: &[]string{".."}}},
		"delegable's depth":                  {Delegable: &policy.Wish{MaxDepth: ptr(-1)}},
		"a scope to hand on under read_only": {MergePolicy: policy.MergeReadOnly, Delegable: &policy.Wish{WriteScope: &[]string{}}},
	} {
		d, err := policy.Derive(policy.TopAuthority(), input(), r)
		require.ErrorIs(t, err, policy.ErrInvalid, name)
		assert.Equal(t, policy.Derived{}, d, name)
	}
}

// Cuts of one field follow each other, and each names what did it.
func TestCutsNameTheRule(t *testing.T) {
	a := policy.TopAuthority()
	a.Delegable.Grant.Network, a.Delegable.Grant.Shell = false, policy.GrantInspect
	in := input()
	in.Operator = operatorRules(t, []string{"exec_shell"}, nil)
	d, err := policy.Derive(a, in, policy.Request{
		Role: "test",
		Wish: policy.Wish{Permissions: &policy.Permissions{Write: true, Network: true}, Shell: ptr(policy.ShellFull), Tools: toolsOf(t)},
	})
	require.NoError(t, err)
	assert.Equal(t, []policy.Cut{
		{Field: policy.FieldWrite, From: "yes", To: "no", Rule: policy.RuleRolePreset},
		{Field: policy.FieldFiles, From: "write", To: "read", Rule: policy.RuleRolePreset},
		{Field: policy.FieldGrantShell, From: "full", To: "verify", Rule: policy.RuleRolePreset},
		{Field: policy.FieldNetwork, From: "yes", To: "no", Rule: policy.RuleParent},
		{Field: policy.FieldGrantShell, From: "verify", To: "inspect", Rule: policy.RuleParent},
		{Field: policy.FieldGrantNetwork, From: "yes", To: "no", Rule: policy.RuleParent},
		{Field: policy.FieldFiles, From: "read", To: "none", Rule: policy.RuleToolsEmpty},
	}, d.Cuts)
	assert.Equal(t, "grant.files: read -> none (tools_empty)", d.Cuts[6].String())

	byOperator, err := policy.Derive(policy.TopAuthority(), in, policy.Request{})
	require.NoError(t, err)
	assert.Equal(t, []policy.Cut{{Field: policy.FieldGrantShell, From: "full", To: "verify", Rule: policy.RuleDenyShell}}, byOperator.Cuts)
}

// What a request leaves open is inherited and no cut; what it states is, also
// when its parent has no more of it than it asks for a different reason.
func TestInheritingIsNoCut(t *testing.T) {
	a := policy.TopAuthority()
	a.Delegable = scoped(t, "src")
	a.Delegable.Grant.Spawn, a.Delegable.Grant.MaxChildren = false, ptr(3)
	a.Delegable.Profile.Tools = toolsOf(t, "read", "edit")
	a.Delegable.Profile.Limits = policy.Limits{DeadlineMS: nowMS + 9, MaxSteps: 4, MaxDepth: 2}
	a.Delegable.Profile.Capabilities = namesOf(t, "browser")
	d := derive(t, a, policy.Request{Role: "implement"})
	assert.Empty(t, d.Cuts)
	assert.True(t, d.Granted.Own.Equal(a.Delegable))

	d = derive(t, a, policy.Request{Role: "implement", Wish: policy.Wish{Spawn: ptr(true), MaxSteps: ptr(uint64(5)), Tools: toolsOf(t, "edit", "bash")}})
	assert.Equal(t, []policy.Cut{
		{Field: policy.FieldTools, From: "[bash edit]", To: "[edit]", Rule: policy.RuleParent},
		{Field: policy.FieldMaxSteps, From: "5", To: "4", Rule: policy.RuleParent},
		{Field: policy.FieldSpawn, From: "yes", To: "no", Rule: policy.RuleParent},
	}, d.Cuts)

	// Permissions are stated together, so this asks for no network.
	d = derive(t, policy.TopAuthority(), policy.Request{Wish: policy.Wish{Permissions: &policy.Permissions{Write: true}}})
	assert.Empty(t, d.Cuts)
	assert.False(t, d.Requested.Own.Grant.Network)

	d = derive(t, policy.TopAuthority(), policy.Request{Wish: policy.Wish{DeniedTools: []string{"run_tests"}}})
	assert.Equal(t, []policy.Cut{
		{Field: policy.FieldShell, From: "full", To: "read_only", Rule: policy.RuleDenyTests},
		{Field: policy.FieldGrantShell, From: "full", To: "inspect", Rule: policy.RuleDenyTests},
	}, d.Cuts)
}

func TestDeniedListsAreBounded(t *testing.T) {
	a := policy.TopAuthority()
	a.Delegable.Profile.Denied = denying(t, numbered("t%d", 1024)...)
	derive(t, a, policy.Request{})
	_, err := policy.Derive(a, input(), policy.Request{Wish: policy.Wish{DeniedTools: []string{"one_more"}}})
	require.ErrorIs(t, err, policy.ErrInvalid, "refused, since dropping a rule would widen")
}
