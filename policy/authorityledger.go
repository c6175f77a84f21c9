package policy

import "maps"

// The rules by which a field has its value where nothing took any of it away,
// and where something did later.
const (
	RuleReceipt   Rule = "receipt"   // the delegation granted it so
	RuleProfile   Rule = "profile"   // the profile of a root states it
	RuleNarrowing Rule = "narrowing" // a ceiling that was set later
)

// AuthorityLedger folds the events of one session that bear on its authority, in
// log order: a receipt or a profile, then narrowings. An authority only ever
// shrinks, so unlike [Ledger] it has no switch and no bound beside it.
//
// The zero value permits nothing. An AuthorityLedger is a value: a copy is
// independent of the original, and no two share what one of them writes.
type AuthorityLedger struct {
	authority Authority // canonical
	causes    map[string]FieldCause
}

// NewAuthorityLedger starts a session with what it was given, and who gave the
// fields of its own half their values: see [BirthCauses] for a child and
// [ProfileCauses] for a root. For a root without a profile pass [TopAuthority]
// and nil. Causes is copied.
func NewAuthorityLedger(a Authority, causes map[string]FieldCause) AuthorityLedger {
	return AuthorityLedger{authority: a.Canonical(), causes: maps.Clone(causes)}
}

// Narrow meets a ceiling into both halves and adds operator rules, as one
// policy/narrowed event does. No later event undoes it. It reports whether
// anything changed. Each field of the own half whose value did is from now on by
// this event; one that the ceiling leaves as it is keeps its cause.
func (l *AuthorityLedger) Narrow(ceiling Half, rules OperatorRules, by Cause) (changed bool) {
	after := l.authority.Narrow(ceiling).Under(rules)
	if after.Equal(l.authority) && l.authority.Operator.Covers(rules) {
		return false
	}
	causes := maps.Clone(l.causes)
	if causes == nil {
		causes = map[string]FieldCause{}
	}
	to := after.Own.fields()
	for i, from := range l.authority.Own.fields() {
		if from.value != to[i].value {
			causes[from.name] = FieldCause{RuleNarrowing, RuleOrigin{OriginNarrowing, by.Origin}}
		}
	}
	l.authority, l.causes = after, causes
	return true
}

// Effective returns the authority now, in canonical form.
func (l AuthorityLedger) Effective() Authority { return l.authority.Canonical() }

// Causes returns, for the fields of the own half, the rule and the event behind
// their values, for [Subject].Causes. The map is the caller's.
func (l AuthorityLedger) Causes() map[string]FieldCause {
	if l.causes == nil {
		return map[string]FieldCause{}
	}
	return maps.Clone(l.causes)
}

// BirthCauses returns the causes of a child's fields, from its receipt at the
// given place. The last cut of a field names its rule: of a role's preset the
// origin is the role, of a denied tool the event that denied it, else the
// receipt. A field that was not cut, and has what the role is meant for where
// the ceiling would have given more, is by the role's preset; else it is as the
// receipt has it.
func BirthCauses(granted, ceiling Authority, role Role, cuts []Cut, at Origin) map[string]FieldCause {
	own := granted.Canonical().Own
	causes := causesOf(own, RuleReceipt, at)
	preset, most := role.Preset().Half().Canonical().fields(), ceiling.Canonical().Delegable.fields()
	for i, f := range own.fields() {
		if f.value == preset[i].value && f.value != most[i].value && f.name != FieldDenied {
			causes[f.name] = FieldCause{RuleRolePreset, RuleOrigin{OriginRole, at}}
		}
	}
	network, tests, raw := own.Profile.Denied.Effects()
	denying := map[Rule]*DenyEntry{RuleDenyNetwork: network, RuleDenyTests: tests, RuleDenyShell: raw}
	for _, cut := range cuts {
		if _, ok := causes[cut.Field]; !ok {
			continue // of the delegable half
		}
		origin := RuleOrigin{OriginSession, at}
		if cut.Rule == RuleRolePreset {
			origin.Kind = OriginRole
		}
		if e := denying[cut.Rule]; e != nil {
			origin.At = e.Origin
			if e.Kind == DenyOperator {
				origin.Kind = OriginOperator
			}
		}
		causes[cut.Field] = FieldCause{cut.Rule, origin}
	}
	return causes
}

// ProfileCauses returns the causes of a root's fields, which its profile at the
// given place states.
func ProfileCauses(a Authority, at Origin) map[string]FieldCause {
	return causesOf(a.Canonical().Own, RuleProfile, at)
}

func causesOf(own Half, rule Rule, at Origin) map[string]FieldCause {
	cause := FieldCause{rule, RuleOrigin{OriginSession, at}}
	causes := map[string]FieldCause{FieldLockdown: cause}
	for _, f := range own.fields() {
		causes[f.name] = cause
	}
	return causes
}

// Changes lists the fields in which a half differs from what it was, as cuts by
// one rule, in the order of the fields.
func Changes(before, after Half, rule Rule) []Cut {
	var out []Cut
	to := after.Canonical().fields()
	for i, from := range before.Canonical().fields() {
		if from.value != to[i].value {
			out = append(out, Cut{Field: from.name, From: from.value, To: to[i].value, Rule: rule})
		}
	}
	return out
}
