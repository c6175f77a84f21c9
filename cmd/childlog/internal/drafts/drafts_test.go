package drafts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/audittest"
	"childlog/cmd/childlog/internal/redact"
	"childlog/eventlog"
)

type writeFunc func(context.Context, io.Writer, *eventlog.Store, []uuid.UUID, Options) error

// export writes and returns the lines, without their newlines.
func export(t *testing.T, write writeFunc, s *eventlog.Store, o Options, sessions ...uuid.UUID) []string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, write(context.Background(), &b, s, sessions, o))
	var lines []string
	for line := range strings.Lines(b.String()) {
		require.NoError(t, eventlog.CheckJSON([]byte(line)))
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines
}

func decoded(t *testing.T, line string) (v map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(line), &v))
	return v
}

// carried asserts that a line holds its event without loss.
func carried(t *testing.T, s *eventlog.Store, line map[string]any) *eventlog.Event {
	t.Helper()
	r := line["childlog"].(map[string]any)
	require.Equal(t, false, r["signed"])
	shown := r["event"].(map[string]any)
	page, err := s.Read(context.Background(), uuid.MustParse(r["session"].(string)), eventlog.ReadOptions{From: uint64(shown["seq"].(float64)), MaxEvents: 1})
	require.NoError(t, err)
	ev := &page.Events[0]
	require.Equal(t, ev.ID.String(), shown["id"])
	require.Equal(t, ev.Type, shown["type"])
	require.Equal(t, base64.StdEncoding.EncodeToString(ev.Facts), r["facts_msgpack_base64"])
	return ev
}

func TestReceiptBody(t *testing.T) {
	s := audittest.Scene(t, audittest.Texts{Prompt: "write the notes"})
	lines := export(t, Receipts, s, Options{Contents: true}, audittest.Root, audittest.Child, audittest.Grandchild)
	require.Len(t, lines, 2, "a root has no receipt")
	line := decoded(t, lines[0])
	carried(t, s, line)
	body := line["body"].(map[string]any)
	require.Equal(t, "1", body["version"])
	require.Equal(t, map[string]any{"reads": []any{"files:read"}, "writes": []any{"files/docs:write"}, "deletes": []any{"files/docs:delete"}, "executes": []any{}}, body["scope"])
	require.Equal(t, []any{"approvals", "desktop", "network", "tool:fetch_url"}, body["boundaries"])
	window := body["timeWindow"].(map[string]any)
	require.Regexp(t, `^2026-11-30T13:\d\d:\d\dZ$`, window["notBefore"])
	require.Regexp(t, `^2026-11-30T14:\d\d:\d\dZ$`, window["notAfter"])
	require.Equal(t, "write the notes", body["operatorInstructions"])
	sum := sha256.Sum256([]byte("write the notes"))
	require.Equal(t, "sha256:"+hex.EncodeToString(sum[:]), body["instructionHash"])
	require.Equal(t, []string{"signerPublicKey", "signature"}, members(line))

	// The id is that of the canonical body: sorted, without blanks, without itself.
	delete(body, "delegationId")
	canonical, err := json.Marshal(body)
	require.NoError(t, err)
	sum = sha256.Sum256(canonical)
	require.Contains(t, lines[0], `{"body":{"delegationId":"sha256:`+hex.EncodeToString(sum[:])+`",`)

	grandchild := decoded(t, lines[1])
	require.Equal(t, []any{}, grandchild["body"].(map[string]any)["scope"].(map[string]any)["writes"])
	require.Contains(t, grandchild["body"].(map[string]any)["boundaries"], "write")
	require.Contains(t, grandchild["body"].(map[string]any)["boundaries"], "shell")
	require.Equal(t, []string{"signerPublicKey", "signature", "operatorInstructions", "instructionHash"}, members(grandchild))
}

func members(line map[string]any) (out []string) {
	for _, m := range line["childlog"].(map[string]any)["missing"].([]any) {
		out = append(out, m.(map[string]any)["member"].(string))
	}
	return out
}

func TestActionLog(t *testing.T) {
	s := audittest.Scene(t, audittest.Texts{})
	lines := export(t, Actions, s, Options{}, audittest.Root, audittest.Child)
	require.Len(t, lines, 5)
	order := regexp.MustCompile(`^\{"step_id":"[^"]+","action_id":"[^"]+","params":\{.*\},"success":(true|false),"ts_ms":\d+,"actor":\{"agent":"[^"]+","user":"u17"\},("prev_hash":"[0-9a-f]{64}",)?"childlog":\{`)
	want := []struct {
		call, verdict string
		outcome       any
		success       bool
	}{{"c1", "allow", "ok", true}, {"c2", "deny", nil, false}, {"c3", "deny", "ok", false}, {"c4", "allow", nil, false}, {"c5", "deny", nil, false}}
	prev := any(nil)
	for i, text := range lines {
		require.Regexp(t, order, text)
		line := decoded(t, text)
		params := line["params"].(map[string]any)
		require.Equal(t, want[i].call, params["call"])
		require.Equal(t, want[i].verdict, params["verdict"])
		require.Equal(t, want[i].outcome, params["outcome"])
		require.Equal(t, want[i].success, line["success"])
		require.Equal(t, []string{"public_key", "signature"}, members(line))
		require.Equal(t, prev, line["prev_hash"], "line %d is chained to the one before", i+1)
		sum := sha256.Sum256([]byte(text))
		prev = hex.EncodeToString(sum[:])
		ev := carried(t, s, line)
		require.Equal(t, ev.ID.String(), line["step_id"])
	}
	for _, write := range []writeFunc{Receipts, Actions} {
		require.ErrorIs(t, write(context.Background(), io.Discard, s, []uuid.UUID{uuid.New()}, Options{}), eventlog.ErrNotFound)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.ErrorIs(t, write(ctx, io.Discard, s, []uuid.UUID{audittest.Child}, Options{}), context.Canceled)
	}
}

// TestLinkIsTheDrafts holds the rule of the chain against the draft's published
// vectors (appendix A): the digest of the first line, signature and all.
func TestLinkIsTheDrafts(t *testing.T) {
	line := `{"step_id":"01J8Z7QX9K","action_id":"kriya.gate.decision","params":{"rule_id":"npm-publish","tier":"approve","class":"publish"},` +
		`"success":true,"ts_ms":1755300000000,"actor":{"agent":"claude-code","user":"alice"},` +
		`"public_key":"8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c",` +
		`"signature":"ab6afa750440d38f72dc5601f45b1df918de60049b2accbb438dd909222f42755a534ee67e2eb1397f9d3ca6bd0bf67f1ec078ecc60c08c92438acd2b7dc5802"}`
	require.Equal(t, "18a2a79ac5e4dcc31172783a0f33efc1518d426c5cf0ccd24982d41c9aa3ee4c", link([]byte(line+"\n")))
}

// TestCase35_DraftsLackPlantedSecrets: nor does a digest of the secret stay, nor
// what a guess could be held against.
func TestCase35_DraftsLackPlantedSecrets(t *testing.T) {
	planted := audittest.Secrets()
	prompt := audittest.Joined(planted)
	s := audittest.Scene(t, audittest.Texts{Label: audittest.Joined(planted[:20]), Prompt: prompt, Argument: prompt})
	f, err := redact.New(redact.Options{})
	require.NoError(t, err)
	counts := redact.Counts{}
	o := Options{Contents: true, Filter: f, Counts: counts}
	lines := append(export(t, Receipts, s, o, audittest.Child), export(t, Actions, s, o, audittest.Child)...)
	sum := sha256.Sum256([]byte(prompt))
	for _, line := range lines {
		for _, secret := range planted {
			secret.Lacks(t, line)
		}
		require.NotContains(t, line, hex.EncodeToString(sum[:]))
		require.Contains(t, line, `"facts_msgpack_base64":null,"filtered":true`)
	}
	require.Contains(t, lines[0], "[redacted:salt]")
	require.Contains(t, lines[0], "the filter found something in the prompt")
	require.Positive(t, counts["github-token"])
	for i, line := range lines[2:] { // the chain holds for the lines as they are written
		sum := sha256.Sum256([]byte(lines[i+1]))
		require.Equal(t, hex.EncodeToString(sum[:]), decoded(t, line)["prev_hash"])
	}
	plain := export(t, Receipts, s, Options{Contents: true}, audittest.Child)
	require.Contains(t, plain[0], planted[0].Part, "the test plants them where a receipt shows them")
}
