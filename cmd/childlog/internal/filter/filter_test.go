package filter

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"childlog/eventlog"
)

var now = time.Date(2026, 11, 30, 13, 0, 0, 0, time.UTC)

func TestPeriod(t *testing.T) {
	for text, want := range map[string][2]string{
		"2026-11-30":                {"2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"},
		"2026-11-30T12:30:00Z":      {"2026-11-30T12:30:00Z", "2026-11-30T12:30:00Z"},
		"2026-11-30T12:30:00+02:00": {"2026-11-30T10:30:00Z", "2026-11-30T10:30:00Z"},
		"36h":                       {"2026-11-29T01:00:00Z", "2026-11-29T01:00:00Z"},
		"7d":                        {"2026-11-23T13:00:00Z", "2026-11-23T13:00:00Z"},
	} {
		for i, end := range []bool{false, true} {
			got, err := moment("--since", text, now, end)
			require.NoError(t, err)
			require.Equal(t, want[i], got.UTC().Format(time.RFC3339), "%s, end %t", text, end)
		}
	}
	for _, text := range []string{"yesterday", "2026-02-30", "-3h", "7", "d", "12:00", "0s"} {
		_, err := moment("--since", text, now, false)
		require.ErrorAs(t, err, new(*UsageError), text)
	}
	f := Filter{Since: "2026-11-29", Until: "2026-11-30"}
	require.NoError(t, f.Compile(now))
	require.True(t, f.Within(time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)))
	require.True(t, f.Within(time.Date(2026, 11, 30, 23, 59, 59, 0, time.UTC)))
	require.False(t, f.Within(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)), "the end is excluded")
	require.False(t, f.Within(time.Date(2026, 11, 28, 23, 59, 59, 0, time.UTC)))
	none := Filter{}
	require.NoError(t, none.Compile(now))
	require.True(t, none.Within(time.Time{}))
	require.False(t, none.PicksAny())
}

func TestCompileRefuses(t *testing.T) {
	for want, f := range map[string]Filter{
		"--verdict: ":   {Verdict: "maybe"},
		"--decider: ":   {Decider: "nobody"},
		"--status: ":    {Status: "asleep"},
		"--kind: ":      {Kind: "store"},
		"--sandbox: ":   {Sandbox: "none"},
		"--role: ":      {Role: "king"},
		"--type: ":      {Types: []string{"tool/call", "tool"}},
		"--tool: ":      {Tool: "*x"},
		"is not before": {Since: "2026-11-30T00:00:00Z", Until: "2026-11-30T00:00:00Z"},
	} {
		err := f.Compile(now)
		require.ErrorAs(t, err, new(*UsageError))
		require.ErrorContains(t, err, want)
	}
	f := Filter{Role: "scout", Types: []string{"*", "policy/*", "a/b.c/d"}, Tool: "exec*"}
	require.NoError(t, f.Compile(now))
	require.Equal(t, "explore", f.Role, "an alias is its role")
}

// told makes an event; pairs are facts.
func told(t *testing.T, typ string, pairs ...any) *eventlog.Event {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	f, err := eventlog.MakeFacts(m)
	require.NoError(t, err)
	return &eventlog.Event{Session: uuid.Max, Type: typ, Version: 1, Time: now, Facts: f}
}

func TestEvents(t *testing.T) {
	call := told(t, "tool/call", "call", "c1", "tool", "Write")
	decision := told(t, "tool/decision", "call", "c1", "tool", "Write", "canonical", "write_file", "verdict", "deny", "code", "files", "decider", map[string]any{"kind": "rule"})
	result := told(t, "tool/result", "call", "c1", "outcome", "ok")
	other := told(t, "tool/result", "call", "c2", "outcome", "ok")
	rejected := told(t, "approval/decided", "ask", "q", "outcome", "rejected", "decider", "pin")
	allowed := told(t, "approval/decided", "ask", "q", "outcome", "allowed-once", "decider", "human")
	message := told(t, "user/message")
	message.Content, message.Media = []byte("Please FIX it"), eventlog.MediaText
	erased := told(t, "user/message")
	erased.HasContent, erased.ContentErr = true, eventlog.ErrCorrupt
	all := []*eventlog.Event{call, decision, result, other, rejected, allowed, message, erased}
	for name, c := range map[string]struct {
		f    Filter
		want []*eventlog.Event
	}{
		"nothing":               {Filter{}, all},
		"family":                {Filter{Types: []string{"tool/*"}}, []*eventlog.Event{call, decision, result, other}},
		"any of the types":      {Filter{Types: []string{"tool/call", "user/message"}}, []*eventlog.Event{call, message, erased}},
		"no prefix of a name":   {Filter{Types: []string{"too/*"}}, nil},
		"tool, with its result": {Filter{Tool: "write"}, []*eventlog.Event{call, decision, result}},
		"canonical tool":        {Filter{Tool: "WRITE_*"}, []*eventlog.Event{decision}},
		"both":                  {Filter{Tool: "write", Types: []string{"tool/result"}}, []*eventlog.Event{result}},
		"verdict":               {Filter{Verdict: "deny"}, []*eventlog.Event{decision, rejected}},
		"allowed":               {Filter{Verdict: "allow"}, []*eventlog.Event{allowed}},
		"code":                  {Filter{Code: "approval_pin"}, []*eventlog.Event{rejected}},
		"decider":               {Filter{Decider: "rule"}, []*eventlog.Event{decision}},
		"verdict and decider":   {Filter{Verdict: "deny", Decider: "pin"}, []*eventlog.Event{rejected}},
		"text":                  {Filter{Text: "fix"}, []*eventlog.Event{message}},
		"another time":          {Filter{Until: "2026-11-30T12:00:00Z"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.f.Compile(now))
			m := c.f.Events()
			var got []*eventlog.Event
			for _, ev := range all {
				if m.Match(ev) {
					got = append(got, ev)
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}

// The quick search finds what a regular expression does.
func TestPatternEqualsRegexp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[aAbBéK\.\[x-z]{1,4}`).Draw(t, "text")
		hay := []byte(rapid.StringMatching(`[aAbBéEÉkK\.\[x-zX-Z ]{0,40}`).Draw(t, "hay"))
		p, err := NewPattern(text, false)
		require.NoError(t, err)
		from, to := p.Index(hay)
		want := regexp.MustCompile("(?i)" + regexp.QuoteMeta(text)).FindIndex(hay)
		if want == nil {
			want = []int{-1, -1}
		}
		require.Equal(t, want, []int{from, to})
	})
}

func TestPatternInJSON(t *testing.T) {
	content := []byte(`{"a":"line\none \"two\" \u00e9t\u00E9 \ud83d\ude00 \ud800 C:\\dir\/x","b":"\\n"}`)
	for text, want := range map[string]bool{"line\none": true, `"TWO"`: true, "été": true, "ÉTÉ": true, "😀": true, `c:\dir/x`: true, `\n`: true, "\ufffd": true, "three": false} {
		p, err := NewPattern(text, false)
		require.NoError(t, err)
		require.Equal(t, want, p.In(content, true), text)
	}
	p, err := NewPattern("été", false)
	require.NoError(t, err)
	require.False(t, p.In(content, false), "a text has no escapes")
	in, from, to := p.Find(content, true)
	require.Equal(t, "été", string(in[from:to]))
	for _, bad := range []string{`\`, `\u`, `\u12`, `\uzzzz`, `a\`} {
		require.NotPanics(t, func() { unescape([]byte(bad)) }, bad)
	}
	require.Equal(t, `\u12 x`, string(unescape([]byte(`\u12 x`))), "what is no escape stays")
	_, err = NewPattern("(", true)
	require.ErrorAs(t, err, new(*UsageError))
	_, err = NewPattern("", false)
	require.Error(t, err)
	_, err = NewPattern("\xff", false)
	require.Error(t, err)
}

// A text of the other case throughout costs no second look at each byte.
func BenchmarkPatternOtherCase(b *testing.B) {
	hay := []byte(strings.Repeat("A", 1<<20))
	p, err := NewPattern("ab", false)
	require.NoError(b, err)
	b.SetBytes(int64(len(hay)))
	for b.Loop() {
		if from, _ := p.Index(hay); from >= 0 {
			b.Fatal("found")
		}
	}
}
