// Package filter picks sessions and events by what their logs state. The commands
// that list share it, so that a flag means the same in each of them. What is not
// set picks anything; what is set must all hold.
package filter

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"childlog/eventlog"
	"childlog/policy"
)

// Filter is what a user asked for. The zero value picks everything. It is filled
// by flags, then compiled once, and from then on only read.
type Filter struct {
	// Of events.
	Types   []string // family/name, family/*, or *
	Tool    string   // exact or with one trailing *, in any case
	Verdict string
	Code    string
	Decider string
	Text    string // of contents, see [Pattern]; of what names a session, see [Filter.Named]

	// Of events, and of the time in which a session was at work.
	Since, Until string

	// Of sessions.
	Role, Sandbox, Status, Kind string
	Parent, Subtree             string

	since, until time.Time // zero: unbounded; until is excluded
	text         *Pattern
}

// Values that flags take.
var (
	Verdicts = []string{string(policy.VerdictAllow), string(policy.VerdictDeny), string(policy.VerdictNeedsApproval)}
	Deciders = []string{string(eventlog.DeciderRule), string(eventlog.DeciderPin), string(eventlog.DeciderHuman), string(eventlog.DeciderHost)}
	Statuses = []string{eventlog.StatusIdle, eventlog.StatusRunning, eventlog.StatusInterrupted, eventlog.StatusSettled, eventlog.StatusClosed, eventlog.StatusEvidence}
	Kinds    = []string{eventlog.KindRoot, eventlog.KindChild, eventlog.KindStub}
	Modes    = []string{string(policy.ReadOnly), string(policy.WorkspaceWrite), string(policy.DangerFullAccess)}
)

// EventFlags adds the flags that pick events.
func (f *Filter) EventFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.Types, "type", nil, "only events of this type, such as tool/decision or 'policy/*' (may be repeated: any of them)")
	fs.StringVar(&f.Tool, "tool", "", "only calls of this tool, their decisions and results; one trailing * for any ending")
	fs.StringVar(&f.Verdict, "verdict", "", "only decisions with this verdict: "+strings.Join(Verdicts, ", "))
	fs.StringVar(&f.Code, "code", "", "only decisions with this code, such as write_scope_violation")
	fs.StringVar(&f.Decider, "decider", "", "only decisions by this kind: "+strings.Join(Deciders, ", "))
}

// PeriodFlags adds the flags that bound the time.
func (f *Filter) PeriodFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.Since, "since", "", "not before this time: 2026-11-30, 2026-11-30T12:00:00Z, or 36h or 7d ago")
	fs.StringVar(&f.Until, "until", "", "before this time; a date includes that day")
}

// SessionFlags adds the flags that pick sessions.
func (f *Filter) SessionFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.Parent, "parent", "", "only the children of this session")
	fs.StringVar(&f.Subtree, "subtree", "", "only this session and all below it")
	fs.StringVar(&f.Status, "status", "", "only sessions of this status")
	fs.StringVar(&f.Kind, "kind", "", "only sessions of this kind: "+strings.Join(Kinds, ", "))
	fs.StringVar(&f.Role, "role", "", "only sessions that run as this role, or an alias of it")
	fs.StringVar(&f.Sandbox, "sandbox", "", "only sessions whose sandbox is in this mode now")
}

// UsageError says what is wrong with a flag or a text that the user gave.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Compile checks the filter and prepares it. now is what durations count back
// from. Errors are a *UsageError that
// names the flag.
func (f *Filter) Compile(now time.Time) error {
	for _, c := range []struct {
		flag, value string
		values      []string
	}{{"--verdict", f.Verdict, Verdicts}, {"--decider", f.Decider, Deciders}, {"--status", f.Status, Statuses}, {"--kind", f.Kind, Kinds}, {"--sandbox", f.Sandbox, Modes}} {
		if c.value != "" && !slices.Contains(c.values, c.value) {
			return usagef("%s: got %q, want one of %s", c.flag, c.value, strings.Join(c.values, ", "))
		}
	}
	if f.Role != "" {
		role, err := policy.ParseRole(f.Role)
		if err != nil {
			return usagef("--role: %v", err)
		}
		f.Role = string(role)
	}
	for _, t := range f.Types {
		if err := checkGlob(t); err != nil {
			return err
		}
	}
	if strings.Contains(strings.TrimSuffix(f.Tool, "*"), "*") {
		return usagef("--tool: got %q, want a name, or the beginning of one and a *", f.Tool)
	}
	var err error
	if f.since, err = moment("--since", f.Since, now, false); err != nil {
		return err
	}
	if f.until, err = moment("--until", f.Until, now, true); err != nil {
		return err
	}
	if !f.since.IsZero() && !f.until.IsZero() && !f.since.Before(f.until) {
		return usagef("--since %s is not before --until %s", f.Since, f.Until)
	}
	if f.Text != "" {
		f.text, err = NewPattern(f.Text, false)
	}
	return err
}

// checkGlob refuses what can match no type.
func checkGlob(glob string) error {
	typ := glob
	if glob == "*" || strings.HasSuffix(glob, "/*") {
		typ = strings.TrimSuffix(strings.TrimSuffix(glob, "*"), "/") + "/a"
	}
	if glob != "*" && eventlog.CheckType(typ) != nil {
		return usagef("--type: got %q, want a type such as tool/call, or a family as tool/*", glob)
	}
	return nil
}

var days = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9]{1,5})d$`) })

// moment reads a time. A date stands for its beginning, or for the end of that
// day; a duration counts back from now.
func moment(flag, text string, now time.Time, end bool) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		if end {
			t = t.AddDate(0, 0, 1)
		}
		return t, nil
	}
	if m := days().FindStringSubmatch(text); m != nil {
		n, err := strconv.Atoi(m[1])
		if err == nil {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, usagef("%s: got %q, want a time such as 2026-11-30, 2026-11-30T12:00:00Z, 36h or 7d", flag, text)
}

// Within reports whether a time lies in the period. Times are claims.
func (f *Filter) Within(t time.Time) bool {
	return !t.Before(f.since) && (f.until.IsZero() || t.Before(f.until))
}

// Bounded reports whether a period was stated.
func (f *Filter) Bounded() bool { return !f.since.IsZero() || !f.until.IsZero() }

// Period returns the bounds; a zero time is none, and the end is excluded.
func (f *Filter) Period() (since, until time.Time) { return f.since, f.until }

// NeedsPolicy reports whether a session's policy has to be read to pick it.
func (f *Filter) NeedsPolicy() bool { return f.Role != "" || f.Sandbox != "" }

// PicksSessions reports whether there is a session that does not pass, whatever
// the period.
func (f *Filter) PicksSessions() bool {
	return f.Role != "" || f.Sandbox != "" || f.Status != "" || f.Kind != "" || f.Parent != "" || f.Subtree != ""
}

// PicksDecisions reports whether only decisions can pass.
func (f *Filter) PicksDecisions() bool { return f.Verdict != "" || f.Code != "" || f.Decider != "" }

// PicksEvents reports whether anything but the period and the text picks events.
func (f *Filter) PicksEvents() bool { return len(f.Types) > 0 || f.Tool != "" || f.PicksDecisions() }

// PicksAny reports whether there is an event that does not pass.
func (f *Filter) PicksAny() bool { return f.PicksEvents() || f.Bounded() || f.NeedsContents() }

// NeedsContents reports whether contents have to be read to pick an event.
func (f *Filter) NeedsContents() bool { return f.text != nil }
