// Package schema holds the JSON Schemas (draft 2020-12) of what childlog reads
// and records: for editors, for other programs, and for people. Package manifest
// reads the same documents and decides; it refuses a little more than a schema
// can say, such as a number written with a fraction of zero.
//
// What several schemas share stands once, in defs.json. Each schema that is
// handed out has what it needs of it under $defs, so that it stands alone.
package schema

import (
	"bytes"
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"childlog/eventlog"
)

//go:embed *.json
var files embed.FS

// shared is the file of what schemas share; it is none itself.
const shared = "defs"

// Base is what the $id of every schema begins with. It is a name, not a place.
const Base = "https://childlog.invalid/schema/"

// Names lists the schemas, sorted.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil { // of files that are part of the program
		return nil
	}
	var names []string
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), ".json"); name != shared {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Title returns what a schema describes, in a few words, or "".
func Title(name string) string {
	var head struct {
		Title string `json:"title"`
	}
	if raw, err := read(name); err != nil || json.Unmarshal(raw, &head) != nil {
		return ""
	}
	return head.Title
}

// Get returns a schema as a document of its own, indented, with a final line
// break. Wrapped [eventlog.ErrInvalid] for a name that is none, with the list.
func Get(name string) ([]byte, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("%w: schema: got %.60q, want %s", eventlog.ErrInvalid, name, strings.Join(Names(), ", "))
	}
	raw, err := read(name)
	if err != nil {
		return nil, err
	}
	defs, err := read(shared)
	if err != nil {
		return nil, err
	}
	var known map[string]jsontext.Value
	if err := json.Unmarshal(defs, &known); err != nil {
		return nil, fmt.Errorf("schema %s: %w", shared, err)
	}
	used := map[string]jsontext.Value{}
	if err := collect(used, known, raw); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	return withDefs(raw, used)
}

// reference finds what a schema uses of the shared file.
var reference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"\$ref":\s*"#/\$defs/([a-z_]+)"`) })

// collect adds what text refers to, directly or through others.
func collect(used, known map[string]jsontext.Value, text []byte) error {
	for _, m := range reference().FindAllSubmatch(text, -1) {
		name := string(m[1])
		if _, ok := used[name]; ok {
			continue
		}
		def, ok := known[name]
		if !ok {
			return fmt.Errorf("want a definition of %s, got none", name)
		}
		used[name] = def
		if err := collect(used, known, def); err != nil {
			return err
		}
	}
	return nil
}

// withDefs appends $defs to an object and lays the whole out.
func withDefs(raw []byte, defs map[string]jsontext.Value) ([]byte, error) {
	if len(defs) > 0 {
		b, err := json.Marshal(defs, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		body := bytes.TrimSuffix(bytes.TrimSpace(raw), []byte("}"))
		raw = slices.Concat(body, []byte(`,"$defs":`), b, []byte("}"))
	}
	v := jsontext.Value(bytes.Clone(raw))
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, err
	}
	return append(v, '\n'), nil
}

func read(name string) ([]byte, error) { return files.ReadFile(name + ".json") }
