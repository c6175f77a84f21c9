package deepseek

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
)

const (
	turnLine  = `{"type":"turn/start","data":{"turn":1}}`
	packLine  = `{"type":"text-chunks","data":{"texts":["a","b","c","d"]}}`
	grantLine = `{"type":"sandbox/mode","data":{"mode":"danger-full-access","source":"delegation"}}`
	pinLine   = `{"type":"approval/policy","data":{"policy":"never","source":"delegation"}}`
)

func seeded(length string) string {
	return fmt.Sprintf(`{"type":"session","version":0,"id":"s","createdAt":1,"parentSession":"p","origin":"subagent","delegationDepth":1,"seedLength":%s}`, length)
}

// TestSeedBoundary: the seed is counted in events, and whatever is doubtful
// counts as the parent's: then the child has read-only and never.
func TestSeedBoundary(t *testing.T) {
	for name, c := range map[string]struct {
		length    string
		lines     []string
		inherited int64
		mode      policy.Mode
		codes     []string
	}{
		"none":              {"0", []string{grantLine, pinLine}, 0, policy.DangerFullAccess, nil},
		"one line":          {"1", []string{turnLine, grantLine, pinLine}, 1, policy.DangerFullAccess, nil},
		"packed":            {"5", []string{turnLine, packLine, grantLine, pinLine}, 2, policy.DangerFullAccess, nil},
		"the parent's own":  {"2", []string{grantLine, pinLine, turnLine, pinLine}, 2, policy.ReadOnly, nil},
		"inside a pack":     {"3", []string{turnLine, packLine, grantLine, pinLine}, 2, policy.DangerFullAccess, []string{codeSeedBoundary}},
		"beyond the end":    {"90", []string{turnLine, grantLine, pinLine}, 3, policy.ReadOnly, []string{codeSeedBoundary, "unpinned"}},
		"no number":         {`"5"`, []string{turnLine, grantLine, pinLine}, 3, policy.ReadOnly, []string{codeHeader, "unpinned"}},
		"blank lines":       {"1", []string{"", turnLine, "", grantLine, pinLine}, 2, policy.DangerFullAccess, nil},
		"empty pack":        {"1", []string{`{"type":"text-chunks","data":{"texts":[]}}`, turnLine, grantLine, pinLine}, 2, policy.DangerFullAccess, nil},
		"unreadable line":   {"2", []string{turnLine, "{", grantLine, pinLine}, 2, policy.DangerFullAccess, []string{importer.CodeUnreadable}},
		"seq agrees":        {"5", []string{withSeq(turnLine, 0), withSeq(packLine, 1), withSeq(grantLine, 5), withSeq(pinLine, 6)}, 2, policy.DangerFullAccess, nil},
		"seq says it's out": {"5", []string{withSeq(turnLine, 0), withSeq(turnLine, 3), withSeq(turnLine, 5), withSeq(grantLine, 6), withSeq(pinLine, 7)}, 5, policy.ReadOnly, []string{codeSeq, codeSeedBoundary, codeSeedBoundary, codeSeedBoundary, "unpinned"}},
		"seq says it's in":  {"2", []string{withSeq(turnLine, 0), withSeq(turnLine, 0), withSeq(turnLine, 1), withSeq(grantLine, 2), withSeq(pinLine, 3)}, 3, policy.DangerFullAccess, []string{codeSeq, codeSeedBoundary}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			report := load(t, s, importer.Options{}, lines(t, t.TempDir(), "a.jsonl", append([]string{seeded(c.length)}, c.lines...)...))
			var got []string
			for _, code := range codes(report) {
				if code != importer.CodeParentMissing && code != codeUnlinked {
					got = append(got, code)
				}
			}
			require.ElementsMatch(t, c.codes, got)
			x := report.SessionList[0]
			require.Equal(t, c.inherited, x.Inherited)
			e := policyOf(t, s, x.ID)
			require.Equal(t, c.mode, e.Sandbox.Value.Mode)
			require.Equal(t, policy.Never, e.Approvals)
			var inherited int64
			for _, ev := range events(t, s, x.ID) {
				if ev.Inherited != nil {
					inherited++
					require.Equal(t, eventlog.Ref{Session: importer.SessionID(System, "p"), Seq: ev.Seq}, *ev.Inherited, "where an import would put it")
				}
			}
			require.Equal(t, c.inherited, inherited)
		})
	}
}

func withSeq(line string, seq int) string { return fmt.Sprintf(`{"seq":%d,%s`, seq, line[1:]) }

// TestSeedRepacked: the parent's log and the seed may pack their chunks in
// different ways; the copies still point to the events they are copies of.
func TestSeedRepacked(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	chunk := `{"type":"assistant/chunk","data":{"chunk":{"type":"text-delta","text":"a"}}}`
	lines(t, dir, "p.jsonl", head("p", ""), turnLine, chunk, chunk, "", chunk, chunk, `{"type":"turn/end","data":{"turn":1}}`)
	lines(t, dir, "s.jsonl", seeded("6"), turnLine, packLine, `{"type":"turn/end","data":{"turn":1}}`, `{"type":"session/end-seed","data":{}}`, pinLine)
	load(t, s, importer.Options{}, dir)
	parent := find(t, s, "p")
	var refs []uint64
	for _, ev := range events(t, s, find(t, s, "s")) {
		if ev.Inherited != nil {
			require.Equal(t, parent, ev.Inherited.Session)
			refs = append(refs, ev.Inherited.Seq)
		}
	}
	list := events(t, s, parent)
	require.Equal(t, []uint64{3, 4, 9}, refs, "the turn, the first of the chunks, the turn's end")
	require.Equal(t, eventlog.TypeTurnEnd, list[8].Type)

	// The other way round, and with the mark of a run between the parent's lines.
	s = newStore(t)
	dir = t.TempDir()
	p := lines(t, dir, "p.jsonl", head("p", ""), turnLine, packLine)
	load(t, s, importer.Options{}, p)
	lines(t, dir, "p.jsonl", head("p", ""), turnLine, packLine, `{"type":"turn/end","data":{"turn":1}}`)
	load(t, s, importer.Options{}, p)
	lines(t, dir, "s.jsonl", seeded("6"), turnLine, chunk, chunk, chunk, chunk, `{"type":"turn/end","data":{"turn":1}}`, pinLine)
	load(t, s, importer.Options{}, dir)
	refs = nil
	for _, ev := range events(t, s, find(t, s, "s")) {
		if ev.Inherited != nil {
			refs = append(refs, ev.Inherited.Seq)
		}
	}
	require.Equal(t, []uint64{3, 4, 4, 4, 4, 6}, refs)
}
