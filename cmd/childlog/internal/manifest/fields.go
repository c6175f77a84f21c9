package manifest

import (
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"childlog/cmd/childlog/internal/strict"
	"childlog/eventlog"
	"childlog/policy"
)

// MaxDocument and MaxCall bound a document and a call, in bytes. The arguments
// of a call may hold a whole file.
const (
	MaxDocument = 1 << 20
	MaxCall     = eventlog.MaxContent
)

// maxList and maxExplicit bound lists of names and of explicit grants, as
// package policy does.
const (
	maxList     = 1024
	maxExplicit = 64
)

// timePattern leaves one spelling for each millisecond but for trailing zeros.
var timePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$`) })

// isChoice is what package policy accepts as a model or an effort.
func isChoice(s string) bool {
	return len(s) >= 1 && len(s) <= 128 && !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' })
}

// Read reads a whole document of at most limit bytes; a longer one is refused
// with an [*eventlog.TooLargeError] whose size is what was read of it.
func Read(in io.Reader, limit int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(in, int64(limit)+1))
	if err == nil && len(b) > limit {
		err = &eventlog.TooLargeError{What: "json in bytes", Limit: uint64(limit), Size: uint64(len(b))}
	}
	return b, err
}

// field reads a key into dst.
func field[T any](key string, dst *T, read func(strict.Value) (T, error)) strict.Field {
	return strict.Field{Key: key, Read: func(v strict.Value) (err error) {
		*dst, err = read(v)
		return err
	}}
}

// optional reads a key into a pointer, which stays nil if the key is missing.
func optional[T any](key string, dst **T, read func(strict.Value) (T, error)) strict.Field {
	return strict.Field{Key: key, Read: func(v strict.Value) error {
		got, err := read(v)
		*dst = &got
		return err
	}}
}

func text(v strict.Value) (string, error) { return v.Text() }
func flag(v strict.Value) (bool, error)   { return v.Bool() }

// integer reads an integer of any width.
func integer[N int | int64 | uint64](low, high int64) func(strict.Value) (N, error) {
	return func(v strict.Value) (N, error) {
		n, err := v.Int(low, high)
		if err == nil && int64(N(n)) != n { // an int of 32 bits
			err = v.Bad("got %d, more than this machine counts", n)
		}
		return N(n), err
	}
}

// word reads one of a few words.
func word[W ~string](words ...W) func(strict.Value) (W, error) {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return func(v strict.Value) (W, error) {
		s, err := v.OneOf(all...)
		return W(s), err
	}
}

// matching reads a text of a form, which is described for people.
func matching(form func(string) bool, want string) func(strict.Value) (string, error) {
	return func(v strict.Value) (string, error) {
		s, err := v.Text()
		if err == nil && !form(s) {
			err = v.Bad("want %s, got %.60q", want, s)
		}
		return s, err
	}
}

var (
	code   = matching(eventlog.IsCode, "a code of 1 to 256 letters, digits or _.:/@+#=-")
	choice = matching(isChoice, "1 to 128 printable ASCII characters without spaces")
)

// checked reads a text and refuses what check refuses.
func checked(check func(string) error) func(strict.Value) (string, error) {
	return func(v strict.Value) (string, error) {
		s, err := v.Text()
		if err == nil {
			err = v.Wrong(check(s))
		}
		return s, err
	}
}

var name = checked(policy.CheckToolName)

// listOf reads an array; the list is never nil.
func listOf[T any](read func(strict.Value) (T, error)) func(strict.Value) ([]T, error) {
	return listUpTo(maxList, read)
}

func listUpTo[T any](most int, read func(strict.Value) (T, error)) func(strict.Value) ([]T, error) {
	return func(v strict.Value) ([]T, error) {
		list := []T{}
		err := v.List(most, func(v strict.Value) error {
			item, err := read(v)
			list = append(list, item)
			return err
		})
		return list, err
	}
}

// millis reads a time, in ms since 1970.
func millis(v strict.Value) (int64, error) {
	s, err := v.Text()
	if err != nil {
		return 0, err
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || !timePattern().MatchString(s) || t.UnixMilli() < 1 {
		return 0, v.Bad("want a time after 1970 in UTC, such as 2026-03-01T12:00:00Z, with at most three digits of fraction, got %.60q", s)
	}
	return t.UnixMilli(), nil
}

// missing refuses an object without a key that it must have.
func missing(v strict.Value, key string, have bool) error {
	if have {
		return nil
	}
	return v.Bad("missing: %s", key)
}
