package policy

import (
	"slices"
	"strconv"
)

// DeriveInput is what a derivation has to know beside authority and request.
// Package policy reads no clock and no log, so the caller says.
type DeriveInput struct {
	Depth    int   // of the child, counted from the root, which has 0
	Children int   // delegations the parent has started before this one
	NowMS    int64 // ms since 1970 UTC

	Parent   Choices       // what the parent runs as
	Operator OperatorRules // the store's at this capture; the parent's own are in its authority

	Receipt Origin // the child's receipt: the origin of the deny rules the request adds
	Issuer  Origin // the event that issues the explicit grants the request states

	// Uses are all earlier delegations that relied on an explicit grant of the
	// parent; a grant that is missing here counts as not used yet.
	Uses []GrantUse
}

// Derived is the outcome of a derivation, for the receipt.
type Derived struct {
	Ceiling   Authority // the parent's, in canonical form
	Requested Authority // what the request and its role alone would have
	Granted   Authority // what the child has
	Cuts      []Cut     // why the two differ, in the order of the rules, own half first; nil if nothing was cut

	Choices     Choices
	Merge       MergePolicy
	Relied      []ExplicitGrant // the parent's, if the child relies on them; each counts as one use
	Fingerprint Fingerprint     // of Granted under the role
}

// Derive returns what a child of parent gets on request. It is pure and total:
// the same input gives the same answer, whatever the input. Whatever the
// request, Granted.Own and Granted.Delegable are within parent.Delegable.
//
// A wish beyond the parent is cut, and the cut recorded. It is refused where a
// smaller child would be of no use:
//
//   - wrapped [ErrInvalid], an [*UnknownRoleError] among them: the request
//     states nothing sensible (see [Wish], [Contract.Gate]);
//   - a [*DepthError]: too deep for the parent, the request or childlog;
//   - a [*RefusedError], which is a wrapped [ErrWidening]: the parent may not
//     delegate, or not once more; it lacks a capability; the provider is not on
//     the list; a scope was stated to write in and nothing of it is left, be it
//     the place or the writing.
func Derive(parent Authority, in DeriveInput, r Request) (Derived, error) {
	p, err := planOf(parent.Canonical(), in, r)
	if err != nil {
		return Derived{}, err
	}
	d, err := p.derive(p.parent.ceiling(), RuleParent)
	if err != nil || len(p.parent.Explicit) == 0 {
		return d, err
	}
	// Without the explicit grants the parent hands on no more than it holds.
	bare := p.parent.WithoutTerms()
	_, by, over := spent(p.parent.Explicit, in.NowMS, in.Uses)
	rule := RuleParent
	if over {
		rule = by
	}
	without, err := p.derive(bare.ceiling(), rule)
	switch {
	case err == nil && without.Granted.Equal(d.Granted):
		return d, nil
	case over:
		return without, err
	}
	d.Relied = slices.Clone(p.parent.Explicit)
	if !d.Granted.Delegable.Within(d.Granted.Own) {
		// The terms go with what they are terms of.
		d.Granted.Explicit = addExplicit(p.parent.Explicit, d.Granted.Explicit)
		if err := checkExplicit(d.Granted.Explicit); err != nil {
			return Derived{}, err
		}
		d.Fingerprint = FingerprintOf(d.Choices.Role, d.Granted)
	}
	return d, nil
}

// plan is a request that was read and found sensible.
type plan struct {
	parent   Authority
	in       DeriveInput
	r        Request
	choices  Choices
	operator OperatorRules
	denied   DenyList // that the request adds
	handed   DenyList // that it adds to the delegable half
	scope    Scope
	handOn   Scope // of the delegable half
	explicit []ExplicitGrant
}

func planOf(parent Authority, in DeriveInput, r Request) (*plan, error) {
	p := &plan{parent: parent, in: in, r: r}
	var err error
	if err = r.check(in.NowMS); err != nil {
		return nil, err
	}
	if p.choices, err = r.choose(in.Parent); err != nil {
		return nil, err
	}
	if p.scope, err = (Contract{Policy: r.MergePolicy, WriteScope: r.WriteScope}).Gate(parent.Own.Profile.Capabilities); err != nil {
		return nil, err
	}
	if err = p.mayDelegate(); err != nil {
		return nil, err
	}
	p.operator = parent.Operator.Union(in.Operator)
	if p.denied, err = NewDenyList(DenyRequest, in.Receipt, r.DeniedTools...); err != nil {
		return nil, err
	}
	if r.Delegable == nil {
		return p, nil
	}
	c := Contract{WriteScope: r.Delegable.WriteScope}
	if r.MergePolicy == MergeReadOnly {
		c.Policy = MergeReadOnly
	}
	if p.handOn, err = c.Gate(parent.Own.Profile.Capabilities); err != nil {
		return nil, err
	}
	if p.handed, err = NewDenyList(DenyRequest, in.Receipt, r.Delegable.DeniedTools...); err != nil {
		return nil, err
	}
	p.explicit = slices.Clone(r.ExplicitGrants)
	for i := range p.explicit {
		p.explicit[i].Issuer = in.Issuer
	}
	return p, checkExplicit(p.explicit)
}

// mayDelegate refuses what no child at all can come of.
func (p *plan) mayDelegate() error {
	own := p.parent.Own
	if p.in.Depth < 1 || p.in.Children < 0 {
		return invalid("derive: got depth %d after %d children, want at least 1 after 0", p.in.Depth, p.in.Children)
	}
	allowed := tighter(HardMaxDepth, p.parent.ceiling().Profile.Limits.MaxDepth)
	if p.r.MaxDepth != nil {
		// Not tighter: a stated 0 is a depth, and too little for any child.
		allowed = min(allowed, *p.r.MaxDepth)
	}
	if p.in.Depth > allowed {
		return &DepthError{Attempted: p.in.Depth, Allowed: allowed}
	}
	if !own.Grant.Spawn {
		return &RefusedError{Field: FieldSpawn, Got: "a delegation", Want: "none: the parent may not delegate", Rule: RuleSpawn}
	}
	if most := own.Grant.MaxChildren; most != nil && p.in.Children >= *most {
		return &RefusedError{Field: FieldMaxChildren, Got: "one after " + strconv.Itoa(p.in.Children), Want: "at most " + strconv.Itoa(*most), Rule: RuleMaxChildren}
	}
	return nil
}

// derive applies the rules to the request, under a ceiling whose cuts are put
// down to the given rule.
func (p *plan) derive(ceiling Half, rule Rule) (Derived, error) {
	d := Derived{Ceiling: p.parent, Choices: p.choices, Merge: p.r.MergePolicy}
	own := &cutting{}
	d.Requested.Own = p.requestedOwn(ceiling)
	d.Granted.Own = p.own(own, d.Requested.Own, ceiling, rule)
	if err := own.unusable(p.r.Wish, d.Granted.Own); err != nil {
		return Derived{}, err
	}
	if err := p.checkProvider(d.Granted.Own.Profile.Providers); err != nil {
		return Derived{}, err
	}
	// Without a wish of its own the delegable half is what was granted, which
	// is within the ceiling already.
	d.Requested.Delegable, d.Granted.Delegable = d.Requested.Own, d.Granted.Own
	handOn := &cutting{prefix: prefixDelegable}
	if p.r.Delegable != nil {
		d.Requested.Delegable = p.requestedDelegable(ceiling)
		d.Granted.Delegable = p.delegable(handOn, d.Requested.Delegable, d.Granted.Own, ceiling, rule)
		if err := handOn.unusable(*p.r.Delegable, d.Granted.Delegable); err != nil {
			return Derived{}, err
		}
	}
	for _, h := range []Half{d.Granted.Own, d.Granted.Delegable} {
		if n := max(h.Profile.Denied.Len(), p.operator.Len()); n > maxNames {
			return Derived{}, invalid("denied tools: got %d rules with those handed down, want at most %d", n, maxNames)
		}
	}
	d.Granted.Operator = p.operator
	d.Requested.Explicit, d.Granted.Explicit = p.explicit, slices.Clone(p.explicit)
	d.Cuts = append(own.cuts, handOn.cuts...)
	d.Granted = d.Granted.Canonical()
	d.Fingerprint = FingerprintOf(d.Choices.Role, d.Granted)
	return d, nil
}

// requestedOwn is what the request asks for, with the preset of its role where
// it leaves something open.
func (p *plan) requestedOwn(ceiling Half) Half {
	base := p.choices.Role.Preset().Half()
	base.Grant.Spawn = ceiling.Grant.Spawn // no role has an opinion
	h := p.r.fill(base, p.scope)
	h.Profile.Denied = p.denied
	if p.r.WallMS != nil {
		h.Profile.Limits.DeadlineMS = Deadline(h.Profile.Limits.DeadlineMS, p.in.NowMS, *p.r.WallMS)
	}
	return h
}

func (p *plan) own(c *cutting, asked, ceiling Half, rule Rule) Half {
	h := c.begin(asked)
	h = c.step(p.choices.Role.Preset().Half().meet(h), RuleRolePreset)
	h = c.step(p.under(ceiling).meet(h), rule)
	h = c.step(p.r.MergePolicy.bind(h), RuleMergeReadOnly)
	return c.settle(h)
}

// under is the ceiling with the operator rules of this capture. What they take
// away is settled last and put down to them, not to the parent.
func (p *plan) under(ceiling Half) Half {
	ceiling.Profile.Denied = ceiling.Profile.Denied.Union(p.operator.Denied())
	return ceiling
}

// requestedDelegable is what the request asks to hand on, with what the parent
// can hand on where it leaves something open.
func (p *plan) requestedDelegable(ceiling Half) Half {
	h := p.r.Delegable.fill(ceiling, p.handOn)
	h.Profile.Denied = p.denied.Union(p.handed)
	if w := p.r.Delegable.MaxDepth; w != nil {
		// The child lies at its own depth; less than that is no descendants
		// too, and 0 would read as no limit.
		h.Profile.Limits.MaxDepth = max(*w, p.in.Depth)
	}
	return h
}

// delegable is met with the child's own half in what binds descendants
// whichever half states it, and in the scope of a merge contract, which
// confines the work and not only the worker.
func (p *plan) delegable(c *cutting, asked, own, ceiling Half, rule Rule) Half {
	h := c.begin(asked)
	h = c.step(p.under(ceiling).meet(h), rule)
	h = c.step(p.r.MergePolicy.bind(h), RuleMergeReadOnly)
	if p.r.MergePolicy == MergeTransactionalWrite {
		h.Grant.Scope = own.Grant.Scope.Meet(h.Grant.Scope)
		h = c.step(h, RuleMergeScope)
	}
	h.Profile.Limits.DeadlineMS = tighter(own.Profile.Limits.DeadlineMS, h.Profile.Limits.DeadlineMS)
	h.Profile.Limits.MaxDepth = tighter(own.Profile.Limits.MaxDepth, h.Profile.Limits.MaxDepth)
	h = c.step(h, RuleOwnLimits)
	return c.settle(h)
}

// unusable refuses a half that was asked to write somewhere and can write
// nowhere.
func (c *cutting) unusable(w Wish, granted Half) error {
	if !w.scopeStated() || granted.Grant.Files == FilesWrite && !granted.Grant.Scope.IsEmpty() {
		return nil
	}
	e := &RefusedError{Field: c.prefix + FieldScope, Got: w.scopeText(), Rule: c.last(FieldScope, FieldFiles)}
	if granted.Grant.Files != FilesWrite {
		// Whoever cut the scope too: it is the files that are in the way.
		e.Rule = c.last(FieldFiles)
		e.Want = "none: files are at most " + granted.Grant.Files.String()
	} else {
		e.Want = "places that the parent can hand on"
	}
	return e
}

// checkProvider refuses a provider off the list. With a list, no provider at
// all is refused too: the harness would pick one that nobody checked.
func (p *plan) checkProvider(allowed NameSet) error {
	if allowed.Admits(p.choices.Provider) {
		return nil
	}
	got := "none named"
	if p.choices.Provider != "" {
		got = p.choices.Provider
	}
	return &RefusedError{Field: FieldProviders, Got: got, Want: "one of " + list(allowed.List()), Rule: RuleProviderList}
}
