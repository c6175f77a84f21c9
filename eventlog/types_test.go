package eventlog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTypes: the description says what the tables do, and is a copy of them.
func TestTypes(t *testing.T) {
	types := Types()
	require.Len(t, types, len(coreTypes()))
	byName := map[string]TypeInfo{}
	for _, info := range types {
		byName[info.Type] = info
		require.NotEmpty(t, info.Writers, info.Type)
		require.Equal(t, IsClosed(info.Type), info.Writers[0].By != "harness", info.Type)
		require.Len(t, info.Facts, len(coreTypes()[info.Type].fields), info.Type)
		for _, f := range info.Facts {
			require.NotEmpty(t, f.Kind, "%s: the kind of %s has a name", info.Type, f.Name)
		}
	}
	require.Equal(t, TypeInfo{Type: TypeDelegationStarted, Version: 1, Closed: true, Strict: true,
		Facts:   []FactInfo{{"child", "id", false}, {"receipt", "hash", false}, {"tool_call", "code", true}},
		Writers: []WriterInfo{{"delegation", []string{"delegation"}}, {"importer", []string{"import"}}}}, byName[TypeDelegationStarted])
	require.True(t, byName[TypeSandboxMode].Policy)
	require.False(t, byName[TypeToolCall].Strict)
	require.Equal(t, []WriterInfo{{"runtime", []string{"store"}}, {"importer", []string{"import"}}}, byName[TypeToolDecision].Writers)
	require.Equal(t, []string{"activation", "approval", "content", "control", "delegation", "inbox", "notice", "policy", "sandbox", "session", "store"}, ClosedFamilies())

	types[0].Facts[0].Name = "changed"
	require.NotEqual(t, "changed", Types()[0].Facts[0].Name)
}
