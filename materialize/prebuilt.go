package materialize

import (
	"slices"

	"childlog/policy"
)

// The interfaces of an agent that a harness has built before it becomes a
// child. An agent implements those it has something to say to. Each method is
// called once for each place that the agent has in the child.

// ToolLister is an agent whose registered tools can be listed.
type ToolLister interface {
	// Tools returns the names of all registered tools, also of those not shown
	// to a model. Nil says that they cannot be listed; an agent without tools
	// returns an empty list that is not nil.
	Tools() []string
}

// Configured is an agent that was built from a configuration, or still reads
// one. Nil is none.
type Configured interface{ Config() Config }

// Wrapper is an agent that runs other agents in its place.
type Wrapper interface {
	// Wrapped returns them; none for nobody. They are looked into like the
	// wrapper, except that one of them may wrap nobody.
	Wrapped() []any
}

// Prebuilt is a child that was built elsewhere.
type Prebuilt struct {
	Name  string // for errors
	Agent any    // see [ToolLister], [Configured], [Wrapper]; nil if there is no object to look at

	// Foreign declares that parts of the child cannot be inspected and that it
	// is used nevertheless: an agent of another process, or of a library that
	// shows no palette. What can be inspected still is, and refuses.
	Foreign bool
}

// Inspected says what is known of one part of a child. The strings are recorded
// in receipts, so they are never renamed or reused. The zero value is none of
// them and stands for a child that was refused.
type Inspected string

// What is known.
const (
	InspectedYes     Inspected = "inspected" // all of it was looked at, and is clean
	InspectedNone    Inspected = "none"      // there is none
	InspectedForeign Inspected = "foreign"   // at least some of it was not looked at; declared so
)

// Inspection says what of a pre-built child was looked at.
type Inspection struct {
	Tools   Inspected `json:"tools"` // never none: no tools is a list too
	Config  Inspected `json:"config"`
	Wrapped Inspected `json:"wrapped"`
}

// Inspect looks into a child that was built before, and refuses it or says what
// was seen. It never changes the child: who built it has its own idea of what
// it holds, and a tool removed from the list may still be there.
//
// It looks at the registered tools first, then at the configuration, then at
// the agents it wraps, each in the same order; the first part that is not clean
// refuses. An agent that wraps further agents inside a wrapper is not looked
// into. What does not show its tools is refused unless the child is declared
// foreign. Having no configuration, or wrapping nobody, needs no word from an
// agent; of one declared foreign silence proves nothing, so there these parts
// are foreign too. A panic and a name that is none refuse a foreign child as
// well: that is not a part that cannot be seen but one that is broken.
//
// It is about the moment it is made. An agent that lists less than it has, or
// registers a tool later, is stopped when it calls that tool and the harness
// asks; see [policy.CodeLockdown].
//
// Errors: [*LockdownError].
func Inspect(l policy.Lockdown, child Prebuilt) (Inspection, error) {
	i := inspector{lockdown: l, child: child.Name, foreign: child.Foreign}
	seen, wrapped, err := i.agent(child.Agent, 0)
	if err != nil {
		return Inspection{}, err
	}
	for n, inner := range wrapped {
		in, further, err := i.agent(inner, n+1)
		if err != nil {
			return Inspection{}, err
		}
		if len(further) > 0 {
			if in.Wrapped, err = i.unseen(n+1, WhereWrapped); err != nil {
				return Inspection{}, err
			}
		}
		if in.Tools == InspectedForeign || in.Config == InspectedForeign || in.Wrapped == InspectedForeign {
			seen.Wrapped = InspectedForeign
		}
	}
	return seen, nil
}

// inspector looks into one child.
type inspector struct {
	lockdown policy.Lockdown
	child    string
	foreign  bool
}

func (i *inspector) refuse(n int, where Where, why Why) *LockdownError {
	return &LockdownError{Child: i.child, Agent: n, Where: where, Why: why}
}

// agent looks at the tools and the configuration of one agent, and asks whom it
// wraps.
func (i *inspector) agent(agent any, n int) (seen Inspection, wrapped []any, err error) {
	if seen.Tools, err = i.tools(agent, n); err != nil {
		return Inspection{}, nil, err
	}
	if seen.Config, err = i.config(agent, n); err != nil {
		return Inspection{}, nil, err
	}
	w, ok := agent.(Wrapper)
	if !ok {
		seen.Wrapped = i.silent()
		return seen, nil, nil
	}
	if guarded(func() error {
		wrapped = slices.Clone(w.Wrapped())
		return nil
	}) != nil {
		return Inspection{}, nil, i.refuse(n, WhereWrapped, WhyPanicked)
	}
	if seen.Wrapped = InspectedYes; len(wrapped) == 0 {
		seen.Wrapped = InspectedNone
	}
	return seen, wrapped, nil
}

func (i *inspector) tools(agent any, n int) (Inspected, error) {
	lister, ok := agent.(ToolLister)
	if !ok {
		return i.unseen(n, WhereTools)
	}
	var names []string
	if guarded(func() error {
		names = slices.Clone(lister.Tools())
		return nil
	}) != nil {
		return "", i.refuse(n, WhereTools, WhyPanicked)
	}
	if names == nil {
		return i.unseen(n, WhereTools)
	}
	hits := slices.DeleteFunc(names, func(name string) bool { return !i.lockdown.Locks(name) })
	if len(hits) == 0 {
		return InspectedYes, nil
	}
	slices.Sort(hits)
	refused := i.refuse(n, WhereTools, WhyInvalidName)
	refused.Tools = slices.Compact(hits)
	if slices.ContainsFunc(hits, func(name string) bool { return policy.CheckToolName(name) == nil }) {
		refused.Why = WhyLockedTool
	}
	return "", refused
}

func (i *inspector) config(agent any, n int) (Inspected, error) {
	from, ok := agent.(Configured)
	if !ok {
		return i.silent(), nil
	}
	var c Config
	asks := false
	err := guarded(func() (err error) {
		c = from.Config()
		asks, err = asksSelfEdit(c)
		return err
	})
	switch {
	case err != nil:
		return "", i.refuse(n, WhereConfig, WhyPanicked)
	case asks:
		return "", i.refuse(n, WhereConfig, WhySelfEdit)
	case c == nil:
		return InspectedNone, nil
	}
	return InspectedYes, nil
}

// unseen is the answer to a part that cannot be looked at.
func (i *inspector) unseen(n int, where Where) (Inspected, error) {
	if i.foreign {
		return InspectedForeign, nil
	}
	return "", i.refuse(n, where, WhyNotInspected)
}

// silent is what is known of a part that the agent has no method for.
func (i *inspector) silent() Inspected {
	if i.foreign {
		return InspectedForeign
	}
	return InspectedNone
}
