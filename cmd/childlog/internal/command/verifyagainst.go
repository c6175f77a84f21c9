package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// againstFlags name what was kept elsewhere.
type againstFlags struct {
	key                  string
	checkpoints, anchors []string
}

func (f *againstFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.key, "key", "", "the store's public key, or a file that holds it (default: the store's own word)")
	cmd.Flags().StringArrayVar(&f.checkpoints, "checkpoint", nil, "a checkpoint that was kept elsewhere, a file (may be repeated)")
	cmd.Flags().StringArrayVar(&f.anchors, "anchor", nil, `the head of a session that was kept elsewhere, "SESSION SEQ HASH" (may be repeated)`)
}

func (f *againstFlags) read(a *app) (against eventlog.Against, err error) {
	if f.key != "" {
		if against.Key, err = a.verifierKey(f.key); err != nil {
			return against, err
		}
	}
	for _, path := range f.checkpoints {
		c, err := a.readCheckpointFile(path)
		if err != nil {
			return against, err
		}
		against.Checkpoints = append(against.Checkpoints, c)
	}
	for _, text := range f.anchors {
		anchor, err := eventlog.ParseAnchor(text)
		if err != nil {
			return against, asUsage(fmt.Errorf("--anchor: %w", err))
		}
		against.Anchors = append(against.Anchors, anchor)
	}
	return against, nil
}

func erasedNote(v *wire.Verified) (note term.Text) {
	if v.Redacted+v.Purged+v.Withheld == 0 {
		return note
	}
	text := fmt.Sprintf("%s erased on record, %s removed", grouped(v.Redacted), plural(int(v.Purged), "session"))
	if v.Withheld > 0 {
		text += fmt.Sprintf(", %s withheld by the store that the log came from", grouped(v.Withheld))
	}
	return term.Dim(text)
}

func signedRows(s *wire.Signed) []term.Row {
	if s.KeyFrom == ops.KeyNone && s.Origin == "" {
		return []term.Row{{Name: "signed", Value: term.Plain("nothing yet")}}
	}
	by := "by the store's own key, which whoever can write the directory can replace"
	if s.KeyFrom == ops.KeyGiven {
		by = "by the key that was given"
	}
	value := term.Bad("no")
	if s.Holds {
		value = term.Plain(fmt.Sprintf("%s of %s frames", grouped(s.Size), grouped(s.Positions)))
	}
	rows := []term.Row{{Name: "signed", Value: value, Note: term.Dim(by)}}
	for _, h := range s.Outside {
		value := term.Bad("does not hold")
		if h.Holds {
			value = term.Good("holds")
		}
		rows = append(rows, term.Row{Name: "checkpoint", Value: value, Note: term.Dim(fmt.Sprintf("%s, %s frames", h.File, grouped(h.Size)))})
	}
	for _, h := range s.Heads {
		rows = append(rows, term.Row{Name: "anchor", Value: term.Good("holds"), Note: term.Dim(h)})
	}
	return rows
}
