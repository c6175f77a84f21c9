package policy_test

import (
	"errors"
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/require"
)

// parsers are all ways from text into a value. Each returns the text that its
// value is recorded as.
var parsers = map[string]func(string) (string, error){
	"mode":         func(s string) (string, error) { v, err := policy.ParseMode(s); return string(v), err },
	"approval":     func(s string) (string, error) { v, err := policy.ParseApproval(s); return string(v), err },
	"permissions":  func(s string) (string, error) { v, err := policy.ParsePermissions(s); return v.String(), err },
	"shell":        func(s string) (string, error) { v, err := policy.ParseShell(s); return string(v), err },
	"grant shell":  func(s string) (string, error) { v, err := policy.ParseGrantShell(s); return string(v), err },
	"files":        func(s string) (string, error) { v, err := policy.ParseFiles(s); return string(v), err },
	"surface":      func(s string) (string, error) { v, err := policy.ParseSurface(s); return string(v), err },
	"class":        func(s string) (string, error) { v, err := policy.ParseClass(s); return string(v), err },
	"merge policy": func(s string) (string, error) { v, err := policy.ParseMergePolicy(s); return string(v), err },
	"role":         func(s string) (string, error) { v, err := policy.ParseRole(s); return string(v), err },
	"entry":        policy.NormalizeEntry,
	"scope": func(s string) (string, error) {
		v, err := policy.ParseScope(strings.Split(s, "|"))
		return strings.Join(v.Entries(), "|"), err
	},
	"deny paths": func(s string) (string, error) {
		v, err := policy.ParseDenyPaths(strings.Split(s, "|"))
		return strings.Join(v.Entries(), "|"), err
	},
	"roots": func(s string) (string, error) {
		v, err := policy.RootsOf(strings.Split(s, "|")...)
		return strings.Join(v.List(), "|"), err
	},
	"tools": func(s string) (string, error) {
		v, err := policy.ToolsList(strings.Split(s, "|")...)
		return strings.Join(v.List(), "|"), err
	},
	"names": func(s string) (string, error) {
		v, err := policy.NameSetOf(strings.Split(s, "|")...)
		return strings.Join(v.List(), "|"), err
	},
	"lockdown": func(s string) (string, error) {
		v, err := policy.NewLockdown(strings.Split(s, "|")...)
		return strings.Join(v.Names(), "|"), err
	},
	"palette": func(s string) (string, error) {
		name, class, _ := strings.Cut(s, "|")
		v, err := policy.NewPalette(policy.PaletteEntry{Name: name, Class: policy.Class(class)})
		if err != nil {
			return "", err
		}
		return v.Entries()[0].Name + "|" + string(v.Entries()[0].Class), nil
	},
	"operator's tools": func(s string) (string, error) {
		v, err := policy.NewOperatorRules(operatorAt, []string{s}, nil)
		if err != nil {
			return "", err
		}
		return v.Entries()[0].Tool, nil
	},
	"operator's places": func(s string) (string, error) {
		v, err := policy.NewOperatorRules(operatorAt, nil, []string{s})
		if err != nil {
			return "", err
		}
		return v.Entries()[0].Path, nil
	},
	"denied": func(s string) (string, error) {
		v, err := policy.NewDenyList(policy.DenyRequest, receiptAt, s)
		if err != nil {
			return "", err
		}
		return v.Entries()[0].Pattern, nil
	},
	"claim": func(s string) (string, error) {
		_, err := policy.NewClaims(policy.Claim{ID: s})
		return s, err
	},
}

// FuzzParse gives every parser every text: it is refused in one line of bounded
// length that wraps ErrInvalid, or what it makes is accepted again and makes
// the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "never", "read,write", "read_only", "scout", "a/./b", "a|a/b", "/w|/w/x", `C:\w\x`, "read|Read", "mcp__x|shell", "exec_*",
		"\xff", "\u212a:", "a/../b", "e\u0301", "\u202e", strings.Repeat("\u0958", 200), strings.Repeat("x|", 2000), "prompt_block_edit",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, parse := range parsers {
			out, err := parse(s)
			if err != nil {
				require.True(t, errors.Is(err, policy.ErrInvalid), "%s: %v", name, err)
				require.NotContains(t, err.Error(), "\n", name)
				require.Less(t, len(err.Error()), 20_000, name)
				continue
			}
			again, err := parse(out)
			require.NoError(t, err, "%s: %q made %q", name, s, out)
			require.Equal(t, out, again, name)
		}
	})
}
