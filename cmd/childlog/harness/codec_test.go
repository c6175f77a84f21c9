package harness_test

import (
	"bytes"
	stdjson "encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/eventlog"
)

// TestDecodeIsStrict: what is not understood is refused, with its place.
func TestDecodeIsStrict(t *testing.T) {
	type try struct{ body, want string }
	append := func(b []byte) error { _, err := harness.Decode[harness.AppendRequest](b); return err }
	delegate := func(b []byte) error { _, err := harness.Decode[harness.DelegateRequest](b); return err }
	check := func(b []byte) error { _, err := harness.Decode[harness.CheckRequest](b); return err }
	for name, c := range map[string]struct {
		decode func([]byte) error
		tries  []try
	}{
		"append": {append, []try{
			{``, "no value"},
			{`[]`, "want an object"},
			{`{"session":"a","session":"b"}`, "/session: duplicate key"},
			{`{"session":1}`, "/session: want a string, got a number"},
			{`{"Session":"a"}`, "unknown key"},
			{`{"session":"a","epoch":-1}`, "/epoch: want a whole number"},
			{`{"session":"a","epoch":1.5}`, "/epoch: want a whole number"},
			{`{"session":"a","events":{}}`, "/events: want an array"},
			{`{"session":"a","events":[{}]}`, "/events/0/type: required"},
			{`{"session":"a","events":[{"type":"a/b","typ":1}]}`, "/events/0/typ: unknown key"},
			{`{"session":"a","events":[{"type":"a/b","content":1,"content_text":"x"}]}`, "at most one content"},
			{`{"session":"a","events":[{"type":"a/b","content":{"a":1,"a":2}}]}`, "duplicate"},
			{`{"session":"a"} {}`, "more after"},
			{"{\"session\":\"\xff\"}", "UTF-8"},
		}},
		"delegate": {delegate, []try{
			{`{"parent":"a","child":{"write_scope":null}}`, "/child/write_scope: want an array"},
			{`{"parent":"a","child":{"role":"wizard"}}`, "/child/role"},
			{`{"parent":"a","child":{"delegable":{"spawn":1}}}`, "/child/delegable/spawn"},
			{`{"parent":"a","childs":{}}`, "unknown key"},
			{`{"parent":"\ud800"}`, "surrogate"},
		}},
		"check": {check, []try{
			{`{"session":"a","call":{"call":"c","tool":"x"}}`, "missing: args"},
			{`{"session":"a","call":{"call":"c","tool":"x","args":{"a":1,"a":2}}}`, "duplicate"},
			{`{"session":"a","record":"yes"}`, "/record: want true or false, got a string"},
		}},
	} {
		for _, bad := range c.tries {
			err := c.decode([]byte(bad.body))
			require.ErrorIs(t, err, eventlog.ErrInvalid, "%s: %s", name, bad.body)
			require.ErrorContains(t, err, bad.want, "%s: %s", name, bad.body)
		}
	}
	deep := `{"session":"a","call":{"call":"c","tool":"x","args":` + strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 100) + `}}`
	require.ErrorIs(t, check([]byte(deep)), eventlog.ErrTooLarge)
	require.ErrorIs(t, append(bytes.Repeat([]byte(" "), harness.MaxRequest+1)), eventlog.ErrTooLarge)
}

// TestDocumentsKeepTheirText: absent, null and empty stay apart (CASES 6), and
// contents and arguments keep their bytes, whatever encoder is at work.
func TestDocumentsKeepTheirText(t *testing.T) {
	for _, tools := range []string{``, `"tools":null`, `"tools":[]`, `"tools":["read"]`} {
		body := `{"parent":"p","child":{` + tools + `}}`
		r, err := harness.Decode[harness.DelegateRequest]([]byte(body))
		require.NoError(t, err)
		out, err := harness.Encode(r)
		require.NoError(t, err)
		require.Equal(t, body, string(out))
		out, err = stdjson.Marshal(r)
		require.NoError(t, err)
		require.JSONEq(t, body, string(out))
		var again harness.DelegateRequest
		require.NoError(t, stdjson.Unmarshal([]byte(body), &again))
		require.Equal(t, r, again)
	}
	for want, tools := range map[string]harness.Tools{`{}`: {}, `{"tools":null}`: harness.AnyTools(), `{"tools":[]}`: harness.OnlyTools(), `{"tools":["a"]}`: harness.OnlyTools("a")} {
		out, err := harness.Encode(harness.Child{Tools: tools})
		require.NoError(t, err)
		require.Equal(t, want, string(out))
	}
	out, err := harness.Encode(harness.Wish{WriteScope: []string{}})
	require.NoError(t, err)
	require.Equal(t, `{"write_scope":[]}`, string(out), "nothing may be written")

	content := "{ \"a\" : 1.0,\n\t\"b\":\"\\u0041\\ud800\" }"
	body := `{"session":"s","events":[{"type":"a/b","content":` + content + `},{"type":"a/c","content":null}]}`
	r, err := harness.Decode[harness.AppendRequest]([]byte(body))
	require.NoError(t, err)
	require.Equal(t, content, string(r.Events[0].Content))
	out, err = harness.Encode(r)
	require.NoError(t, err)
	require.Equal(t, body, string(out))
	out, err = harness.Encode(harness.AppendRequest{Session: "s", Events: []harness.Event{{Type: "a/b", Content: harness.JSON(content)}, {Type: "a/c", Content: harness.JSON("null")}}})
	require.NoError(t, err)
	require.Equal(t, body, string(out))
	_, err = harness.Encode(harness.Event{Type: "a/b", Content: harness.JSON(`1},"x":{`)})
	require.ErrorIs(t, err, eventlog.ErrInvalid, "it would end the object")
}

// TestLevels: what an operator does needs one, whatever the request says beside.
func TestLevels(t *testing.T) {
	for _, r := range []harness.Request{harness.CloseRequest{}, harness.NarrowRequest{}, harness.SetRulesRequest{}, harness.SwitchRequest{}, harness.SettleRequest{},
		harness.SendRequest{By: harness.Operator}, harness.InterruptRequest{By: harness.Operator}, harness.ActivateRequest{By: harness.Operator}} {
		require.Equal(t, harness.Operates, r.Level(), "%T", r)
	}
	for _, r := range []harness.Request{harness.RootRequest{}, harness.DelegateRequest{}, harness.AppendRequest{}, harness.SwitchRequest{Epoch: 1}, harness.SettleRequest{Epoch: 1},
		harness.SendRequest{By: rootID}, harness.SendRequest{}, harness.CheckRequest{Record: true}, harness.ClaimRequest{}, harness.EndRequest{}, harness.ConsumeRequest{}} {
		require.Equal(t, harness.Works, r.Level(), "%T", r)
	}
	require.Equal(t, harness.Reads, harness.CheckRequest{}.Level())
}

// TestEveryMethodHasItsOperation: a method that is added to the interface is in
// the table, or it is one of those that are none.
func TestEveryMethodHasItsOperation(t *testing.T) {
	routes := map[string]bool{}
	for _, r := range harness.Routes() {
		require.False(t, routes[r.Path], r.Path)
		require.Equal(t, harness.Prefix+r.Name, r.Path)
		require.NotEmpty(t, r.Short)
		routes[r.Path] = true
	}
	i := reflect.TypeFor[harness.Harness]()
	require.Equal(t, i.NumMethod()-2, len(routes), "all but Follow and Close")
}
