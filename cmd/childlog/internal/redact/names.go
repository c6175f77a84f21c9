package redact

import (
	"bytes"
	"strings"
	"sync"
)

// secrecy is what a name says of its value.
type secrecy uint8

const (
	open   secrecy = iota // nothing
	likely                // a secret if it looks like one: "token" may count tokens
	secret                // a secret, whatever it looks like
)

// secretWords end names whose values are secrets. A salt is one: beside a
// commitment to a text that was replaced it lets a reader try guesses.
var secretWords = wordSet{words: "password passwd passwort pwd pass passphrase passcode secret secrets credential credentials apikey apikeys accesskey secretkey " +
	"privatekey clientsecret sshpass pgpassword salt authorization cookie cookies"}

// likelyWords end names whose values may be.
var likelyWords = wordSet{words: "token tokens auth jwt bearer sid otp creds dsn authtoken accesstoken refreshtoken"}

// keyKinds stand before "key" in the name of a secret, likelyKinds where the
// value must look like one, too.
var (
	keyKinds    = wordSet{words: "api access private secret signing encryption account shared master ssh hmac aes"}
	likelyKinds = wordSet{words: "auth service license admin storage webhook deploy app token"}
)

// qualifiers may follow the word that makes a name one of a secret.
var qualifiers = wordSet{words: "value val raw text plain plaintext base64 b64 hash old new current previous prod production dev test staging header env var string str"}

// wordSet is a set of words. It is made when it is first asked for: few commands
// filter anything.
type wordSet struct {
	words string
	once  sync.Once
	set   map[string]bool
}

func (s *wordSet) has(word string) bool {
	s.once.Do(func() { s.set = set(s.words) })
	return s.set[word]
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// longestName is the most bytes of a name that is looked at.
const longestName = 96

// secrecyOf judges a name: of a JSON member, a variable, an option, a header.
func secrecyOf(name string) secrecy {
	if len(name) > longestName {
		name = name[len(name)-longestName:]
	}
	words := splitName(name)
	for len(words) > 1 {
		last := words[len(words)-1]
		if !qualifiers.has(last) && !isDigits(last) {
			break
		}
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return open
	}
	last := strings.TrimRight(words[len(words)-1], "0123456789")
	before := ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	switch key := last == "key" || last == "keys"; {
	case secretWords.has(last), key && keyKinds.has(before), before == "pass" && (last == "code" || last == "word" || last == "phrase"):
		return secret
	case likelyWords.has(last), key && likelyKinds.has(before):
		return likely
	}
	return open
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// splitName takes a name apart at what is no letter or digit and where a
// capital follows a small letter, in lower case.
func splitName(name string) (words []string) {
	from := 0
	cut := func(to int) {
		if to > from {
			words = append(words, strings.ToLower(name[from:to]))
		}
	}
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case !alnum[c] && c < 0x80:
			cut(i)
			from = i + 1
		case 'A' <= c && c <= 'Z' && i > from && ('a' <= name[i-1] && name[i-1] <= 'z' || i+1 < len(name) && 'a' <= name[i+1] && name[i+1] <= 'z' && name[i-1] < 'a'):
			cut(i)
			from = i
		}
	}
	cut(len(name))
	return words
}

// nameLiterals lead to an assignment in a text; the name around them decides.
var nameLiterals = []string{"passw", "pwd", "passphrase", "passcode", "secret", "credential", "apikey", "api_key", "api-key", "api key", "accesskey", "access_key",
	"access-key", "privatekey", "private_key", "private-key", "_key", "-key", "token", "_pass", "-pass", "dsn", "auth", "jwt", "otp", "creds"}

// assignment finds the value behind a name and an = or : in a text: a line of
// an environment file, a shell command, code, JSON that is not whole.
func assignment(t []byte, at, n int) (span, bool) {
	from, end := at, at+n
	for from > 0 && at-from < longestName && (dotted[t[from-1]]) && !endsEscape(t, from) {
		from--
	}
	for end < len(t) && end-from < longestName && dashed[t[end]] {
		end++
	}
	name := bytes.TrimLeft(t[from:end], ".-")
	option := bytes.HasPrefix(t[from:end], []byte("--"))
	kind := secrecyOf(string(name))
	assigned := assignedName(string(name))
	if kind == open || assigned == "authorization" || assigned == "cookie" { // those are lines, see header
		return span{}, false
	}
	i := skipBlanks(t, closeQuote(t, end))
	switch {
	case i >= len(t):
		return span{}, false
	case t[i] == '=' || t[i] == ':':
		for i++; i < len(t) && (t[i] == '=' || t[i] == '>'); i++ { // := => ==
		}
	case option && i > end:
	default:
		return span{}, false
	}
	v := readValue(t, i, false)
	value := t[v.from:v.end]
	if isHarmless(value) || placeholderEnd(t, v.from, builtin()) >= v.end || kind == likely && !looksSecret(value) || !v.quoted && isCode(name, value) {
		return span{}, false
	}
	return span{v.from, v.end, assigned, generic}, true
}

// endsEscape reports whether the letter before i belongs to an escape.
func endsEscape(t []byte, i int) bool {
	return i >= 2 && t[i-2] == '\\' && (t[i-1] == 'n' || t[i-1] == 't' || t[i-1] == 'r')
}

// assignedName tells apart what the name tells apart.
func assignedName(name string) string {
	words := " " + strings.Join(splitName(name), " ") + " "
	switch {
	case strings.Contains(words, " aws ") && strings.Contains(words, " secret "):
		return "aws-secret-key"
	case strings.Contains(words, "pass") || strings.Contains(words, "pwd"):
		return "password"
	case strings.HasSuffix(words, " salt "):
		return "salt"
	case strings.Contains(words, " authorization "):
		return "authorization"
	case strings.Contains(words, "cookie"):
		return "cookie"
	case strings.Contains(words, "token") || strings.Contains(words, " jwt "):
		return "assigned-token"
	case strings.Contains(words, "key"):
		return "assigned-key"
	}
	return "assigned-secret"
}
