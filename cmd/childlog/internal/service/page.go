package service

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json"
)

// document is the OpenAPI 3.1 document of the service. Package document makes it
// from the Go types, `go generate` writes it here, and a test holds it against
// them. It is kept ready because what makes it costs 1.9 ms of every start of
// the command, and because the comments that explain the fields are in the
// source alone.
//
//go:generate go run ./document/generate
//go:embed openapi.json
var document []byte

//go:embed page.html
var pageText string

//go:embed page.css
var style []byte

// serveDocument answers with the document. It is served as YAML too, of which
// JSON is a part.
func (s *Service) serveDocument(w *record, r *http.Request, _ caller) error {
	mediaType := "application/json"
	if r.URL.Path == "/openapi.yaml" {
		mediaType = "application/yaml"
	}
	w.send(http.StatusOK, mediaType, document)
	return nil
}

// servePage answers with the documentation for people: one page without
// scripts, made from the document, that loads nothing but its style.
func (s *Service) servePage(w *record, _ *http.Request, _ caller) error {
	html, err := page()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	w.send(http.StatusOK, "text/html; charset=utf-8", html)
	return nil
}

func (s *Service) serveStyle(w *record, _ *http.Request, _ caller) error {
	w.send(http.StatusOK, "text/css; charset=utf-8", style)
	return nil
}

// page renders the page once.
var page = sync.OnceValues(func() ([]byte, error) {
	var doc apiDocument
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	t, err := template.New("page").Funcs(template.FuncMap{"type": typeOf, "json": schemaIn}).Parse(pageText)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, doc.view())
	return b.Bytes(), err
})
