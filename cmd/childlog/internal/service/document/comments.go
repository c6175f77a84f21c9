package document

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"childlog/cmd/childlog/internal/service"
)

// comments are those of the source, by package, type and field or method.
type comments map[[3]string]string

// readComments parses the packages in some directories of the module.
func readComments(root string, dirs ...string) (comments, error) {
	c := comments{}
	for _, dir := range dirs {
		names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			c.file(path.Base(dir), f)
		}
	}
	return c, nil
}

func (c comments) file(pkg string, f *ast.File) {
	for _, d := range f.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range decl.Specs {
			t, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			doc := t.Doc
			if doc == nil && len(decl.Specs) == 1 {
				doc = decl.Doc
			}
			c[[3]string{pkg, t.Name.Name, ""}] = plain(doc)
			var fields *ast.FieldList
			switch body := t.Type.(type) {
			case *ast.StructType:
				fields = body.Fields
			case *ast.InterfaceType:
				fields = body.Methods
			default:
				continue
			}
			for _, field := range fields.List {
				text := plain(field.Doc)
				if text == "" {
					text = plain(field.Comment)
				}
				for _, name := range field.Names {
					c[[3]string{pkg, t.Name.Name, name.Name}] = text
				}
			}
		}
	}
}

// links are those of Go comments, which mean nothing elsewhere.
var links = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[([\w.]+)\]`) })

func plain(g *ast.CommentGroup) string {
	return absent().ReplaceAllString(links().ReplaceAllString(strings.TrimSpace(g.Text()), "$1"), "left out")
}

// absent is how Go says that a key is not there.
var absent = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bnil\b`) })

func (c comments) field(pkg, typ, field string) string { return c[[3]string{pkg, typ, field}] }

func (c comments) method(pkg, name string) string { return c[[3]string{pkg, "Harness", name}] }

// finish adds what the comments say to the schemas, and null to the objects
// that may be missing: huma has it for plain values alone.
//
// Requests take no keys that they do not know. Answers may get new ones, which an
// old client is to pass over.
func (m *maker) finish() {
	asked := map[string]bool{}
	for _, p := range service.Paths() {
		if p.Request != nil {
			m.reach(m.registry.Schema(p.Request, true, ""), asked)
		}
	}
	for name, schema := range m.registry.Map() {
		if !asked[name] && schema.AdditionalProperties == false {
			schema.AdditionalProperties = nil
		}
	}
	for name, schema := range m.registry.Map() {
		t := m.registry.TypeFromRef(prefix + name)
		pkg := path.Base(t.PkgPath())
		typ, _, _ := strings.Cut(t.Name(), "[")
		if schema.Description == "" {
			schema.Description = m.comments[[3]string{pkg, typ, ""}]
		}
		m.fields(schema, t)
	}
}

// reach marks the schemas that a schema leads to.
func (m *maker) reach(s *huma.Schema, marked map[string]bool) {
	if s == nil {
		return
	}
	if name, ok := strings.CutPrefix(s.Ref, prefix); ok {
		if marked[name] {
			return
		}
		marked[name] = true
		s = m.registry.SchemaFromRef(s.Ref)
	}
	for _, p := range s.Properties {
		m.reach(p, marked)
	}
	m.reach(s.Items, marked)
	if p, ok := s.AdditionalProperties.(*huma.Schema); ok {
		m.reach(p, marked)
	}
}

func (m *maker) fields(schema *huma.Schema, t reflect.Type) {
	typ, _, _ := strings.Cut(t.Name(), "[")
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if f.Anonymous && tag == "" {
			m.fields(schema, f.Type)
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		prop := schema.Properties[name]
		if !f.IsExported() || prop == nil {
			continue
		}
		if f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct && prop.Ref != "" && !strings.Contains(options, "omit") {
			prop = &huma.Schema{AnyOf: []*huma.Schema{{Ref: prop.Ref}, {Type: "null"}}}
			schema.Properties[name] = prop
		}
		if f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Slice && prop.Type == "array" {
			prop.Nullable = true
		}
		if text := m.comments[[3]string{path.Base(t.PkgPath()), typ, f.Name}]; text != "" && prop.Description == "" {
			prop.Description = text
		}
	}
}
