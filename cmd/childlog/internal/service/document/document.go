// Package document makes the OpenAPI 3.1 document of the service from the Go
// types of its requests and answers (huma's schemas) and from the comments on
// them. The service serves what was made before, so this package, which reads
// source files, is linked into no command; see service/page.go.
package document

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"runtime"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	gojson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/service"
	"childlog/cmd/childlog/wire"
)

// Version is that of the document. The paths have their own (harness.Prefix).
const Version = "1.0.0"

const prefix = "#/components/schemas/"

// Make returns the document as indented JSON, the same bytes for the same
// source. root is the directory of the module.
func Make(root string) ([]byte, error) {
	c, err := readComments(root, "cmd/childlog/harness", "cmd/childlog/wire", "cmd/childlog/internal/service")
	if err != nil {
		return nil, err
	}
	huma.DefaultArrayNullable = false // a list is never null
	m := maker{comments: c, registry: huma.NewMapRegistry(prefix, nameOf)}
	m.registry.RegisterTypeAlias(reflect.TypeFor[wire.Exact](), reflect.TypeFor[json.RawMessage]())
	m.registry.RegisterTypeAlias(reflect.TypeFor[jsontext.Value](), reflect.TypeFor[json.RawMessage]())
	m.registry.RegisterTypeAlias(reflect.TypeFor[harness.Tools](), reflect.TypeFor[[]string]())

	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info:    &huma.Info{Title: "childlog", Version: Version, Description: strings.TrimSpace(overview)},
		Servers: []*huma.Server{{URL: "/"}},
		Components: &huma.Components{Schemas: m.registry, SecuritySchemes: map[string]*huma.SecurityScheme{
			"token": {Type: "http", Scheme: "bearer", Description: "A token of `childlog token new`. The peers of the store's Unix socket need none."}}},
		Tags: []*huma.Tag{{Name: "sessions"}, {Name: "policy"}, {Name: "reading"}, {Name: "service"}},
	}
	for _, p := range service.Paths() {
		if op := m.operation(p); op != nil {
			doc.AddOperation(op)
		}
	}
	m.finish()
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	return tidy(raw)
}

// tidy sorts the keys and indents.
func tidy(raw []byte) ([]byte, error) {
	var v any
	if err := gojson.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	out, err := gojson.Marshal(v, gojson.Deterministic(true), jsontext.WithIndent(" "))
	return append(bytes.TrimSpace(out), '\n'), err
}

const overview = `
Everything that a program which runs agents does with a childlog store: it decides and records, and enforces nothing by itself.

An operation is a POST of a JSON object, answered by one. Keys that are unknown, duplicate or spelled in another case are refused with their place. A denied check, and one that needs an approval, are answers: the status is 200 and the verdict says it.

Errors have a stable code, and a status that follows from it: 400 and 413 for input, 401 without a token, 403 for what is refused by policy or by the token's role, 404 and 410, 409 for conflicts, 429 for more than a caller may send, 500 for damage, 503 with Retry-After for what may work later. After outcome_unknown, or an answer that did not come, the same request with the same ids or key is repeated: its answer is the original one.

Roles: an auditor reads; a harness also writes what a harness writes; an operator does everything. Requests that act as an operator need one, whatever the path.`

// maker collects the schemas.
type maker struct {
	comments comments
	registry huma.Registry
}

// tags groups the operations by name.
var tags = map[string]string{
	"policy": "policy", "resume": "policy", "check": "policy", "check_batch": "policy", "ask": "policy", "explain_field": "policy", "explain_all": "policy", "explain_call": "policy",
	"explain_event": "policy", "diff": "policy", "narrow": "policy", "switch": "policy", "rules": "policy", "set_rules": "policy",
	"show": "reading", "head": "reading", "list": "reading", "tree": "reading", "log": "reading", "search": "reading", "stats": "reading", "verify": "reading", "inbox": "reading", "notices": "reading",
}

// operation describes a path, nil for the document and the page themselves.
func (m *maker) operation(p service.Path) *huma.Operation {
	op := &huma.Operation{Method: p.Method, Path: p.Path, OperationID: p.Name, Summary: p.Short, Tags: []string{"sessions"}, Responses: map[string]*huma.Response{}}
	if !p.Public {
		op.Security = []map[string][]string{{"token": {}}}
	}
	if p.Name == "" {
		return m.other(p, op)
	}
	if tag := tags[p.Name]; tag != "" {
		op.Tags = []string{tag}
	}
	method := runtime.FuncForPC(reflect.ValueOf(p.Do).Pointer()).Name()
	op.Description = m.comments.method("harness", method[strings.LastIndex(method, ".")+1:])
	op.RequestBody = &huma.RequestBody{Required: true, Content: m.json(p.Request), Description: "At most " + strconv.FormatInt(p.Limit, 10) + " bytes."}
	op.Responses["200"] = &huma.Response{Description: "The answer.", Content: m.json(p.Answer)}
	op.Extensions = map[string]any{"x-childlog-role": role(p)}
	m.errors(op, 400, 401, 403, 404, 409, 410, 413, 415, 429, 500, 503)
	return op
}

// role says who may send a request. The level of some depends on what is in them.
func role(p service.Path) string {
	switch p.Name {
	case "send", "interrupt", "activate":
		return "harness; operator where by is operator"
	case "switch", "settle":
		return "harness with an epoch; operator without"
	case "check", "check_batch":
		return "auditor; harness to record"
	}
	return reflect.New(p.Request).Elem().Interface().(harness.Request).Level().String()
}

// other describes what is no operation of package harness.
func (m *maker) other(p service.Path, op *huma.Operation) *huma.Operation {
	op.Tags = []string{"service"}
	switch p.Path {
	case harness.FollowPath:
		return m.follow(op)
	case service.MetricsPath:
		op.OperationID, op.Summary = "metrics", "Count requests, denials and bytes, for Prometheus"
		op.Extensions = map[string]any{"x-childlog-role": "auditor or operator"}
		op.Responses["200"] = &huma.Response{Description: "Prometheus' text format.", Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: "string"}}}}
		m.errors(op, 400, 401, 403, 429)
	case "/healthz":
		op.OperationID, op.Summary = "health", "Whether the process answers"
		op.Responses["200"] = &huma.Response{Description: "It does.", Content: m.json(reflect.TypeFor[service.Health]())}
		m.errors(op, 429)
	case "/readyz":
		op.OperationID, op.Summary = "readiness", "Whether the store is open and takes appends"
		op.Responses["200"] = &huma.Response{Description: "It does.", Content: m.json(reflect.TypeFor[service.Readiness]())}
		m.errors(op, 429, 503)
	default:
		return nil
	}
	return op
}

func (m *maker) follow(op *huma.Operation) *huma.Operation {
	op.OperationID, op.Summary, op.Tags = "follow", "Follow the events of a session, or of the whole store", []string{"reading"}
	op.Description = m.comments.method("harness", "Follow") + "\n\nThe answer is a stream of server-sent events without an end. The data of one is an object of this schema, its id the cursor; " +
		"a client that was cut off sends the last one as Last-Event-ID and misses nothing. A comment is a heartbeat. An event of type error is the last one. Damage ends the stream, " +
		"or with holes=true is an event of type hole, behind which the stream goes on."
	op.Extensions = map[string]any{"x-childlog-role": "auditor"}
	text, flag := func() *huma.Schema { return &huma.Schema{Type: "string"} }, func() *huma.Schema { return &huma.Schema{Type: "boolean"} }
	about := func(name string) string { return m.comments.field("harness", "FollowRequest", name) }
	op.Parameters = []*huma.Param{
		{Name: "session", In: "query", Description: about("Session"), Schema: text()},
		{Name: "after", In: "query", Description: about("After"), Schema: text()},
		{Name: "types", In: "query", Description: about("Types"), Schema: &huma.Schema{Type: "array", Items: text()}},
		{Name: "no_content", In: "query", Description: about("NoContent"), Schema: flag()},
		{Name: "holes", In: "query", Description: "go on behind what can't be read", Schema: flag()},
		{Name: "Last-Event-ID", In: "header", Description: "beats after", Schema: text()},
	}
	op.Responses["200"] = &huma.Response{Description: "Events.", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: m.registry.Schema(reflect.TypeFor[wire.Followed](), true, "")}}}
	m.errors(op, 400, 401, 403, 404, 410, 429, 500, 503)
	return op
}

func (m *maker) json(t reflect.Type) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{"application/json": {Schema: m.registry.Schema(t, true, "")}}
}

// errors adds the statuses that an operation may fail with.
func (m *maker) errors(op *huma.Operation, statuses ...int) {
	for _, status := range statuses {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status) + ".", Content: m.json(reflect.TypeFor[harness.ErrorBody]())}
	}
}

// nameOf names a schema. What package harness asks for and wire answers with
// may have one name in Go.
func nameOf(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := huma.DefaultSchemaNamer(t, hint)
	if !strings.HasSuffix(t.PkgPath(), "/harness") {
		return name
	}
	if name == "Head" {
		return "Cursor" // of an answer, the only one
	}
	if twice[name] {
		return "Wanted" + name
	}
	return name
}

// twice are the names that both packages use.
var twice = map[string]bool{"Sandbox": true, "Defaults": true, "Event": true, "Provider": true, "Rules": true, "Permissions": true, "ExplicitGrant": true,
	"PaletteTool": true, "Principal": true, "Verdict": true}
