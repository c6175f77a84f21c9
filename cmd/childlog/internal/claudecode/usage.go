package claudecode

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// counts is the usage of one response, as far as it was recorded.
type counts struct {
	input, output, cacheRead, cacheWrite uint64
	records                              uint32
}

func readCounts(usage jsontext.Value) (c counts) {
	importer.Members(usage, func(key, value jsontext.Value) bool {
		n, ok := importer.Integer(value)
		if !ok {
			return true
		}
		switch string(unescaped(key)) {
		case "input_tokens":
			c.input = n
		case "output_tokens":
			c.output = n
		case "cache_read_input_tokens":
			c.cacheRead = n
		case "cache_creation_input_tokens":
			c.cacheWrite = n
		}
		return true
	})
	return c
}

// usage records what a response used, once. A response is split over lines
// that share its message.id and repeat its usage, which may grow on the way
// (output tokens of a response that streams): the first line records what it
// says, a later one only what it says beyond, under an id of its own.
func (m *mapper) usage(out *mapped) {
	now := readCounts(out.m.usage)
	id := out.m.id
	if id == "" {
		if id = str(out.e.uuid); id == "" {
			id = fmt.Sprintf("line-%d", m.line)
		}
	}
	k := keyOf(id)
	had, known := m.used[k]
	if !known && len(m.used) >= maxUsed {
		m.once(codeTooManyLines, fmt.Sprintf("more than %d responses: of those from here on only the first line's usage counts", maxUsed))
		had = counts{}
	}
	beyond := func(now, had uint64) uint64 { return max(now, had) - had }
	add := counts{input: beyond(now.input, had.input), output: beyond(now.output, had.output),
		cacheRead: beyond(now.cacheRead, had.cacheRead), cacheWrite: beyond(now.cacheWrite, had.cacheWrite)}
	if add == (counts{}) {
		return
	}
	sum := counts{input: max(now.input, had.input), output: max(now.output, had.output), cacheRead: max(now.cacheRead, had.cacheRead),
		cacheWrite: max(now.cacheWrite, had.cacheWrite), records: had.records + 1}
	if known || len(m.used) < maxUsed {
		m.used[k] = sum
	}
	name := importer.Code(id)
	if sum.records > 1 {
		name = importer.Code(fmt.Sprintf("%s#%d", name, sum.records))
	}
	pairs := []any{"usage", name, "input", add.input, "output", add.output, "cache_read", add.cacheRead, "cache_write", add.cacheWrite}
	if out.m.model != "" {
		pairs = append(pairs, "model", importer.Code(out.m.model))
	}
	m.add(eventlog.TypeUsageRecorded, importer.Facts(pairs...))
}
