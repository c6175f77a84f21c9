package codex

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
)

// Parts of a line that states a policy, behind the line's own event.
const (
	partSandbox   = importer.PartMore
	partApprovals = importer.PartMore + 1
)

// profilePrefix marks a sandbox of which only the newer permission_profile is
// stated. It is not taken apart: what it permits is a language of its own.
const profilePrefix = "permission-profile:"

// claimedInferred marks a switch that only the text for the model states.
const claimedInferred = "switch-inferred"

// force is the policy that a log has stated last.
type force struct {
	sandbox   policy.Sandbox
	approvals policy.Approval
	stated    [2]bool // sandbox, approvals
}

// policyEvents are the policy events of a line: only where a value is not the
// one in force, since every turn states it anew.
func (m *mapper) policyEvents(sandbox *policy.Sandbox, approvals policy.Approval, claimed string) (out []part) {
	if sandbox != nil && (!m.force.stated[0] || !same(*sandbox, m.force.sandbox)) {
		m.force.sandbox, m.force.stated[0] = *sandbox, true
		out = append(out, part{partSandbox, eventlog.NewEvent{Type: eventlog.TypeSandboxMode, Facts: eventlog.ImportedSandboxFacts(*sandbox, claimed)}})
	}
	if approvals != "" && (!m.force.stated[1] || approvals != m.force.approvals) {
		m.force.approvals, m.force.stated[1] = approvals, true
		out = append(out, part{partApprovals, eventlog.NewEvent{Type: eventlog.TypeApprovalPolicy, Facts: eventlog.ImportedApprovalFacts(approvals, claimed)}})
	}
	return out
}

// same: stated alike. What is not known is worth the same, and yet differs.
func same(a, b policy.Sandbox) bool { return a.Mode == b.Mode && a.Equal(b) }

// turnContext reads the policy in force for a turn.
func (m *mapper) turnContext(rec *record, line importer.Line) []part {
	if s, ok := importer.Text(rec.p.model); ok && eventlog.IsCode(s) {
		m.model = s
	}
	var sandbox *policy.Sandbox
	switch {
	case rec.p.sandbox != nil && rec.p.sandbox.Kind() != 'n':
		v := m.sandbox(rec, line)
		sandbox = &v
	case rec.p.profile != nil && rec.p.profile.Kind() != 'n':
		v := policy.Sandbox{Mode: policy.Mode(importer.Code(profilePrefix + profileType(rec.p.profile)))}
		sandbox = &v
	}
	var approvals policy.Approval
	if v := rec.p.approval; v != nil && v.Kind() != 'n' {
		approvals = m.approval(v, line)
	}
	return m.policyEvents(sandbox, approvals, eventlog.ClaimedSwitch)
}

// profileType names a permission profile: by its type, by the one word it is, or
// as what it looks like.
func profileType(v jsontext.Value) string {
	if s, ok := importer.Text(v); ok && s != "" {
		return s
	}
	if s, ok := importer.Text(v, "type"); ok && s != "" {
		return s
	}
	return "untagged"
}

// sandbox reads a sandbox_policy: an object with a type, or in older files a
// mode, or that word alone. What can't be read narrows.
func (m *mapper) sandbox(rec *record, line importer.Line) policy.Sandbox {
	raw := rec.p.sandbox
	mode, ok := importer.Text(raw, "type")
	if !ok {
		mode, ok = importer.Text(raw, "mode")
	}
	if !ok {
		mode, ok = importer.Text(raw)
	}
	if !ok || mode == "" {
		m.malformed(line, "sandbox_policy without a type counts as read-only")
		return policy.Sandbox{Mode: importer.Unrecorded}
	}
	if policy.Mode(mode) == policy.DangerFullAccess {
		return policy.Top()
	}
	v := policy.Sandbox{Mode: policy.Mode(importer.Code(mode)), Network: m.network(importer.At(raw, "network_access"), line)}
	if v.Mode != policy.WorkspaceWrite {
		if v.Mode == policy.ReadOnly {
			return v.Canonical()
		}
		return v
	}
	v.ExcludeTmpdirEnvVar, _ = importer.Boolean(raw, "exclude_tmpdir_env_var")
	v.ExcludeSlashTmp, _ = importer.Boolean(raw, "exclude_slash_tmp")
	var dirs []string
	odd := 0
	add := func(dir jsontext.Value) bool {
		s, ok := importer.Text(dir)
		if _, err := policy.RootsOf(s); !ok || err != nil {
			odd++
		} else {
			dirs = append(dirs, s)
		}
		return true
	}
	if rec.p.cwd != nil {
		add(rec.p.cwd)
	} else if m.h.workspace != "" {
		dirs = append(dirs, m.h.workspace)
	}
	importer.Each(rec.p.roots, add)
	importer.Each(importer.At(raw, "writable_roots"), add)
	roots, err := policy.RootsOf(dirs...)
	if err != nil { // too many: none is safer than some
		roots, _ = policy.RootsOf()
		odd += len(dirs)
	}
	if odd > 0 {
		m.once(codeForeignField, line, fmt.Sprintf("%d writable roots are no absolute paths, or too many, and do not count", odd))
	}
	v.Roots = roots
	return v
}

// network reads network_access, a truth value or in newer files a word.
func (m *mapper) network(v jsontext.Value, line importer.Line) bool {
	if on, ok := importer.Boolean(v); ok || v == nil {
		return on
	}
	switch s, _ := importer.Text(v); s {
	case "enabled":
		return true
	case "restricted", "disabled", "":
	default:
		m.once(codeForeignField, line, fmt.Sprintf("network_access %.80q is not understood and counts as none", s))
	}
	return false
}

// approval reads an approval_policy: a word, or an object with one key.
func (m *mapper) approval(v jsontext.Value, line importer.Line) policy.Approval {
	if s, ok := importer.Text(v); ok && s != "" {
		return policy.Approval(importer.Code(s))
	}
	var name string
	importer.Members(v, func(key, _ jsontext.Value) bool {
		name = importer.Unquote(key)
		return false
	})
	if name == "" {
		m.malformed(line, "approval_policy that can't be read counts as never")
		return policy.Never
	}
	return policy.Approval(importer.Code(name))
}

// environment reads the policy that files of 2025 tell their model in the first
// message. It is prose, so what it says is inferred.
func (m *mapper) environment(rec *record) []part {
	const begin = "<environment_context>"
	var said string
	importer.Each(rec.p.content, func(piece jsontext.Value) bool {
		s, _ := importer.Text(piece, "text")
		if s = strings.TrimSpace(s); strings.HasPrefix(s, begin) {
			said = s[len(begin):]
		}
		return said == ""
	})
	if said == "" {
		return nil
	}
	tag := func(name string) string {
		_, rest, ok := strings.Cut(said, "<"+name+">")
		value, _, closed := strings.Cut(rest, "</"+name+">")
		if !ok || !closed || !eventlog.IsCode(value) {
			return ""
		}
		return value
	}
	var sandbox *policy.Sandbox
	if mode := tag("sandbox_mode"); mode != "" {
		v := policy.Sandbox{Mode: policy.Mode(mode), Network: tag("network_access") == "enabled", ExcludeTmpdirEnvVar: true, ExcludeSlashTmp: true}
		switch v.Mode {
		case policy.DangerFullAccess:
			v = policy.Top()
		case policy.ReadOnly:
			v = v.Canonical()
		case policy.WorkspaceWrite:
			v.Roots, _ = policy.RootsOf()
			if roots, err := policy.RootsOf(tag("cwd")); err == nil {
				v.Roots = roots
			}
		}
		sandbox = &v
	}
	return m.policyEvents(sandbox, policy.Approval(tag("approval_policy")), claimedInferred)
}
