package replay

import "childlog/policy"

// Limit is another part of the policy that leaves less than a field says: a
// profile states what a session is meant for, its grant what it got, and its
// sandbox binds both.
type Limit struct {
	Field     string // that is effective, as [Explain] takes it
	Value     string // of that field
	By        policy.Cause
	DecidedBy policy.Rule // "" where the kind of the event says it all
	Rule      string      // in words
}

// limitOf finds what leaves less than a field says; nil: what it says is effective.
func limitOf(e *Effective, field string) (*Limit, error) {
	by := limiting(e, field)
	if by == "" {
		return nil, nil
	}
	h, err := fieldOf(e, by)
	if err != nil {
		return nil, err
	}
	if by == policy.FieldGrantShell && h.rule == policy.RuleProfile { // what of it
		if _, tests, raw := e.Authority.Own.Profile.Denied.Effects(); tests != nil {
			h.rule = policy.RuleDenyTests
		} else if raw != nil {
			h.rule = policy.RuleDenyShell
		}
	}
	return &Limit{Field: by, Value: h.value, By: h.by, DecidedBy: h.rule, Rule: rule(e, by, h)}, nil
}

// limiting names the field that leaves less, as a call would be refused by it.
func limiting(e *Effective, field string) string {
	own, sandbox := e.Authority.Own.Canonical(), e.Sandbox.Value.Canonical()
	switch field {
	case policy.FieldShell:
		alone := policy.TopHalf() // what the profile's shell leaves by itself
		alone.Profile.Shell = own.Profile.Shell
		if own.Grant.Shell != alone.Canonical().Grant.Shell {
			return policy.FieldGrantShell
		}
	case policy.FieldWrite, policy.FieldFiles:
		switch {
		case field == policy.FieldWrite && own.Profile.Permissions.Write && own.Grant.Files != policy.FilesWrite:
			return policy.FieldFiles
		case own.Grant.Files == policy.FilesWrite && sandbox.Mode == policy.ReadOnly:
			return "sandbox.mode"
		}
	case policy.FieldNetwork, policy.FieldGrantNetwork:
		if own.Grant.Network && !sandbox.Network {
			return "sandbox.network"
		}
	}
	return ""
}
