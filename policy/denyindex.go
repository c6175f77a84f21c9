package policy

import (
	"slices"
	"strings"
)

// denyIndex answers what [DenyList.Match] does, from an index: a policy is
// compiled for every known tool, and a list may have a thousand rules. A rule
// is named by its place in the order in which rules are cited.
type denyIndex struct {
	entries []DenyEntry // operator rules first, else as added
	exact   map[string][]int
	begins  []denyPrefix // the rules with a wildcard

	// The rules that reach further than names; see [DenyEntry.Denies].
	noRaw, noTests, noNetwork []int
}

// denyPrefix is the part of a lowered pattern before its wildcard.
type denyPrefix struct {
	body string
	rule int
}

func indexDenied(d DenyList) denyIndex {
	x := denyIndex{exact: map[string][]int{}}
	for _, operators := range []bool{true, false} {
		for _, e := range d.entries {
			if (e.Kind == DenyOperator) == operators {
				x.entries = append(x.entries, e)
			}
		}
	}
	for i, e := range x.entries {
		pattern := lowerASCII(e.Pattern)
		if body, wild := strings.CutSuffix(pattern, "*"); wild {
			x.begins = append(x.begins, denyPrefix{body, i})
		} else {
			x.exact[pattern] = append(x.exact[pattern], i)
		}
		switch left, _ := e.ShellCap(); left {
		case GrantInspect:
			x.noTests = append(x.noTests, i)
		case GrantVerify:
			x.noRaw = append(x.noRaw, i)
		}
		if e.NoNetwork() {
			x.noNetwork = append(x.noNetwork, i)
		}
	}
	return x
}

// match returns the rules that deny a call of t, in the order to cite them.
func (x *denyIndex) match(t Tool, need GrantShell) []DenyEntry {
	var hits []int
	for _, name := range append([]string{t.Canonical}, Aliases(t.Canonical)...) {
		hits = append(hits, x.exact[name]...)
		for _, p := range x.begins {
			if strings.HasPrefix(name, p.body) {
				hits = append(hits, p.rule)
			}
		}
	}
	opaque := !t.Known || t.Class == ClassOpaque
	if opaque {
		need = GrantFull
	}
	if opaque || t.Class == ClassShell {
		if !GrantVerify.Admits(need) {
			hits = append(hits, x.noRaw...)
		}
		if !GrantInspect.Admits(need) {
			hits = append(hits, x.noTests...)
		}
	}
	if opaque || t.Class == ClassNetwork {
		hits = append(hits, x.noNetwork...)
	}
	slices.Sort(hits)
	hits = slices.Compact(hits)
	denied := make([]DenyEntry, len(hits))
	for n, i := range hits {
		denied[n] = x.entries[i]
	}
	return denied
}
