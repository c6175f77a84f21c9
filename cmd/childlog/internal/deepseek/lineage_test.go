package deepseek

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// TestAnyOrder: the files of a tree give the same sessions and links in every
// order, at once or one by one.
func TestAnyOrder(t *testing.T) {
	a, b, c := "testdata/tree/a-grandchild.jsonl", "testdata/tree/b-child.jsonl", "testdata/tree/c-root.jsonl"
	type link struct {
		parent, root uuid.UUID
		depth        int
	}
	links := func(s *eventlog.Store) map[uuid.UUID]link {
		out := map[uuid.UUID]link{}
		for _, id := range []string{"g-0003", "c-0002", "r-0001"} {
			row, err := s.Row(find(t, s, id))
			require.NoError(t, err)
			out[row.Session] = link{row.Parent, row.Root, row.Depth}
		}
		return out
	}
	first := newStore(t)
	report := load(t, first, importer.Options{}, "testdata/tree")
	require.NotContains(t, codes(report), importer.CodeParentMissing)
	want := links(first)
	root, child, grandchild := find(t, first, "r-0001"), find(t, first, "c-0002"), find(t, first, "g-0003")
	require.Equal(t, map[uuid.UUID]link{root: {uuid.Nil, root, 0}, child: {root, root, 1}, grandchild: {child, root, 2}}, want)

	for _, order := range [][]string{{a, b, c}, {c, b, a}, {b, a, c}, {b, c, a}} {
		s := newStore(t)
		load(t, s, importer.Options{}, order...)
		require.Equal(t, want, links(s), "%v", order)
		one := newStore(t)
		for _, path := range order {
			load(t, one, importer.Options{}, path)
		}
		got := links(one)
		for id := range want {
			require.Equal(t, want[id].parent, got[id].parent, "%v", order)
			require.Equal(t, want[id].depth, got[id].depth, "%v", order)
		}
		children, err := one.Children(root)
		require.NoError(t, err)
		require.Equal(t, []uuid.UUID{child}, children)
	}
}

// TestParentLater: a link may point to a session that is not there yet; its
// log fits in when it comes.
func TestParentLater(t *testing.T) {
	s := newStore(t)
	report := load(t, s, importer.Options{}, "testdata/tree/b-child.jsonl")
	missing := finding(t, report, importer.CodeParentMissing)
	require.Contains(t, missing.Detail, importer.SessionID(System, "r-0001").String())
	d := report.DelegationList[0]
	require.Equal(t, importer.SessionID(System, "r-0001"), d.Parent)
	require.False(t, d.ParentKnown)
	policyOf(t, s, d.Child)

	report = load(t, s, importer.Options{}, "testdata/tree/c-root.jsonl")
	require.Equal(t, d.Parent, report.SessionList[0].ID)
	report = load(t, s, importer.Options{}, "testdata/tree")
	require.NotContains(t, codes(report), importer.CodeParentMissing)
	require.True(t, delegation(t, report, d.Child).ParentKnown)
}

func head(id, parent string) string {
	if parent == "" {
		return fmt.Sprintf(`{"type":"session","version":0,"id":%q,"createdAt":1,"delegationDepth":0}`, id)
	}
	return fmt.Sprintf(`{"type":"session","version":0,"id":%q,"createdAt":1,"parentSession":%q,"origin":"subagent"}`, id, parent)
}

// TestCircles: sessions that name each other as parents never close a circle,
// in one run or over several; a walk over the tree always ends.
func TestCircles(t *testing.T) {
	dir := t.TempDir()
	a, b, c := lines(t, dir, "a.jsonl", head("a", "b")), lines(t, dir, "b.jsonl", head("b", "c")), lines(t, dir, "c.jsonl", head("c", "a"))
	check := func(s *eventlog.Store) {
		steps := 0
		for cur := find(t, s, "a"); cur != uuid.Nil; steps++ {
			require.Less(t, steps, 4)
			row, err := s.Row(cur)
			require.NoError(t, err)
			cur = row.Parent
		}
	}
	s := newStore(t)
	report := load(t, s, importer.Options{}, dir)
	require.Contains(t, codes(report), importer.CodeParentCycle)
	check(s)
	one := newStore(t)
	load(t, one, importer.Options{}, a)
	load(t, one, importer.Options{}, b)
	report = load(t, one, importer.Options{}, c)
	require.Contains(t, codes(report), importer.CodeParentCycle)
	check(one)
	require.Zero(t, load(t, one, importer.Options{}, dir).Events)
}

// TestPlaceholders: files whose ids are all the same placeholder are told
// apart, and found again, by header, folder and name.
func TestPlaceholders(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	root := `{"type":"session","version":0,"id":"{{sessionId}}","createdAt":0,"delegationDepth":0}`
	child := `{"type":"session","version":0,"id":"{{sessionId}}","createdAt":0,"parentSession":"{{sessionId}}","origin":"subagent","delegationDepth":1}`
	for _, folder := range []string{"one", "two"} {
		lines(t, filepath.Join(dir, folder), "parent.jsonl", root, `{"type":"turn/start","data":{"turn":1},"in":"`+folder+`"}`)
		lines(t, filepath.Join(dir, folder), "child.jsonl", child, `{"type":"turn/start","data":{"turn":1},"in":"`+folder+`"}`)
	}
	lines(t, filepath.Join(dir, "two"), "child-b.jsonl", child)
	lines(t, filepath.Join(dir, "three"), "child.jsonl", child)
	report := load(t, s, importer.Options{}, dir)
	require.Equal(t, 6, report.NewSessions)
	parents := map[string]uuid.UUID{}
	for _, d := range report.DelegationList {
		parents[d.ChildExternal] = d.Parent
	}
	require.Len(t, parents, 4)
	inferred, missing := 0, 0
	for _, code := range codes(report) {
		switch code {
		case importer.CodeParentInferred:
			inferred++
		case importer.CodeParentMissing:
			missing++
		}
	}
	require.Equal(t, 3, inferred, "one parent in each of two folders")
	require.Equal(t, 1, missing, "no parent in the third")
	require.Zero(t, load(t, s, importer.Options{}, filepath.Join(dir, "two", "child.jsonl"), dir).Events)
	t.Chdir(dir)
	require.Zero(t, load(t, s, importer.Options{}, "two", "one/child.jsonl", "three").Events, "however the folder is named")
}

// TestSharedID: two logs of one id are two sessions; children go to the one in
// their own folder.
func TestSharedID(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	for i, folder := range []string{"one", "two"} {
		lines(t, filepath.Join(dir, folder), "root.jsonl", fmt.Sprintf(`{"type":"session","version":0,"id":"same","createdAt":%d}`, i+1))
		lines(t, filepath.Join(dir, folder), "child.jsonl", head("child-of-"+folder, "same"))
	}
	lines(t, filepath.Join(dir, "zzz"), "child.jsonl", head("lost", "same"))
	report := load(t, s, importer.Options{}, dir)
	require.Equal(t, 5, report.NewSessions)
	require.Equal(t, []string{"unpinned", "unpinned", codeCollision, "unpinned", codeParentUnclear}, codes(report))
	byFile := map[string]uuid.UUID{}
	for _, x := range report.SessionList {
		rel, err := filepath.Rel(dir, x.File)
		require.NoError(t, err)
		byFile[rel] = x.ID
	}
	require.NotEqual(t, byFile["one/root.jsonl"], byFile["two/root.jsonl"])
	require.Equal(t, byFile["one/root.jsonl"], find(t, s, "same"))
	for child, parent := range map[string]string{"one/child.jsonl": "one/root.jsonl", "two/child.jsonl": "two/root.jsonl", "zzz/child.jsonl": "one/root.jsonl"} {
		require.Equal(t, byFile[parent], delegation(t, report, byFile[child]).Parent, child)
	}
	require.Zero(t, load(t, s, importer.Options{}, filepath.Join(dir, "two"), dir).Events, "each is found again, in any order")
}

// TestHeaders: what makes a child, and what of a header counts when it can't
// be read.
func TestHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		header string
		kind   string
		depth  int
		codes  []string
	}{
		"root":             {`{"type":"session","version":0,"id":"x","delegationDepth":0}`, "root", 0, nil},
		"bare":             {`{"type":"session","version":0,"id":"x"}`, "root", 0, nil},
		"by parent":        {`{"type":"session","version":0,"id":"x","parentSession":"y"}`, "child", 1, []string{"parent-missing", "unpinned"}},
		"by origin":        {`{"type":"session","version":0,"id":"x","origin":"subagent"}`, "child", 1, []string{"parent-missing", "unpinned"}},
		"by depth":         {`{"type":"session","version":0,"id":"x","delegationDepth":2}`, "child", 2, []string{"parent-missing", "unpinned"}},
		"child of depth 0": {`{"type":"session","version":0,"id":"x","parentSession":"y","delegationDepth":0}`, "child", 1, []string{"parent-missing", "unpinned"}},
		"own parent":       {`{"type":"session","version":0,"id":"x","parentSession":"x"}`, "child", 1, []string{"parent-missing", "placeholder-id", "unpinned"}},
		"null parent":      {`{"type":"session","version":0,"id":"x","parentSession":null,"seedLength":null}`, "root", 0, nil},
		"odd fields": {`{"type":"session","version":7,"id":"x","parentSession":5,"delegationDepth":-1,"seedLength":"many","createdAt":"noon","cwd":"../x"}`, "root", 0,
			[]string{"header", "header", "header", "header", "header"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			report := load(t, s, importer.Options{}, lines(t, t.TempDir(), "a.jsonl", c.header))
			require.ElementsMatch(t, c.codes, codes(report))
			row, err := s.Row(report.SessionList[0].ID)
			require.NoError(t, err)
			require.Equal(t, c.kind, row.Kind)
			require.Equal(t, c.depth, row.Depth)
		})
	}
	for _, first := range []string{"", "   ", "[]", "{", `{"type":"session"}`, `{"type":"session","id":""}`, `{"type":"session","id":7}`,
		`{"type":"turn/start","id":"x"}`, `{"type":"session","id":"a","id":"b"}`, "\xef\xbb\xbf" + `{"type":"session","id":"x"}`} {
		report := load(t, newStore(t), importer.Options{Strict: true}, lines(t, t.TempDir(), "a.jsonl", first, `{"type":"turn/start","data":{"turn":1}}`))
		require.Equal(t, 1, report.Skipped, "%q", first)
		require.Equal(t, []string{importer.CodeNoHeader}, codes(report), "%q", first)
	}
}

// TestMissingPath ends the import before it began; an unreadable file does not
// stop the others.
func TestMissingPath(t *testing.T) {
	s := newStore(t)
	_, err := Import(t.Context(), s, []string{"testdata/tree", "testdata/none"}, importer.Options{})
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	require.ErrorContains(t, err, "testdata/none")
	st, err := s.Stats()
	require.NoError(t, err)
	require.Zero(t, st.Events)

	if os.Geteuid() != 0 { // root reads everything
		dir := t.TempDir()
		closed := lines(t, dir, "closed.jsonl", head("a", ""))
		require.NoError(t, os.Chmod(closed, 0))
		report := load(t, s, importer.Options{}, dir, "testdata/tree")
		require.Equal(t, 1, report.Skipped)
		require.Equal(t, 3, report.Sessions)
	}
}
