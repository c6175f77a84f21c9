package eventlog

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFactsHaveOneForm: two encodings of the same facts would be two hashes.
func TestFactsHaveOneForm(t *testing.T) {
	for _, c := range []struct{ name, hex, want string }{
		{"the empty map", "80", ""},
		{"a map", "82a16101a16202", ""},
		{"the largest integer", "81a161cf0020000000000000", ""},
		{"the smallest integer", "81a161d3ffe0000000000000", ""},
		{"keys out of order", "82a16201a16102", `map key "a": keys must ascend strictly, got it after "b"`},
		{"a key twice", "82a16101a16102", `map key "a": keys must ascend strictly, got it after "a"`},
		{"a key that is no string", "810101", "map key: want string, got integer"},
		{"an integer in more bytes than it needs", "81a161cc01", "overlong: 1 fits a shorter form"},
		{"a length in more bytes than it needs", "81a161d90161", "overlong: 1 fits a shorter form"},
		{"a negative integer in more bytes than it needs", "81a161d0ff", "overlong: -1 fits a shorter form"},
		{"a positive integer in a signed form", "81a161d07f", "overlong: 127 fits a shorter form"},
		{"a map in a longer form", "de0000", "overlong: 0 fits a shorter form"},
		{"a float", "81a161cb3ff0000000000000", "code 0xcb is not canonical"},
		{"NaN", "81a161ca7fc00000", "code 0xca is not canonical"},
		{"an extension type", "81a161d40100", "code 0xd4 is not canonical"},
		{"the unused code", "81a161c1", "code 0xc1 is not canonical"},
		{"2^53 and one", "81a161cf0020000000000001", "integer 9007199254740993 is beyond 2^53"},
		{"2^64-1, which a signed reader takes for -1", "81a161cfffffffffffffffff", "integer 18446744073709551615 is beyond 2^53"},
		{"-2^53 and minus one", "81a161d3ffdfffffffffffff", "integer -9007199254740993 is beyond 2^53"},
		{"-2^63, which has no positive counterpart", "81a161d38000000000000000", "integer -9223372036854775808 is beyond 2^53"},
		{"a string that is not UTF-8", "81a161a1ff", "string is not valid UTF-8"},
		{"cut off", "81a161", "truncated: want a value, got the end"},
		{"cut off in a string", "81a161a361", "truncated: want 3 more bytes, got 1"},
		{"a list that claims 2^32-1 elements", "81a161ddffffffff", "truncated"},
		{"bytes after the map", "80c0", "1 bytes after the map"},
		{"not a map", "90", "want a map, got code 0x90"},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw, err := hex.DecodeString(c.hex)
			require.NoError(t, err)
			if c.want == "" {
				require.NoError(t, Facts(raw).Check())
				m, err := Facts(raw).Map()
				require.NoError(t, err)
				again, err := MakeFacts(m)
				require.NoError(t, err)
				require.Equal(t, Facts(raw), again)
				return
			}
			require.ErrorIs(t, Facts(raw).Check(), ErrInvalid)
			require.ErrorContains(t, Facts(raw).Check(), c.want)
			_, err = Facts(raw).Map()
			require.ErrorIs(t, err, ErrInvalid, "Map checks too")
		})
	}
	long := append([]byte{0x81, 0xa1, 'a', 0xda, 0x10, 0x01}, strings.Repeat("x", maxFactString+1)...)
	require.ErrorContains(t, Facts(long).Check(), "string of 4097 bytes: longer than 4096 is content")
}

func nested(depth int) (list any) {
	for range depth - 1 { // the map around it is the first level
		list = []any{list}
	}
	return list
}

func TestFactsNesting(t *testing.T) {
	facts, err := MakeFacts(map[string]any{"l": nested(MaxNesting)})
	require.NoError(t, err)
	require.NoError(t, facts.Check())
	m, err := facts.Map()
	require.NoError(t, err)
	require.Equal(t, nested(MaxNesting), m["l"])

	_, err = MakeFacts(map[string]any{"l": nested(MaxNesting + 1)})
	require.Equal(t, &TooLargeError{What: "nesting of facts", Limit: 64, Size: 65}, err)
	raw := "81a16c" + strings.Repeat("91", MaxNesting) + "c0"
	deep, err := hex.DecodeString(raw)
	require.NoError(t, err)
	require.Equal(t, &TooLargeError{What: "nesting of facts", Limit: 64, Size: 65}, Facts(deep).Check())
}

func TestMakeFactsRefuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		m          map[string]any
	}{
		{"an integer beyond 2^53, with its path", "facts/a/1: integer 9007199254740993 is beyond 2^53", map[string]any{"a": []any{0, int64(1)<<53 + 1}}},
		{"one below -2^53", "facts/a: integer -9007199254740993 is beyond 2^53", map[string]any{"a": -(int64(1)<<53 + 1)}},
		{"an unsigned one", "facts/a: integer 18446744073709551615 is beyond 2^53", map[string]any{"a": ^uint64(0)}},
		{"a fraction", "facts/a/b: type float64 can't be a fact", map[string]any{"a": map[string]any{"b": 1.5}}},
		{"a string that is not UTF-8", "facts/a: string is not valid UTF-8", map[string]any{"a": "\xff"}},
		{"a key that is not UTF-8", "string is not valid UTF-8", map[string]any{"\xff": 1}},
		{"a text", "facts/a in bytes (longer text is content): limit 4096, got 4097", map[string]any{"a": strings.Repeat("x", 4097)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := MakeFacts(c.m)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := MakeFacts(map[string]any{"a": make([]byte, MaxFacts)})
	require.ErrorIs(t, err, ErrTooLarge)
}

// TestFactsAreReadByKey: absent, null and another kind read as the zero value.
func TestFactsAreReadByKey(t *testing.T) {
	f := goldenFacts(t, map[string]any{"s": "x", "n": 7, "neg": -7, "t": true, "id": sid(3), "nil": nil, "list": []string{"a"}, "map": map[string]any{"s": "inner"}})
	require.Equal(t, "x", f.Str("s"))
	require.Equal(t, uint64(7), f.Uint("n"))
	require.True(t, f.Bool("t"))
	require.Equal(t, sid(3), f.UUID("id"))
	for _, key := range []string{"", "zzz", "neg", "nil", "list", "map"} {
		require.Empty(t, f.Str(key))
		require.Zero(t, f.Uint(key))
		require.False(t, f.Bool(key))
		require.Zero(t, f.UUID(key))
	}
	require.Empty(t, Facts(nil).Str("s"))
	require.Empty(t, Facts([]byte{0xc1}).Str("s"), "damage reads as absent here; Check tells it")

	got, err := f.JSON()
	require.NoError(t, err)
	require.Equal(t, `{"id":"5e551041-0000-4000-8000-000000000003","list":["a"],"map":{"s":"inner"},"n":7,"neg":-7,"nil":null,"s":"x","t":true}`, string(got))
	h, err := goldenFacts(t, map[string]any{"h": Hash{1, 2}}).JSON()
	require.NoError(t, err)
	require.Equal(t, `{"h":"0102`+strings.Repeat("00", 30)+`"}`, string(h))
}
