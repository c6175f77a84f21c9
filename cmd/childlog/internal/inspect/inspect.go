package inspect

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"childlog/policy"
)

// Name is the classifier and its version, as it stands in records. The number
// goes up with every change of what is admitted, so that an auditor knows by
// which table a command was judged.
const Name = "childlog-inspect/1"

// The limits of what is read.
const (
	MaxText     = 16 << 10 // of a command, bytes
	MaxCommands = 64       // in one text
	MaxWords    = 4096     // in one text
)

// Why says in a code for what a command was not admitted. The strings are
// recorded in logs, so they are never renamed or reused.
type Why string

// The codes.
const (
	WhyArguments  Why = "arguments"  // of the call: no command, or something beside it that is not known
	WhySize       Why = "size"       // more than is read
	WhySyntax     Why = "syntax"     // not the plain language that all shells share
	WhyExpansion  Why = "expansion"  // the shell would put something in its place
	WhyRedirect   Why = "redirect"   // to or from something that is not admitted
	WhyCommand    Why = "command"    // not in the table
	WhyOption     Why = "option"     // of a command in the table
	WhyOperand    Why = "operand"    // likewise
	WhyScript     Why = "script"     // of a command that has a language of its own
	WhyRepository Why = "repository" // git would not run in a repository that is known to run nothing
)

// Refusal says why a command needs a full shell.
type Refusal struct {
	Why  Why
	Of   string // the command of the table that is meant, "" if none is
	Text string // for people, with words of the command: content where it is kept
}

// Code is what is recorded: the code and the table's own name for the command,
// and nothing of what the call says.
func (r *Refusal) Code() string {
	if r.Of == "" {
		return string(r.Why)
	}
	return string(r.Why) + ":" + r.Of
}

// Error makes a Refusal an error.
func (r *Refusal) Error() string { return r.Text }

// Repository is a use of git: what runs depends on the repository it finds.
type Repository struct {
	Dir   string // an absolute path without links undone; "": the working directory of the call
	Index bool   // it may refresh the index, and so run the hook that is told of it
	Subs  bool   // it may look into submodules
}

// Result is what became of a command. Without a Refusal it is admitted, as far
// as its repositories run nothing; see package gitrepo.
type Result struct {
	Refused      *Refusal
	Repositories []Repository
}

// Verdict puts a result into the form of a call.
func (r *Result) Verdict() policy.Classified {
	if r.Refused != nil {
		return policy.Classified{By: Name, Need: policy.GrantFull, Why: r.Refused.Code(), Text: r.Refused.Text}
	}
	return policy.Classified{By: Name, Need: policy.GrantInspect}
}

// Command judges a text that bash, zsh or sh will run.
func Command(text string) Result {
	commands, err := parse(text)
	if err != nil {
		return Result{Refused: err}
	}
	return judge(commands)
}

// Argv judges a command that is run without a shell, or by bash, zsh or sh with
// -c or -lc and a text.
func Argv(argv []string) Result {
	if len(argv) == 3 && isShell(argv[0]) && (argv[1] == "-c" || argv[1] == "-lc") {
		return Command(argv[2])
	}
	var c command
	size := 0
	for _, text := range argv {
		if size += len(text); size > MaxText || len(c.words) == MaxWords {
			return Result{Refused: tooMuch()}
		}
		if !isText(text) {
			return Result{Refused: &Refusal{Why: WhySyntax, Text: "a word has characters that are not printed"}}
		}
		c.words = append(c.words, word{text: text, quoted: true})
	}
	return judge([]command{c})
}

func isShell(name string) bool {
	switch name {
	case "bash", "zsh", "sh", "/bin/bash", "/bin/zsh", "/bin/sh", "/usr/bin/bash", "/usr/bin/zsh", "/usr/bin/sh":
		return true
	}
	return false
}

// isTool reports whether the command of a tool is judged, by the names that the
// harnesses use. Other shells have other languages, and what feeds or controls a
// running command has none.
func isTool(name string) bool {
	switch name {
	case "Bash", "bash", "exec_shell", "shell", "shell_command", "local_shell", "container.exec", "exec_command", "unified_exec":
		return true
	}
	return false
}

// Call judges the arguments of a call of a shell tool. Beside the command only
// what is known to change nothing may be said: an argument of another version
// could name another shell, other input or another place. Dir is the directory
// that the arguments name, "" if they name none.
func Call(tool string, args map[string]any) Result {
	if !isTool(tool) {
		return Result{Refused: &Refusal{Why: WhyArguments, Text: "commands of this tool are not classified"}}
	}
	var given any
	dir := ""
	for _, key := range slices.Sorted(maps.Keys(args)) { // the first that is wrong is told
		v, ok := args[key], true
		switch key {
		case "command", "cmd":
			ok = given == nil && v != nil
			given = v
		case "description", "justification":
			_, ok = v.(string)
		case "timeout", "timeout_ms", "yield_time_ms", "max_output_tokens":
			_, ok = v.(float64)
		case "login", "run_in_background":
			_, ok = v.(bool)
		case "tty", "dangerouslyDisableSandbox": // a terminal has pagers
			on, isBool := v.(bool)
			ok = isBool && !on
		case "shell":
			name, isText := v.(string)
			ok = isText && isShell(name)
		case "workdir":
			dir, ok = v.(string)
			ok = ok && dir != ""
		default:
			ok = false
		}
		if !ok {
			return Result{Refused: &Refusal{Why: WhyArguments, Text: "the argument " + quoted(key) + " is not known to change nothing"}}
		}
	}
	var r Result
	switch c := given.(type) {
	case string:
		r = Command(c)
	case []any:
		argv := make([]string, len(c))
		for i, a := range c {
			text, ok := a.(string)
			if !ok {
				return Result{Refused: &Refusal{Why: WhyArguments, Text: "the command is no list of texts"}}
			}
			argv[i] = text
		}
		r = Argv(argv)
	default:
		return Result{Refused: &Refusal{Why: WhyArguments, Text: "there is no command"}}
	}
	for i := range r.Repositories {
		if r.Repositories[i].Dir == "" && dir != "" {
			r.Repositories[i].Dir = dir
		}
		if d := r.Repositories[i].Dir; d != "" && !strings.HasPrefix(d, "/") {
			return Result{Refused: &Refusal{WhyRepository, "git", "git in a relative directory: nobody knows to what it is relative; name an absolute one"}}
		}
	}
	return r
}

func judge(commands []command) Result {
	var r Result
	moved := false
	for i := range commands {
		uses, err := commands[i].judge()
		if err != nil {
			return Result{Refused: err}
		}
		for _, u := range uses {
			if moved && u.Dir == "" { // whatever lies there says what runs
				return Result{Refused: &Refusal{WhyRepository, "git", "git after cd: say `git -C DIR` with an absolute directory instead"}}
			}
			r.Repositories = append(r.Repositories, u)
		}
		moved = moved || commands[i].words[0].text == "cd"
	}
	return r
}

// judge holds one command against the table.
func (c *command) judge() ([]Repository, *Refusal) {
	if len(c.words) == 0 {
		return nil, &Refusal{Why: WhySyntax, Text: "there is no command"}
	}
	name := &c.words[0]
	if name.expands {
		return nil, &Refusal{Why: WhyExpansion, Text: "the shell would make up the name of the command"}
	}
	s := find(name.text)
	if s == nil {
		return nil, &Refusal{Why: WhyCommand, Text: quoted(name.text) + " is not in the table of commands that change nothing"}
	}
	if s.judge != nil {
		return s.judge(s, c.words[1:])
	}
	return nil, s.check(c.words[1:])
}

func tooMuch() *Refusal {
	return &Refusal{Why: WhySize, Text: "the command is longer than " + strconv.Itoa(MaxText) + " bytes, " + strconv.Itoa(MaxCommands) + " commands or " + strconv.Itoa(MaxWords) + " words"}
}

// quoted shows a word of a command, cut if it is long.
func quoted(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	if len(s) > 40 {
		s = strings.ToValidUTF8(s[:37], "") + "..."
	}
	return "`" + s + "`"
}
