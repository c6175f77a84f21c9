package eventlog

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCheckJSON(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct{ name, raw, want string }{
		{"an object", ` {"a": [1, 2.5e10, -0, null, true]} ` + "\n", ""},
		{"a bare value", `"x"`, ""},
		{"a number that no float holds", `123456789012345678901234567890`, ""},
		{"a lone surrogate as an escape: plain ASCII bytes, kept", `{"a":"\ud800"}`, ""},
		{"nesting 64", deep(64), ""},
		{"equal keys of different objects", `{"a":{"a":1}}`, ""},

		{"different lone surrogates as keys", `{"\ud800":1,"\ud801":2,"\udfff":3,"\ufffd":4,"\ud800\ud801":5}`, ""},
		{"a pair and its halves as keys", `{"\ud83d\ude00":1,"\ud83d":2,"\ude00":3,"\ude00\ud83d":4}`, ""},
		{"equal lone surrogates of different objects", `{"\ud800":{"\ud800":1},"a":[{"\ud800":1},{"\ud800":1}]}`, ""},

		{"nothing", ``, "byte offset 0: no value"},
		{"blanks only", "  \n", "no value"},
		{"a raw byte that is not UTF-8", "{\"a\":\"\xff\"}", "byte offset 6: byte 0xff is not valid UTF-8"},
		{"an overlong UTF-8 form", "\"\xc0\x80\"", "byte offset 1: byte 0xc0 is not valid UTF-8"},
		{"a surrogate in UTF-8 form", "\"\xed\xa0\x80\"", "byte offset 1: byte 0xed is not valid UTF-8"},
		{"NUL in a string", "{\"a\":\"\x00\"}", "byte offset 6"},
		{"NUL after the value", "1\x00", "byte offset 1: more after the value"},
		{"a key twice", `{"a":1,"a":2}`, `byte offset 7`},
		{"a key twice, once escaped", `{"a":1,"\u0061":2}`, `byte offset 7`},
		{"a key twice, deep inside", `[{"x":{"a":1,"b":2,"a":3}}]`, `byte offset 19`},
		{"a lone surrogate twice", `{"\ud800":1,"\uD800":2}`, `byte offset 12: duplicate`},
		{"a pair and its character", `{"\ud83d\ude00":1,"😀":2}`, `byte offset 18: duplicate`},
		{"a key twice beside a surrogate", `{"x":"\ud800","\u0061\n\/\"":1,"a\u000a/\u0022":2}`, `byte offset 31: duplicate`},
		{"a key twice below a surrogate", `{"\ud800":[{"a":1,"b":{},"a":2}]}`, `byte offset 25: duplicate`},
		{"a bad escape beside a surrogate", `{"\ud800":"\x41"}`, "byte offset 11"},
		{"a second value", `{} {}`, "byte offset 3: more after the value"},
		{"a comma after the value", `[1],`, "byte offset 3: more after the value"},
		{"cut off", `{"a":`, "byte offset 5"},
		{"a comma too many", `[1,]`, "byte offset 2"},
		{"a comment", `[1] // x`, "byte offset 4: more after the value"},
		{"a leading zero", `[01]`, "byte offset 2"},
		{"NaN", `NaN`, "byte offset 0"},
		{"a byte order mark", "\xef\xbb\xbf{}", "byte offset 0"},
		{"a bad escape", `"\x41"`, "byte offset 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckJSON([]byte(c.raw))
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, c.want)
		})
	}
	require.Equal(t, &TooLargeError{What: "nesting of json", Limit: 64, Size: 65}, CheckJSON([]byte(deep(65))))
	require.ErrorIs(t, CheckJSON([]byte(strings.Repeat("[", 1<<20))), ErrTooLarge, "an attack on the stack")
}

// TestUnquoteKey: where no surrogate stands alone a key is what the decoder
// takes it for, so that both ways to find duplicates agree.
func TestUnquoteKey(t *testing.T) {
	parts := []string{"a", "\\u0061", "\\n", "\\u000A", "\\/", "/", "\\\"", "\\\\", "\\b\\f\\r\\t", "é", "\\u00e9", "\\ud83d\\ude00", "😀", "\\u2028", "\\u0000"}
	rapid.Check(t, func(t *rapid.T) {
		raw := []byte(`"` + strings.Join(rapid.SliceOf(rapid.SampledFrom(parts)).Draw(t, "parts"), "") + `"`)
		want, err := jsontext.AppendUnquote(nil, raw)
		require.NoError(t, err)
		require.Equal(t, string(want), unquoteKey(raw))
	})
}

func TestFactsFromJSON(t *testing.T) {
	f, err := FactsFromJSON([]byte(`{"b": 9007199254740992, "a": [-9007199254740992, true, null, "x", {}]}`))
	require.NoError(t, err)
	got, err := f.JSON()
	require.NoError(t, err)
	require.Equal(t, `{"a":[-9007199254740992,true,null,"x",{}],"b":9007199254740992}`, string(got))

	for _, c := range []struct{ name, raw, want string }{
		{"a fraction", `{"a": 1.5}`, "facts/a: number 1.5: want an integer of at most 2^53"},
		{"a fraction that is whole", `{"a": 1.0}`, "facts/a: number 1.0"},
		{"an exponent", `{"a": {"b": 1e3}}`, "facts/a/b: number 1e3"},
		{"minus zero, which an integer can't keep", `{"a": -0}`, "facts/a: number -0"},
		{"2^53 and one", `{"a": [9007199254740993]}`, "facts/a/0: integer 9007199254740993 is beyond 2^53"},
		{"beyond 64 bits", `{"a": 99999999999999999999}`, "facts/a: number 99999999999999999999"},
		{"a list", `[1]`, "want an object"},
		{"null", `null`, "want an object"},
		{"a key twice", `{"a": 1, "a": 1}`, "byte offset 9"},
		{"a lone surrogate: a fact is UTF-8", `{"a": "\ud800"}`, "invalid"},
		{"a lone surrogate in a key", `{"\ud800": 1}`, "invalid"},
		{"a text", `{"a": "` + strings.Repeat("x", 4097) + `"}`, "limit 4096, got 4097"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := FactsFromJSON([]byte(c.raw))
			require.ErrorContains(t, err, c.want)
			require.True(t, isRefusal(err), "%v", err)
		})
	}
}

// TestContentIsKeptAsGiven: content is bytes. Whatever JSON a reader would
// print differently stays as it was given.
func TestContentIsKeptAsGiven(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	contents := []string{` { "b":1 , "a":1.0e0 } `, `"\ud800"`, "\"\u2028\"", `"\/"`, `-0`}
	for _, c := range contents {
		_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: "user/message", Media: MediaJSON, Content: []byte(c)}}})
		require.NoError(t, err)
	}
	require.Equal(t, contents, ts.texts(id, 2))
}
