package inspect

import "strings"

// judgeFind admits tests and what prints. Each word that begins with - is one of
// the list, whatever it would be the argument of.
func judgeFind(s *spec, args []word) ([]Repository, *Refusal) {
	i := 0
	for ; i < len(args); i++ {
		switch args[i].text {
		case "-H", "-L", "-P", "-E", "-x", "-X", "-s": // the last ones are BSD's
			continue
		}
		break
	}
	places := &spec{name: "find", most: unbounded, globs: globsBegun}
	for ; i < len(args) && !findWord(args[i].text); i++ {
		if err := places.checkOperand(0, args[i]); err != nil {
			return nil, err
		}
	}
	for ; i < len(args); i++ {
		w := args[i]
		takes, ok := findPrimary(w.text)
		switch {
		case w.expands:
			return nil, s.refuse(WhyExpansion, "find: "+quoted(w.text)+" stands for words that are not known: quote it")
		case !ok:
			t := *s
			t.known = findKnown
			return nil, t.unknown(w.text)
		case !takes:
			continue
		}
		if i++; i == len(args) {
			return nil, s.refuse(WhyOption, "find: "+w.text+" lacks its argument")
		}
		v := args[i]
		switch {
		case v.expands:
			return nil, s.refuse(WhyExpansion, "find: "+quoted(v.text)+" stands for words that are not known: quote it")
		case strings.HasPrefix(v.text, "-") && !findNumber(v.text[1:]):
			return nil, s.refuse(WhyOperand, "find: "+w.text+" is followed by "+quoted(v.text)+", which could be an action")
		case inDev(v.text):
			return nil, s.refuse(WhyOperand, "find: "+quoted(v.text)+" is a device")
		}
	}
	return nil, nil
}

// findWord reports whether a word ends the places of a find.
func findWord(w string) bool {
	return strings.HasPrefix(w, "-") || w == "(" || w == ")" || w == "!" || w == ","
}

// findNumber reports whether what stands behind a - is a number of a test: of days
// or blocks with their unit, or a mode.
func findNumber(s string) bool {
	if s == "" {
		return false
	}
	if last := s[len(s)-1]; strings.IndexByte("bckMGTPw", last) >= 0 {
		s = s[:len(s)-1]
	}
	return isNumber(s)
}

// findPrimary says of a word of the expression whether it is admitted and takes an
// argument.
func findPrimary(w string) (takes, ok bool) {
	switch w {
	case "(", ")", "!", ",", "-a", "-and", "-o", "-or", "-not", "-true", "-false", "-empty", "-readable", "-writable", "-executable", "-nouser", "-nogroup",
		"-print", "-print0", "-ls", "-prune", "-quit", "-depth", "-d", "-daystart", "-follow", "-mount", "-xdev", "-noleaf", "-ignore_readdir_race", "-warn", "-nowarn":
		return false, true
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-regextype", "-lname", "-ilname", "-type", "-xtype", "-size",
		"-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-newer", "-anewer", "-cnewer", "-perm", "-user", "-group", "-uid", "-gid", "-links", "-inum",
		"-samefile", "-maxdepth", "-mindepth", "-fstype", "-printf", "-newermt", "-newerat", "-newerct":
		return true, true
	}
	return false, false
}

const findKnown = "-exec, runs a program; -execdir, runs a program; -ok, runs a program; -okdir, runs a program; -delete, deletes files; " +
	"-fprint, writes a file; -fprint0, writes a file; -fprintf, writes a file; -fls, writes a file"
