package policy_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"childlog/policy"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var (
	parent = uuid.MustParse("0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f")
	child  = uuid.MustParse("11111111-2222-4333-8444-555555555555")
)

func at(source policy.Source, seq uint64) policy.Cause {
	return policy.Cause{Source: source, Origin: policy.Origin{Session: child, Seq: seq}}
}

func roots(t require.TestingT, paths ...string) policy.Roots {
	r, err := policy.RootsOf(paths...)
	require.NoError(t, err)
	return r
}

// readOnly and write build the values most tests talk about.
func readOnly() policy.Sandbox { return policy.Sandbox{Mode: policy.ReadOnly} }

func write(t require.TestingT, paths ...string) policy.Sandbox {
	return policy.Sandbox{Mode: policy.WorkspaceWrite, Roots: roots(t, paths...)}
}

// online is s with network.
func online(s policy.Sandbox) policy.Sandbox {
	s.Network = true
	return s
}

// lines returns the lines of a table that are neither blank nor comments.
func lines(t *testing.T, name string) []string {
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	var kept []string
	for s := bufio.NewScanner(f); s.Scan(); {
		if line := strings.TrimSpace(s.Text()); line != "" && line[0] != '#' {
			kept = append(kept, line)
		}
	}
	require.NotEmpty(t, kept)
	return kept
}

// The generators draw from few names, so that equal, nested, disjoint and
// merely similar paths all come up often.

func genPath() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		segments := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ab", "a-", "b"}), 0, 3).Draw(t, "segments")
		if rapid.IntRange(0, 4).Draw(t, "style") == 0 {
			return `C:\` + strings.Join(segments, `\`)
		}
		return "/" + strings.Join(segments, "/")
	})
}

func genRoots() *rapid.Generator[policy.Roots] {
	return rapid.Custom(func(t *rapid.T) policy.Roots {
		if rapid.IntRange(0, 4).Draw(t, "absent") == 0 {
			return policy.Roots{}
		}
		return roots(t, rapid.SliceOfN(genPath(), 0, 4).Draw(t, "paths")...)
	})
}

// genStated draws any value a literal can hold, contradictory and foreign ones
// included.
func genStated() *rapid.Generator[policy.Sandbox] {
	return rapid.Custom(func(t *rapid.T) policy.Sandbox {
		if rapid.IntRange(0, 9).Draw(t, "top") == 0 {
			return policy.Top()
		}
		return policy.Sandbox{
			Mode: rapid.SampledFrom([]policy.Mode{
				policy.WorkspaceWrite, policy.WorkspaceWrite, policy.WorkspaceWrite,
				policy.ReadOnly, policy.DangerFullAccess, "external-sandbox", "",
			}).Draw(t, "mode"),
			Roots:               genRoots().Draw(t, "roots"),
			Network:             rapid.Bool().Draw(t, "network"),
			ExcludeTmpdirEnvVar: rapid.Bool().Draw(t, "no tmpdir"),
			ExcludeSlashTmp:     rapid.Bool().Draw(t, "no /tmp"),
		}
	})
}
