package review

import (
	"fmt"
	"time"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// Codes of exceptions, in the order in which they are shown. They are stable:
// never renamed and never reused.
const (
	Widened                 = "widened"
	Unpinned                = "unpinned"
	ExecutedAfterDeny       = "executed_after_deny"
	ExecutedWithoutDecision = "executed_without_decision"
	Drift                   = "drift"
	UnansweredAsk           = "unanswered_ask"
	InFlight                = "in_flight_at_revocation"
	NoExpiry                = "no_expiry"
	DegradedObjector        = "degraded_objector"
	ForeignValue            = "foreign_value"
)

// kinds says of each code what is looked for, and the sentence about what was
// found. A sentence has one %s, for the number of places.
var kinds = []struct{ code, title, one, text string }{
	{Widened, "a policy wider than its delegation",
		"1 policy event is wider than the delegation; the narrower value counts", "%s policy events are wider than the delegation; the narrower value counts"},
	{Unpinned, "a child without the approval pin",
		"the delegation did not pin approvals to never; never is assumed", "%s delegations did not pin approvals to never; never is assumed"},
	{ExecutedAfterDeny, "a call that was denied and has a result",
		"1 call has a result although it was not allowed", "%s calls have a result although they were not allowed"},
	{ExecutedWithoutDecision, "a call that nobody decided and has a result",
		"1 call has a result and no decision", "%s calls have a result and no decision"},
	{Drift, "a parent, or rules of the store, that differ from what was handed down",
		"1 difference from what was handed down", "%s differences from what was handed down"},
	{UnansweredAsk, "a question that nobody answered",
		"1 question has no answer", "%s questions have no answer"},
	{InFlight, "a call that was under way when rights were taken away",
		"1 call was under way when rights were taken away", "%s calls were under way when rights were taken away"},
	{NoExpiry, "a delegation without an expiry",
		"the delegation has no expiry", "%s delegations have no expiry"},
	{DegradedObjector, "a decision for which an objector failed",
		"an objector failed for 1 decision", "an objector failed for %s decisions"},
	{ForeignValue, "a policy value of another system",
		"1 policy value is of another system and counts as the narrower", "%s policy values are of another system and count as the narrower"},
}

// Codes lists the codes of exceptions in the order in which they are shown.
func Codes() []string {
	out := make([]string, len(kinds))
	for i, k := range kinds {
		out[i] = k.code
	}
	return out
}

// Title says in a few words what is looked for under a code.
func Title(code string) string {
	for _, k := range kinds {
		if k.code == code {
			return k.title
		}
	}
	return code
}

// exceptions collects what was found.
type exceptions struct {
	most   int // places kept of a kind
	places map[string][]Place
	more   map[string]uint64
	unrun  map[string]string // why the check of a code was not run
}

func newExceptions(most int) *exceptions {
	return &exceptions{most: most, places: map[string][]Place{}, more: map[string]uint64{}, unrun: map[string]string{}}
}

func (x *exceptions) add(code string, p Place) {
	if len(x.places[code]) >= x.most {
		x.more[code]++
		return
	}
	x.places[code] = append(x.places[code], p)
}

// skip notes that a check can't be made.
func (x *exceptions) skip(why string, codes ...string) {
	for _, c := range codes {
		x.unrun[c] = why
	}
}

// list returns what was found and what was looked for, both in the fixed order.
func (x *exceptions) list() (found []Exception, checks []Check) {
	found, checks = []Exception{}, []Check{}
	for _, k := range kinds {
		why, skipped := x.unrun[k.code]
		checks = append(checks, Check{Code: k.code, Title: k.title, Run: !skipped, Why: why})
		n := uint64(len(x.places[k.code])) + x.more[k.code]
		if n == 0 {
			continue
		}
		text := k.one
		if n > 1 {
			text = fmt.Sprintf(k.text, grouped(n))
		}
		found = append(found, Exception{Code: k.code, Text: text, Count: n, Places: x.places[k.code], More: x.more[k.code]})
	}
	return found, checks
}

// placeOf is the place of an event.
func placeOf(ev *eventlog.Event, detail string) Place {
	return Place{Seq: ev.Seq, Time: timeText(ev.Time), Detail: detail}
}

func timeText(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := wire.Time(t)
	return &s
}

// grouped writes a number in groups of three digits.
func grouped(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural counts a regular noun.
func plural(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(n) + " " + what + "s"
}
