package review

import (
	"fmt"

	"github.com/google/uuid"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// trust says how far the log can be believed.
func (b *builder) trust(check *eventlog.CheckReport, chain []Link) Trust {
	t := Trust{Reasons: []string{}, Findings: []wire.Finding{}, Anchor: b.anchor.done(b.row.Head), Policing: b.policing()}
	because := func(flag *bool, format string, args ...any) {
		*flag = true
		t.Reasons = append(t.Reasons, fmt.Sprintf(format, args...))
	}
	found := uint64(0)
	for _, f := range check.Findings {
		if f.Session != uuid.Nil && f.Session != b.row.Session {
			continue
		}
		if found++; len(t.Findings) < maxFindings {
			t.Findings = append(t.Findings, wire.FindingOf(f))
		} else {
			t.More++
		}
	}
	if found > 0 {
		because(&t.Incomplete, "the check found %s", plural(found, "problem"))
	}
	if check.More > 0 {
		t.More += check.More
		because(&t.Incomplete, "the check found %s more, which may be of this log", plural(check.More, "problem"))
	}
	if b.unread > 0 {
		because(&t.Incomplete, "%s can't be read", plural(b.unread, "event"))
	} else if len(b.holes) > 0 {
		because(&t.Incomplete, "the events do not hang together")
	}
	if b.policyErr != nil {
		because(&t.Incomplete, "the policy can't be read, so nothing may be granted")
	}
	for i := range chain {
		l := &chain[i]
		if i == 0 && l.Claimed {
			if b.row.Evidence {
				because(&t.Claimed, "the log was imported: it is another system's word, and evidence only")
			} else {
				because(&t.Claimed, "it stands for a session outside of this store")
			}
			break
		}
		if l.Claimed {
			because(&t.Claimed, "the authority comes from %s, which is outside of this store or imported", name(&l.Party))
			break
		}
		if !l.Agrees && (i > 0 || b.policyErr == nil) {
			because(&t.Incomplete, "%s: %s", name(&l.Party), l.Note)
		}
	}
	if b.erased.events > 0 || len(b.erased.markers) > 0 {
		because(&t.Redacted, "%s erased, each with a marker", contents(b.erased.events))
	}
	switch {
	case t.Incomplete:
		t.State = StateIncomplete
	case t.Claimed:
		t.State = StateClaimed
	case t.Redacted:
		t.State = StateRedacted
	default:
		t.State = StateVerified
	}
	return t
}

func contents(n uint64) string {
	if n == 1 {
		return "1 content was"
	}
	return grouped(n) + " contents were"
}

// policing says whether the policy was held against the calls.
func (b *builder) policing() Policing {
	c := &b.calls.cov
	of := fmt.Sprintf("%s of %s decided", grouped(c.Decided), plural(c.Calls, "call"))
	switch {
	case b.row.Evidence:
		return Policing{Observed, "imported, " + of + " here"}
	case b.policyErr == nil && !b.policy.Enforced():
		return Policing{Observed, "run outside of the process by " + b.policy.Provider.Name + ", which keeps its own policy; " + of}
	case c.Calls == 0 && c.Decisions == 0:
		return Policing{Enforced, "no call was recorded"}
	case c.Decided == 0:
		return Policing{Observed, of}
	case b.calls.advisory > 0:
		return Policing{Partly, fmt.Sprintf("%s; %s advisory: the harness records and need not obey", of, decisionsAre(b.calls.advisory))}
	case c.Decided < c.Calls:
		return Policing{Partly, of}
	}
	return Policing{Enforced, of + ", as far as the harness obeys"}
}

func decisionsAre(n uint64) string {
	if n == 1 {
		return "1 decision is"
	}
	return grouped(n) + " decisions are"
}
