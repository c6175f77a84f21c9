package materialize_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"childlog/materialize"
	"childlog/policy"
)

// The agents of the tests, by what they show.

type lister struct{ tools []string }

func (l lister) Tools() []string { return l.tools }

type configured struct {
	lister
	config materialize.Config
}

func (c configured) Config() materialize.Config { return c.config }

type wrapper struct {
	configured
	wrapped []any
}

func (w wrapper) Wrapped() []any { return w.wrapped }

// opaque wraps and is configured, and shows no tools.
type opaque struct{ config materialize.Config }

func (o opaque) Config() materialize.Config { return o.config }

// broken panics in the methods that it is told to panic in.
type broken struct{ in string }

func (b broken) Tools() []string { return panicking(b.in == "tools", []string{}) }
func (b broken) Config() materialize.Config {
	return panicking(b.in == "config", materialize.Config(nil))
}
func (b broken) Wrapped() []any { return panicking(b.in == "wrapped", []any(nil)) }

func panicking[T any](yes bool, v T) T {
	if yes {
		panic(fmt.Errorf("no"))
	}
	return v
}

func tools(names ...string) lister {
	if names == nil {
		names = []string{}
	}
	return lister{names}
}

func wrapping(agents ...any) wrapper {
	return wrapper{configured: configured{lister: tools("read")}, wrapped: agents}
}

func inspect(t *testing.T, agent any) error {
	t.Helper()
	seen, err := materialize.Inspect(policy.Lockdown{}, materialize.Prebuilt{Name: "doc", Agent: agent})
	require.Equal(t, materialize.Inspection{}, seen)
	return err
}

// A registered tool refuses, however clean the configuration is.
func TestCase48_PrebuiltByTool(t *testing.T) {
	agent := configured{tools("read", "prompt_block_edit"), fields{selfEdit: false}}
	require.Equal(t, &materialize.LockdownError{Child: "doc", Where: "tools", Why: "locked_tool", Tools: []string{"prompt_block_edit"}}, refusal(t, inspect(t, agent)))
	require.Equal(t, []string{"read", "prompt_block_edit"}, agent.tools, "nothing is fixed up")
}

// A pre-built child whose configuration asks is refused, not fixed up; one that
// answers truthy for everything does not ask.
func TestCase48_PrebuiltByConfig(t *testing.T) {
	c := fields{selfEdit: true}
	require.Equal(t, &materialize.LockdownError{Child: "doc", Where: "config", Why: "self_edit"}, refusal(t, inspect(t, configured{tools(), c})))
	require.Equal(t, fields{selfEdit: true}, c)

	seen, err := materialize.Inspect(policy.Lockdown{}, materialize.Prebuilt{Agent: configured{tools(), answer{struct{}{}}}})
	require.NoError(t, err)
	require.Equal(t, materialize.Inspection{Tools: "inspected", Config: "inspected", Wrapped: "none"}, seen)
}

// A wrapper around such an agent is refused, by the agent inside.
func TestCase48_Wrapper(t *testing.T) {
	refused := refusal(t, inspect(t, wrapping(tools("read"), tools("prompt_block_delete", "prompt_block_append"))))
	require.Equal(t, &materialize.LockdownError{Child: "doc", Agent: 2, Where: "tools", Why: "locked_tool", Tools: []string{"prompt_block_append", "prompt_block_delete"}}, refused)
	refused = refusal(t, inspect(t, wrapping(configured{tools(), fields{selfEdit: true}})))
	require.Equal(t, &materialize.LockdownError{Child: "doc", Agent: 1, Where: "config", Why: "self_edit"}, refused)
}

// All refusals that stand whether the child is declared foreign or not.
func TestInspectRefuses(t *testing.T) {
	l, err := policy.NewLockdown("persona_edit")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		agent any
		want  materialize.LockdownError
	}{
		"all of them, sorted, once": {tools("prompt_block_replace", "read", "persona_edit", "prompt_block_edit", "persona_edit"),
			materialize.LockdownError{Where: "tools", Why: "locked_tool", Tools: []string{"persona_edit", "prompt_block_edit", "prompt_block_replace"}}},
		"another letter case": {tools("Prompt_Block_Edit"),
			materialize.LockdownError{Where: "tools", Why: "locked_tool", Tools: []string{"Prompt_Block_Edit"}}},
		"Cyrillic look-alike": {tools("read", "prompt_block_еdit"),
			materialize.LockdownError{Where: "tools", Why: "invalid_name", Tools: []string{"prompt_block_еdit"}}},
		"zero-width character": {tools("prompt_block_edit\u200b"),
			materialize.LockdownError{Where: "tools", Why: "invalid_name", Tools: []string{"prompt_block_edit\u200b"}}},
		"an empty name": {tools(""),
			materialize.LockdownError{Where: "tools", Why: "invalid_name", Tools: []string{""}}},
		"one of each": {tools("\u200b", "prompt_block_edit"),
			materialize.LockdownError{Where: "tools", Why: "locked_tool", Tools: []string{"prompt_block_edit", "\u200b"}}},
		"tools before configuration": {configured{tools("prompt_block_edit"), fields{selfEdit: true}},
			materialize.LockdownError{Where: "tools", Why: "locked_tool", Tools: []string{"prompt_block_edit"}}},
		"configuration before wrapped": {wrapper{configured{tools(), fields{selfEdit: true}}, []any{tools("prompt_block_edit")}},
			materialize.LockdownError{Where: "config", Why: "self_edit"}},
		"in the wrapper itself": {wrapper{configured{tools("prompt_block_edit"), nil}, []any{tools()}},
			materialize.LockdownError{Where: "tools", Why: "locked_tool", Tools: []string{"prompt_block_edit"}}},
		"first agent first": {wrapping(configured{tools(), fields{selfEdit: true}}, tools("prompt_block_edit")),
			materialize.LockdownError{Agent: 1, Where: "config", Why: "self_edit"}},
		"tools panic":              {broken{"tools"}, materialize.LockdownError{Where: "tools", Why: "panicked"}},
		"configuration panics":     {broken{"config"}, materialize.LockdownError{Where: "config", Why: "panicked"}},
		"its field panics":         {configured{tools(), (*scripted)(nil)}, materialize.LockdownError{Where: "config", Why: "panicked"}},
		"wrapped panics":           {broken{"wrapped"}, materialize.LockdownError{Where: "wrapped", Why: "panicked"}},
		"a nil pointer":            {(*lister)(nil), materialize.LockdownError{Where: "tools", Why: "panicked"}},
		"wrapped tools panic":      {wrapping(tools(), broken{"tools"}), materialize.LockdownError{Agent: 2, Where: "tools", Why: "panicked"}},
		"wrapped's wrapped panics": {wrapping(broken{"wrapped"}), materialize.LockdownError{Agent: 1, Where: "wrapped", Why: "panicked"}},
	} {
		for _, foreign := range []bool{false, true} {
			seen, err := materialize.Inspect(l, materialize.Prebuilt{Agent: c.agent, Foreign: foreign})
			require.Equal(t, materialize.Inspection{}, seen, name)
			require.Equal(t, &c.want, refusal(t, err), name)
		}
	}
}

// What cannot be inspected refuses, unless it was declared foreign: then the
// inspection says which part nobody looked at.
func TestInspectForeign(t *testing.T) {
	self := wrapping()
	self.wrapped = []any{&self}
	for name, c := range map[string]struct {
		agent any
		where materialize.Where
		n     int
		seen  materialize.Inspection
	}{
		"nothing at all":          {nil, "tools", 0, materialize.Inspection{Tools: "foreign", Config: "foreign", Wrapped: "foreign"}},
		"no method":               {struct{}{}, "tools", 0, materialize.Inspection{Tools: "foreign", Config: "foreign", Wrapped: "foreign"}},
		"a listing that says so":  {lister{nil}, "tools", 0, materialize.Inspection{Tools: "foreign", Config: "foreign", Wrapped: "foreign"}},
		"a configuration alone":   {opaque{fields{}}, "tools", 0, materialize.Inspection{Tools: "foreign", Config: "inspected", Wrapped: "foreign"}},
		"an agent without method": {wrapping(tools(), opaque{}), "tools", 2, materialize.Inspection{Tools: "inspected", Config: "none", Wrapped: "foreign"}},
		"a nil agent":             {wrapping(nil), "tools", 1, materialize.Inspection{Tools: "inspected", Config: "none", Wrapped: "foreign"}},
		"a wrapper in a wrapper":  {wrapping(wrapping(tools())), "wrapped", 1, materialize.Inspection{Tools: "inspected", Config: "none", Wrapped: "foreign"}},
		"one that wraps itself":   {&self, "wrapped", 1, materialize.Inspection{Tools: "inspected", Config: "none", Wrapped: "foreign"}},
	} {
		refused := refusal(t, inspect(t, c.agent))
		require.Equal(t, &materialize.LockdownError{Child: "doc", Agent: c.n, Where: c.where, Why: "not_inspected"}, refused, name)
		seen, err := materialize.Inspect(policy.Lockdown{}, materialize.Prebuilt{Agent: c.agent, Foreign: true})
		require.NoError(t, err, name)
		require.Equal(t, c.seen, seen, name)
	}
}

func TestInspectClean(t *testing.T) {
	wide := wrapping(wrapping(), configured{tools("bash"), fields{}})
	for name, c := range map[string]struct {
		agent         any
		seen, foreign materialize.Inspection
	}{
		"a list":    {tools("read", "prompt_block_read"), materialize.Inspection{Tools: "inspected", Config: "none", Wrapped: "none"}, materialize.Inspection{Tools: "inspected", Config: "foreign", Wrapped: "foreign"}},
		"no tools":  {tools(), materialize.Inspection{Tools: "inspected", Config: "none", Wrapped: "none"}, materialize.Inspection{Tools: "inspected", Config: "foreign", Wrapped: "foreign"}},
		"a config":  {configured{tools(), fields{}}, materialize.Inspection{Tools: "inspected", Config: "inspected", Wrapped: "none"}, materialize.Inspection{Tools: "inspected", Config: "inspected", Wrapped: "foreign"}},
		"nobody":    {wrapping(), materialize.Inspection{Tools: "inspected", Config: "none", Wrapped: "none"}, materialize.Inspection{Tools: "inspected", Config: "none", Wrapped: "none"}},
		"one level": {wide, materialize.Inspection{Tools: "inspected", Config: "none", Wrapped: "inspected"}, materialize.Inspection{Tools: "inspected", Config: "none", Wrapped: "foreign"}},
	} {
		seen, err := materialize.Inspect(policy.Lockdown{}, materialize.Prebuilt{Agent: c.agent})
		require.NoError(t, err, name)
		require.Equal(t, c.seen, seen, name)
		seen, err = materialize.Inspect(policy.Lockdown{}, materialize.Prebuilt{Agent: c.agent, Foreign: true})
		require.NoError(t, err, name)
		require.Equal(t, c.foreign, seen, name)
	}
}

// Over random agents of up to three levels: a child that passes has no locked
// tool and no asking configuration within one level, and either was declared
// foreign or shows all its palettes and has nothing below. Declaring it foreign
// forgives nothing that can be seen.
func TestPropertyNoChildHoldsALockedTool(t *testing.T) {
	genTools := rapid.SampledFrom([][]string{nil, {}, {"read"}, {"read"}, {"read", "bash"}, {"Prompt_block_edit"}, {"a b"}})
	genConfig := rapid.SampledFrom([]materialize.Config{nil, fields{}, answer{"true"}, fields{selfEdit: true}})
	var genAgent func(depth int) *rapid.Generator[any]
	genAgent = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			if rapid.IntRange(0, 9).Draw(t, "bare") == 0 {
				return nil
			}
			w := wrapper{configured: configured{lister{genTools.Draw(t, "tools")}, genConfig.Draw(t, "config")}}
			if depth > 0 {
				w.wrapped = rapid.SliceOfN(genAgent(depth-1), 0, 2).Draw(t, "wrapped")
			}
			return w
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		agent := genAgent(2).Draw(t, "agent")
		bad, dark := false, false
		look := func(a any) (inner []any) {
			w, ok := a.(wrapper)
			dark = dark || !ok || w.tools == nil
			for _, tool := range w.tools {
				bad = bad || tool == "Prompt_block_edit" || tool == "a b"
			}
			if f, ok := w.config.(fields); ok {
				bad = bad || f[selfEdit] == true
			}
			return w.wrapped
		}
		for _, inner := range look(agent) {
			dark = len(look(inner)) > 0 || dark
		}
		_, err := materialize.Inspect(policy.Lockdown{}, materialize.Prebuilt{Agent: agent})
		require.Equal(t, bad || dark, err != nil)
		seen, err := materialize.Inspect(policy.Lockdown{}, materialize.Prebuilt{Agent: agent, Foreign: true})
		require.Equal(t, bad, err != nil)
		if !bad {
			require.Equal(t, dark, seen.Tools == "foreign" || seen.Wrapped == "foreign")
		}
	})
}
