package manifest

import (
	"childlog/cmd/childlog/internal/strict"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
)

// ParseProfile reads what a root is set up with. Both halves are open in what
// they do not state; its sandbox and approvals are stated elsewhere.
func ParseProfile(doc []byte) (*materialize.Profile, error) {
	v, err := strict.Parse(doc, MaxDocument)
	if err != nil {
		return nil, err
	}
	p := &materialize.Profile{}
	var terms strict.Value
	err = v.Object(
		field("principal", &p.Principal, principal),
		field("role", &p.Choices.Role, func(v strict.Value) (policy.Role, error) {
			s, err := v.Text()
			if err != nil {
				return "", err
			}
			r, err := policy.ParseRole(s)
			return r, v.Wrong(err)
		}),
		field("model", &p.Choices.Model, choice),
		field("provider", &p.Choices.Provider, choice),
		field("effort", &p.Choices.Effort, choice),
		field("background", &p.Choices.Background, flag),
		field("palette", &p.Palette, palette),
		field("lockdown", &p.Lockdown, listOf(name)),
		field("own", &p.Own, ceiling),
		optional("delegable", &p.Delegable, ceiling),
		noted(field("explicit_grants", &p.Explicit, explicitGrants), &terms),
	)
	if err == nil && p.Delegable == nil && len(p.Explicit) > 0 {
		err = terms.Bad("want none without a delegable half to grant, got %d", len(p.Explicit))
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

func principal(v strict.Value) (p eventlog.Principal, err error) {
	err = v.Object(field("kind", &p.Kind, word(eventlog.PrincipalPerson, eventlog.PrincipalService)), field("ref", &p.Ref, code))
	if err == nil && (p.Kind == "" || p.Ref == "") {
		err = missing(v, "kind and ref", false)
	}
	return p, err
}

// ParseCeiling reads the ceiling of a narrowing: what it states narrows. The
// wish becomes a half by [policy.Wish.Half].
func ParseCeiling(doc []byte) (policy.Wish, error) {
	v, err := strict.Parse(doc, MaxDocument)
	if err != nil {
		return policy.Wish{}, err
	}
	return ceiling(v)
}

// ceiling reads a wish of which Half will make something.
func ceiling(v strict.Value) (policy.Wish, error) {
	w := policy.Wish{}
	var scope strict.Value
	if err := v.Object(noting(wishFields(&w, 1), "write_scope", &scope)...); err != nil {
		return policy.Wish{}, err
	}
	_, err := w.Half(policy.DenyRequest, policy.Origin{})
	return w, scopeAt(v, scope, w).Wrong(err)
}

// Rules are the operator rules that one document sets.
type Rules struct {
	DenyTools []string // patterns, see [policy.DenyEntry]
	DenyPaths []string // places below the workspace, as given
}

// ParseRules reads operator rules. Missing keys are empty lists.
func ParseRules(doc []byte) (Rules, error) {
	v, err := strict.Parse(doc, MaxDocument)
	if err != nil {
		return Rules{}, err
	}
	r := Rules{DenyTools: []string{}, DenyPaths: []string{}}
	err = v.Object(
		field("deny_tools", &r.DenyTools, listOf(pattern)),
		field("deny_paths", &r.DenyPaths, listOf(checked(entry))),
	)
	if err == nil {
		_, err = r.Operator(policy.Origin{})
		err = v.Wrong(err)
	}
	return r, err
}

// Operator returns the rules as the event at sets them.
func (r Rules) Operator(at policy.Origin) (policy.OperatorRules, error) {
	return policy.NewOperatorRules(at, r.DenyTools, r.DenyPaths)
}
