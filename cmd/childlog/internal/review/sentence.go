package review

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
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
	adopted := ""
	if !b.row.Evidence && b.seed != uuid.Nil && b.seed != b.row.Parent {
		s.AdoptedFrom = wire.ID(b.seed)
		adopted = " It begins with a conversation adopted from evidence " + (*s.AdoptedFrom)[:8] + "."
	}

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
		by = "Imported from " + system(&b.row) + ". " + by
	}
	if !readable {
		s.Text = by + ". What it may do can't be read, so nothing may be granted to it." + adopted
		return s
	}
	then, now := b.delegated(), held(e, e.Sandbox.Value, e.Authority.Own)
	with := " with "
	if e.Evidence {
		with = ", which counts as " // what the log does not state is assumed to be the least
	}
	s.Text = by + as(s.Role) + with + strings.Join(then, ", ") + ", for " + whom(s.Principal) + ", " + term(until, &b.row) + "."
	if now = slices.DeleteFunc(now, func(part string) bool { return slices.Contains(then, part) }); len(now) > 0 {
		s.Text += " By now it has " + strings.Join(now, ", ") + "."
	}
	s.Text += adopted
	return s
}

// delegated is what a child was given, or what a root was made with.
func (b *builder) delegated() []string {
	e := &b.policy
	switch {
	case e.Evidence && e.Kind == eventlog.KindChild:
		return held(e, e.Bound.Value, e.Authority.Own)
	case e.Granted != nil && e.Granted.Sandbox != nil:
		return held(e, *e.Granted.Sandbox, e.Granted.Granted.Own)
	case e.Granted != nil:
		return held(e, e.Granted.Defaults.Sandbox, e.Granted.Granted.Own)
	}
	return held(e, e.Sandbox.Value, e.Authority.Own)
}

// held puts a sandbox and a half into the words that decide most.
func held(e *replay.Effective, sandbox policy.Sandbox, own policy.Half) []string {
	sandbox = sandbox.Canonical()
	network := sandbox.Network
	var parts []string
	if !e.Evidence {
		network = network && own.Grant.Network && own.Profile.Permissions.NetworkInEffect(sandbox)
		if wire.Stated(e) {
			parts = append(parts, writing(own.Grant), "shell "+own.Grant.Shell.String())
		}
	}
	parts = append(parts, "sandbox "+string(sandbox.Mode))
	if network {
		parts = append(parts, "network")
	} else {
		parts = append(parts, "no network")
	}
	approvals := "approvals " + string(e.Approvals)
	if e.Approvals.Effective() == policy.Never {
		approvals += " (never ask, always reject)"
	}
	return append(parts, approvals)
}

// writing is what a grant permits of files.
func writing(g policy.Grant) string {
	switch entries := g.Scope.Entries(); {
	case g.Files != policy.FilesWrite:
		return "files " + g.Files.String()
	case !g.Scope.Stated():
		return "files write"
	case len(entries) == 0:
		return "files read (it may write nowhere)"
	case len(entries) > maxScope:
		return fmt.Sprintf("files write in %q and %s", entries[:maxScope], plural(uint64(len(entries)-maxScope), "further place"))
	default:
		return fmt.Sprintf("files write in %q", entries)
	}
}

// maxScope is how many places a sentence names.
const maxScope = 4

func as(role *string) string {
	if role == nil {
		return ""
	}
	return " as " + *role
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
