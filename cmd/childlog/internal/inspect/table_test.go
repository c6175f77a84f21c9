package inspect

import (
	"bufio"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"childlog/policy"
)

var unicodeEscape = regexp.MustCompile(`\\u[0-9a-f]{4}`)

// lines reads a file of commands with the escapes that its head names.
func lines(t testing.TB, name string) (out []string) {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		if strings.HasPrefix(line, "# ") && (len(out) == 0) {
			continue
		}
		line = unicodeEscape.ReplaceAllStringFunc(line, func(e string) string {
			r, err := strconv.ParseUint(e[2:], 16, 32)
			require.NoError(t, err)
			return string(rune(r))
		})
		out = append(out, line)
	}
	return out
}

func admitted(t testing.TB) (out []string) {
	for _, line := range lines(t, "admitted.txt") {
		// \n in quotes of printf and find is theirs.
		if !strings.Contains(line, "printf") && !strings.Contains(line, "-printf") {
			line = strings.ReplaceAll(line, `\n`, "\n")
		}
		out = append(out, line)
	}
	require.Greater(t, len(out), 150)
	return out
}

func TestAdmitted(t *testing.T) {
	for _, text := range admitted(t) {
		r := Command(text)
		if assert.Nil(t, r.Refused, "%s", text) {
			v := r.Verdict()
			assert.Equal(t, policy.GrantInspect, v.Shell(), text)
			assert.True(t, v.Named(), text)
		}
	}
}

// refused are commands with the codes for which they are refused.
func refused(t testing.TB) (out [][2]string) {
	escapes := strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t", `\a`, "\a", `\0`, "\x00", `\e`, "\x1b")
	for _, line := range lines(t, "refused.txt") {
		why, text, _ := strings.Cut(line, " ")
		out = append(out, [2]string{why, escapes.Replace(text)})
	}
	require.Greater(t, len(out), 300)
	return out
}

func TestRefused(t *testing.T) {
	for _, c := range refused(t) {
		want, text := c[0], c[1]
		r := Command(text)
		if !assert.NotNil(t, r.Refused, "admitted: %q", text) {
			continue
		}
		assert.Equal(t, Why(want), r.Refused.Why, "%q: %s", text, r.Refused.Text)
		v := r.Verdict()
		assert.Equal(t, policy.GrantFull, v.Shell(), text)
		assert.NotEmpty(t, v.Text, text)
		assert.Regexp(t, `^[a-z]+(:[a-z0-9\[:]+)?$`, v.Why, text)
		assert.NotContains(t, v.Text, "\n", text)
	}
}
