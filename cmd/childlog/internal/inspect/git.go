package inspect

import (
	"slices"
	"strings"
)

// gitCommand is one subcommand of git with what is admitted of it.
type gitCommand struct {
	spec
	index bool // refreshes the index
	subs  bool // looks into submodules unless it is told not to

	// listing: without one of these words before them there are no operands, since
	// they would be what is made or set.
	listing []string

	// verbs are the only first operands.
	verbs []string
}

// judgeGit admits subcommands that read. Abbreviated options are refused like
// everywhere; aliases stand for no subcommand of the list, because git looks at
// its own first.
func judgeGit(s *spec, args []word) ([]Repository, *Refusal) {
	r := Repository{}
	quiet := false // no refresh of the index
	i := 0
	for ; i < len(args) && strings.HasPrefix(args[i].text, "-"); i++ {
		switch w := args[i]; w.text {
		case "--no-pager", "-P", "--literal-pathspecs", "--no-replace-objects", "--no-lazy-fetch":
		case "--no-optional-locks":
			quiet = true
		case "--version":
			if len(args) != 1 {
				return nil, s.refuse(WhyOption, "git --version stands alone")
			}
			return nil, nil
		case "-C":
			if i++; i == len(args) || args[i].expands || r.Dir != "" || !strings.HasPrefix(args[i].text, "/") || inDev(args[i].text) {
				return nil, s.refuse(WhyRepository, "git -C is admitted once, with an absolute directory")
			}
			r.Dir = args[i].text
		default:
			t := *s
			t.known = gitGlobalKnown
			return nil, t.unknownIn(w)
		}
	}
	if i == len(args) {
		return nil, s.refuse(WhyOperand, "git: there is no subcommand")
	}
	if args[i].expands {
		return nil, s.refuse(WhyExpansion, "git: the subcommand is not known")
	}
	c := findGit(args[i].text)
	if c == nil {
		return nil, s.refuse(WhyOperand, quoted("git "+args[i].text)+" is not among the subcommands that change nothing")
	}
	args = args[i+1:]
	t := c.spec
	t.name = "git " + c.name
	t.value = gitValue
	t.known = gitKnown
	if err := c.check(&t, args); err != nil {
		err.Of = "git"
		return nil, err
	}
	r.Index = c.index && (!quiet || c.name == "diff") // whose lock is not among the optional ones
	r.Subs = c.subs && !ignoresSubmodules(args)
	return []Repository{r}, nil
}

// ignoresSubmodules reports whether the last word on submodules, of the options,
// is that nothing of them is looked at. Behind -- it would be the name of a file.
func ignoresSubmodules(args []word) (all bool) {
	for _, w := range args {
		if w.text == "--" {
			break
		}
		if name, how, _ := strings.Cut(w.text, "="); name == "--ignore-submodules" {
			all = how == "" && name == w.text || how == "all"
		}
	}
	return all
}

func (c *gitCommand) check(s *spec, args []word) *Refusal {
	if len(c.verbs) > 0 {
		if len(args) > 0 && slices.Contains(c.verbs, args[0].text) && !args[0].expands {
			args = args[1:]
		} else {
			s.most = 0
		}
	}
	if c.listing != nil && !c.lists(args) {
		s.most = 0
	}
	return s.check(args)
}

// lists reports whether one of the words that ask for a list stands before the
// first word that is no option.
func (c *gitCommand) lists(args []word) bool {
	for _, w := range args {
		switch {
		case slices.Contains(c.listing, w.text):
			return true
		case !strings.HasPrefix(w.text, "-"), w.text == "--":
			return false
		}
	}
	return false
}

// gitValue refuses formats that have a signature checked, which runs gpg.
func gitValue(option, value string) *Refusal {
	switch option {
	case "--format", "--pretty":
		for rest := value; ; {
			_, after, found := strings.Cut(rest, "%")
			if !found {
				break
			}
			if strings.HasPrefix(strings.TrimLeft(after, "-+ "), "G") {
				return &Refusal{WhyScript, "git", "git: %G in a format runs gpg"}
			}
			rest = after
		}
		fallthrough
	case "--sort":
		if strings.Contains(value, "signature") {
			return &Refusal{WhyScript, "git", "git: a signature in a format runs gpg"}
		}
	}
	return nil
}

// What some options do: those before the subcommand, and those behind it.
const (
	gitGlobalKnown = "-c, sets configuration, which can run programs; --config-env, sets configuration, which can run programs; --exec-path, says what runs; " +
		"-p, runs a pager; --paginate, runs a pager; --git-dir, names another repository; --work-tree, names another work tree"
	gitKnown = "--output, writes a file; --ext-diff, runs a program; --textconv, runs a program; --show-signature, runs a program; -O, can run a program; " +
		"--open-files-in-pager, runs a program; --filters, runs programs; --remerge-diff, writes objects and runs merge drivers; -d, deletes; -D, deletes; --delete, deletes; " +
		"--dirty, runs git in submodules; --broken, runs git in submodules; --show-superproject-working-tree, runs git in another repository"
)

// What log, show and diff have in common, and what names revisions.
const (
	gitDiffFlags = "abpuRrtwz"
	gitDiffTakes = "BCGlMSU" // B, C and M have theirs joined or none, see gitDiffLong
	gitDiffLong  = "-M -C -B -D --abbrev? --binary --check --color? --color-moved? --color-words? --compact-summary --cumulative --diff-algorithm= --diff-filter= --dirstat? " +
		"--exit-code --find-copies? --find-copies-harder --find-renames? --full-index --function-context --ignore-all-space --ignore-blank-lines " +
		"--ignore-cr-at-eol --ignore-space-at-eol --ignore-space-change --ignore-submodules? --indent-heuristic --inter-hunk-context= --irreversible-delete " +
		"--minimal --name-only --name-status --no-color --no-ext-diff --no-indent-heuristic --no-patch --no-prefix --no-renames --no-textconv --numstat --patch " +
		"--patch-with-raw --patch-with-stat --patience --histogram --pickaxe-all --pickaxe-regex --quiet --raw --relative? --rename-empty --shortstat --stat? " +
		"--summary --text --unified= --word-diff? --word-diff-regex= --src-prefix= --dst-prefix= -W"
	gitLogLong = "--abbrev-commit --after= --all --all-match --ancestry-path --author= --author-date-order --basic-regexp --before= --boundary --branches? --cc " +
		"--cherry --cherry-mark --cherry-pick --children --committer= --count --date= --date-order --decorate? --decorate-refs= --decorate-refs-exclude= --dense " +
		"--exclude= --extended-regexp --first-parent --fixed-strings --follow --format= --full-diff --full-history --glob= --graph --grep= --invert-grep --left-only " +
		"--left-right --log-size --max-count= --max-parents= --merge --merges --min-parents= --no-abbrev --no-abbrev-commit --no-decorate --no-graph --no-max-parents " +
		"--no-merges --no-min-parents --no-mailmap --no-notes --no-walk? --objects --oneline --parents --perl-regexp --pretty? --reflog --regexp-ignore-case " +
		"--relative-date --remotes? --remove-empty --reverse --right-only --show-pulls --simplify-by-decoration --simplify-merges --since= --skip= --source --sparse " +
		"--tags? --topo-order --until= --use-mailmap --walk-reflogs"
	gitRefLong = "--all --color? --column? --contains~ --format= --ignore-case --merged~ --no-color --no-column --no-contains~ --no-merged~ --points-at~ --sort="
)

// gitCommands are the subcommands that read. Sources: the manuals of git 2.17 to
// 2.51 and builtin/*.c, for what refreshes the index (status and diff write it, if
// they can) and for where an operand makes something.
var gitCommands = []gitCommand{
	{spec: spec{name: "log", flags: gitDiffFlags + "cgimEFiPq", takes: gitDiffTakes + "nL", long: gitDiffLong + " " + gitLogLong, numbers: true, most: unbounded, globs: globsBegun}},
	{spec: spec{name: "show", flags: gitDiffFlags + "cmqs", takes: gitDiffTakes + "n", long: gitDiffLong + " " + gitLogLong, numbers: true, most: unbounded, globs: globsBegun}},
	{spec: spec{name: "rev-list", flags: "gimEFP", takes: "n", long: gitLogLong, numbers: true, most: unbounded, globs: globsBegun}},
	{spec: spec{name: "diff", flags: gitDiffFlags + "csq0123", takes: gitDiffTakes,
		long: gitDiffLong + " --cached --staged --merge-base --no-index --base --ours --theirs", most: unbounded, globs: globsBegun}, index: true, subs: true},
	{spec: spec{name: "diff-tree", flags: gitDiffFlags + "cms", takes: gitDiffTakes, long: gitDiffLong + " --root --no-commit-id --cc --format= --pretty?", most: unbounded, globs: globsBegun}},
	{spec: spec{name: "status", flags: "sbvz", most: unbounded, globs: globsBegun,
		long: "-u -uno -unormal -uall --short --branch --show-stash --porcelain? --long --verbose --untracked-files? --ignore-submodules? --ignored? --column? --no-column " +
			"--ahead-behind --no-ahead-behind --renames --no-renames --find-renames?"}, index: true, subs: true},
	{spec: spec{name: "blame", flags: "bcefklnpstw", takes: "LMC", long: "-M -C --abbrev? --date= --incremental --line-porcelain --porcelain --root --show-email --show-name --show-number --first-parent --ignore-rev=",
		most: unbounded, globs: globsBegun}},
	{spec: spec{name: "grep", flags: "aEFGPhHIiLlnopqrvWwcz", takes: "ABCefm", numbers: true, most: unbounded, globs: globsBegun,
		long: "--after-context= --all-match --and --before-context= --break --cached --color? --column --context= --count --exclude-standard --extended-regexp " +
			"--files-with-matches --files-without-match --fixed-strings --full-name --function-context --heading --ignore-case --invert-match --line-number " +
			"--max-count= --max-depth= --name-only --no-color --no-index --not --null --only-matching --or --perl-regexp --quiet --recursive --show-function " +
			"--text --untracked --word-regexp"}},
	{spec: spec{name: "ls-files", flags: "cdikmostuvz", takes: "xX", most: unbounded, globs: globsBegun,
		long: "--abbrev? --cached --deduplicate --deleted --directory --eol --error-unmatch --exclude= --exclude-from= --exclude-standard --format= --full-name --ignored " +
			"--killed --modified --no-empty-directory --others --stage --unmerged"}},
	{spec: spec{name: "ls-tree", flags: "dlrtz", long: "--abbrev? --format= --full-name --full-tree --long --name-only --name-status --object-only", most: unbounded, globs: globsBegun}},
	{spec: spec{name: "cat-file", flags: "teps", most: 2, globs: globsBegun}},
	{spec: spec{name: "rev-parse", flags: "q", most: unbounded, globs: globsBegun,
		long: "--abbrev-ref? --absolute-git-dir --all --branches? --git-common-dir --git-dir --glob= --is-bare-repository --is-inside-git-dir --is-inside-work-tree " +
			"--is-shallow-repository --quiet --remotes? --short? --show-cdup --show-object-format? --show-prefix --show-toplevel " +
			"--symbolic --symbolic-full-name --tags? --verify"}},
	{spec: spec{name: "merge-base", flags: "a", long: "--all --fork-point --independent --is-ancestor --octopus", most: unbounded, globs: globsBegun}},
	{spec: spec{name: "describe", most: unbounded, globs: globsBegun,
		long: "--abbrev? --all --always --candidates= --contains --exact-match --exclude= --first-parent --long --match= --tags"}},
	{spec: spec{name: "check-ignore", flags: "nqvz", long: "--no-index --non-matching --quiet --verbose", most: unbounded, globs: globsBegun}},
	{spec: spec{name: "branch", flags: "aqrvi", long: gitRefLong + " --list --quiet --remotes --show-current --verbose --abbrev? --no-abbrev", most: unbounded, globs: globsBegun}, listing: []string{"--list"}},
	{spec: spec{name: "tag", takes: "n", flags: "i", long: "-n -l " + gitRefLong + " --list --omit-empty", most: unbounded, globs: globsBegun}, listing: []string{"--list", "-l"}},
	{spec: spec{name: "remote", flags: "v", long: "--all --push --verbose", most: unbounded}, verbs: []string{"get-url"}},
}

func findGit(name string) *gitCommand {
	for i := range gitCommands {
		if gitCommands[i].name == name {
			return &gitCommands[i]
		}
	}
	return nil
}
