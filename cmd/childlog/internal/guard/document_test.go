package guard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"childlog/eventlog"
	"childlog/policy"
)

func TestParsePolicy(t *testing.T) {
	p, err := ParsePolicy([]byte(`{"network": true, "profile": "read-only", "shell": "full", "approve": true, "write_scope": []}`), true)
	require.NoError(t, err)
	require.Equal(t, Policy{Profile: ProfileReadOnly, Mode: policy.ReadOnly, Network: true, Shell: policy.ShellFull, Spawn: true, Approvals: policy.Never,
		Approve: true, Scope: &[]string{}}, p, "the profile first, wherever it stands")
	p, err = ParsePolicy([]byte(`{}`), true)
	require.NoError(t, err)
	d, err := Named(DefaultProfile)
	require.NoError(t, err)
	require.Equal(t, d, p)

	for name, c := range map[string]struct{ doc, place string }{
		"no object":         {`[]`, ""},
		"half":              {`{"profile": "trusted"`, ""},
		"an unknown key":    {`{"sandboxx": "read-only"}`, "/sandboxx"},
		"another case":      {`{"Sandbox": "read-only"}`, "keys are lower case: sandbox"},
		"a key twice":       {`{"network": false, "network": true}`, "/network"},
		"an unknown word":   {`{"shell": "some"}`, "/shell"},
		"another type":      {`{"spawn": "yes"}`, "/spawn"},
		"a wild pattern":    {`{"deny_tools": ["a*b"]}`, "/deny_tools/0"},
		"a place above":     {`{"write_scope": ["src", "../x"]}`, "/write_scope/1"},
		"a depth of none":   {`{"max_depth": 0}`, "/max_depth"},
		"too deep":          {`{"max_depth": 9}`, "/max_depth"},
		"an unknown class":  {`{"palette": [{"name": "x", "class": "good"}]}`, "/palette/0/class"},
		"a class of nobody": {`{"palette": [{"class": "read"}]}`, "/palette/0"},
		"a long one":        {strings.Repeat(" ", maxDocument) + `{}`, "limit"},
	} {
		_, err := ParsePolicy([]byte(c.doc), true)
		require.Error(t, err, name)
		require.Contains(t, err.Error(), c.place, name)
	}
	_, err = ParsePolicy([]byte(`{"palette": []}`), false)
	require.ErrorIs(t, err, eventlog.ErrInvalid, "a project's file declares no tool harmless")
}

// half is what a policy permits, in the values of package policy.
func half(t require.TestingT, p Policy) (policy.Half, policy.Sandbox) {
	profile, err := p.profile()
	require.NoError(t, err)
	h, err := profile.Own.Half(policy.DenyRequest, policy.Origin{})
	require.NoError(t, err)
	box, err := p.setting("/w", "/w").Resolve("/w")
	require.NoError(t, err)
	return h, box
}

func genPolicy(t *rapid.T, name string) Policy {
	p := Policy{Mode: rapid.SampledFrom(modes[:]).Draw(t, name+" mode"), Network: rapid.Bool().Draw(t, name+" network"), Spawn: rapid.Bool().Draw(t, name+" spawn"),
		Shell:     rapid.SampledFrom([]policy.Shell{policy.ShellNone, policy.ShellReadOnly, policy.ShellFull}).Draw(t, name+" shell"),
		Approvals: rapid.SampledFrom([]policy.Approval{policy.Ask, policy.Never}).Draw(t, name+" approvals"), Approve: rapid.Bool().Draw(t, name+" approve"),
		DenyTools: rapid.SliceOfN(rapid.SampledFrom([]string{"Bash", "Write", "mcp__*", "fetch_url"}), 0, 3).Draw(t, name+" deny")}
	if rapid.Bool().Draw(t, name+" scoped") {
		scope := rapid.SliceOfN(rapid.SampledFrom([]string{"src", "src/a", "docs", "x/y"}), 0, 3).Draw(t, name+" scope")
		p.Scope = &scope
	}
	return p
}

// TestPropertyAProjectOnlyTakesAway: a policy met with another permits no more
// than either.
func TestPropertyAProjectOnlyTakesAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genPolicy(t, "hook"), genPolicy(t, "project")
		m, err := a.Meet(b)
		require.NoError(t, err)
		mh, mbox := half(t, m)
		for _, p := range []Policy{a, b} {
			h, box := half(t, p)
			require.True(t, mh.Within(h), "%+v within %+v", m, p)
			require.True(t, mbox.Within(box))
			require.True(t, p.Approve || !m.Approve)
			require.True(t, p.Approvals == policy.Ask || m.Approvals == policy.Never)
		}
	})
}

// TestShippedProfiles: from the narrowest to the widest, and none approves.
func TestShippedProfiles(t *testing.T) {
	all := Profiles()
	require.Equal(t, []string{ProfileReadOnly, ProfileEditHere, ProfileTrusted}, []string{all[0].Profile, all[1].Profile, all[2].Profile})
	for i := range all {
		require.False(t, all[i].Approve)
		if i > 0 {
			narrow, box := half(t, all[i-1].Policy)
			wide, wideBox := half(t, all[i].Policy)
			require.True(t, narrow.Within(wide) && box.Within(wideBox))
		}
	}
	_, err := Named("Trusted")
	require.ErrorIs(t, err, eventlog.ErrInvalid)
}

// FuzzOrder: an order, and an outcome, come back as they were or are refused.
func FuzzOrder(f *testing.F) {
	f.Add([]byte("{\"harness\":\"codex\",\"profile\":\"trusted\"}\n{}"), uint8(1), "because")
	f.Add([]byte("{\"harness\":\"claude-code\",\"policy\":\"e30=\",\"project\":\"/p\",\"doc\":\"e30=\"}\n\n"), uint8(9), "\xff")
	f.Fuzz(func(t *testing.T, b []byte, verb uint8, text string) {
		if o, err := ParseOrder(b); err == nil {
			again, err := o.Encode()
			require.NoError(t, err)
			twice, err := ParseOrder(again)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%+v", o), fmt.Sprintf("%+v", twice))
		}
		sent := Outcome{Verb: Verb(verb), Reason: text, Context: text, Notice: text}
		line, err := sent.Encode()
		require.NoError(t, err)
		got, err := ParseOutcome(line)
		if sent.Verb > Approve {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, sent, got)
		for cut := range line {
			_, err := ParseOutcome(line[:cut])
			require.Error(t, err, "half an outcome is none")
		}
	})
}
