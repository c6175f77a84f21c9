package command

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/failure"
	"childlog/eventlog"
)

const rootID = "11111111-0000-4000-8000-000000000000"

// inProcess runs a command line against a store in this process.
func inProcess(t *testing.T, store, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, msg bytes.Buffer
	code = Run(context.Background(), append([]string{"--store", store}, args...), strings.NewReader(stdin), &out, &msg)
	return code, out.String(), msg.String()
}

// newStore makes a store with one root session.
func newStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	for _, args := range [][]string{{"init"}, {"root", "--id", rootID}} {
		code, _, msg := inProcess(t, dir, "", args...)
		require.Zero(t, code, msg)
	}
	return dir
}

func journal(t *testing.T, store string) []byte {
	b, err := os.ReadFile(filepath.Join(store, "store.db"))
	require.NoError(t, err)
	return b
}

// Raw bytes that are no JSON are refused with their offset and nothing is
// written; as octets they are kept.
func TestAppendRawBytes(t *testing.T) {
	dir := newStore(t)
	before := journal(t, dir)
	for _, c := range []struct{ name, in, want string }{
		{"0xff in a string", "{\"type\":\"a/b\",\"content\":\"x\xffy\"}", "line 1: invalid: byte offset 26: byte 0xff is not valid UTF-8"},
		{"0xff outside", "{\"type\":\"a/b\"}\n\xff", "line 2: invalid: byte offset 0: byte 0xff"},
		{"overlong", "{\"type\":\"a/b\",\"content\":\"\xc0\xaf\"}", "byte offset 25: byte 0xc0"},
		{"surrogate in UTF-8", "{\"type\":\"a/b\",\"content\":\"\xed\xa0\x80\"}", "byte offset 25: byte 0xed"},
		{"NUL in a string", "{\"type\":\"a/b\",\"content\":\"x\x00y\"}", "byte offset 26: "},
		{"NUL outside", "{\"type\":\"a/b\"}\x00", "byte offset 14: more after the object"},
		{"cut off", "{\"type\":\"a/b\",\"content\":{\"a\":", "line 1: invalid: byte offset 29: "},
		{"byte order mark", "\ufeff{\"type\":\"a/b\"}", "byte offset 0: "},
		{"deep", `{"type":"a/b","content":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + "}", "too large: nesting of json: limit 64"},
	} {
		code, out, msg := inProcess(t, dir, c.in, "append", rootID)
		require.Equal(t, failure.ExitUsage, code, c.name)
		require.Contains(t, msg, c.want, c.name)
		require.Empty(t, out, c.name)
	}
	require.Equal(t, before, journal(t, dir))

	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	text := base64.StdEncoding.EncodeToString(all)
	code, _, msg := inProcess(t, dir, `{"type":"a/b","content_base64":"`+text+`"}`, "append", rootID)
	require.Zero(t, code, msg)
	code, out, _ := inProcess(t, dir, "", "log", rootID, "--from", "2", "--json")
	require.Zero(t, code)
	require.Contains(t, out, `"content_base64":"`+text+`"`)
}

// Keys that differ in a lone surrogate are different keys, and are kept as they
// stand.
func TestAppendSurrogateKeys(t *testing.T) {
	dir := newStore(t)
	content := `{"\ud800":1,"\ud801":{"\udc00":2,"\udc01":3},"\ufffd":4}`
	code, _, msg := inProcess(t, dir, `{"type":"a/b","content":`+content+`}`, "append", rootID)
	require.Zero(t, code, msg)
	code, out, _ := inProcess(t, dir, "", "log", rootID, "--from", "2", "--json")
	require.Zero(t, code)
	require.Contains(t, out, `"content":`+content)
}

// Over a limit: refused with the limit and the size, and nothing is written.
func TestAppendLimits(t *testing.T) {
	dir := newStore(t)
	before := journal(t, dir)
	big := strings.Repeat("x", eventlog.MaxContent)
	line := func(content string) string { return `{"type":"a/b","content_text":"` + content + `"}` + "\n" }
	for _, c := range []struct{ name, in, want string }{
		{"events", strings.Repeat(line("x"), eventlog.MaxBatchEvents+3), "too large: events of a batch: limit 4096, got 4099"},
		{"content", line(big + "x"), "too large: content in bytes: limit 16777216, got 16777217"},
		{"content of a batch", line(big) + line(big) + line("xy"), "too large: content of a batch in bytes: limit 33554432, got 33554434"},
		{"line", `{"type":"a/b","content_text":"` + strings.Repeat("x", maxLine), "too large: line in bytes: limit 67108864"},
		{"facts", `{"type":"a/b","facts":{"n":["` + strings.Repeat(strings.Repeat("x", 200)+`","`, 400) + `"]}}`, "too large: facts in bytes: limit 65536"},
		{"nesting", `{"type":"a/b","content":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`, "too large: nesting of json: limit 64, got 65"},
		{"nesting that no decoder follows", `{"type":"a/b","content":{"s":"]\"]]","a":` + strings.Repeat("[", 10_500) + strings.Repeat("]", 10_500) + `}}`, "too large: nesting of json: limit 64, got 10501"},
		{"nesting without end", `{"type":"a/b","content":` + strings.Repeat("[", 20_000), "too large: nesting of json: limit 64, got 20000"},
		{"nesting beside a surrogate", `{"type":"a/b","content":["\ud800",` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `]}`, "too large: nesting of json: limit 64, got 65"},
		{"type", `{"type":"a/` + strings.Repeat("b", 64) + `"}`, "too large: type name in bytes: limit 64, got 66"},
	} {
		code, out, msg := inProcess(t, dir, c.in, "append", rootID)
		require.Equal(t, failure.ExitUsage, code, "%s: %.200s", c.name, msg)
		require.Contains(t, msg, c.want, c.name)
		require.Contains(t, msg, "hint: ", c.name)
		require.Empty(t, out, c.name)
	}
	code, _, msg := inProcess(t, dir, big+"x", "send", rootID, "--operator", "-")
	require.Equal(t, failure.ExitUsage, code)
	require.Contains(t, msg, "too large: text in bytes")
	code, _, msg = inProcess(t, dir, "", "root", "--label", strings.Repeat("x", 5000))
	require.Equal(t, failure.ExitUsage, code)
	require.Contains(t, msg, "label in bytes: limit 4096, got 5000")
	require.Equal(t, before, journal(t, dir))

	// Just within them, and far longer than a line scanner's 64 KiB.
	code, _, msg = inProcess(t, dir, strings.Repeat(line("x"), eventlog.MaxBatchEvents), "append", rootID)
	require.Zero(t, code, msg)
	code, _, msg = inProcess(t, dir, line(big), "append", rootID)
	require.Zero(t, code, msg)
	code, out, _ := inProcess(t, dir, "", "log", rootID, "--json", "--from", fmt.Sprint(eventlog.MaxBatchEvents+2))
	require.Zero(t, code)
	require.Equal(t, 1, strings.Count(out, "\n"))
	require.Contains(t, out, big)
}

func FuzzReadBatch(f *testing.F) {
	f.Add([]byte(`{"type":"a/b","facts":{"n":1},"content":{"x":"\ud800"},"id":"0a0a0a0a-0000-4000-8000-000000000001","ignorable":true}`))
	f.Add([]byte("{\"type\":\"a/b\",\"content_base64\":\"AP8=\"}\n\n{\"type\":\"a/c\",\"content_text\":\"x\"}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		events, err := readBatch(bytes.NewReader(in))
		require.Equal(t, err == nil, len(events) > 0)
		if err != nil {
			require.Contains(t, []int{failure.ExitUsage}, failure.Of(err).Exit, "%v", err)
		}
		for _, ev := range events {
			if ev.Media == eventlog.MediaJSON {
				require.True(t, bytes.Contains(in, ev.Content), "a JSON content is a part of the input as it stands")
			}
		}
	})
}
