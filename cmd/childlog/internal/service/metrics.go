package service

import (
	"bytes"
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The metrics are written in Prometheus' text format (version 0.0.4) by these
// few lines. The client library does more and costs every other command 5.5 ms
// of its start, because its package variables are made whether it is used or
// not: a hook, which has 30 ms, is the same program. The tests read the answer
// with Prometheus' own parser and linter.

// metricsType is the media type of the format.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// bounds are the upper ends of the buckets of durations, in seconds.
var bounds = [...]float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}

// metrics counts what happens since the service began.
type metrics struct {
	begun time.Time

	mu       sync.Mutex
	requests map[routeStatus]uint64
	seconds  map[string]*histogram // by route
	denials  map[string]uint64     // by code
	refused  map[string]uint64     // by reason
	panics   uint64

	connections, streams gauge
}

type routeStatus struct {
	route  string
	status int
}

type histogram struct {
	buckets [len(bounds) + 1]uint64 // the last one is beyond all bounds
	sum     float64
	count   uint64
}

func newMetrics(now time.Time) *metrics {
	return &metrics{begun: now, requests: map[routeStatus]uint64{}, seconds: map[string]*histogram{}, denials: map[string]uint64{}, refused: map[string]uint64{}}
}

// request counts one answer. Routes are of the table and statuses of ours, so
// the number of series is bounded whatever clients send.
func (m *metrics) request(route string, status int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[routeStatus{route, status}]++
	h := m.seconds[route]
	if h == nil {
		h = &histogram{}
		m.seconds[route] = h
	}
	s := took.Seconds()
	i, _ := slices.BinarySearch(bounds[:], s) // a bound belongs to its bucket
	h.buckets[i]++
	h.sum += s
	h.count++
}

func (m *metrics) denied(code string)   { m.count(m.denials, code) }
func (m *metrics) refuse(reason string) { m.count(m.refused, reason) }

func (m *metrics) count(of map[string]uint64, key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of[key]++
}

func (m *metrics) panicked() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.panics++
}

// gauge is a number of things that are there now, with a limit.
type gauge struct {
	mu sync.Mutex
	n  int
}

// take adds one unless that would be more than most.
func (g *gauge) take(most int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n >= most {
		return false
	}
	g.n++
	return true
}

func (g *gauge) give() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
}

func (g *gauge) value() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}

// storeFigures are what the metrics tell of the store.
type storeFigures struct {
	sessions, events, frames, indexLag, signedLag uint64
	journalBytes, freeBytes, indexBytes           int64
	writable                                      bool
}

// write renders all of it, in a fixed order.
func (m *metrics) write(w *bytes.Buffer, f *storeFigures) {
	e := exposition{w}
	m.mu.Lock()
	e.family("childlog_requests_total", "counter", "Requests by route and status.")
	byRoute := func(a, b routeStatus) int {
		return cmp.Or(strings.Compare(a.route, b.route), cmp.Compare(a.status, b.status))
	}
	for _, k := range sortedKeys(m.requests, byRoute) {
		e.sample("childlog_requests_total", float64(m.requests[k]), "route", k.route, "status", strconv.Itoa(k.status))
	}
	e.family("childlog_request_duration_seconds", "histogram", "How long requests took, streams until they ended.")
	for _, route := range sortedKeys(m.seconds, strings.Compare) {
		e.histogram("childlog_request_duration_seconds", m.seconds[route], "route", route)
	}
	e.family("childlog_denials_total", "counter", "Checked calls that were not allowed, by code.")
	for _, code := range sortedKeys(m.denials, strings.Compare) {
		e.sample("childlog_denials_total", float64(m.denials[code]), "code", code)
	}
	e.family("childlog_refused_total", "counter", "Connections and requests that were refused before they reached an operation, by reason.")
	for _, reason := range sortedKeys(m.refused, strings.Compare) {
		e.sample("childlog_refused_total", float64(m.refused[reason]), "reason", reason)
	}
	e.single("childlog_panics_total", "counter", "Panics that were caught.", float64(m.panics))
	m.mu.Unlock()
	e.single("childlog_connections", "gauge", "Open connections over TCP.", float64(m.connections.value()))
	e.single("childlog_streams", "gauge", "Streams of events that are followed.", float64(m.streams.value()))
	e.single("childlog_sessions", "gauge", "Sessions in the store.", float64(f.sessions))
	e.single("childlog_appended_events_total", "counter", "Events that were ever appended to the store, by whomever.", float64(f.events))
	e.single("childlog_frames_total", "counter", "Frames that were ever committed to the store.", float64(f.frames))
	e.single("childlog_index_lag_frames", "gauge", "Frames that the index does not cover yet.", float64(f.indexLag))
	e.single("childlog_signed_lag_frames", "gauge", "Frames that no checkpoint covers yet.", float64(f.signedLag))
	e.family("childlog_store_bytes", "gauge", "Bytes of the store's files.")
	e.sample("childlog_store_bytes", float64(f.journalBytes), "file", "store.db")
	e.sample("childlog_store_bytes", float64(f.indexBytes), "file", "index.db")
	e.single("childlog_store_free_bytes", "gauge", "Bytes of free pages in store.db.", float64(f.freeBytes))
	e.single("childlog_store_writable", "gauge", "1 while the store takes appends.", oneIf(f.writable))
	e.single("childlog_start_time_seconds", "gauge", "When the service began, in seconds since 1970.", float64(m.begun.UnixMilli())/1000)
	e.single("childlog_goroutines", "gauge", "Goroutines of the process.", float64(runtime.NumGoroutine()))
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func sortedKeys[K comparable, V any](m map[K]V, order func(a, b K) int) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, order)
	return keys
}

// exposition is text in the format.
type exposition struct{ *bytes.Buffer }

func (e exposition) family(name, kind, help string) {
	fmt.Fprintf(e, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// sample writes one line; labels are pairs of names and values.
func (e exposition) sample(name string, value float64, labels ...string) {
	e.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		e.WriteByte("{,"[min(i, 1)])
		fmt.Fprintf(e, `%s="%s"`, labels[i], labelEscapes.Replace(labels[i+1]))
	}
	if len(labels) > 0 {
		e.WriteByte('}')
	}
	e.WriteByte(' ')
	e.WriteString(strconv.FormatFloat(value, 'g', -1, 64))
	e.WriteByte('\n')
}

// labelEscapes are those of the format; %q has others.
var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func (e exposition) single(name, kind, help string, value float64) {
	e.family(name, kind, help)
	e.sample(name, value)
}

// histogram writes the buckets, each with those below it.
func (e exposition) histogram(name string, h *histogram, labels ...string) {
	total := uint64(0)
	for i, n := range h.buckets {
		total += n
		le := "+Inf"
		if i < len(bounds) {
			le = strconv.FormatFloat(bounds[i], 'g', -1, 64)
		}
		e.sample(name+"_bucket", float64(total), append(slices.Clip(labels), "le", le)...)
	}
	e.sample(name+"_sum", h.sum, labels...)
	e.sample(name+"_count", float64(h.count), labels...)
}
