package redact

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/audittest"
)

func quote(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// TestCase35_NoPlantedSecretSurvives plants every shape into each place where a
// log can hold one.
func TestCase35_NoPlantedSecretSurvives(t *testing.T) {
	f, err := New(Options{})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(audittest.Secrets()), 50)
	for i, s := range audittest.Secrets() {
		t.Run(fmt.Sprintf("%02d_%s", i, s.Detector), func(t *testing.T) {
			places := map[string]string{
				"argument":       quote(t, map[string]any{"call": "c1", "args": map[string]any{"command": "run " + s.Text + "\nthen"}}),
				"list":           quote(t, map[string]any{"argv": []string{"run", s.Text}}),
				"nested":         quote(t, []any{map[string]any{"a": []any{map[string]any{"b": map[string]any{"c": s.Text}}}}}),
				"json in json":   quote(t, map[string]any{"payload": quote(t, map[string]any{"inner": quote(t, map[string]any{"deep": s.Text})})}),
				"broken json":    quote(t, map[string]any{"payload": quote(t, map[string]any{"inner": s.Text}) + " trailing"}),
				"name of member": quote(t, map[string]any{s.Text: 1}),
			}
			for place, text := range places {
				counts := Counts{}
				out, err := f.JSON([]byte(text), counts)
				require.NoError(t, err, place)
				require.True(t, json.Valid(out), place)
				s.Lacks(t, string(out))
				require.Contains(t, counts, s.Detector, "%s: %s", place, out)
				again, err := f.JSON(out, nil)
				require.NoError(t, err)
				require.Equal(t, string(out), string(again), "%s: filtering twice", place)
			}
			for place, text := range map[string]string{"label": s.Text, "line": "first\n" + s.Text + "\nlast"} {
				counts := Counts{}
				out := f.String(text, counts)
				s.Lacks(t, out)
				require.Contains(t, counts, s.Detector, "%s: %s", place, out)
				require.Equal(t, out, f.String(text, nil), "equal input, equal output")
			}
		})
	}
}
