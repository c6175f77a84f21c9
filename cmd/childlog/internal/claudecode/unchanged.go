package claudecode

import (
	"bytes"
	"context"
	"errors"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// What a run's last word about a conversation keeps for the reports of later
// runs, as facts of import/source. They were found in this file's lines and in
// those of its session; if a line of any of them is new, all are read again.
const (
	factLines     = "own_lines"
	factChains    = "chains" // sidechains in the file
	factInherited = "inherited"
	factSidecar   = "sidecar"
	factMark      = "parent_mark"
	factCall      = "call"
	factCallSeq   = "call_seq"
	factCallMark  = "call_mark"
	factTool      = "tool"
	factShape     = "shape"
	factMode      = "mode"
	factModeSeq   = "mode_seq"
	factStated    = "stated" // modes that an agent's own lines state
)

// word is what a run keeps of a conversation; chains are the sidechains beside
// it.
func (c *conv) word(chains int) []any {
	pairs := []any{factLines, c.lines, factInherited, c.inherited, factChains, chains}
	if side := c.side(); len(side.raw) > 0 {
		pairs = append(pairs, factSidecar, eventlog.Hash(side.sum))
	}
	if !c.place.Child {
		return pairs
	}
	pairs = append(pairs, factMark, c.place.ParentMark, factCallMark, c.callMark, factCallSeq, c.call.seq, factModeSeq, c.born.Seq, factStated, len(c.notes.modes))
	for _, p := range [][2]string{{factCall, c.call.id}, {factTool, c.call.tool}, {factShape, c.shape}, {factMode, c.born.Value}} {
		if p[1] != "" {
			pairs = append(pairs, p[0], importer.Code(p[1]))
		}
	}
	return pairs
}

// known is a file that an earlier run read to its end.
type known struct {
	prefix importer.Prefix
	source map[string]any // facts of its import/source
	found  []importer.Finding
}

// unchanged finds the files of a session that are what they were when they were
// imported, if all of them are: a call in one may have made the agent of
// another. Those that can't be told from what is kept are read again: sidechains
// in a session's file, agents that state a mode, and agents whose call is not
// known, which may come yet.
func (r *run) unchanged(ctx context.Context, session string) (map[*file]*known, error) {
	if r.O.Strict { // which looks for lines that can't be read
		return nil, nil
	}
	all := map[*file]*known{}
	for _, f := range r.plan.family[session] {
		if f.New {
			return nil, nil
		}
		in, err := importer.OpenInput(r.O.Files, f.path)
		if err != nil {
			return nil, nil // it is reported when its turn comes
		}
		k, ok := &known{}, false
		k.prefix, k.source, ok, err = importer.Unchanged(ctx, r.S, f.Session, in, nil, func(code string, line int64, detail string) {
			k.found = append(k.found, importer.Finding{Code: code, File: f.path, Line: line, Session: f.Session, Detail: detail})
		})
		in.Close() // read only
		if ce := (*eventlog.CorruptError)(nil); errors.As(err, &ce) {
			return nil, nil // likewise
		}
		if err != nil {
			return nil, err
		}
		sum, _ := k.source[factSidecar].([]byte)
		sameSide := len(f.h.side.raw) == 0 || bytes.Equal(sum, f.h.side.sum[:])
		if !ok || !sameSide || f.h.delegated() && k.str(factCallMark) == importer.Absent || k.num(factChains)+k.num(factStated) > 0 {
			return nil, nil
		}
		all[f] = k
	}
	return all, nil
}

func (k *known) num(name string) int64 {
	n, _ := k.source[name].(int64)
	return n
}

func (k *known) str(name string) string {
	s, _ := k.source[name].(string)
	return s
}

// accept takes a file that has not changed from what the store has of it.
func (r *run) accept(ctx context.Context, f *file, k *known) error {
	row, err := r.S.Row(f.Session)
	if err != nil {
		return err
	}
	c, err := r.conv(f, &f.Place)
	if err != nil {
		return err
	}
	c.row, c.lines, c.inherited, c.shape = &row, k.num(factLines), k.num(factInherited), k.str(factShape)
	c.call = call{id: k.str(factCall), tool: k.str(factTool), seq: uint64(k.num(factCallSeq))}
	if f.Child {
		f.ParentMark, c.callMark = k.str(factMark), k.str(factCallMark)
		if c.born.Value = k.str(factMode); c.born.Value != "" {
			c.born.Mark, c.born.Seq = importer.Inferred, uint64(k.num(factModeSeq))
		}
	}
	for _, x := range k.found {
		r.Findings.Add(x)
	}
	r.Report.Unchanged++
	r.Report.Lines += k.prefix.Lines
	return r.account(ctx, k.prefix, c)
}
