package review

import (
	"fmt"
	"strconv"
	"time"

	"childlog/cmd/childlog/internal/wire"
	"childlog/eventlog"
	"childlog/policy"
)

// sentence says who delegated what to whom, for which principal, until when.
func (b *builder) sentence(chain []Link) Sentence {
	s := Sentence{Delegate: chain[0].Party}
	if len(chain) > 1 {
		s.Delegator = &chain[1].Party
	}
	e := &b.policy
	readable := b.policyErr == nil
	until := int64(0)
	if readable {
		s.Role = optional(string(e.Choices.Role))
		if !e.Principal.IsZero() {
			s.Principal = &wire.Principal{Kind: e.Principal.Kind, Ref: e.Principal.Ref}
		}
		if !e.Evidence {
			until = e.Authority.Own.Profile.Limits.DeadlineMS
		}
	}
	s.Until = wire.MilliTime(until)

	by := "Nobody delegated to it: " + name(&s.Delegate) + " is a root"
	switch {
	case s.Delegator != nil:
		by = name(s.Delegator) + " delegated to " + name(&s.Delegate)
	case b.row.Kind == eventlog.KindChild:
		by = "Somebody who is not named delegated to " + name(&s.Delegate)
	case b.row.Kind == eventlog.KindStub:
		by = name(&s.Delegate) + " stands for a session outside of this store"
	}
	if b.row.Evidence {
		by = "Imported from " + system(&b.row) + ": " + by
	}
	if !readable {
		s.Text = by + ". What it may do can't be read, so nothing may be granted to it."
		return s
	}
	s.Text = by + b.what() + ", for " + whom(s.Principal) + ", " + term(until, &b.row) + "."
	return s
}

// what is what was delegated, in the words that decide most.
func (b *builder) what() string {
	e := &b.policy
	sandbox := e.Sandbox.Value.Canonical()
	network := "without network"
	if sandbox.Network && (e.Evidence || e.Authority.Own.Grant.Network && e.Authority.Own.Profile.Permissions.NetworkInEffect(sandbox)) {
		network = "with network"
	}
	text := fmt.Sprintf(" with sandbox %s, %s, approvals %s", sandbox.Mode, network, e.Approvals)
	if !e.Evidence && wire.Stated(e) {
		grant := e.Authority.Own.Grant
		role := ""
		if e.Choices.Role != "" {
			role = " as " + string(e.Choices.Role)
		}
		text = fmt.Sprintf("%s with files %s, shell %s, sandbox %s, %s, approvals %s", role, grant.Files, grant.Shell, sandbox.Mode, network, e.Approvals)
	}
	if e.Approvals.Effective() == policy.Never {
		text += " (never ask, always reject)"
	}
	return text
}

func whom(p *wire.Principal) string {
	if p == nil {
		return "a principal that nobody recorded"
	}
	return p.Kind + " " + p.Ref
}

func term(until int64, row *eventlog.Row) string {
	switch {
	case until != 0:
		return "until " + shortTime(time.UnixMilli(min(until, policy.MaxNumber)))
	case row.Evidence:
		return "with no expiry recorded"
	}
	return "without an expiry"
}

// name names a session: its label in quotes, and enough of its id.
func name(p *Party) string {
	short := p.Session[:8]
	if p.Label == "" {
		return p.Kind + " " + short
	}
	return strconv.Quote(p.Label) + " (" + short + ")"
}

func system(row *eventlog.Row) string {
	if row.System == "" {
		return "another system"
	}
	return row.System
}
