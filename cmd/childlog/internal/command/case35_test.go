package command

import (
	"context"
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/audittest"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// TestCase35_RedactedExportsLackPlantedSecrets plants each secret in a label, a
// prompt, a message, an argument, a nested field and in JSON within JSON. No
// format that is redacted holds it; the originals and the bundle still verify.
func TestCase35_RedactedExportsLackPlantedSecrets(t *testing.T) {
	secrets := audittest.Secrets()
	if testing.Short() { // the tests of package redact try every shape
		var some []audittest.Secret
		for i := 0; i < len(secrets); i += 6 {
			some = append(some, secrets[i])
		}
		secrets = some
	}
	dir := filepath.Join(t.TempDir(), "store")
	plant(t, dir, secrets)
	run := func(args ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := inProcess(t, dir, "", args...)
		require.Zero(t, code, stderr)
		return stdout, stderr
	}
	before := journal(t, dir)

	plain, _ := run("export", "--format", "jsonl")
	for _, s := range secrets {
		quoted, err := json.Marshal(s.Part)
		require.NoError(t, err)
		require.Contains(t, plain, string(quoted[1:len(quoted)-1]), "the test plants it")
	}
	bundleFile := filepath.Join(t.TempDir(), "redacted.bundle")
	for _, f := range exportFormats {
		file := filepath.Join(t.TempDir(), f.name)
		args := []string{"export", "--format", f.name, "--redact", "-o", file}
		if f.mayLack {
			args = append(args, "--contents")
		}
		if f.name == "bundle" {
			args[5] = bundleFile
			file = bundleFile
		}
		said, _ := run(args...)
		require.Contains(t, said, "what they do not know stays")
		require.NotContains(t, said, "no secrets")
		out, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, s := range secrets {
			s.Lacks(t, said)
			s.Lacks(t, string(out))
			s.Lacks(t, html.UnescapeString(string(out)))
		}
		if f.clean { // it is the default, too
			byDefault, _ := run("export", "--format", f.name)
			for _, s := range secrets {
				s.Lacks(t, html.UnescapeString(byDefault))
			}
			bare, _ := run("export", "--format", f.name, "--redact=false")
			require.Contains(t, html.UnescapeString(bare), secrets[0].Part, "the label is there otherwise")
		}
	}
	require.Equal(t, before, journal(t, dir), "exporting changes nothing")
	run("verify")

	// A bundle's contents are packed: what it holds is read by taking it in.
	said, _ := run("verify", "--bundle", bundleFile, "--json")
	require.Contains(t, said, `"filtered":true`)
	require.Contains(t, said, `"status":"intact"`)
	require.NotContains(t, said, `"withheld":0`)
	dir = filepath.Join(t.TempDir(), "other")
	run("init")
	run("import", "bundle", bundleFile)
	run("verify")
	taken, _ := run("export", "--format", "jsonl")
	require.Greater(t, strings.Count(taken, "\n"), 6*len(secrets))
	for _, s := range secrets {
		s.Lacks(t, taken)
	}
}

// plant makes a store with a root and a child for each secret, through the same
// calls that a harness makes.
func plant(t *testing.T, dir string, secrets []audittest.Secret) {
	t.Helper()
	ctx := context.Background()
	_, err := eventlog.Init(ctx, dir)
	require.NoError(t, err)
	s, err := eventlog.Open(ctx, dir, eventlog.Options{})
	require.NoError(t, err)
	encoded := func(v any) []byte {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		return b
	}
	for _, secret := range secrets {
		root, err := materialize.Root(ctx, s, materialize.RootRequest{Label: "with " + secret.Text, Workspace: "/srv/p", Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}})
		require.NoError(t, err)
		child, err := materialize.Delegate(ctx, s, root.ID, snapshot.Options{}, materialize.Request{Label: "child", Prompt: "use this: " + secret.Text})
		require.NoError(t, err)
		run, err := replay.Activate(ctx, s, child.ID, replay.AsParent(root.ID))
		require.NoError(t, err)
		args := map[string]any{"command": "deploy", "deep": []any{map[string]any{"inner": map[string]any{"note": secret.Text}}}}
		_, err = replay.NewAuthorizer(s, child.ID).Record(ctx, replay.CallRequest{Call: policy.NewCall("c1", "exec_shell", args), Args: encoded(args), Epoch: run.Epoch})
		require.NoError(t, err)
		facts := func(m map[string]any) eventlog.Facts {
			f, err := eventlog.MakeFacts(m)
			require.NoError(t, err)
			return f
		}
		wrapped := encoded(map[string]any{"arguments": string(encoded(map[string]any{"note": secret.Text}))})
		_, err = s.Append(ctx, eventlog.Batch{Session: child.ID, Expect: eventlog.Any(), Epoch: run.Epoch, Events: []eventlog.NewEvent{
			{Type: eventlog.TypeToolResult, Facts: facts(map[string]any{"call": "c1", "outcome": "ok"}), Media: eventlog.MediaText, Content: []byte("it said " + secret.Text)},
			{Type: eventlog.TypeUserMessage, Media: eventlog.MediaText, Content: []byte(secret.Text)},
			{Type: eventlog.TypeAssistantMessage, Media: eventlog.MediaJSON, Content: wrapped},
		}})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
}
