package policy_test

import (
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
)

func TestOriginAndCauseString(t *testing.T) {
	o := policy.Origin{Session: parent, Seq: 7}
	assert.Equal(t, "0a1b2c3d@7", o.String())
	assert.Equal(t, "narrowing 0a1b2c3d@7", policy.Cause{Source: policy.SourceNarrowing, Origin: o}.String())
	assert.Equal(t, "00000000@0", policy.Origin{}.String())
}

func TestTracedMeet(t *testing.T) {
	by4, by9 := switched(4), narrowed(9)
	noTmp := write(t, "/w")
	noTmp.ExcludeSlashTmp = true
	for _, c := range []struct {
		name string
		a, b policy.Sandbox // set by 4 and by 9
		want policy.Traced  // causes only
	}{
		{
			"equal: the earlier",
			write(t, "/w"), write(t, "/w"),
			policy.Traced{Mode: by4, Roots: by4, Network: by4, ExcludeTmpdirEnvVar: by4, ExcludeSlashTmp: by4},
		},
		{
			"each component by the side that cut it",
			noTmp, online(write(t, "/w/out")),
			policy.Traced{Mode: by4, Roots: by9, Network: by4, ExcludeTmpdirEnvVar: by4, ExcludeSlashTmp: by4},
		},
		{
			"a mode implies its roots and temp directories",
			online(write(t, "/w")), online(readOnly()),
			policy.Traced{Mode: by9, Roots: by9, Network: by4, ExcludeTmpdirEnvVar: by9, ExcludeSlashTmp: by9},
		},
		{
			"roots cut by both: the later",
			write(t, "/a", "/b/c"), write(t, "/a/x", "/b"),
			policy.Traced{Mode: by4, Roots: by9, Network: by4, ExcludeTmpdirEnvVar: by4, ExcludeSlashTmp: by4},
		},
		{
			"disjoint roots are cut by both",
			write(t, "/a"), write(t, "/b"),
			policy.Traced{Mode: by4, Roots: by9, Network: by4, ExcludeTmpdirEnvVar: by4, ExcludeSlashTmp: by4},
		},
		{
			"the top lists no roots and still holds all",
			policy.Top(), policy.Sandbox{Mode: policy.WorkspaceWrite},
			policy.Traced{Mode: by9, Roots: by9, Network: by9, ExcludeTmpdirEnvVar: by4, ExcludeSlashTmp: by4},
		},
	} {
		m := policy.Trace(c.a, by4).Meet(policy.Trace(c.b, by9))
		c.want.Value = c.a.Meet(c.b)
		assert.Equal(t, c.want, m, c.name)
		assert.Equal(t, c.want, policy.Trace(c.b, by9).Meet(policy.Trace(c.a, by4)),
			"within a session the order of the sides does not matter: "+c.name)
		assert.Equal(t, m.Mode, m.Cause(), c.name)
	}
}

// Seqs of different sessions do not compare: the left side counts as earlier.
func TestTracedMeetAcrossSessions(t *testing.T) {
	theirs := policy.Cause{Source: policy.SourceDelegation, Origin: policy.Origin{Session: parent, Seq: 90}}
	ours := switched(4)
	m := policy.Trace(readOnly(), theirs).Meet(policy.Trace(readOnly(), ours))
	assert.Equal(t, policy.Trace(readOnly(), theirs), m)
}
