package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
)

// result is what a run measured: the JSON that -out gets.
type result struct {
	Env     environment `json:"environment"`
	Options optionsJSON `json:"options"`
	Rows    []*row      `json:"rows"`
	Targets []target    `json:"targets"`
}

// row is one piece of work.
type row struct {
	Name    string         `json:"name"`
	Work    string         `json:"work"` // with the sizes of this run
	Seconds float64        `json:"seconds"`
	Series  []series       `json:"series"`
	Notes   []string       `json:"notes,omitempty"`
	Detail  map[string]any `json:"detail,omitempty"`
}

// series is one figure, measured once a round.
type series struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Median float64   `json:"median"`
	Rounds []float64 `json:"rounds"`
}

func (r *row) add(name, unit string, rounds []float64) {
	r.Series = append(r.Series, series{name, unit, median(rounds), rounds})
}

func (r *row) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

func (r *row) detail(key string, v any) {
	if r.Detail == nil {
		r.Detail = map[string]any{}
	}
	r.Detail[key] = v
}

// target holds a value against what the design asks for.
type target struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Reach  float64 `json:"reach"`
	AtMost bool    `json:"at_most"` // else at least
	OK     bool    `json:"ok"`
}

// atLeast and atMost make targets; a value that is no number is short.
func atLeast(name string, value, reach float64) target {
	return target{Name: name, Value: value, Reach: reach, OK: value >= reach}
}

func atMost(name string, value, reach float64) target {
	return target{Name: name, Value: value, Reach: reach, AtMost: true, OK: value <= reach}
}

// String is the line for the target. Rounding does not decide: OK is from the
// exact value.
func (t target) String() string {
	verdict := "short"
	if t.OK {
		verdict = "ok"
	}
	return fmt.Sprintf("ratio %s %s reach %s %s", t.Name, figure(t.Value), strconv.FormatFloat(t.Reach, 'f', -1, 64), verdict)
}

// figure writes three significant digits, and every digit before the point.
func figure(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Sprint(v)
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// grouped is figure with its thousands apart.
func grouped(v float64) string {
	s := figure(v)
	if math.Abs(v) < 1000 || math.IsInf(v, 0) {
		return s
	}
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// print writes the table, the notes and the lines of the targets.
func (r *result) print(w io.Writer) {
	t := table.New().Headers("row", "", "median", "", "rounds from", "to")
	for _, row := range r.Rows {
		t.Row(row.Name, row.Work, "", "", "", "")
		for _, s := range row.Series {
			lo, hi := span(s.Rounds)
			from, to := grouped(lo), grouped(hi)
			if len(s.Rounds) < 2 {
				from, to = "", ""
			}
			t.Row("", "  "+s.Name, grouped(s.Median), s.Unit, from, to)
		}
	}
	t.StyleFunc(func(_, col int) lipgloss.Style {
		style := lipgloss.NewStyle().Padding(0, 1)
		if col == 2 || col > 3 {
			style = style.Align(lipgloss.Right)
		}
		return style
	})
	fmt.Fprintln(w, t)
	for _, row := range r.Rows {
		for _, n := range row.Notes {
			fmt.Fprintf(w, "note %s: %s\n", row.Name, n)
		}
	}
	for _, t := range r.Targets {
		fmt.Fprintln(w, t)
	}
}

func span(v []float64) (lo, hi float64) {
	if len(v) == 0 {
		return 0, 0
	}
	lo, hi = v[0], v[0]
	for _, x := range v {
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi
}

// save writes the result for machines.
func (r *result) save(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o600)
}
