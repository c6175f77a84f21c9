package install

import (
	"path/filepath"
	"slices"
	"strings"

	"childlog/cmd/childlog/internal/guard"
)

// Command is what a hook runs.
type Command struct {
	Exe     string // absolute
	Store   string // absolute
	KeyFile string // absolute, or "": the key is in the store
	Profile string // of the root that a session gets
	Policy  string // absolute: a document that says so instead of a profile, or ""
	Observe bool   // record and never block

	rest []string // what a person added to a hook of ours
}

// line is the command for a shell. Both harnesses hand it to one.
func (c Command) line(h *Harness) string {
	words := []string{c.Exe, "--store", c.Store}
	if c.KeyFile != "" {
		words = append(words, "--key-file", c.KeyFile)
	}
	words = append(words, "guard", h.Name)
	if c.Policy != "" {
		words = append(words, "--policy", c.Policy)
	} else if c.Profile != "" {
		words = append(words, "--profile", c.Profile)
	}
	if c.Observe {
		words = append(words, "--observe")
	}
	words = append(words, c.rest...)
	for i, w := range words {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}

// program is the name that childlog has wherever it was installed.
const program = "childlog"

// parseCommand reads a command line that install wrote, now or in another
// version; exe is this executable, whatever it is called. False for every other
// line.
func parseCommand(h *Harness, line, exe string) (Command, bool) {
	words, ok := split(line)
	if !ok || len(words) < 3 || filepath.Base(words[0]) != program && words[0] != exe {
		return Command{}, false
	}
	c := Command{Exe: words[0]}
	args := words[1:]
	guard := false
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		take := func() string {
			if !has && i+1 < len(args) {
				i++
				return args[i]
			}
			return value
		}
		switch name {
		case "--store":
			c.Store = take()
		case "--key-file":
			c.KeyFile = take()
		case "--profile":
			c.Profile = take()
		case "--policy":
			c.Policy = take()
		case "--observe":
			c.Observe = !has || value != "false"
		case "guard":
			if guard = i+1 < len(args) && args[i+1] == h.Name; !guard {
				return Command{}, false
			}
			i++
		default:
			c.rest = append(c.rest, args[i])
		}
	}
	return c, guard
}

// mentions reports whether a command that is not ours seems to run a guard: it
// names childlog and a guard, or has the words of one, whatever its executable is
// called. The words of guard come one after the other, after those of a command
// line that childlog takes, so that a script of that name is not taken for one.
func mentions(line string) bool {
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n;|&()'\"`$", r) })
	if slices.ContainsFunc(words, func(word string) bool { return filepath.Base(word) == program }) && strings.Contains(line, "guard") {
		return true
	}
	for i, word := range words {
		if i > 0 && word == "guard" && i+1 < len(words) && slices.ContainsFunc(guard.Harnesses(), func(h guard.Harness) bool { return words[i+1] == string(h) }) {
			return true
		}
	}
	return false
}

// plain are the characters that mean themselves in every shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_"

// quote writes a word for a POSIX shell.
func quote(word string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// split takes a line apart that holds words and quotes only. What a shell would
// expand or run makes it no such line.
func split(line string) (words []string, ok bool) {
	var word strings.Builder
	open := false // a word has begun, though it may be empty
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ' ' || c == '\t':
			if open {
				words, open = append(words, word.String()), false
				word.Reset()
			}
			continue
		case c == '\'':
			end := strings.IndexByte(line[i+1:], '\'')
			if end < 0 {
				return nil, false
			}
			word.WriteString(line[i+1 : i+1+end])
			i += 1 + end
		case c == '"':
			end := strings.IndexAny(line[i+1:], "\"\\$`")
			if end < 0 || line[i+1+end] != '"' {
				return nil, false
			}
			word.WriteString(line[i+1 : i+1+end])
			i += 1 + end
		case c == '\\':
			if i++; i == len(line) || line[i] == '\n' {
				return nil, false
			}
			word.WriteByte(line[i])
		case c < 0x80 && !strings.ContainsRune(plain, rune(c)):
			return nil, false
		default:
			word.WriteByte(c)
		}
		open = true
	}
	if open {
		words = append(words, word.String())
	}
	return words, true
}
