package policy_test

import (
	"childlog/policy"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The places that the tests of authority cite.
var (
	receiptAt  = policy.Origin{Session: child, Seq: 3}
	operatorAt = policy.Origin{Session: parent, Seq: 40}
	issuerAt   = policy.Origin{Session: parent, Seq: 9}
)

// nowMS is the time of every derivation that does not say otherwise.
const nowMS = 1_700_000_000_000

// input is what a first delegation of a root has beside the request.
func input() policy.DeriveInput {
	return policy.DeriveInput{Depth: 1, NowMS: nowMS, Receipt: receiptAt, Issuer: issuerAt}
}

// derive is a first delegation that must succeed.
func derive(t require.TestingT, a policy.Authority, r policy.Request) policy.Derived {
	d, err := policy.Derive(a, input(), r)
	require.NoError(t, err)
	return d
}

func ptr[T any](v T) *T { return &v }

func toolsOf(t require.TestingT, names ...string) policy.Tools {
	tools, err := policy.ToolsList(names...)
	require.NoError(t, err)
	return tools
}

func namesOf(t require.TestingT, names ...string) policy.NameSet {
	s, err := policy.NameSetOf(names...)
	require.NoError(t, err)
	return s
}

func declared(t require.TestingT, entries ...string) policy.Scope {
	s, err := policy.ParseScope(entries)
	require.NoError(t, err)
	return s
}

func denying(t require.TestingT, patterns ...string) policy.DenyList {
	d, err := policy.NewDenyList(policy.DenyRequest, receiptAt, patterns...)
	require.NoError(t, err)
	return d
}

func operatorRules(t require.TestingT, tools, paths []string) policy.OperatorRules {
	o, err := policy.NewOperatorRules(operatorAt, tools, paths)
	require.NoError(t, err)
	return o
}

// coordinator may only delegate, and hand on h.
func coordinator(t require.TestingT, h policy.Half) policy.Authority {
	own := policy.Half{Grant: policy.Grant{Spawn: true}}
	own.Profile.Tools = toolsOf(t, "subagent")
	return policy.Authority{Own: own, Delegable: h}
}

// scoped is the top, confined to places.
func scoped(t require.TestingT, entries ...string) policy.Half {
	h := policy.TopHalf()
	h.Grant.Scope = declared(t, entries...)
	return h
}

// The generators draw from few values, so that levels, lists and limits on both
// sides of a meet are often equal, nested or disjoint.

func genTools() *rapid.Generator[policy.Tools] {
	return rapid.Custom(func(t *rapid.T) policy.Tools {
		switch rapid.IntRange(0, 3).Draw(t, "state") {
		case 0:
			return policy.ToolsAbsent()
		case 1:
			return policy.ToolsNull()
		}
		return toolsOf(t, rapid.SliceOfN(rapid.SampledFrom([]string{"read", "Read", "bash", "file", "mcp__x__y"}), 0, 4).Draw(t, "names")...)
	})
}

func genNames(names ...string) *rapid.Generator[policy.NameSet] {
	return rapid.Custom(func(t *rapid.T) policy.NameSet {
		if rapid.Bool().Draw(t, "absent") {
			return policy.NameSet{}
		}
		return namesOf(t, rapid.SliceOfN(rapid.SampledFrom(names), 0, 3).Draw(t, "names")...)
	})
}

// genProviders draws lists that have deepseek on them, so that a request for it
// seldom fails for that alone.
func genProviders() *rapid.Generator[policy.NameSet] {
	return rapid.Custom(func(t *rapid.T) policy.NameSet {
		switch rapid.IntRange(0, 5).Draw(t, "providers") {
		case 0:
			return namesOf(t, "deepseek")
		case 1:
			return namesOf(t, "deepseek", "zai")
		}
		return policy.NameSet{}
	})
}

func genPatterns() *rapid.Generator[[]string] {
	return rapid.SliceOfN(rapid.SampledFrom([]string{
		"exec_shell", "EXEC_SHELL", "exec_*", "bash", "run_tests", "fetch_url", "fetch_*", "read", "file", "chmod", "mcp__*", "*",
	}), 0, 2)
}

func genHalfEntries() *rapid.Generator[[]string] {
	return rapid.SliceOfN(rapid.SampledFrom([]string{"src", "src/a", "src/a/b", "srcx", "docs", "docs/x"}), 0, 4)
}

func genHalfScope() *rapid.Generator[policy.Scope] {
	return rapid.Custom(func(t *rapid.T) policy.Scope {
		if rapid.Bool().Draw(t, "unstated") {
			return policy.Unscoped()
		}
		return declared(t, genHalfEntries().Draw(t, "entries")...)
	})
}

func genOptional[T any](g *rapid.Generator[T]) *rapid.Generator[*T] {
	return rapid.Custom(func(t *rapid.T) *T {
		if rapid.Bool().Draw(t, "absent") {
			return nil
		}
		v := g.Draw(t, "value")
		return &v
	})
}

func genPermissions() *rapid.Generator[policy.Permissions] {
	return rapid.Custom(func(t *rapid.T) policy.Permissions {
		return policy.Permissions{Write: rapid.Bool().Draw(t, "write"), Network: rapid.Bool().Draw(t, "network")}
	})
}

func genShell() *rapid.Generator[policy.Shell] {
	return rapid.SampledFrom([]policy.Shell{policy.ShellNone, policy.ShellReadOnly, policy.ShellFull, policy.ShellFull})
}

// genHalf draws any half a literal can hold, contradictory ones and unknown
// levels included.
func genHalf() *rapid.Generator[policy.Half] {
	return rapid.Custom(func(t *rapid.T) policy.Half {
		if rapid.IntRange(0, 9).Draw(t, "top") == 0 {
			return policy.TopHalf()
		}
		var h policy.Half
		h.Profile.Permissions = genPermissions().Draw(t, "permissions")
		h.Profile.Shell = rapid.SampledFrom([]policy.Shell{"", "root", policy.ShellReadOnly, policy.ShellFull, policy.ShellFull}).Draw(t, "shell")
		h.Profile.Tools = genTools().Draw(t, "tools")
		h.Profile.Denied = denying(t, genPatterns().Draw(t, "denied")...)
		h.Profile.Limits = policy.Limits{
			DeadlineMS: rapid.SampledFrom([]int64{0, 0, nowMS + 5, nowMS + 9}).Draw(t, "deadline"),
			MaxSteps:   rapid.SampledFrom([]uint64{0, 0, 3, 7}).Draw(t, "steps"),
			MaxDepth:   rapid.SampledFrom([]int{0, 0, 6, 8}).Draw(t, "depth"),
		}
		h.Profile.Providers = genProviders().Draw(t, "providers")
		h.Profile.Capabilities = genNames("subagents", "browser").Draw(t, "capabilities")
		h.Grant = policy.Grant{
			Files:       rapid.SampledFrom([]policy.Files{"", policy.FilesRead, policy.FilesWrite, policy.FilesWrite}).Draw(t, "files"),
			Shell:       rapid.SampledFrom([]policy.GrantShell{"", policy.GrantInspect, policy.GrantVerify, policy.GrantFull, policy.GrantFull}).Draw(t, "grant shell"),
			Network:     rapid.Bool().Draw(t, "network"),
			Desktop:     rapid.Bool().Draw(t, "desktop"),
			Surface:     rapid.SampledFrom([]policy.Surface{policy.SurfaceEvidence, policy.SurfaceInherited}).Draw(t, "surface"),
			Spawn:       rapid.IntRange(0, 9).Draw(t, "spawn") > 0,
			MaxChildren: genOptional(rapid.IntRange(1, 3)).Draw(t, "children"),
			Scope:       genHalfScope().Draw(t, "scope"),
		}
		return h
	})
}

func genOperator() *rapid.Generator[policy.OperatorRules] {
	return rapid.Custom(func(t *rapid.T) policy.OperatorRules {
		return operatorRules(t, genPatterns().Draw(t, "tools"), rapid.SliceOfN(rapid.SampledFrom([]string{"secrets", ".git"}), 0, 2).Draw(t, "paths"))
	})
}

func genAuthority() *rapid.Generator[policy.Authority] {
	return rapid.Custom(func(t *rapid.T) policy.Authority {
		a := policy.Authority{Own: genHalf().Draw(t, "own"), Delegable: genHalf().Draw(t, "delegable"), Operator: genOperator().Draw(t, "operator")}
		a.Own.Grant.Spawn = true // else nothing follows
		return a
	})
}

func genWish() *rapid.Generator[policy.Wish] {
	return rapid.Custom(func(t *rapid.T) policy.Wish {
		return policy.Wish{
			Permissions:  genOptional(genPermissions()).Draw(t, "permissions"),
			Shell:        genOptional(genShell()).Draw(t, "shell"),
			Tools:        genTools().Draw(t, "tools"),
			DeniedTools:  genPatterns().Draw(t, "denied"),
			DeadlineMS:   genOptional(rapid.SampledFrom([]int64{nowMS + 4, nowMS + 7})).Draw(t, "deadline"),
			MaxSteps:     genOptional(rapid.SampledFrom([]uint64{0, 2, 5})).Draw(t, "steps"),
			MaxDepth:     genOptional(rapid.SampledFrom([]int{7, 8})).Draw(t, "depth"),
			MaxChildren:  genOptional(rapid.IntRange(1, 3)).Draw(t, "children"),
			Spawn:        genOptional(rapid.SampledFrom([]bool{true, true, true, true, false})).Draw(t, "spawn"),
			Providers:    genProviders().Draw(t, "providers"),
			Capabilities: genNames("subagents", "browser").Draw(t, "capabilities"),
			WriteScope:   genOptional(genHalfEntries()).Draw(t, "scope"),
		}
	})
}

// genRequest draws requests of which most are sensible.
func genRequest() *rapid.Generator[policy.Request] {
	return rapid.Custom(func(t *rapid.T) policy.Request {
		r := policy.Request{
			Wish:        genWish().Draw(t, "wish"),
			WallMS:      genOptional(rapid.SampledFrom([]int64{3, 8})).Draw(t, "wall"),
			Role:        rapid.SampledFrom([]string{"", "worker", "worker", "scout", "plan", "tester", "oracle", "custom"}).Draw(t, "role"),
			Provider:    rapid.SampledFrom([]string{"", "deepseek", "deepseek", "deepseek"}).Draw(t, "provider"),
			MergePolicy: rapid.SampledFrom([]policy.MergePolicy{"", "", policy.MergeReadOnly, policy.MergeTransactionalWrite}).Draw(t, "merge"),
			Delegable:   genOptional(genWish()).Draw(t, "delegable"),
		}
		if r.MergePolicy == policy.MergeTransactionalWrite && r.WriteScope == nil {
			r.WriteScope = &[]string{"src", "docs"}
		}
		if r.MergePolicy == policy.MergeReadOnly {
			r.WriteScope = nil
			if r.Delegable != nil {
				r.Delegable.WriteScope = nil
			}
		}
		return r
	})
}
