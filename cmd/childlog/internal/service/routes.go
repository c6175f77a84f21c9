package service

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"childlog/cmd/childlog/harness"
)

// route is a path of the service. No path has a parameter: a request's path is
// one of these, byte for byte, or it is none.
type route struct {
	path   string
	method string
	public bool     // needs no token
	query  []string // the parameters that it takes
	limit  int64
	time   time.Duration // for an operation that takes longer than others; 0: Limits.WorkTime
	about  about
	serve  func(s *Service, w *record, r *http.Request, c caller) error

	// run does what an operation is asked for by the JSON of a request, and
	// returns the JSON of the answer. The context bounds its time. nil: the route is
	// no operation's.
	run func(s *Service, ctx context.Context, c caller, body []byte) ([]byte, error)
}

// about is what the document tells of an operation.
type about struct {
	name, short     string
	do              any // the method of harness.Harness
	request, answer reflect.Type
}

// Path describes one path of the service.
type Path struct {
	Path, Method string
	Public       bool  // needs no token
	Limit        int64 // bytes of a request; 0: it has no body

	Name, Short     string // of an operation of package harness; "" for the others
	Do              any    // its method
	Request, Answer reflect.Type
}

// Paths lists everything that is answered, in the order of the table.
func Paths() []Path {
	var list []Path
	for _, t := range table(Limits{}.withDefaults()) {
		list = append(list, Path{t.path, t.method, t.public, t.limit, t.about.name, t.about.short, t.about.do, t.about.request, t.about.answer})
	}
	return list
}

// allows reports whether the method is the route's. HEAD is a GET whose body is
// dropped, except for a stream, which has no end.
func (t *route) allows(method string) bool {
	return method == t.method || method == http.MethodHead && t.method == http.MethodGet && t.path != harness.FollowPath
}

// table lists everything that is answered. What a path needs beyond
// a token is decided by the request's level (operation) or where it is served.
func table(l Limits) []route {
	large := int64(harness.MaxRequest) // a batch, a document with a content in it
	small := l.BodyBytes
	return []route{
		operation(harness.OpRoot, small),
		operation(harness.OpDelegate, large),
		operation(harness.OpAppend, large),
		operation(harness.OpSwitch, small),
		operation(harness.OpNarrow, small),
		operation(harness.OpSend, large),
		operation(harness.OpInterrupt, small),
		operation(harness.OpInbox, small),
		operation(harness.OpClaim, small),
		operation(harness.OpActivate, small),
		operation(harness.OpEnd, small),
		operation(harness.OpSettle, small),
		operation(harness.OpClose, small),
		operation(harness.OpNotices, small),
		operation(harness.OpConsume, small),

		operation(harness.OpPolicy, small),
		operation(harness.OpResume, small),
		operation(harness.OpCheck, large),
		operation(harness.OpCheckBatch, large),
		operation(harness.OpAsk, large),
		operation(harness.OpAsks, small),
		operation(harness.OpAnswer, small),
		operation(harness.OpExplainField, small),
		operation(harness.OpExplainAll, small),
		operation(harness.OpExplainCall, large),
		operation(harness.OpExplainEvent, small),
		operation(harness.OpDiff, small),

		operation(harness.OpShow, small),
		operation(harness.OpList, small),
		operation(harness.OpTree, small),
		operation(harness.OpLog, small),
		operation(harness.OpSearch, small),
		operation(harness.OpHead, small),
		operation(harness.OpRules, small),
		operation(harness.OpSetRules, small),
		operation(harness.OpStats, small),
		verification(operation(harness.OpVerify, large), l.VerifyTime),

		{path: harness.FollowPath, method: http.MethodGet, query: followKeys, serve: (*Service).follow},
		{path: MetricsPath, method: http.MethodGet, serve: (*Service).serveMetrics},
		{path: "/healthz", method: http.MethodGet, public: true, serve: (*Service).serveHealth},
		{path: "/readyz", method: http.MethodGet, public: true, serve: (*Service).serveReady},
		{path: "/openapi.json", method: http.MethodGet, public: true, serve: (*Service).serveDocument},
		{path: "/openapi.yaml", method: http.MethodGet, public: true, serve: (*Service).serveDocument},
		{path: "/docs", method: http.MethodGet, public: true, serve: (*Service).servePage},
		{path: "/docs/style.css", method: http.MethodGet, public: true, serve: (*Service).serveStyle},
	}
}

// routes is the table by path.
func routes(l Limits) map[string]route {
	byPath := map[string]route{}
	for _, t := range table(l) {
		byPath[t.path] = t
	}
	return byPath
}
