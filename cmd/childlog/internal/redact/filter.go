package redact

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Options says what is replaced besides what the built-in detectors know.
type Options struct {
	Rules []Rule // of the user, see ReadRules
	Roots []Root // paths that become <root:ID>
	Homes bool   // home directories become <root:home>
}

// Filter replaces secrets. It is immutable: the same input gives the same
// output, and it may be used by many at once.
type Filter struct {
	rules []rule
	roots []Root
	homes bool
	names map[string]bool // of detectors and rules
}

// New makes a filter. Errors: ErrInvalid, with the rule or root that is wrong.
func New(o Options) (*Filter, error) {
	f := &Filter{homes: o.Homes, names: maps.Clone(builtin())}
	for _, r := range o.Rules {
		compiled, err := r.compile()
		if err != nil {
			return nil, err
		}
		f.rules, f.names[r.Name] = append(f.rules, compiled), true
	}
	var err error
	f.roots, err = sortedRoots(o.Roots)
	return f, err
}

// span is a part of a text that a detector claims, with its name. A more
// specific one gives a merged span its name.
type span struct {
	from, end int
	name      string
	rank      rank
}

type rank uint8

const (
	generic  rank = iota // told by a name beside it
	specific             // told by its own shape
	own                  // told by a rule of the user
)

// placeholder is what stands in place of what a detector found.
func placeholder(name string) string { return mark + name + "]" }

const mark = "[redacted:"

// longestMark is the most bytes of a placeholder.
const longestMark = len(mark) + 64 + 1

// placeholderEnd returns the end of the placeholder that begins at i, -1 if none
// does. One of a name that no detector has is other text: it hides nothing.
func placeholderEnd(t []byte, i int, names map[string]bool) int {
	if !bytes.HasPrefix(t[i:], []byte(mark)) {
		return -1
	}
	name := t[i+len(mark) : min(len(t), i+longestMark)]
	if end := bytes.IndexByte(name, ']'); end > 0 && names[string(name[:end])] {
		return i + len(mark) + end + 1
	}
	return -1
}

// builtin names the detectors.
var builtin = sync.OnceValue(func() map[string]bool {
	names := set("private-key jwt url-userinfo connection-string bearer-token basic-auth authorization cookie api-key-header azure-key azure-client-secret " +
		"signed-url telegram-token login-option aws-secret-key password salt assigned-token assigned-key assigned-secret")
	for _, k := range tokens() {
		names[k.name] = true
	}
	return names
})

// lead is what a literal leads to.
type lead struct {
	find func(t []byte, at, n int) (span, bool)
	run  bool // it reads a run: from inside of one that was read nothing else comes out
	name bool // it judges the name that the literal is part of
}

// automaton finds all literals, and has what each leads to. It is made when the
// first text is filtered: most commands filter none, and a hook is a process.
var automaton = sync.OnceValues(func() (*finder, []lead) {
	var literals []string
	var leads []lead
	add := func(literal string, l lead) {
		literals, leads = append(literals, strings.ToLower(literal)), append(leads, l)
	}
	for _, k := range tokens() {
		add(k.prefix, lead{find: k.find, run: true})
	}
	for _, s := range shapes() {
		add(s.literal, s.lead)
	}
	for _, l := range nameLiterals {
		add(l, lead{find: assignment, name: true})
	}
	return newFinder(literals), leads
})

// Text filters a text, which need not be UTF-8. The result is t itself if
// nothing was found.
func (f *Filter) Text(t []byte, c Counts) []byte {
	return f.text(t, c, 0)
}

// String filters a label or another short text.
func (f *Filter) String(s string, c Counts) string {
	if out := f.Text([]byte(s), c); string(out) != s {
		return string(out)
	}
	return s
}

// Bytes filters a content of which nothing is known: as JSON if it is JSON,
// else as text.
func (f *Filter) Bytes(t []byte, c Counts) []byte {
	if out, err := f.JSON(t, c); err == nil {
		return out
	}
	return f.Text(t, c)
}

// longestAssignment is the most bytes from the literal in a name to the value.
const longestAssignment = longestName + 32

// longestRun is how many bytes a detector may read once more, from a literal
// inside of a run that it has read.
const longestRun = 256

// text filters at a level of base64 within base64.
func (f *Filter) text(t []byte, c Counts, level int) []byte {
	var spans []span
	var read map[int]int // by literal that leads to a run: how far that was read
	inside := 0          // the end of the last value that nothing quotes
	table, leads := automaton()
	table.each(t, func(literal, start int) {
		// A value that begins inside of such a value ends with it.
		if start < read[literal] || leads[literal].name && start+longestAssignment < inside {
			return
		}
		s, ok := leads[literal].find(t, start, table.length[literal])
		if ok && leads[literal].name && bytes.IndexByte([]byte("\"'`"), t[s.from-1]) < 0 {
			inside = s.end
		}
		if leads[literal].run && s.end-start > longestRun {
			if read == nil {
				read = map[int]int{}
			}
			read[literal] = s.end
		}
		if ok && s.end > s.from && !f.inPlaceholder(t, s.from) {
			spans = append(spans, s)
		}
	})
	for i := range f.rules {
		spans = f.rules[i].find(f, t, spans)
	}
	out := replace(t, merge(spans), c)
	out = f.wrapped(out, c, level)
	return f.paths(out, c)
}

// inPlaceholder reports whether i stands inside of what an earlier filtering
// put there: filtering twice changes nothing.
func (f *Filter) inPlaceholder(t []byte, i int) bool {
	from := max(0, i-longestMark)
	begin := bytes.LastIndex(t[from:min(len(t), i+len(mark))], []byte(mark))
	return begin >= 0 && placeholderEnd(t, from+begin, f.names) > i
}

// merge sorts spans and unites what overlaps: nothing that any detector found
// stays.
func merge(spans []span) []span {
	slices.SortStableFunc(spans, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.end - a.end
	})
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.from < out[n-1].end {
			last := &out[n-1]
			last.end = max(last.end, s.end)
			if s.rank > last.rank || s.rank == last.rank && s.from == last.from && s.end == last.end { // of two prefixes the longer one ends later
				last.name, last.rank = s.name, s.rank
			}
			continue
		}
		out = append(out, s)
	}
	return out
}

func replace(t []byte, spans []span, c Counts) []byte {
	if len(spans) == 0 {
		return t
	}
	var out []byte
	at := 0
	for _, s := range spans {
		out = append(append(out, t[at:s.from]...), placeholder(s.name)...)
		at = s.end
		c.add(s.name)
	}
	return append(out, t[at:]...)
}

// rule is a compiled rule of the user.
type rule struct {
	name    string
	literal []byte
	pattern *regexp.Regexp // nil: a literal
}

func (r *rule) find(f *Filter, t []byte, spans []span) []span {
	if r.pattern != nil {
		for _, m := range r.pattern.FindAllIndex(t, -1) {
			if m[1] > m[0] && !f.inPlaceholder(t, m[0]) {
				spans = append(spans, span{m[0], m[1], r.name, own})
			}
		}
		return spans
	}
	for at := 0; ; {
		i := bytes.Index(t[at:], r.literal)
		if i < 0 {
			return spans
		}
		if from := at + i; !f.inPlaceholder(t, from) {
			spans = append(spans, span{from, from + len(r.literal), r.name, own})
		}
		at += i + len(r.literal)
	}
}
