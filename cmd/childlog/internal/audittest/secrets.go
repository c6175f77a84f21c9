package audittest

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The secrets below are put together at run time, from parts that are no
// secrets, so that the repository holds none that a scanner would report.

// Drawn returns n characters that look drawn, the same for the same seed.
func Drawn(seed string, n int, from string) string {
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

// Alnum are the letters and digits, to draw from.
const Alnum = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

const (
	base32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	hex16  = "0123456789abcdef"
)

// Secret is a secret as it stands in a text, and the part of it that must not
// survive: of a value behind a name the value, of a key its body.
type Secret struct {
	Detector string // that is expected to name it
	Text     string
	Part     string
}

func glued(detector, prefix string, n int, from string) Secret {
	s := prefix + Drawn(detector+prefix, n-1, from) + "7"
	return Secret{detector, s, s}
}

func around(detector, before, secret, after string) Secret {
	return Secret{detector, before + secret + after, secret}
}

// Secrets are shapes that the detectors of package redact know.
func Secrets() []Secret {
	pass := Drawn("pass", 14, Alnum)
	body := Drawn("pem", 64, Alnum+"+/") + "\n" + Drawn("pem2", 64, Alnum+"+/") + "\n" + Drawn("pem3", 20, Alnum) + "=="
	pem := func(kind string) string {
		return "-----BEGIN " + kind + "-----\n" + body + "\n-----END " + kind + "-----"
	}
	part := func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) }
	token := part(`{"alg":"HS256","typ":"JWT"}`) + "." + part(`{"sub":"u17","exp":1893456000}`) + "." + Drawn("sig", 43, Alnum)
	login := base64.StdEncoding.EncodeToString([]byte("u17:" + pass))
	upper := strings.ToUpper(hex16)
	return []Secret{
		{"aws-access-key-id", "AKIA" + Drawn("a", 16, base32), "AKIA" + Drawn("a", 16, base32)},
		{"aws-access-key-id", "ASIA" + Drawn("b", 16, base32), "ASIA" + Drawn("b", 16, base32)},
		around("aws-secret-key", "aws_secret_access_key = ", Drawn("c", 40, Alnum+"/+"), ""),
		around("aws-secret-key", "AKIA"+Drawn("d", 16, base32)+" / ", Drawn("e", 39, Alnum)+"9", ""),
		glued("google-api-key", "AIza", 35, Alnum+"_-"),
		glued("google-oauth-secret", "GOCSPX-", 28, Alnum),
		glued("google-oauth-token", "ya29.", 60, Alnum+"_-"),
		around("azure-key", "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=", Drawn("f", 86, Alnum+"+/")+"==", ";EndpointSuffix=core.windows.net"),
		around("azure-key", "Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKey=", Drawn("g", 43, Alnum)+"=", ""),
		around("azure-client-secret", "", Drawn("h", 3, Alnum)+"8Q~"+Drawn("i", 34, Alnum), ""),
		around("signed-url", "https://acme.blob.core.windows.net/c/b?sv=2024-11-04&se=2030-01-01&sig=", Drawn("j", 43, Alnum)+"%3D", ""),
		around("signed-url", "https://acme.s3.amazonaws.com/k?X-Amz-Signature=", Drawn("k", 64, hex16), "&x=1"),
		glued("github-token", "ghp_", 36, Alnum),
		glued("github-token", "gho_", 36, Alnum),
		glued("github-token", "ghs_", 36, Alnum),
		glued("github-token", "github_pat_", 82, Alnum+"_"),
		glued("gitlab-token", "glpat-", 20, Alnum+"_-"),
		glued("gitlab-token", "glrt-", 20, Alnum),
		glued("slack-token", "xoxb-", 50, "0123456789-"+Alnum),
		glued("slack-token", "xapp-", 50, Alnum+"-"),
		around("slack-webhook", "https://", "hooks.slack.com/services/T0"+Drawn("l", 9, base32)+"/B0"+Drawn("m", 9, base32)+"/"+Drawn("n", 24, Alnum), ""),
		glued("stripe-key", "sk_live_", 24, Alnum),
		glued("stripe-key", "rk_test_", 24, Alnum),
		glued("webhook-secret", "whsec_", 32, Alnum),
		glued("openai-key", "sk-proj-", 100, Alnum+"_-"),
		glued("openai-key", "sk-", 48, Alnum),
		glued("anthropic-key", "sk-ant-api03-", 90, Alnum+"_-"),
		glued("npm-token", "npm_", 36, Alnum),
		glued("pypi-token", "pypi-AgEIcHlwaS5vcmc", 60, Alnum+"_-"),
		glued("docker-token", "dckr_pat_", 27, Alnum),
		glued("huggingface-token", "hf_", 34, Alnum),
		glued("sendgrid-key", "SG.", 66, Alnum+"_-."),
		glued("digitalocean-token", "dop_v1_", 64, hex16),
		glued("vault-token", "hvs.", 90, Alnum),
		glued("shopify-token", "shpat_", 32, hex16),
		glued("age-key", "AGE-SECRET-KEY-1", 58, upper),
		{"telegram-token", "1234567890:AA" + Drawn("o", 33, Alnum), "AA" + Drawn("o", 33, Alnum)},
		{"jwt", token, token},
		around("bearer-token", "curl -H 'X: Bearer ", Drawn("p", 30, Alnum)+"5", "'"),
		around("authorization", "Authorization: Bearer ", Drawn("q", 20, Alnum), ""),
		around("basic-auth", "Proxy-Authorization: Basic ", login, ""),
		around("basic-auth", "the header was basic ", login, " again"),
		around("cookie", "Cookie: theme=dark; session=", Drawn("r", 32, hex16), ""),
		around("cookie", "Set-Cookie: sid=", Drawn("s", 32, Alnum), "; HttpOnly; Path=/"),
		around("api-key-header", "X-Api-Key: ", Drawn("t", 32, Alnum), ""),
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
		around("url-userinfo", "https://", Drawn("u", 40, hex16), "@git.example.net/a.git"),
		around("login-option", "curl -u admin:", pass, " https://example.net"),
		around("password", "DB_PASSWORD=", pass+"&;)", ""),
		around("password", `password: "`, pass+` \\ x`, `"`),
		around("password", "mysqldump --password ", pass, " app"),
		around("password", `{\"user\":\"u\",\"password\":\"`, pass, `\"} and more`),
		around("assigned-key", "api_key = '", Drawn("v", 24, Alnum), "'"),
		around("assigned-secret", "client_secret=", Drawn("w", 24, Alnum), "&grant_type=x"),
		around("assigned-token", "CI_JOB_TOKEN=", Drawn("x", 24, Alnum), ""),
		around("github-token", "WRAPPED=", base64.StdEncoding.EncodeToString([]byte(`{"note":"ghp_`+Drawn("y", 36, Alnum)+`"}`)), ""),
	}
}

// Lacks asserts that an output holds the secret neither as it stands, nor as
// JSON escapes it, nor in base64.
func (s Secret) Lacks(t testing.TB, out string) {
	t.Helper()
	require.NotContains(t, out, s.Part)
	quoted, err := json.Marshal(s.Part)
	require.NoError(t, err)
	require.NotContains(t, out, string(quoted[1:len(quoted)-1]))
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		require.NotContains(t, out, strings.TrimRight(e.EncodeToString([]byte(s.Part)), "="))
	}
}

// Joined is a text that holds all of the secrets, one a line.
func Joined(secrets []Secret) string {
	var b strings.Builder
	for _, s := range secrets {
		b.WriteString(s.Text)
		b.WriteByte('\n')
	}
	return b.String()
}
