package policy

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
)

// OperatorRule is one rule bound to a store: it denies tools or a place, never
// both, and never allows.
type OperatorRule struct {
	Tool   string // a pattern, see [DenyEntry]; "" if the rule denies a place
	Path   string // a place below the workspace and all below it; "" if it denies tools
	Origin Origin // the event that set the rule, cited by every denial
}

// OperatorRules are the rules bound to a store, as one session has them. Every
// descendant is bound by those captured for its ancestors and by the store's at
// its own capture, for ever; a root follows the store's present ones (see
// [Authority.Under]). The zero value is no rules. It is an immutable value.
type OperatorRules struct {
	rules []OperatorRule // in the order they were added; paths normalized
}

// NewOperatorRules returns the rules that one event sets. Errors as
// [NewDenyList] for tools and as [NormalizeEntry] for paths, and wrapped
// [ErrInvalid] for more than 1,024 rules.
func NewOperatorRules(origin Origin, tools, paths []string) (OperatorRules, error) {
	rules := make([]OperatorRule, 0, len(tools)+len(paths))
	for _, t := range tools {
		rules = append(rules, OperatorRule{Tool: t, Origin: origin})
	}
	for _, p := range paths {
		if p == "" { // or it would read as a rule without a path
			return OperatorRules{}, invalid("operator rule: got an empty path, want a place below the workspace")
		}
		rules = append(rules, OperatorRule{Path: p, Origin: origin})
	}
	return OperatorRulesOf(rules...)
}

// OperatorRulesOf returns the given rules, as [OperatorRules.Entries] had them.
// Errors as NewOperatorRules, and for a rule that states both a tool and a
// path.
func OperatorRulesOf(rules ...OperatorRule) (OperatorRules, error) {
	if len(rules) > maxNames {
		return OperatorRules{}, invalid("operator rules: got %d, want at most %d", len(rules), maxNames)
	}
	clean := slices.Clone(rules)
	for i, r := range clean {
		if r.Path == "" {
			if err := checkPattern(r.Tool); err != nil {
				return OperatorRules{}, err
			}
			continue
		}
		if r.Tool != "" {
			return OperatorRules{}, invalid("operator rule: got tool %s and path %s, want one of them", quoted(r.Tool), quoted(r.Path))
		}
		entry, err := NormalizeEntry(r.Path)
		if err != nil {
			return OperatorRules{}, err
		}
		clean[i].Path = entry
	}
	return OperatorRules{}.Union(OperatorRules{rules: clean}), nil
}

// Union returns the rules of both, those of o last; a rule that both have stays
// with the event that set it first. Nothing is ever lost by it.
func (o OperatorRules) Union(p OperatorRules) OperatorRules {
	if len(p.rules) == 0 {
		return o
	}
	return OperatorRules{rules: union(o.rules, p.rules, OperatorRule.text)}
}

// text is the rule without its origin.
func (r OperatorRule) text() string {
	if r.Path != "" {
		return "path " + strconv.Quote(r.Path)
	}
	return "tool " + lowerASCII(r.Tool)
}

// Entries returns a copy of the rules in the order they were added, never nil.
func (o OperatorRules) Entries() []OperatorRule {
	return append(make([]OperatorRule, 0, len(o.rules)), o.rules...)
}

// Len returns the number of rules.
func (o OperatorRules) Len() int { return len(o.rules) }

// Digest identifies what the rules say, not who set them when: SHA-256 over one
// line a rule, `tool pattern` in lower case or `path "entry"` quoted as Go does,
// sorted. Two stores with the same rules have the same digest.
func (o OperatorRules) Digest() [32]byte {
	lines := make([]string, len(o.rules))
	for i, r := range o.rules {
		lines[i] = r.text() + "\n"
	}
	slices.Sort(lines)
	return sha256.Sum256([]byte(strings.Join(lines, "")))
}

// Denied returns the tool rules as a deny list of kind operator.
func (o OperatorRules) Denied() DenyList {
	var d DenyList
	for _, r := range o.rules {
		if r.Path == "" {
			d.entries = append(d.entries, DenyEntry{Pattern: r.Tool, Kind: DenyOperator, Origin: r.Origin})
		}
	}
	return d
}

// Paths returns the places that are denied. To find the rule behind an entry,
// look for its Path in Entries.
func (o OperatorRules) Paths() DenyPaths {
	var entries []string
	for _, r := range o.rules {
		if r.Path != "" {
			entries = append(entries, r.Path)
		}
	}
	paths, err := ParseDenyPaths(entries)
	if err != nil { // normalized entries are accepted again unchanged
		return DenyPaths{}
	}
	return paths
}

// Covers reports whether o has every rule of p.
func (o OperatorRules) Covers(p OperatorRules) bool { return len(o.Union(p).rules) == len(o.rules) }
