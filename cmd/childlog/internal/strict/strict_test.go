package strict_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/strict"
	"childlog/eventlog"
)

// What readers disagree about is refused as a whole, with its place.
func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{``, "byte offset 0: no value"},
		{"  ", "no value"},
		{`{"a":1`, "byte offset 6: "},
		{`{"a":1}x`, "byte offset 7: more after the value"},
		{`{} {}`, "byte offset 3: more after the value"},
		{`{"a":1,"a":2}`, "byte offset 7: /a: duplicate key"},
		{`{"a":{"b":[0,{"c":1,"c":1}]}}`, "byte offset 20: /a/b/1/c: duplicate key"},
		{`{"a":1,"\u0061":2}`, "/a: duplicate key"},
		{`{"a~/b":{"x":1,"x":1}}`, "/a~0~1b/x: duplicate key"},
		{"{\"a\":\"\xff\"}", "byte offset 6: byte 0xff is not valid UTF-8"},
		{"\ufeff{}", "byte offset 0: "},
		{`{"a":"\ud800"}`, "/a: "},
		{`{"a":01}`, "byte offset 6: "},
		{`{"a":1,}`, "byte offset 6: "},
		{`{'a':1}`, "byte offset 1: "},
		{"{\"a\":\"x\x00\"}", "byte offset 7: "},
		{strings.Repeat("[", 65), "too large: nesting of json: limit 64, got 65"},
		{strings.Repeat(`{"a":`, 65), "too large: nesting of json: limit 64, got 65"},
		{`"` + strings.Repeat("x", 999) + `"`, "too large: json in bytes: limit 1000, got 1001"},
	} {
		_, err := strict.Parse([]byte(c.text), 1000)
		require.ErrorContains(t, err, c.want, "%.60s", c.text)
	}
	for _, text := range []string{`{}`, " [1] \n", `"\ud83d\ude00"`, strings.Repeat("[", 64) + strings.Repeat("]", 64)} {
		_, err := strict.Parse([]byte(text), 1000)
		require.NoError(t, err, text)
	}
}

func parse(t *testing.T, text string) strict.Value {
	v, err := strict.Parse([]byte(text), 1000)
	require.NoError(t, err)
	return v
}

// Every value knows its place in the document, also below others.
func TestPlaces(t *testing.T) {
	var inner strict.Value
	err := parse(t, `{"list":[1, {"x/y" : "text"}]}`).Object(strict.Field{Key: "list", Read: func(v strict.Value) error {
		return v.List(2, func(v strict.Value) error {
			if v.Kind() == '0' {
				return nil
			}
			return v.Members(func(key string, value strict.Value) error {
				require.Equal(t, "x/y", key)
				inner = value
				return nil
			})
		})
	}})
	require.NoError(t, err)
	require.Equal(t, jsontext.Value(`"text"`), inner.Raw())
	_, err = inner.Bool()
	require.EqualError(t, err, "invalid: byte offset 21: /list/1/x~1y: want true or false, got a string")
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	require.ErrorContains(t, inner.Wrong(eventlog.CheckType("x y")), "/list/1/x~1y: type")
	require.ErrorIs(t, inner.Wrong(&eventlog.TooLargeError{}), eventlog.ErrTooLarge)
	require.NoError(t, inner.Wrong(nil))
}

func TestUnknownKeys(t *testing.T) {
	field := strict.Field{Key: "max_steps", Read: func(strict.Value) error { return nil }}
	require.NoError(t, parse(t, `{"max_steps":1}`).Object(field))
	require.NoError(t, parse(t, `{}`).Object(field))
	require.ErrorContains(t, parse(t, `{"steps":1}`).Object(field), "byte offset 9: /steps: unknown key; want max_steps")
	require.ErrorContains(t, parse(t, `{"Max_Steps":1}`).Object(field), "/Max_Steps: unknown key; keys are lower case: max_steps")
	// A look-alike is not the key: the Kelvin sign, a Cyrillic letter, a zero-width space.
	for _, key := range []string{"max_step\u017f", "m\u0430x_steps", "max_\u200bsteps"} {
		err := parse(t, `{"`+key+`":1}`).Object(field)
		require.ErrorContains(t, err, "unknown key")
		require.NotContains(t, err.Error(), "\u200b", "what is invisible is shown escaped")
	}
	// A hostile key does not make the message grow.
	err := parse(t, `{"`+strings.Repeat("k", 900)+`":1}`).Object(field)
	require.Less(t, len(err.Error()), 400)
}

func TestValues(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "-5": -5, "9007199254740992": 1 << 53} {
		n, err := parse(t, text).Int(-5, 1<<53)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	for _, text := range []string{"-6", "9007199254740993", "1.0", "1e3", "-0", "99999999999999999999", `"1"`, "null", "true"} {
		_, err := parse(t, text).Int(-5, 1<<53)
		require.ErrorIs(t, err, eventlog.ErrInvalid, text)
	}
	text := func(v strict.Value) error {
		_, err := v.Text()
		return err
	}
	require.NoError(t, parse(t, `[]`).List(0, text))
	require.NoError(t, parse(t, `["a"]`).List(1, text))
	require.ErrorContains(t, parse(t, `["a","b"]`).List(1, text), "want at most 1 elements")
	require.ErrorContains(t, parse(t, `["a",null]`).List(2, text), "/1: want a string, got null")
	require.ErrorContains(t, parse(t, `{}`).List(2, text), "want an array, got an object")
	_, err := parse(t, `"x"`).OneOf("a", "b")
	require.ErrorContains(t, err, `want a or b, got "x"`)
	require.ErrorContains(t, parse(t, `[]`).Members(nil), "want an object, got an array")

	// Read without a check of the whole, a lone surrogate is no text either.
	v, err := strict.Document([]byte(`"\ud800"`))
	require.NoError(t, err)
	_, err = v.Text()
	require.ErrorContains(t, err, "a lone surrogate is no text")
}
