package document_test

import (
	"os"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/service"
	"childlog/cmd/childlog/internal/service/document"
)

// TestTheDocumentIsOfTheTypes: what is served is what the types and comments
// give now. After a change: go generate ./cmd/childlog/internal/service
func TestTheDocumentIsOfTheTypes(t *testing.T) {
	made, err := document.Make("../../../../..")
	require.NoError(t, err)
	served, err := os.ReadFile("../openapi.json")
	require.NoError(t, err)
	require.Equal(t, string(made), string(served), "go generate ./cmd/childlog/internal/service")
}

// TestTheDocumentIsSound: every schema compiles, every operation is there under
// one id, with errors, and says who may use it.
func TestTheDocumentIsSound(t *testing.T) {
	raw, err := os.ReadFile("../openapi.json")
	require.NoError(t, err)
	var doc struct {
		OpenAPI string `json:"openapi"`
		Paths   map[string]map[string]struct {
			OperationID string         `json:"operationId"`
			Summary     string         `json:"summary"`
			Role        string         `json:"x-childlog-role"`
			Security    []any          `json:"security"`
			Responses   map[string]any `json:"responses"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal(raw, &doc))
	require.Equal(t, "3.1.0", doc.OpenAPI)
	var whole any
	require.NoError(t, json.Unmarshal(raw, &whole))
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("mem:openapi.json", whole))
	for name := range doc.Components.Schemas {
		_, err := c.Compile("mem:openapi.json#/components/schemas/" + name)
		require.NoError(t, err, name)
	}
	ids := map[string]bool{}
	for _, p := range service.Paths() {
		if p.Name == "" && p.Public && p.Path != "/healthz" && p.Path != "/readyz" {
			continue // the document and its page
		}
		for method, op := range doc.Paths[p.Path] {
			require.NotEmpty(t, op.Summary, "%s %s", method, p.Path)
			require.False(t, ids[op.OperationID], op.OperationID)
			ids[op.OperationID] = true
			require.Contains(t, op.Responses, "429", p.Path)
			require.Equal(t, p.Public, len(op.Security) == 0, p.Path)
			require.Equal(t, p.Public, op.Role == "", p.Path)
		}
		require.Len(t, doc.Paths[p.Path], 1, p.Path)
	}
}
