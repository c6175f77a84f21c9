package wire

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/policy"
)

var at = policy.Origin{Session: uuid.MustParse("0a1b2c3d-0000-4000-8000-000000000001"), Seq: 3}

func line(t *testing.T, v any) string {
	b, err := Line(v)
	require.NoError(t, err)
	return strings.TrimSpace(string(b))
}

// Nothing and no limit are never the same text.
func TestHalfKeepsFormsApart(t *testing.T) {
	none, err := policy.NameSetOf()
	require.NoError(t, err)
	noTools, err := policy.ToolsList()
	require.NoError(t, err)
	open, closed := policy.TopHalf(), policy.TopHalf()
	zero := 0
	closed.Profile.Providers, closed.Profile.Capabilities, closed.Profile.Tools = none, none, noTools
	closed.Grant.Scope, closed.Grant.MaxChildren = policy.Scope{}, &zero
	closed.Profile.Limits = policy.Limits{DeadlineMS: 1772366400250, MaxSteps: 5, MaxDepth: 2}

	require.Equal(t, `{"permissions":{"write":true,"network":true},"shell":"full","denied_tools":[],"deadline":null,"max_steps":null,`+
		`"max_depth":null,"providers":null,"capabilities":null,"grant":{"files":"write","shell":"full","network":true,"desktop":false,`+
		`"surface":"inherited","spawn":true,"max_children":null,"write_scope":null}}`, line(t, HalfOf(open)))
	require.Equal(t, `{"permissions":{"write":true,"network":true},"shell":"full","tools":[],"denied_tools":[],"deadline":"2026-03-01T12:00:00.25Z","max_steps":5,`+
		`"max_depth":2,"providers":[],"capabilities":[],"grant":{"files":"write","shell":"full","network":true,"desktop":false,`+
		`"surface":"inherited","spawn":true,"max_children":0,"write_scope":[]}}`, line(t, HalfOf(closed)))
	open.Profile.Tools = policy.ToolsNull()
	require.Contains(t, line(t, HalfOf(open)), `"shell":"full","tools":null,"denied_tools"`)
}

// No number goes beyond what every reader keeps, whatever was put in.
func TestNumbersAreBounded(t *testing.T) {
	h := policy.TopHalf()
	most := int(^uint(0) >> 1)
	h.Profile.Limits = policy.Limits{DeadlineMS: 1<<63 - 1, MaxSteps: 1<<64 - 1}
	h.Grant.MaxChildren = &most
	text := line(t, HalfOf(h))
	require.Contains(t, text, `"max_steps":9007199254740992`)
	require.Contains(t, text, `"max_children":9007199254740992`)
	require.Contains(t, text, `"deadline":"287396-10-12T08:59:00.992Z"`)
	require.Contains(t, line(t, ExplicitGrantsOf([]policy.ExplicitGrant{{ID: "g", Uses: 1<<64 - 1}})), `"uses":9007199254740992`)
}

func TestDeniedAndOperator(t *testing.T) {
	o, err := policy.NewOperatorRules(at, []string{"chmod"}, []string{"secrets/"})
	require.NoError(t, err)
	a := policy.TopAuthority().Under(o)
	a.Explicit = []policy.ExplicitGrant{{ID: "g", Issuer: at}, {ID: "h", ExpiresMS: 1772366400000, Uses: 2}}
	text := line(t, AuthorityOf(a))
	const event = `{"session":"0a1b2c3d-0000-4000-8000-000000000001","seq":3}`
	require.Contains(t, text, `"denied_tools":[{"pattern":"chmod","kind":"operator","origin":`+event+`}]`)
	require.Contains(t, text, `"rules":[{"tool":"chmod","path":null,"origin":`+event+`},{"tool":null,"path":"secrets","origin":`+event+`}]`)
	require.Contains(t, text, `"explicit_grants":[{"id":"g","issuer":`+event+`,"expires":null,"uses":null},{"id":"h","issuer":null,"expires":"2026-03-01T12:00:00Z","uses":2}]`)
	require.Contains(t, line(t, AuthorityOf(policy.TopAuthority())), `"rules":[]},"explicit_grants":[]`)
}

func TestDerived(t *testing.T) {
	parent := policy.TopAuthority()
	parent.Own.Grant.Network, parent.Delegable.Grant.Network = false, false
	d, err := policy.Derive(parent, policy.DeriveInput{Depth: 1, NowMS: 1, Receipt: at, Issuer: at},
		policy.Request{Wish: policy.Wish{Permissions: &policy.Permissions{Write: true, Network: true}}, Role: "explore", Model: "m"})
	require.NoError(t, err)
	text := line(t, DerivedOf(d))
	require.Contains(t, text, `{"field":"permissions.write","from":"yes","to":"no","rule":"role_preset"}`)
	require.Contains(t, text, `{"field":"grant.network","from":"yes","to":"no","rule":"parent_delegable"}`)
	require.Contains(t, text, `"choices":{"role":"explore","model":"m","provider":null,"effort":null,"background":false},"merge_policy":null,"relied":[]`)
	require.Contains(t, text, `"fingerprint":{"line":"childlog-grant/1 role=explore `)
	require.Contains(t, line(t, DerivedOf(policy.Derived{})), `"cuts":[]`)
}

func TestDecision(t *testing.T) {
	require.Equal(t, `{"verdict":"deny","code":"","rule":null,"origin":{"kind":"none","event":null},"tool":{"given":"","canonical":"","class":"opaque","known":false},`+
		`"targets":[],"outside":[],"also_denied_by":[],"classified":null}`, line(t, DecisionOf(policy.Decision{})), "without a verdict it denies")
	d := policy.Decision{Verdict: policy.VerdictDeny, Code: policy.CodeOperatorDeny, Rule: policy.RuleOperatorDeny,
		Origin:  policy.RuleOrigin{Kind: policy.OriginOperator, At: at},
		Tool:    policy.Tool{Given: "Edit", Canonical: "edit", Class: policy.ClassEdit, Known: true},
		Targets: []string{"a"}, Outside: []policy.OutsidePath{{Path: "x\xff", Want: "valid UTF-8"}},
		AlsoDeniedBy: []policy.Denial{{Code: policy.CodeFiles, Rule: policy.RuleFiles, Origin: policy.RuleOrigin{Kind: policy.OriginRole}}}}
	require.Equal(t, `{"verdict":"deny","code":"operator_deny","rule":"operator_deny","origin":{"kind":"operator","event":{"session":"0a1b2c3d-0000-4000-8000-000000000001","seq":3}},`+
		`"tool":{"given":"Edit","canonical":"edit","class":"edit","known":true},"targets":["a"],"outside":[{"path":"x`+"\ufffd"+`","want":"valid UTF-8"}],`+
		`"also_denied_by":[{"code":"files","rule":"grant_files","origin":{"kind":"role","event":null}}],"classified":null}`, line(t, DecisionOf(d)))
}
