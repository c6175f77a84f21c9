package objection_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"childlog/policy"
	"childlog/policy/objection"

	"github.com/stretchr/testify/require"
)

// nest returns a value of n maps and lists in turn.
func nest(n int) any {
	if n == 0 {
		return "end"
	}
	if n%2 == 0 {
		return args{"in": nest(n - 1)}
	}
	return []any{nest(n - 1)}
}

// hostile are values that no arguments may have, by what is wrong with them.
func hostile() map[string]struct {
	value any
	why   objection.Why
} {
	type c = struct {
		value any
		why   objection.Why
	}
	loop := args{"a": 1.0}
	loop["self"] = loop
	ring := []any{nil}
	ring[0] = args{"back": ring}
	bomb := []any{"x"}
	for range 40 { // 2^40 values in 40 lists
		bomb = []any{bomb, bomb}
	}
	return map[string]c{
		"function":             {func() {}, "not_json"},
		"channel":              {make(chan int), "not_json"},
		"pointer":              {new(string), "not_json"},
		"struct":               {struct{ A string }{secret}, "not_json"},
		"error":                {errors.New(secret), "not_json"},
		"complex":              {1i, "not_json"},
		"bytes":                {[]byte("x"), "not_json"},
		"raw JSON":             {json.RawMessage(`{`), "not_json"},
		"map of another type":  {map[string]string{"path": "/etc"}, "not_json"},
		"keys of another type": {map[any]any{1: 2}, "not_json"},
		"named text":           {policy.Code("x"), "not_json"},
		"nil map":              {args(nil), "not_json"},
		"nil list":             {[]any(nil), "not_json"},
		"nil list of text":     {[]string(nil), "not_json"},
		"nil list of maps":     {[]map[string]any(nil), "not_json"},
		"nil map in a list":    {[]map[string]any{nil}, "not_json"},
		"not a number":         {math.NaN(), "not_json"},
		"infinity":             {math.Inf(-1), "not_json"},
		"small infinity":       {float32(math.Inf(1)), "not_json"},
		"number that is text":  {json.Number("true"), "not_json"},
		"number with a rest":   {json.Number("1 "), "not_json"},
		"empty number":         {json.Number(""), "not_json"},
		"text that is no text": {"a\xff", "not_json"},
		"key that is no text":  {args{"a\xff": 1.0}, "not_json"},
		"map in itself":        {loop, "too_deep"},
		"list in its item":     {ring, "too_deep"},
		"nested too deep":      {nest(64), "too_deep"},
		"shared without end":   {bomb, "too_large"},
		"many values":          {make([]any, 1<<18), "too_large"},
		"large text":           {strings.Repeat("x", 16<<20+1), "too_large"},
		"two texts too large":  {[]any{strings.Repeat("x", 15<<20), strings.Repeat("y", 2<<20)}, "too_large"},
		"two things wrong":     {args{"a": loop, "b": func() {}}, "too_deep"},
		"and the other first":  {args{"a": func() {}, "b": loop}, "not_json"},
	}
}

// What an objector leaves that is no JSON is undone, like an error.
func TestHostileAmendments(t *testing.T) {
	for name, c := range hostile() {
		for _, said := range []*objection.Objection{nil, {Reason: secret}} {
			o := one(t, args{"command": secret, "keep": "x"}, named("hostile", func(call objection.Call) (*objection.Objection, error) {
				call.Args["command"] = "changed"
				call.Args["bad"] = c.value
				return said, nil
			}))
			require.Equal(t, args{"command": secret, "keep": "x"}, o.Args, name)
			require.Equal(t, objection.Record{Checked: 1, Degraded: degraded("hostile", c.why), Amendments: []objection.Amendment{}}, o.Record, name)
			require.NotContains(t, encoded(t, o), secret, name)
			if said == nil {
				require.Equal(t, policy.Code("objector_degraded"), o.Refused, name)
			} else {
				require.Equal(t, policy.Code("objection"), o.Refused, name)
			}
		}
	}
}

// A call with such arguments is shown to nobody and refused; the others of the
// sweep are not its hostages.
func TestHostileCalls(t *testing.T) {
	for name, c := range hostile() {
		var seen []string
		s := sweeper(t, named("look", func(c objection.Call) (*objection.Objection, error) {
			seen = append(seen, c.ID)
			return nil, nil
		}))
		o := s.Sweep([]objection.Call{{ID: "bad", Args: args{"bad": c.value}}, {ID: "good", Args: args{}}})
		require.Equal(t, []string{"good"}, seen, name)
		require.Equal(t, policy.Code("malformed"), o[0].Refused, name)
		require.Nil(t, o[0].Args, name)
		require.Nil(t, o[0].Before, name)
		require.Equal(t, 0, o[0].Record.Checked, name)
		require.Empty(t, o[1].Refused, name)
	}
}

// The bounds are the last values that pass.
func TestBounds(t *testing.T) {
	for name, v := range map[string]any{
		"depth":  nest(63),
		"values": make([]any, 1<<18-1),
		"text":   strings.Repeat("x", 16<<20-1),
	} {
		o := one(t, args{"v": v}, silent("look", noop))
		require.Empty(t, o.Refused, name)
		require.Equal(t, args{"v": v}, o.Args, name)
	}
}

func TestWhatIsAnAmendment(t *testing.T) {
	const given = `{"text":"a","num":1,"zero":0,"null":null,"list":[1,{"x":[true]}],"map":{"a":{"b":1}},"empty":{},"none":[]}`
	for name, c := range map[string]struct {
		change func(args)
		keys   []string
	}{
		"nothing":                   {noop, nil},
		"the same value again":      {func(a args) { a["text"] = "a"; a["list"] = []any{1.0, args{"x": []any{true}}} }, nil},
		"there and back":            {func(a args) { a["text"] = "b"; a["text"] = "a" }, nil},
		"removed and put back":      {func(a args) { v := a["map"]; delete(a, "map"); a["map"] = v }, nil},
		"list of another Go type":   {func(a args) { a["none"] = []string{} }, nil},
		"changed":                   {func(a args) { a["text"] = "b" }, []string{"text"}},
		"removed":                   {func(a args) { delete(a, "num") }, []string{"num"}},
		"removed a null":            {func(a args) { delete(a, "null") }, []string{"null"}},
		"null instead of a value":   {func(a args) { a["num"] = nil }, []string{"num"}},
		"all removed":               {func(a args) { clear(a) }, []string{"empty", "list", "map", "none", "null", "num", "text", "zero"}},
		"deep in a list":            {func(a args) { a["list"].([]any)[1].(args)["x"].([]any)[0] = false }, []string{"list"}},
		"deep in a map":             {func(a args) { delete(a["map"].(args)["a"].(args), "b") }, []string{"map"}},
		"another key, same size":    {func(a args) { m := a["map"].(args); m["c"] = m["a"]; delete(m, "a") }, []string{"map"}},
		"order of a list":           {func(a args) { l := a["list"].([]any); l[0], l[1] = l[1], l[0] }, []string{"list"}},
		"longer list":               {func(a args) { a["list"] = append(a["list"].([]any), nil) }, []string{"list"}},
		"a list for a map":          {func(a args) { a["empty"] = []any{} }, []string{"empty"}},
		"a map for a list":          {func(a args) { a["none"] = args{} }, []string{"none"}},
		"a list for a text":         {func(a args) { a["text"] = []any{"a"} }, []string{"text"}},
		"a map for a text":          {func(a args) { a["text"] = args{"a": "a"} }, []string{"text"}},
		"another number type":       {func(a args) { a["num"] = 1 }, []string{"num"}},
		"a number as it is written": {func(a args) { a["num"] = json.Number("1") }, []string{"num"}},
		"minus zero":                {func(a args) { a["zero"] = math.Copysign(0, -1) }, []string{"zero"}},
		"several, sorted":           {func(a args) { a["zero"], a["list"], a["num"] = "", "", "" }, []string{"list", "num", "zero"}},
		"added and declared":        {func(a args) { a["timeout"] = 5.0 }, []string{"timeout"}},
		"added, null":               {func(a args) { a["timeout"] = nil }, []string{"timeout"}},
		"added, not declared":       {func(a args) { a[secret] = 5.0 }, []string{"*"}},
		"two not declared":          {func(a args) { a["x"], a["y"], a["num"] = 1.0, 1.0, 2.0 }, []string{"*", "num"}},
		"renamed":                   {func(a args) { a["txt"] = a["text"]; delete(a, "text") }, []string{"*", "text"}},
	} {
		for _, objects := range []bool{false, true} { // also when the same rule objects
			ob := silent("r", c.change)
			ob.Adds = []string{"timeout"}
			if quiet := ob.Object; objects {
				ob.Object = func(call objection.Call) (*objection.Objection, error) {
					_, err := quiet(call)
					return &objection.Objection{}, err
				}
			}
			o := one(t, decoded(t, given), ob)
			want := []objection.Amendment{}
			if c.keys != nil {
				want = amended("r", c.keys...)
			} else {
				require.Equal(t, decoded(t, given), o.Args, name)
			}
			require.Equal(t, want, o.Record.Amendments, name)
			require.Empty(t, o.Record.Degraded, name)
			require.Equal(t, decoded(t, given), o.Before, name)
			require.Equal(t, objects, len(o.Objections) == 1, name)
		}
	}
}

// A key that no record can show is not shown by whoever touches it next either,
// until somebody changes it who declared it.
func TestUnnamedKeys(t *testing.T) {
	declares := silent("three", func(a args) { a[`x`] = 3.0 })
	declares.Adds = []string{"x"}
	o := one(t, args{"ключ": 1.0, "a b": 1.0, "": 1.0, "plain": 1.0},
		silent("one", func(a args) { a["x"], a["a b"], a["plain"] = 1.0, 2.0, 2.0 }),
		silent("two", func(a args) { a["x"] = 2.0; delete(a, "") }),
		declares,
		silent("four", func(a args) { delete(a, "x"); delete(a, "ключ") }))
	require.Equal(t, []objection.Amendment{
		{Rule: "one", Keys: []string{"*", "plain"}},
		{Rule: "two", Keys: []string{"*"}},
		{Rule: "three", Keys: []string{"x"}},
		{Rule: "four", Keys: []string{"*", "x"}},
	}, o.Record.Amendments)
	require.Equal(t, args{"a b": 2.0, "plain": 2.0}, o.Args)
}

// An objector can add to a call without arguments, and lists come out as one
// type whatever the harness made them of.
func TestShapesOfArguments(t *testing.T) {
	add := silent("add", func(a args) { a["x"] = 1.0 })
	add.Adds = []string{"x"}
	o := one(t, nil, add)
	require.Equal(t, args{"x": 1.0}, o.Args)
	require.Equal(t, args{}, o.Before)
	require.Equal(t, args{}, one(t, nil).Args)

	o = one(t, args{"paths": []string{"src/a"}, "edits": []map[string]any{{"path": "src/b"}}}, silent("look", noop))
	require.Equal(t, args{"paths": []any{"src/a"}, "edits": []any{args{"path": "src/b"}}}, o.Args)
	require.Empty(t, o.Record.Amendments)
	require.Equal(t, []string{"src/b", "src/a"}, policy.NewCall(o.ID, "edit", o.Args).Paths)
}
