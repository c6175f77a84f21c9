package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// Where the key came from that signatures were checked with.
const (
	keyGiven = "given"
	keyStore = "store" // whoever can write the store can replace it
	keyNone  = "none"  // nothing was ever signed
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

// signed fills in how the journal compares with what was signed.
func (f *againstFlags) signed(v *wire.Verified, s *eventlog.Store, r *eventlog.CheckReport) {
	v.Signed = wire.Signed{Key: s.VerifierKey(), KeyFrom: keyStore, Positions: r.Positions, Anchored: r.Anchored, Outside: []wire.Held{}, Heads: []string{}}
	switch {
	case f.key != "":
		v.Signed.Key, v.Signed.KeyFrom = f.key, keyGiven
	case v.Signed.Key == "":
		v.Signed.KeyFrom = keyNone
	}
	if r.Signed != nil {
		v.Signed.Origin, v.Signed.Size, v.Signed.Holds = r.Signed.Origin, r.Signed.Size, r.Signed.Holds
	}
	for i, h := range r.Outside {
		v.Signed.Outside = append(v.Signed.Outside, wire.Held{File: f.checkpoints[i], Origin: h.Origin, Size: h.Size, Holds: h.Holds})
	}
	for _, a := range r.Heads {
		v.Signed.Heads = append(v.Signed.Heads, a.String())
	}
}

// statement says in words what was established. A log that was cut at its end
// and is consistent looks like one that ended there: only what was kept
// elsewhere can tell.
func statement(v *wire.Verified) string {
	s := &v.Signed
	complete := "completeness unproven: no outside anchor"
	switch {
	case s.Anchored > 0 && s.Anchored == s.Positions:
		complete = "complete, by a checkpoint that was kept elsewhere"
	case s.Anchored > 0:
		complete = fmt.Sprintf("complete up to frame %s of %s, by a checkpoint that was kept elsewhere", grouped(s.Anchored), grouped(s.Positions))
	case len(s.Heads) > 0:
		complete = fmt.Sprintf("complete up to the head of %s that was kept elsewhere, of the rest unproven", plural(len(s.Heads), "session"))
	}
	switch {
	case v.Status == eventlog.StatusIncomplete:
		return "what is here is intact, and what was lost is stated"
	case !v.OK:
		return "not intact"
	}
	return "intact, " + complete
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
	if s.KeyFrom == keyNone && s.Origin == "" {
		return []term.Row{{Name: "signed", Value: term.Plain("nothing yet")}}
	}
	by := "by the store's own key, which whoever can write the directory can replace"
	if s.KeyFrom == keyGiven {
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
