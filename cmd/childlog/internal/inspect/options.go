package inspect

import (
	"path"
	"strings"
)

// spec is what is admitted of one command: the options that are listed and no
// others, whatever the command has beside them. An abbreviation that getopt
// would take is not listed and so refused.
//
// How many arguments an option takes must not decide: implementations differ.
// So every word that begins with - is one of the list, wherever it stands before
// a --; what an option takes as its argument begins with - in no case but a
// number; and where an operand could do harm, they are counted.
type spec struct {
	name string

	flags string // letters without an argument, which may stand together
	takes string // letters with an argument, in the same word or the next one

	// long are options of two dashes, or of one where the command has such, by
	// their names: "name" takes nothing, "name=" an argument behind = or in the
	// next word, "name?" one behind = or none, "name~" one behind = or in the next
	// word, if there is one.
	long string

	numbers bool  // -5 is an option, and so may +5 be an operand
	most    int   // operands; unbounded: no limit
	globs   globs // what may stand for operands that are not known

	// first: options come before the operands. Where an operand is a file to be
	// written, an option behind it is one to those who do not look for it there.
	first bool

	// value checks the argument of an option, text and operand the words that are
	// no options: the ones that mean something else than a file.
	value   func(option, value string) *Refusal
	operand func(i int, w word) *Refusal

	// judge stands in for check where a command has a form of its own.
	judge func(s *spec, args []word) ([]Repository, *Refusal)

	// known names options that do harm, for the words of a refusal and for nothing
	// else: "letter or name, what it does; ...".
	known string
}

// unbounded is any number of operands.
const unbounded = -1

// globs says what may stand for operands that are not known before the command
// runs.
type globs uint8

const (
	globsNone   globs = iota // nothing: each operand counts
	globsBegun               // what begins with a character that is no dash: it becomes no option
	globsAnyway              // anything: no option of the command does harm
)

func (s *spec) refuse(why Why, text string) *Refusal { return &Refusal{why, s.name, text} }

// check holds the arguments of a command against its row.
func (s *spec) check(args []word) *Refusal {
	operands, ended := 0, false
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !ended && strings.HasPrefix(w.text, "-") && w.text != "-" {
			if w.text == "--" {
				ended = true
				continue
			}
			if s.first && operands > 0 {
				return s.refuse(WhyOption, s.name+": options have to come before the operands")
			}
			next, err := s.option(w, args[i+1:])
			if err != nil {
				return err
			}
			i += next
			continue
		}
		if err := s.checkOperand(operands, w); err != nil {
			return err
		}
		operands++
	}
	return nil
}

func (s *spec) checkOperand(i int, w word) *Refusal {
	switch {
	case s.most != unbounded && i >= s.most:
		return s.refuse(WhyOperand, s.name+": "+quoted(w.text)+" is one operand too many")
	case w.open && s.globs != globsAnyway:
		return s.refuse(WhyOperand, s.name+": "+quoted(w.text)+" could become an option: begin the pattern with ./, or quote it")
	case w.expands && s.globs == globsNone:
		return s.refuse(WhyOperand, s.name+": "+quoted(w.text)+" stands for operands that are not known: quote it, or name them")
	case inDev(w.text), w.expands && couldBeInDev(w.text):
		return s.refuse(WhyOperand, s.name+": "+quoted(w.text)+" is a device")
	case s.operand != nil:
		return s.operand(i, w)
	}
	return nil
}

// option checks one word of options, and says how many words more it takes.
func (s *spec) option(w word, rest []word) (int, *Refusal) {
	name, value, given := strings.Cut(w.text, "=")
	if w.expands && (!given || w.open || strings.ContainsAny(name, "*?[]^~")) {
		return 0, s.refuse(WhyOption, s.name+": "+quoted(w.text)+" stands for options that are not known: quote it")
	}
	if kind, ok := s.named(name); ok {
		switch {
		case kind == 0 && given:
			return 0, s.unknown(name)
		case kind == 0 || kind == '?' && !given || kind == '~' && len(rest) == 0:
			return 0, nil
		case given && w.expands && s.value != nil:
			return 0, s.refuse(WhyOption, s.name+": "+quoted(w.text)+" stands for an argument that is not known: quote it")
		case given:
			return 0, s.checkValue(name, value)
		}
		return s.next(name, rest)
	}
	if s.numbers && isNumber(w.text[1:]) {
		return 0, nil
	}
	if strings.HasPrefix(w.text, "--") {
		return 0, s.unknown(name)
	}
	for i := 1; i < len(w.text); i++ {
		c := w.text[i]
		switch {
		case strings.IndexByte(s.flags, c) >= 0:
		case strings.IndexByte(s.takes, c) < 0:
			return 0, s.unknown("-" + string(rune(c)))
		case i+1 < len(w.text):
			return 0, s.checkValue("-"+string(c), w.text[i+1:])
		default:
			return s.next("-"+string(c), rest)
		}
	}
	return 0, nil
}

// next takes the argument of an option from the next word.
func (s *spec) next(name string, rest []word) (int, *Refusal) {
	switch {
	case len(rest) == 0:
		return 0, s.refuse(WhyOption, s.name+": "+name+" lacks its argument")
	case rest[0].expands:
		return 0, s.refuse(WhyOption, s.name+": "+quoted(rest[0].text)+" stands for an argument that is not known: quote it")
	case strings.HasPrefix(rest[0].text, "-") && !isNumber(rest[0].text[1:]):
		return 0, s.refuse(WhyOption, s.name+": "+name+" is followed by "+quoted(rest[0].text)+", which could be an option: join them")
	}
	return 1, s.checkValue(name, rest[0].text)
}

func (s *spec) checkValue(option, value string) *Refusal {
	if inDev(value) {
		return s.refuse(WhyOption, s.name+": "+quoted(value)+" is a device")
	}
	if s.value == nil {
		return nil
	}
	return s.value(option, value)
}

// named looks up an option of more than a letter: 0 for one without an argument,
// else the =, ? or ~ behind its name.
func (s *spec) named(name string) (byte, bool) {
	for rest := s.long; rest != ""; {
		var one string
		one, rest, _ = strings.Cut(rest, " ")
		if one == name {
			return 0, true
		}
		if n := len(one) - 1; n > 0 && one[:n] == name && strings.IndexByte("=?~", one[n]) >= 0 {
			return one[n], true
		}
	}
	return 0, false
}

// unknown refuses an option that is not listed, with what it does if that is
// known. Of an option nothing is shown that stands behind its =.
func (s *spec) unknown(name string) *Refusal {
	for rest := s.known; rest != ""; {
		var one string
		one, rest, _ = strings.Cut(rest, "; ")
		if option, does, _ := strings.Cut(one, ", "); option == name {
			return s.refuse(WhyOption, quoted(s.name+" "+name)+" "+does)
		}
	}
	return s.refuse(WhyOption, quoted(s.name+" "+name)+" is not among the options that are known to change nothing")
}

// couldBeInDev reports whether a pattern may stand for devices: /d?v/zero is one.
func couldBeInDev(p string) bool {
	if !strings.HasPrefix(p, "/") {
		return false
	}
	first, _, below := strings.Cut(path.Clean(p)[1:], "/")
	return below && strings.ContainsAny(first, "*?[^~")
}

// inDev reports whether a path names a device: reading one may wait for ever, or
// do something.
func inDev(p string) bool {
	if !strings.HasPrefix(p, "/") {
		return false
	}
	p = path.Clean(p)
	return p == "/dev" || strings.HasPrefix(p, "/dev/") && p != devNull
}
