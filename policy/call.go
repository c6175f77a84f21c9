package policy

import (
	"cmp"
	"strings"
)

// Call is one tool call as it is decided: its final arguments have been read
// once, so that deciding looks at no map. Build it with [NewCall]. It is a
// value; its slices are read and never written.
type Call struct {
	ID   string // of the call, a code of 1 to 256 characters; "" is accepted and cannot be recorded
	Tool string // as the harness sends it

	// Paths are all paths that the arguments name, as given, and PathsKnown
	// says that there are no others; see [CallPaths].
	Paths      []string
	PathsKnown bool

	// Verdict is what a named classifier found a shell command to need.
	Verdict Classified

	// Escalation asks for one call beyond the sandbox; nil asks for nothing.
	Escalation *Escalation
}

// NewCall reads a call from its final arguments. It is total: what is wrong
// with a call is the decision's to say.
func NewCall(id, tool string, args map[string]any) Call {
	paths, known := CallPaths(tool, args)
	return Call{ID: id, Tool: tool, Paths: paths, PathsKnown: known}
}

// Classified is the verdict of a classifier on a shell command. Without the
// name of who said so, or with an unknown need, the call needs a full shell.
type Classified struct {
	By   string // the classifier, with its version; names of [CheckToolName]
	Need GrantShell

	// Why says for what the command was found to need more than inspect, in a
	// code of the classifier's own, which is recorded; Text says it in words that
	// may be the command's, so it is content where it is kept. Both may be "".
	Why  string
	Text string
}

// Shell returns the level of shell that the call needs.
func (c Classified) Shell() GrantShell {
	if !c.Named() || c.Need != GrantInspect && c.Need != GrantVerify {
		return GrantFull
	}
	return c.Need
}

// Named reports whether somebody said what the call needs: a verdict that can be
// recorded, whatever came of it.
func (c Classified) Named() bool { return c.By != "" && CheckToolName(c.By) == nil }

// String says in words what was found, "" if nobody looked.
func (c Classified) String() string {
	if !c.Named() {
		return ""
	}
	s := c.By + " found that the command needs " + string(c.Shell())
	if why := cmp.Or(c.Text, c.Why); why != "" {
		s += ": " + why
	}
	return s
}

// Escalation asks that one call runs under a wider sandbox. It is never a
// change of policy: what comes of it is at most one call, allowed once.
type Escalation struct {
	Sandbox       Sandbox // under which the call wants to run; strictly wider than the present one
	Justification string  // for the person who is asked; free text, so it is content where it is kept
}

// Check refuses an escalation that asks for nothing more than effective gives
// or says not why. Wrapped [ErrInvalid].
func (e Escalation) Check(effective Sandbox) error {
	if err := e.Sandbox.Validate(); err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(e.Justification) == "":
		return invalid("escalation: got no justification, want one for whoever is asked")
	case !effective.Within(e.Sandbox) || e.Sandbox.Within(effective):
		return invalid("escalation: got %v, want strictly more than %v", e.Sandbox, effective)
	}
	return nil
}
