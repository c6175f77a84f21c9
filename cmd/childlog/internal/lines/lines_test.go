package lines

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/schema"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/snapshot"
)

var ctx = context.Background()

func sid(n int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("5e551041-0000-4000-8000-%012x", n))
}

var newStore = storetest.New

// filled is a store with a root, a child of it and contents of every kind.
func filled(t testing.TB) *eventlog.Store {
	t.Helper()
	s := newStore(t)
	_, err := materialize.Root(ctx, s, materialize.RootRequest{ID: sid(1), Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Label: "root", System: "demo", External: "x"})
	require.NoError(t, err)
	events := []eventlog.NewEvent{
		{Type: "user/message", Media: eventlog.MediaJSON, Content: []byte("{ \"a\" : 1.0,\"b\":[1,\t2],\"c\":\"\\u0041\\/<>&\\u2028\" }")},
		{Type: "user/message", Media: eventlog.MediaJSON, Content: []byte("{\r\n  \"a\": 1e400\n}\n")},
		{Type: "user/message", Media: eventlog.MediaJSON, Content: []byte(" null ")},
		{Type: "user/message", Media: eventlog.MediaJSON, Content: []byte("null")},
		{Type: "user/message", Media: eventlog.MediaText, Content: []byte("two\nlines \u2028 \x00 \"quoted\" \\")},
		{Type: "user/message", Media: eventlog.MediaText, Content: []byte("")},
		{Type: "x-harness/blob", Media: eventlog.MediaOctets, Content: bytes.Repeat([]byte{0, 0xff, 0x80}, 50_000), Ignorable: true},
		{Type: "x-harness/none"},
		{Type: "user/message", Media: eventlog.MediaText, Content: []byte("the token is s3cr3t")},
	}
	_, err = s.Append(ctx, eventlog.Batch{Session: sid(1), Expect: eventlog.Any(), Events: events})
	require.NoError(t, err)
	_, err = materialize.Delegate(ctx, s, sid(1), snapshot.Options{}, materialize.Request{ID: sid(2), Fork: 11, Key: "k"})
	require.NoError(t, err)
	return s
}

func export(t testing.TB, s *eventlog.Store, o Options) ([]byte, Written) {
	t.Helper()
	var b bytes.Buffer
	done, err := Export(ctx, s, &b, o)
	require.NoError(t, err)
	return b.Bytes(), done
}

func into(s *eventlog.Store, b []byte) (*Imported, error) {
	return Import(ctx, s, bytes.NewReader(b), false, "tester")
}

// TestRoundTrip: every byte of every content and every digest comes back.
func TestRoundTrip(t *testing.T) {
	from, to := filled(t), newStore(t)
	b, done := export(t, from, Options{})
	require.Equal(t, uint64(2), done.Sessions)
	require.Equal(t, int(done.Events), bytes.Count(b, []byte("\n")))
	again, _ := export(t, from, Options{})
	require.Equal(t, b, again)
	got, err := into(to, b)
	require.NoError(t, err)
	require.Equal(t, done.Events, got.Events)
	require.Zero(t, got.Rewritten+got.Absent)
	for _, id := range []uuid.UUID{sid(1), sid(2)} {
		mine, its := log(t, from, id), log(t, to, id)
		require.Equal(t, len(mine), len(its))
		for i := range mine {
			require.True(t, its[i].Imported)
			require.Equal(t, mine[i].Hash, its[i].Hash)
			require.Equal(t, mine[i].Content, its[i].Content)
		}
		row, err := to.Row(id)
		require.NoError(t, err)
		require.True(t, row.Evidence)
	}
	got, err = into(to, b)
	require.NoError(t, err)
	require.Zero(t, got.Events)

	// What it hands on in turn differs in nothing but where it stood.
	var words []string
	second, _ := export(t, to, Options{Sessions: []uuid.UUID{sid(1)}})
	for _, l := range strings.Split(strings.TrimSpace(string(second)), "\n") {
		var v line
		require.NoError(t, json.Unmarshal([]byte(l), &v))
		require.True(t, v.Imported)
		words = append(words, v.Hash)
	}
	require.Len(t, words, 12)
}

func log(t testing.TB, s *eventlog.Store, id uuid.UUID) (out []eventlog.Event) {
	t.Helper()
	require.NoError(t, s.Replay(ctx, id, true, func(ev *eventlog.Event) error {
		c := *ev
		c.Content = bytes.Clone(ev.Content)
		out = append(out, c)
		return ev.ContentErr
	}))
	return out
}

// TestSchema: every line fits the schema that is handed out.
func TestSchema(t *testing.T) {
	text, err := schema.Get("line")
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("line", doc))
	s, err := c.Compile("line")
	require.NoError(t, err)
	from := filled(t)
	filter := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("s3cr3t"), []byte("[gone]")) }
	for _, o := range []Options{{}, {Filter: filter}} {
		b, _ := export(t, from, o)
		for _, l := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(l))
			require.NoError(t, err)
			require.NoError(t, s.Validate(v), "%s", l)
		}
	}
}

// TestFilter: a content that was rewritten has no salt any more and is not taken
// in as what it was; one whose facts were is not taken in at all.
func TestFilter(t *testing.T) {
	from := filled(t)
	secret := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("s3cr3t"), []byte("[gone]")) }
	b, done := export(t, from, Options{Filter: secret})
	require.Equal(t, uint64(2), done.Rewritten, "the event and its copy in the child")
	require.NotContains(t, string(b), "s3cr3t")
	to := newStore(t)
	got, err := into(to, b)
	require.NoError(t, err)
	require.Equal(t, uint64(2), got.Rewritten)
	row, err := to.Row(sid(1))
	require.NoError(t, err)
	want, err := from.Row(sid(1))
	require.NoError(t, err)
	require.Equal(t, want.Hash, row.Hash, "the chain does not need it")
	page, err := to.Read(ctx, sid(1), eventlog.ReadOptions{From: 11, To: 11, Contents: true})
	require.NoError(t, err)
	require.ErrorIs(t, page.Events[0].ContentErr, eventlog.ErrWithheld)

	facts := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"read-only"`), []byte(`"[gone]"`)) }
	b, done = export(t, from, Options{Filter: facts})
	require.NotZero(t, done.FactsRewritten)
	_, err = into(newStore(t), b)
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	require.ErrorContains(t, err, "line 1: ")
	require.ErrorContains(t, err, "rewrote its facts")
}

// TestTampered: a line that was changed, left out or put elsewhere is found, and
// nothing is written.
func TestTampered(t *testing.T) {
	from := filled(t)
	b, _ := export(t, from, Options{})
	all := strings.SplitAfter(strings.TrimSuffix(string(b), "\n"), "\n")
	set := func(n int, old, new string) string {
		out := append([]string{}, all...)
		require.Contains(t, out[n], old)
		out[n] = strings.Replace(out[n], old, new, 1)
		return strings.Join(out, "")
	}
	for name, text := range map[string]string{
		"a fact in words":     set(1, `"mode":"read-only"`, `"mode":"danger-full-access"`),
		"a content":           set(10, "s3cr3t", "secret"),
		"a time":              set(3, `"time":"2`, `"time":"3`),
		"a source":            set(10, `"source":"user"`, `"source":"runtime"`),
		"a salt":              set(10, `"salt":"`, `"salt":"00`),
		"no salt":             set(10, `"missing":false`, `"missing":true`),
		"another session":     set(2, sid(1).String(), sid(3).String()),
		"a key that is new":   set(0, `"childlog":1`, `"childlog":1,"x":1`),
		"a key that is twice": set(0, `"childlog":1`, `"childlog":1,"childlog":1`),
		"a newer version":     set(0, `"childlog":1`, `"childlog":2`),
		"not JSON":            set(4, "{", "["),
		"a line left out":     strings.Join(append(append([]string{}, all[:4]...), all[5:]...), ""),
		"lines exchanged":     strings.Join([]string{all[0], all[2], all[1]}, ""),
		"the beginning":       strings.Join(all[1:], ""),
		"a line cut":          string(b[:len(b)/2]),
	} {
		to := newStore(t)
		_, err := into(to, []byte(text))
		require.Error(t, err, name)
		require.Regexp(t, `^line \d+: `, err.Error(), name)
		require.Zero(t, to.Durable(), name)
	}
}
