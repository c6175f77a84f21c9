package policy_test

import (
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseMode(t *testing.T) {
	for _, m := range []policy.Mode{policy.ReadOnly, policy.WorkspaceWrite, policy.DangerFullAccess} {
		got, err := policy.ParseMode(string(m))
		require.NoError(t, err)
		assert.Equal(t, m, got)
		assert.True(t, m.Known())
	}
	for _, s := range []string{"", "external-sandbox", "Read-Only", " read-only", "read_only", "full"} {
		_, err := policy.ParseMode(s)
		require.ErrorIs(t, err, policy.ErrInvalid, s)
		assert.ErrorContains(t, err, "want read-only, workspace-write or danger-full-access")
		assert.False(t, policy.Mode(s).Known(), s)
	}
}

// code renders a value in the notation of testdata/meet.txt.
func code(s policy.Sandbox) string {
	letter := func(on bool, l string) string {
		if on {
			return l
		}
		return "-"
	}
	c := string(s.Mode[0]) + ":" + letter(s.Network, "n")
	if s.Mode != policy.ReadOnly {
		c += letter(!s.ExcludeTmpdirEnvVar, "e") + letter(!s.ExcludeSlashTmp, "t")
	}
	return c
}

// decode is the inverse of code; every workspace-write has the same root.
func decode(t *testing.T, c string) policy.Sandbox {
	switch c[0] {
	case 'd':
		return policy.Top()
	case 'r':
		return policy.Sandbox{Mode: policy.ReadOnly, Network: strings.Contains(c, "n")}
	}
	s := write(t, "/w")
	s.Network = strings.Contains(c, "n")
	s.ExcludeTmpdirEnvVar = !strings.Contains(c, "e")
	s.ExcludeSlashTmp = !strings.Contains(c, "t")
	return s
}

func TestSandboxMeetTable(t *testing.T) {
	table := lines(t, "testdata/meet.txt")
	columns := strings.Fields(table[0])[1:]
	require.Len(t, columns, 11)
	require.Len(t, table[2:], 11)
	for _, line := range table[2:] {
		cells := strings.Fields(line)
		row, cells := cells[0], cells[2:]
		require.Len(t, cells, 11)
		for i, column := range columns {
			a, b := decode(t, row), decode(t, column)
			require.NoError(t, a.Validate())
			m := a.Meet(b)
			assert.Equal(t, cells[i], code(m), "%s ^ %s", row, column)
			assert.Equal(t, cells[i] == row, a.Within(b), "%s within %s", row, column)
			if m.Mode == policy.WorkspaceWrite {
				assert.Equal(t, []string{"/w"}, m.Roots.List(), "%s ^ %s", row, column)
			}
		}
	}
}

func TestSandboxMeetRoots(t *testing.T) {
	disjoint := write(t, "/a").Meet(write(t, "/b"))
	assert.Equal(t, policy.WorkspaceWrite, disjoint.Mode)
	assert.Equal(t, []string{}, disjoint.Roots.List())

	unrecorded := policy.Sandbox{Mode: policy.WorkspaceWrite}
	assert.False(t, unrecorded.Meet(unrecorded).Roots.Recorded())
	assert.Equal(t, []string{}, unrecorded.Meet(write(t, "/")).Roots.List())
	assert.False(t, unrecorded.Meet(policy.Top()).Roots.Recorded())
	assert.False(t, unrecorded.Within(write(t, "/")))
	assert.True(t, unrecorded.Within(policy.Top()))
	assert.True(t, unrecorded.Within(unrecorded))
}

func TestValidate(t *testing.T) {
	with := func(s policy.Sandbox, change func(*policy.Sandbox)) policy.Sandbox {
		change(&s)
		return s
	}
	for _, s := range []policy.Sandbox{
		policy.Top(), readOnly(), online(readOnly()), write(t), write(t, "/w"),
		{Mode: policy.WorkspaceWrite},
		{Mode: policy.ReadOnly, Roots: roots(t), ExcludeSlashTmp: true},
	} {
		assert.NoError(t, s.Validate(), "%v", s)
	}
	for want, s := range map[string]policy.Sandbox{
		`got ""`:                         {},
		`got "external-sandbox"`:         {Mode: "external-sandbox"},
		"got network off, want on":       with(policy.Top(), func(s *policy.Sandbox) { s.Network = false }),
		"got excluded temp directories":  with(policy.Top(), func(s *policy.Sandbox) { s.ExcludeSlashTmp = true }),
		"excluded temp directories, wan": with(policy.Top(), func(s *policy.Sandbox) { s.ExcludeTmpdirEnvVar = true }),
		"got stated roots (/)":           with(policy.Top(), func(s *policy.Sandbox) { s.Roots = roots(t, "/") }),
		"got stated roots (no roots)":    with(policy.Top(), func(s *policy.Sandbox) { s.Roots = roots(t) }),
		"got writable roots /w":          {Mode: policy.ReadOnly, Roots: roots(t, "/w")},
	} {
		require.ErrorIs(t, s.Validate(), policy.ErrInvalid, want)
		assert.ErrorContains(t, s.Validate(), want)
		// Refused where stated, and read-only where it was recorded anyway.
		assert.Equal(t, policy.ReadOnly, s.Canonical().Mode, want)
	}
}

// A foreign mode cannot be compared: it counts as read-only without network
// whatever it states beside.
func TestForeignMode(t *testing.T) {
	foreign := online(write(t, "/w"))
	foreign.Mode = "external-sandbox"
	assert.True(t, foreign.Equal(readOnly()))
	assert.True(t, foreign.Meet(policy.Top()).Equal(readOnly()))
	assert.True(t, foreign.Within(readOnly()))
	assert.False(t, online(readOnly()).Within(foreign))
	assert.True(t, policy.Sandbox{}.Equal(readOnly()))
}

// Narrowing with a top that says "but no network" must not be a no-op.
func TestContradictoryTopPermitsNothing(t *testing.T) {
	s := policy.Sandbox{Mode: policy.DangerFullAccess}
	assert.True(t, s.Equal(readOnly()))
	assert.True(t, policy.Top().Meet(s).Equal(readOnly()))
}

func TestSandboxString(t *testing.T) {
	excluded := online(write(t, "/b", "/a"))
	excluded.ExcludeTmpdirEnvVar, excluded.ExcludeSlashTmp = true, true
	for want, s := range map[string]policy.Sandbox{
		"danger-full-access (network on)":                          policy.Top(),
		"read-only (network off)":                                  readOnly(),
		"read-only (network on)":                                   online(readOnly()),
		"workspace-write /w (network off)":                         write(t, "/w"),
		"workspace-write /a, /b (network on, no $TMPDIR, no /tmp)": excluded,
		"workspace-write no roots (network off)":                   write(t),
		"workspace-write roots not recorded (network off)":         {Mode: policy.WorkspaceWrite},
		`workspace-write C:\w (network off)`:                       write(t, `C:\w`),
		`workspace-write "/w (network on)" (network off)`:          write(t, "/w (network on)"),
		`workspace-write "/a\u202eb", "/no roots" (network off)`:   write(t, "/no roots", "/a\u202eb"),
		`read-only (network off, stated as "external-sandbox")`:    {Mode: "external-sandbox", Network: true},
		`read-only (network off, stated as "x\x1b[2J")`:            {Mode: "x\x1b[2J"},
		`read-only (network off, stated as "danger-full-access")`:  {Mode: policy.DangerFullAccess},
	} {
		assert.Equal(t, want, s.String())
	}
}

func TestSettingResolve(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name      string
		setting   policy.Setting
		workspace string
		want      policy.Sandbox
	}{
		{"network is off by default", policy.Setting{Mode: policy.WorkspaceWrite}, "/w", write(t, "/w")},
		{"extra roots are added", policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: []string{"/x", "/w/y"}, Network: &yes}, "/w", online(write(t, "/w", "/x"))},
		{"extra roots alone", policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: []string{"/x"}}, "", write(t, "/x")},
		{"nothing known", policy.Setting{Mode: policy.WorkspaceWrite}, "", policy.Sandbox{Mode: policy.WorkspaceWrite}},
		{"no extra roots is not no roots", policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: []string{}}, "", policy.Sandbox{Mode: policy.WorkspaceWrite}},
		{"read-only", policy.Setting{Mode: policy.ReadOnly}, "/w", readOnly()},
		{"read-only with network", policy.Setting{Mode: policy.ReadOnly, Network: &yes}, "/w", online(readOnly())},
		{"top has network by default", policy.Setting{Mode: policy.DangerFullAccess}, "/w", policy.Top()},
		{"top with network stated", policy.Setting{Mode: policy.DangerFullAccess, Network: &yes}, "", policy.Top()},
	} {
		got, err := c.setting.Resolve(c.workspace)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want.Canonical(), got, c.name)
		assert.NoError(t, got.Validate(), c.name)
	}
	for name, c := range map[string]struct {
		setting   policy.Setting
		workspace string
	}{
		"no mode":                      {policy.Setting{}, "/w"},
		"foreign mode":                 {policy.Setting{Mode: "external-sandbox"}, "/w"},
		"relative workspace":           {policy.Setting{Mode: policy.WorkspaceWrite}, "w"},
		"relative extra root":          {policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: []string{"out"}}, "/w"},
		"extra root of read-only":      {policy.Setting{Mode: policy.ReadOnly, WritableRoots: []string{"/x"}}, "/w"},
		"extra root of the top":        {policy.Setting{Mode: policy.DangerFullAccess, WritableRoots: []string{"/x"}}, "/w"},
		"top without network":          {policy.Setting{Mode: policy.DangerFullAccess, Network: &no}, "/w"},
		"top with excluded temp":       {policy.Setting{Mode: policy.DangerFullAccess, ExcludeSlashTmp: true}, "/w"},
		"workspace makes one too many": {policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: numbered("/%d", 256)}, "/w"},
	} {
		_, err := c.setting.Resolve(c.workspace)
		assert.ErrorIs(t, err, policy.ErrInvalid, name)
	}
}
