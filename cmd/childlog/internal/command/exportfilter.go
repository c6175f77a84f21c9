package command

import (
	"strings"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/redact"
)

// filterFlags say what is replaced in an export.
type filterFlags struct {
	on    bool
	rules string
	roots []string
}

func (f *filterFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.on, "redact", false, "replace what the detectors of secrets know (html, otel: unless --redact=false)")
	cmd.Flags().StringVar(&f.rules, "redact-rules", "", "with --redact: a file of further rules, one `NAME literal|re2 PATTERN` a line")
	cmd.Flags().StringArrayVar(&f.roots, "mask-root", nil, "with --redact: a directory whose path becomes <root:ID>, as `PATH=ID` (may be repeated)")
}

// read makes the filter that is asked for, or that the format has by itself.
func (f *filterFlags) read(a *app, cmd *cobra.Command, format *exportFormat) (*exportRun, error) {
	on := f.on
	if format.clean && !cmd.Flags().Changed("redact") {
		on = true
	}
	if !on {
		if f.rules != "" || len(f.roots) > 0 {
			return nil, usagef("--redact-rules and --mask-root say how --redact is meant; give it too")
		}
		return &exportRun{}, nil
	}
	o := redact.Options{Homes: !format.exact}
	if f.rules != "" {
		file, err := a.files.Open(f.rules)
		if err != nil {
			return nil, usagef("--redact-rules: %v", err)
		}
		defer file.Close()
		if o.Rules, err = redact.ReadRules(file); err != nil {
			return nil, usagef("--redact-rules: %w", err)
		}
	}
	for _, text := range f.roots {
		path, id, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usagef("--mask-root: got %q, want PATH=ID", text)
		}
		o.Roots = append(o.Roots, redact.Root{Path: path, ID: id})
	}
	filter, err := redact.New(o)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return &exportRun{filter: filter, counts: redact.Counts{}}, nil
}
