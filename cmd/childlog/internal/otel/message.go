package otel

import (
	"strconv"
	"time"
)

// The messages of opentelemetry.proto.trace.v1 and common.v1, as far as they
// are written. A field that is not set is left out.

type tracesData struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource   resource     `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
}

type resource struct {
	Attributes []keyValue `json:"attributes"`
}

type scopeSpans struct {
	Scope scope  `json:"scope"`
	Spans []span `json:"spans"`
}

type scope struct {
	Name string `json:"name"`
}

type span struct {
	TraceID       string      `json:"traceId"`
	SpanID        string      `json:"spanId"`
	ParentSpanID  string      `json:"parentSpanId,omitzero"`
	Name          string      `json:"name"`
	Kind          int         `json:"kind"`
	Start         string      `json:"startTimeUnixNano"`
	End           string      `json:"endTimeUnixNano"`
	Attributes    []keyValue  `json:"attributes"`
	Events        []spanEvent `json:"events,omitempty"`
	DroppedEvents uint32      `json:"droppedEventsCount,omitzero"`
	Status        *status     `json:"status,omitzero"`
}

// Kinds of span.
const (
	kindInternal = 1
	kindClient   = 3
)

type spanEvent struct {
	Time       string     `json:"timeUnixNano"`
	Name       string     `json:"name"`
	Attributes []keyValue `json:"attributes"`
}

type status struct {
	Message string `json:"message,omitzero"`
	Code    int    `json:"code"`
}

const statusError = 2

type keyValue struct {
	Key   string   `json:"key"`
	Value anyValue `json:"value"`
}

// anyValue has exactly one field set.
type anyValue struct {
	String *string     `json:"stringValue,omitzero"`
	Bool   *bool       `json:"boolValue,omitzero"`
	Int    *string     `json:"intValue,omitzero"`
	Array  *arrayValue `json:"arrayValue,omitzero"`
}

type arrayValue struct {
	Values []anyValue `json:"values"`
}

// attributes collects attributes in the order in which they are set. A key is
// set at most once.
type attributes struct {
	list  []keyValue
	clean func(string) string
}

// text sets a string; an empty one is left out.
func (a *attributes) text(key, v string) {
	if v != "" {
		v = a.clean(v)
		a.list = append(a.list, keyValue{key, anyValue{String: &v}})
	}
}

func (a *attributes) flag(key string, v bool) {
	a.list = append(a.list, keyValue{key, anyValue{Bool: &v}})
}

// number sets an integer; the log's numbers stay below 2^53.
func (a *attributes) number(key string, v uint64) {
	s := strconv.FormatUint(v, 10)
	a.list = append(a.list, keyValue{key, anyValue{Int: &s}})
}

// texts sets a list of strings, which may be empty.
func (a *attributes) texts(key string, list []string) {
	out := arrayValue{Values: make([]anyValue, len(list))}
	for i, v := range list {
		v = a.clean(v)
		out.Values[i].String = &v
	}
	a.list = append(a.list, keyValue{key, anyValue{Array: &out}})
}

// nanos writes a time as OTLP does: unsigned, from 1970.
func nanos(t time.Time) string {
	if n := t.UnixNano(); n > 0 && t.Year() < 2262 {
		return strconv.FormatInt(n, 10)
	}
	return "0"
}

// period sets the times of a span, which must not end before it begins.
func (s *span) period(start, end time.Time) (adjusted bool) {
	if end.Before(start) {
		end, adjusted = start, true
	}
	s.Start, s.End = nanos(start), nanos(end)
	return adjusted
}
