package service

import (
	"cmp"
	"html/template"
	"slices"
	"strings"
)

// apiDocument is what the page shows of the document.
type apiDocument struct {
	Info struct {
		Title       string `json:"title"`
		Version     string `json:"version"`
		Description string `json:"description"`
	} `json:"info"`
	Paths      map[string]map[string]apiOperation `json:"paths"`
	Components struct {
		Schemas map[string]*apiSchema `json:"schemas"`
	} `json:"components"`
}

type apiOperation struct {
	Summary     string             `json:"summary"`
	Description string             `json:"description"`
	Tags        []string           `json:"tags"`
	Role        string             `json:"x-childlog-role"`
	Parameters  []apiParameter     `json:"parameters"`
	Body        apiBody            `json:"requestBody"`
	Responses   map[string]apiBody `json:"responses"`
}

type apiParameter struct {
	Name        string     `json:"name"`
	In          string     `json:"in"`
	Description string     `json:"description"`
	Schema      *apiSchema `json:"schema"`
}

type apiBody struct {
	Description string `json:"description"`
	Content     map[string]struct {
		Schema *apiSchema `json:"schema"`
	} `json:"content"`
}

// apiSchema is the part of JSON Schema that the document uses.
type apiSchema struct {
	Ref         string                `json:"$ref"`
	Type        any                   `json:"type"` // a name, or names
	Format      string                `json:"format"`
	Description string                `json:"description"`
	Properties  map[string]*apiSchema `json:"properties"`
	Required    []string              `json:"required"`
	Items       *apiSchema            `json:"items"`
	AnyOf       []*apiSchema          `json:"anyOf"`
	Additional  any                   `json:"additionalProperties"`
}

// The page's own form of it: lists in the order in which they are shown.
type (
	pageView struct {
		Title, Version string
		About          []string
		Groups         []pageGroup
		Schemas        []pageSchema
	}
	pageGroup struct {
		Name       string
		Operations []pageOperation
	}
	pageOperation struct {
		Method, Path string
		apiOperation
		Answer apiBody
		Errors []string // statuses
	}
	pageSchema struct {
		Name, Description string
		Fields            []pageField
	}
	pageField struct {
		Name     string
		Required bool
		Schema   *apiSchema
	}
)

func (d *apiDocument) view() pageView {
	v := pageView{Title: d.Info.Title, Version: d.Info.Version, About: strings.Split(d.Info.Description, "\n\n")}
	groups := map[string][]pageOperation{}
	for path, methods := range d.Paths {
		for method, op := range methods {
			shown := pageOperation{Method: strings.ToUpper(method), Path: path, apiOperation: op, Answer: op.Responses["200"]}
			for status := range op.Responses {
				if status != "200" {
					shown.Errors = append(shown.Errors, status)
				}
			}
			slices.Sort(shown.Errors)
			groups[op.Tags[0]] = append(groups[op.Tags[0]], shown)
		}
	}
	for _, name := range []string{"sessions", "policy", "reading", "service"} {
		slices.SortFunc(groups[name], func(a, b pageOperation) int { return cmp.Compare(a.Path, b.Path) })
		v.Groups = append(v.Groups, pageGroup{name, groups[name]})
	}
	for name, s := range d.Components.Schemas {
		shown := pageSchema{Name: name, Description: s.Description}
		for key, p := range s.Properties {
			shown.Fields = append(shown.Fields, pageField{key, slices.Contains(s.Required, key), p})
		}
		slices.SortFunc(shown.Fields, func(a, b pageField) int {
			if a.Required != b.Required {
				return map[bool]int{true: -1, false: 1}[a.Required]
			}
			return cmp.Compare(a.Name, b.Name)
		})
		v.Schemas = append(v.Schemas, shown)
	}
	slices.SortFunc(v.Schemas, func(a, b pageSchema) int { return cmp.Compare(a.Name, b.Name) })
	return v
}

const schemaPrefix = "#/components/schemas/"

// typeOf names the type of a value, with a link where it is a schema.
func typeOf(s *apiSchema) template.HTML {
	if s == nil {
		return "any JSON"
	}
	if name, ok := strings.CutPrefix(s.Ref, schemaPrefix); ok {
		name = template.HTMLEscapeString(name)
		return template.HTML(`<a href="#` + name + `">` + name + `</a>`)
	}
	var parts []string
	for _, one := range s.AnyOf {
		parts = append(parts, string(typeOf(one)))
	}
	switch t := s.Type.(type) {
	case string:
		parts = append(parts, template.HTMLEscapeString(t))
	case []any:
		for _, name := range t {
			if name, ok := name.(string); ok {
				parts = append(parts, template.HTMLEscapeString(name))
			}
		}
	}
	if len(parts) == 0 {
		return "any JSON"
	}
	text := strings.Join(parts, " or ")
	if s.Items != nil {
		text += " of " + string(typeOf(s.Items))
	}
	return template.HTML(text)
}

// schemaIn is the one schema of a body, nil where it has none.
func schemaIn(b apiBody) *apiSchema {
	for _, c := range b.Content {
		return c.Schema
	}
	return nil
}
