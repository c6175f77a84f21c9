package policy_test

import (
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPatchPaths(t *testing.T) {
	for _, c := range []struct {
		name, patch string
		want        []string
		known       bool
	}{
		{"every directive of the envelope", "*** Begin Patch\n*** Update File: src/a\n*** Move to: src/b\n@@ def f():\n x\n-y\n+z\n*** End of File\n*** Add File: src/c\n+x\n*** Delete File: src/d\n*** End Patch\n",
			[]string{"src/a", "src/b", "src/c", "src/d"}, true},
		{"windows line ends", "*** Begin Patch\r\n*** Update File: a\r\n@@\r\n-x\r\n+y\r\n*** End Patch\r\n", []string{"a"}, true},
		{"indented and in capitals", "*** Begin Patch\n  *** UPDATE FILE: a\n***Delete File:b\n*** End Patch", []string{"a", "b"}, true},
		{"no envelope around", "*** Update File: a\n@@\n-x\n+y\n", []string{"a"}, true},
		{"an added line is no directive", "*** Begin Patch\n*** Add File: a\n+*** Update File: b\n+--- c\n+++ d\n--- e\n*** End Patch", []string{"a"}, true},
		{"spaces stay, for the target to refuse", "*** Begin Patch\n*** Add File:  a \n+x\n*** End Patch", []string{" a "}, true},
		{"an environment", "*** Begin Patch\n*** Environment ID: x\n*** Add File: a\n+x\n*** End Patch", []string{"a"}, true},
		{"a directive of another version", "*** Begin Patch\n*** Update File: a\n*** Link to: b\n*** End Patch", []string{"a"}, false},
		{"an empty name", "*** Begin Patch\n*** Update File: \n*** Add File: a\n*** End Patch", []string{"a"}, false},
		{"an empty patch", "*** Begin Patch\n*** End Patch", nil, false},
		{"a line end only Python knows", "*** Begin Patch\n*** Add File: a\n+x\u2028*** Add File: b\n+y\f*** Add File: c\n+z\r*** Add File: d\n*** End Patch", []string{"a", "b", "c", "d"}, true},

		{"a unified diff", "--- a/src/x\t2026-01-01\n+++ b/src/y\t2026-01-02\n@@ -1 +1 @@\n-o\n+n\n", []string{"src/x", "src/y"}, true},
		{"reversed", "--- b/x\n+++ a/y\n@@ -1 +1 @@\n-o\n+n\n", []string{"x", "y"}, true},
		{"without prefixes", "--- src/x\n+++ src/y\n@@ -1 +1 @@\n-o\n+n\n", []string{"src/x", "src/y"}, true},
		{"the same prefix twice is a directory", "--- a/x\n+++ a/x\n@@ -1 +1 @@\n-o\n+n\n", []string{"a/x"}, true},
		{"one prefix", "--- a/x\n+++ y\n", []string{"a/x", "y"}, true},
		{"a new file", "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+n\n", []string{"x"}, true},
		{"a deleted file", "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-o\n", []string{"x"}, true},
		{"only /dev/null", "--- /dev/null\n+++ /dev/null\n", nil, false},
		{"a lone new name", "+++ b/x\n@@ -1 +1 @@\n-o\n+n\n", []string{"x"}, true},
		{"a lone old name", "--- a/x\n@@ -1 +1 @@\n-o\n+n\n", []string{"x"}, true},
		{"garbage between the names", "--- a/x\ngarbage\n+++ b/y\n@@ -1 +1 @@\n-o\n+n\n", []string{"x", "y"}, true},
		{"a deleted comment in a hunk", "--- a/x\n+++ b/x\n@@ -1,2 +1,1 @@\n--- not a file\n o\n", []string{"x"}, true},
		{"a form feed does not end a line of a hunk", "--- a/x\n+++ b/x\n@@ -1,2 +1,1 @@\n o\fp\n--- not a file\n", []string{"x"}, true},
		{"behind the hunk it is a file", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-o\n+n\n--- a/y\n+++ b/y\n", []string{"x", "y"}, true},
		{"a range that lies", "--- a/x\n+++ b/x\n@@ -1,900 +1,900 @@\n-o\n+n\n--- a/y\n+++ b/../z\n@@ -1 +1 @@\n", []string{"x", "y", "../z"}, true},
		{"a range that lies, and a lone name", "--- a/x\n+++ b/x\n@@ -1,900 +1,900 @@\n-o\n+++ ../z\n@@ -1 +1 @@\n", []string{"x", "../z"}, true},
		{"a range that lies, and a git header", "--- a/x\n+++ b/x\n@@ -1,900 +1,900 @@\n-o\ndiff --git a/y b/y\ndeleted file mode 100644\n", []string{"x", "y"}, true},
		{"an overflowing range", "--- a/x\n+++ b/x\n@@ -1,99999999999999999999 +1,1 @@\n-o\n--- ../z\n", []string{"x", "../z"}, true},
		{"a space without a tab is the end for patch(1)", "--- a/x y\n+++ b/x y\n", []string{"x y", "x"}, true},
		{"a space before a tab is not", "--- a/x y\t1\n+++ b/x y\t2\n", []string{"x y"}, true},
		{"quoted names", "--- \"a/\\303\\251\\t\"\n+++ \"b/\\\"\\\\x\"\n", []string{"\u00e9\t", `"\x`}, true},
		{"a broken quote", "--- \"a/x\n+++ b/x\n", []string{"x"}, false},
		{"an unknown escape", "--- \"a/\\q\"\n+++ b/x\n", []string{"x"}, false},

		{"a git rename", "diff --git a/src/x b/src/y\nsimilarity index 100%\nrename from src/x\nrename to src/y\n", []string{"src/x", "src/y"}, true},
		{"only a mode", "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", []string{"x"}, true},
		{"an empty file, with spaces", "diff --git a/x y z b/x y z\nnew file mode 100644\n", []string{"x y z"}, true},
		{"no prefix", "diff --git x x\nold mode 100644\n", []string{"x"}, true},
		{"no prefix, renamed", "diff --git x y\nrename from x\nrename to y\n", []string{"x", "y"}, true},
		{"copies, and the old words", "diff --git a/x b/y\ncopy from x\ncopy to y\nrename old z\nrename new w\n", []string{"x", "y", "z", "w"}, true},
		{"quoted in git", "diff --git \"a/\\303\\251\" b/x\n", []string{"\u00e9", "x"}, true},
		{"the other one quoted", "diff --git a/x \"b/\\303\\251\"\n", []string{"x", "\u00e9"}, true},
		{"names that cannot be told apart", "diff --git a/x b/y b/z\n", nil, false},
		{"names that cannot be told apart, without prefix", "diff --git x y z w\n", nil, false},
		{"the names that git applies differ from the first line", "diff --git a/src/x b/src/x\n--- a/src/x\n+++ b/etc/passwd\n@@ -1 +1 @@\n-o\n+n\n", []string{"src/x", "etc/passwd"}, true},
		{"an Index line", "Index: src/x\n===\n--- src/x\t(revision 1)\n+++ src/x\t(working copy)\n", []string{"src/x"}, true},
		{"a context diff", "*** src/x\t2026\n--- src/y\t2026\n***************\n*** 1,2 ****\n", []string{"src/y"}, false},
		{"a message before it", "From: x\nSubject: y\n\n---\n x | 2 +-\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-o\n+n\n-- \n2.40\n", []string{"x"}, true},

		{"a diff behind an envelope", "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\ndiff --git a/b b/b\n", []string{"a", "b"}, true},
		{"a text that is both", "*** Begin Patch\n*** Update File: a\n@@ -1 +1 @@\n--- x\n+++ ../z\n@@ -1 +1 @@\n-o\n+n\n*** End Patch", []string{"a", "x", "../z"}, true},
	} {
		got, known := policy.CallPaths("apply_patch", map[string]any{"patch": c.patch})
		assert.Equal(t, c.want, got, c.name)
		assert.Equal(t, c.known, known, c.name)
	}
}

// Reading a call takes time and memory linear in its size, whatever is in it:
// were it quadratic in one of these, the test would not come back.
func TestHugePatchesAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"headers":     strings.Repeat("--- a\n+++ b\n", 1<<19),
		"directives":  strings.Repeat("*** Add File: x\n", 1<<19),
		"one line":    "*** Add File: " + strings.Repeat("x", 8<<20),
		"soft breaks": strings.Repeat("\f", 8<<20),
		"quotes":      strings.Repeat("--- \"\\\\", 1<<20),
		"spaces":      "*** Begin Patch\n" + strings.Repeat(" ", 8<<20),
		"b":           "diff --git " + strings.Repeat(" b/", 1<<21),
	} {
		paths, _ := policy.CallPaths("apply_patch", map[string]any{"patch": text})
		assert.LessOrEqual(t, len(paths), policy.MaxCallPaths, name)
	}
}

func FuzzCallPaths(f *testing.F) {
	for _, s := range []string{
		"*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n*** End Patch",
		"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-o\n-p\n+n\n",
		"--- \"a/\\303\"\n+++ \"b/\\\n", "+++ x\r*** y\u2028@@ -", "Index: \"", "@@ -9,99999999999 +",
	} {
		f.Add("apply_patch", "patch", s)
		f.Add("write", "path", s)
	}
	f.Fuzz(func(t *testing.T, tool, key, value string) {
		args := map[string]any{key: value, "edits": []any{map[string]any{key: value}}}
		paths, known := policy.CallPaths(tool, args)
		again, knownAgain := policy.CallPaths(tool, args)
		require.Equal(t, paths, again)
		require.Equal(t, known, knownAgain)
		require.True(t, !known || len(paths) > 0)
		require.LessOrEqual(t, len(paths), policy.MaxCallPaths)
		seen := map[string]bool{}
		for _, p := range paths {
			require.False(t, p == "" || seen[p])
			seen[p] = true
		}
		v := guard(t, "src").Check(policy.NewGuardCall(tool, "edit", args, nil))
		require.True(t, !v.Allowed || known)
	})
}

// FuzzPatch holds the scan against a plain reading of the envelope: whatever
// names a file there by the letter is found.
func FuzzPatch(f *testing.F) {
	f.Add("*** Update File: a\n+x\n*** Move to: b")
	f.Add("+++ a\n--- b\n@@ -1 +1 @@\n")
	f.Fuzz(func(t *testing.T, body string) {
		text := "*** Begin Patch\n" + body + "\n*** End Patch"
		paths, known := policy.CallPaths("apply_patch", map[string]any{"input": text})
		if len(paths) == policy.MaxCallPaths {
			require.False(t, known)
			return
		}
		for line := range strings.SplitSeq(text, "\n") {
			line = strings.TrimSuffix(line, "\r")
			for _, verb := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
				name, ok := strings.CutPrefix(line, verb)
				if !ok || strings.ContainsAny(name, "\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029") {
					continue
				}
				if name == "" {
					require.False(t, known)
				} else {
					require.Contains(t, paths, name)
				}
			}
		}
	})
}
