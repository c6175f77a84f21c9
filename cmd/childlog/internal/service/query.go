package service

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"childlog/eventlog"
)

// checkQuery refuses a parameter that a path does not take: what is asked for and
// not understood is not passed over. Most paths take none, since an operation's
// request is its body.
func checkQuery(r *http.Request, takes []string) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fmt.Errorf("%w: the query can't be read", eventlog.ErrInvalid)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if slices.Contains(takes, key) {
			continue
		}
		want := "none"
		if len(takes) > 0 {
			want = strings.Join(takes, ", ")
		}
		return fmt.Errorf("%w: query parameter %.60q: unknown; want %s", eventlog.ErrInvalid, key, want)
	}
	return nil
}

// followKeys are the parameters of a follow.
var followKeys = []string{"session", "after", "types", "no_content", "holes"}

// followQuery reads the query strictly, as a body is read. The names of its
// parameters were looked at (checkQuery).
func followQuery(r *http.Request) (followRequest, error) {
	var q followRequest
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return q, fmt.Errorf("%w: the query can't be read", eventlog.ErrInvalid)
	}
	for key, list := range values {
		if len(list) > 1 && key != "types" {
			return q, fmt.Errorf("%w: query parameter %q: it comes twice", eventlog.ErrInvalid, key)
		}
	}
	q.Session, q.After, q.Types = values.Get("session"), values.Get("after"), values["types"]
	for key, field := range map[string]*bool{"no_content": &q.NoContent, "holes": &q.holes} {
		switch v := values.Get(key); {
		case v == "true":
			*field = true
		case v != "false" && values.Has(key):
			return q, fmt.Errorf("%w: query parameter %q: want true or false, got %.40q", eventlog.ErrInvalid, key, v)
		}
	}
	if last := r.Header.Values("Last-Event-ID"); len(last) > 1 {
		return q, fmt.Errorf("%w: more than one Last-Event-ID", eventlog.ErrInvalid)
	} else if len(last) == 1 && last[0] != "" {
		q.After = last[0]
	}
	return q, nil
}
