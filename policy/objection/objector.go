package objection

import (
	"fmt"
	"slices"
	"strings"

	"childlog/policy"
)

// Call is one tool call on its way to being decided.
type Call struct {
	ID   string
	Tool string // as the harness sends it

	// Args is the objector's own copy, never nil, to read and to change. It may
	// be kept; nobody reads it again.
	Args map[string]any
}

// Objection says that a call should not be made.
type Objection struct {
	// Rule is one of the objector's [Objector].Rules; "" is the first of them.
	Rule string

	// Reason is free text for people, cut to [MaxReason] bytes. It may quote
	// the call, so it is content where it is kept.
	Reason string
}

// MaxReason bounds the reason of an objection, bytes.
const MaxReason = 4096

// Objector is one check of a deployment.
type Objector struct {
	// Rules are the names under which it appears in records, of
	// [policy.CheckToolName]. The first is the one for an objection that states
	// none, for a change without a word and for a failure. Without any, the
	// name is that of the called tool.
	Rules []string

	// Tool is the only tool whose calls it sees; "" is every tool. It is
	// compared without regard to letter case, so that BASH does not get past
	// what looks at bash. Aliases of a tool need objectors of their own.
	Tool string

	// Adds names the arguments it may add, so that records can show them. One
	// that the call has already needs no entry.
	Adds []string

	// Object looks at one call and returns nil if it has nothing against it. An
	// objection beside an error counts for nothing. It must not return before
	// what it started has stopped using the call's arguments.
	Object func(Call) (*Objection, error)
}

// check refuses what could not be recorded.
func (o *Objector) check() error {
	if o.Object == nil {
		return fmt.Errorf("%w: got no function, want one", policy.ErrInvalid)
	}
	names := slices.Concat(o.Rules, o.Adds)
	if o.Tool != "" {
		names = append(names, o.Tool)
	}
	for _, n := range names {
		if err := policy.CheckToolName(n); err != nil {
			return fmt.Errorf("rule, tool or argument: %w", err)
		}
	}
	return nil
}

// sees reports whether the objector is asked about calls of the tool.
func (o *Objector) sees(tool string) bool { return o.Tool == "" || strings.EqualFold(o.Tool, tool) }

// rule is the name of the objector for a call of the tool.
func (o *Objector) rule(tool string) string {
	switch {
	case len(o.Rules) > 0:
		return o.Rules[0]
	case policy.CheckToolName(tool) != nil: // a malformed call, and no name to record
		return string(policy.RuleMalformed)
	}
	return tool
}

// ask runs the objector. Neither the error nor what it panicked with is looked
// at: both may quote the call, and their methods may panic in turn.
func (o *Objector) ask(c Call) (said Objection, objects, failed bool, why Why) {
	defer func() {
		if recover() != nil {
			said, objects, failed, why = Objection{}, false, true, WhyPanic
		}
	}()
	answer, err := o.Object(c)
	if err != nil {
		return Objection{}, false, true, WhyError
	}
	if answer == nil {
		return Objection{}, false, false, ""
	}
	return *answer, true, false, ""
}

// Options say what a deployment does beyond the default.
type Options struct {
	// CarryOn lets a call go on to be decided although an objector failed on
	// it. The zero value refuses it: nobody knows what that objector would have
	// said. It covers failures alone, never an objection, and the record of
	// each such call says so.
	CarryOn bool
}

// Sweeper holds the objectors of a deployment. It is immutable, and safe for
// concurrent use if the objectors are.
type Sweeper struct {
	objectors []Objector
	options   Options
}

// New returns the sweeper that asks the objectors in this order. Wrapped
// [policy.ErrInvalid] for one without a function, or for a name that
// [policy.CheckToolName] refuses. Several may have the same rule.
func New(o Options, objectors ...Objector) (*Sweeper, error) {
	s := &Sweeper{options: o, objectors: slices.Clone(objectors)}
	for i := range s.objectors {
		if err := s.objectors[i].check(); err != nil {
			return nil, fmt.Errorf("objector %d: %w", i+1, err)
		}
		s.objectors[i].Rules = slices.Clone(s.objectors[i].Rules)
		s.objectors[i].Adds = slices.Clone(s.objectors[i].Adds)
	}
	return s, nil
}
