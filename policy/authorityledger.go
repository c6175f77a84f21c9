package policy

// FieldCause says which rule gave a field of the own half its value, and where
// it was stated.
type FieldCause struct {
	Rule   Rule
	Origin RuleOrigin
}

// RuleReceipt is the cause of a field that was granted as requested or as the
// parent has it; RuleProfile of one that a root's profile states; RuleNarrowing
// of one that a narrowing cut; RuleUnstated of a root without a profile.
const (
	RuleReceipt   Rule = "receipt"
	RuleProfile   Rule = "profile"
	RuleNarrowing Rule = "narrowing"
	RuleUnstated  Rule = "no_profile"
)

// AuthorityLedger folds the authority of one session in log order: what it was
// born with, then every narrowing, and for each field of its own half the
// event that decided it. The zero value permits nothing. It is a plain value:
// a copy goes its own way.
type AuthorityLedger struct {
	authority Authority
	causes    map[string]FieldCause // replaced, never written
}

// NewAuthorityLedger begins with what a session was born with. The causes are
// by field (see the Field constants) and are kept as they are.
func NewAuthorityLedger(born Authority, causes map[string]FieldCause) AuthorityLedger {
	return AuthorityLedger{authority: born.Canonical(), causes: causes}
}

// BirthCauses says for each field of a child's own half why it is what it is:
// by the rule of the last cut of it, or by the receipt itself.
func BirthCauses(cuts []Cut, at Origin) map[string]FieldCause {
	causes := OneCause(FieldCause{RuleReceipt, RuleOrigin{OriginSession, at}})
	for _, c := range cuts {
		if _, ok := causes[c.Field]; !ok {
			continue // of the delegable half
		}
		kind := OriginSession
		if c.Rule == RuleRolePreset {
			kind = OriginRole
		}
		causes[c.Field] = FieldCause{c.Rule, RuleOrigin{kind, at}}
	}
	return causes
}

// OneCause gives every field the same cause.
func OneCause(c FieldCause) map[string]FieldCause {
	causes := map[string]FieldCause{}
	for _, f := range (Half{}).fields() {
		causes[f.name] = c
	}
	return causes
}

// Narrow meets a ceiling into both halves and joins operator rules. It reports
// whether anything changed; fields of the own half that did are now by this
// narrowing.
func (l *AuthorityLedger) Narrow(ceiling Half, rules OperatorRules, at Origin) (changed bool) {
	after := l.authority.Narrow(ceiling).Under(rules)
	if after.Equal(l.authority) && l.authority.Operator.Covers(after.Operator) {
		return false
	}
	causes := make(map[string]FieldCause, len(l.causes))
	before, now := l.authority.Own.fields(), after.Own.fields()
	for i, f := range now {
		if causes[f.name] = l.causes[f.name]; f.value != before[i].value {
			causes[f.name] = FieldCause{RuleNarrowing, RuleOrigin{OriginNarrowing, at}}
		}
	}
	l.authority, l.causes = after, causes
	return true
}

// Effective is what the session may do and hand on now.
func (l *AuthorityLedger) Effective() Authority { return l.authority }

// Causes says for each field of the own half what decided it. The map is the
// caller's to read, not to write.
func (l *AuthorityLedger) Causes() map[string]FieldCause { return l.causes }

// Changes lists the fields in which two halves differ, as cuts by one rule.
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
