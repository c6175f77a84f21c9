package objection

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"unicode/utf8"
)

// The bounds of the arguments of one call.
const (
	MaxDepth  = 64       // levels of maps and lists; the arguments themselves are the first
	MaxValues = 1 << 18  // values of all kinds, lists and maps among them
	MaxBytes  = 16 << 20 // of text, keys included
)

// cloner makes one copy. It counts what it copies and not what there is to
// copy: a map that is its own grandchild, or one value reached in a thousand
// ways, is small in memory and endless as a tree.
type cloner struct {
	values, bytes int
	why           Why
}

// clone returns a deep copy of arguments, or why there is none. The copy is a
// tree that shares nothing with args but text, and has []any for all lists; no
// arguments at all are empty ones.
func clone(args map[string]any) (map[string]any, Why) {
	var c cloner
	m := c.object(args, 1)
	if c.why != "" {
		return nil, c.why
	}
	return m, ""
}

// fail keeps the first failure. Everything checks for it before it goes on, so
// that no more work is done for arguments that are refused.
func (c *cloner) fail(why Why) {
	if c.why == "" {
		c.why = why
	}
}

// count takes n more values into the bounds.
func (c *cloner) count(n int) bool {
	if n > MaxValues-c.values {
		c.fail(WhyTooLarge)
		return false
	}
	c.values += n
	return c.why == ""
}

func (c *cloner) text(s string) string {
	switch {
	case len(s) > MaxBytes-c.bytes:
		c.fail(WhyTooLarge)
		return ""
	case !utf8.ValidString(s):
		c.fail(WhyNotJSON)
		return ""
	}
	c.bytes += len(s)
	return s
}

// enter reports whether a map or list with n values may be copied at a depth.
func (c *cloner) enter(n, depth int) bool {
	if depth > MaxDepth {
		c.fail(WhyTooDeep)
		return false
	}
	return c.count(n)
}

func (c *cloner) object(m map[string]any, depth int) map[string]any {
	if !c.enter(len(m), depth) {
		return nil
	}
	o := make(map[string]any, len(m))
	// In order: which of two failures is met first must not be left to chance.
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if o[c.text(key)] = c.value(m[key], depth); c.why != "" {
			return nil
		}
	}
	return o
}

func list[T any](c *cloner, items []T, depth int) []any {
	if !c.enter(len(items), depth) {
		return nil
	}
	l := make([]any, len(items))
	for i, v := range items {
		if l[i] = c.value(v, depth); c.why != "" {
			return nil
		}
	}
	return l
}

// value copies one value inside a map or list of the given depth.
func (c *cloner) value(v any, depth int) any {
	switch v := v.(type) {
	case nil, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return v
	case string:
		return c.text(v)
	case float32:
		c.finite(float64(v))
		return v
	case float64:
		c.finite(v)
		return v
	case json.Number:
		if s := c.text(string(v)); !isNumber(s) {
			c.fail(WhyNotJSON)
		}
		return v
	case map[string]any:
		if v != nil {
			return c.object(v, depth+1)
		}
	case []any:
		if v != nil {
			return list(c, v, depth+1)
		}
	case []string:
		if v != nil {
			return list(c, v, depth+1)
		}
	case []map[string]any:
		if v != nil {
			return list(c, v, depth+1)
		}
	}
	c.fail(WhyNotJSON) // another type, or nil of this one
	return nil
}

// isNumber reports whether s is a number of JSON. The type of json.Number holds
// any text, "true" and "1 " among it, and an encoder writes it as it is.
func isNumber(s string) bool {
	digit := func(b byte) bool { return '0' <= b && b <= '9' }
	return s != "" && (s[0] == '-' || digit(s[0])) && digit(s[len(s)-1]) && json.Valid([]byte(s))
}

func (c *cloner) finite(f float64) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		c.fail(WhyNotJSON)
	}
}

// equal compares two values that clone has made: trees of few types, so that ==
// is safe for what is neither a map nor a list.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, x := range a {
			if y, ok := b[key]; !ok || !equal(x, y) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i, x := range a {
			if !equal(x, b[i]) {
				return false
			}
		}
		return true
	case float64:
		b, ok := b.(float64)
		return ok && math.Float64bits(a) == math.Float64bits(b)
	case float32:
		b, ok := b.(float32)
		return ok && math.Float32bits(a) == math.Float32bits(b)
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}
