package objection_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"childlog/policy"
	"childlog/policy/objection"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// genValue draws a value of which every part that says something contains
// secret, or is the number of secrets.
func genValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 6
		if depth == 0 {
			kinds = 4
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return fmt.Sprint(secret, rapid.IntRange(0, 3).Draw(t, "text"))
		case 1:
			return 770770.0 + rapid.Float64Range(0, 2).Draw(t, "number")
		case 2:
			return nil
		case 3:
			return rapid.Bool().Draw(t, "bool")
		case 4:
			return rapid.SliceOfN(genValue(depth-1), 0, 2).Draw(t, "list")
		}
		return rapid.MapOfN(rapid.SampledFrom([]string{secret, "in"}), genValue(depth-1), 0, 2).Draw(t, "map")
	})
}

func genArgs() *rapid.Generator[args] {
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), genValue(2), 0, 3)
}

// deed is what one random objector does.
type deed struct {
	rules   []string
	tool    string
	edits   []edit
	ending  string
	objects *objection.Objection
}

type edit struct {
	key    string
	value  any
	inside bool // put it into the argument, if that is a map
	remove bool
}

var soundEndings, brokenEndings = []string{"", "", "writes later"}, []string{"panics", "fails", "function", "loop", "rule"}

func genDeed() *rapid.Generator[deed] {
	return rapid.Custom(func(t *rapid.T) deed {
		d := deed{tool: rapid.SampledFrom([]string{"", "", "", "bash", "read"}).Draw(t, "tool")}
		d.rules = rapid.SampledFrom([][]string{nil, {"r1"}, {"r2", "r3"}}).Draw(t, "rules")
		d.edits = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) edit {
			return edit{
				key:    rapid.SampledFrom([]string{"a", "b", "c", "d", secret}).Draw(t, "key"),
				value:  genValue(1).Draw(t, "value"),
				inside: rapid.Bool().Draw(t, "inside"),
				remove: rapid.IntRange(0, 3).Draw(t, "remove") == 0,
			}
		}), 0, 3).Draw(t, "edits")
		d.ending = rapid.SampledFrom(append(soundEndings, brokenEndings...)).Draw(t, "ending")
		if rapid.IntRange(0, 3).Draw(t, "objects") == 0 {
			d.objects = &objection.Objection{Reason: secret}
			if len(d.rules) > 0 && rapid.Bool().Draw(t, "states a rule") {
				d.objects.Rule = d.rules[len(d.rules)-1]
			}
		}
		return d
	})
}

// apply makes the edits; it is the model as well, on copies of its own.
func (d deed) apply(m args) {
	for _, e := range d.edits {
		in, nested := m[e.key].(args)
		switch {
		case e.remove:
			delete(m, e.key)
		case e.inside && nested:
			in[secret+"new"] = copied(e.value)
		default:
			m[e.key] = copied(e.value)
		}
	}
}

func (d deed) sees(tool string) bool { return d.tool == "" || d.tool == tool }
func (d deed) sound() bool           { return slices.Contains(soundEndings, d.ending) }

// answers reports whether the deed gets as far as to return an objection.
func (d deed) answers() bool {
	return d.ending == "rule" || d.objects != nil && d.ending != "panics" && d.ending != "fails"
}

// objector turns the deed into code. What it should write later it leaves in
// late.
func (d deed) objector(late *[]func()) objection.Objector {
	return objection.Objector{Rules: d.rules, Tool: d.tool, Object: func(c objection.Call) (*objection.Objection, error) {
		d.apply(c.Args)
		switch d.ending {
		case "writes later":
			*late = append(*late, func() { overwrite(c.Args) })
		case "panics":
			panic(secret)
		case "fails":
			return d.objects, errors.New(secret)
		case "function":
			c.Args["f"] = func() {}
		case "loop":
			c.Args["self"] = c.Args
		case "rule":
			return &objection.Objection{Rule: secret}, nil
		}
		return d.objects, nil
	}}
}

// overwrite changes everything that can be reached from v.
func overwrite(v any) {
	switch v := v.(type) {
	case args:
		for _, x := range v {
			overwrite(x)
		}
		clear(v)
		v["late"] = "late"
	case []any:
		for i, x := range v {
			overwrite(x)
			v[i] = "late"
		}
	}
}

// copied is a copy of a value, by way of its JSON.
func copied[T any](v T) T {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var c T
	if err := json.Unmarshal(b, &c); err != nil {
		panic(err)
	}
	return c
}

// The final arguments of every call are the edits of the sound objectors that
// saw it, one after the other, whatever the others did and whatever anyone
// wrote later. The record counts all that were asked, names the broken ones,
// and names those that changed something with the keys that differ. The outcome
// as JSON has nothing of any value, neither a text nor a number.
func TestPropertyFinalArgumentsAreTheSoundOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		deeds := rapid.SliceOfN(genDeed(), 0, 5).Draw(t, "deeds")
		var calls []objection.Call
		for _, tool := range []string{"bash", "read"} {
			calls = append(calls, objection.Call{Tool: tool, Args: genArgs().Draw(t, "args")})
		}
		var given []args
		var late []func()
		objectors := make([]objection.Objector, len(deeds))
		for i, d := range deeds {
			objectors[i] = d.objector(&late)
		}
		for _, c := range calls {
			given = append(given, copied(c.Args))
		}
		carryOn := rapid.Bool().Draw(t, "carry on")
		s, err := objection.New(objection.Options{CarryOn: carryOn}, objectors...)
		require.NoError(t, err)

		outcomes := s.Sweep(calls)
		for _, f := range late {
			f()
		}
		for i, o := range outcomes {
			model := copied(given[i])
			checked, objected := 0, 0
			var broken []string
			amendments := []objection.Amendment{}
			for _, d := range deeds {
				if !d.sees(o.Tool) {
					continue
				}
				checked++
				rule := o.Tool
				if len(d.rules) > 0 {
					rule = d.rules[0]
				}
				if d.answers() {
					objected++
					if d.ending != "rule" && d.objects.Rule != "" {
						rule = d.objects.Rule
					}
				}
				if !d.sound() {
					broken = append(broken, rule)
					continue
				}
				next := copied(model)
				d.apply(next)
				if keys := differing(given[i], model, next); len(keys) > 0 {
					amendments = append(amendments, objection.Amendment{Rule: rule, Keys: keys})
				}
				model = next
			}
			require.Equal(t, model, o.Args)
			require.Equal(t, given[i], o.Before)
			require.Equal(t, given[i], calls[i].Args)
			require.Equal(t, checked, o.Record.Checked)
			require.Len(t, o.Record.Degraded, len(broken))
			for n, rule := range broken {
				require.Equal(t, rule, o.Record.Degraded[n].Rule)
			}
			require.Len(t, o.Objections, objected)
			require.Equal(t, amendments, o.Record.Amendments)
			require.Equal(t, len(broken) > 0 && carryOn, o.Record.CarriedOn)
			switch {
			case objected > 0:
				require.Equal(t, policy.Code("objection"), o.Refused)
			case len(broken) > 0 && !carryOn:
				require.Equal(t, policy.Code("objector_degraded"), o.Refused)
			default:
				require.Empty(t, o.Refused)
			}
		}
		text := encoded(t, outcomes)
		require.NotContains(t, text, "SECRET")
		require.NotContains(t, text, "77077")
		require.NotContains(t, text, "late")
	})
}

// differing names the keys that differ as an amendment shows them: none of the
// objectors has declared what it adds.
func differing(given, a, b args) []string {
	var keys []string
	all := maps.Clone(a)
	maps.Copy(all, b)
	for key := range all {
		x, inA := a[key]
		y, inB := b[key]
		if inA == inB && fmt.Sprintf("%#v", x) == fmt.Sprintf("%#v", y) {
			continue
		}
		if _, own := given[key]; !own {
			key = objection.KeyUnnamed
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Whatever a call and three objectors hold: no panic. The outcome's arguments
// are JSON, the call's own are untouched, only an amendment makes a difference,
// a refusal has a reason, and nothing is named that was not declared before.
func FuzzSweep(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":["hunter2"]}}`), "a", []byte{0, 1, 2})
	f.Add([]byte(`{"password":"hunter2","":null}`), "password", []byte{3, 4, 5})
	f.Add([]byte(`{"a":{"a":{"a":{}}}}`), "a", []byte{6, 7, 8})
	f.Add([]byte(`{"k\u200by":[[],{},-0,1e300]}`), "k\u200by", []byte{9, 10, 1})
	f.Add([]byte(`not json`), "\xff", []byte{0})
	f.Fuzz(func(t *testing.T, text []byte, key string, program []byte) {
		var given args
		if json.Unmarshal(text, &given) != nil {
			given = args{key: func() {}}
		}
		call := objection.Call{ID: "c", Tool: key, Args: given}
		var objectors []objection.Objector
		for i, b := range program[:min(3, len(program))] {
			objectors = append(objectors, named(fmt.Sprint("r", i), fuzzed(key, b)))
		}
		o := sweeper(t, objectors...).Sweep([]objection.Call{call})[0]
		if o.Refused == policy.CodeMalformed {
			require.Nil(t, o.Args)
			require.Equal(t, 0, o.Record.Checked)
			return
		}
		_, err := json.Marshal(o.Args)
		require.NoError(t, err)
		if given == nil {
			given = args{}
		}
		require.Equal(t, given, o.Before)
		if len(o.Record.Amendments) == 0 {
			require.Equal(t, o.Before, o.Args)
		}
		require.Equal(t, len(objectors), o.Record.Checked)
		require.Equal(t, len(o.Objections)+len(o.Record.Degraded) > 0, o.Refused != "")
		for _, a := range o.Record.Amendments {
			require.Contains(t, []string{"r0", "r1", "r2"}, a.Rule)
			require.NotEmpty(t, a.Keys)
			for _, k := range a.Keys {
				_, own := given[k]
				require.True(t, k == "*" || own && policy.CheckToolName(k) == nil, k)
			}
		}
		for _, d := range o.Record.Degraded {
			require.Contains(t, []string{"r0", "r1", "r2"}, d.Rule)
		}
	})
}

// fuzzed is an objector that does one of several things to an argument.
func fuzzed(key string, b byte) look {
	return func(c objection.Call) (*objection.Objection, error) {
		switch b % 12 {
		case 0:
			c.Args[key] = c.Args
		case 1:
			c.Args[key] = key
		case 2:
			delete(c.Args, key)
		case 3:
			panic(key)
		case 4:
			return nil, errors.New(key)
		case 5:
			return &objection.Objection{Rule: key, Reason: key}, nil
		case 6:
			overwrite(c.Args)
		case 7:
			c.Args["new"] = []any{c.Args[key], c.Args[key]}
		case 8:
			c.Args[key] = json.Number(key)
		case 9:
			c.Args[key] = []string{key}
		case 10:
			return &objection.Objection{Reason: key}, nil
		}
		return nil, nil
	}
}
