package eventlog

import (
	"fmt"
	"math"

	"github.com/google/uuid"

	"childlog/policy"
)

// factsMap reads typed fields of a decoded map; the first failure sticks and
// names the event and the field.
type factsMap struct {
	m    map[string]any
	ev   *Event
	path string
	err  error
}

func readFacts(ev *Event) (*factsMap, error) {
	facts, err := upcast(ev.Type, ev.Version, ev.Facts)
	if err != nil {
		return nil, &CorruptError{Session: ev.Session, Seq: ev.Seq, Type: ev.Type, Reason: err.Error()}
	}
	m, err := facts.Map()
	if err != nil {
		return nil, &CorruptError{Session: ev.Session, Seq: ev.Seq, Type: ev.Type, Reason: err.Error()}
	}
	return &factsMap{m: m, ev: ev}, nil
}

func (r *factsMap) fail(field, reason string) {
	if r.err == nil {
		r.err = &CorruptError{Session: r.ev.Session, Seq: r.ev.Seq, Type: r.ev.Type, Field: r.path + field, Reason: reason}
	}
}

func (r *factsMap) adopt(sub *factsMap) {
	if r.err == nil {
		r.err = sub.err
	}
}

// get returns a field of the wanted kind; required ones must be there.
func get[T any](r *factsMap, field string, required bool) (v T, ok bool) {
	raw, present := r.m[field]
	if !present {
		if required {
			r.fail(field, "missing")
		}
		return v, false
	}
	v, ok = raw.(T)
	if !ok {
		r.fail(field, fmt.Sprintf("want %T, got %T", v, raw))
	}
	return v, ok
}

func (r *factsMap) str(field string) string  { v, _ := get[string](r, field, false); return v }
func (r *factsMap) code(field string) string { v, _ := get[string](r, field, true); return v }

func (r *factsMap) uint(field string) uint64 {
	v, ok := get[int64](r, field, false)
	if ok && v < 0 {
		r.fail(field, fmt.Sprintf("want 0 or more, got %d", v))
		return 0
	}
	return uint64(v)
}

// int reads a count. One beyond what int holds, which 32 bits may make of a log
// from elsewhere, is never taken for another.
func (r *factsMap) int(field string) int {
	n := r.uint(field)
	if n > math.MaxInt {
		r.fail(field, fmt.Sprintf("got %d, more than this machine counts", n))
		return 0
	}
	return int(n)
}

func (r *factsMap) bool(field string, missing bool) bool {
	v, ok := get[bool](r, field, false)
	if !ok {
		return missing
	}
	return v
}

func (r *factsMap) id(field string, required bool) (id uuid.UUID) {
	if b, ok := get[[]byte](r, field, required); ok {
		if len(b) != len(id) {
			r.fail(field, fmt.Sprintf("want 16 bytes, got %d", len(b)))
			return id
		}
		copy(id[:], b)
	}
	return id
}

func (r *factsMap) hash(field string) (h Hash) {
	if b, ok := get[[]byte](r, field, false); ok {
		if len(b) != len(h) {
			r.fail(field, fmt.Sprintf("want 32 bytes, got %d", len(b)))
			return h
		}
		copy(h[:], b)
	}
	return h
}

func (r *factsMap) sub(field string, required bool) *factsMap {
	m, ok := get[map[string]any](r, field, required)
	if !ok {
		return nil
	}
	return &factsMap{m: m, ev: r.ev, path: r.path + field + "/"}
}

// sandbox reads a sandbox tuple. Missing: mode is damage, network false, temp
// directories excluded, roots not recorded.
func (r *factsMap) sandbox() policy.Sandbox {
	s := policy.Sandbox{Mode: policy.Mode(r.code("mode")), Network: r.bool("network", false),
		ExcludeTmpdirEnvVar: r.bool("exclude_tmpdir_env_var", true), ExcludeSlashTmp: r.bool("exclude_slash_tmp", true)}
	if list, ok := get[[]any](r, "writable_roots", false); ok {
		paths := make([]string, len(list))
		for i, e := range list {
			if paths[i], ok = e.(string); !ok {
				r.fail("writable_roots", fmt.Sprintf("entry %d: want a string, got %T", i, e))
				return s
			}
		}
		roots, err := policy.RootsOf(paths...)
		if err != nil {
			r.fail("writable_roots", err.Error())
		}
		s.Roots = roots
	}
	return s
}

// defaults reads the recorded deployment default; missing: read-only, never.
func (r *factsMap) defaults() policy.Defaults {
	d := policy.Defaults{Sandbox: policy.Sandbox{Mode: policy.ReadOnly}.Canonical(), Approvals: policy.Never}
	if m := r.sub("defaults", false); m != nil {
		if s := m.sub("sandbox", false); s != nil {
			d.Sandbox = s.sandbox()
			m.adopt(s)
		}
		if a := m.str("approvals"); a != "" {
			d.Approvals = policy.Approval(a)
		}
		r.adopt(m)
	}
	return d
}

// list reads a list; missing is nil, which an empty list is not.
func (r *factsMap) list(field string) []any {
	v, _ := get[[]any](r, field, false)
	return v
}

// strs reads a list of strings; missing is nil.
func (r *factsMap) strs(field string) []string {
	list, ok := get[[]any](r, field, false)
	if !ok {
		return nil
	}
	out := make([]string, len(list))
	for i, e := range list {
		if out[i], ok = e.(string); !ok {
			r.fail(field, fmt.Sprintf("entry %d: want a string, got %T", i, e))
			return nil
		}
	}
	return out
}

// maps calls fn with each entry of a list of maps.
func (r *factsMap) maps(field string, fn func(m *factsMap)) {
	for i, e := range r.list(field) {
		m, ok := e.(map[string]any)
		if !ok {
			r.fail(field, fmt.Sprintf("entry %d: want a map, got %T", i, e))
			return
		}
		sub := &factsMap{m: m, ev: r.ev, path: fmt.Sprintf("%s%s/%d/", r.path, field, i)}
		fn(sub)
		r.adopt(sub)
	}
}

// origin reads the place of an event.
func (r *factsMap) origin() policy.Origin {
	return policy.Origin{Session: r.id("session", true), Seq: r.uint("seq")}
}

// check notes an error of package policy at a field.
func (r *factsMap) check(field string, err error) {
	if err != nil {
		r.fail(field, err.Error())
	}
}
