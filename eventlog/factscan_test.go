package eventlog

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// requireScanAgrees: what the scan admits, the decoding check admits too.
func requireScanAgrees(t require.TestingT, typ string, facts Facts) (admitted bool) {
	spec, known := coreTypes()[typ]
	if admitted = spec.admits(facts); admitted {
		require.NoError(t, spec.check(typ, known, facts), "%s %x", typ, []byte(facts))
	}
	return admitted
}

// TestFactScan: of flat facts that are right none takes the long way, and of
// wrong ones none the short one.
func TestFactScan(t *testing.T) {
	id, hash := sid(1), Hash{1}
	for _, c := range []struct {
		typ  string
		m    map[string]any
		want bool
	}{
		{TypeToolCall, map[string]any{"call": "c", "tool": "read"}, true},
		{TypeToolCall, map[string]any{"call": "c", "tool": "read", "n": 1, "b": true, "nothing": nil, "id": id, "hash": hash, "s": ""}, true},
		{TypeToolCall, map[string]any{"call": "c"}, false},
		{TypeToolCall, map[string]any{"call": "c", "tool": 1}, false},
		{TypeToolCall, map[string]any{"call": "c", "tool": "free text"}, false},
		{TypeToolCall, map[string]any{"call": "c", "tool": "read", "Tool": "x"}, false},
		{TypeToolCall, map[string]any{"call": "c", "tool": "read", "a name": 1}, false},
		{TypeToolCall, map[string]any{"call": "c", "tool": "read", "bytes": []byte{1}}, false},
		{TypeTurnStart, map[string]any{"turn": -1}, false},
		{TypeSessionClosed, map[string]any{"by": "x", "more": 1}, false},
		{TypeSessionEndSeed, map[string]any{}, true},
		{TypeNoticeConsumed, map[string]any{"child": id, "settled_seq": 3}, true},
		{TypeNoticeConsumed, map[string]any{"child": hash, "settled_seq": 3}, false},
		{"plugin/note", map[string]any{"a": "b"}, true},
		{"plugin/note", map[string]any{"list": []any{1}}, false}, // right, but not flat
	} {
		facts := must(MakeFacts(c.m))
		require.Equal(t, c.want, requireScanAgrees(t, c.typ, facts), "%s %v", c.typ, c.m)
		require.False(t, requireScanAgrees(t, c.typ, append(facts[:len(facts):len(facts)], 0xc0)), "trailing bytes")
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(rt, "fields") {
			name := rapid.SampledFrom([]string{"call", "tool", "Call", "turn", "outcome", "x y", "z"}).Draw(rt, "name")
			m[name] = rapid.SampledFrom([]any{nil, true, 1, -1, "a", "", "a b", id, hash, []byte{1}, []any{"a"}, map[string]any{"a b": 1}}).Draw(rt, "value")
		}
		for _, typ := range []string{TypeToolCall, TypeToolResult, TypeTurnStart, TypeSessionClosed, "plugin/note"} {
			requireScanAgrees(rt, typ, must(MakeFacts(m)))
		}
	})
}
