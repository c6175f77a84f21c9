package redact

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"childlog/eventlog"
)

// Rule is a pattern of the user's: a literal text or a regular expression in
// the syntax of RE2, whose time is linear in what it reads. In JSON it is held
// against names and values as they stand for themselves, numbers included.
type Rule struct {
	Name    string // of the placeholder: 1 to 64 lower-case letters, digits, dashes
	Literal string // compared exactly
	Pattern string // RE2; exactly one of the two is set
}

// Bounds of a file of rules.
const (
	maxRules    = 1000
	maxRuleLine = 4096 // bytes
)

var ruleName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`) })

// ReadRules reads a file of rules, one a line: a name, the word literal or re2,
// and the pattern up to the end of the line, separated by blanks. Empty lines
// and those that begin with # are skipped.
//
//	codename literal Bluebird
//	ticket   re2     ACME-[0-9]{4,8}
//
// Errors: ErrInvalid, with the line but without the pattern, which may be the
// secret itself; ErrTooLarge.
func ReadRules(r io.Reader) ([]Rule, error) {
	var rules []Rule
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxRuleLine)
	n := 0
	for lines.Scan() {
		n++
		line := strings.TrimSuffix(lines.Text(), "\r")
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		name, rest := nextWord(line)
		kind, pattern := nextWord(rest)
		rule := Rule{Name: name}
		switch kind {
		case "literal":
			rule.Literal = pattern
		case "re2":
			rule.Pattern = pattern
		default:
			return nil, fmt.Errorf("%w: rules: line %d: want NAME literal TEXT or NAME re2 PATTERN", eventlog.ErrInvalid, n)
		}
		if _, err := rule.compile(); err != nil {
			return nil, fmt.Errorf("rules: line %d: %w", n, err)
		}
		if rules = append(rules, rule); len(rules) > maxRules {
			return nil, &eventlog.TooLargeError{What: "rules of a filter", Limit: maxRules, Size: uint64(len(rules))}
		}
	}
	if err := lines.Err(); err == bufio.ErrTooLong {
		return nil, &eventlog.TooLargeError{What: "line of a rule in bytes", Limit: maxRuleLine, Size: maxRuleLine + 1}
	} else if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return rules, nil
}

func nextWord(s string) (word, rest string) {
	s = strings.TrimLeft(s, " \t")
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimLeft(s[i:], " \t")
}

// compile checks a rule. Its errors do not repeat the pattern.
func (r Rule) compile() (rule, error) {
	out := rule{name: r.Name, literal: []byte(r.Literal)}
	switch {
	case !ruleName().MatchString(r.Name):
		return out, fmt.Errorf("%w: name: want 1 to 64 lower-case letters, digits and dashes, got %.40q", eventlog.ErrInvalid, r.Name)
	case (r.Literal == "") == (r.Pattern == ""):
		return out, fmt.Errorf("%w: rule %s: want a literal or a pattern that is not empty", eventlog.ErrInvalid, r.Name)
	case r.Literal != "":
		return out, nil
	}
	var err error
	if out.pattern, err = regexp.Compile(r.Pattern); err != nil {
		return out, fmt.Errorf("%w: rule %s: the pattern is no regular expression of RE2", eventlog.ErrInvalid, r.Name)
	}
	if out.pattern.MatchString("") {
		return out, fmt.Errorf("%w: rule %s: the pattern matches the empty text", eventlog.ErrInvalid, r.Name)
	}
	return out, nil
}
