package manifest

import (
	"fmt"

	"childlog/cmd/childlog/internal/strict"
	"childlog/policy"
)

// The kinds of principals.
const (
	PrincipalPerson  = "person"
	PrincipalService = "service"
)

// Principal is on whose behalf a tree of sessions works.
type Principal struct {
	Kind string // one of the above
	Ref  string // opaque, a code: it is a fact, and facts are never redacted
}

// Profile is what a root is set up with. Both halves are open in what they do
// not state; its sandbox and approvals are stated elsewhere.
type Profile struct {
	Principal      *Principal  // nil: not stated
	Role           policy.Role // "": not stated
	Own            policy.Wish
	Delegable      *policy.Wish           // nil: the same as Own
	ExplicitGrants []policy.ExplicitGrant // terms of Delegable, without their issuer
}

// ParseProfile reads a profile.
func ParseProfile(doc []byte) (*Profile, error) {
	v, err := strict.Parse(doc, MaxDocument)
	if err != nil {
		return nil, err
	}
	p := &Profile{}
	var terms strict.Value
	err = v.Object(
		optional("principal", &p.Principal, principal),
		field("role", &p.Role, func(v strict.Value) (policy.Role, error) {
			s, err := v.Text()
			if err != nil {
				return "", err
			}
			r, err := policy.ParseRole(s)
			return r, v.Wrong(err)
		}),
		field("own", &p.Own, ceiling),
		optional("delegable", &p.Delegable, ceiling),
		noted(field("explicit_grants", &p.ExplicitGrants, explicitGrants), &terms),
	)
	if err == nil && p.Delegable == nil && len(p.ExplicitGrants) > 0 {
		err = terms.Bad("want none without a delegable half to grant, got %d", len(p.ExplicitGrants))
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

func principal(v strict.Value) (p Principal, err error) {
	err = v.Object(field("kind", &p.Kind, word(PrincipalPerson, PrincipalService)), field("ref", &p.Ref, code))
	if err == nil && (p.Kind == "" || p.Ref == "") {
		err = missing(v, "kind and ref", false)
	}
	return p, err
}

// Authority returns what the profile gives a root. at is the event that will
// state it: the origin of its deny rules and the issuer of its grants.
func (p *Profile) Authority(at policy.Origin) (policy.Authority, error) {
	var a policy.Authority
	var err error
	if a.Own, err = p.Own.Half(policy.DenyRequest, at); err != nil {
		return policy.Authority{}, fmt.Errorf("own: %w", err)
	}
	a.Delegable = a.Own
	if p.Delegable != nil {
		if a.Delegable, err = p.Delegable.Half(policy.DenyRequest, at); err != nil {
			return policy.Authority{}, fmt.Errorf("delegable: %w", err)
		}
	}
	for _, g := range p.ExplicitGrants {
		g.Issuer = at
		a.Explicit = append(a.Explicit, g)
	}
	if err := a.Validate(); err != nil {
		return policy.Authority{}, err
	}
	return a.Canonical(), nil
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
