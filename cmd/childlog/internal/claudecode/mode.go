package claudecode

import (
	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
)

// The permission modes of Claude Code.
const (
	modeDefault = "default"           // asks for what no rule allows
	modeEdits   = "acceptEdits"       // edits are not asked about
	modePlan    = "plan"              // no edits
	modeBypass  = "bypassPermissions" // nothing is asked, everything runs
	modeDont    = "dontAsk"           // what would be asked about is refused
	modeAuto    = "auto"              // a classifier answers instead of a person
)

// isMode reports whether a mode is one that is known.
func isMode(mode string) bool {
	switch mode {
	case modeDefault, modeEdits, modePlan, modeBypass, modeDont, modeAuto:
		return true
	}
	return false
}

// approvalOf is what a permission mode is worth as an approval policy. Two
// modes are what childlog's two values mean. The others are kept by name and
// count as ask, as all foreign values do: childlog has no value for "nobody is
// asked and it runs", and takes none for one.
func approvalOf(mode string) policy.Approval {
	switch mode {
	case modeDefault:
		return policy.Ask
	case modeDont:
		return policy.Never
	}
	return policy.Approval(importer.Code(mode))
}

// claimOf marks the policy as concluded, and keeps the mode's own name.
func claimOf(mode string) string { return importer.Code("permission-mode:" + mode) }

// stateMode takes a mode that the lines state, if it is another than before:
// interactive sessions repeat it after every turn. No sandbox follows from it,
// whatever the mode: none is recorded.
func (m *mapper) stateMode(mode string) (facts eventlog.Facts, changed bool) {
	if mode == "" || mode == m.mode {
		return nil, false
	}
	m.mode = mode
	return eventlog.ImportedApprovalFacts(approvalOf(mode), claimOf(mode)), true
}

// changeMode states the permission mode of a line that is something else.
func (m *mapper) changeMode(e *entry) {
	if facts, changed := m.stateMode(str(e.permissionMode)); changed {
		m.add(eventlog.TypeApprovalPolicy, facts)
	}
}

// modeLine is a line that states the permission mode and nothing else.
func (m *mapper) modeLine(out *mapped, own eventlog.NewEvent) eventlog.NewEvent {
	e := out.e
	m.remember(e)
	if str(e.permissionMode) == "" {
		out.malformed = true
		m.file.kept.Malformed++
		m.report(importer.CodeMalformed, "permission-mode without a mode; kept as import/other")
		return m.other(own, e)
	}
	facts, changed := m.stateMode(str(e.permissionMode))
	if !changed {
		return m.other(own, e)
	}
	own.Type, own.Facts = eventlog.TypeApprovalPolicy, facts
	return own
}
