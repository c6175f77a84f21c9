package manifest_test

import (
	"bytes"
	"testing"

	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/cmd/childlog/internal/schema"
	"childlog/policy"
)

var at = policy.Origin{Session: uuid.MustParse("0a1b2c3d-0000-4000-8000-000000000001"), Seq: 3}

func ptr[T any](v T) *T { return &v }

// validator compiles one of the schemas.
func validator(t testing.TB, name string) *jsonschema.Schema {
	text, err := schema.Get(name)
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource(schema.Base+name, doc))
	s, err := c.Compile(schema.Base + name)
	require.NoError(t, err)
	return s
}

// valid is the schema's opinion of a document.
func valid(t testing.TB, s *jsonschema.Schema, doc []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	require.NoError(t, err)
	return s.Validate(v)
}

// parsers read the documents that have a schema.
var parsers = map[string]func([]byte) error{
	"request": func(b []byte) error { _, err := manifest.ParseRequest(b); return err },
	"profile": func(b []byte) error { _, err := manifest.ParseProfile(b); return err },
	"ceiling": func(b []byte) error { _, err := manifest.ParseCeiling(b); return err },
	"rules":   func(b []byte) error { _, err := manifest.ParseRules(b); return err },
	"call":    func(b []byte) error { _, err := manifest.ParseCall(b); return err },
}

// request parses a request that must be good.
func request(t require.TestingT, doc string) *manifest.Request {
	r, err := manifest.ParseRequest([]byte(doc))
	require.NoError(t, err, doc)
	return r
}
