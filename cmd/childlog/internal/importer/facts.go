package importer

import (
	"strings"

	"childlog/eventlog"
)

// Unrecorded stands in facts that a type requires and a log does not have.
const Unrecorded = "unrecorded"

// Facts builds facts of names and values that may stand as such already. What
// can't be encoded becomes facts that no type's schema takes, never half there.
func Facts(pairs ...any) eventlog.Facts {
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	f, err := eventlog.MakeFacts(m)
	if err != nil {
		return eventlog.Facts{0x80}
	}
	return f
}

// Bounds of what is taken out of a foreign log for names and labels, in bytes.
const (
	maxID   = 1024
	maxText = 4096
)

// Bounded keeps an id of reasonable length as it is, and digests a longer one.
func Bounded(id string) string {
	if len(id) > maxID {
		return Code(id)
	}
	return id
}

// Clip cuts a text for display at a character.
func Clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "")
}

// minMention keeps a short id, which may be any word, from being found.
const minMention = 6

// Mentions reports whether a text names an id, as a word of its own.
func Mentions(text, id string) bool {
	inner := func(c byte) bool {
		return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	for len(id) >= minMention {
		i := strings.Index(text, id)
		if i < 0 {
			return false
		}
		end := i + len(id)
		if (i == 0 || !inner(text[i-1])) && (end == len(text) || !inner(text[end])) {
			return true
		}
		text = text[end:]
	}
	return false
}
