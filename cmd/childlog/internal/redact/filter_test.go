package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/audittest"
	"childlog/eventlog"
)

func filter(t testing.TB, o Options) *Filter {
	t.Helper()
	f, err := New(o)
	require.NoError(t, err)
	return f
}

// TestHarmlessTextStays: an export that is full of placeholders explains
// nothing. These are texts of the kinds that logs hold.
func TestHarmlessTextStays(t *testing.T) {
	f := filter(t, Options{})
	for _, text := range []string{
		"the parent switched to danger-full-access at seq 7",
		`{"seq":7,"id":"00000000-0000-4000-8000-000000000001","hash":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}`,
		`{"usage":{"input_tokens":1200,"output_tokens":17,"max_tokens":4096,"cache_tokens":12}}`,
		`{"commitment":"5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9","key":"6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"}`,
		"author: Bob Miller, tokens: 1204, token: string",
		"--- FAIL: TestPassword (0.00s)\nPASS: TestToken\nok  	childlog/policy	0.1s",
		"func (s *Store) Token(ctx context.Context) (token string, err error)",
		"password := os.Getenv(\"DB_PASSWORD\")\nconst token = process.env.TOKEN;",
		"export API_KEY=$API_KEY PASSWORD=${PASSWORD}",
		`{"type":"object","properties":{"password":{"type":"string","description":"the password of the user"}}}`,
		"Authorization: <token>\nCookie: none",
		"see https://example.net/a:b/c?x=1@2 and ssh://git@example.net/a.git, mail u17@example.net",
		"a bearer of good news is basic courtesy",
		"sk-learn, task-list-of-the-day-before-yesterday, risk-0, disk-image",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
		`{"public_key":"childlog+1b2c3d4e+AbCdEfGhIjKlMnOpQrStUvWxYz0123456789","primary_key":"u17a8c9d0e1"}`,
		`credentials: "include", mode: "cors"`,
		`{"secret":"","password":null,"token":false,"api_key":"<your key>"}`,
		"\x1b]0;title\x07\xff\xfe not utf-8",
	} {
		counts := Counts{}
		require.Equal(t, text, string(f.Bytes([]byte(text), counts)))
		require.Empty(t, counts)
	}
}

// TestJSONByName: a name that promises a secret is believed.
func TestJSONByName(t *testing.T) {
	f := filter(t, Options{})
	for in, want := range map[string]string{
		`{"password":"x1"}`:                                         `{"password":"[redacted:password]"}`,
		`{"dbPassword" : 4711, "n":4711}`:                           `{"dbPassword" : "[redacted:password]", "n":4711}`,
		`{"secrets":["one","two"],"n":["one"]}`:                     `{"secrets":["[redacted:assigned-secret]","[redacted:assigned-secret]"],"n":["one"]}`,
		`{"secret":{"value":"s","kind":"opaque thing"}}`:            `{"secret":{"value":"[redacted:assigned-secret]","kind":"opaque thing"}}`,
		`[{"name":"DB_PASSWORD","value":"x1"}]`:                     `[{"name":"DB_PASSWORD","value":"[redacted:password]"}]`,
		`[{"name":"COLOUR","value":"red"}]`:                         `[{"name":"COLOUR","value":"red"}]`,
		`["login","--password","x1","--verbose"]`:                   `["login","--password","[redacted:password]","--verbose"]`,
		`["curl","-u","bob:x1","https://example.net"]`:              `["curl","-u","[redacted:login-option]","https://example.net"]`,
		`{"salt":"00ff","commitment":"aa11"}`:                       `{"salt":"[redacted:salt]","commitment":"aa11"}`,
		`{"headers":{"Authorization":["a b"]}}`:                     `{"headers":{"Authorization":["[redacted:authorization]"]}}`,
		`{"a":"{\"password\":\"x1\"}"}`:                             `{"a":"{\"password\":\"[redacted:password]\"}"}`,
		`{"a":"\u003cb\u003e","token":"abcdefgh1234"}`:              `{"a":"\u003cb\u003e","token":"[redacted:assigned-token]"}`,
		`{"t":"password=\u0022x1\u0022 \u2028"}`:                    "{\"t\":\"password=\\\"[redacted:password]\\\" \u2028\"}",
		`"password=x1 y"`:                                           `"password=[redacted:password] y"`,
		`{"tests":{"pass":12,"fail":0},"login":{"pass":"hunter2"}}`: `{"tests":{"pass":12,"fail":0},"login":{"pass":"[redacted:password]"}}`,
	} {
		out, err := f.JSON([]byte(in), nil)
		require.NoError(t, err)
		require.Equal(t, want, string(out))
	}
}

// TestEqualNamesStayApart: two names that become the same placeholder would
// make an object that strict readers refuse.
func TestEqualNamesStayApart(t *testing.T) {
	f := filter(t, Options{Roots: []Root{{"/srv/a", "w"}, {"/srv/b", "w"}}})
	one, two := "ghp_"+audittest.Drawn("1", 36, audittest.Alnum), "ghp_"+audittest.Drawn("2", 36, audittest.Alnum)
	out, err := f.JSON([]byte(`{"`+one+`":1,"`+two+`":2,"[redacted:github-token]":3,"/srv/a/x":4,"/srv/b/x":5,"same":6,"same":7}`), nil)
	require.NoError(t, err)
	require.Equal(t, `{"[redacted:github-token]":1,"[redacted:github-token]#2":2,"[redacted:github-token]#3":3,"<root:w>/x":4,"<root:w>/x#2":5,"same":6,"same":7}`, string(out))
}

// TestPlaceholdersHideNothing: text that looks like a placeholder must not
// protect a secret behind it.
func TestPlaceholdersHideNothing(t *testing.T) {
	f := filter(t, Options{})
	key := "sk-" + strings.ToLower(audittest.Drawn("k", 40, audittest.Alnum)) + "7"
	for _, text := range []string{"[redacted:" + key + "]", "password=[redacted:" + key, "[redacted:jwt]" + key, `{"password":"[redacted:jwt]` + key + `"}`} {
		require.NotContains(t, string(f.Bytes([]byte(text), nil)), key)
	}
}

// TestBase64KeepsItsForm: what reads the value goes on reading it.
func TestBase64KeepsItsForm(t *testing.T) {
	f := filter(t, Options{})
	secret := "glpat-" + audittest.Drawn("g", 20, audittest.Alnum)
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		counts := Counts{}
		inner := strings.Repeat("ü text?>~ ", 40) + secret + " more"
		out := f.Text([]byte("data:text/plain;base64,"+e.EncodeToString([]byte(inner))), counts)
		plain, err := e.DecodeString(strings.TrimPrefix(string(out), "data:text/plain;base64,"))
		require.NoError(t, err)
		require.Equal(t, strings.Replace(inner, secret, "[redacted:gitlab-token]", 1), string(plain))
		require.Equal(t, Counts{"gitlab-token": 1}, counts)
	}
	twice := base64.StdEncoding.EncodeToString([]byte("x " + base64.StdEncoding.EncodeToString([]byte("say "+secret))))
	require.NotEqual(t, twice, string(f.Text([]byte(twice), nil)))
	picture := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0x89, 'P', 'N', 'G', 0, 1, 2, 0xff}, 4000))
	require.Equal(t, picture, string(f.Text([]byte(picture), nil)))
}

func TestRules(t *testing.T) {
	rules, err := ReadRules(strings.NewReader("# ours\n\ncodename literal Blue bird\nticket\tre2\tACME-[0-9]{4,8}\r\npin literal 4711\n"))
	require.NoError(t, err)
	f := filter(t, Options{Rules: rules})
	counts := Counts{}
	out, err := f.JSON([]byte(`{"Blue bird":"about ACME-12345","n":4711,"x":[{"y":"Blue \u0062ird"}],"password":"[redacted:codename]"}`), counts)
	require.NoError(t, err)
	require.Equal(t, `{"[redacted:codename]":"about [redacted:ticket]","n":"[redacted:pin]","x":[{"y":"[redacted:codename]"}],"password":"[redacted:codename]"}`, string(out))
	require.Equal(t, Counts{"codename": 2, "ticket": 1, "pin": 1}, counts)
	again, err := f.JSON(out, counts)
	require.NoError(t, err)
	require.Equal(t, string(out), string(again))

	for in, want := range map[string]string{
		"one":                         "line 1: want NAME literal TEXT or NAME re2 PATTERN",
		"ok literal x\nA b c":         "line 2: want NAME",
		"x literal":                   "not empty",
		"x re2 s3cret(":               "no regular expression",
		"x re2 a*":                    "matches the empty text",
		"X-Y literal a":               "lower-case",
		strings.Repeat("a", 5000):     "limit 4096",
		"x literal s3cret\nx-( re2 a": "lower-case",
	} {
		_, err := ReadRules(strings.NewReader(in))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "s3cret")
	}
	_, err = New(Options{Rules: []Rule{{Name: "both", Literal: "a", Pattern: "b"}}})
	require.ErrorIs(t, err, eventlog.ErrInvalid)
}

func TestPaths(t *testing.T) {
	f := filter(t, Options{Homes: true, Roots: []Root{{"/srv/acme", "w1"}, {"/srv/acme/sub/", "w2"}, {`C:\work\acme`, "w3"}}})
	for in, want := range map[string]string{
		"cd /srv/acme && ls /srv/acme/a.go":          "cd <root:w1> && ls <root:w1>/a.go",
		"/srv/acme/sub/x /srv/acmes/x /x/srv/acme":   "<root:w2>/x /srv/acmes/x /x/srv/acme",
		"file:///srv/acme/a":                         "file://<root:w1>/a",
		`open C:\work\acme\a.txt`:                    `open <root:w3>\a.txt`,
		`"C:\\work\\acme\\a.txt" C:/work/acme/b`:     `"<root:w3>\\a.txt" <root:w3>/b`,
		"/home/bob/.ssh/config and /Users/Ann Lee/x": "<root:home>/.ssh/config and <root:home> Lee/x",
		`C:\Users\bob\x`:                             `<root:home>\x`,
		"/home/ alone, /homes/bob":                   "/home/ alone, /homes/bob",
		`{"cwd":"/srv/acme","n":"\\n/srv/acme/b"}`:   `{"cwd":"<root:w1>","n":"\\n<root:w1>/b"}`,
	} {
		require.Equal(t, want, string(f.Bytes([]byte(in), nil)), in)
		require.Equal(t, want, string(f.Bytes([]byte(want), nil)), "twice")
	}
	for _, r := range []Root{{"relative", "a"}, {"/", "a"}, {"/srv", "A b"}} {
		_, err := New(Options{Roots: []Root{r}})
		require.ErrorIs(t, err, eventlog.ErrInvalid)
	}
}

func TestSummary(t *testing.T) {
	require.Equal(t, "the detectors found nothing that they know; what they do not know stays", Counts{}.Summary())
	require.Equal(t, "the detectors found and replaced 3 (github-token 2, jwt 1); what they do not know stays", Counts{"jwt": 1, "github-token": 2}.Summary())
	c := Counts{"jwt": 1}
	c.Add(Counts{"jwt": 2, "cookie": 1})
	require.Equal(t, Counts{"jwt": 3, "cookie": 1}, c)
}

// TestDetectorsAreNamed: every name that a detector gives is one that a second
// filtering knows as a placeholder.
func TestDetectorsAreNamed(t *testing.T) {
	for _, s := range audittest.Secrets() {
		require.Contains(t, builtin(), s.Detector)
	}
	for _, k := range tokens() {
		require.Regexp(t, ruleName(), k.name)
	}
}

// FuzzFilter: JSON stays JSON and keeps its kind; a secret behind any text does
// not survive; filtering twice changes nothing.
func FuzzFilter(f *testing.F) {
	for _, s := range audittest.Secrets() {
		f.Add(s.Text)
	}
	for _, text := range []string{"", "[redacted:jwt]", "[redacted:", `{"a":"{\"b\":1}"}`, `["--password","x"]`, "\\", "\"", "password: \"", "://@", "eyJ.eyJ.", "-----BEGIN PRIVATE KEY-----", "\xed\xa0\x80", `"\ud800"`, `{"secret":{"a":[1,"x"]}}`} {
		f.Add(text)
	}
	secret := "ghp_" + audittest.Drawn("fuzz", 36, audittest.Alnum)
	filter, err := New(Options{Homes: true, Rules: []Rule{{Name: "four", Literal: "4711"}}, Roots: []Root{{"/srv/acme", "w1"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out := filter.String(text+" "+secret+" "+text, nil)
		if strings.Contains(out, secret) {
			t.Fatalf("the secret survived in %q", out)
		}
		if raw := []byte(text); json.Valid(raw) {
			clean, err := filter.JSON(raw, nil)
			if err != nil || !json.Valid(clean) {
				t.Fatalf("%q became %q: %v", raw, clean, err)
			}
		}
		wrapped, err := json.Marshal(map[string]any{text: []any{text, map[string]any{"x": text + " " + secret}}, "password": text})
		if err != nil {
			t.Fatal(err)
		}
		clean, err := filter.JSON(wrapped, nil)
		if err != nil || eventlog.CheckJSON(clean) != nil {
			t.Fatalf("%q became %q: %v", wrapped, clean, err)
		}
		if bytes.Contains(clean, []byte(secret)) {
			t.Fatalf("the secret survived in %q", clean)
		}
	})
}

// BenchmarkText measures a text of a usual kind: source code with paths.
func BenchmarkText(b *testing.B) {
	var text []byte
	files, err := filepath.Glob("*.go")
	require.NoError(b, err)
	for _, name := range files {
		raw, err := os.ReadFile(name)
		require.NoError(b, err)
		text = append(text, raw...)
	}
	f := filter(b, Options{Homes: true, Roots: []Root{{"/srv/acme", "w1"}}})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		f.Text(text, nil)
	}
}

// BenchmarkHostile measures texts that are made to be read again and again.
func BenchmarkHostile(b *testing.B) {
	f := filter(b, Options{})
	for name, unit := range map[string]string{"eyJ": "-eyJ", "sk": "sk-", "pem": "-----BEGIN PRIVATE KEY-----", "pwd": "pwd=", "token": "token=", "cookie": "cookie: a=b;", "slashes": `pwd:\"pwd:"`, "url": "://", "quoted": `pwd:"`, "at": "://a:b/@"} {
		text := bytes.Repeat([]byte(unit), 1<<20/len(unit))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				f.Text(text, nil)
			}
		})
	}
}

// TestLongValuesGoWhole: no bound cuts a secret in two.
func TestLongValuesGoWhole(t *testing.T) {
	f := filter(t, Options{})
	long := audittest.Drawn("long", 40_000, audittest.Alnum)
	for _, text := range []string{"password=" + long, `password: "` + long + `"`, "PASSWORD=" + long + "\n", "token=" + long, "Authorization: Bearer " + long, "ghp_" + long, "token=password=" + long} {
		out := f.String(text+" end", nil)
		require.Less(t, len(out), 100, text[:20])
	}
}
