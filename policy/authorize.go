package policy

import "slices"

// Authorize decides one call. It is pure and total: the same subject, call and
// moment give the same decision, whatever they hold. The stages are, in order:
//
//	malformed           the tool's name, the call's id, an escalation that asks for nothing
//	evidence            an imported log
//	fenced              another activation holds the session
//	policy_unreadable   and of the policy nothing further is asked
//	closed, expired, steps_exhausted
//	lockdown            block-edit tools, of children
//	operator_deny       tools by pattern, places by path
//	deny_list, tool_scope
//	write_scope_violation, path_unknown
//	files, shell, network, spawn, opaque
//	sandbox             see judge for what it holds of the paths of a call
//	approval            of an escalation alone; where it would be rejected anyway, before its width
//
// The first stage with a reason decides. What the later ones have against the
// call as well is in AlsoDeniedBy, so that whoever answers the first reason
// learns at once whether that would be enough.
//
// Without an escalation what the sandbox refuses is denied, and nobody is asked.
// With one, the stages are asked under the sandbox that the call wants to run
// in, which must lie within the bound. If nothing stands against it the answer
// is approval_never in a child and in a root with approvals never, which never
// asks and always rejects; needs_approval in a root that may be asked about; and
// allowed_once where [Moment.Approved] has the approval of this very call.
//
// A shell call is decided by its level alone: what a command touches is bound by
// the sandbox that the harness applies to its process, not by paths that could
// be read from it here.
func Authorize(s Subject, c Call, m Moment) Decision {
	r := makeReady(s)
	need := c.Verdict.Shell()
	var d Decision
	var against *toolReasons
	if t, err := r.Palette.Classify(c.Tool); err == nil {
		found := r.reasonsOf(t, need, r.denied(t, need), r.Sandbox.Value)
		against = &found
	}
	r.decide(&d, &c, &m, against, nil)
	return d
}

// decide fills an empty d. Against is what stands against the tool under the
// sandbox in effect, nil if its name is none. Quick accepts what it can of the
// paths of an edit under that sandbox; nil accepts none.
func (r *ready) decide(d *Decision, c *Call, m *Moment, tr *toolReasons, quick *quickPaths) {
	box, beyond := &r.box, false
	asks := r.checkForm(d, c, tr != nil)
	if asks {
		wanted := r.writable(c.Escalation.Sandbox.Canonical())
		box, quick = &wanted, nil
		beyond = !box.Within(r.Bound)
	}
	r.checkSession(d, m)
	if tr == nil {
		d.Tool = Tool{Given: c.Tool, Class: ClassOpaque}
		return
	}
	d.Tool = tr.tool
	if tr.effect == EffectShell && c.Verdict.Named() {
		d.Classified = c.Verdict
		d.Classified.Need = c.Verdict.Shell()
	}
	if r.Unreadable {
		return
	}
	if asks {
		need := c.Verdict.Shell()
		under := r.reasonsOf(tr.tool, need, r.denied(tr.tool, need), box.Sandbox)
		tr = &under
	}
	d.denyAll(tr.first)
	var pathed pathReasons
	if tr.mutates() {
		pathed = r.checkPaths(d, c, m, tr, box, quick)
	}
	d.denyAll(tr.lists)
	switch {
	case pathed.scope:
		d.deny(r.because(CodeWriteScopeViolation, FieldScope, RuleWriteScope))
	case pathed.unknown && r.own.Grant.Scope.Stated():
		d.deny(r.because(CodePathUnknown, FieldScope, RuleWriteScope))
	case pathed.unknown:
		d.deny(Denial{CodePathUnknown, RulePathUnknown, RuleOrigin{Kind: OriginNone}})
	}
	d.denyAll(tr.grant)
	if most := r.own.Grant.MaxChildren; tr.starts && most != nil && m.Children >= *most {
		d.deny(r.because(CodeSpawn, FieldMaxChildren, RuleMaxChildren))
	}
	d.denyAll(tr.unknown)
	if beyond && !r.neverAsks() {
		d.deny(r.beyondBound(c))
	}
	d.denyAll(pathed.sandbox)
	r.conclude(d, m, asks)
	if beyond && r.neverAsks() {
		d.deny(r.beyondBound(c))
	}
}

// neverAsks reports whether an escalation is rejected however little it asks
// for. Then that is the reason to give first: asking for less would not help.
func (r *ready) neverAsks() bool { return r.Child || r.Approvals.Effective() == Never }

// beyondBound is the reason against an escalation that passes the bound. The
// events behind the bound are not known here. Those behind the present value
// are the nearest: they set the bound, or a part of it.
func (r *ready) beyondBound(c *Call) Denial {
	bound := r.Sandbox
	bound.Value = r.Bound
	return Denial{CodeSandbox, RuleSandboxBound, originOf(bound.exceeded(c.Escalation.Sandbox))}
}

// denied returns the rules on the deny list that match a call.
func (r *ready) denied(t Tool, need GrantShell) (entries []DenyEntry) {
	for _, match := range r.own.Profile.Denied.Match(t, need) {
		entries = append(entries, match.Entry)
	}
	return entries
}

// checkForm refuses what could not be recorded, and reports whether the call
// asks for an escalation that means something.
func (r *ready) checkForm(d *Decision, c *Call, named bool) (asks bool) {
	none := RuleOrigin{Kind: OriginNone}
	if !named {
		d.deny(Denial{CodeMalformed, RuleMalformed, none})
	}
	if c.ID != "" && !isCallID(c.ID) {
		d.deny(Denial{CodeMalformed, RuleCallID, none})
	}
	if c.Escalation == nil {
		return false
	}
	err := c.Escalation.Check(r.Sandbox.Value)
	if r.Unreadable {
		// Nobody knows what it would have to be wider than.
		err = c.Escalation.Sandbox.Validate()
	}
	if err != nil {
		d.deny(Denial{CodeMalformed, RuleEscalation, none})
	}
	return err == nil
}

// checkSession asks what has nothing to do with the call.
func (r *ready) checkSession(d *Decision, m *Moment) {
	none := RuleOrigin{Kind: OriginNone}
	if r.Evidence {
		d.deny(Denial{CodeEvidence, RuleEvidence, none})
	}
	if m.Fenced {
		d.deny(Denial{CodeFenced, RuleFenced, none})
	}
	if r.Unreadable {
		d.deny(Denial{CodePolicyUnreadable, RulePolicyUnreadable, none})
	}
	if m.Closed {
		d.deny(Denial{CodeClosed, RuleClosed, none})
	}
	limits := &r.own.Profile.Limits
	if m.Expired || limits.DeadlineMS != 0 && max(m.NowMS, m.LastMS) >= limits.DeadlineMS {
		d.deny(r.because(CodeExpired, FieldDeadline, RuleDeadline))
	}
	if limits.MaxSteps != 0 && m.Steps >= limits.MaxSteps {
		d.deny(r.because(CodeStepsExhausted, FieldMaxSteps, RuleMaxSteps))
	}
}

// pathReasons is what the paths of a call have against it, for the stages that
// are asked later than the first of them.
type pathReasons struct {
	scope   bool // some path is not in the write scope
	unknown bool // some path may not be known
	sandbox []Denial
}

// checkPaths sorts the paths of a mutating call into targets and places outside,
// and denies what an operator closed.
func (r *ready) checkPaths(d *Decision, c *Call, m *Moment, tr *toolReasons, box *writable, quick *quickPaths) (found pathReasons) {
	recovery := tr.effect == EffectRecovery
	var before admittedTargets
	if recovery {
		before = admittedOf(m.Admitted)
	}
	paths, known := callPathsOf(c, m, tr.effect)
	found.unknown = !known
	for _, raw := range paths {
		if quick != nil && !recovery {
			if target, ok := quick.accept(raw); ok {
				d.addTarget(target)
				continue
			}
		}
		f := r.judge(raw, box, before)
		if f.operator != nil {
			d.deny(*f.operator)
		}
		if f.sandbox != nil && !slices.Contains(found.sandbox, *f.sandbox) {
			found.sandbox = append(found.sandbox, *f.sandbox)
		}
		found.scope = found.scope || f.scope && r.own.Grant.Scope.Stated()
		switch {
		case f.want != "":
			d.Outside = append(d.Outside, OutsidePath{Path: raw, Want: f.want})
		case recovery && len(c.Paths) == 0: // each once already
			d.Targets = append(d.Targets, f.target)
		default:
			d.addTarget(f.target)
		}
	}
	if box.Mode == ReadOnly && len(paths) == 0 {
		found.sandbox = append(found.sandbox, Denial{CodeSandbox, RuleSandbox, originOf(r.Sandbox.Mode)})
	}
	return found
}

// conclude is the last stage. That a child is never asked about stands whatever
// else is in the way.
func (r *ready) conclude(d *Decision, m *Moment, asks bool) {
	if asks && r.Child {
		d.deny(Denial{CodeApprovalNever, RuleApprovalPin, RuleOrigin{OriginPin, r.ApprovalBy.Origin}})
	} else if asks && r.Approvals.Effective() == Never {
		d.deny(Denial{CodeApprovalNever, RuleApprovalNever, originOf(r.ApprovalBy)})
	}
	switch {
	case d.Verdict != "":
	case !asks:
		d.Verdict, d.Code, d.Origin.Kind = VerdictAllow, CodeAllowed, OriginNone
	case m.Approved == Origin{}:
		d.Verdict, d.Code, d.Rule, d.Origin = VerdictNeedsApproval, CodeNeedsApproval, RuleApprovalAsk, originOf(r.ApprovalBy)
	default:
		d.Verdict, d.Code, d.Rule, d.Origin = VerdictAllow, CodeAllowedOnce, RuleApproval, RuleOrigin{OriginSession, m.Approved}
	}
}

// deny adds a reason: the first decides. A reason that is there already says
// nothing new, and more than [MaxAlsoDenied] further ones are left out.
func (d *Decision) deny(r Denial) {
	if d.Verdict == "" {
		d.Verdict, d.Code, d.Rule, d.Origin = VerdictDeny, r.Code, r.Rule, r.Origin
		return
	}
	if len(d.AlsoDeniedBy) == MaxAlsoDenied || r == (Denial{d.Code, d.Rule, d.Origin}) {
		return
	}
	if !slices.Contains(d.AlsoDeniedBy, r) {
		d.AlsoDeniedBy = append(d.AlsoDeniedBy, r)
	}
}

func (d *Decision) denyAll(reasons []Denial) {
	for i := range reasons {
		d.deny(reasons[i])
	}
}

// isCallID reports whether id could be recorded as a code.
func isCallID(id string) bool {
	if len(id) > maxCallID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '_', c == '.', c == ':', c == '/', c == '@', c == '+', c == '#', c == '=', c == '-':
		default:
			return false
		}
	}
	return true
}

// maxCallID is the longest call id, in bytes.
const maxCallID = 256
