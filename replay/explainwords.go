package replay

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// rule puts a cause into words.
func rule(e *Effective, field string, h held) string {
	by := h.by
	where := fmt.Sprintf("seq %d of this log", by.Origin.Seq)
	switch by.Origin.Session {
	case e.Session:
	case eventlog.StoreSession:
		where = fmt.Sprintf("seq %d of the store's own log", by.Origin.Seq)
	default:
		where = by.Origin.String()
	}
	switch {
	case by.Source == policy.SourceImport && by.Origin.Seq == 1:
		return "assumed, since no event of the imported log states it: absence is no permission, and the log is evidence and never authority"
	case by.Source == policy.SourceImport && e.inferred(by.Origin):
		return "inferred by the importer from what the parent's imported log had in force; evidence and never authority, " + where
	case by.Source == policy.SourceImport:
		return "stated by an imported log, which is evidence and never authority, " + where
	case field == fieldDepth, field == policy.FieldMaxDepth && by.Source == policy.SourceDefault:
		return "counted from the root at creation, " + where
	case field == fieldBound && e.boundless():
		return "a root is bound by narrowings alone, and none has limited it"
	case field == fieldDefaults && by.Source == policy.SourceDefault && e.Kind == eventlog.KindChild:
		return "the meet of the parent's recorded default and the one in force at creation, " + where
	case field == fieldDefaults && by.Source == policy.SourceDefault:
		return "the deployment default in force at creation, " + where
	case by.Source == policy.SourcePin:
		return "every delegation pins approvals to never: never ask, always reject (" + where + ")"
	case by.Source == policy.SourceNarrowing:
		return "narrowed by an operator, for ever, " + where
	case isAuthority(field):
		return authorityRule(e, field, h, where)
	case by.Source == policy.SourceDelegation:
		return "captured from the parent at the delegation boundary, " + where
	case by.Source == policy.SourceSwitch:
		return "switched by the session itself within its bound, " + where
	case by.Source == policy.SourceClaimed:
		return "claimed by a parent outside the store, " + where
	case by.Source == policy.SourceDefault && e.Kind == eventlog.KindChild:
		return "the parent had no override, so the deployment default recorded at creation counts, " + where
	case by.Source == policy.SourceDefault:
		return "no switch, so the deployment default recorded at creation counts, " + where
	}
	return "set by " + where
}

// inferred reports whether an imported policy event was not stated by its log.
func (e *Effective) inferred(o policy.Origin) bool {
	i := slices.IndexFunc(e.events, func(ev eventlog.Event) bool { return ev.Seq == o.Seq })
	return i >= 0 && o.Session == e.Session && eventlog.Claimed(&e.events[i]) == eventlog.ClaimedInferred
}

// isAuthority reports whether a field is of what a session holds beside its
// sandbox and its approvals.
func isAuthority(field string) bool {
	return slices.Contains(profileFields, field) || slices.Contains(grantFields, field) || field == policy.FieldMaxDepth
}

func authorityRule(e *Effective, field string, h held, where string) string {
	switch {
	case field == fieldOperator && h.by.Source != policy.SourceOperator && e.Kind == eventlog.KindChild:
		return "no rule was bound to the store at its capture, nor to its ancestors, " + where
	case field == fieldOperator && h.by.Source != policy.SourceOperator:
		return "no rule is bound to the store"
	case field == fieldOperator && e.Kind == eventlog.KindChild:
		return "bound to the store at its capture or that of an ancestor, and kept for ever; stated last at " + where
	case field == fieldOperator:
		return "bound to the store, which a root follows as it is, " + where
	case h.by.Source == policy.SourceOperator:
		return "an operator rule bound to the store leaves no more, " + where
	case field == fieldFingerprint:
		return "SHA-256 of the line of all that is granted, as it is since " + where
	case field == policy.FieldLockdown && e.Kind == eventlog.KindChild:
		return "no child edits the blocks of its own prompt; a deployment's tools are recorded at " + where
	case field == policy.FieldLockdown:
		return "a root may edit the blocks of its own prompt"
	case h.by.Source == policy.SourceDefault:
		return "no profile was stated for this root, so nothing limits it"
	case h.by.Source == policy.SourceRole:
		return "the preset of role " + string(e.Choices.Role) + " leaves no more, applied by the receipt, " + where
	case h.rule == policy.RuleReceipt:
		return "granted so by the delegation, " + where
	case h.rule == policy.RuleProfile && e.Claimed():
		return "claimed by a parent outside the store, " + where
	case h.rule == policy.RuleProfile:
		return "stated by the profile of this root, " + where
	}
	if why, ok := cutWords()[h.rule]; ok {
		return why + ", " + where
	}
	return "cut by rule " + string(h.rule) + " at the delegation, " + where
}

// cutWords says in words why a delegation granted less than was asked for.
var cutWords = sync.OnceValue(func() map[policy.Rule]string {
	return map[policy.Rule]string{
		policy.RuleParent:        "the parent could hand on no more",
		policy.RuleGrantExpired:  "the explicit grant that would give more had expired",
		policy.RuleGrantSpent:    "the explicit grant that would give more was used up",
		policy.RuleMergeReadOnly: "the merge contract permits no writing",
		policy.RuleMergeScope:    "the merge contract confines it",
		policy.RuleOwnLimits:     "no child outlives its parent",
		policy.RuleDenyNetwork:   "fetch_url is denied, so there is no network",
		policy.RuleDenyTests:     "run_tests is denied, so a shell may only inspect",
		policy.RuleDenyShell:     "exec_shell is denied, so there is no raw shell",
		policy.RulePermissions:   "the profile's permissions cap the grant",
		policy.RuleProfileShell:  "the profile's shell caps the grant's",
		policy.RuleToolsEmpty:    "there are no tools, so there are no files",
	}
})

// change says what would give another value.
func change(e *Effective, field string, h held) string {
	child := e.Kind == eventlog.KindChild
	switch {
	case e.Evidence:
		return "nothing: an imported log stays as it is; start a fresh delegation seeded from it"
	case field == fieldDepth, field == policy.FieldMaxDepth && h.by.Source == policy.SourceDefault:
		return "nothing: depth is fixed at creation"
	case field == fieldDefaults:
		return "nothing: the recorded default is fixed at creation; a switch or a delegation overrides it"
	case field == fieldApprovals && child:
		return "nothing can widen it; a child's approvals stay never"
	case field == fieldApprovals:
		return "a switch of this session"
	case isAuthority(field):
		return authorityChange(field, h, child)
	case field == fieldBound && child:
		return "less: narrow, for ever; more: only a new delegation from a parent that holds more"
	case field == fieldBound && e.boundless():
		return "less: narrow, for ever"
	case field == fieldBound:
		return "less: narrow, for ever; more: nothing, a narrowing is never undone"
	case child:
		return "less: switch within the bound, or narrow; more: only a new delegation from a parent that holds more"
	case e.Bound.Value.Equal(policy.Top()):
		return "a switch of this session, or narrow to bound it for ever"
	}
	return "less: switch or narrow; more: nothing, a narrowing is never undone"
}

func authorityChange(field string, h held, child bool) string {
	switch {
	case field == fieldRole && child:
		return "nothing: a role is fixed at the delegation; delegate again under another"
	case field == fieldRole:
		return "nothing: it is fixed at creation"
	case field == fieldFingerprint:
		return "a narrowing, as far as it takes something away"
	case field == policy.FieldLockdown && child:
		return "nothing: no child edits the blocks of its own prompt"
	case field == policy.FieldLockdown:
		return "nothing: what its children may not call is fixed at creation"
	case field == fieldOperator && child:
		return "more rules: narrow with rules; fewer: an operator lifts them and the child is delegated again"
	case field == fieldOperator:
		return "an operator replaces the rules of the store"
	case h.by.Source == policy.SourceOperator && child:
		return "less: narrow, for ever; more: an operator lifts the rule and the child is delegated again"
	case h.by.Source == policy.SourceOperator:
		return "less: narrow, for ever; more: an operator lifts the rule"
	case field == policy.FieldDenied:
		return "more: narrow, for ever; fewer: nothing here, a list of denied tools never shrinks"
	case h.by.Source == policy.SourceRole:
		return "less: narrow, for ever; more: only a new delegation under a role that is meant for it"
	case child:
		return "less: narrow, for ever; more: only a new delegation from a parent that may hand on more"
	case h.rule == policy.RuleNarrowing:
		return "less: narrow again; more: nothing, a narrowing is never undone"
	}
	return "less: narrow, for ever; more: only another root with a wider profile"
}

// OriginText says in words where a rule was stated, as seen from a session's
// log: by what kind of event, at which seq of which log. It is for people; an
// origin that can't be looked up is named by its place alone.
func OriginText(ctx context.Context, s *eventlog.Store, session uuid.UUID, o policy.RuleOrigin) string {
	if o.At == (policy.Origin{}) {
		if o.Kind == "" || o.Kind == policy.OriginNone {
			return "the call itself, or a rule that holds for every session"
		}
		return strings.ReplaceAll(string(o.Kind), "_", " ") + ", by no event"
	}
	where := placeText(s, session, o.At)
	switch o.Kind {
	case policy.OriginOperator:
		return "an operator rule, " + where
	case policy.OriginNarrowing:
		return "a narrowing by an operator, " + where
	case policy.OriginPin:
		return "the approval pin of the delegation, " + where
	case policy.OriginDefault:
		return "the deployment default recorded at creation, " + where
	case policy.OriginRole:
		role := "of its role"
		if e, err := Policy(ctx, s, o.At.Session, 0); err == nil {
			role = "of role " + string(e.Choices.Role)
		}
		return "the preset " + role + ", applied by the receipt, " + where
	}
	if ev, err := eventAt(ctx, s, o.At.Session, o.At.Seq, false); err == nil {
		return eventWords(&ev) + ", " + where
	}
	return "an event of the session, " + where
}

// placeText names a place as seen from a session.
func placeText(s *eventlog.Store, session uuid.UUID, at policy.Origin) string {
	switch {
	case at.Session == session:
		return fmt.Sprintf("seq %d of this log", at.Seq)
	case at.Session == eventlog.StoreSession:
		return fmt.Sprintf("seq %d of the store's own log", at.Seq)
	}
	name := at.Session.String()
	if row, err := s.Row(at.Session); err == nil && row.Label != "" {
		name += " " + strconv.Quote(row.Label)
	}
	return fmt.Sprintf("seq %d of %s", at.Seq, name)
}

// eventWords says what an event is.
func eventWords(ev *eventlog.Event) string {
	switch ev.Type {
	case eventlog.TypeSessionCreated:
		return "the creation of the session"
	case eventlog.TypeDelegationGranted:
		return "the receipt of the delegation"
	case eventlog.TypePolicyProfile:
		return "the profile of the root"
	case eventlog.TypePolicyNarrowed:
		return "a narrowing by an operator"
	case eventlog.TypeApprovalAsked:
		if elsewhere := ev.Facts.Str("elsewhere"); elsewhere != "" {
			return "a question about a call, which " + elsewhere + " puts to its own person"
		}
		return "a question about a call"
	case eventlog.TypeApprovalDecided:
		return DecidedWords(ev)
	case eventlog.TypeStoreRules:
		return "the operator rules of the store"
	case eventlog.TypeSandboxMode:
		if ev.Source == eventlog.SourceDelegation {
			return "the sandbox captured from the parent"
		}
		return "the sandbox set for the session"
	case eventlog.TypeApprovalPolicy:
		if ev.Source == eventlog.SourceDelegation {
			return "the approval pin of the delegation"
		}
		return "the approvals set for the session"
	case eventlog.TypeToolDecision:
		return "the decision on a call"
	}
	return "an event of type " + ev.Type
}

// DecidedWords says what an approval/decided is: who decided, and whether by
// childlog's own asking or by a harness's word, which grants nothing.
func DecidedWords(ev *eventlog.Event) string {
	d, err := eventlog.ParseDecided(ev)
	if err != nil {
		return "an approval that can't be read"
	}
	who := "the " + string(d.Decider)
	if d.Decider == eventlog.DeciderHuman {
		who = "a person"
	}
	switch {
	case d.Outcome == eventlog.AskAllowedElsewhere && d.Decider == eventlog.DeciderHuman:
		return fmt.Sprintf("%s let this call pass after it showed its question to a person; its word, and nothing that childlog granted", d.Ref)
	case d.Outcome == eventlog.AskAllowedElsewhere:
		return fmt.Sprintf("%s let this call pass, and did not say that it showed the question to a person; nothing that childlog granted", d.Ref)
	case d.Rule == RuleNoResult:
		return fmt.Sprintf("the question was left behind by %s without a result: rejected there, or stopped", d.Ref)
	case d.Outcome == eventlog.AskAllowedOnce:
		return "an approval of this call, once, by " + who
	}
	return "a question about this call: " + string(d.Outcome) + " by " + who
}
