package install

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMentions: a guard is known by its words; what only shares one is not.
func TestMentions(t *testing.T) {
	for line, want := range map[string]bool{
		"/usr/bin/childlog guard codex || true":        true,
		"/opt/cl --store /s guard claude-code; exit 0": true,
		"sh -c '/opt/cl guard codex'":                  true,
		"env X=1 /opt/cl \"guard\" 'codex'":            true,
		"guard claude-code":                            false, // a program called guard
		"/opt/guard codex":                             false,
		"/opt/cl guard the house":                      false,
		"/opt/cl guard profiles":                       false,
		"echo codex guard":                             false,
		"childlog ls":                                  false,
	} {
		require.Equal(t, want, mentions(line), line)
	}
}
