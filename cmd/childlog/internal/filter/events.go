package filter

import (
	"strings"

	"childlog/eventlog"
	"childlog/policy"
)

// Events picks the events of one log. It is told of all of them in order, since a
// result names its call and not the tool; it remembers the calls that have no
// result yet.
type Events struct {
	f     *Filter
	tools map[string]string // of open calls
}

// Events begins a log.
func (f *Filter) Events() *Events { return &Events{f: f, tools: map[string]string{}} }

// Match reports whether the filter picks an event, its content included, which
// must have been read if [Filter.NeedsContents]. An erased content never matches.
func (e *Events) Match(ev *eventlog.Event) bool {
	return e.Picks(ev) && (e.f.text == nil || len(ev.Content) > 0 && e.f.text.In(ev.Content, ev.Media == eventlog.MediaJSON))
}

// Picks is Match without the content.
func (e *Events) Picks(ev *eventlog.Event) bool {
	f := e.f
	if f.Tool != "" && !f.named(ev, e.tool(ev)) {
		return false
	}
	return f.Within(ev.Time) && f.typed(ev.Type) && (!f.PicksDecisions() || f.decided(ev))
}

func (f *Filter) typed(typ string) bool {
	if len(f.Types) == 0 {
		return true
	}
	for _, glob := range f.Types {
		family, all := strings.CutSuffix(glob, "*")
		if typ == glob || all && strings.HasPrefix(typ, family) {
			return true
		}
	}
	return false
}

// tool is the tool that an event is about, "" if none.
func (e *Events) tool(ev *eventlog.Event) string {
	switch ev.Type {
	case eventlog.TypeToolCall:
		tool := ev.Facts.Str("tool")
		e.tools[ev.Facts.Str("call")] = tool
		return tool
	case eventlog.TypeToolResult:
		id := ev.Facts.Str("call")
		tool := e.tools[id]
		delete(e.tools, id)
		return tool
	case eventlog.TypeToolDecision, eventlog.TypeApprovalAsked:
		return ev.Facts.Str("tool")
	}
	return ""
}

// named compares names as they were given, and of a decision the canonical one.
func (f *Filter) named(ev *eventlog.Event, tool string) bool {
	if tool != "" && fits(f.Tool, tool) {
		return true
	}
	return ev.Type == eventlog.TypeToolDecision && fits(f.Tool, ev.Facts.Str("canonical"))
}

func fits(pattern, name string) bool {
	if begin, ok := strings.CutSuffix(pattern, "*"); ok {
		return len(name) >= len(begin) && strings.EqualFold(name[:len(begin)], begin)
	}
	return strings.EqualFold(pattern, name)
}

// decided compares the answer that an event records. A rejected question counts
// as a denial, with the code by which a session's denials count it.
func (f *Filter) decided(ev *eventlog.Event) bool {
	verdict, code := "", ""
	switch ev.Type {
	case eventlog.TypeToolDecision:
		verdict, code = ev.Facts.Str("verdict"), ev.Facts.Str("code")
	case eventlog.TypeApprovalDecided:
		verdict, code = string(policy.VerdictDeny), ev.Facts.Str("outcome")
		switch eventlog.AskOutcome(code) {
		case eventlog.AskAllowedOnce, eventlog.AskAllowedElsewhere:
			verdict = string(policy.VerdictAllow)
		case eventlog.AskRejected:
			code = "approval_" + ev.Facts.Str("decider")
		}
	default:
		return false
	}
	return (f.Verdict == "" || f.Verdict == verdict) && (f.Code == "" || f.Code == code) && (f.Decider == "" || f.Decider == DeciderOf(ev))
}

// DeciderOf is who made the decision that an event records, "" if it is none.
func DeciderOf(ev *eventlog.Event) string {
	if ev.Type != eventlog.TypeToolDecision && ev.Type != eventlog.TypeApprovalDecided {
		return ""
	}
	m, err := ev.Facts.Map()
	if err != nil {
		return ""
	}
	switch d := m["decider"].(type) {
	case string:
		return d
	case map[string]any:
		kind, _ := d["kind"].(string) // a fact of another type is no kind
		return kind
	}
	return ""
}
