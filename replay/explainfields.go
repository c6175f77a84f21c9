package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"childlog/eventlog"
	"childlog/policy"
)

// FieldGroup is a part of a policy, for people, and the fields of it.
type FieldGroup struct {
	Name   string
	Fields []string
}

// The fields that are no part of a half of an authority and no sandbox.
const (
	fieldApprovals   = "approvals"
	fieldBound       = "bound"
	fieldDefaults    = "defaults"
	fieldDepth       = "depth"
	fieldRole        = "role"
	fieldOperator    = "operator"
	fieldFingerprint = "fingerprint"
)

// What a session holds beside its sandbox, its approvals and its place.
var (
	profileFields = []string{fieldRole, policy.FieldWrite, policy.FieldNetwork, policy.FieldShell, policy.FieldTools, policy.FieldDenied, fieldOperator,
		policy.FieldLockdown, policy.FieldProviders, policy.FieldCapabilities, policy.FieldDeadline, policy.FieldMaxSteps}
	grantFields = []string{policy.FieldFiles, policy.FieldGrantShell, policy.FieldGrantNetwork, policy.FieldDesktop, policy.FieldSurface, policy.FieldSpawn,
		policy.FieldMaxChildren, policy.FieldScope, fieldFingerprint}
)

// FieldGroups lists what [Explain] takes, in the order in which it is shown.
// Those of an authority are as package policy names them.
var FieldGroups = []FieldGroup{
	{"sandbox", []string{"sandbox", "sandbox.mode", "sandbox.writable_roots", "sandbox.network", "sandbox.exclude_tmpdir_env_var", "sandbox.exclude_slash_tmp", fieldBound}},
	{"approvals", []string{fieldApprovals, fieldDefaults}},
	{"tree", []string{fieldDepth, policy.FieldMaxDepth}},
	{"profile", profileFields},
	{"grant", grantFields},
}

// Fields lists the names that Explain takes, in the order of [FieldGroups].
var Fields = func() (all []string) {
	for _, g := range FieldGroups {
		all = append(all, g.Fields...)
	}
	return all
}()

// held is a field's value and why.
type held struct {
	value     string
	delegable string // what could be handed on
	by        policy.Cause
	rule      policy.Rule
}

// fieldOf renders one field with its cause.
func fieldOf(e *Effective, field string) (held, error) {
	v := e.Sandbox.Value.Canonical()
	same := func(value string, by policy.Cause) (held, error) {
		h := held{value: value, delegable: value, by: by}
		switch by.Source {
		case policy.SourcePin:
			h.rule = policy.RuleApprovalPin
		case policy.SourceNarrowing:
			h.rule = policy.RuleNarrowing
		}
		return h, nil
	}
	switch field {
	case "sandbox":
		return same(v.String(), e.Sandbox.Cause())
	case "sandbox.mode":
		return same(string(v.Mode), e.Sandbox.Mode)
	case "sandbox.writable_roots":
		return same(rootsText(v), e.Sandbox.Roots)
	case "sandbox.network":
		return same(strconv.FormatBool(v.Network), e.Sandbox.Network)
	case "sandbox.exclude_tmpdir_env_var":
		return same(strconv.FormatBool(v.ExcludeTmpdirEnvVar), e.Sandbox.ExcludeTmpdirEnvVar)
	case "sandbox.exclude_slash_tmp":
		return same(strconv.FormatBool(v.ExcludeSlashTmp), e.Sandbox.ExcludeSlashTmp)
	case fieldApprovals:
		return same(string(e.Approvals), e.ApprovalBy)
	case fieldBound:
		if e.boundless() {
			return same("none: nothing has limited it yet", e.Bound.Cause())
		}
		return same(e.Bound.Value.String(), e.Bound.Cause())
	case fieldDefaults:
		return same(fmt.Sprintf("sandbox %s, approvals %s", e.Defaults.Sandbox, e.Defaults.Approvals), e.DefaultsBy)
	case fieldDepth:
		return same(strconv.Itoa(e.Depth), e.DefaultsBy)
	}
	return authorityField(e, field)
}

// boundless reports whether nothing limits what a session may switch to. That
// is for roots: a child's bound is what it was given, were it everything.
func (e *Effective) boundless() bool {
	return e.Kind != eventlog.KindChild && !e.Evidence && e.Bound.Value.Equal(policy.Top())
}

// authorityField renders a field of what a session holds beside its sandbox.
func authorityField(e *Effective, field string) (held, error) {
	a := &e.Authority
	switch field {
	case fieldRole:
		role := "none"
		if e.Choices.Role != "" {
			role = string(e.Choices.Role)
		}
		return e.heldBy(role, role, policy.FieldLockdown), nil
	case policy.FieldLockdown:
		tools := "none: it is for children"
		if e.Kind == eventlog.KindChild {
			tools = listText(append(policy.LockdownTools(), e.Lockdown...))
		}
		return e.heldBy(tools, tools, field), nil
	case fieldOperator:
		rules := a.Operator.Entries()
		var texts []string
		for _, r := range rules {
			if r.Path != "" {
				texts = append(texts, "path "+strconv.QuoteToASCII(r.Path))
			} else {
				texts = append(texts, "tool "+r.Tool)
			}
		}
		h := e.heldBy(listText(texts), listText(texts), policy.FieldLockdown)
		if len(rules) > 0 {
			h.by, h.rule = policy.Cause{Source: policy.SourceOperator, Origin: rules[len(rules)-1].Origin}, policy.RuleOperatorDeny
		}
		return h, nil
	case fieldFingerprint:
		sum := policy.FingerprintOf(e.Choices.Role, *a).String()
		h := e.heldBy(sum, sum, policy.FieldLockdown)
		for name := range e.Causes { // the newest: the order of the map plays no part
			if other := e.heldBy(sum, sum, name); other.by.Origin.Session == e.Session && other.by.Origin.Seq > h.by.Origin.Seq {
				h = other
			}
		}
		return h, nil
	case policy.FieldMaxDepth:
		own, handed := depthText(a.Own, e.MaxDepth), depthText(a.Delegable, e.MaxDepth)
		if n := a.Own.Profile.Limits.MaxDepth; n == 0 || n >= e.MaxDepth {
			return held{value: own, delegable: handed, by: e.DefaultsBy}, nil
		}
		return e.heldBy(own, handed, field), nil
	case policy.FieldDeadline:
		return e.heldBy(deadlineText(a.Own), deadlineText(a.Delegable), field), nil
	}
	own, ok := a.Own.FieldText(field)
	if !ok {
		return held{}, fmt.Errorf("%w: field %q: want one of %s", eventlog.ErrInvalid, field, strings.Join(Fields, ", "))
	}
	handed, _ := a.Delegable.FieldText(field) // both halves have the same fields
	return e.heldBy(own, handed, field), nil
}

// heldBy adds the rule and the event behind a field of the own half.
func (e *Effective) heldBy(value, delegable, field string) held {
	h := held{value: value, delegable: delegable, by: e.DefaultsBy}
	c, ok := e.Causes[field]
	if !ok { // a root without a profile, or an imported log
		return h
	}
	h.rule, h.by = c.Rule, policy.Cause{Origin: c.Origin.At}
	switch {
	case c.Origin.Kind == policy.OriginNarrowing:
		h.by.Source = policy.SourceNarrowing
	case c.Origin.Kind == policy.OriginOperator:
		h.by.Source = policy.SourceOperator
	case c.Origin.Kind == policy.OriginRole:
		h.by.Source = policy.SourceRole
	case e.Claimed():
		h.by.Source = policy.SourceClaimed
	case e.Kind == eventlog.KindChild:
		h.by.Source = policy.SourceDelegation
	default:
		h.by.Source = policy.SourceProfile
	}
	return h
}

func depthText(h policy.Half, ceiling int) string {
	if n := h.Profile.Limits.MaxDepth; n != 0 {
		ceiling = min(ceiling, n)
	}
	return strconv.Itoa(ceiling)
}

func deadlineText(h policy.Half) string {
	ms := h.Profile.Limits.DeadlineMS
	if ms == 0 {
		return "none"
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano)
}

func listText(items []string) string {
	if len(items) == 0 {
		return "none"
	}
	items = slices.Compact(slices.Sorted(slices.Values(items)))
	return strings.Join(items, ", ")
}

func rootsText(v policy.Sandbox) string {
	switch list := v.Roots.List(); {
	case v.Mode == policy.DangerFullAccess:
		return "everything"
	case list == nil:
		return "not recorded"
	case len(list) == 0:
		return "nothing"
	default:
		for i, dir := range list { // one path must not read as two
			if strings.ContainsFunc(dir, func(c rune) bool { return !strconv.IsPrint(c) || strings.ContainsRune(` ,"`, c) }) {
				list[i] = strconv.Quote(dir)
			}
		}
		return strings.Join(list, ", ")
	}
}
