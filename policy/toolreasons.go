package policy

import "slices"

// The rules that only a decision cites, beside those of [Standing.Permits].
const (
	RuleCallID           Rule = "invalid_call_id"
	RuleEscalation       Rule = "invalid_escalation" // not strictly wider, or without a justification
	RuleEvidence         Rule = "evidence"
	RuleFenced           Rule = "fenced"
	RulePolicyUnreadable Rule = "policy_unreadable"
	RuleClosed           Rule = "closed"
	RuleDeadline         Rule = "deadline"
	RuleMaxSteps         Rule = "max_steps"
	RuleLockdown         Rule = "lockdown"        // no child edits its own instructions
	RuleOperatorPath     Rule = "operator_path"   // an operator denied the place
	RulePathUnknown      Rule = "path_unknown"    // whatever changes files has to say which
	RuleSandboxNetwork   Rule = "sandbox_network" // the sandbox has none
	RuleSandboxRoots     Rule = "sandbox_roots"   // the place lies in no writable root
	RuleSandboxBound     Rule = "sandbox_bound"   // the escalation goes beyond what the session may ever be again
	RulePathForm         Rule = "path_form"       // the path would have to be rewritten to be compared
	RuleProtectedName    Rule = "protected_name"  // .git, .codex, .claude or .childlog, which nobody named
	RuleStoreDirectory   Rule = "store_directory" // the store's own
	RuleApprovalPin      Rule = "approval_pin"    // of a child: never ask, always reject
	RuleApprovalNever    Rule = "approval_never"  // of a root that was set so
	RuleApprovalAsk      Rule = "approval_ask"    // somebody has to allow it
	RuleApproval         Rule = "approval"        // somebody did, once
	RuleUnrecorded       Rule = "unrecorded"      // the decision could not be made durable, so nothing may rest on it
)

// toolReasons is what stands against every call of one tool that needs one
// level of shell, in the order of the stages. Paths, counters and approvals come
// on top.
type toolReasons struct {
	tool   Tool
	effect Effect
	opaque bool
	starts bool // it may start a child

	first   []Denial // lockdown, the operator's rules
	lists   []Denial // deny list, tool scope, and the write scope if no path would do
	grant   []Denial // files, shell, network, spawn
	unknown []Denial // opaque
}

// mutates reports whether the call changes files that it has to name.
func (t *toolReasons) mutates() bool { return t.effect == EffectEdit || t.effect == EffectRecovery }

// reasonsOf collects what stands against a tool under a sandbox. Denied are the
// rules on the deny list that match; see [DenyList.Match].
func (r *ready) reasonsOf(t Tool, need GrantShell, denied []DenyEntry, box Sandbox) toolReasons {
	tr := toolReasons{tool: t, effect: EffectOf(t.Given, string(t.Class)), starts: t.Class == ClassDelegate && startsChild(t.Given)}
	// The recovery tools are taken for what their names say: they are held to
	// targets that were admitted before.
	tr.opaque = tr.effect == EffectOpaque || !t.Known && tr.effect != EffectRecovery
	tr.first = r.firstReasons(&tr, denied)
	tr.lists = r.listReasons(&tr, denied)
	tr.grant = r.grantReasons(&tr, need, box)
	tr.unknown = r.opaqueReasons(&tr, box)
	return tr
}

func (r *ready) firstReasons(tr *toolReasons, denied []DenyEntry) (reasons []Denial) {
	if own, locked := r.locked[tr.tool.Canonical]; locked {
		d := Denial{CodeLockdown, RuleLockdown, RuleOrigin{Kind: OriginNone}}
		if own {
			_, d.Origin = r.cause(FieldLockdown, RuleLockdown)
		}
		reasons = append(reasons, d)
	}
	for _, e := range denied {
		if e.Kind == DenyOperator {
			reasons = addReason(reasons, Denial{CodeOperatorDeny, RuleOperatorDeny, RuleOrigin{OriginOperator, e.Origin}})
		}
	}
	// Nobody knows what an opaque tool touches, so where an operator has closed
	// a place it is refused like anywhere else where paths are limited. A shell
	// is not: its class is granted by name and level, it runs in the sandbox
	// that the harness applies, and one closed place would else end every
	// command of every session. An operator who means the shell too denies
	// exec_shell.
	if tr.opaque && r.firstPath != nil {
		reasons = append(reasons, Denial{CodeOperatorDeny, RuleOperatorPath, RuleOrigin{OriginOperator, r.firstPath.Origin}})
	}
	return reasons
}

// addReason keeps of the many rules that can match one tool as many as one
// decision cites: a compilation holds them for a thousand tools.
func addReason(reasons []Denial, d Denial) []Denial {
	if len(reasons) > MaxAlsoDenied || slices.Contains(reasons, d) {
		return reasons
	}
	return append(reasons, d)
}

func (r *ready) listReasons(tr *toolReasons, denied []DenyEntry) (reasons []Denial) {
	for _, e := range denied {
		if e.Kind != DenyOperator {
			reasons = addReason(reasons, Denial{CodeDenyList, RuleDenyList, RuleOrigin{OriginSession, e.Origin}})
		}
	}
	if !r.own.Profile.Tools.Allows(tr.tool.Given) {
		reasons = append(reasons, r.because(CodeToolScope, FieldTools, RuleToolScope))
	}
	if r.own.Grant.Scope.Stated() && (tr.effect == EffectShell || tr.opaque) {
		reasons = append(reasons, r.because(CodeWriteScopeViolation, FieldScope, RuleWriteScope))
	}
	return reasons
}

func (r *ready) grantReasons(tr *toolReasons, need GrantShell, box Sandbox) (reasons []Denial) {
	g := r.own.Grant
	switch tr.effect {
	case EffectRead:
		if g.Files == FilesNone {
			reasons = append(reasons, r.because(CodeFiles, FieldFiles, RuleFiles))
		}
	case EffectEdit, EffectRecovery:
		if g.Files != FilesWrite {
			reasons = append(reasons, r.because(CodeFiles, FieldFiles, RuleFiles))
		}
	case EffectShell:
		if !g.Shell.Admits(need) {
			reasons = append(reasons, r.because(CodeShell, FieldGrantShell, RuleShell))
		}
	case EffectNetwork:
		if !g.Network {
			reasons = append(reasons, r.because(CodeNetwork, FieldGrantNetwork, RuleNetwork))
		}
		if !box.Network {
			reasons = append(reasons, Denial{CodeNetwork, RuleSandboxNetwork, originOf(r.Sandbox.Network)})
		}
	case EffectDelegate:
		if !g.Spawn {
			reasons = append(reasons, r.because(CodeSpawn, FieldSpawn, RuleDelegate))
		}
	}
	return reasons
}

// opaqueReasons refuses a tool that is not known where it could do what is not
// granted; the first limit in the order of the stages is the one to cite. The
// rule stays that of the tool: declaring its class answers it as well as
// lifting the limit.
func (r *ready) opaqueReasons(tr *toolReasons, box Sandbox) []Denial {
	g := r.own.Grant
	var by RuleOrigin
	switch {
	case !tr.opaque:
		return nil
	case g.Files != FilesWrite:
		_, by = r.cause(FieldFiles, RuleFiles)
	case g.Shell != GrantFull:
		_, by = r.cause(FieldGrantShell, RuleShell)
	case !g.Network:
		_, by = r.cause(FieldGrantNetwork, RuleNetwork)
	case !box.Network:
		by = originOf(r.Sandbox.Network)
	case box.Mode != DangerFullAccess:
		by = originOf(r.Sandbox.Mode)
	default:
		return nil
	}
	return []Denial{{CodeOpaque, RuleOpaque, by}}
}

// because is a denial by the value of a field of the own half.
func (r *ready) because(code Code, field string, otherwise Rule) Denial {
	rule, origin := r.cause(field, otherwise)
	return Denial{code, rule, origin}
}

// talkingTools are the delegating tools that start nothing: whoever has started
// as many children as he may still waits for them and stops them. A delegating
// tool that is not listed may start one.
var talkingTools = []string{
	"TaskStop", "SendMessage", "TeamDelete", "CronDelete", "report_agent_job_result", "send_input", "send_message", "followup_task",
	"wait", "wait_agent", "interrupt_agent", "list_agents", "close_agent",
}

func startsChild(tool string) bool { return !slices.Contains(talkingTools, tool) }
