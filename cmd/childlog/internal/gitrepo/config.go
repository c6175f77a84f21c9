package gitrepo

import (
	"strings"

	"childlog/cmd/childlog/internal/inspect"
)

// settings is what counts of a repository's configuration, once every key of it
// is known to run nothing.
type settings struct {
	hooks    bool // core.hooksPath is set
	worktree bool // there is configuration of each work tree
	oid      int  // bytes of an object's name
}

// read takes a file of configuration. It reads less than git does: a line that
// goes on in the next one, a key behind its section, and whatever else is not
// written by git itself, refuses the file.
func (c *settings) read(doc []byte) *inspect.Refusal {
	section, sub := "", false
	for line := range strings.SplitSeq(string(doc), "\n") {
		line = strings.Trim(line, " \t\r")
		switch {
		case line == "", line[0] == '#', line[0] == ';':
			continue
		case strings.HasSuffix(line, `\`):
			return refuse("the configuration of the repository has a line that goes on in the next one")
		case line[0] == '[':
			var ok bool
			if section, sub, ok = header(line); !ok {
				return refuse("the configuration of the repository has a section that is not understood")
			}
			continue
		}
		key, value, set := strings.Cut(line, "=")
		key, value = strings.ToLower(strings.Trim(key, " \t")), strings.Trim(value, " \t")
		if !set {
			value = "true"
		}
		if section == "" || !plain(key) || !c.admits(section, sub, key, value) {
			return refuse("the configuration of the repository sets " + shown(section, sub, key) + ", which is not known to run nothing")
		}
	}
	return nil
}

// header reads [section] and [section "sub"].
func header(line string) (section string, sub, ok bool) {
	inner, ok := strings.CutSuffix(line[1:], "]")
	if !ok {
		return "", false, false
	}
	section, name, sub := strings.Cut(inner, " ")
	section = strings.ToLower(section)
	if sub {
		n := len(name)
		if n < 2 || name[0] != '"' || name[n-1] != '"' || strings.ContainsAny(name[1:n-1], `"\`) {
			return "", false, false
		}
	}
	return section, sub, plain(section)
}

func plain(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func shown(section string, sub bool, key string) string {
	if sub {
		section += ".*"
	}
	if name := section + "." + key; section != "" && len(name) <= 60 && plain(strings.NewReplacer(".", "", "*", "").Replace(name)) {
		return name
	}
	return "a key"
}

// admits reports whether a setting runs nothing, for any of the subcommands that
// are admitted. Sections that belong to other subcommands are there as a whole:
// those of the transports speak to nobody unless an object is to be fetched, which
// takes a promisor remote, and that is not admitted. Sources: the manual of git
// config, and what calls run_command and its like in git's source.
func (c *settings) admits(section string, sub bool, key, value string) bool {
	switch section {
	case "branch", "tag":
		if key == "sort" && (!plain(value) || strings.Contains(value, "signature")) { // which gpg would check
			return false
		}
		return section == "branch" || !sub && oneOf(key, "gpgsign sort forcesignannotated")
	case "status": // a summary runs git in submodules
		return key != "submodulesummary"
	case "user", "author", "committer", "commit", "push", "pull", "fetch", "rebase", "init", "color", "column", "advice", "pack", "gc", "maintenance",
		"http", "url", "credential", "receive", "transfer", "rerere", "blame", "grep", "index", "i18n", "notes":
		return true
	case "remote":
		return sub && oneOf(key, "url pushurl fetch push tagopt prune prunetags mirror skipdefaultupdate skipfetchall followremotehead gh-resolved")
	case "lfs": // its extensions are programs
		return oneOf(key, "access locksverify repositoryformatversion url")
	case "submodule":
		return sub && oneOf(key, "url active path branch fetchrecursesubmodules")
	case "diff":
		return !sub && oneOf(key, "algorithm autorefreshindex color colormoved colormovedws context indentheuristic interhunkcontext mnemonicprefix noprefix renamelimit renames "+
			"statgraphwidth suppressblankempty wordregex")
	case "log":
		return !sub && oneOf(key, "abbrevcommit date decorate follow initialdecorationset mailmap showroot")
	case "merge":
		return !sub && oneOf(key, "conflictstyle ff log renames renamelimit")
	case "gpg":
		return !sub && key == "format"
	case "extensions":
		switch key {
		case "worktreeconfig":
			c.worktree = true
		case "objectformat":
			if value == "sha256" {
				c.oid = 32
			}
			return !sub && oneOf(value, "sha1 sha256")
		}
		return !sub && oneOf(key, "compatobjectformat refstorage worktreeconfig noop noop-v1 relativeworktrees")
	case "core":
		switch key {
		case "hookspath":
			c.hooks = true
			return !sub
		case "fsmonitor": // on it starts a process, and anything else is one
			return !sub && oneOf(strings.ToLower(value), "false no off 0")
		}
		return !sub && oneOf(key, "abbrev attributesfile autocrlf bare bigfilethreshold checkstat commentchar commitgraph compression createobject deltabasecachelimit eol "+
			"excludesfile filemode fscache fsync fsyncmethod ignorecase ignorestat logallrefupdates longpaths loosecompression multipackindex packedgitlimit precomposeunicode "+
			"preloadindex protecthfs protectntfs quotepath repositoryformatversion safecrlf sharedrepository sparsecheckout sparsecheckoutcone splitindex symlinks "+
			"trustctime untrackedcache usereplacerefs warnambiguousrefs whitespace worktree")
	}
	return false
}

func oneOf(s, list string) bool {
	for one := range strings.FieldsSeq(list) {
		if one == s {
			return true
		}
	}
	return false
}
