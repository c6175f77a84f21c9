package policy

import "strings"

// DenyBy says how a deny rule reached a call. The strings are recorded in logs.
type DenyBy string

// The ways, in the order in which a rule is tried.
const (
	DenyByName  DenyBy = "name"  // the pattern matches the tool's name
	DenyByAlias DenyBy = "alias" // it matches an alias of the name
	DenyByClass DenyBy = "class" // it takes away what every tool of the class needs
)

// DenyMatch is a rule that denies a call, and how.
type DenyMatch struct {
	Entry DenyEntry
	By    DenyBy
	Via   string // the alias, or the tool whose denial counts for the class; "" by name
}

// The tools whose denial says more than a name: whoever denies the one shell
// tool they know means the shell, whatever another harness calls it.
const (
	networkTool = "fetch_url"  // denied: no network
	testsTool   = "run_tests"  // denied: no shell but inspect
	rawTool     = "exec_shell" // denied: no raw shell
)

// Aliases returns the other names under which deny rules see a tool: one step,
// never the alias of an alias, so that denying read does not deny write by way
// of file. Aliases are for denying alone; an allow never uses them. The name is
// compared with A to Z lowered. The names are those of CodeWhale, which renamed
// its tools and kept the rules of its users.
func Aliases(name string) []string {
	switch lowerASCII(name) {
	case "read", "read_file", "write", "write_file", "edit", "edit_file":
		return []string{"file"}
	case "file":
		return []string{"read", "read_file", "write", "write_file", "edit", "edit_file"}
	case "bash":
		return []string{rawTool}
	case rawTool:
		return []string{"bash"}
	}
	return nil
}

// Matches reports whether the pattern matches a tool name, compared with A to Z
// lowered, without its aliases.
func (e DenyEntry) Matches(name string) bool {
	body, wild := strings.CutSuffix(lowerASCII(e.Pattern), "*")
	name = lowerASCII(name)
	if wild {
		return strings.HasPrefix(name, body)
	}
	return name == body
}

// names reports whether the entry matches the name or one of its aliases, and
// which alias.
func (e DenyEntry) names(name string) (via string, ok bool) {
	if e.Matches(name) {
		return "", true
	}
	for _, alias := range Aliases(name) {
		if e.Matches(alias) {
			return alias, true
		}
	}
	return "", false
}

// ShellCap returns the most shell that is left where e is denied, and the tool
// whose denial says so; GrantFull and "" if it takes none away.
func (e DenyEntry) ShellCap() (left GrantShell, via string) {
	if _, ok := e.names(testsTool); ok {
		return GrantInspect, testsTool
	}
	if _, ok := e.names(rawTool); ok {
		return GrantVerify, rawTool
	}
	return GrantFull, ""
}

// NoNetwork reports whether denying e leaves no network.
func (e DenyEntry) NoNetwork() bool {
	_, ok := e.names(networkTool)
	return ok
}

// Denies reports whether e denies a call of t, and how. Need is the shell level
// of the call: what its classifier's verdict says, [GrantFull] without one; see
// [GrantShell.Admits]. It counts where the rule reaches the class: a rule on
// exec_shell denies write_stdin and any unknown tool, which may be a shell, but
// not a command that was found to change nothing. By name or alias the call is
// denied whatever it needs.
func (e DenyEntry) Denies(t Tool, need GrantShell) (DenyMatch, bool) {
	if via, ok := e.names(t.Canonical); ok {
		if via == "" {
			return DenyMatch{Entry: e, By: DenyByName}, true
		}
		return DenyMatch{Entry: e, By: DenyByAlias, Via: via}, true
	}
	// What is not known for certain is held to the rules for every class.
	opaque := !t.Known || t.Class == ClassOpaque
	if opaque || t.Class == ClassShell {
		if opaque {
			need = GrantFull
		}
		if left, via := e.ShellCap(); !left.Admits(need) {
			return DenyMatch{Entry: e, By: DenyByClass, Via: via}, true
		}
	}
	if (opaque || t.Class == ClassNetwork) && e.NoNetwork() {
		return DenyMatch{Entry: e, By: DenyByClass, Via: networkTool}, true
	}
	return DenyMatch{}, false
}

// Match returns every rule that denies a call of t, operator rules first, else
// in the order they were added: the first is the one to cite, the others are
// also_denied_by. Nil if none does.
func (d DenyList) Match(t Tool, need GrantShell) []DenyMatch {
	var operators, others []DenyMatch
	for _, e := range d.entries {
		m, denied := e.Denies(t, need)
		switch {
		case denied && e.Kind == DenyOperator:
			operators = append(operators, m)
		case denied:
			others = append(others, m)
		}
	}
	return append(operators, others...)
}

// Effects returns what the rules take away beyond names: the rule that leaves
// no network, and the rules that leave less shell, each the first to do so,
// operator rules before others; nil where none does.
func (d DenyList) Effects() (network, tests, raw *DenyEntry) {
	for _, operators := range []bool{true, false} {
		for _, e := range d.entries {
			if (e.Kind == DenyOperator) != operators {
				continue
			}
			left, _ := e.ShellCap()
			network = first(network, e, e.NoNetwork())
			tests = first(tests, e, left == GrantInspect)
			raw = first(raw, e, left == GrantVerify)
		}
	}
	return network, tests, raw
}

func first(have *DenyEntry, e DenyEntry, applies bool) *DenyEntry {
	if have == nil && applies {
		return &e
	}
	return have
}
