package page

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"childlog/cmd/childlog/internal/review"
)

// words are what the template calls.
func words() template.FuncMap {
	return template.FuncMap{
		"title": title, "short": short, "when": when, "number": number, "plural": plural, "join": func(list []string) string { return strings.Join(list, ", ") },
		"len64": func(list []review.Exception) uint64 { return uint64(len(list)) }, "state": state, "tone": tone, "unproven": unproven, "seqs": seqs, "money": money, "run": run, "found": found, "same": same, "deref": deref, "gist": gist, "denied": denied, "last": func(i int, chain []review.Link) bool { return i == len(chain)-1 }, "add": func(a, b uint64) uint64 { return a + b },
	}
}

// short is enough of an id to tell it from others.
func short(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}

// when shows a time to the second. What is no time stands as it is; an imported
// log that states none has the beginning of 1970.
func when(at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	switch {
	case err != nil:
		return at
	case t.UnixNano() == 0:
		return "not recorded"
	}
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// number writes a number in groups of three digits.
func number(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:] // narrow no-break space
	}
	return s
}

// plural counts a regular noun.
func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(n) + " " + noun + "s"
}

// money shows millionths of a unit that the log does not name.
func money(micros uint64) string {
	return fmt.Sprintf("%s.%06d", number(micros/1e6), micros%1e6)
}

// state puts a state of trust into words.
func state(of string) string {
	switch of {
	case review.StateVerified:
		return "Verified"
	case review.StateRedacted:
		return "Verified, with redactions"
	case review.StateClaimed:
		return "Claimed"
	}
	return "Incomplete"
}

// tone is the class of a state or of a moment: one of the classes of the style
// sheet, whatever a review holds.
func tone(s string) string {
	switch s {
	case review.StateVerified, "good":
		return "good"
	case review.StateRedacted, "note":
		return "note"
	case review.StateClaimed, "warn":
		return "warn"
	case "":
		return "plain"
	}
	return "bad"
}

// unproven is what is added to a state, "" if nothing is.
func unproven(r *review.Review) string {
	if r.Trust.Unproven() {
		return ", " + review.Unproven
	}
	return ""
}

// denied counts the calls of all codes, those of rejected questions too.
func denied(list []review.Denied) (n uint64) {
	for i := range list {
		n += list[i].Count
	}
	return n
}

// seqs lists a few seqs and counts the others.
func seqs(list []uint64, of uint64) string {
	const most = 12
	var parts []string
	for i, n := range list {
		if i == most {
			break
		}
		parts = append(parts, strconv.FormatUint(n, 10))
	}
	out := strings.Join(parts, ", ")
	if shown := uint64(len(parts)); of > shown {
		out += fmt.Sprintf(" and %s more", number(of-shown))
	}
	return out
}

// run lists the checks that were made, or that were not.
func run(checks []review.Check, made bool) (out []review.Check) {
	for _, c := range checks {
		if c.Run == made {
			out = append(out, c)
		}
	}
	return out
}

// found is how often something that was looked for was found.
func found(list []review.Exception, code string) uint64 {
	for i := range list {
		if list[i].Code == code {
			return list[i].Count
		}
	}
	return 0
}

// same reports whether nothing happened to a field on its way down.
func same(f review.ReceiptField) bool { return f.Ceiling == f.Requested && f.Requested == f.Granted }

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// gist counts the fields of a receipt that were cut.
func gist(fields []review.ReceiptField) (cut uint64) {
	for i := range fields {
		if fields[i].Cut() {
			cut++
		}
	}
	return cut
}
