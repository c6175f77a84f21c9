package materialize_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
)

// fields is a configuration that can be copied.
type fields map[string]any

func (f fields) Field(name string) any { return f[name] }

func (f fields) With(name string, value any) (materialize.Config, error) {
	c := maps.Clone(f)
	c[name] = value
	return c, nil
}

// answer is a configuration with the same answer to every question, as mocks
// have, and no way to copy it.
type answer struct{ value any }

func (a answer) Field(string) any { return a.value }

// scripted is a configuration of which each method does what a test says.
type scripted struct {
	field func(string) any
	with  func() (materialize.Config, error)
}

func (s *scripted) Field(name string) any                        { return s.field(name) }
func (s *scripted) With(string, any) (materialize.Config, error) { return s.with() }

type flag bool

const selfEdit = "prompt_block_self_edit"

func refusal(t *testing.T, err error) *materialize.LockdownError {
	t.Helper()
	require.ErrorIs(t, err, eventlog.ErrUnauthorized)
	var refused *materialize.LockdownError
	require.ErrorAs(t, err, &refused)
	require.NotContains(t, err.Error(), "\n")
	return refused
}

// A mock-like configuration that answers truthy for everything is not a
// request; only a bool that is true is.
func TestCase48_OnlyALiteralTrueAsks(t *testing.T) {
	yes := true
	for _, value := range []any{
		nil, false, "true", "yes", 1, 1.0, &yes, flag(true), struct{}{}, []bool{true}, map[string]bool{selfEdit: true},
		func() bool { return true }, answer{true},
	} {
		c := &answer{value}
		got, err := materialize.LockConfig(c)
		require.NoError(t, err, "%T", value)
		require.Same(t, c, got, "%T", value)
	}
	_, err := materialize.LockConfig(answer{true})
	require.Equal(t, &materialize.LockdownError{Where: "config", Why: "not_copied"}, refusal(t, err))
}

// The same object if it is off; a copy with it off, and all else, if it is on.
func TestCase48_ConfigOfTheParent(t *testing.T) {
	off := &scripted{field: func(name string) any { return name != selfEdit }}
	got, err := materialize.LockConfig(off)
	require.NoError(t, err)
	require.Same(t, off, got)

	on := fields{selfEdit: true, "model": "m", "prompt_block_self_edit_": true}
	got, err = materialize.LockConfig(on)
	require.NoError(t, err)
	require.Equal(t, fields{selfEdit: false, "model": "m", "prompt_block_self_edit_": true}, got)
	require.Equal(t, true, on[selfEdit], "the original is as it was")

	got, err = materialize.LockConfig(nil)
	require.NoError(t, err)
	require.Nil(t, got)
}

// What cannot be copied, or says it can and lies, is refused with an error and
// without a configuration.
func TestLockConfigRefuses(t *testing.T) {
	asks := func(string) any { return true }
	var self *scripted
	changed := fields{selfEdit: true}
	self = &scripted{
		field: func(name string) any { return changed[name] },
		with:  func() (materialize.Config, error) { changed[selfEdit] = false; return self, nil },
	}
	calls := 0
	for name, c := range map[string]struct {
		config materialize.Config
		why    materialize.Why
	}{
		"no way to copy":          {answer{true}, "not_copied"},
		"copying fails":           {&scripted{asks, func() (materialize.Config, error) { return fields{}, errors.New("no") }}, "not_copied"},
		"copying panics":          {&scripted{asks, func() (materialize.Config, error) { panic("no") }}, "not_copied"},
		"no copy":                 {&scripted{asks, func() (materialize.Config, error) { return nil, nil }}, "not_copied"},
		"the copy still asks":     {&scripted{asks, func() (materialize.Config, error) { return fields{selfEdit: true}, nil }}, "not_copied"},
		"the original as copy":    {self, "not_copied"},
		"the question panics":     {&scripted{field: func(string) any { panic(fmt.Errorf("no")) }}, "panicked"},
		"a nil pointer":           {(*scripted)(nil), "panicked"},
		"the copy panics":         {&scripted{asks, func() (materialize.Config, error) { return (*scripted)(nil), nil }}, "panicked"},
		"the original, afterward": {&scripted{func(string) any { calls++; return 1/(2-calls) == 1 }, func() (materialize.Config, error) { return fields{}, nil }}, "panicked"},
	} {
		got, err := materialize.LockConfig(c.config)
		require.Nil(t, got, name)
		require.Equal(t, &materialize.LockdownError{Where: "config", Why: c.why}, refusal(t, err), name)
	}
}

func TestLockdownErrorIsOneLine(t *testing.T) {
	long := make([]string, 12)
	for i := range long {
		long[i] = fmt.Sprintf("tool\u202e%02d%s", i, strings.Repeat("x", 1000))
	}
	for _, c := range []struct {
		err  materialize.LockdownError
		want string
	}{
		{materialize.LockdownError{Child: "doc", Where: "tools", Why: "locked_tool", Tools: []string{"prompt_block_edit", "x"}},
			`unauthorized: lockdown: child "doc": tools: got "prompt_block_edit" "x", want no tool that a child may not hold`},
		{materialize.LockdownError{Child: "d\n\u200b", Agent: 2, Where: "tools", Why: "invalid_name", Tools: []string{"a\u200b"}},
			`unauthorized: lockdown: child "d\n\u200b": wrapped agent 2: tools: got "a\u200b", want names of tools`},
		{materialize.LockdownError{Child: "d", Where: "config", Why: "self_edit"},
			`unauthorized: lockdown: child "d": config: got prompt_block_self_edit true, want it off`},
		{materialize.LockdownError{Where: "config", Why: "not_copied"},
			`unauthorized: lockdown: config: got prompt_block_self_edit true and no copy without it, want one`},
		{materialize.LockdownError{Child: "d", Where: "wrapped", Why: "not_inspected"},
			`unauthorized: lockdown: child "d": wrapped: got nothing to inspect, want it, or the child declared foreign`},
		{materialize.LockdownError{Child: "d", Where: "tools", Why: "panicked"},
			`unauthorized: lockdown: child "d": tools: got a panic, want an answer`},
	} {
		require.Equal(t, c.want, c.err.Error())
	}
	text := (&materialize.LockdownError{Child: long[0], Where: "tools", Why: "invalid_name", Tools: long}).Error()
	require.Less(t, len(text), 2000)
	require.Contains(t, text, "and 4 more")
	require.NotContains(t, text, "\u202e")
}
