package inspect

// specs is the table of the commands, by what they are for. Sources: the manuals
// of GNU coreutils, grep, diffutils, findutils, sed, of FreeBSD and macOS, of
// ripgrep and jq; where they differ, what is harmless in all of them.
//
// Not in the table, because their arguments or their input say what runs or is
// written: awk, xargs, env, nohup, timeout, watch, tee, less and man (pagers that
// run commands), vi, tar, make, perl, python and the other languages, curl and
// what else has the network, strings (reads options from @files), xxd (the second
// operand is written), hostname (the first is set) and tree (goes on with the letters
// behind one that takes the next word).
var specs = []spec{
	// Files.
	{name: "cat", flags: "AbeEnstTuv", most: unbounded, globs: globsAnyway,
		long: "--show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting"},
	{name: "tac", flags: "br", takes: "s", most: unbounded, globs: globsBegun},
	{name: "head", flags: "qvz", takes: "nc", numbers: true, most: unbounded, globs: globsAnyway, long: "--lines= --bytes= --quiet --silent --verbose"},
	{name: "tail", flags: "qvz", takes: "nc", numbers: true, most: unbounded, globs: globsBegun, long: "--lines= --bytes= --quiet --silent --verbose",
		value: tailCount, operand: tailFile,
		known: "-f, never ends; -F, never ends; --follow, never ends; --retry, never ends"},
	{name: "nl", flags: "p", takes: "bdfhilnsvw", most: unbounded, globs: globsAnyway},
	{name: "wc", flags: "clmwL", most: unbounded, globs: globsAnyway, long: "--lines --words --chars --bytes --max-line-length"},
	{name: "ls", flags: "1aAbBcCdFfgGhHiklLmnNopqQrRsStuUvxXZ", takes: "IwT", most: unbounded, globs: globsAnyway,
		long: "--all --almost-all --author --color? --colour? --full-time --group-directories-first --human-readable --inode --recursive --reverse --size " +
			"--sort= --time= --time-style= --format= --classify? --directory --hide= --ignore= --si --numeric-uid-gid --no-group --dereference --zero"},
	{name: "stat", flags: "fFLlnqrstx", takes: "c", most: unbounded, globs: globsAnyway, long: "--dereference --file-system --format= --printf= --terse"},
	{name: "file", flags: "0bhikLNr", most: unbounded, globs: globsBegun, long: "--brief --mime --mime-type --mime-encoding --dereference --no-dereference",
		known: "-C, writes a file; --compile, writes a file; -z, runs programs; -Z, runs programs; --uncompress, runs programs"},
	{name: "du", flags: "0abcDhHklLmPsSx", takes: "dBt", most: unbounded, globs: globsBegun,
		long: "--max-depth= --human-readable --summarize --all --apparent-size --total --exclude= --si --bytes --block-size= --threshold= --one-file-system --time? --dereference"},
	{name: "df", flags: "ahHiklmPT", takes: "Btx", most: unbounded, globs: globsBegun,
		long: "--human-readable --inodes --local --portability --print-type --total --output? --si --type= --exclude-type= --block-size="},
	{name: "basename", flags: "az", takes: "s", most: unbounded, globs: globsBegun, long: "--multiple --suffix= --zero"},
	{name: "dirname", flags: "z", most: unbounded, globs: globsBegun, long: "--zero"},
	{name: "realpath", flags: "emLPqsz", most: unbounded, globs: globsBegun,
		long: "--relative-to= --relative-base= --canonicalize-existing --canonicalize-missing --no-symlinks --strip --logical --physical --quiet --zero"},
	{name: "readlink", flags: "efmnqsvz", most: unbounded, globs: globsBegun, long: "--canonicalize --canonicalize-existing --canonicalize-missing --no-newline"},
	{name: "find", judge: judgeFind},

	// Texts.
	{name: "grep", flags: grepFlags, takes: grepTakes, long: grepLong, numbers: true, most: unbounded, globs: globsBegun},
	{name: "egrep", flags: grepFlags, takes: grepTakes, long: grepLong, numbers: true, most: unbounded, globs: globsBegun},
	{name: "fgrep", flags: grepFlags, takes: grepTakes, long: grepLong, numbers: true, most: unbounded, globs: globsBegun},
	{name: "rg", flags: "0acFHhiIlLNnopPqsSuUVvwx.", takes: "ABCdeEfgjmMrtT", most: unbounded, globs: globsBegun,
		long: "--after-context= --before-context= --case-sensitive --color= --column --context= --count --count-matches --encoding= --files --files-with-matches " +
			"--files-without-match --fixed-strings --follow --glob= --glob-case-insensitive --heading --hidden --iglob= --ignore-case --invert-match --json " +
			"--line-number --max-columns= --max-count= --max-depth= --max-filesize= --multiline --multiline-dotall --no-config --no-filename --no-heading " +
			"--no-ignore --no-ignore-vcs --no-line-number --no-messages --null --one-file-system --only-matching --passthru --pcre2 --quiet --regexp= " +
			"--replace= --smart-case --sort= --sortr= --stats --text --threads= --trim --type= --type-add= --type-list --type-not= --unrestricted --version " +
			"--vimgrep --with-filename --word-regexp",
		known: "--pre, runs a program; --pre-glob, goes with --pre, which runs a program; --hostname-bin, runs a program; -z, runs programs; --search-zip, runs programs"},
	{name: "sort", flags: "bcCdfghiMmnrRsuVz", takes: "kt", most: unbounded, globs: globsBegun,
		long: "--check? --dictionary-order --field-separator= --general-numeric-sort --human-numeric-sort --ignore-case --ignore-leading-blanks --key= " +
			"--month-sort --numeric-sort --random-sort --reverse --stable --unique --version-sort --zero-terminated",
		known: "-o, writes a file; --output, writes a file; --compress-program, runs a program; -T, says where files are written; --temporary-directory, says where files are written"},
	{name: "uniq", flags: "cdDiuz", takes: "fsw", most: 1, first: true,
		long: "--all-repeated? --check-chars= --count --ignore-case --repeated --skip-chars= --skip-fields= --unique --zero-terminated"},
	{name: "cut", flags: "nsz", takes: "bcdf", most: unbounded, globs: globsBegun,
		long: "--bytes= --characters= --complement --delimiter= --fields= --only-delimited --output-delimiter= --zero-terminated"},
	{name: "tr", flags: "cCdstu", most: 2, long: "--complement --delete --squeeze-repeats --truncate-set1"},
	{name: "paste", flags: "sz", takes: "d", most: unbounded, globs: globsBegun, long: "--delimiters= --serial"},
	{name: "fold", flags: "bs", takes: "w", most: unbounded, globs: globsBegun},
	{name: "rev", most: unbounded, globs: globsBegun},
	{name: "comm", flags: "123z", most: 2},
	{name: "diff", flags: "abBcdeEiNnpqrstTuwyZ", takes: "CFIUWx", numbers: true, most: unbounded, globs: globsBegun,
		long: "--brief --color? --context? --exclude= --from-file= --ignore-all-space --ignore-blank-lines --ignore-case --ignore-space-change --label= --minimal " +
			"--new-file --no-dereference --recursive --report-identical-files --show-c-function --side-by-side --strip-trailing-cr --suppress-common-lines " +
			"--text --to-file= --unified? --width=",
		known: "-l, runs a program; --paginate, runs a program"},
	{name: "cmp", flags: "bls", takes: "in", most: 4, long: "--bytes= --ignore-initial= --print-bytes --quiet --silent --verbose"},
	{name: "od", flags: "abcdfhilosvx", takes: "AjNStw", most: unbounded, globs: globsBegun},
	{name: "hexdump", flags: "bcCdovx", takes: "ns", most: unbounded, globs: globsBegun},
	{name: "cksum", flags: sumFlags, takes: "a", long: sumLong, most: unbounded, globs: globsBegun},
	{name: "md5sum", flags: sumFlags, long: sumLong, most: unbounded, globs: globsBegun},
	{name: "sha1sum", flags: sumFlags, long: sumLong, most: unbounded, globs: globsBegun},
	{name: "sha256sum", flags: sumFlags, long: sumLong, most: unbounded, globs: globsBegun},
	{name: "sha512sum", flags: sumFlags, long: sumLong, most: unbounded, globs: globsBegun},
	{name: "shasum", flags: sumFlags, takes: "a", long: sumLong, most: unbounded, globs: globsBegun},
	{name: "sed", judge: judgeSed},
	{name: "jq", judge: judgeJQ},

	// The repository.
	{name: "git", judge: judgeGit},

	// The machine and the shell.
	{name: "pwd", flags: "LP", most: 0},
	{name: "cd", flags: "LP", most: 1, globs: globsNone, operand: notNumbered},
	{name: "which", flags: "as", most: unbounded},
	{name: "type", flags: "afpPt", most: unbounded},
	{name: "command", judge: judgeCommand},
	{name: "echo", judge: judgeEcho},
	{name: "printf", judge: judgePrintf},
	{name: "true", most: unbounded, globs: globsAnyway},
	{name: "false", most: unbounded, globs: globsAnyway},
	{name: ":", most: unbounded, globs: globsAnyway},
	{name: "test", judge: judgeTest},
	{name: "[", judge: judgeTest},
	{name: "whoami", most: 0},
	{name: "id", flags: "agGnruz", most: 1},
	{name: "uname", flags: "aimnoprsv", most: 0},
	{name: "date", flags: "Ru", most: 1, operand: onlyFormat,
		long:  "-I -Idate -Ihours -Iminutes -Iseconds -Ins --date= --iso-8601? --reference= --rfc-3339= --rfc-email --universal --utc",
		known: "-s, sets the clock; --set, sets the clock; -d, sets the time zone of some systems: use --date="},
}

// The greps have one table. So has ugrep, which some harnesses put in the place of
// grep, as far as letters are listed here: -z and -Z are not, since there they
// are another thing.
const (
	grepFlags = "abcEFGhHiIlLnoPqrRsTUvwxy"
	grepTakes = "ABCdefm"
	grepLong  = "--after-context= --basic-regexp --before-context= --binary-files= --byte-offset --color? --colour? --context= --count --dereference-recursive " +
		"--exclude= --exclude-dir= --exclude-from= --extended-regexp --files-with-matches --files-without-match --fixed-strings --ignore-case --include= " +
		"--initial-tab --invert-match --label= --line-buffered --line-number --line-regexp --max-count= --no-filename --no-ignore-case --no-messages --null " +
		"--only-matching --perl-regexp --quiet --recursive --regexp= --silent --text --with-filename --word-regexp"
)

const (
	sumFlags = "bctwz"
	sumLong  = "--binary --check --ignore-missing --quiet --status --strict --tag --text --warn --zero"
)

// find returns the row of a command, nil if it has none. Names are compared as
// they are: a path leads to another program than the one that is meant.
func find(name string) *spec {
	for i := range specs {
		if specs[i].name == name {
			return &specs[i]
		}
	}
	return nil
}
