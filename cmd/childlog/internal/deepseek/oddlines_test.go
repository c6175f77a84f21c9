package deepseek

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// TestOddLines: whatever a line is, it is one event with the line's bytes.
func TestOddLines(t *testing.T) {
	s := newStore(t)
	path := "testdata/odd/odd.jsonl"
	report := load(t, s, importer.Options{}, path)
	list := events(t, s, find(t, s, "odd-0001"))
	require.Equal(t, []string{"session/created", "import/other session",
		"import/other blank", "import/other blank", "import/other non-object", "import/other non-object", "import/other untyped",
		"import/other unreadable", "import/other unreadable", "import/other unreadable",
		"import/other turn/start", "garden/watered", "import/other Garden_Watered", "import/other " + importer.Code("free text with blanks"),
		"import/other import/source", "import/other policy/narrowed", "import/other session/created", "import/other session",
		"sandbox/mode", "approval/policy", "tool/call", "tool/result", "user/message", "import/other history/compacted",
		"import/source"}, types(list))

	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	for i, line := range bytes.Split(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n")) {
		ev := list[i+1]
		require.Equal(t, string(line), string(ev.Content), "line %d", i+1)
		want := eventlog.MediaJSON
		if eventlog.CheckJSON(line) != nil {
			want = eventlog.MediaOctets
		}
		require.Equal(t, want, ev.Media, "line %d", i+1)
		if ev.Type == eventlog.TypeImportOther {
			require.True(t, ev.Ignorable)
		}
	}
	require.True(t, list[11].Ignorable, "as the line says")
	require.Equal(t, "header", list[1].Facts.Str("line"))
	require.Equal(t, "", list[17].Facts.Str("line"), "a second header is a line like others")
	require.Equal(t, importer.Kept{Blank: 2, NonObject: 2, Untyped: 1, Unreadable: 3, Malformed: 2, Unknown: 8}, report.Kept)

	bad := map[int64]string{}
	for _, f := range report.Findings {
		if f.Code == importer.CodeUnreadable {
			bad[f.Line] = f.Detail
		}
	}
	require.Len(t, bad, 3)
	require.Contains(t, bad[7], "line at byte offset 132: ")
	require.Contains(t, bad[7], "json: byte offset 38")
	require.Contains(t, bad[8], "0xff is not valid UTF-8")
	require.Contains(t, bad[9], "duplicate", "two readers would disagree about what it allows")
	for _, code := range []string{codeForeignField, codeSecondHeader, codeUnknownPolicy, importer.CodeTime, importer.CodeMalformed, importer.CodeUnknownType, replay.FindingForeignMode} {
		require.Contains(t, codes(report), code)
	}

	e := policyOf(t, s, find(t, s, "odd-0001"))
	require.Equal(t, policy.ReadOnly, e.Sandbox.Value.Mode, "external-sandbox is not known and counts as read-only")
	require.Equal(t, policy.Never, e.Approvals, "an approval/policy without a policy")
	require.Equal(t, list[20].Facts.Str("call"), list[21].Facts.Str("call"), "digests of one id are equal")
	require.Contains(t, list[20].Facts.Str("call"), "sha256:")
	require.Equal(t, "E_DENIED", list[21].Facts.Str("error"))
	row, err := s.Row(find(t, s, "odd-0001"))
	require.NoError(t, err)
	require.Empty(t, row.OpenCalls)
	require.Zero(t, row.UnknownSeq)
}

// TestStrict: of a file with an unreadable line nothing is taken, of its
// neighbours everything.
func TestStrict(t *testing.T) {
	s := newStore(t)
	report := load(t, s, importer.Options{Strict: true}, "testdata/odd", "testdata/tree")
	require.Equal(t, 1, report.Refused)
	require.Equal(t, 1, report.Skipped)
	require.Equal(t, 3, report.Sessions)
	require.Contains(t, codes(report), importer.CodeRefused)
	_, err := s.ByExternal(System, "odd-0001")
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	st, err := s.Stats()
	require.NoError(t, err)
	require.EqualValues(t, 3, st.Sessions)
}

// TestDryRun reports the same and writes nothing, also on a store that is open
// for reading only.
func TestDryRun(t *testing.T) {
	ctx := t.Context()
	s := newStore(t)
	dry := load(t, s, importer.Options{DryRun: true}, "testdata")
	st, err := s.Stats()
	require.NoError(t, err)
	require.Zero(t, st.Events)
	dir := filepath.Join(t.TempDir(), "store")
	_, err = eventlog.Init(ctx, dir)
	require.NoError(t, err)
	ro, err := eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: true})
	require.NoError(t, err)
	require.Equal(t, dry, load(t, ro, importer.Options{DryRun: true}, "testdata"))
	require.NoError(t, ro.Close())

	wet := load(t, s, importer.Options{}, "testdata")
	wet.DryRun = true
	require.Equal(t, dry, wet)
	require.Zero(t, load(t, s, importer.Options{DryRun: true}, "testdata").Events)
}

// TestLongLines: a line of megabytes is kept whole, one over the limit of a
// content as its digest and length.
func TestLongLines(t *testing.T) {
	s := newStore(t)
	long := `{"type":"user/message","data":{"text":"` + strings.Repeat("x", 5<<20) + `"}}`
	over := `{"type":"sandbox/mode","data":{"mode":"danger-full-access","pad":"` + strings.Repeat("y", eventlog.MaxContent) + `"}}`
	path := lines(t, t.TempDir(), "a.jsonl", `{"type":"session","version":0,"id":"long-1","createdAt":1}`, long, over, `{"type":"turn/start","data":{"turn":1}}`)
	report := load(t, s, importer.Options{}, path)
	list := events(t, s, find(t, s, "long-1"))
	require.Equal(t, []string{"session/created", "import/other session", "user/message", "import/other too-long", "turn/start", "import/source"}, types(list))
	require.Equal(t, long, string(list[2].Content))
	require.False(t, list[3].HasContent)
	require.Equal(t, uint64(len(over)), list[3].Facts.Uint("bytes"))
	require.EqualValues(t, 3, finding(t, report, importer.CodeTooLong).Line)
	require.Equal(t, policy.ReadOnly, policyOf(t, s, find(t, s, "long-1")).Sandbox.Value.Mode)
	require.Zero(t, load(t, s, importer.Options{}, path).Events)
	require.Equal(t, 1, load(t, s, importer.Options{Strict: true}, path).Refused)
}

// TestManyBadLines: findings are bounded by file and code, and counted beyond.
func TestManyBadLines(t *testing.T) {
	all := []string{`{"type":"session","version":0,"id":"many-1","createdAt":1}`}
	for range 500 {
		all = append(all, "{")
	}
	report := load(t, newStore(t), importer.Options{}, lines(t, t.TempDir(), "a.jsonl", all...))
	require.EqualValues(t, 500, report.Kept.Unreadable)
	require.Len(t, report.Findings, 51)
	require.Equal(t, "and 450 more of this kind in this file", report.Findings[50].Detail)
}

// TestOpenCallsAreBounded: a log of calls without results can't make its
// session's state grow without end.
func TestOpenCallsAreBounded(t *testing.T) {
	s := newStore(t)
	all := []string{`{"type":"session","version":0,"id":"calls-1","createdAt":1}`}
	for i := range maxOpen + 100 {
		id := strings.Repeat("c", 1+i%7) + number(uint64(i))
		all = append(all, `{"type":"tool/call","data":{"callId":"`+id+`","name":"bash"}}`, `{"type":"approval/asked","data":{"id":"`+id+`","toolName":"bash"}}`)
	}
	report := load(t, s, importer.Options{}, lines(t, t.TempDir(), "a.jsonl", all...))
	require.Contains(t, codes(report), codeTooManyOpen)
	row, err := s.Row(find(t, s, "calls-1"))
	require.NoError(t, err)
	require.Len(t, row.OpenCalls, maxOpen)
	require.Len(t, row.OpenAsks, maxOpen)
}
