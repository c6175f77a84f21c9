package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Secrets of the tests are put together at run time, from parts that are no
// secrets, so that the repository holds none that a scanner would report.

// drawn returns n characters that look drawn, the same for the same seed.
func drawn(seed string, n int, from string) string {
	state := uint64(14695981039346656037)
	for i := 0; i < len(seed); i++ {
		state = (state ^ uint64(seed[i])) * 1099511628211
	}
	var b strings.Builder
	for range n {
		state = state*6364136223846793005 + 1442695040888963407
		b.WriteByte(from[(state>>33)%uint64(len(from))])
	}
	return b.String()
}

const (
	az09  = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	AZ27  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	hex16 = "0123456789abcdef"
)

// shot is a secret as it stands in a text, and the part that must not survive.
type shot struct {
	detector string
	text     string
	secret   string
}

func glued(detector, prefix string, n int, from string) shot {
	s := prefix + drawn(detector+prefix, n-1, from) + "7"
	return shot{detector, s, s}
}

func around(detector, before, secret, after string) shot {
	return shot{detector, before + secret + after, secret}
}

// shots are the shapes of secrets that the detectors know.
func shots() []shot {
	pass := drawn("pass", 14, az09)
	body := drawn("pem", 64, az09+"+/") + "\n" + drawn("pem2", 64, az09+"+/") + "\n" + drawn("pem3", 20, az09) + "=="
	pem := func(kind string) string {
		return "-----BEGIN " + kind + "-----\n" + body + "\n-----END " + kind + "-----"
	}
	part := func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) }
	token := part(`{"alg":"HS256","typ":"JWT"}`) + "." + part(`{"sub":"u17","exp":1893456000}`) + "." + drawn("sig", 43, az09)
	login := base64.StdEncoding.EncodeToString([]byte("u17:" + pass))
	upper := strings.ToUpper(hex16)
	return []shot{
		{"aws-access-key-id", "AKIA" + drawn("a", 16, AZ27), "AKIA" + drawn("a", 16, AZ27)},
		{"aws-access-key-id", "ASIA" + drawn("b", 16, AZ27), "ASIA" + drawn("b", 16, AZ27)},
		around("aws-secret-key", "aws_secret_access_key = ", drawn("c", 40, az09+"/+"), ""),
		around("aws-secret-key", "AKIA"+drawn("d", 16, AZ27)+" / ", drawn("e", 39, az09)+"9", ""),
		glued("google-api-key", "AIza", 35, az09+"_-"),
		glued("google-oauth-secret", "GOCSPX-", 28, az09),
		glued("google-oauth-token", "ya29.", 60, az09+"_-"),
		around("azure-key", "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=", drawn("f", 86, az09+"+/")+"==", ";EndpointSuffix=core.windows.net"),
		around("azure-key", "Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKey=", drawn("g", 43, az09)+"=", ""),
		around("azure-client-secret", "", drawn("h", 3, az09)+"8Q~"+drawn("i", 34, az09), ""),
		around("signed-url", "https://acme.blob.core.windows.net/c/b?sv=2024-11-04&se=2030-01-01&sig=", drawn("j", 43, az09)+"%3D", ""),
		around("signed-url", "https://acme.s3.amazonaws.com/k?X-Amz-Signature=", drawn("k", 64, hex16), "&x=1"),
		glued("github-token", "ghp_", 36, az09),
		glued("github-token", "gho_", 36, az09),
		glued("github-token", "ghs_", 36, az09),
		glued("github-token", "github_pat_", 82, az09+"_"),
		glued("gitlab-token", "glpat-", 20, az09+"_-"),
		glued("gitlab-token", "glrt-", 20, az09),
		glued("slack-token", "xoxb-", 50, "0123456789-"+az09),
		glued("slack-token", "xapp-", 50, az09+"-"),
		around("slack-webhook", "https://", "hooks.slack.com/services/T0"+drawn("l", 9, AZ27)+"/B0"+drawn("m", 9, AZ27)+"/"+drawn("n", 24, az09), ""),
		glued("stripe-key", "sk_live_", 24, az09),
		glued("stripe-key", "rk_test_", 24, az09),
		glued("webhook-secret", "whsec_", 32, az09),
		glued("openai-key", "sk-proj-", 100, az09+"_-"),
		glued("openai-key", "sk-", 48, az09),
		glued("anthropic-key", "sk-ant-api03-", 90, az09+"_-"),
		glued("npm-token", "npm_", 36, az09),
		glued("pypi-token", "pypi-AgEIcHlwaS5vcmc", 60, az09+"_-"),
		glued("docker-token", "dckr_pat_", 27, az09),
		glued("huggingface-token", "hf_", 34, az09),
		glued("sendgrid-key", "SG.", 66, az09+"_-."),
		glued("digitalocean-token", "dop_v1_", 64, hex16),
		glued("vault-token", "hvs.", 90, az09),
		glued("shopify-token", "shpat_", 32, hex16),
		glued("age-key", "AGE-SECRET-KEY-1", 58, upper),
		{"telegram-token", "1234567890:AA" + drawn("o", 33, az09), "AA" + drawn("o", 33, az09)},
		{"jwt", token, token},
		around("bearer-token", "curl -H 'X: Bearer ", drawn("p", 30, az09)+"5", "'"),
		around("authorization", "Authorization: Bearer ", drawn("q", 20, az09), ""),
		around("basic-auth", "Proxy-Authorization: Basic ", login, ""),
		around("basic-auth", "the header was basic ", login, " again"),
		around("cookie", "Cookie: theme=dark; session=", drawn("r", 32, hex16), ""),
		around("cookie", "Set-Cookie: sid=", drawn("s", 32, az09), "; HttpOnly; Path=/"),
		around("api-key-header", "X-Api-Key: ", drawn("t", 32, az09), ""),
		{"private-key", pem("PRIVATE KEY"), body[:40]},
		{"private-key", pem("RSA PRIVATE KEY"), body[:40]},
		{"private-key", pem("OPENSSH PRIVATE KEY"), body[:40]},
		{"private-key", pem("EC PRIVATE KEY")[:150], body[:40]},
		{"private-key", strings.ReplaceAll(pem("PRIVATE KEY"), "\n", `\n`), body[:40]},
		{"private-key", strings.ReplaceAll(pem("ENCRYPTED PRIVATE KEY"), "\n", `\\n`), body[:40]},
		around("connection-string", "postgres://acme:", pass, "@db.internal:5432/app?sslmode=require"),
		around("connection-string", "mysql://root:", pass, "@127.0.0.1/x"),
		around("connection-string", "mongodb+srv://acme:", pass+"%21", "@cluster0.example.net/db"),
		around("connection-string", "redis://:", pass, "@cache:6379/0"),
		around("connection-string", "amqps://u:", pass, "@mq.example.net/vhost"),
		around("connection-string", "jdbc:postgresql://acme:", pass+"/9", "@db/app"),
		around("password", "Server=db;User Id=sa;Password=", pass, ";Encrypt=true"),
		around("url-userinfo", "git clone https://u17:", pass, "@git.example.net/a.git"),
		around("url-userinfo", "https://", drawn("u", 40, hex16), "@git.example.net/a.git"),
		around("login-option", "curl -u admin:", pass, " https://example.net"),
		around("password", "DB_PASSWORD=", pass+"&;)", ""),
		around("password", `password: "`, pass+` \\ x`, `"`),
		around("password", "mysqldump --password ", pass, " app"),
		around("password", `{\"user\":\"u\",\"password\":\"`, pass, `\"} and more`),
		around("assigned-key", "api_key = '", drawn("v", 24, az09), "'"),
		around("assigned-secret", "client_secret=", drawn("w", 24, az09), "&grant_type=x"),
		around("assigned-token", "CI_JOB_TOKEN=", drawn("x", 24, az09), ""),
		around("github-token", "WRAPPED=", "", base64.StdEncoding.EncodeToString([]byte(`{"note":"ghp_`+drawn("y", 36, az09)+`"}`))),
	}
}

// clean asserts that an output holds neither a secret nor its escaped forms.
func clean(t *testing.T, out, secret string) {
	t.Helper()
	if secret == "" {
		return
	}
	require.NotContains(t, out, secret)
	quoted, err := json.Marshal(secret)
	require.NoError(t, err)
	require.NotContains(t, out, string(quoted[1:len(quoted)-1]))
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		require.NotContains(t, out, strings.TrimRight(e.EncodeToString([]byte(secret)), "="))
	}
}

func quote(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// TestCase35_NoPlantedSecretSurvives plants every shape into each place where a
// log can hold one.
func TestCase35_NoPlantedSecretSurvives(t *testing.T) {
	f, err := New(Options{})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(shots()), 50)
	for i, s := range shots() {
		t.Run(fmt.Sprintf("%02d_%s", i, s.detector), func(t *testing.T) {
			places := map[string]string{
				"argument":       quote(t, map[string]any{"call": "c1", "args": map[string]any{"command": "run " + s.text + "\nthen"}}),
				"list":           quote(t, map[string]any{"argv": []string{"run", s.text}}),
				"nested":         quote(t, []any{map[string]any{"a": []any{map[string]any{"b": map[string]any{"c": s.text}}}}}),
				"json in json":   quote(t, map[string]any{"payload": quote(t, map[string]any{"inner": quote(t, map[string]any{"deep": s.text})})}),
				"broken json":    quote(t, map[string]any{"payload": quote(t, map[string]any{"inner": s.text}) + " trailing"}),
				"name of member": quote(t, map[string]any{s.text: 1}),
			}
			for place, text := range places {
				counts := Counts{}
				out, err := f.JSON([]byte(text), counts)
				require.NoError(t, err, place)
				require.True(t, json.Valid(out), place)
				clean(t, string(out), s.secret)
				require.Contains(t, counts, s.detector, "%s: %s", place, out)
				again, err := f.JSON(out, nil)
				require.NoError(t, err)
				require.Equal(t, string(out), string(again), "%s: filtering twice", place)
			}
			for place, text := range map[string]string{"label": s.text, "line": "first\n" + s.text + "\nlast"} {
				counts := Counts{}
				out := f.String(text, counts)
				clean(t, out, s.secret)
				require.Contains(t, counts, s.detector, "%s: %s", place, out)
				require.Equal(t, out, f.String(text, nil), "equal input, equal output")
			}
		})
	}
}
