package policy

import (
	"fmt"
	"slices"
)

// Rule names what took something away, or refused. The strings are recorded in
// receipts and decisions, so they are never renamed or reused.
type Rule string

// The rules of a derivation, in the order in which they are applied.
const (
	RuleRolePreset    Rule = "role_preset"            // the role is not meant for it
	RuleParent        Rule = "parent_delegable"       // the parent cannot hand it on
	RuleGrantExpired  Rule = "explicit_grant_expired" // nor by an explicit grant, which has expired
	RuleGrantSpent    Rule = "explicit_grant_spent"   // nor by one, which has no uses left
	RuleMergeReadOnly Rule = "merge_read_only"        // the merge contract permits no writing
	RuleMergeScope    Rule = "merge_scope"            // the merge contract confines the workers of a worker too
	RuleOwnLimits     Rule = "own_limits"             // nobody's child outlives him
	RuleDenyNetwork   Rule = "deny_fetch_url"         // fetch_url is denied: no network
	RuleDenyTests     Rule = "deny_run_tests"         // run_tests is denied: no shell but inspect
	RuleDenyShell     Rule = "deny_exec_shell"        // exec_shell is denied: no raw shell
	RulePermissions   Rule = "permissions"            // the profile's permissions cap the grant
	RuleProfileShell  Rule = "profile_shell"          // the profile's shell caps the grant's
	RuleToolsEmpty    Rule = "tools_empty"            // no tools, so no files
)

var cuttingRules = []Rule{RuleRolePreset, RuleParent, RuleGrantExpired, RuleGrantSpent, RuleMergeReadOnly, RuleMergeScope, RuleOwnLimits, RuleDenyNetwork,
	RuleDenyTests, RuleDenyShell, RulePermissions, RuleProfileShell, RuleToolsEmpty}

// Cuts reports whether r is one of the rules of a derivation: whether it can
// stand in a cut.
func (r Rule) Cuts() bool { return slices.Contains(cuttingRules, r) }

// The rules that only refuse.
const (
	RuleSpawn        Rule = "spawn"               // the parent may not delegate
	RuleMaxChildren  Rule = "max_children"        // it has started as many as it may
	RuleCapability   Rule = "capability"          // it lacks one the merge contract needs
	RuleProviderList Rule = "provider_allow_list" // the provider is not on the list
	RuleRequest      Rule = "request"             // the request contradicts itself
)

// RefusedError says that a request asks for what the parent cannot hand on, and
// that no smaller child would do. It unwraps to [ErrWidening].
type RefusedError struct {
	Field string // what was asked for, see the Field constants
	Got   string // as asked
	Want  string // what would have been accepted
	Rule  Rule   // what stood in the way last
}

// Error renders field, got, want and rule on one line.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%v: %s: got %s, want %s, by rule %s", ErrWidening, e.Field, e.Got, e.Want, e.Rule)
}

// Unwrap returns [ErrWidening].
func (e *RefusedError) Unwrap() error { return ErrWidening }

// DepthError says that a child would lie too deep. It unwraps to [ErrDepth].
type DepthError struct {
	Attempted int // of the child, counted from the root, which has 0
	Allowed   int
}

// Error renders both depths.
func (e *DepthError) Error() string {
	return fmt.Sprintf("%v: attempted depth %d, allowed %d", ErrDepth, e.Attempted, e.Allowed)
}

// Unwrap returns [ErrDepth].
func (e *DepthError) Unwrap() error { return ErrDepth }

// Cut is one step by which a child got less than was asked for it. Several cuts
// of one field follow each other: the first one's From is what was requested,
// the last one's To what was granted. What a request leaves open and the parent
// limits is inherited, and no cut; the growth of the denied tools is none
// either, it stands in the list itself, rule by rule with its origin.
type Cut struct {
	Field string // see the Field constants
	From  string
	To    string
	Rule  Rule
}

// String renders the cut on one line.
func (c Cut) String() string { return fmt.Sprintf("%s: %s -> %s (%s)", c.Field, c.From, c.To, c.Rule) }

// cutting applies rules to a half, one after the other, and keeps what they took.
type cutting struct {
	prefix string // of the field names
	cuts   []Cut
	at     []field // of the half as the last step left it
}

// begin states the half that the first step starts from.
func (c *cutting) begin(h Half) Half {
	c.at = h.fields()
	return h
}

// step records that rule made h of what the step before left.
func (c *cutting) step(h Half, rule Rule) Half {
	before, to := c.at, h.fields()
	c.at = to
	for i, from := range before {
		if from.open || from.name == FieldDenied || from.value == to[i].value {
			continue
		}
		c.cuts = append(c.cuts, Cut{Field: c.prefix + from.name, From: from.value, To: to[i].value, Rule: rule})
	}
	return h
}

// settle records how the parts of a half bind each other.
func (c *cutting) settle(h Half) Half {
	for _, s := range h.settling() {
		h = c.step(s.apply(h), s.rule)
	}
	return h
}

// last returns the rule of the last cut of one of the fields, or
// [RuleRequest] if none was cut.
func (c *cutting) last(fields ...string) Rule {
	rule := RuleRequest
	for _, cut := range c.cuts {
		for _, f := range fields {
			if cut.Field == c.prefix+f {
				rule = cut.Rule
			}
		}
	}
	return rule
}
