package policy_test

import (
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
)

// Every denial says what would have to change, in words that fit the session.
func TestChange(t *testing.T) {
	top := rootSubject(t, policy.TopAuthority())
	with := func(change func(*policy.Half)) policy.Subject {
		h := policy.TopHalf()
		change(&h)
		return rootSubject(t, halved(h))
	}
	evidence, narrow := top, under(top, write(t, "/w"))
	evidence.Evidence = true
	child := childSubject(t, derive(t, policy.TopAuthority(), policy.Request{Role: "explore"}))
	badID := callOf("read")
	badID.ID = "a b"
	for _, c := range []struct {
		s    policy.Subject
		call policy.Call
		m    policy.Moment
		want string
	}{
		{top, callOf("read"), policy.Moment{}, ""},
		{top, callOf("a b"), policy.Moment{}, "send a tool name of 1 to 128 letters, digits or _.:/-"},
		{top, badID, policy.Moment{}, "send a call id of at most 256 letters, digits or _.:/@+#=-"},
		{narrow, escalated(callOf("read"), readOnly()), policy.Moment{}, "ask for a sandbox that is strictly wider than workspace-write /w (network off), with a justification"},
		{evidence, callOf("read"), policy.Moment{}, "nothing: an imported log is evidence and never authority"},
		{top, callOf("read"), policy.Moment{Fenced: true}, "call from the present activation of the session"},
		{top, callOf("read"), policy.Moment{Closed: true}, "start another root: a closed session makes no calls"},
		{top, callOf("read"), policy.Moment{Expired: true, Fenced: true, Closed: true}, "call from the present activation of the session; 2 more reasons refuse it too"},
		{top, callOf("read"), policy.Moment{Expired: true}, "start another root with a later deadline: a continuation does not restart it"},
		{with(func(h *policy.Half) { h.Profile.Limits.MaxSteps = 3 }), callOf("read"), policy.Moment{Steps: 4}, "start another root with more than 3 steps"},
		{child, callOf("prompt_block_edit"), policy.Moment{}, "nothing: no child edits the blocks of its own prompt; one more reason refuses it too"},
		{rootSubject(t, policy.TopAuthority().Under(operatorRules(t, []string{"read"}, nil))), callOf("read"), policy.Moment{}, "an operator lifts the rule"},
		{rootSubject(t, policy.TopAuthority().Under(operatorRules(t, nil, []string{"k"}))), callOf("write", "k/x"), policy.Moment{}, "name a path that no operator rule closes, not \"k\", or an operator lifts the rule"},
		{with(func(h *policy.Half) { h.Profile.Denied = denying(t, "read") }), callOf("read"), policy.Moment{}, "start another root, from where the tool is not denied: a list of denied tools never shrinks"},
		{with(func(h *policy.Half) { h.Profile.Tools = toolsOf(t, numbered("t%d", 10)...) }), callOf("read"), policy.Moment{}, "call one of the tools in scope: t0, t1, t2, t3, t4, t5, t6, t7 and 2 more"},
		{with(func(h *policy.Half) { h.Profile.Tools = toolsOf(t) }), callOf("mcp__x"), policy.Moment{}, "call one of the tools in scope: none; one more reason refuses it too"},
		{rootSubject(t, halved(scoped(t, "src"))), callOf("write", "x"), policy.Moment{}, `name a path within src instead of "x"`},
		{rootSubject(t, halved(scoped(t, "src"))), callOf("bash"), policy.Moment{}, "use a tool that names the files it changes, within src"},
		{top, callOf("write"), policy.Moment{}, "name every file that the call changes in path, file_path, notebook_path, paths, source, destination, edits or a patch"},
		{child, callOf("write", "x"), policy.Moment{}, "delegate again in another role, with files write instead of read"},
		{with(func(h *policy.Half) { h.Grant.Files = policy.FilesNone }), callOf("read"), policy.Moment{}, "start another root with files read or write instead of none"},
		{with(func(h *policy.Half) { h.Grant.Shell = policy.GrantNone }), callOf("bash"), policy.Moment{}, "start another root with a shell"},
		{with(func(h *policy.Half) { h.Grant.Network = false }), callOf("WebFetch"), policy.Moment{}, "start another root with network"},
		{narrow, callOf("WebFetch"), policy.Moment{}, "start another root with more than workspace-write /w (network off)"},
		{with(func(h *policy.Half) { h.Grant.Spawn = false }), callOf("Task"), policy.Moment{}, "start another root with leave to delegate"},
		{with(func(h *policy.Half) { h.Grant.MaxChildren = ptr(1) }), callOf("Task"), policy.Moment{Children: 1}, "start another root with more children"},
		{child, callOf("x"), policy.Moment{}, "declare the class of the tool in the palette, or delegate again in another role, with everything that an unknown tool could do"},
		{narrow, callOf("write", "/v/x"), policy.Moment{}, "name a path in /w or /tmp, or start another root with more than workspace-write /w (network off)"},
		{narrow, callOf("write", ".git/x"), policy.Moment{}, `name a path outside of .git, .codex, .claude and .childlog instead of ".git/x"`},
	} {
		d := decided(t, c.s, c.call, c.m)
		assert.Equal(t, c.want, d.Change(&c.s), "%s", d.Reason())
	}
	wider := narrow
	wider.Bound = policy.Top()
	d := decided(t, wider, callOf("WebFetch"), policy.Moment{})
	assert.Equal(t, "switch the sandbox to more than workspace-write /w (network off), within danger-full-access (network on)", d.Change(&wider))

	var undecided policy.Decision
	assert.Equal(t, `deny: undecided: ""`, undecided.Reason())
	assert.Equal(t, "decide the call", undecided.Change(&top))
	d = decided(t, top, callOf("write\n\u202e", "x"), policy.Moment{})
	assert.Equal(t, `deny: malformed: "write\n\u202e" by invalid_name`, d.Reason())
}

func TestCompiledVisible(t *testing.T) {
	names := []string{"Read", "apply_patch", "Bash", "WebFetch", "Task", "wait", "rollback", "mcp__x", "prompt_block_edit", "no name"}
	shown := func(s policy.Subject, m policy.Moment) []string { return policy.Compile(s).Visible(names, m) }
	top := rootSubject(t, policy.TopAuthority())
	assert.Equal(t, names[:9], shown(top, policy.Moment{}))
	assert.Empty(t, shown(top, policy.Moment{Closed: true}))
	assert.NotNil(t, shown(top, policy.Moment{Expired: true}))

	apart := under(rootSubject(t, halved(scoped(t, "src"))), write(t, "/w/docs"))
	assert.Equal(t, []string{"Read", "Task", "wait"}, shown(apart, policy.Moment{}), "a scope and a sandbox with no place in common")
	assert.Contains(t, shown(apart, policy.Moment{Admitted: []string{"docs/x"}}), "rollback")
	assert.Contains(t, shown(under(apart, write(t, "/w/src/deep")), policy.Moment{}), "apply_patch")

	kids := policy.TopHalf()
	kids.Grant.MaxChildren = ptr(2)
	assert.NotContains(t, shown(rootSubject(t, halved(kids)), policy.Moment{Children: 2}), "Task")
	assert.Contains(t, shown(rootSubject(t, halved(kids)), policy.Moment{Children: 2}), "wait")

	onlyTmpdir := write(t)
	onlyTmpdir.ExcludeSlashTmp = true
	assert.NotContains(t, shown(under(top, onlyTmpdir), policy.Moment{}), "apply_patch", "$TMPDIR is nowhere")
	assert.NotContains(t, shown(childSubject(t, derive(t, policy.TopAuthority(), policy.Request{})), policy.Moment{}), "prompt_block_edit")
	closing := rootSubject(t, policy.TopAuthority().Under(operatorRules(t, nil, []string{"secrets"})))
	assert.NotContains(t, shown(closing, policy.Moment{}), "mcp__x")
}
