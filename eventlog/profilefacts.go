package eventlog

import (
	"childlog/policy"
)

// Profile is policy/profile: what a root may do and hand on, and for whom it
// works. A root without one has [policy.TopAuthority]; its sandbox and its
// approvals bound it beside this.
type Profile struct {
	Authority policy.Authority // without operator rules: a root follows the store's present ones
	Choices   policy.Choices
	Principal Principal
	Palette   []policy.PaletteEntry
	Lockdown  []string // the deployment's block-edit tools; they bind the children
}

// Facts encodes p.
func (p Profile) Facts() (Facts, error) {
	var table denyTable
	m := map[string]any{"own": halfFact(p.Authority.Own, &table), "delegable": halfFact(p.Authority.Delegable, &table),
		"explicit": explicitFact(p.Authority.Explicit), "role": string(p.Choices.Role), "background": p.Choices.Background, "lockdown": p.Lockdown}
	m["denied_tools"] = table.fact()
	if p.Lockdown == nil {
		m["lockdown"] = []any{}
	}
	for name, v := range map[string]string{"model": p.Choices.Model, "provider": p.Choices.Provider, "effort": p.Choices.Effort} {
		if v != "" {
			m[name] = v
		}
	}
	if !p.Principal.IsZero() {
		m["principal"] = p.Principal.fact()
	}
	var err error
	if m["palette"], err = paletteFact(p.Palette); err != nil {
		return nil, err
	}
	return MakeFacts(m)
}

// ParseProfile reads policy/profile. A half that is missing permits nothing.
// Errors: ErrCorrupt with the field.
func ParseProfile(ev *Event) (Profile, error) {
	r, err := readFacts(ev)
	if err != nil {
		return Profile{}, err
	}
	rules := r.denied()
	p := Profile{Authority: policy.Authority{Own: r.half("own", false, rules), Delegable: r.half("delegable", false, rules), Explicit: r.explicit("explicit")},
		Choices: policy.Choices{Role: policy.Role(r.str("role")), Model: r.str("model"), Provider: r.str("provider"), Effort: r.str("effort"),
			Background: r.bool("background", false)},
		Principal: r.principal(), Lockdown: r.strs("lockdown")}
	if s := r.sub("palette", false); s != nil {
		p.Palette = s.palette()
		r.adopt(s)
	}
	return p, r.err
}
