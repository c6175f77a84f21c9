package materialize

import (
	"fmt"
	"slices"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// Request describes a child. What it may do is its parent's to hand on: Want
// can only take away from that.
type Request struct {
	ID        uuid.UUID         // uuid.Nil: the store makes one
	Key       string            // idempotency key, unique for the parent; "": none
	Label     string            // content
	Prompt    string            // content
	Mode      string            // eventlog.ModeOneShot or ModeContinuable; "": continuable
	Fork      uint64            // copy the parent's conversation up to this seq of its log; 0: no seed
	Adopt     uuid.UUID         // copy that of this evidence instead, up to Fork, 0 being its head; uuid.Nil: none
	Workspace string            // absolute; "": the parent's. It never moves a captured root
	ToolCall  string            // the parent's call that delegates; a code
	Provider  eventlog.Provider // that runs the child; zero: in this process

	Want     policy.Request // role, permissions, tools, limits and the rest; zero: as much as the parent hands on
	Palette  policy.Palette // tools that the child's manifest declares beside the built-in table
	Lockdown []string       // further block-edit tools of the deployment; see [policy.LockdownTools]

	// Inspection is how a pre-built child was held against the lockdown, as
	// [Inspect] returned it; "": the child is built from this request.
	Inspection string
}

// inProcess is the provider of a child for which none was named.
const inProcess = "in-process"

func (r *Request) normalize() error {
	if r.Mode == "" {
		r.Mode = eventlog.ModeContinuable
	}
	if r.Mode != eventlog.ModeOneShot && r.Mode != eventlog.ModeContinuable {
		return fmt.Errorf("%w: mode %q: want %s or %s", eventlog.ErrInvalid, r.Mode, eventlog.ModeOneShot, eventlog.ModeContinuable)
	}
	if r.Provider.Name == "" && r.Want.Provider != "" {
		r.Provider = eventlog.Provider{Name: r.Want.Provider, InProcess: true}
	}
	if r.Provider.Name == "" {
		r.Provider = eventlog.Provider{Name: inProcess, InProcess: true}
	} else if r.Want.Provider == "" && r.Provider.Name != inProcess {
		r.Want.Provider = r.Provider.Name
	}
	switch {
	case !r.Provider.InProcess && r.Mode != eventlog.ModeOneShot:
		return fmt.Errorf("%w: provider %s runs outside this process and keeps its own policy: one-shot only", eventlog.ErrInvalid, r.Provider.Name)
	case r.Provider.Name != r.Want.Provider && r.Want.Provider != "":
		return fmt.Errorf("%w: provider: the child can't run on %s and ask for %s", eventlog.ErrInvalid, r.Provider.Name, r.Want.Provider)
	}
	if err := checkName("provider", r.Provider.Name); err != nil {
		return err
	}
	for _, name := range r.Lockdown {
		if err := policy.CheckToolName(name); err != nil {
			return fmt.Errorf("lockdown: %w", err)
		}
	}
	if len(r.Key) > maxText {
		return &eventlog.TooLargeError{What: "key in bytes", Limit: maxText, Size: uint64(len(r.Key))}
	}
	return nil
}

// lockdownNames joins the deployment's names of parent and request, sorted.
func lockdownNames(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}
