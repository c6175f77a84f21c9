package policy

import "github.com/google/uuid"

// Subject is everything about a session that does not change from call to call.
// The zero value may do nothing. It is read and never written, so one Subject
// may be used by many goroutines at once.
type Subject struct {
	Session uuid.UUID

	Child      bool // of a delegation: approvals are pinned to never, and no block-edit tool is ever its own
	Evidence   bool // an imported log: it can be explained, and is never authority
	Unreadable bool // its policy could not be read: every call is denied, whatever the other fields say

	// Authority is the session's. A root's is under the store's present operator
	// rules already; see [Authority.Under].
	Authority Authority

	Sandbox Traced  // in effect
	Bound   Sandbox // the widest it may ever be again: neither a path nor an escalation passes it

	Approvals  Approval // in effect; of a child they count as never, whatever stands here
	ApprovalBy Cause    // in a child the pin

	Workspace Workspace
	Palette   Palette

	// Lockdown are names of tools that no child of this deployment holds, beside
	// the built-in ones (see [LockdownTools]); compared with A to Z lowered.
	Lockdown []string

	// Causes says which rule and event gave the fields of the own half their
	// values, by the Field constants. A field that is missing was set by the
	// session, at no event to name. See [AuthorityLedger.Causes].
	Causes map[string]FieldCause

	// Protected are absolute directories that nothing grants, in which the store
	// itself lies; a call may not change what is in them or what they are in.
	Protected []string
}

// FieldCause says which rule gave a field of the own half its value, and which
// event stated it.
type FieldCause struct {
	Rule   Rule
	Origin RuleOrigin
}

// Moment is what a decision has to know about now. Time and counters are input:
// the package reads no clock, so a decision can be repeated from its record.
type Moment struct {
	// NowMS is the clock, LastMS the time of the session's last event, in ms
	// since 1970 UTC. The later counts: a clock set back brings nobody past a
	// deadline back to life.
	NowMS, LastMS int64

	Steps    uint64 // that the session itself has used, its seed excluded
	Children int    // delegations that it has started

	Closed bool
	Fenced bool // by a later activation, or for want of one

	// Expired latches: an earlier decision found the session expired, so it is,
	// whatever the clocks say now.
	Expired bool

	// Admitted are the targets of calls of the session that were allowed before,
	// as [Decision.Targets] had them and each once. Only a recovery call makes
	// use of them.
	Admitted []string

	// Approved is the approval/decided event with outcome allowed-once that
	// covers exactly this call: session, call, arguments and policy seq. The
	// zero value is none. That it is unused and not void is for the caller.
	Approved Origin
}

// ready is a subject with its authority in canonical form and with what every
// decision needs of it. Nothing in it is written once it is made.
type ready struct {
	Subject
	own       Half
	locked    map[string]bool // lowered; true: of the deployment; nil for a root
	denyPaths DenyPaths
	pathRules map[string]OperatorRule // by entry
	firstPath *OperatorRule           // the first of them, nil if there is none
	outer     []outerRule             // where they lie as absolute paths
	stores    []string                // the protected directories: slashed, folded
	anchored  bool                    // the workspace has a known root
	box       writable                // the sandbox in effect
	bound     writable                // the bound
	scopeText string                  // what the write scope wants, built once
}

// outerRule is an operator path as an absolute one: slashed, folded.
type outerRule struct {
	folded string
	rule   OperatorRule
}

func makeReady(s Subject) *ready {
	if s.Unreadable {
		s.Authority = Authority{} // or a limit would be cited that nobody read
	}
	s.Authority, s.Sandbox.Value, s.Bound = s.Authority.Canonical(), s.Sandbox.Value.Canonical(), s.Bound.Canonical()
	r := &ready{Subject: s, own: s.Authority.Own, anchored: s.Workspace.root != ""}
	r.box, r.bound = r.writable(s.Sandbox.Value), r.writable(s.Bound)
	if s.Child {
		r.locked = map[string]bool{}
		for _, n := range s.Lockdown {
			r.locked[lowerASCII(n)] = true
		}
		for _, n := range LockdownTools() {
			r.locked[n] = false
		}
	}
	r.denyPaths, r.pathRules = s.Authority.Operator.Paths(), map[string]OperatorRule{}
	for _, o := range s.Authority.Operator.rules {
		if o.Path == "" {
			continue
		}
		if r.firstPath == nil {
			r.firstPath = &o
		}
		if _, have := r.pathRules[o.Path]; !have {
			r.pathRules[o.Path] = o
		}
		r.outer = append(r.outer, outerRule{fold(s.Workspace.absolute(place{o.Path, true})), o})
	}
	if r.own.Grant.Scope.Stated() {
		r.scopeText = r.own.Grant.Scope.within()
	}
	for _, dir := range s.Protected {
		r.stores = append(r.stores, fold(slashed(dir)))
	}
	return r
}

// cause returns the rule and the origin of a field's value, or the given rule
// and the session where nobody said. That a receipt, a profile or a narrowing
// states the value is no rule but its origin: then the given rule is what
// refuses.
func (s *Subject) cause(field string, otherwise Rule) (Rule, RuleOrigin) {
	c, ok := s.Causes[field]
	if !ok {
		return otherwise, RuleOrigin{Kind: OriginSession}
	}
	switch c.Rule {
	case "", RuleReceipt, RuleProfile, RuleNarrowing:
		c.Rule = otherwise
	}
	if c.Origin.Kind == "" {
		c.Origin.Kind = OriginSession
	}
	return c.Rule, c.Origin
}

// originOf returns a cause as the origin of a rule.
func originOf(c Cause) RuleOrigin {
	kind := OriginSession
	switch c.Source {
	case SourceDefault:
		kind = OriginDefault
	case SourceNarrowing:
		kind = OriginNarrowing
	case SourcePin:
		kind = OriginPin
	}
	return RuleOrigin{Kind: kind, At: c.Origin}
}
