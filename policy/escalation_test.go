package policy_test

import (
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
)

func TestEscalation(t *testing.T) {
	root := under(rootSubject(t, policy.TopAuthority()), write(t, "/w"))
	root.Bound = policy.Top()
	never := root
	never.Approvals = policy.Never
	child := under(childSubject(t, derive(t, policy.TopAuthority(), policy.Request{Role: "implement"})), write(t, "/w"))
	child.Bound = online(write(t, "/"))
	outside, inside := callOf("write", "/v/x"), callOf("write", "/w/x")
	silent := escalated(outside, policy.Top())
	silent.Escalation.Justification = " \n"
	approved := policy.Moment{Approved: issuerAt}
	for _, c := range []struct {
		name string
		s    policy.Subject
		call policy.Call
		m    policy.Moment
		want string
	}{
		{"without one nobody is asked", root, outside, policy.Moment{}, "sandbox:sandbox_roots"},
		{"nor is an approval of another call one", root, outside, approved, "sandbox:sandbox_roots"},
		{"a root asks", root, escalated(outside, policy.Top()), policy.Moment{}, "needs_approval:approval_ask"},
		{"for no more than it needs", root, escalated(outside, write(t, "/w", "/v")), policy.Moment{}, "needs_approval:approval_ask"},
		{"for less than that", root, escalated(outside, online(write(t, "/w"))), policy.Moment{}, "sandbox:sandbox_roots"},
		{"for network", root, escalated(callOf("WebFetch"), online(write(t, "/w"))), policy.Moment{}, "needs_approval:approval_ask"},
		{"for what it may do anyway", root, escalated(inside, policy.Top()), policy.Moment{}, "needs_approval:approval_ask"},
		{"for a command", root, escalated(callOf("bash"), policy.Top()), policy.Moment{}, "needs_approval:approval_ask"},
		{"for an opaque tool", root, escalated(callOf("x"), policy.Top()), policy.Moment{}, "needs_approval:approval_ask"},
		{"it was allowed once", root, escalated(outside, policy.Top()), approved, "allowed_once:approval"},
		{"which does not help where it is not enough", root, escalated(outside, write(t, "/w", "/x")), approved, "sandbox:sandbox_roots"},
		{"for the same", root, escalated(outside, write(t, "/w")), policy.Moment{}, "malformed:invalid_escalation sandbox:sandbox_roots"},
		{"for something else", root, escalated(outside, write(t, "/v")), policy.Moment{}, "malformed:invalid_escalation sandbox:sandbox_roots"},
		{"for nobody knows what", root, escalated(inside, policy.Sandbox{Mode: "root"}), policy.Moment{}, "malformed:invalid_escalation"},
		{"without saying why", root, silent, approved, "malformed:invalid_escalation sandbox:sandbox_roots"},
		{"a root with never", never, escalated(outside, policy.Top()), approved, "approval_never:approval_never"},
		{"a child", child, escalated(outside, write(t, "/w", "/v")), approved, "approval_never:approval_pin"},
		{"a child beyond its bound", child, escalated(outside, policy.Top()), approved, "approval_never:approval_pin sandbox:sandbox_bound"},
		{"a path that no sandbox holds", root, escalated(callOf("write", "../x"), policy.Top()), approved, "sandbox:path_form"},
	} {
		d := decided(t, c.s, c.call, c.m)
		assert.Equal(t, c.want, allReasons(d), c.name)
		assert.Equal(t, d.Code == policy.CodeAllowedOnce, d.Allowed(), c.name)
	}

	bound := root
	bound.Bound = write(t, "/w", "/v")
	d := decided(t, bound, escalated(outside, policy.Top()), approved)
	assert.Equal(t, "sandbox:sandbox_bound", allReasons(d))
	assert.Equal(t, "ask for no more than workspace-write /v, /w (network off), or start another root", d.Change(&bound))

	// Nothing but the sandbox is asked about.
	limited := root
	limited.Authority = halved(policy.RoleTest.Preset().Half())
	d = decided(t, limited, escalated(callOf("write", "a"), policy.Top()), approved)
	assert.Equal(t, "files:grant_files", allReasons(d))
	d = decided(t, limited, escalated(callOf("bash"), policy.Top()), approved)
	assert.Equal(t, "shell:grant_shell", allReasons(d))
}

func TestApprovalOrigins(t *testing.T) {
	child := under(childSubject(t, derive(t, policy.TopAuthority(), policy.Request{})), write(t, "/w"))
	child.Bound = policy.Top()
	call := escalated(callOf("write", "/v/x"), policy.Top())
	child.Approvals = policy.Ask // whatever it says, a child is pinned
	d := decided(t, child, call, policy.Moment{Approved: issuerAt})
	assert.Equal(t, policy.RuleOrigin{Kind: "pin", At: pinAt.Origin}, d.Origin)
	assert.Contains(t, d.Reason(), "never ask: whatever would need approval is rejected")
	assert.Equal(t, "nothing in this session: report what could not be done, and delegate again with a wider sandbox", d.Change(&child))

	root := child
	root.Child, root.ApprovalBy = false, switchAt
	d = decided(t, root, call, policy.Moment{Approved: issuerAt})
	assert.Equal(t, policy.RuleOrigin{Kind: "session", At: issuerAt}, d.Origin)
	d = decided(t, root, call, policy.Moment{})
	assert.Equal(t, policy.VerdictNeedsApproval, d.Verdict)
	assert.Equal(t, policy.RuleOrigin{Kind: "session", At: switchAt.Origin}, d.Origin)
	assert.Equal(t, "a person allows this call once", d.Change(&root))
	root.Approvals, root.ApprovalBy = "", policy.Cause{Source: policy.SourceDefault, Origin: issuerAt}
	d = decided(t, root, call, policy.Moment{})
	assert.Equal(t, policy.RuleOrigin{Kind: "default", At: issuerAt}, d.Origin)
	assert.Equal(t, "switch the approvals of the session to ask", d.Change(&root))
}

// The sandbox is cited by the event that set the part that refuses.
func TestSandboxOrigins(t *testing.T) {
	s := rootSubject(t, policy.TopAuthority())
	s.Sandbox = policy.Trace(online(write(t, "/w")), switchAt).Meet(policy.Trace(write(t, "/"), narrowedAt))
	d := decided(t, s, callOf("WebFetch"), policy.Moment{})
	assert.Equal(t, "network:sandbox_network", allReasons(d))
	assert.Equal(t, policy.RuleOrigin{Kind: "narrowing", At: narrowedAt.Origin}, d.Origin)
	d = decided(t, s, callOf("write", "/v"), policy.Moment{})
	assert.Equal(t, policy.RuleOrigin{Kind: "session", At: switchAt.Origin}, d.Origin)
}
