package redact

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// shape is a secret that a literal leads to and that code must read. The
// literal is lower case; find gets where it stands and its length.
type shape struct {
	literal string
	lead
}

func shapes() []shape {
	return []shape{
		{"-----begin ", lead{find: privateKey, run: true}},
		{"---- begin ssh2 encrypted private key ----", lead{find: toTheEnd, run: true}},
		{"private-lines:", lead{find: toTheEnd, run: true}}, // PuTTY
		{"eyj", lead{find: jwt, run: true}},
		{"://", lead{find: userinfo}},
		{"bearer ", lead{find: bearer, run: true}},
		{"basic ", lead{find: basic}},
		{"authorization", lead{find: header("authorization"), run: true}},
		{"cookie", lead{find: header("cookie"), run: true}},
		{"x-api-key", lead{find: header("api-key-header"), run: true}},
		{"x-auth-token", lead{find: header("api-key-header"), run: true}},
		{"accountkey=", lead{find: parameter("azure-key", 20), run: true}},
		{"sharedaccesskey=", lead{find: parameter("azure-key", 20), run: true}},
		{"sharedaccesssignature=", lead{find: parameter("azure-key", 20), run: true}},
		{"sig=", lead{find: parameter("signed-url", 20), run: true}}, // Azure SAS
		{"x-amz-signature=", lead{find: parameter("signed-url", 20), run: true}},
		{"x-amz-security-token=", lead{find: parameter("signed-url", 20), run: true}},
		{"x-goog-signature=", lead{find: parameter("signed-url", 20), run: true}},
		{"q~", lead{find: azureSecret, run: true}},
		{":aa", lead{find: telegram, run: true}},
		{"-u ", lead{find: loginOption}},
		{"--user ", lead{find: loginOption}},
		{"--user=", lead{find: loginOption}},
		{"akia", lead{find: awsSecretNear}},
		{"asia", lead{find: awsSecretNear}},
	}
}

// privateKey finds a PEM block (RFC 7468) of a private key, with real line
// breaks or quoted ones, also one that was cut off before its end.
func privateKey(t []byte, at, n int) (span, bool) {
	label := t[at+n : min(len(t), at+n+64)]
	close := bytes.Index(label, []byte("-----"))
	if close < 0 || !bytes.Contains(label[:close], []byte("PRIVATE KEY")) {
		return span{}, false
	}
	// The body's letters, the headers of old blocks, the breaks and the
	// dashes of the end line. Anything else ends the block.
	i, gaps := at+n+close+len("-----"), 0
	for i < len(t) && (based[t[i]] || bytes.IndexByte([]byte("\\ \t\r\n:,.()"), t[i]) >= 0) {
		if bytes.HasPrefix(t[i:], []byte("-----END ")) {
			if end := bytes.Index(t[i+5:min(len(t), i+80)], []byte("-----")); end >= 0 {
				return span{at, i + 5 + end + 5, "private-key", specific}, true
			}
		}
		if t[i] == ' ' && t[i-1] != ' ' { // an indented block has one a line; more are other text behind a block that was cut off
			if gaps++; gaps > 200 {
				break
			}
		}
		i++
	}
	return span{at, i, "private-key", specific}, true
}

// toTheEnd finds a private key that stands in a file of its own: all that
// follows goes.
func toTheEnd(t []byte, at, n int) (span, bool) {
	return span{at, len(t), "private-key", specific}, at+n < len(t)
}

// jwt finds a compact JWS or JWE (RFC 7515 7.1, RFC 7516 7.1): three to five
// parts of base64url, the first a JSON object. One that lost its signature is
// taken from 20 bytes of payload on.
func jwt(t []byte, at, n int) (span, bool) {
	if string(t[at:at+n]) != "eyJ" || !startsWord(t, at) {
		return span{}, false
	}
	i, parts, second := at, 0, 0
	for parts < 5 {
		end := dashed.run(t, i, len(t))
		if parts++; parts == 2 {
			second = end - i
		}
		if i = end; i >= len(t) || t[i] != '.' {
			break
		}
		i++
	}
	return span{at, i, "jwt", specific}, i-at >= 24 && (parts >= 3 || parts == 2 && second >= 20)
}

// userinfo finds user and password before the host of a URL (RFC 3986 3.2.1),
// which database drivers take in their connection strings. The host stays.
func userinfo(t []byte, at, n int) (span, bool) {
	from, scheme := at+n, at
	for scheme > 0 && at-scheme < 32 && (alnum[t[scheme-1]] || t[scheme-1] == '+' || t[scheme-1] == '-' || t[scheme-1] == '.') {
		scheme--
	}
	window := t[from:min(len(t), from+512)]
	lastSign := from + bytes.LastIndexByte(window, '@')
	sign := -1
	for end := from; end <= lastSign; end++ {
		switch c := t[end]; {
		case c == '@':
			sign = end // a password with an @ that was not escaped: the last one counts
			continue
		case c <= ' ' || c == '"' || c == '\'' || c == '<' || c == '>' || c == '`' || c == '\\' || c == '?' || c == '#':
		case c == '/' && (sign >= 0 || !passwordSlash(t[from:end])):
		default:
			continue
		}
		break
	}
	if sign <= from || scheme == at || placeholderEnd(t, from, builtin()) == sign {
		return span{}, false
	}
	login := t[from:sign]
	name, ok := "url-userinfo", true
	kind := string(bytes.ToLower(t[scheme:at]))
	switch {
	case kind == "http" || kind == "https" || kind == "ftp": // a token alone is usual, too
	case bytes.IndexByte(login, ':') < 0: // a user alone, as in ssh://git@host
		ok = false
	case kind != "ssh" && kind != "git":
		name = "connection-string"
	}
	return span{from, sign, name, specific}, ok
}

// passwordSlash reports whether what stands before a slash can be a user and
// the beginning of a password that holds one, rather than a host and a port.
func passwordSlash(t []byte) bool {
	colon := bytes.IndexByte(t, ':')
	return colon >= 0 && has(letters, t[colon+1:])
}

// bearer finds a bearer token (RFC 6750 2.1) wherever the scheme is named. A
// word that follows in prose has no digit and is short.
func bearer(t []byte, at, n int) (span, bool) {
	from := skipBlanks(t, at+n)
	end := bearable.run(t, from, len(t))
	k := end - from
	return span{from, end, "bearer-token", generic}, startsWord(t, at) && (k >= 32 || k >= 8 && has(digits, t[from:end]))
}

// basic finds the credentials of Basic authentication (RFC 7617 2): base64 of
// user and password.
func basic(t []byte, at, n int) (span, bool) {
	from := skipBlanks(t, at+n)
	end := based.run(t, from, len(t))
	_, plain := decode64(t[from:end])
	return span{from, end, "basic-auth", specific}, startsWord(t, at) && bytes.IndexByte(plain, ':') >= 0
}

func skipBlanks(t []byte, i int) int {
	for n := 0; i < len(t) && n < 8 && (t[i] == ' ' || t[i] == '\t'); n++ {
		i++
	}
	return i
}

// header is the detector of the rest of a header line, from the value on. The
// scheme of an authorization stays.
func header(name string) func(t []byte, at, n int) (span, bool) {
	return func(t []byte, at, n int) (span, bool) {
		i := closeQuote(t, at+n)
		if i = skipBlanks(t, i); i >= len(t) || t[i] != ':' && t[i] != '=' {
			return span{}, false
		}
		v := readValue(t, i+1, true)
		for _, scheme := range []string{"basic ", "bearer ", "digest ", "token ", "negotiate "} {
			if len(scheme) < v.end-v.from && bytes.EqualFold(t[v.from:v.from+len(scheme)], []byte(scheme)) {
				v.from += len(scheme)
				break
			}
		}
		value := t[v.from:v.end]
		if isHarmless(value) || placeholderEnd(t, v.from, builtin()) >= v.end || len(value) < 4 {
			return span{}, false
		}
		return span{v.from, v.end, name, specific}, name != "cookie" || bytes.IndexByte(value, '=') >= 0
	}
}

// parameter is the detector of a value that follows a name and a sign and ends
// at the next parameter.
func parameter(name string, least int) func(t []byte, at, n int) (span, bool) {
	return func(t []byte, at, n int) (span, bool) {
		end := bearable.run(t, at+n, len(t))
		return span{at + n, end, name, specific}, startsWord(t, at) && end-at-n >= least
	}
}

// azureSecret finds a client secret of Entra ID: three letters, a digit, Q~ and
// 31 to 34 more.
func azureSecret(t []byte, at, n int) (span, bool) {
	end := secretBytes.run(t, at+n, len(t))
	if at < 4 || !digits[t[at-1]] || t[at] != 'Q' || end-at-n < 30 || end-at-n > 36 {
		return span{}, false
	}
	return span{at - 4, end, "azure-client-secret", specific}, secretBytes.run(t, at-4, 4) == at
}

var secretBytes = newAlphabet("09azAZ", "_-.~")

// telegram finds a bot's token: its number, a colon, AA and 33 more.
func telegram(t []byte, at, n int) (span, bool) {
	from := at
	for from > 0 && at-from < 12 && digits[t[from-1]] {
		from--
	}
	end := dashed.run(t, at+n, len(t))
	return span{from, end, "telegram-token", specific}, at-from >= 8 && string(t[at+1:at+n]) == "AA" && end-at-n >= 30 && end-at-n <= 36
}

// loginOption finds curl's user:password.
func loginOption(t []byte, at, n int) (span, bool) {
	if at > 0 && !blanks[t[at-1]] {
		return span{}, false
	}
	v := readValue(t, at+n, false)
	return span{v.from, v.end, "login-option", generic}, isLogin(t[v.from:v.end])
}

// isLogin reports whether an argument is a user and a password.
func isLogin(t []byte) bool {
	user, password, ok := bytes.Cut(t, []byte(":"))
	return ok && has(letters, user) && len(password) >= 2 && !isHarmless(password) && !bytes.HasPrefix(password, []byte("//"))
}

// awsSecretNear finds the 40 characters of an AWS secret key that stand near a
// key id: alone they look like any digest.
func awsSecretNear(t []byte, at, n int) (span, bool) {
	id := upper.run(t, at, 64)
	if id-at != 20 || !startsWord(t, at) {
		return span{}, false
	}
	for i := id; i < len(t) && i < id+240; {
		end := secretKey.run(t, i, 128)
		if run := t[i:end]; end-i == 40 && has(digits, run) && has(letters, run) && !isHex(run) {
			return span{i, end, "aws-secret-key", specific}, true
		}
		i = end + 1
	}
	return span{}, false
}

var secretKey = newAlphabet("09azAZ", "+/")

func isHex(t []byte) bool { return hexa.run(t, 0, len(t)) == len(t) }

// isText reports whether bytes can be shown: UTF-8, few controls.
func isText(t []byte) bool {
	odd := 0
	for i := 0; i < len(t); {
		r, n := utf8.DecodeRune(t[i:])
		if r == utf8.RuneError && n <= 1 {
			return false
		}
		if unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' {
			odd++
		}
		i += n
	}
	return odd*20 <= len(t)
}
