// Package inspect says which shell commands change nothing. It is the classifier
// whose name is [Name]: what it admits may run under a shell of inspect or verify.
//
// It is a pure function of the command's words: no clock, no environment, no file.
// What it does not understand whole needs a full shell; there is no middle, and no
// list of what is dangerous decides anything.
//
// # The language
//
// Which shell runs a text nobody tells: bash, zsh or sh, with its user's options. So
// the lexer takes what is the same in all of them and ends at the first character
// that may not be:
//
//   - words of letters, digits and _-./,+@%: and =, a backslash before one character,
//     single quotes, and double quotes without $, ` and !;
//   - && || | ; and the end of a line between commands, 64 at most;
//   - > and >> and 2> to /dev/null, 2>&1, >&2, and < from a file;
//   - * ? [ and, since zsh may take them for patterns, ^ and ~ inside of a word. What a
//     pattern becomes is not known, so it may stand for operands alone, and must
//     begin with a character if the command has an option that does harm.
//
// Not of the language, among others: every expansion; braces; comments, which a
// shell with a terminal may take for commands; assignments, since PAGER=x git log
// runs x; =cmd, *(e:cmd:) and <1-9> of zsh; &, |& and &>, which sh reads as & and
// >; here-documents; ! of the history; CR, control characters and, outside of
// quotes, all that is not ASCII.
//
// A parser of the whole language, mvdan.cc/sh, is held against it in the tests: in
// bash, POSIX and zsh it sees the same commands with the same words.
//
// # The table
//
// A command is a name without a slash. Its options are listed one by one: an
// abbreviation is not listed, nor is a letter among others that is not. Every word
// that begins with - has to be of the list, also where it would be the argument of
// an option, because implementations differ in what takes one; operands that would
// be written, as the second one of uniq, are counted, and there options come first.
//
// These lists have a history. What got past those of other programs, and is in
// the tests: sort -o and --compress-program (also as --comp), rg --pre and
// --hostname-bin, find -fprintf and -exec, sed with w and e, awk, xargs, env,
// man -H, less, base64 -o, file -C and -z, git with -c, --output, --ext-diff, -O,
// --open-files-in-pager, ls-remote --upload-pack and %G? in a format, uniq IN OUT, date
// of digits, printf %d 'a[$(x)]' and test -eq of zsh, a file that is called like an
// option, and the fifty-first command of a line. Sources: is_safe_command.rs of Codex,
// which since admits no git at all, the reports on Claude Code
// (CVE-2025-66032), Qwen Code and Kilo Code, and the manuals.
//
// # Git
//
// What git runs is said by the configuration that it finds, so a use of git comes
// out as a [Repository] and is admitted once package gitrepo has read that. After a
// cd nobody knows where it would be, so it is refused.
//
// # What a verdict does not say
//
//   - It is about effects. Reading is always permitted, and so is waiting: a pipe that
//     nobody writes keeps cat busy until the harness ends it.
//   - The commands are those on the person's PATH, with the aliases, functions and
//     options of their shell and the variables of their environment: whoever may
//     change these needs no command. Nothing that is admitted defines one.
//   - status and diff of git refresh the index where they can: what is
//     staged stays as it is. sort may use files in $TMPDIR and removes them.
//   - In a file system that is reached by the network reading is a request.
//   - Where git runs for a terminal it may start the person's own pager, so a call
//     that asks for a terminal is refused; a harness that gives one unasked has to say
//     GIT_PAGER=cat, as Codex does.
package inspect
