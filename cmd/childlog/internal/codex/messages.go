package codex

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// message maps an event: of those that the harness keeps beside the
// conversation only turns and usage have a counterpart.
func (m *mapper) message(out *mapped, line importer.Line) (typ string, f eventlog.Facts, ok bool) {
	switch out.rec.sub {
	case "task_started", "turn_started":
		return eventlog.TypeTurnStart, m.begin(out, line), true
	case "task_complete", "turn_complete":
		return m.end(out, "completed")
	case "turn_aborted":
		reason, _ := importer.Text(out.rec.p.reason)
		return m.end(out, reason)
	case "token_count":
		f, ok := m.tokens(out)
		if ok {
			return eventlog.TypeUsageRecorded, f, true
		}
	}
	return "", nil, true
}

// begin counts a turn.
func (m *mapper) begin(out *mapped, line importer.Line) eventlog.Facts {
	m.turn++
	if m.open.n > 0 {
		m.unterminated++
	}
	m.open = turnMark{}
	if !out.inherited {
		m.open = turnMark{m.turn, line.Number}
	}
	id := out.rec.turnID()
	if id == "" {
		return importer.Facts("turn", m.turn)
	}
	if len(m.turns) >= maxTurns {
		clear(m.turns)
	}
	m.turns[id] = m.turn
	return importer.Facts("turn", m.turn, "id", importer.Code(id))
}

// end names the turn that ends: the one of that id, else the open one. An end
// of no turn is kept as it is.
func (m *mapper) end(out *mapped, reason string) (string, eventlog.Facts, bool) {
	n, known := m.turns[out.rec.turnID()]
	if !known {
		n = m.open.n
	}
	if n == 0 {
		return "", nil, true
	}
	if n == m.open.n {
		m.open = turnMark{}
	}
	if !eventlog.IsCode(reason) {
		return eventlog.TypeTurnEnd, importer.Facts("turn", n), true
	}
	return eventlog.TypeTurnEnd, importer.Facts("turn", n, "reason", reason), true
}

// usage is a total that the harness keeps, in tokens. input holds cached.
type usage struct{ input, cached, written, output, total uint64 }

// tokens maps a token_count. The harness repeats it, so only a total that is
// not the last one counts, and of it what was added since. A total that fell
// was counted anew; then the last call's own numbers are what was added.
func (m *mapper) tokens(out *mapped) (eventlog.Facts, bool) {
	total, ok := readUsage(importer.At(out.rec.p.info, "total_token_usage"))
	if !ok || m.used > 0 && total == m.total {
		return nil, false
	}
	added, fell := total.since(m.total)
	if fell {
		if added, ok = readUsage(importer.At(out.rec.p.info, "last_token_usage")); !ok {
			added = total
		}
	}
	m.total = total
	m.used++
	pairs := []any{"usage", "total-" + strconv.FormatUint(m.used, 10), "input", added.input - min(added.cached, added.input), "output", added.output,
		"cache_read", added.cached, "cache_write", added.written}
	if m.model != "" {
		pairs = append(pairs, "model", m.model)
	}
	return importer.Facts(pairs...), true
}

func readUsage(v jsontext.Value) (u usage, ok bool) {
	if v.Kind() != '{' {
		return u, false
	}
	importer.Members(v, func(key, n jsontext.Value) bool {
		number, ok := importer.Integer(n)
		if !ok {
			return true
		}
		switch string(key) {
		case `"input_tokens"`:
			u.input = number
		case `"cached_input_tokens"`:
			u.cached = number
		case `"cache_write_input_tokens"`:
			u.written = number
		case `"output_tokens"`:
			u.output = number
		case `"total_tokens"`:
			u.total = number
		}
		return true
	})
	return u, u != usage{}
}

// since is what was added to an earlier total; fell: it is no later one.
func (u usage) since(before usage) (added usage, fell bool) {
	if u.input < before.input || u.cached < before.cached || u.written < before.written || u.output < before.output {
		return usage{}, true
	}
	return usage{u.input - before.input, u.cached - before.cached, u.written - before.written, u.output - before.output, u.total}, false
}
