package importer

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

// TestFields reads along paths, whatever the writing.
func TestFields(t *testing.T) {
	doc := jsontext.Value(" { \"a\" : { \"b\" : [ 1 , \"two\" , { \"c\" : null } , [ ] ] , \"\\u0064\" : \"x\\\"}y\\\\\" } ,\r\n\t\"n\":9007199254740992,\"big\":9007199254740993,\"f\":1.0,\"neg\":-1,\"t\":true,\"no\":false,\"s\":\"\\ud800 lone\",\"e\":{},\"l\":[]}\n")
	require.NoError(t, eventlog.CheckJSON(doc))
	s, ok := Text(doc, "a", "d")
	require.True(t, ok)
	require.Equal(t, `x"}y\`, s)
	s, _ = Text(doc, "s")
	require.Equal(t, "\ufffd lone", s)
	n, ok := Count(doc, "a", "b")
	require.True(t, ok)
	require.EqualValues(t, 4, n)
	n, ok = Count(doc, "l")
	require.True(t, ok)
	require.Zero(t, n)
	n, ok = Integer(doc, "n")
	require.True(t, ok)
	require.EqualValues(t, 1<<53, n)
	for _, name := range []string{"big", "f", "neg", "t", "a", "none"} {
		_, ok = Integer(doc, name)
		require.False(t, ok, name)
	}
	yes, ok := Boolean(doc, "t")
	require.True(t, yes && ok)
	no, ok := Boolean(doc, "no")
	require.True(t, !no && ok)
	_, ok = Boolean(doc, "n")
	require.False(t, ok)
	for _, path := range [][]string{{"x"}, {"a", "x"}, {"n", "x"}, {"s", "x"}, {"e", "x"}, {"l", "x"}} {
		require.Nil(t, At(doc, path...), "%v", path)
		_, ok = Text(doc, path...)
		require.False(t, ok)
		_, ok = Count(doc, path...)
		require.False(t, ok)
	}
	var names []string
	Members(doc, func(key, value jsontext.Value) bool {
		names = append(names, Unquote(key))
		require.True(t, value.IsValid(jsontext.AllowInvalidUTF8(true)), "%s", value)
		return true
	})
	require.Equal(t, []string{"a", "n", "big", "f", "neg", "t", "no", "s", "e", "l"}, names)
}

// FuzzFields compares with a JSON library on what CheckJSON admits, and only
// asks for no panic on the rest.
func FuzzFields(f *testing.F) {
	f.Add([]byte(`{"type":"tool/call","data":{"turn":1,"step":1,"name":"bash","arguments":"{\"command\": \"ls\"}"}}`), "data")
	f.Add([]byte(`{"a" : [1,{"b":"\"]}"}] , "":{} }`), "")
	f.Add([]byte(`{"a":`), "a")
	f.Fuzz(func(t *testing.T, raw []byte, name string) {
		doc := jsontext.Value(raw)
		got := At(doc, name)
		_, _ = Text(doc, name)
		_, _ = Count(doc, name)
		_, _ = Boolean(doc, name)
		n, isInt := Integer(doc, name)
		Each(doc, func(jsontext.Value) bool { return true })
		if eventlog.CheckJSON(raw) != nil || doc.Kind() != '{' {
			return
		}
		var want map[string]jsontext.Value
		if json.Unmarshal(raw, &want, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) != nil {
			return
		}
		require.Equal(t, string(want[name]), string(got))
		Members(doc, func(key, value jsontext.Value) bool {
			require.Equal(t, string(want[Unquote(key)]), string(value))
			return true
		})
		if s, ok := Text(doc, name); ok {
			var other string
			require.NoError(t, json.Unmarshal(got, &other, jsontext.AllowInvalidUTF8(true)))
			require.Equal(t, other, s)
		}
		if isInt {
			var other uint64
			require.NoError(t, json.Unmarshal(got, &other))
			require.Equal(t, other, n)
		}
		if k, ok := Count(doc, name); ok {
			var other []jsontext.Value
			require.NoError(t, json.Unmarshal(got, &other, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)))
			require.Len(t, other, int(k))
		}
	})
}
