package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
)

// Widths of the columns of a log, in cells. Lines are printed one by one, so
// the columns do not depend on what follows.
const (
	timeWidth   = 24
	sourceWidth = 10
	typeWidth   = 20
	pipeWidth   = 160 // of a line that no terminal bounds
)

// columns prints the fixed part of a line; a narrow terminal shows less of it.
func (l *logRun) columns(seq, when, source string) term.Text {
	line := fmt.Sprintf("%*s  ", l.seqWidth, seq)
	if width := l.out.Width(); width == 0 || width >= 100 {
		line += fmt.Sprintf("%-*s  ", timeWidth, when)
	}
	if width := l.out.Width(); width == 0 || width >= 70 {
		line += fmt.Sprintf("%-*s  ", sourceWidth, source)
	}
	return term.Dim(line)
}

func (l *logRun) head() term.Text {
	return term.Cat(l.columns("SEQ", "TIME", "SOURCE"), term.Dim(fmt.Sprintf("%-*s  ", typeWidth, "TYPE"), "CONTENT AND FACTS"))
}

func (l *logRun) event(ev *eventlog.Event) error {
	if l.json {
		e := wire.EventOf(ev)
		line, err := e.Line()
		l.buf.Write(line)
		return err
	}
	width := l.out.Width()
	when := ev.Time.UTC().Format("2006-01-02T15:04:05.000Z")
	typ := term.Plain(ev.Type)
	switch {
	case ev.Inherited != nil:
		typ = term.Dim(ev.Type)
	case ev.PolicyBearing:
		typ = term.Accent(ev.Type)
	}
	line := l.columns(fmt.Sprint(ev.Seq), when, ev.Source.String())
	line = term.Cat(line, typ, term.Plain(strings.Repeat(" ", max(0, typeWidth-len(ev.Type)))))
	if t := l.body(ev); len(t) > 0 {
		line = term.Cat(line, term.Plain("  "), t)
	}
	if width == 0 {
		width = pipeWidth
	}
	l.look.Println(line.Cut(width))
	return nil
}

// body is what an event says, cut to what fits a line.
func (l *logRun) body(ev *eventlog.Event) term.Text {
	var parts []term.Text
	if ev.Inherited != nil {
		parts = append(parts, term.Dim(fmt.Sprintf("copied from seq %d of %s", ev.Inherited.Seq, ev.Inherited.Session.String()[:8])))
	}
	if ev.Type == eventlog.TypeToolDecision {
		if d, err := eventlog.ParseDecision(ev); err == nil { // its content is for the comparison of hashes
			decided := term.Cat(verdictText(d.Verdict), term.Plain(fmt.Sprintf(": %s, call %s, tool %s, by %s", d.Code, d.Call, d.Tool.Given, d.Decider)))
			if c := d.Classified; c.By != "" {
				decided = term.Cat(decided, term.Plain(fmt.Sprintf(", classified %s by %s", strings.TrimSuffix(string(c.Need)+" "+c.Why, " "), c.By)))
			}
			return term.Cat(separated(append(parts, decided))...)
		}
	}
	facts := factsText(ev)
	if ev.Type == eventlog.TypeContentRedacted {
		if seqs, err := eventlog.RedactedSeqs(ev); err == nil {
			parts = append(parts, term.Warn("erased ", seqList(seqs)), term.Plain(fmt.Sprintf("for %s, by %s", ev.Facts.Str("code"), ev.Facts.Str("by"))))
			facts = ""
		}
	}
	if ev.Type == eventlog.TypeDelegationGranted {
		// A receipt says more than a line holds: in front what it granted.
		if g, err := eventlog.ParseGranted(ev); err == nil {
			grant := g.Granted.Canonical().Own.Grant
			parts = append(parts, term.Plain(fmt.Sprintf("as %s: files %s, shell %s, %s", g.Choices.Role, grant.Files, grant.Shell, plural(len(g.Cuts), "cut"))))
			facts = ""
		}
	}
	switch {
	case ev.Redacted != nil:
		parts = append(parts, redactedText(ev.Redacted))
	case ev.ContentErr != nil:
		parts = append(parts, term.Bad("content: "+ev.ContentErr.Error()))
	case !ev.HasContent:
	case ev.Media == eventlog.MediaOctets, ev.Content == nil:
		parts = append(parts, term.Dim(fmt.Sprintf("(%s of %s)", bytesText(int64(ev.ContentLen)), ev.Media)))
	default:
		parts = append(parts, term.Plain(string(ev.Content[:min(len(ev.Content), 4*pipeWidth)])))
	}
	if facts != "" {
		parts = append(parts, term.Dim(facts))
	}
	if ev.Type == eventlog.TypeApprovalPolicy {
		if p, err := eventlog.ParseApproval(ev); err == nil {
			parts = append(parts, term.Plain("(", shortMeaning(p), ")"))
		}
	}
	if ev.Ignorable {
		parts = append(parts, term.Dim("ignorable"))
	}
	return term.Cat(separated(parts)...)
}

// seqList names seqs, runs of them as ranges.
func seqList(seqs []uint64) string {
	var parts []string
	for i := 0; i < len(seqs); {
		k := i + 1
		for k < len(seqs) && seqs[k] == seqs[k-1]+1 {
			k++
		}
		parts = append(parts, seqRange(seqs[i], seqs[k-1]))
		i = k
	}
	return "seq " + strings.Join(parts, ", ")
}

// redactedText stands in place of a content that was erased.
func redactedText(r *eventlog.Redaction) term.Text {
	return term.Warn(fmt.Sprintf("[redacted at seq %d: %s, by %s, was %s]", r.Seq, r.Code, r.By, bytesText(int64(r.Length))))
}

// separated puts a gap between parts.
func separated(parts []term.Text) []term.Text {
	out := make([]term.Text, 0, 2*len(parts))
	for i, p := range parts {
		if i > 0 {
			out = append(out, term.Plain("  "))
		}
		out = append(out, p)
	}
	return out
}

// quietFacts are left out of a line: what the reader knows, or can't read.
var quietFacts = []string{"parent_head", "capture", "receipt", "key", "defaults", "not_before", "path_style", "schema", "issuer", "exclude_tmpdir_env_var", "exclude_slash_tmp", "root", "boot"}

// factsText renders facts as name=value.
func factsText(ev *eventlog.Event) string {
	raw, err := ev.Facts.JSON()
	if err != nil {
		return "facts: " + err.Error()
	}
	dec := jsontext.NewDecoder(strings.NewReader(string(raw)))
	if _, err := dec.ReadToken(); err != nil {
		return ""
	}
	var parts []string
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			break
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			break
		}
		if ev.PolicyBearing || strings.HasPrefix(ev.Type, "delegation/") || strings.HasPrefix(ev.Type, "activation/") {
			if slices.Contains(quietFacts, key) {
				continue
			}
		}
		text := string(value)
		if value.Kind() == '"' {
			if plain, err := jsontext.AppendUnquote(nil, value); err == nil {
				text = string(plain)
			}
		}
		if len(text) == 36 && strings.Count(text, "-") == 4 {
			text = text[:8]
		}
		if key == "approvals" && text == string(policy.Never) {
			text += " (" + shortMeaning(policy.Never) + ")"
		}
		parts = append(parts, key+"="+text)
	}
	return strings.Join(parts, " ")
}
