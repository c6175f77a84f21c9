package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The stages are asked in the order of the specification: here everything is
// wrong at once, and the reasons go away one by one.
func TestAuthorizeOrder(t *testing.T) {
	d := derive(t, policy.TopAuthority(), policy.Request{Role: "explore", Wish: policy.Wish{
		Tools: toolsOf(t, "read"), DeniedTools: []string{"write"}, MaxSteps: ptr(uint64(3)), DeadlineMS: ptr(int64(nowMS + 5)),
	}})
	d.Granted.Own.Grant.Scope = declared(t, "src")
	d.Granted = d.Granted.Under(operatorRules(t, []string{"write*"}, []string{"docs"}))
	s := under(childSubject(t, d), readOnly())
	s.Evidence = true
	s.Lockdown = []string{"Write"}
	c := escalated(callOf("write", "docs/x", "../x"), readOnly())
	c.ID = "two words"
	m := policy.Moment{NowMS: nowMS + 5, Steps: 3, Closed: true, Fenced: true}
	got := decided(t, s, c, m)
	want := []policy.Code{
		"malformed", "malformed", "evidence", "fenced", "closed", "expired", "steps_exhausted", "lockdown", "operator_deny", "operator_deny",
		"deny_list", "tool_scope", "write_scope_violation", "files", "sandbox", "sandbox",
	}
	assert.Equal(t, want, codes(got))
	assert.Equal(t, []policy.Rule{
		"invalid_call_id", "invalid_escalation", "evidence", "fenced", "closed", "deadline", "max_steps", "lockdown", "operator_deny", "operator_path",
		"deny_list", "tool_scope", "write_scope", "role_preset", "sandbox", "path_form",
	}, rulesOf(got))
	assert.Equal(t, policy.VerdictDeny, got.Verdict)

	for i, change := range []func(){
		func() { c.ID = "c1" }, func() { c.Escalation = nil }, func() { s.Evidence = false }, func() { m.Fenced = false }, func() { m.Closed = false },
		func() { m.NowMS-- }, func() { m.Steps-- }, func() { s.Lockdown = nil },
	} {
		change()
		assert.Equal(t, want[i+1:], codes(decided(t, s, c, m)))
	}
	s.Unreadable, m.Closed = true, true
	assert.Equal(t, []policy.Code{"policy_unreadable", "closed"}, codes(decided(t, s, c, m)))
}

// The stages behind the write scope, where several stand against one call.
func TestAuthorizeOrderOfGrants(t *testing.T) {
	tester := policy.RoleTest.Preset().Half()
	scopedTester := tester
	scopedTester.Grant.Scope = declared(t, "src")
	offline := tester
	offline.Profile.Permissions.Network = false
	alone := policy.TopHalf()
	alone.Grant.Spawn, alone.Grant.MaxChildren = false, ptr(1)
	for _, c := range []struct {
		own  policy.Half
		call policy.Call
		want string
	}{
		{tester, callOf("write"), "path_unknown:path_unknown files:grant_files sandbox:sandbox"},
		{scopedTester, callOf("write"), "path_unknown:write_scope files:grant_files sandbox:sandbox"},
		{scopedTester, callOf("write", "docs"), "write_scope_violation:write_scope files:grant_files sandbox:sandbox"},
		{scopedTester, callOf("BASH"), "write_scope_violation:write_scope shell:grant_shell opaque:opaque_tool"},
		{offline, callOf("WebFetch"), "network:no_network network:sandbox_network"},
		{offline, callOf("WEBFETCH"), "network:no_network network:sandbox_network opaque:opaque_tool"},
		{alone, callOf("Task"), "spawn:grant_spawn spawn:max_children"},
		{alone, callOf("TASK"), "spawn:grant_spawn spawn:max_children opaque:opaque_tool"},
		{scopedTester, escalated(callOf("x"), policy.Top()), "write_scope_violation:write_scope opaque:opaque_tool approval_never:approval_pin sandbox:sandbox_bound"},
		{scopedTester, escalated(callOf("write", "docs"), policy.Top()),
			"write_scope_violation:write_scope files:grant_files sandbox:sandbox_roots approval_never:approval_pin sandbox:sandbox_bound"},
	} {
		s := under(rootSubject(t, halved(c.own)), readOnly())
		s.Child, s.ApprovalBy = true, pinAt
		assert.Equal(t, c.want, allReasons(decided(t, s, c.call, policy.Moment{Children: 1})), "%s %q", c.call.Tool, c.call.Paths)
	}
}

// One rule at a time, with what goes around it.
func TestAuthorizeRules(t *testing.T) {
	with := func(change func(*policy.Half)) policy.Authority {
		h := policy.TopHalf()
		change(&h)
		return halved(h)
	}
	closing := policy.TopAuthority().Under(operatorRules(t, nil, []string{"secrets"}))
	kids := with(func(h *policy.Half) { h.Grant.MaxChildren = ptr(2) })
	byVerify := inspected("bash")
	byVerify.Verdict.Need = policy.GrantVerify
	unnamed, misnamed, raw := inspected("bash"), inspected("bash"), inspected("bash")
	unnamed.Verdict.By, misnamed.Verdict.By, raw.Verdict.Need = "", "shell check", "raw"
	unknown := callOf("write", "src/a")
	unknown.PathsKnown = false
	for _, c := range []struct {
		name string
		a    policy.Authority
		call policy.Call
		m    policy.Moment
		want string // codes and rules of all reasons
	}{
		{"the top reads", policy.TopAuthority(), callOf("read"), policy.Moment{}, "allowed"},
		{"and edits", policy.TopAuthority(), callOf("write", "src/a"), policy.Moment{}, "allowed"},
		{"and runs", policy.TopAuthority(), callOf("bash"), policy.Moment{}, "allowed"},
		{"whatever it is", policy.TopAuthority(), callOf("mcp__x__y"), policy.Moment{}, "allowed"},
		{"a call without an id", policy.TopAuthority(), policy.Call{Tool: "read"}, policy.Moment{}, "allowed"},
		{"the zero authority", policy.Authority{}, callOf("read"), policy.Moment{}, "files:grant_files"},

		{"an edit without a path", policy.TopAuthority(), callOf("write"), policy.Moment{}, "path_unknown:path_unknown"},
		{"or with one too few", policy.TopAuthority(), unknown, policy.Moment{}, "path_unknown:path_unknown"},

		{"an operator's tool", policy.TopAuthority().Under(operatorRules(t, []string{"chmod"}, nil)), callOf("CHMOD"), policy.Moment{}, "operator_deny:operator_deny"},
		{"an operator's place", closing, callOf("write", "secrets/key"), policy.Moment{}, "operator_deny:operator_path"},
		{"folded", closing, callOf("write", "SECRETS"), policy.Moment{}, "operator_deny:operator_path"},
		{"by its absolute name", closing, callOf("write", "/w/secrets/key"), policy.Moment{}, "operator_deny:operator_path"},
		{"by a name that another system takes for it", closing, callOf("write", "/W/Secrets/key"), policy.Moment{}, "operator_deny:operator_path"},
		{"a place beside it", closing, callOf("write", "secretsx"), policy.Moment{}, "allowed"},
		{"one like it elsewhere", closing, callOf("write", "/v/secrets/key"), policy.Moment{}, "allowed"},
		{"looking is no matter", closing, callOf("read", "secrets/key"), policy.Moment{}, "allowed"},
		{"an opaque tool could", closing, callOf("mcp__x__y"), policy.Moment{}, "operator_deny:operator_path"},
		{"so could a look-alike", closing, callOf("WRITE", "src/a"), policy.Moment{}, "operator_deny:operator_path"},
		{"a shell is the sandbox's", closing, callOf("bash"), policy.Moment{}, "allowed"},
		{"undoing is changing", closing, callOf("rollback"), policy.Moment{Admitted: []string{"secrets/key"}}, "operator_deny:operator_path"},

		{"a denied tool", with(func(h *policy.Half) { h.Profile.Denied = denying(t, "read") }), callOf("read"), policy.Moment{}, "deny_list:deny_list"},
		{"not on the list", with(func(h *policy.Half) { h.Profile.Tools = toolsOf(t, "read") }), callOf("Read"), policy.Moment{}, "tool_scope:tool_scope"},
		{"no list at all", with(func(h *policy.Half) { h.Profile.Tools = toolsOf(t) }), callOf("read"), policy.Moment{}, "tool_scope:tool_scope files:grant_files"},

		{"inside a scope", halved(scoped(t, "src")), callOf("write", "src/a", "/w/src/b"), policy.Moment{}, "allowed"},
		{"one path outside", halved(scoped(t, "src")), callOf("write", "src/a", "docs"), policy.Moment{}, "write_scope_violation:write_scope"},
		{"absolute and elsewhere", halved(scoped(t, "src")), callOf("write", "/v/src/a"), policy.Moment{}, "write_scope_violation:write_scope"},
		{"no path in a scope", halved(scoped(t, "src")), callOf("write"), policy.Moment{}, "path_unknown:write_scope"},
		{"a shell in a scope", halved(scoped(t, "src")), inspected("bash"), policy.Moment{}, "write_scope_violation:write_scope"},
		{"an opaque tool in one", halved(scoped(t, "src")), callOf("x"), policy.Moment{}, "write_scope_violation:write_scope"},
		{"reading in one", halved(scoped(t, "src")), callOf("read", "docs"), policy.Moment{}, "allowed"},
		{"case 46, an empty scope", halved(scoped(t)), callOf("write", "src"), policy.Moment{}, "write_scope_violation:write_scope"},
		{"undoing what was admitted", halved(scoped(t)), callOf("rollback"), policy.Moment{Admitted: []string{"src/a"}}, "allowed"},
		{"and below it", halved(scoped(t)), callOf("rollback", "src/a/b"), policy.Moment{Admitted: []string{"src/a"}}, "allowed"},
		{"and nothing else", halved(scoped(t)), callOf("rollback", "src/b"), policy.Moment{Admitted: []string{"src/a"}}, "write_scope_violation:write_scope"},
		{"undoing nothing", halved(scoped(t)), callOf("rollback"), policy.Moment{}, "path_unknown:write_scope"},
		{"editing nothing", halved(scoped(t, "src")), callOf("write"), policy.Moment{Admitted: []string{"src/a"}}, "path_unknown:write_scope"},
		{"editing what was admitted", halved(scoped(t)), callOf("write", "src/a"), policy.Moment{Admitted: []string{"src/a"}}, "write_scope_violation:write_scope"},

		{"files", halved(policy.RoleTest.Preset().Half()), callOf("write", "a"), policy.Moment{}, "files:grant_files"},
		{"undoing writes", halved(policy.RoleTest.Preset().Half()), callOf("rollback"), policy.Moment{Admitted: []string{"a"}}, "files:grant_files"},
		{"a raw shell", halved(policy.RoleTest.Preset().Half()), callOf("bash"), policy.Moment{}, "shell:grant_shell"},
		{"a classified one", halved(policy.RoleTest.Preset().Half()), byVerify, policy.Moment{}, "allowed"},
		{"by nobody", halved(policy.RoleTest.Preset().Half()), unnamed, policy.Moment{}, "shell:grant_shell"},
		{"by what is no name", halved(policy.RoleTest.Preset().Half()), misnamed, policy.Moment{}, "shell:grant_shell"},
		{"as what nobody knows", halved(policy.RoleTest.Preset().Half()), raw, policy.Moment{}, "shell:grant_shell"},
		{"beyond the grant", halved(policy.RoleExplore.Preset().Half()), byVerify, policy.Moment{}, "shell:grant_shell"},
		{"network", with(func(h *policy.Half) { h.Grant.Network = false }), callOf("WebFetch"), policy.Moment{}, "network:no_network"},

		{"no delegation", with(func(h *policy.Half) { h.Grant.Spawn = false }), callOf("wait"), policy.Moment{}, "spawn:grant_spawn"},
		{"a child too many", kids, callOf("Task"), policy.Moment{Children: 2}, "spawn:max_children"},
		{"the last one", kids, callOf("Task"), policy.Moment{Children: 1}, "allowed"},
		{"waiting for those there are", kids, callOf("wait"), policy.Moment{Children: 2}, "allowed"},

		{"opaque under a limit", halved(policy.RoleTest.Preset().Half()), callOf("x"), policy.Moment{}, "opaque:opaque_tool"},
		{"a look-alike too", with(func(h *policy.Half) { h.Grant.Shell = policy.GrantVerify }), callOf("BASH"), policy.Moment{}, "shell:grant_shell opaque:opaque_tool"},

		{"the step before the last", with(func(h *policy.Half) { h.Profile.Limits.MaxSteps = 5 }), callOf("read"), policy.Moment{Steps: 4}, "allowed"},
		{"the last", with(func(h *policy.Half) { h.Profile.Limits.MaxSteps = 5 }), callOf("read"), policy.Moment{Steps: 5}, "steps_exhausted:max_steps"},
		{"0 steps is no limit", policy.TopAuthority(), callOf("read"), policy.Moment{Steps: 1 << 40}, "allowed"},
		{"before a deadline", with(func(h *policy.Half) { h.Profile.Limits.DeadlineMS = 9 }), callOf("read"), policy.Moment{NowMS: 8, LastMS: 7}, "allowed"},
		{"at it", with(func(h *policy.Half) { h.Profile.Limits.DeadlineMS = 9 }), callOf("read"), policy.Moment{NowMS: 9}, "expired:deadline"},
		{"latched", policy.TopAuthority(), callOf("read"), policy.Moment{Expired: true}, "expired:deadline"},
		{"fenced", policy.TopAuthority(), callOf("read"), policy.Moment{Fenced: true}, "fenced:fenced"},
		{"closed", policy.TopAuthority(), callOf("read"), policy.Moment{Closed: true}, "closed:closed"},
		{"a root edits blocks", policy.TopAuthority(), callOf("prompt_block_edit"), policy.Moment{}, "allowed"},
	} {
		d := decided(t, rootSubject(t, c.a), c.call, c.m)
		assert.Equal(t, c.want, allReasons(d), c.name)
	}
}

// allReasons renders all reasons of a decision as code:rule.
func allReasons(d policy.Decision) string {
	if d.Allowed() && d.Rule == "" {
		return string(d.Code)
	}
	rules := rulesOf(d)
	var all []string
	for i, c := range codes(d) {
		all = append(all, fmt.Sprintf("%s:%s", c, rules[i]))
	}
	return strings.Join(all, " ")
}

func TestLockdown(t *testing.T) {
	s := childSubject(t, derive(t, policy.TopAuthority(), policy.Request{}))
	s.Lockdown = []string{"Memory_Edit"}
	for _, tool := range append(policy.LockdownTools(), "PROMPT_BLOCK_EDIT", "memory_edit") {
		d := decided(t, s, callOf(tool), policy.Moment{})
		assert.Equal(t, policy.CodeLockdown, d.Code, tool)
	}
	d := decided(t, s, callOf("prompt_block_append"), policy.Moment{})
	assert.Equal(t, policy.RuleOrigin{Kind: "none"}, d.Origin)
	d = decided(t, s, callOf("memory_edit"), policy.Moment{})
	assert.Equal(t, policy.RuleOrigin{Kind: "session", At: receiptAt}, d.Origin)
	assert.Equal(t, "allowed", allReasons(decided(t, s, callOf("prompt_block_view"), policy.Moment{})))
	assert.Equal(t, []string{"prompt_block_edit", "prompt_block_append", "prompt_block_replace", "prompt_block_delete"}, policy.LockdownTools())
}

// A list that denies everything many times over is cut, and the first still
// decides.
func TestAlsoDeniedIsBounded(t *testing.T) {
	h := policy.TopHalf()
	h.Profile.Denied = denying(t, "r*", "re*", "rea*", "read*", "read_*", "read_f*", "read_fi*", "read_fil*", "read_file*", "read_file", "*", "file",
		"f*", "fi*", "fil*", "file*")
	other, err := policy.NewDenyList(policy.DenyParent, issuerAt, "read_file", "x")
	require.NoError(t, err)
	h.Profile.Denied = h.Profile.Denied.Union(other)
	a := halved(h).Under(operatorRules(t, []string{"read_file"}, nil))
	d := decided(t, rootSubject(t, a), callOf("read_file"), policy.Moment{})
	assert.Equal(t, "operator_deny:operator_deny deny_list:deny_list", allReasons(d), "equal reasons are one")
	assert.Equal(t, policy.RuleOrigin{Kind: "operator", At: operatorAt}, d.Origin)

	lists := policy.DenyList{}
	for i, kind := range []policy.DenyKind{policy.DenyParent, policy.DenyOperator} {
		for n := range len("read_file") {
			one, err := policy.NewDenyList(kind, policy.Origin{Session: parent, Seq: uint64(10*i + n)}, "read_file"[:n+1]+"*")
			require.NoError(t, err)
			lists = lists.Union(one)
		}
	}
	h.Profile.Denied = lists
	d = decided(t, rootSubject(t, halved(h)), callOf("read_file"), policy.Moment{})
	assert.Len(t, d.AlsoDeniedBy, policy.MaxAlsoDenied)
	assert.Equal(t, policy.CodeOperatorDeny, d.Code)
}

func TestCase4_OperatorDenyTwoLevelsDown(t *testing.T) {
	in := input()
	in.Operator = operatorRules(t, []string{"chmod"}, []string{"secrets"})
	c, err := policy.Derive(policy.TopAuthority(), in, policy.Request{Role: "general"})
	require.NoError(t, err)
	in = input()
	in.Depth, in.Receipt.Seq = 2, 30
	g, err := policy.Derive(c.Granted, in, policy.Request{Role: "general"})
	require.NoError(t, err)
	for _, derived := range []policy.Derived{c, g} {
		for _, call := range []policy.Call{callOf("chmod"), callOf("write", "secrets/key")} {
			d := decided(t, childSubject(t, derived), call, policy.Moment{NowMS: nowMS})
			assert.Equal(t, policy.VerdictDeny, d.Verdict)
			assert.Equal(t, policy.CodeOperatorDeny, d.Code)
			assert.Equal(t, policy.RuleOrigin{Kind: "operator", At: operatorAt}, d.Origin)
			assert.Contains(t, d.Change(ptr(childSubject(t, derived))), "an operator lifts the rule and the child is delegated again")
		}
	}
}

func TestCase11_ReadOnlyChildDoesNotWrite(t *testing.T) {
	s := under(childSubject(t, derive(t, policy.TopAuthority(), policy.Request{Role: "implement"})), readOnly())
	d := decided(t, s, callOf("write", "src/a"), policy.Moment{})
	assert.Equal(t, "sandbox:sandbox", allReasons(d))
	assert.Equal(t, policy.RuleOrigin{Kind: "session", At: switchAt.Origin}, d.Origin)
	assert.Equal(t, []policy.OutsidePath{{Path: "src/a", Want: "no path: nothing may be written under read-only"}}, d.Outside)
	assert.Empty(t, d.Targets)
	assert.Equal(t, "allowed", allReasons(decided(t, s, callOf("read", "src/a"), policy.Moment{})))
}

func TestCase22_UnreadablePolicyDeniesEverything(t *testing.T) {
	s := rootSubject(t, policy.TopAuthority())
	s.Unreadable = true
	for _, call := range []policy.Call{callOf("read"), callOf("write", "a"), callOf("wait"), callOf("x"), escalated(callOf("bash"), policy.Top())} {
		d := decided(t, s, call, policy.Moment{Approved: issuerAt})
		assert.Equal(t, "policy_unreadable:policy_unreadable", allReasons(d), call.Tool)
		assert.Equal(t, "repair or restore the log: no policy is guessed", d.Change(&s))
	}
	s.Authority.Own.Profile.Limits = policy.Limits{DeadlineMS: 1, MaxSteps: 1}
	d := decided(t, s, callOf("read"), policy.Moment{NowMS: nowMS, Steps: 9})
	assert.Equal(t, "policy_unreadable:policy_unreadable", allReasons(d), "no limit is read from what could not be")
	var nobody policy.Subject
	assert.Equal(t, policy.VerdictDeny, decided(t, nobody, callOf("read"), policy.Moment{}).Verdict, "nor does a subject that nobody filled in")
}

func TestCase46_DoerUnderInvestigator(t *testing.T) {
	investigator := derive(t, policy.TopAuthority(), policy.Request{Role: "explore"})
	in := input()
	in.Depth = 2
	doer, err := policy.Derive(investigator.Granted, in, policy.Request{Role: "implement"})
	require.NoError(t, err)
	s := childSubject(t, doer)
	assert.Equal(t, "files:parent_delegable", allReasons(decided(t, s, callOf("write", "a"), policy.Moment{NowMS: nowMS})))
	assert.Equal(t, "allowed", allReasons(decided(t, s, callOf("WebFetch"), policy.Moment{NowMS: nowMS})))
	assert.Equal(t, policy.ShellFull, doer.Granted.Own.Profile.Shell)
	assert.Equal(t, "shell:parent_delegable", allReasons(decided(t, s, callOf("bash"), policy.Moment{NowMS: nowMS})))
	assert.Equal(t, "allowed", allReasons(decided(t, s, inspected("bash"), policy.Moment{NowMS: nowMS})))
}

func TestCase54_ExplorerImplementTouch(t *testing.T) {
	explorer := derive(t, policy.TopAuthority(), policy.Request{Role: "explore"})
	in := input()
	in.Depth = 2
	child, err := policy.Derive(explorer.Granted, in, policy.Request{Role: "implement"})
	require.NoError(t, err)
	s := childSubject(t, child)
	call := policy.NewCall("c1", "exec_command", map[string]any{"cmd": "touch x"})
	d := decided(t, s, call, policy.Moment{NowMS: nowMS})
	assert.Equal(t, policy.VerdictDeny, d.Verdict)
	assert.Equal(t, policy.CodeShell, d.Code)
	assert.Equal(t, policy.RuleOrigin{Kind: "session", At: receiptAt}, d.Origin)
	assert.Equal(t, "deny: shell: \"exec_command\" by parent_delegable, session 11111111@3", d.Reason())
	assert.Equal(t, "classify the command as needing at most inspect, or delegate again with more shell than that", d.Change(&s))

	d = decided(t, childSubject(t, explorer), call, policy.Moment{NowMS: nowMS})
	assert.Equal(t, "shell:role_preset", allReasons(d))
}

func TestCase57_ToolNames(t *testing.T) {
	h := policy.TopHalf()
	h.Profile.Tools = toolsOf(t, "read")
	s := rootSubject(t, halved(h))
	for tool, want := range map[string]string{
		"read":        "allowed",
		"write":       "tool_scope:tool_scope",
		"file":        "tool_scope:tool_scope",
		"READ":        "tool_scope:tool_scope",
		"BASH":        "tool_scope:tool_scope",
		"r\u0435ad":   "malformed:invalid_name", // Cyrillic
		"re\u200bad":  "malformed:invalid_name", // zero width
		"read ":       "malformed:invalid_name",
		"read\x00":    "malformed:invalid_name",
		"":            "malformed:invalid_name",
		"\uff52ead":   "malformed:invalid_name",
		"read\u202e":  "malformed:invalid_name",
		"mcp__read":   "tool_scope:tool_scope",
		"read/../../": "tool_scope:tool_scope",
	} {
		d := decided(t, s, callOf(tool, "a"), policy.Moment{})
		assert.Equal(t, want, allReasons(d), "%q", tool)
		assert.Equal(t, tool, d.Tool.Given)
	}
}

func TestCase58_ShellByClass(t *testing.T) {
	h := policy.TopHalf()
	h.Profile.Denied = denying(t, "exec_shell*")
	s := rootSubject(t, halved(h))
	for _, tool := range []string{"exec_shell", "exec_shell_wait", "Bash", "bash", "write_stdin", "exec_command", "BASH", "mcp__x__run"} {
		d := decided(t, s, callOf(tool), policy.Moment{})
		assert.Equal(t, policy.CodeDenyList, d.Code, tool)
		assert.Equal(t, policy.RuleOrigin{Kind: "session", At: receiptAt}, d.Origin, tool)
	}
	assert.Equal(t, "allowed", allReasons(decided(t, s, inspected("write_stdin"), policy.Moment{})))
	for _, tool := range []string{"Write_Stdin", "mcp__x__run"} {
		assert.Equal(t, policy.CodeDenyList, decided(t, s, inspected(tool), policy.Moment{}).Code, "nobody classifies the calls of %s", tool)
	}
	assert.Equal(t, "deny_list:deny_list", allReasons(decided(t, s, inspected("bash"), policy.Moment{})), "an alias is denied whatever it needs")
}

func TestCase61_ClockSetBack(t *testing.T) {
	h := policy.TopHalf()
	h.Profile.Limits.DeadlineMS = nowMS
	s := rootSubject(t, halved(h))
	s.Causes = policy.ProfileCauses(s.Authority, issuerAt)
	for name, m := range map[string]policy.Moment{
		"past it":                        {NowMS: nowMS + 1, LastMS: nowMS - 9},
		"set back behind the last event": {NowMS: nowMS - 100, LastMS: nowMS},
		"latched by an earlier decision": {NowMS: nowMS - 100, LastMS: nowMS - 200, Expired: true},
	} {
		d := decided(t, s, callOf("read"), m)
		assert.Equal(t, "expired:deadline", allReasons(d), name)
		assert.Equal(t, issuerAt, d.Origin.At)
	}
	assert.True(t, ptr(decided(t, s, callOf("read"), policy.Moment{NowMS: nowMS - 1, LastMS: nowMS - 1})).Allowed())
}
