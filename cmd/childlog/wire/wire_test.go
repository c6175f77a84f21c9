package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/policy"
)

// Roots that were not recorded and roots that permit nothing are not the same.
func TestRootsAbsentAndEmpty(t *testing.T) {
	none, err := policy.RootsOf()
	require.NoError(t, err)
	for want, v := range map[string]policy.Sandbox{
		`"writable_roots":null`: {Mode: policy.WorkspaceWrite},
		`"writable_roots":[]`:   {Mode: policy.WorkspaceWrite, Roots: none},
	} {
		b, err := Line(SandboxOf(v))
		require.NoError(t, err)
		require.Contains(t, string(b), want)
	}
}

// A JSON content keeps its bytes; only the line breaks that would end the line
// become blanks.
func TestEventLine(t *testing.T) {
	facts, err := eventlog.MakeFacts(map[string]any{"n": 1})
	require.NoError(t, err)
	ev := &eventlog.Event{Seq: 1, Type: "a/b", Facts: facts, HasContent: true, Media: eventlog.MediaJSON, Content: []byte("{\"b\": 1,\r\n \"a\":\t\"\\ud800\"}")}
	e := EventOf(ev)
	line, err := e.Line()
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(line), ",\"content\":{\"b\": 1,   \"a\":\t\"\\ud800\"}}\n"), "%s", line)
	require.Equal(t, 1, strings.Count(string(line), "\n"))
	require.Contains(t, string(line), `"facts":{"n":1}`)

	ev.Content, ev.ContentErr = nil, eventlog.ErrCorrupt
	e = EventOf(ev)
	line, err = e.Line()
	require.NoError(t, err)
	require.Contains(t, string(line), `"content_error":"corrupt"`)
	require.NotContains(t, string(line), `"content":`)

	ev.Facts, ev.ContentErr = eventlog.Facts{0xc1}, nil
	e = EventOf(ev)
	line, err = e.Line()
	require.NoError(t, err)
	require.Contains(t, string(line), `"facts":null`)
	require.Contains(t, string(line), `"facts_error":"`)
}

// Equal values give equal bytes.
func TestLineIsDeterministic(t *testing.T) {
	n := Notice{Denials: map[string]uint64{"a": 1, "b": 2, "c": 3, "d": 4}, Usage: map[string]uint64{}}
	first, err := Line(n)
	require.NoError(t, err)
	for range 50 {
		again, err := Line(n)
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
}
