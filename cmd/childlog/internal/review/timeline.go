package review

import (
	"cmp"
	"fmt"
	"slices"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// timeline keeps what bears on who may do what, and counts the rest. Of more
// entries than it may hold it keeps the first half and the last half: how a
// session began and how it ended say more than its middle.
type timeline struct {
	most    int
	first   []Moment
	last    []Moment // a ring
	at      int      // where the ring's next entry goes
	dropped uint64
	other   map[string]uint64
}

func newTimeline(most int) *timeline { return &timeline{most: most, other: map[string]uint64{}} }

func (t *timeline) event(ev *eventlog.Event) {
	text, tone := tell(ev)
	if text == "" {
		t.other[ev.Type]++
		return
	}
	m := Moment{Seq: ev.Seq, Time: wire.Time(ev.Time), Type: ev.Type, Source: ev.Source.String(), Text: text, Tone: tone}
	switch half := t.most / 2; {
	case len(t.first) < t.most-half:
		t.first = append(t.first, m)
	case len(t.last) < half:
		t.last = append(t.last, m)
	case half == 0:
		t.drop(m)
	default:
		t.drop(t.last[t.at])
		t.last[t.at] = m
		t.at = (t.at + 1) % half
	}
}

func (t *timeline) drop(m Moment) {
	t.dropped++
	t.other[m.Type]++
}

func (t *timeline) done(holes []wire.Damage) Timeline {
	out := Timeline{Entries: append([]Moment{}, t.first...), LeftOut: []TypeCount{}, Holes: append([]wire.Damage{}, holes...)}
	last := slices.Concat(t.last[t.at:], t.last[:t.at])
	if len(last) > 0 {
		last[0].Gap = t.dropped
	}
	out.Entries = append(out.Entries, last...)
	for typ, n := range t.other {
		out.LeftOut = append(out.LeftOut, TypeCount{typ, n})
	}
	slices.SortFunc(out.LeftOut, func(a, b TypeCount) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Type, b.Type)) })
	return out
}

// Tones of a moment.
const (
	toneGood = "good"
	toneWarn = "warn"
	toneBad  = "bad"
)

// tell puts an event into words, from its facts alone; "" for one that does not
// belong into a timeline.
func tell(ev *eventlog.Event) (text, tone string) {
	f := ev.Facts
	switch ev.Type {
	case eventlog.TypeSessionCreated:
		return "the session was created", ""
	case eventlog.TypeDelegationGranted:
		if g, err := eventlog.ParseGranted(ev); err == nil {
			return fmt.Sprintf("delegated to it as %s, with %s", g.Choices.Role, plural(uint64(len(g.Cuts)), "cut")), ""
		}
		return "delegated to it; the receipt can't be read", toneBad
	case eventlog.TypePolicyProfile:
		return "the profile of the root was stated", ""
	case eventlog.TypeSandboxMode:
		return sandboxWords(ev)
	case eventlog.TypeApprovalPolicy:
		if a, err := eventlog.ParseApproval(ev); err == nil {
			return "approvals " + a.Meaning(), ""
		}
		return "approvals, which can't be read", toneBad
	case eventlog.TypePolicyNarrowed:
		return "narrowed by " + named(f.Str("by")) + ", for ever", toneWarn
	case eventlog.TypeDelegationStarted:
		return "delegated to " + f.UUID("child").String()[:8], ""
	case eventlog.TypeToolDecision:
		switch verdict := f.Str("verdict"); verdict {
		case string(policy.VerdictAllow):
			return "", ""
		case string(policy.VerdictNeedsApproval):
			return fmt.Sprintf("call %s of tool %s needs an approval", f.Str("call"), f.Str("tool")), toneWarn
		default:
			text := fmt.Sprintf("call %s of tool %s denied: %s", f.Str("call"), f.Str("tool"), f.Str("code"))
			if d, err := eventlog.ParseDecision(ev); err == nil && d.Classified.Why != "" {
				text += " (" + d.Classified.Why + ", says " + d.Classified.By + ")"
			}
			return text, toneBad
		}
	case eventlog.TypeApprovalAsked:
		return fmt.Sprintf("asked about tool %s (ask %s)%s", f.Str("tool"), f.Str("ask"), inHarness(f.Str("elsewhere"))), ""
	case eventlog.TypeApprovalDecided:
		tone := toneWarn
		if f.Str("outcome") == string(eventlog.AskAllowedOnce) {
			tone = toneGood
		}
		if outcome := f.Str("outcome"); outcome == string(eventlog.AskAllowedElsewhere) || f.Str("rule") == replay.RuleNoResult {
			return fmt.Sprintf("ask %s: %s", f.Str("ask"), replay.DecidedWords(ev)), toneWarn
		}
		return fmt.Sprintf("ask %s: %s by %s", f.Str("ask"), f.Str("outcome"), f.Str("decider")), tone
	case eventlog.TypeActivationStarted:
		return fmt.Sprintf("activated, epoch %d", f.Uint("epoch")), ""
	case eventlog.TypeActivationEnded:
		return fmt.Sprintf("activation %d ended: %s", f.Uint("epoch"), f.Str("reason")), ""
	case eventlog.TypeControlInterrupt:
		return "interrupted by " + named(f.Str("by")), toneWarn
	case eventlog.TypeSessionSettled:
		return "settled: " + f.Str("outcome"), toneGood
	case eventlog.TypeSessionClosed:
		return "closed by " + named(f.Str("by")), ""
	case eventlog.TypeContentRedacted:
		return plural(uint64(len(erasedSeqs(ev))), "content") + " erased by " + named(f.Str("by")) + ": " + f.Str("code"), toneWarn
	case eventlog.TypeSessionHeld:
		return fmt.Sprintf("legal hold %s: %s by %s", f.Str("hold"), f.Str("state"), named(f.Str("by"))), toneWarn
	}
	return "", ""
}

func sandboxWords(ev *eventlog.Event) (text, tone string) {
	v, err := eventlog.ParseSandbox(ev)
	if err != nil {
		return "a sandbox that can't be read", toneBad
	}
	what := "the sandbox was set to "
	if ev.Source == eventlog.SourceDelegation || eventlog.Claimed(ev) == eventlog.ClaimedDelegation {
		what = "captured from the parent: "
	}
	return what + v.Canonical().String(), ""
}

func named(by string) string {
	if by == "" {
		return "nobody who is named"
	}
	return by
}

func inHarness(name string) string {
	if name == "" {
		return ""
	}
	return ", which " + name + " puts to its own person"
}
