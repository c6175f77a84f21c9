package guard

import (
	"childlog/cmd/childlog/internal/strict"
	"childlog/policy"
)

// maxDocument bounds a policy document, bytes.
const maxDocument = 64 << 10

// ParsePolicy reads a policy document: a JSON object of which every key may be
// left out.
//
//	profile      the shipped profile to begin with: read-only, edit-here, trusted
//	sandbox      read-only, workspace-write or danger-full-access
//	network      true or false: tools that reach the network
//	shell        none, read_only or full; at most read_only under read-only. No
//	             command is run under read_only, because hooks classify none
//	spawn        true or false: may it delegate
//	approvals    ask or never
//	deny_tools   patterns, see the deny rules
//	write_scope  places below the workspace; then no commands are run
//	max_depth    of delegations, 1 to 8
//	approve      true: an allowed call skips the harness's own question
//	palette      [{"name": "mcp__x__y", "class": "read"}]: what unknown tools do
//
// A document of the project (own false) begins with everything, because it is
// met with what the hook's flags say, and may declare no palette: what it says
// only takes away. Errors: ErrInvalid with the place.
func ParsePolicy(doc []byte, own bool) (Policy, error) {
	v, err := strict.Parse(doc, maxDocument)
	if err != nil {
		return Policy{}, err
	}
	p, err := Named(ProfileTrusted)
	if own {
		p, err = Named(DefaultProfile)
	}
	if err != nil {
		return Policy{}, err
	}
	p.Profile, p.Approve = "", !own // of the project: neutral in what it does not state
	if own {
		p.Profile = DefaultProfile
	}
	// The profile first, whichever place it has: it is what the rest changes.
	err = v.Members(func(key string, value strict.Value) (err error) {
		if key != "profile" {
			return nil
		}
		var names []string
		for _, s := range Profiles() {
			names = append(names, s.Profile)
		}
		name, err := value.OneOf(names...)
		if err == nil {
			approve := p.Approve
			p, err = Named(name)
			p.Approve = approve
		}
		return err
	})
	if err != nil {
		return Policy{}, err
	}
	fields := append(p.fields(), strict.Field{Key: "profile", Read: func(strict.Value) error { return nil }},
		strict.Field{Key: "palette", Read: func(v strict.Value) (err error) {
			if !own {
				return v.Bad("the project's file can't declare what a tool does; a document that the hook names with --policy can")
			}
			p.Palette, err = palette(v)
			return err
		}})
	if err := v.Object(fields...); err != nil {
		return Policy{}, err
	}
	return p, nil
}

func (p *Policy) fields() []strict.Field {
	flag := func(key string, dst *bool) strict.Field {
		return strict.Field{Key: key, Read: func(v strict.Value) (err error) { *dst, err = v.Bool(); return err }}
	}
	return []strict.Field{
		flag("network", &p.Network), flag("spawn", &p.Spawn), flag("approve", &p.Approve),
		{Key: "sandbox", Read: func(v strict.Value) (err error) { p.Mode, err = word(v, modes[:]...); return err }},
		{Key: "shell", Read: func(v strict.Value) (err error) {
			p.Shell, err = word(v, policy.ShellNone, policy.ShellReadOnly, policy.ShellFull)
			return err
		}},
		{Key: "approvals", Read: func(v strict.Value) (err error) { p.Approvals, err = word(v, policy.Ask, policy.Never); return err }},
		{Key: "deny_tools", Read: func(v strict.Value) error {
			return texts(v, 256, &p.DenyTools, func(s string) error {
				_, err := policy.NewDenyList(policy.DenyRequest, policy.Origin{}, s)
				return err
			})
		}},
		{Key: "write_scope", Read: func(v strict.Value) error {
			places := []string{}
			p.Scope = &places
			return texts(v, policy.MaxScopeEntries, p.Scope, func(s string) error {
				_, err := policy.NormalizeEntry(s)
				return err
			})
		}},
		{Key: "max_depth", Read: func(v strict.Value) error {
			n, err := v.Int(1, policy.HardMaxDepth)
			p.MaxDepth = int(n)
			return err
		}},
	}
}

func word[W ~string](v strict.Value, words ...W) (W, error) {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	s, err := v.OneOf(all...)
	return W(s), err
}

func texts(v strict.Value, most int, dst *[]string, check func(string) error) error {
	return v.List(most, func(v strict.Value) error {
		s, err := v.Text()
		if err == nil {
			err = v.Wrong(check(s))
		}
		*dst = append(*dst, s)
		return err
	})
}

func palette(v strict.Value) (policy.Palette, error) {
	var entries []policy.PaletteEntry
	err := v.List(256, func(v strict.Value) error {
		var e policy.PaletteEntry
		err := v.Object(
			strict.Field{Key: "name", Read: func(v strict.Value) (err error) {
				if e.Name, err = v.Text(); err == nil {
					err = v.Wrong(policy.CheckToolName(e.Name))
				}
				return err
			}},
			strict.Field{Key: "class", Read: func(v strict.Value) (err error) {
				e.Class, err = word(v, policy.ClassRead, policy.ClassEdit, policy.ClassShell, policy.ClassNetwork, policy.ClassDelegate, policy.ClassOpaque)
				return err
			}},
		)
		if err == nil && (e.Name == "" || e.Class == "") {
			err = v.Bad("missing: name and class")
		}
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return policy.Palette{}, err
	}
	p, err := policy.NewPalette(entries...)
	return p, v.Wrong(err)
}
