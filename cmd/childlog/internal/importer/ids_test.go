package importer

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

// TestIDsAreFixed: a store that was imported by an older version must be
// recognized by every later one. These values never change.
func TestIDsAreFixed(t *testing.T) {
	session := SessionID("deepseek-harness", "r-0001")
	require.EqualValues(t, 8, session.Version())
	require.Equal(t, uuid.RFC4122, session.Variant())
	require.Equal(t, "a04f973d-2fe9-8333-8a0f-21a7fa234098", session.String())
	require.Equal(t, "8c9dc6ed-56a9-8789-ae9a-c5b6d9951e88", EventID(session, 7, 0, [32]byte{1}).String())
}

// TestIDsDiffer in every part they are made of.
func TestIDsDiffer(t *testing.T) {
	seen := map[uuid.UUID]bool{}
	add := func(id uuid.UUID) {
		require.False(t, seen[id])
		seen[id] = true
	}
	add(SessionID("a", "bc"))
	add(SessionID("ab", "c"))
	add(SessionID("", "abc"))
	s := SessionID("a", "bc")
	add(EventID(s, 1, 0, [32]byte{}))
	add(EventID(s, 1, 1, [32]byte{}))
	add(EventID(s, 256, 0, [32]byte{}))
	add(EventID(s, 1, 0, [32]byte{1}))
	add(EventID(SessionID("a", "b"), 1, 0, [32]byte{}))
}

// TestCode keeps what may be a fact and digests the rest.
func TestCode(t *testing.T) {
	for _, s := range []string{"bash", "call_00_x", "mcp:server/tool", "a.b@c+d#e=f-g"} {
		require.Equal(t, s, Code(s))
	}
	for _, s := range []string{"", "two words", "täglich", "{{sessionId}}", "a\n", strings.Repeat("x", 257)} {
		require.NotEqual(t, s, Code(s))
		require.True(t, eventlog.IsCode(Code(s)))
		require.Equal(t, Code(s), Code(s))
	}
	require.NotEqual(t, Code("a b"), Code("a c"))
}

// TestFindings are sorted, bounded, and never nil.
func TestFindings(t *testing.T) {
	var fs Findings
	require.Equal(t, []Finding{}, fs.List())
	for i := range 200 {
		fs.Add(Finding{Code: "b", File: "f", Line: int64(200 - i)})
	}
	fs.Add(Finding{Code: "a", File: "f", Line: 151})
	fs.Add(Finding{Code: "a", File: "e", Line: 9})
	list := fs.List()
	require.Len(t, list, 1+1+perCode+1)
	require.Equal(t, "e", list[0].File)
	require.EqualValues(t, 151, list[1].Line)
	require.Equal(t, "a", list[1].Code)
	last := list[len(list)-1]
	require.Equal(t, "and 150 more of this kind in this file", last.Detail)
	require.Zero(t, last.Line)
}
