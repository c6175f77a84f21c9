package eventlog

import (
	"strings"
	"sync"
)

// knownNames are the names of this version's facts, so that decoding a map
// allocates none of them: a receipt has about two hundred.
var knownNames = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for _, spec := range coreTypes() {
		for name := range spec.fields {
			m[name] = name
		}
	}
	for _, name := range strings.Fields(`after amendments authority before capabilities carried_on checked commitment count deadline degraded denied
		entries expires field files grant id in_process keys length manifest max_children max_steps name path pattern permissions prompt
		providers ref request rules seq shell source spawn surface system tools uses why write write_scope`) { // inside maps
		m[name] = name
	}
	return m
})

func factName(raw []byte) string {
	if name, ok := knownNames()[string(raw)]; ok {
		return name
	}
	return string(raw)
}

// admits reports whether facts are canonical and all that the type asks for,
// without decoding them into a map: an append of the usual kind, flat and
// right, is checked in a tenth of the time. Where it says no, or finds a list
// or a map, checkFacts decodes them, decides, and finds the words.
func (spec *typeSpec) admits(facts Facts) bool {
	if len(facts) == 0 {
		return spec.required() == 0
	}
	r := factReader{b: facts}
	top, err := r.next()
	if err != nil || top.kind != kindMap {
		return false
	}
	required := spec.required()
	var prev []byte
	for i := range top.n {
		key, err := r.next()
		if err != nil || key.kind != kindString || i > 0 && string(key.raw) <= string(prev) {
			return false
		}
		prev = key.raw
		value, err := r.next()
		if err != nil {
			return false
		}
		field, known := spec.fields[string(key.raw)]
		switch {
		case known && field.kind.admits(value):
			if !field.optional {
				required--
			}
		case known || spec.strict || !spec.plain(key, value):
			return false
		}
	}
	return required == 0 && r.off == len(facts)
}

func (spec *typeSpec) required() (n int) {
	for _, f := range spec.fields {
		if !f.optional {
			n++
		}
	}
	return n
}

// admits is check for what is no list and no map.
func (k fieldKind) admits(it item) bool {
	switch k {
	case anInt:
		return it.kind == kindInt && !it.neg
	case aBool:
		return it.kind == kindBool
	case aCode:
		return it.kind == kindString && isCode(it.raw)
	case anID:
		return it.kind == kindBytes && it.n == 16
	case aHash:
		return it.kind == kindBytes && it.n == uint64(len(Hash{}))
	case aPath:
		return it.kind == kindString
	}
	return false
}

// plain is checkPlain for a harness's own flat fact, its name included.
func (spec *typeSpec) plain(key, value item) bool {
	if !isCode(key.raw) {
		return false
	}
	for field := range spec.fields {
		if len(field) == len(key.raw) && strings.EqualFold(field, string(key.raw)) {
			return false
		}
	}
	switch value.kind {
	case kindNil, kindBool, kindInt:
		return true
	case kindString:
		return value.n == 0 || isCode(value.raw)
	case kindBytes:
		return value.n == 16 || value.n == uint64(len(Hash{}))
	}
	return false
}
