package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func errorsIsAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

func guard(t require.TestingT, entries ...string) policy.Guard {
	w, err := policy.NewWorkspace("/w", policy.PathStylePosix)
	require.NoError(t, err)
	g, err := policy.NewGuard(scope(t, entries...), w)
	require.NoError(t, err)
	return g
}

func edit(paths ...string) policy.GuardCall {
	return policy.GuardCall{Tool: "write", Effect: policy.EffectEdit, Paths: paths, PathsKnown: true}
}

func TestGuardCheck(t *testing.T) {
	recovery := func(admitted []string, paths ...string) policy.GuardCall {
		return policy.GuardCall{Tool: "rollback", Effect: policy.EffectRecovery, Paths: paths, PathsKnown: len(paths) > 0, Admitted: admitted}
	}
	unknown := edit("src/a")
	unknown.PathsKnown = false
	unknownOutside := edit("src/a", "x")
	unknownOutside.PathsKnown = false
	outOfScope, pathUnknown := policy.CodeWriteScopeViolation, policy.CodePathUnknown
	for _, c := range []struct {
		name    string
		call    policy.GuardCall
		code    string
		targets []string
		outside []string
	}{
		{"an edit inside", edit("src/a"), "", []string{"src/a"}, nil},
		{"all paths inside", edit("src/a", "/w/src/b", "./src/a"), "", []string{"src/a", "src/b"}, nil},
		{"one path outside", edit("src/a", "x", "src/../y"), outOfScope, []string{"src/a"}, []string{"x", "src/../y"}},
		{"the workspace", edit("."), outOfScope, nil, []string{"."}},
		{"a protected place", edit("src/.git/hooks/pre-commit"), outOfScope, nil, []string{"src/.git/hooks/pre-commit"}},
		{"no path", edit(), pathUnknown, nil, nil},
		{"a path too few", unknown, pathUnknown, []string{"src/a"}, nil},
		{"outside is surer than unknown", unknownOutside, outOfScope, []string{"src/a"}, []string{"x"}},
		{"a read", policy.GuardCall{Effect: policy.EffectRead, Paths: []string{"/etc/passwd"}}, "", nil, nil},
		{"the network", policy.GuardCall{Effect: policy.EffectNetwork}, "", nil, nil},
		{"a delegation", policy.GuardCall{Effect: policy.EffectDelegate}, "", nil, nil},
		{"a shell", policy.GuardCall{Effect: policy.EffectShell, Paths: []string{"src/a"}, PathsKnown: true}, outOfScope, nil, nil},
		{"opaque", policy.GuardCall{Effect: policy.EffectOpaque, Paths: []string{"src/a"}, PathsKnown: true}, outOfScope, nil, nil},
		{"no effect", policy.GuardCall{Paths: []string{"src/a"}, PathsKnown: true}, outOfScope, nil, nil},
		{"a foreign effect", policy.GuardCall{Effect: "READ"}, outOfScope, nil, nil},
		{"recovery of an admitted target", recovery([]string{"old/a"}, "old/a"), "", []string{"old/a"}, nil},
		{"recovery below an admitted directory", recovery([]string{"old"}, "old/a"), "", []string{"old/a"}, nil},
		{"recovery inside", recovery(nil, "src/a"), "", []string{"src/a"}, nil},
		{"recovery of another file", recovery([]string{"old/a"}, "old/b"), outOfScope, nil, []string{"old/b"}},
		{"recovery beside an admitted name", recovery([]string{"old/a"}, "old/ab"), outOfScope, nil, []string{"old/ab"}},
		{"recovery of the workspace", recovery([]string{"."}, "x"), outOfScope, nil, []string{"x"}},
		{"recovery without a path", recovery([]string{"old/a", "src/b"}), "", []string{"old/a", "src/b"}, nil},
		{"recovery of nothing", recovery(nil), pathUnknown, nil, nil},
		{"an edit that names nothing does not either", policy.GuardCall{Effect: policy.EffectEdit, Admitted: []string{"src/b"}}, pathUnknown, nil, nil},
		{"an edit does not profit from it", policy.GuardCall{Effect: policy.EffectEdit, Paths: []string{"old/a"}, PathsKnown: true, Admitted: []string{"old/a"}}, outOfScope, nil, []string{"old/a"}},
	} {
		v := guard(t, "src").Check(c.call)
		assert.Equal(t, c.code == "", v.Allowed, c.name)
		assert.Equal(t, c.code, v.Code, c.name)
		assert.Equal(t, c.targets, v.Targets, c.name)
		var outside []string
		for _, o := range v.Outside {
			outside = append(outside, o.Path)
			assert.NotEmpty(t, o.Want)
		}
		assert.Equal(t, c.outside, outside, c.name)
		assert.True(t, v.Scope.Equal(scope(t, "src")))
		if v.Allowed {
			assert.NoError(t, v.Err())
			assert.Empty(t, v.Reason)
			continue
		}
		assert.NotEmpty(t, v.Reason)
		require.ErrorContains(t, v.Err(), c.code, c.name)
		if c.code == pathUnknown {
			assert.ErrorIs(t, v.Err(), policy.ErrPathUnknown)
		} else {
			assert.ErrorIs(t, v.Err(), policy.ErrOutside)
		}
	}
}

func TestGuardMessages(t *testing.T) {
	g := guard(t, "src")
	assert.EqualError(t, g.Check(edit("x", "src/../y", "src/a")).Err(),
		`write_scope_violation: got 2 of 3 paths outside: "x" (want a path within src), "src/../y" (want no .. segment)`)
	assert.EqualError(t, g.Check(edit(numbered("x%d", 9)...)).Err(),
		`write_scope_violation: got 9 of 9 paths outside: "x0" (want a path within src), "x1" (want a path within src), "x2" (want a path within src) and 6 more`)
	assert.EqualError(t, g.Check(edit()).Err(),
		`path_unknown: got a call of "write" with 0 recognized paths, want every path it changes`)
	assert.EqualError(t, g.Check(policy.GuardCall{Tool: "exec_shell", Effect: policy.EffectShell}).Err(),
		`write_scope_violation: got a call of "exec_shell", class shell, want one that names the files it changes, within src`)
	assert.EqualError(t, g.Check(policy.GuardCall{Tool: "rollback", Effect: policy.EffectRecovery}).Err(),
		`path_unknown: got a call of "rollback" with 0 recognized paths, want every path it changes, or earlier calls to undo`)
}

// Whoever forgets to build a guard gets one that lets nothing through.
func TestZeroGuard(t *testing.T) {
	var g policy.Guard
	assert.False(t, g.Check(edit("a")).Allowed)
	assert.False(t, policy.GuardVerdict{}.Allowed)
	assert.Error(t, policy.GuardVerdict{}.Err())
	_, err := policy.NewGuard(policy.Unscoped(), policy.Workspace{})
	require.ErrorIs(t, err, policy.ErrInvalid)
	assert.True(t, guard(t, "a").Scope().Equal(scope(t, "a")))
}

func TestEffectOf(t *testing.T) {
	for _, c := range []struct {
		tool, class string
		want        policy.Effect
	}{
		{"write", "edit", policy.EffectEdit},
		{"read", "read", policy.EffectRead},
		{"bash", "shell", policy.EffectShell},
		{"fetch", "network", policy.EffectNetwork},
		{"agent", "delegate", policy.EffectDelegate},
		{"x", "opaque", policy.EffectOpaque},
		{"x", "", policy.EffectOpaque},
		{"x", "Edit", policy.EffectOpaque},
		{"x", "recovery", policy.EffectOpaque},
		{"rollback", "edit", policy.EffectRecovery},
		{"repair", "opaque", policy.EffectRecovery},
		{"abort", "", policy.EffectRecovery},
		{"repair", "shell", policy.EffectShell},
		{"abort", "unheard", policy.EffectOpaque},
		{"Rollback", "", policy.EffectOpaque},
		{"rollback ", "", policy.EffectOpaque},
		{"rollb\u0430ck", "", policy.EffectOpaque},
	} {
		assert.Equal(t, c.want, policy.EffectOf(c.tool, c.class), "%q %q", c.tool, c.class)
	}
	call := policy.NewGuardCall("edit", "edit", map[string]any{"path": "src/a"}, []string{"b"})
	assert.Equal(t, policy.GuardCall{Tool: "edit", Effect: policy.EffectEdit, Paths: []string{"src/a"}, PathsKnown: true, Admitted: []string{"b"}}, call)
}

// A guarded shell call inside an open batch must hear of the guard: the batch
// is not what stands in its way.
func TestCase43_ScopeBeforeBatchAndIsolation(t *testing.T) {
	v := guard(t, "src").Check(policy.NewGuardCall("exec_shell", "shell", map[string]any{"command": "make"}, nil))
	scopeRefusal, refused := v.Refusal()
	require.True(t, refused)
	batch := policy.Refusal{Stage: policy.StageBatch, Code: "batch_open", Err: errors.New("a batch is open")}
	isolation := policy.Refusal{Stage: policy.StageIsolation, Code: "not_isolated"}
	late := policy.Refusal{Code: "of no stage"}
	for _, found := range [][]policy.Refusal{
		{batch, scopeRefusal, isolation}, {scopeRefusal, batch}, {isolation, batch, scopeRefusal, late}, {late, scopeRefusal},
	} {
		first, refused := policy.FirstRefusal(found...)
		require.True(t, refused)
		assert.Equal(t, policy.CodeWriteScopeViolation, first.Code)
		assert.ErrorIs(t, first.Err, policy.ErrOutside)
	}
	first, _ := policy.FirstRefusal(isolation, batch)
	assert.Equal(t, "batch_open", first.Code)
	first, _ = policy.FirstRefusal(late, isolation)
	assert.Equal(t, "not_isolated", first.Code)
	_, refused = policy.FirstRefusal()
	assert.False(t, refused)
	_, refused = guard(t, "src").Check(edit("src/a")).Refusal()
	assert.False(t, refused)
}

func TestCase45_Confinement(t *testing.T) {
	confine := func(declared, guard policy.Scope) error { return policy.Confine(declared, &guard) }
	assert.NoError(t, confine(scope(t, "src"), scope(t, "src/a")))
	assert.NoError(t, confine(scope(t, "src"), scope(t, "src")))

	err := confine(scope(t, "src/a"), scope(t, "src"))
	require.ErrorIs(t, err, policy.ErrUnconfined)
	assert.EqualError(t, err, `unconfined: got a guard that also allows "src", want it within src/a`)
	var e *policy.ConfinementError
	require.ErrorAs(t, confine(scope(t, "src"), scope(t, "src/a", "x", "docs")), &e)
	assert.Equal(t, []string{"docs", "x"}, e.Extra)

	assert.NoError(t, confine(scope(t, "src"), scope(t)), "an empty guard is narrow enough")
	for _, path := range []string{"src", "src/a", "."} {
		assert.False(t, guard(t).Check(edit(path)).Allowed, "and nothing may be written")
	}

	err = policy.Confine(scope(t, "src"), nil)
	require.ErrorIs(t, err, policy.ErrUnconfined)
	assert.EqualError(t, err, "unconfined: got no guard, want one within src")
	assert.ErrorIs(t, confine(scope(t, "src"), policy.Unscoped()), policy.ErrUnconfined)
	assert.ErrorIs(t, confine(policy.Unscoped(), policy.Unscoped()), policy.ErrUnconfined)
	assert.NoError(t, confine(policy.Unscoped(), scope(t, "src")))
	assert.ErrorIs(t, confine(scope(t, "src"), scope(t, "SRC")), policy.ErrUnconfined)
	assert.ErrorIs(t, confine(scope(t, "src"), scope(t, "src/.git")), policy.ErrUnconfined)
}

// 16. A guard lets an edit through if and only if each of its paths is a target
// the scope admits; a narrower scope lets nothing through that a wider refuses.
func TestPropertyGuardAgreesWithScope(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genScope().Filter(policy.Scope.Stated).Draw(t, "a"), genScope().Draw(t, "b")
		paths := rapid.SliceOfN(rapid.OneOf(genEntry(), genRaw()), 1, 4).Draw(t, "paths")
		w, err := policy.NewWorkspace("/a", policy.PathStylePosix)
		require.NoError(t, err)
		want := true
		for _, p := range paths {
			target, err := w.Target(p)
			want = want && err == nil && a.Admits(target)
		}
		wide, err := policy.NewGuard(a, w)
		require.NoError(t, err)
		narrow, err := policy.NewGuard(a.Meet(b), w)
		require.NoError(t, err)
		require.Equal(t, want, wide.Check(edit(paths...)).Allowed)
		require.True(t, wide.Check(edit(paths...)).Allowed || !narrow.Check(edit(paths...)).Allowed)
	})
}

func TestCallPaths(t *testing.T) {
	deep := `{"path":"a","x":` + strings.Repeat(`{"x":`, 80) + `1` + strings.Repeat(`}`, 80) + `}`
	for _, c := range []struct {
		tool, args string
		want       []string
		known      bool
	}{
		{"write", `{"path":"a","content":"x"}`, []string{"a"}, true},
		{"Write", `{"file_path":"/w/a","content":"*** Update File: b"}`, []string{"/w/a"}, true},
		{"NotebookEdit", `{"notebook_path":"a.ipynb","new_source":"x"}`, []string{"a.ipynb"}, true},
		{"move", `{"source":"a","destination":"b"}`, []string{"b", "a"}, true},
		{"delete", `{"paths":["a","b","a"]}`, []string{"a", "b"}, true},
		{"MultiEdit", `{"file_path":"a","edits":[{"old_string":"x","new_string":"y"}]}`, []string{"a"}, true},
		{"edit", `{"edits":[{"path":"a"},{"file_path":"b"},{"source":"c","destination":"d"}]}`, []string{"a", "b", "d", "c"}, true},
		{"edit", `{"path":"a","edits":[{"path":"b"}]}`, []string{"b", "a"}, true},
		{"write_files", `{"files":[{"path":"a","content":"x"},{"path":"b"}]}`, []string{"a", "b"}, true},
		{"write", `{"path":"a","options":{"Path":"b"}}`, []string{"b", "a"}, true},
		{"write", `{"filePath":"a"}`, []string{"a"}, true},
		{"write", `{"path":"a","file-path":"b","NOTEBOOK_Path":"c","file_paths":"d"}`, []string{"c", "b", "a"}, true},
		{"write", `{"path":"a","PATH":"b"}`, []string{"b", "a"}, true},
		{"write", `{"path":"a","\uff50ath":"b","p\u200bath":"c"}`, []string{"a", "c", "b"}, true},
		{"write", `{"path":"a","notebook_path":null}`, []string{"a"}, true},
		{"write", `{"path":["a","b"]}`, []string{"a", "b"}, true},
		{"write", `{"paths":"a"}`, []string{"a"}, true},
		{"write", `{"paths":[{"path":"a"}]}`, []string{"a"}, true},
		{"write", `{"path":"a","metadata":{"source":"a person"}}`, []string{"a"}, true},
		{"write", `{"content":"x"}`, nil, false},
		{"write", `{}`, nil, false},
		{"write", `{"path":null}`, nil, false},
		{"write", `{"path":""}`, nil, false},
		{"write", `{"path":"a","file_path":""}`, []string{"a"}, false},
		{"write", `{"path":1}`, nil, false},
		{"write", `{"path":{"path":"a"}}`, nil, false},
		{"write", `{"path":"a","paths":[1]}`, []string{"a"}, false},
		{"write", `{"paths":[]}`, nil, false},
		{"edit", `{"path":"a","edits":"*** b"}`, []string{"a"}, false},
		{"edit", `{"path":"a","edits":["b"]}`, []string{"a"}, false},
		{"edit", `{"path":"a","edits":null}`, []string{"a"}, true},
		{"write", deep, []string{"a"}, false},

		{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch"}`, []string{"a"}, true},
		{"apply_patch", `{"patchText":"*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"}`, []string{"a"}, true},
		{"functions", `{"input":"*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"}`, []string{"a"}, true},
		{"exec", `{"path":"a","input":"yes"}`, []string{"a"}, true},
		{"apply_patch", `{"input":"nothing"}`, nil, false},
		{"x", `{"patch":"nothing"}`, nil, false},
		{"x", `{"path":"a","patch":"nothing"}`, []string{"a"}, false},
		{"x", `{"path":"a","patch":[{"op":"add","path":"/b"}]}`, []string{"a"}, false},
		{"x", `{"path":"a","patch":null}`, []string{"a"}, true},
		{"x", `{"path":"a","stats":{"diff":3}}`, []string{"a"}, true},
		{"x", `{"path":"a","ops":[{"diff":"--- a/b\n+++ b/b\n"}]}`, []string{"b", "a"}, true},
		{"x", `{"diff":"--- a/b\n+++ b/c\n@@ -1 +1 @@\n-x\n+y\n"}`, []string{"b", "c"}, true},
		{"move", `{"path":"a","moves":[{"source":"b","destination":"../c"}]}`, []string{"../c", "b", "a"}, true},
		{"move", `{"path":"a","moves":[{"Source":"b","DESTINATION":1}]}`, []string{"b", "a"}, false},
		// A tool that patches may take its patch from any argument.
		{"apply_patch", `{"path":"a","command":["apply_patch","*** Begin Patch\n*** Add File: /etc/b\n+x\n*** End Patch"]}`, []string{"/etc/b", "a"}, true},
		{"apply_patch", `{"path":"a","call":{"body":"*** Begin Patch\n*** Add File: b\n+x\n*** End Patch"}}`, []string{"b", "a"}, true},
		{"apply_patch", `{"path":"a","call":[{"body":["--- a/b\n+++ b/b\n"]}]}`, []string{"b", "a"}, true},
		{"write", `{"path":"a","call":["*** Begin Patch\n*** Add File: b\n+x\n*** End Patch"]}`, []string{"a"}, true},
		{"x", `{"path":"a","call":{"diff":["--- a/b\n+++ b/b\n",7,null]}}`, []string{"b", "a"}, true},
	} {
		var args map[string]any
		require.NoError(t, json.Unmarshal([]byte(c.args), &args), c.args)
		got, known := policy.CallPaths(c.tool, args)
		assert.Equal(t, c.want, got, c.args)
		assert.Equal(t, c.known, known, c.args)
	}
	// Arguments built in Go rather than decoded.
	got, known := policy.CallPaths("x", map[string]any{"paths": []string{"a", "b"}, "edits": []map[string]any{{"path": "c"}}})
	assert.Equal(t, []string{"c", "a", "b"}, got)
	assert.True(t, known)
	got, known = policy.CallPaths("apply_patch", map[string]any{"path": "a", "command": []string{"apply_patch", "*** Add File: b"}})
	assert.Equal(t, []string{"b", "a"}, got)
	assert.True(t, known)
	for _, hidden := range []any{
		[]byte("a"), json.RawMessage(`{"path":"b"}`), map[string]string{"path": "b"}, []map[string]string{{"path": "b"}}, struct{ Path string }{"b"}, &got, [1]string{"b"},
	} {
		_, known = policy.CallPaths("x", map[string]any{"path": "a", "options": hidden})
		assert.False(t, known, "%T", hidden)
	}
	for _, plain := range []any{nil, true, 1, uint8(2), 0.5, json.Number("7"), "text", []any{}, []string{"text"}} {
		_, known = policy.CallPaths("x", map[string]any{"path": "a", "options": plain})
		assert.True(t, known, "%T", plain)
	}
	_, known = policy.CallPaths("x", map[string]any{"path": []byte("a")})
	assert.False(t, known)
	_, known = policy.CallPaths("x", nil)
	assert.False(t, known)

	many := make([]any, policy.MaxCallPaths+1)
	for i := range many {
		many[i] = fmt.Sprint("p", i)
	}
	got, known = policy.CallPaths("x", map[string]any{"paths": many})
	assert.Len(t, got, policy.MaxCallPaths)
	assert.False(t, known, "the one too many is not known")
	_, known = policy.CallPaths("x", map[string]any{"paths": many[1:]})
	assert.True(t, known)
}
