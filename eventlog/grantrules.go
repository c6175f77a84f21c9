package eventlog

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"childlog/policy"
)

// This file holds a receipt against the two logs that it stands between. What
// the fold of package replay would refuse to read is refused here, or the
// child would be lost to everybody; and so is what it would believe although
// the parent's log says otherwise.

// agrees checks a receipt against the session/created before it, as every
// reader of the log does.
func (b *bounds) agrees(ev *Event, g *Granted) error {
	c := &b.created
	for _, f := range []struct {
		field string
		same  bool
	}{
		{"child", g.Child == ev.Session}, {"parent", g.Parent == c.Parent}, {"root", g.Root == c.Root}, {"depth", g.Depth == c.Depth},
		{"max_depth", g.MaxDepth == c.MaxDepth}, {"parent_seq", g.ParentSeq == c.ParentSeq}, {"parent_head", g.ParentHead == c.ParentHead},
		{"workspace_root", g.WorkspaceRoot == c.WorkspaceRoot}, {"seed", g.SeedLen == c.SeedLen}, {"defaults", g.Defaults.Equal(c.Defaults)},
		// A receipt of version 0 was written before there was anything to
		// fingerprint.
		{"fingerprint", ev.Version == 0 || g.Fingerprint == policy.FingerprintOf(g.Choices.Role, g.Granted).Sum},
	} {
		if !f.same {
			return invalidf("%s: %s does not agree with %s or with what is granted", ev.Type, f.field, TypeSessionCreated)
		}
	}
	return nil
}

// begins checks what the first events of a new session say beside its bounds.
func (b *bounds) begins() error {
	c := &b.created
	if err := c.Defaults.Sandbox.Validate(); err != nil {
		return fmt.Errorf("%s: defaults: %w", TypeSessionCreated, err)
	}
	if _, err := policy.ParseApproval(string(c.Defaults.Approvals)); err != nil {
		return fmt.Errorf("%s: defaults: %w", TypeSessionCreated, err)
	}
	if c.Provider.Name != "" && !isCode(c.Provider.Name) || c.External != nil && !isCode(c.External.System) {
		return invalidf("%s: provider or external system: want a code of 1 to 256 letters, digits or _.:/@+#=-, free text is content", TypeSessionCreated)
	}
	if err := checkNames("lockdown", b.lockdown); err != nil {
		return err
	}
	if b.role != "" && !b.role.Known() || b.role == "" && c.Kind == KindChild {
		return invalidf("role: got %.40q, want a role", b.role)
	}
	if _, err := policy.NewWorkspace(c.WorkspaceRoot, c.PathStyle); err != nil {
		return fmt.Errorf("%s: %w", TypeSessionCreated, err)
	}
	return nil
}

// receipt holds a child's receipt against its parent.
func (st *stage) receipt(born, above *bounds, parent *Row) error {
	if err := born.begins(); err != nil {
		return err
	}
	g := born.granted
	if (g.Sandbox == nil) != (born.captured == nil) || g.Sandbox != nil && !sameSpelling(sandboxFact(*g.Sandbox), sandboxFact(*born.captured)) {
		return unauthorizedf("%s: sandbox: it is not the one of %s", TypeDelegationGranted, TypeSandboxMode)
	}
	present, err := st.storeRules()
	if err != nil {
		return err
	}
	for _, f := range []struct {
		field string
		right bool
	}{
		{"principal", g.Principal == above.principal}, {"issuer/claimed", g.IssuerClaimed == (parent.Kind == KindStub)},
		{"parent_receipt", g.ParentReceipt == above.receipt}, {"class_table", g.ClassTable == policy.ClassTableVersion},
		{"ceiling/own", g.Ceiling.Own.Equal(above.authority.Own)}, {"ceiling/delegable", g.Ceiling.Delegable.Equal(above.authority.Delegable)},
		{"defaults", sameSpelling(defaultsFact(g.Defaults), defaultsFact(born.created.Defaults))},
		{"defaults: wider than the parent's", g.Defaults.Equal(g.Defaults.Meet(above.created.Defaults))},
		{"merge_policy", g.Merge == "" || knownMerge(g.Merge)},
		{"commitments", !g.Commitments.Request.IsZero() && !g.Commitments.Manifest.IsZero()},
		{"lockdown: it drops some of the parent's", containsAll(g.Lockdown, above.lockdown)},
		{"operator: it drops rules of the parent or of the store", g.Granted.Operator.Covers(above.authority.Operator.Union(present))},
	} {
		if !f.right {
			return unauthorizedf("%s: %s: not what session %s and the store hold", TypeDelegationGranted, f.field, parent.Session)
		}
	}
	if err := mayStart(g, above, parent); err != nil {
		return err
	}
	if err := checkLabels(g, above); err != nil {
		return err
	}
	return checkTerms(g, born.stated, above)
}

// mayStart checks that the parent may start this child at all.
func mayStart(g *Granted, above *bounds, parent *Row) error {
	own := above.authority.Own
	switch most := own.Grant.MaxChildren; {
	case !own.Grant.Spawn:
		return fmt.Errorf("%w: session %s may not delegate", ErrWidening, parent.Session)
	case most != nil && parent.Delegations >= uint64(*most):
		return fmt.Errorf("%w: session %s: got delegation %d, want at most %d", ErrWidening, parent.Session, parent.Delegations+1, *most)
	case !g.Granted.Own.Profile.Providers.Admits(g.Choices.Provider):
		return fmt.Errorf("%w: %s: provider: got %q, want one that session %s may run its children on", ErrWidening, TypeDelegationGranted, g.Choices.Provider, parent.Session)
	}
	if most := above.authority.Ceiling().Profile.Limits.MaxDepth; most != 0 && g.Depth > most {
		return fmt.Errorf("%w: attempted depth %d, allowed %d", ErrDepth, g.Depth, most)
	}
	return nil
}

// checkTerms: where the parent hands on more than it holds, it does so on the
// terms of its explicit grants. The receipt has to cite them, each with the
// terms that the parent's log states, and to hand them on with what they are
// terms of. How often they were used already is counted by package snapshot.
func checkTerms(g *Granted, at policy.Origin, above *bounds) error {
	terms := above.authority.Explicit
	if len(g.Relied) > 0 && !sameGrants(g.Relied, terms) {
		return unauthorizedf("%s: relied: not the explicit grants of session %s", TypeDelegationGranted, g.Parent)
	}
	for _, e := range g.Granted.Explicit {
		if e.Issuer != at && !slices.Contains(terms, e) {
			return unauthorizedf("%s: explicit grant %s: nobody stated it", TypeDelegationGranted, e.ID)
		}
	}
	if bare := above.authority.WithoutTerms().Ceiling(); len(terms) == 0 || g.Granted.Own.Within(bare) && g.Granted.Delegable.Within(bare) {
		return nil
	}
	if len(g.Relied) == 0 {
		return fmt.Errorf("%w: %s: relied: got none, want the explicit grants by which session %s hands on more than it holds", ErrWidening, TypeDelegationGranted, g.Parent)
	}
	for _, e := range terms {
		if e.ExpiresMS != 0 && g.NotBefore >= uint64(e.ExpiresMS) {
			return fmt.Errorf("%w: %s: relied: explicit grant %s has expired", ErrWidening, TypeDelegationGranted, e.ID)
		}
		if !g.Granted.Delegable.Within(g.Granted.Own) && !slices.Contains(g.Granted.Explicit, e) {
			return fmt.Errorf("%w: %s: explicit grant %s is dropped and what it is about kept", ErrWidening, TypeDelegationGranted, e.ID)
		}
	}
	return nil
}

// fieldName is what the evidence of a receipt speaks of.
var fieldName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z_.]{0,63}$`) })

// checkLabels keeps free text out of the parts of a receipt that are there to
// be read by people: what evidence and cuts say has to follow from the halves.
func checkLabels(g *Granted, above *bounds) error {
	for name, e := range g.Evidence {
		if !fieldName().MatchString(name) || e != EvidenceRecorded && e != EvidenceInferred && e != EvidenceAbsent {
			return invalidf("%s: evidence: got %.40q of field %.40q, want recorded, inferred or absent of a field", TypeDelegationGranted, e, name)
		}
	}
	reached := map[string]string{}
	for _, c := range g.Cuts {
		name, asked, _ := cutHalves(c.Field, g)
		text, ok := asked.FieldText(name)
		if !ok || !c.Rule.Cuts() {
			return invalidf("%s: cuts: got field %.40q by rule %.40q, want a field of a half and a rule", TypeDelegationGranted, c.Field, c.Rule)
		}
		from, later := reached[c.Field]
		if !later {
			// A field that was left open is the parent's until a rule cuts it.
			if from = clipCut(text); c.From != from {
				full, _ := above.authority.Ceiling().FieldText(name)
				bare, _ := above.authority.WithoutTerms().Ceiling().FieldText(name)
				if c.From == clipCut(full) || c.From == clipCut(bare) {
					from = c.From
				}
			}
		}
		if c.From != from {
			return invalidf("%s: cuts: %s: got a cut from %.40q, want from %.40q", TypeDelegationGranted, c.Field, c.From, from)
		}
		reached[c.Field] = c.To
	}
	for field, to := range reached {
		name, _, granted := cutHalves(field, g)
		if text, _ := granted.FieldText(name); clipCut(text) != to {
			return invalidf("%s: cuts: %s ends in %.40q, want what was granted, %.40q", TypeDelegationGranted, field, to, clipCut(text))
		}
	}
	return nil
}

func checkNames(what string, names []string) error {
	for _, n := range names {
		if err := policy.CheckToolName(n); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// cutHalves finds the field that a cut names, in the requested and in the
// granted half.
func cutHalves(field string, g *Granted) (name string, asked, granted policy.Half) {
	if name, ok := strings.CutPrefix(field, "delegable."); ok {
		return name, g.Requested.Delegable, g.Granted.Delegable
	}
	return field, g.Requested.Own, g.Granted.Own
}

func knownMerge(m policy.MergePolicy) bool {
	_, err := policy.ParseMergePolicy(string(m))
	return err == nil
}

// sameSpelling is stricter than Equal, to which two foreign modes are the same:
// one of them could be any text.
func sameSpelling(a, b map[string]any) bool { return bytes.Equal(mustFacts(a), mustFacts(b)) }

func containsAll(have, want []string) bool {
	return !slices.ContainsFunc(want, func(s string) bool { return !slices.Contains(have, s) })
}

// sameGrants compares as sets.
func sameGrants(a, b []policy.ExplicitGrant) bool {
	all := func(x, y []policy.ExplicitGrant) bool {
		return !slices.ContainsFunc(x, func(e policy.ExplicitGrant) bool { return !slices.Contains(y, e) })
	}
	return all(a, b) && all(b, a)
}

// storeRules are the operator rules that the store has now. Errors:
// ErrPolicyUnreadable.
func (st *stage) storeRules() (rules policy.OperatorRules, err error) {
	unreadable := func(err error) error {
		return fmt.Errorf("%w: the store's operator rules: %w", ErrPolicyUnreadable, err)
	}
	e, err := st.lookup(StoreSession)
	switch {
	case err != nil:
		return rules, unreadable(err)
	case e == nil: // its only frame may be the one that was lost
		if err := st.s.st.whole(); err != nil {
			return rules, unreadable(err)
		}
		return rules, nil
	}
	events, err := policyChain(e, st)
	if err != nil {
		return rules, err
	}
	for i := range events {
		if events[i].Type != TypeStoreRules {
			continue
		}
		if rules, err = ParseStoreRules(&events[i]); err != nil {
			return rules, unreadable(err)
		}
	}
	return rules, nil
}
