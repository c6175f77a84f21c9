package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"childlog/policy"
)

// known are the variables that childlog reads, with what is wrong with a value.
var known = map[string]func(value string) string{
	"CHILDLOG_STORE": func(v string) string {
		if !filepath.IsAbs(v) {
			return "is relative, so every directory has a store of its own; give an absolute path"
		}
		return ""
	},
	"CHILDLOG_KEY_FILE": func(v string) string {
		if !filepath.IsAbs(v) {
			return "is relative; give an absolute path"
		}
		return ""
	},
	"CHILDLOG_DEFAULT_SANDBOX": func(v string) string {
		if _, err := policy.ParseMode(v); err != nil {
			return err.Error()
		}
		return ""
	},
	"CHILDLOG_DEFAULT_APPROVALS": func(v string) string {
		if _, err := policy.ParseApproval(v); err != nil {
			return err.Error()
		}
		return ""
	},
}

// prefix of the variables that are childlog's.
const prefix = "CHILDLOG_"

func (r *report) environment() {
	env := slices.Sorted(slices.Values(r.o.Environ))
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, prefix) || value == "" {
			continue
		}
		check, ok := known[name]
		switch {
		case !ok:
			r.add("environment", Warning, name, "unset "+name+", or correct its name", "childlog reads no such variable")
		case check(value) != "":
			r.add("environment", Problem, name, "set it to what is meant, or unset it", "%q %s", value, check(value))
		default:
			r.add("environment", OK, name, "", "%s", value)
		}
	}
}

// private refuses a file or directory that others can use. Where the rights are
// fine "" is returned.
func private(st os.FileInfo) string {
	if st.Mode().Perm()&0o077 == 0 {
		return ""
	}
	what := "read by"
	if st.Mode().Perm()&0o022 != 0 {
		what = "changed by"
	}
	return "it may be " + what + " other users"
}
