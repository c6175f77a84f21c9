package materialize

import (
	"fmt"

	"childlog/eventlog"
)

// SelfEditField is the configuration field by which a child asks for the tools
// that edit its own prompt.
const SelfEditField = "prompt_block_self_edit"

// Config is the configuration of a child that is about to be built.
type Config interface {
	// Field returns the value of the field as it is kept, nil if there is none.
	// The value is taken literally: only a bool that is true asks for anything.
	// So a configuration that answers every question with something, as the
	// stand-ins of tests do, asks for nothing.
	Field(name string) any
}

// ConfigCopier is a [Config] that can be changed without being changed.
type ConfigCopier interface {
	Config
	// With returns a copy in which the field has the value. The receiver keeps
	// what it has: it may be the configuration of other children, or of the
	// parent itself.
	With(name string, value any) (Config, error)
}

// LockConfig prepares a configuration that the parent is about to build a child
// from. One that does not ask for the tools that edit a child's prompt is
// returned as it is, nil included; of one that asks, a copy that does not.
//
// Errors, all [*LockdownError]: it asks and cannot be copied, the copy still
// asks, the original was changed, or a method panicked. Then there is no
// configuration to build from.
func LockConfig(c Config) (Config, error) {
	asks, err := asksSelfEdit(c)
	if err != nil {
		return nil, err
	}
	if !asks {
		return c, nil
	}
	refused := &LockdownError{Where: WhereConfig, Why: WhyNotCopied}
	from, ok := c.(ConfigCopier)
	if !ok {
		return nil, refused
	}
	var copied Config
	copyErr := guarded(func() (err error) {
		copied, err = from.With(SelfEditField, false)
		return err
	})
	if copyErr != nil || copied == nil {
		return nil, refused
	}
	// What With says is not taken on trust: a copy that shares the field with
	// the original, or ignores the value, is none.
	still, err := asksSelfEdit(copied)
	if err != nil {
		return nil, err
	}
	original, err := asksSelfEdit(c)
	if err != nil {
		return nil, err
	}
	if still || !original {
		return nil, refused
	}
	return copied, nil
}

// asksSelfEdit reports whether the configuration asks for the locked tools.
func asksSelfEdit(c Config) (asks bool, err error) {
	if c == nil {
		return false, nil
	}
	if guarded(func() error {
		asks, _ = c.Field(SelfEditField).(bool)
		return nil
	}) != nil {
		return false, &LockdownError{Where: WhereConfig, Why: WhyPanicked}
	}
	return asks, nil
}

// guarded runs code of a harness. A panic becomes an error that says nothing
// about it: the value may be anything, and printing it may panic again.
func guarded(f func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errPanicked
		}
	}()
	return f()
}

var errPanicked = fmt.Errorf("%w: panicked", eventlog.ErrUnauthorized)

// Why says what is wrong with a child. The strings are stable.
type Why string

// The reasons.
const (
	WhyLockedTool   Why = "locked_tool"   // it holds locked tools
	WhyInvalidName  Why = "invalid_name"  // it lists tools that have no name of [policy.CheckToolName]
	WhySelfEdit     Why = "self_edit"     // its configuration asks for the locked tools
	WhyNotCopied    Why = "not_copied"    // the configuration asks and cannot be copied
	WhyNotInspected Why = "not_inspected" // it cannot be looked into and was not declared foreign
	WhyPanicked     Why = "panicked"      // a method panicked
)

// Where says which part of a child is meant. The strings are stable.
type Where string

// The parts, in the order in which they are looked at.
const (
	WhereTools   Where = "tools"
	WhereConfig  Where = "config"
	WhereWrapped Where = "wrapped" // the list of agents that an agent wraps
)

// LockdownError refuses a child that holds, or may come to hold, a tool by
// which it could edit its own prompt. It unwraps to [eventlog.ErrUnauthorized].
type LockdownError struct {
	Child string // as the caller named it; "" for a configuration alone
	Agent int    // 0: the child itself; n: the nth agent it wraps, from 1
	Where Where
	Why   Why

	// Tools are all tools of that agent that are locked or have no valid name,
	// as it lists them, sorted, each once. Quote them before showing them.
	Tools []string
}

// Error renders child, part, reason and up to eight tools on one line.
func (e *LockdownError) Error() string {
	s := fmt.Sprintf("%v: lockdown: ", eventlog.ErrUnauthorized)
	if e.Child != "" {
		s += fmt.Sprintf("child %+.80q: ", e.Child)
	}
	if e.Agent > 0 {
		s += fmt.Sprintf("wrapped agent %d: ", e.Agent)
	}
	s += string(e.Where) + ": "
	switch e.Why {
	case WhyLockedTool, WhyInvalidName:
		s += "got"
		for i, tool := range e.Tools {
			if i == 8 {
				s += fmt.Sprintf(" and %d more", len(e.Tools)-i)
				break
			}
			s += fmt.Sprintf(" %+.80q", tool)
		}
		if e.Why == WhyLockedTool {
			return s + ", want no tool that a child may not hold"
		}
		return s + ", want names of tools"
	case WhySelfEdit:
		return s + "got " + SelfEditField + " true, want it off"
	case WhyNotCopied:
		return s + "got " + SelfEditField + " true and no copy without it, want one"
	case WhyNotInspected:
		return s + "got nothing to inspect, want it, or the child declared foreign"
	}
	return s + "got a panic, want an answer"
}

// Unwrap returns [eventlog.ErrUnauthorized].
func (e *LockdownError) Unwrap() error { return eventlog.ErrUnauthorized }
