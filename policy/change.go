package policy

import (
	"fmt"
	"strconv"
	"strings"
)

// Reason says in one line, for people, what was decided and by what, such as
//
//	deny: shell: "exec_command" by role_preset, role 11111111@3; also denied by network
//
// Names and paths from the call are quoted, and cut if they are long.
func (d *Decision) Reason() string {
	var b strings.Builder
	verdict, code := d.Verdict, d.Code
	if verdict == "" {
		verdict, code = VerdictDeny, "undecided"
	}
	fmt.Fprintf(&b, "%s: %s: %s", verdict, code, quoted(d.Tool.Given))
	if d.Rule != "" {
		fmt.Fprintf(&b, " by %s", d.Rule)
	}
	if k := d.Origin.Kind; k != "" && k != OriginNone {
		fmt.Fprintf(&b, ", %s", k)
		if d.Origin.At != (Origin{}) {
			fmt.Fprintf(&b, " %v", d.Origin.At)
		}
	}
	if d.Code == CodeApprovalNever {
		b.WriteString(" (" + Never.Meaning() + ")")
	}
	for i, o := range d.Outside {
		if i == shownPaths {
			fmt.Fprintf(&b, " and %d more", len(d.Outside)-i)
			break
		}
		fmt.Fprintf(&b, "; path %s, want %s", quoted(o.Path), o.Want)
	}
	if found := d.Classified.String(); found != "" {
		b.WriteString("; " + found)
	}
	for i, a := range d.AlsoDeniedBy {
		sep := ", "
		if i == 0 {
			sep = "; also denied by "
		}
		b.WriteString(sep + string(a.Code))
	}
	return b.String()
}

// shownPaths is how many paths a line for people names.
const shownPaths = 3

// Change says in one line, for people and models, what would have to change for
// another answer to the first reason; "" for a call that is allowed. The subject
// is the one decided about. Where further reasons stand, it says how many: they
// have to be answered too.
func (d *Decision) Change(s *Subject) string {
	if d.Allowed() {
		return ""
	}
	text := d.change(s)
	switch n := len(d.AlsoDeniedBy); {
	case n == 1:
		text += "; one more reason refuses it too"
	case n > 1:
		text += "; " + strconv.Itoa(n) + " more reasons refuse it too"
	}
	return text
}

func (d *Decision) change(s *Subject) string {
	own := s.Authority.Own.Canonical()
	switch d.Code {
	case CodeMalformed:
		switch d.Rule {
		case RuleCallID:
			return "send a call id of at most 256 letters, digits or _.:/@+#=-"
		case RuleEscalation:
			return "ask for a sandbox that is strictly wider than " + s.Sandbox.Value.String() + ", with a justification"
		}
		return "send a tool name of 1 to 128 letters, digits or _.:/-"
	case CodeEvidence:
		return "nothing: an imported log is evidence and never authority"
	case CodeFenced:
		return "call from the present activation of the session"
	case CodePolicyUnreadable:
		return "repair or restore the log: no policy is guessed"
	case CodeClosed:
		return s.anew() + ": a closed session makes no calls"
	case CodeExpired:
		return s.anew() + " with a later deadline: a continuation does not restart it"
	case CodeStepsExhausted:
		return s.anew() + " with more than " + strconv.FormatUint(own.Profile.Limits.MaxSteps, 10) + " steps"
	case CodeLockdown:
		return "nothing: no child edits the blocks of its own prompt"
	case CodeOperatorDeny:
		return d.changeOperator(s)
	case CodeDenyList:
		return s.anew() + ", from where the tool is not denied: a list of denied tools never shrinks"
	case CodeToolScope:
		return "call one of the tools in scope: " + someOf(own.Profile.Tools.List())
	case CodeWriteScopeViolation:
		if own.Grant.Scope.IsEmpty() {
			return s.anew() + " with a write scope: the one it has is empty, so it writes nowhere"
		}
		if len(d.Outside) > 0 {
			return "name " + d.Outside[0].Want + " instead of " + quoted(d.Outside[0].Path)
		}
		return "use a tool that names the files it changes, within " + own.Grant.Scope.String()
	case CodePathUnknown:
		return "name every file that the call changes in path, file_path, notebook_path, paths, source, destination, edits or a patch"
	}
	return d.changeGrant(s, own.Grant)
}

func (d *Decision) changeOperator(s *Subject) string {
	lift := "an operator lifts the rule"
	if s.Child {
		lift += " and the child is delegated again: it keeps the rules of its capture"
	}
	if d.Rule == RuleOperatorPath && len(d.Outside) > 0 {
		return "name " + d.Outside[0].Want + ", or " + lift
	}
	return lift
}

// changeGrant says what has to change for the codes of what was granted.
func (d *Decision) changeGrant(s *Subject, g Grant) string {
	again := s.anew() + " with "
	if d.Origin.Kind == OriginRole { // under this one it would be cut again
		again = s.anew() + " in another role, with "
	}
	switch d.Code {
	case CodeFiles:
		if g.Files == FilesRead {
			return again + "files write instead of read"
		}
		return again + "files read or write instead of none"
	case CodeShell:
		if g.Shell == GrantNone {
			return again + "a shell"
		}
		if d.Classified.Named() {
			return "make a call of which " + d.Classified.By + " finds that it needs at most " + g.Shell.String() + ", or " + again + "more shell than that"
		}
		return "classify the command as needing at most " + g.Shell.String() + ", or " + again + "more shell than that"
	case CodeNetwork:
		if d.Rule == RuleSandboxNetwork {
			return d.changeSandbox(s)
		}
		return again + "network"
	case CodeSpawn:
		if g.Spawn {
			return again + "more children"
		}
		return again + "leave to delegate"
	case CodeOpaque:
		return "declare the class of the tool in the palette, or " + again + "everything that an unknown tool could do"
	case CodeSandbox:
		return d.changeSandbox(s)
	case CodeApprovalNever:
		if s.Child {
			return "nothing in this session: report what could not be done, and delegate again with a wider sandbox"
		}
		return "switch the approvals of the session to ask"
	case CodeNeedsApproval:
		return "a person allows this call once"
	}
	return "decide the call"
}

func (d *Decision) changeSandbox(s *Subject) string {
	switch d.Rule {
	case RulePathForm, RuleStoreDirectory, RuleProtectedName:
		if len(d.Outside) > 0 {
			return "name " + d.Outside[0].Want + " instead of " + quoted(d.Outside[0].Path)
		}
	case RuleSandboxBound:
		return "ask for no more than " + s.Bound.String() + ", or " + s.anew()
	}
	wider := "switch the sandbox to more than " + s.Sandbox.Value.String() + ", within " + s.Bound.String()
	if s.Sandbox.Value.Equal(s.Bound) {
		wider = s.anew() + " with more than " + s.Sandbox.Value.String()
	}
	if len(d.Outside) > 0 && d.Rule == RuleSandboxRoots {
		return "name " + d.Outside[0].Want + ", or " + wider
	}
	return wider
}

// anew is what gives somebody more than a session may ever have.
func (s *Subject) anew() string {
	if s.Child {
		return "delegate again"
	}
	return "start another root"
}

// someOf lists the first of many names.
func someOf(names []string) string {
	const most = 8
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > most:
		return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(n-most) + " more"
	}
	return strings.Join(names, ", ")
}
