package policy

// Half is one half of a session's authority: a profile and the grant under it.
//
// The two are stated apart and must not contradict each other, so every
// comparison is on the canonical form (see [Half.Canonical]), in which the
// grant holds nothing that its profile rules out.
type Half struct {
	Profile Profile
	Grant   Grant
}

// TopHalf returns the half that every other is within: all permissions, all
// tools, no limit. It is what a root has for which no profile was stated.
func TopHalf() Half {
	return Half{
		Profile: Profile{Permissions: Permissions{Write: true, Network: true}, Shell: ShellFull},
		Grant:   Grant{Files: FilesWrite, Shell: GrantFull, Network: true, Surface: SurfaceInherited, Spawn: true, Scope: Unscoped()},
	}
}

// Canonical returns the one form of what h is worth, sharing nothing with it.
// Unknown levels are the lowest, and the profile caps the grant:
//
//   - without the write permission files are at most read; the network is there
//     for both or for neither;
//   - the profile's shell none, read_only, full caps the grant's at none,
//     inspect, full;
//   - a list without tools leaves no files;
//   - denying fetch_url leaves no network, run_tests no shell but inspect,
//     exec_shell no raw shell, whichever pattern or alias does it.
func (h Half) Canonical() Half {
	h.Profile.Shell = worth(h.Profile.Shell, shells)
	h.Grant = h.Grant.canonical()
	for _, s := range h.settling() {
		h = s.apply(h)
	}
	return h
}

// settlement is one way in which the parts of a half bind each other.
type settlement struct {
	rule  Rule
	apply func(Half) Half
}

// settling returns the settlements of h in an order in which each needs to be
// applied once.
func (h Half) settling() []settlement {
	network, tests, raw := h.Profile.Denied.Effects()
	return []settlement{
		{RuleDenyNetwork, func(h Half) Half {
			if network != nil {
				h.Profile.Permissions.Network, h.Grant.Network = false, false
			}
			return h
		}},
		{RuleDenyTests, func(h Half) Half {
			if tests != nil {
				h.Profile.Shell = h.Profile.Shell.Meet(ShellReadOnly)
				h.Grant.Shell = h.Grant.Shell.Meet(GrantInspect)
			}
			return h
		}},
		{RuleDenyShell, func(h Half) Half {
			if raw != nil {
				h.Grant.Shell = h.Grant.Shell.Meet(GrantVerify)
			}
			return h
		}},
		{RulePermissions, func(h Half) Half {
			if !h.Profile.Permissions.Write {
				h.Grant.Files = h.Grant.Files.Meet(FilesRead)
			}
			both := h.Profile.Permissions.Network && h.Grant.Network
			h.Profile.Permissions.Network, h.Grant.Network = both, both
			return h
		}},
		{RuleProfileShell, func(h Half) Half {
			h.Grant.Shell = h.Grant.Shell.Meet(h.Profile.Shell.Cap())
			return h
		}},
		{RuleToolsEmpty, func(h Half) Half {
			if h.Profile.Tools.IsNothing() {
				h.Grant.Files = FilesNone
			}
			return h
		}},
	}
}

// Meet returns the most that both permit, in canonical form. Where order
// counts, o is the narrower statement (see [Profile.Meet]). [TopHalf] is its
// neutral element.
func (h Half) Meet(o Half) Half { return h.Canonical().meet(o.Canonical()).Canonical() }

// meet is Meet part by part, before the parts bind each other, so that a
// derivation can tell which of the two took something away.
func (h Half) meet(o Half) Half {
	return Half{Profile: h.Profile.Meet(o.Profile), Grant: h.Grant.Meet(o.Grant)}
}

// Within reports whether h permits nothing that o does not, and denies all that
// o does.
func (h Half) Within(o Half) bool {
	h, o = h.Canonical(), o.Canonical()
	return h.Profile.Within(o.Profile) && h.Grant.Within(o.Grant)
}

// Equal reports whether both have the same canonical form, apart from the order
// of tools and of deny rules and from who stated the rules.
func (h Half) Equal(o Half) bool { return h.Canonical().line() == o.Canonical().line() }

// Validate reports, as a wrapped [ErrInvalid], why h must not be recorded; see
// [Profile.Validate] and [Grant.Validate].
func (h Half) Validate() error {
	if err := h.Profile.Validate(); err != nil {
		return err
	}
	return h.Grant.Validate()
}
