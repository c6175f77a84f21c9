package policy_test

import (
	"childlog/policy"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The places that decisions cite.
var (
	switchAt   = policy.Cause{Source: policy.SourceSwitch, Origin: policy.Origin{Session: child, Seq: 5}}
	pinAt      = policy.Cause{Source: policy.SourcePin, Origin: policy.Origin{Session: child, Seq: 4}}
	narrowedAt = policy.Cause{Source: policy.SourceNarrowing, Origin: policy.Origin{Session: child, Seq: 8}}
)

func workspace(t require.TestingT, root string) policy.Workspace {
	w, err := policy.NewWorkspace(root, "")
	require.NoError(t, err)
	return w
}

// rootSubject is a root with an authority, at the top of everything else, which
// asks.
func rootSubject(t require.TestingT, a policy.Authority) policy.Subject {
	return policy.Subject{
		Session: parent, Authority: a, Workspace: workspace(t, "/w"),
		Sandbox: policy.Trace(policy.Top(), switchAt), Bound: policy.Top(),
		Approvals: policy.Ask, ApprovalBy: policy.Cause{Source: policy.SourceDefault, Origin: policy.Origin{Session: parent, Seq: 1}},
	}
}

// childSubject is the child of a derivation, with all that its receipt says.
func childSubject(t require.TestingT, d policy.Derived) policy.Subject {
	s := rootSubject(t, d.Granted)
	s.Session, s.Child = child, true
	s.Approvals, s.ApprovalBy = policy.Never, pinAt
	s.Causes = policy.BirthCauses(d.Granted, d.Ceiling, d.Choices.Role, d.Cuts, receiptAt)
	return s
}

// under is s in a sandbox, which its bound is too.
func under(s policy.Subject, v policy.Sandbox) policy.Subject {
	s.Sandbox, s.Bound = policy.Trace(v, switchAt), v
	return s
}

func halved(h policy.Half) policy.Authority { return policy.Authority{Own: h, Delegable: h} }

func callOf(tool string, paths ...string) policy.Call {
	return policy.Call{ID: "c1", Tool: tool, Paths: paths, PathsKnown: len(paths) > 0}
}

func inspected(tool string) policy.Call {
	c := callOf(tool)
	c.Verdict = policy.Classified{By: "shellcheck", Need: policy.GrantInspect}
	return c
}

func escalated(c policy.Call, v policy.Sandbox) policy.Call {
	c.Escalation = &policy.Escalation{Sandbox: v, Justification: "the build writes there"}
	return c
}

// decided decides both ways, and wants one answer.
func decided(t require.TestingT, s policy.Subject, c policy.Call, m policy.Moment) policy.Decision {
	d := policy.Authorize(s, c, m)
	var again policy.Decision
	policy.Compile(s).Decide(&again, &c, &m)
	require.Equal(t, d, again)
	return d
}

func codes(d policy.Decision) []policy.Code {
	all := []policy.Code{d.Code}
	for _, a := range d.AlsoDeniedBy {
		all = append(all, a.Code)
	}
	return all
}

func rulesOf(d policy.Decision) []policy.Rule {
	all := []policy.Rule{d.Rule}
	for _, a := range d.AlsoDeniedBy {
		all = append(all, a.Rule)
	}
	return all
}

// The generators draw subjects and calls from few names, so that most calls
// touch what some rule is about.

func genSandbox() *rapid.Generator[policy.Sandbox] {
	return rapid.Custom(func(t *rapid.T) policy.Sandbox {
		switch rapid.IntRange(0, 9).Draw(t, "sandbox") {
		case 0, 1, 2:
			return policy.Top()
		case 3:
			return genStated().Draw(t, "stated")
		case 4:
			return policy.Sandbox{Mode: policy.ReadOnly, Network: rapid.Bool().Draw(t, "network")}
		}
		return policy.Sandbox{
			Mode: policy.WorkspaceWrite, Network: rapid.Bool().Draw(t, "network"), ExcludeSlashTmp: rapid.Bool().Draw(t, "no /tmp"),
			Roots: roots(t, rapid.SliceOfN(rapid.SampledFrom([]string{
				"/w", "/w", "/w/src", "/w/src/a", "/", "/W", "/w/.git", "/v", "/w/store/x", `C:\w`, `C:\w\src`,
			}), 0, 3).Draw(t, "roots")...),
		}
	})
}

func genCallPath() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom([]string{
		"src", "src/a", "src/a/b", "src//a", "./src", ".", "docs/x", "srcx", "secrets", "SECRETS/k", "secrets/../src", "src/.git/config", ".git", ".GIT/hooks",
		"/w", "/w/src/a", "/W/secrets/k", "/w/.git", "/tmp/x", "/tmp", "/tmp/.claude/x", "/", "/v/x", "//v", "/etc/passwd", "/w/../etc", "~/x",
		"store", "store/x", "Store/db", "/w/store", "/v/store/x", `src\a`, `C:\w\src\a`, "C:/w/secrets/x", "C:/v", "C:x", "", " src", "src/a\n",
		"src/\u00e9", "src/e\u0301", "\uff33ECRETS/k", "st\u200core/x", "./C:/x",
	}), genRaw())
}

func genSubject() *rapid.Generator[policy.Subject] {
	return rapid.Custom(func(t *rapid.T) policy.Subject {
		a := genAuthority().Draw(t, "authority")
		if rapid.IntRange(0, 3).Draw(t, "top") > 0 {
			a.Own = policy.TopHalf()
			a.Own.Grant.Scope = genHalfScope().Draw(t, "scope")
			a.Own.Grant.MaxChildren = genOptional(rapid.IntRange(0, 2)).Draw(t, "children")
			a.Own.Profile.Denied = denying(t, genPatterns().Draw(t, "denied")...)
			if rapid.Bool().Draw(t, "no operator") {
				a.Operator = policy.OperatorRules{}
			}
		}
		s := policy.Subject{
			Session: child, Authority: a,
			Child:      rapid.Bool().Draw(t, "child"),
			Evidence:   rapid.IntRange(0, 19).Draw(t, "evidence") == 19,
			Unreadable: rapid.IntRange(0, 19).Draw(t, "unreadable") == 19,
			Sandbox:    policy.Trace(genSandbox().Draw(t, "effective"), switchAt),
			Approvals:  rapid.SampledFrom([]policy.Approval{policy.Never, policy.Ask, "", "granular"}).Draw(t, "approvals"),
			ApprovalBy: pinAt,
			Workspace:  workspace(t, rapid.SampledFrom([]string{"/w", "/w", "/w", "/", "", "/tmp/w", "/w/.git/x", `C:\w`}).Draw(t, "workspace")),
			Lockdown:   []string{"Deploy"},
			Protected:  rapid.SliceOfN(rapid.SampledFrom([]string{"/w/store", "/v/store", "/", "/w", `C:\w\store`, "store"}), 0, 1).Draw(t, "protected"),
		}
		s.Bound = s.Sandbox.Value
		if rapid.Bool().Draw(t, "bounded") {
			s.Bound = policy.Top()
		}
		if p, err := policy.NewPalette(policy.PaletteEntry{Name: "lint", Class: policy.ClassRead}, policy.PaletteEntry{Name: "Rollback", Class: policy.ClassEdit}); err == nil {
			s.Palette = p
		}
		if rapid.Bool().Draw(t, "causes") {
			s.Causes = policy.BirthCauses(a, a, policy.RoleGeneral, []policy.Cut{{Field: policy.FieldFiles, Rule: policy.RuleRolePreset}}, receiptAt)
		}
		return s
	})
}

func genCall() *rapid.Generator[policy.Call] {
	return rapid.Custom(func(t *rapid.T) policy.Call {
		c := policy.Call{
			ID: rapid.SampledFrom([]string{"c1", "c1", "c1", "c1", "c1", "c1", "", "a b"}).Draw(t, "id"),
			Tool: rapid.SampledFrom([]string{
				"read", "Read", "READ", "file", "write", "WRITE", "apply_patch", "bash", "BASH", "exec_command", "run_tests", "web_fetch", "WebFetch",
				"WEBFETCH", "subagent", "SUBAGENT", "wait", "mcp__x__y", "chmod", "rollback", "repair", "lint", "Rollback", "prompt_block_edit",
				"PROMPT_block_delete", "deploy", "r\u0435ad", "write", "write", "write", "apply_patch", "rollback",
			}).Draw(t, "tool"),
			Paths:      rapid.SliceOfN(genCallPath(), 0, 3).Draw(t, "paths"),
			PathsKnown: rapid.IntRange(0, 4).Draw(t, "known") > 0,
			Verdict: policy.Classified{
				By:   rapid.SampledFrom([]string{"", "shellcheck", "a b"}).Draw(t, "by"),
				Need: rapid.SampledFrom([]policy.GrantShell{"", policy.GrantNone, policy.GrantInspect, policy.GrantVerify, policy.GrantFull, "root"}).Draw(t, "need"),
			},
		}
		if rapid.IntRange(0, 3).Draw(t, "escalates") == 3 {
			c.Escalation = &policy.Escalation{Sandbox: rapid.OneOf(rapid.Just(policy.Top()), genSandbox()).Draw(t, "escalation"), Justification: rapid.SampledFrom([]string{"", "why", "why", "why", "why"}).Draw(t, "why")}
		}
		return c
	})
}

func genMoment() *rapid.Generator[policy.Moment] {
	return rapid.Custom(func(t *rapid.T) policy.Moment {
		seldom := func(what string) bool { return rapid.IntRange(0, 29).Draw(t, what) == 29 }
		m := policy.Moment{
			NowMS: nowMS + rapid.Int64Range(0, 10).Draw(t, "now"), LastMS: nowMS + rapid.Int64Range(-9, 10).Draw(t, "last"),
			Steps: rapid.Uint64Range(0, 8).Draw(t, "steps"), Children: rapid.IntRange(0, 3).Draw(t, "children"),
			Closed: seldom("closed"), Fenced: seldom("fenced"), Expired: seldom("expired"),
			Admitted: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"src/a", "docs", "/tmp/x", "secrets/k", "..", "src/.git"}), 0, 3, rapid.ID[string]).Draw(t, "admitted"),
		}
		if rapid.Bool().Draw(t, "approved") {
			m.Approved = issuerAt
		}
		return m
	})
}
