package eventlog

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// quickTexts are texts at the edges of the grammar. plain ones must be taken
// without the decoder; the others may be, if the decoder takes them too.
var quickTexts = []struct {
	text  string
	plain bool
}{
	{`{}`, true}, {`[]`, true}, {` [ ] `, true}, {"\t{\r\n}\n", true}, {`null`, true}, {`true`, true}, {`false`, true}, {`""`, true}, {`0`, true}, {`-0.5e+7`, true}, {`12E-3`, true},
	{`{"a":1,"b":[2,{"a":3}],"c":{"a":{}}}`, true}, {`[{"a":1},{"a":1}]`, true}, {`"\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00\ud800"`, true}, {`"` + strings.Repeat("ä", 40) + `"`, true},
	{`{"ab":1,"ba":2,"a":3,"":4}`, true}, {strings.Repeat("[", 64) + strings.Repeat("]", 64), true}, {strings.Repeat(`{"a":`, 64) + "0" + strings.Repeat("}", 64), true},
	{`{"\u0061":1}`, false}, {`{"a":1,"\u0061":1}`, false}, {`{"a":1,"a":1}`, false}, {`{"x":{"a":1,"a":1}}`, false}, {`{"":1,"":1}`, false}, {`{"\ud800":1,"\ud801":1}`, false},
	{strings.Repeat("[", 65) + strings.Repeat("]", 65), false}, {``, false}, {` `, false}, {`{`, false}, {`[`, false}, {`"`, false}, {`"\`, false}, {`"\u12`, false}, {`"\u12g4"`, false}, {`"\x"`, false},
	{"\"\x01\"", false}, {"\"\n\"", false}, {"\"1234567\x1f\"", false}, {"\"\x7f\"", true}, {"\"\xff\"", false}, {"\"\xed\xa0\x80\"", false}, {"\xef\xbb\xbf{}", false},
	{`01`, false}, {`-`, false}, {`1.`, false}, {`.5`, false}, {`1e`, false}, {`1e+`, false}, {`+1`, false}, {`nul`, false}, {`nulls`, false}, {`truefalse`, false}, {`NaN`, false},
	{`{}{}`, false}, {`{} x`, false}, {`[1,]`, false}, {`[,1]`, false}, {`{"a":1,}`, false}, {`{"a" 1}`, false}, {`{"a":}`, false}, {`{1:2}`, false}, {`{"a":1]`, false}, {`[1}`, false}, {`]`, false}, {`[1 2]`, false}, {"[1\x0c]", false},
}

// TestQuickJSON takes what is plain and never what the decoder refuses.
func TestQuickJSON(t *testing.T) {
	for _, c := range quickTexts {
		got := quickJSON([]byte(c.text))
		if c.plain {
			require.True(t, got, "%.80q", c.text)
		}
		if got {
			require.NoError(t, checkJSON([]byte(c.text)), "%.80q", c.text)
		}
	}
	many := "{"
	for i := range 300 {
		many += `"` + strings.Repeat("k", i+1) + `":0,`
	}
	require.False(t, quickJSON([]byte(many+`"last":0}`)), "more keys than there is room for")
	require.NoError(t, CheckJSON([]byte(many+`"last":0}`)))
	require.Error(t, CheckJSON([]byte(many+`"k":0}`)))
	require.Zero(t, testing.AllocsPerRun(100, func() { quickJSON([]byte(`{"a":[1,"two"]}`)) }))
}

// TestQuickJSONRandom: cut, changed and swapped bytes of sound texts are taken
// only if the decoder takes them.
func TestQuickJSONRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		raw := []byte(quickTexts[rnd.IntN(len(quickTexts))].text)
		for range 1 + rnd.IntN(3) {
			if len(raw) == 0 {
				break
			}
			i := rnd.IntN(len(raw))
			switch rnd.IntN(3) {
			case 0:
				raw[i] = "{}[]\",:\\u0aé \x1f-.e"[rnd.IntN(18)]
			case 1:
				raw = append(raw[:i:i], raw[i+1:]...)
			default:
				raw = append(raw[:i:i], append([]byte(quickTexts[rnd.IntN(len(quickTexts))].text), raw[i:]...)...)
			}
		}
		if quickJSON(raw) {
			require.NoError(t, checkJSON(raw), "%q", raw)
		}
	}
}

// FuzzQuickJSON: what is taken quickly is what the decoder takes.
func FuzzQuickJSON(f *testing.F) {
	for _, c := range quickTexts {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if quickJSON(raw) {
			require.NoError(t, checkJSON(raw))
		}
	})
}
