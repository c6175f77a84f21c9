package inspect

import (
	"strings"
)

// notNumbered keeps cd to names: zsh takes -2 and +2 for its stack of directories.
func notNumbered(_ int, w word) *Refusal {
	if strings.HasPrefix(w.text, "+") {
		return &Refusal{WhyOperand, "cd", "cd: " + quoted(w.text) + " is no directory in every shell"}
	}
	return nil
}

// onlyFormat keeps date to formats: any other operand sets the clock.
func onlyFormat(_ int, w word) *Refusal {
	if !strings.HasPrefix(w.text, "+") {
		return &Refusal{WhyOperand, "date", "date: an operand that does not begin with + sets the clock"}
	}
	return nil
}

// tailCount keeps tail to counts: GNU takes -cf, like -10f, for -f by an old syntax.
func tailCount(option, value string) *Refusal {
	if n := strings.TrimLeft(value, "+-"); n == "" || n[0] < '0' || n[0] > '9' {
		return &Refusal{WhyOption, "tail", "tail: " + option + " wants a count, not " + quoted(value)}
	}
	return nil
}

// tailFile likewise refuses +10f and +f as a first operand; +10 alone ends.
func tailFile(_ int, w word) *Refusal {
	if rest, ok := strings.CutPrefix(w.text, "+"); ok && (w.expands || !isNumber(rest)) {
		return &Refusal{WhyOperand, "tail", "tail: " + quoted(w.text) + " could be an option of an old syntax: begin it with ./"}
	}
	return nil
}

// judgeEcho admits all words: echo prints them, whatever they are.
func judgeEcho(*spec, []word) ([]Repository, *Refusal) { return nil, nil }

// judgeCommand admits the question what a word stands for; without it the words
// are a command.
func judgeCommand(s *spec, args []word) ([]Repository, *Refusal) {
	if len(args) < 2 || args[0].text != "-v" && args[0].text != "-V" {
		return nil, s.refuse(WhyOption, "command runs what follows: only -v and -V are admitted")
	}
	for _, w := range args[1:] {
		if w.expands || strings.HasPrefix(w.text, "-") {
			return nil, s.refuse(WhyOperand, "command -v: "+quoted(w.text)+" is no name")
		}
	}
	return nil, nil
}

// judgePrintf admits formats of texts. zsh evaluates what belongs to a number, and
// a subscript in it is a command that runs; -v of bash assigns.
func judgePrintf(s *spec, args []word) ([]Repository, *Refusal) {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	switch {
	case len(args) == 0:
		return nil, s.refuse(WhyOperand, "printf: a format is missing")
	case strings.HasPrefix(args[0].text, "-"):
		return nil, s.unknownIn(args[0])
	case args[0].expands:
		return nil, s.refuse(WhyExpansion, "printf: the format is not known: quote it")
	}
	for rest := args[0].text; ; {
		_, after, found := strings.Cut(rest, "%")
		if !found {
			return nil, nil
		}
		after = strings.TrimLeft(after, "-0123456789.")
		if after == "" || strings.IndexByte("sbc%", after[0]) < 0 {
			return nil, s.refuse(WhyScript, "printf: only %s, %b, %c and %% are admitted: some shells evaluate what belongs to a number")
		}
		rest = after[1:]
	}
}

func (s *spec) unknownIn(w word) *Refusal {
	name, _, _ := strings.Cut(w.text, "=")
	return s.unknown(name)
}

// judgeTest admits questions about one file, and comparisons of texts. Numbers
// are evaluated by some shells, like the subscript behind -v.
func judgeTest(s *spec, args []word) ([]Repository, *Refusal) {
	if s.name == "[" {
		if len(args) == 0 || args[len(args)-1].text != "]" {
			return nil, s.refuse(WhySyntax, "[ lacks its ]")
		}
		args = args[:len(args)-1]
	}
	for _, w := range args {
		if w.expands && !strings.HasPrefix(w.text, "~") {
			return nil, s.refuse(WhyExpansion, "test: "+quoted(w.text)+" stands for words that are not known: quote it")
		}
	}
	if len(args) > 0 && args[0].text == "!" {
		args = args[1:]
	}
	switch len(args) {
	case 2:
		if o := args[0].text; len(o) == 2 && o[0] == '-' && strings.IndexByte("bcdefghkLnOprsSuwxzG", o[1]) >= 0 && !inDev(args[1].text) {
			return nil, nil
		}
	case 3:
		switch args[1].text {
		case "=", "==", "!=", "-nt", "-ot", "-ef":
			return nil, nil
		}
	}
	return nil, s.refuse(WhyScript, "test: only one question about a file or a text is admitted, or one comparison of texts")
}

// judgeSed admits printing lines. Everything else of the language is a text whose
// end decides what it does: w writes files, e runs commands, in addresses too.
func judgeSed(s *spec, args []word) ([]Repository, *Refusal) {
	silent, script := false, ""
	i := 0
	for ; i < len(args) && strings.HasPrefix(args[i].text, "-"); i++ {
		switch args[i].text {
		case "-n", "--quiet", "--silent":
			silent = true
		case "-E", "-r", "-u", "--regexp-extended":
		case "-nE", "-En", "-nr", "-rn":
			silent = true
		case "-e":
			if i+1 == len(args) || args[i+1].expands {
				return nil, s.refuse(WhyScript, "sed: the script is not known")
			}
			i++
			if err := s.sedScript(args[i]); err != nil {
				return nil, err
			}
			script = args[i].text
		default:
			return nil, s.sedOption(args[i])
		}
	}
	if script == "" {
		if i == len(args) {
			return nil, s.refuse(WhyScript, "sed: there is no script")
		}
		if err := s.sedScript(args[i]); err != nil {
			return nil, err
		}
		i++
	}
	if !silent {
		return nil, s.refuse(WhyOption, "sed: only -n with addresses and p is admitted")
	}
	for ; i < len(args); i++ {
		if strings.HasPrefix(args[i].text, "-") && args[i].text != "-" { // an option behind operands is one to GNU
			return nil, s.sedOption(args[i])
		}
		if err := (&spec{name: "sed", most: unbounded, globs: globsBegun}).checkOperand(0, args[i]); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (s *spec) sedOption(w word) *Refusal {
	t := *s
	t.known = "-i, writes files; --in-place, writes files; -f, reads a script that is not known; --file, reads a script that is not known"
	return t.unknownIn(word{text: strings.SplitN(w.text, "=", 2)[0]})
}

// sedScript admits commands p and q, each with up to two addresses, joined by ;.
// An address is a number, $ or a pattern between slashes with neither a slash nor
// a backslash in it.
func (s *spec) sedScript(w word) *Refusal {
	bad := s.refuse(WhyScript, "sed: "+quoted(w.text)+" is more than addresses with p or q")
	if w.expands {
		return bad
	}
	for one := range strings.SplitSeq(w.text, ";") {
		rest := strings.Trim(one, " ")
		for i := range 2 {
			if i == 1 {
				if !strings.HasPrefix(rest, ",") {
					break
				}
				rest = rest[1:]
			}
			n := 0
			switch {
			case strings.HasPrefix(rest, "$"):
				n = 1
			case strings.HasPrefix(rest, "/"):
				end := strings.IndexAny(rest[1:], "/\\\n")
				if end < 1 || rest[1+end] != '/' { // an empty one means the last, which is none here
					return bad
				}
				n = end + 2
			default:
				n = len(rest) - len(strings.TrimLeft(rest, "0123456789"))
			}
			if n == 0 && (i == 1 || strings.HasPrefix(rest, ",")) {
				return bad
			}
			rest = rest[n:]
		}
		if rest != "p" && rest != "q" {
			return bad
		}
	}
	return nil
}

// judgeJQ admits a program that is there to be seen. jq's own language neither
// writes nor runs anything; modules are read where others may have put them.
func judgeJQ(s *spec, args []word) ([]Repository, *Refusal) {
	const flags = "acCejMnrsS"
	program := false
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !strings.HasPrefix(w.text, "-") || w.text == "-" {
			if !program {
				if w.expands {
					return nil, s.refuse(WhyExpansion, "jq: the program is not known: quote it")
				}
				if strings.Contains(w.text, "import") || strings.Contains(w.text, "include") {
					return nil, s.refuse(WhyScript, "jq: a program that may read modules")
				}
				program = true
			} else if err := (&spec{name: "jq", most: unbounded, globs: globsBegun}).checkOperand(0, w); err != nil {
				return nil, err
			}
			continue
		}
		switch w.text {
		case "--compact-output", "--raw-output", "--exit-status", "--slurp", "--null-input", "--sort-keys", "--color-output", "--monochrome-output",
			"--ascii-output", "--join-output", "--raw-input", "--tab", "--stream", "--seq":
		case "--arg", "--argjson":
			for _, v := range args[min(i+1, len(args)):min(i+3, len(args))] {
				if v.expands || strings.HasPrefix(v.text, "-") {
					return nil, s.refuse(WhyOption, "jq: "+quoted(v.text)+" is no argument of "+w.text)
				}
			}
			i += 2
		case "--indent":
			i++
			if i == len(args) || !isNumber(args[i].text) {
				return nil, s.refuse(WhyOption, "jq: --indent wants a number")
			}
		default:
			if strings.Trim(w.text[1:], flags+"R") != "" || w.text == "-" {
				return nil, s.unknownIn(w)
			}
		}
	}
	if !program {
		return nil, s.refuse(WhyScript, "jq: there is no program")
	}
	return nil, nil
}
