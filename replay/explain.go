package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// Fields lists the names that Explain takes, in the order in which they are shown.
var Fields = []string{"sandbox", "sandbox.mode", "sandbox.writable_roots", "sandbox.network", "sandbox.exclude_tmpdir_env_var",
	"sandbox.exclude_slash_tmp", "approvals", "bound", "defaults", "depth", "max_depth"}

// Explanation says why a field has its value.
type Explanation struct {
	Session uuid.UUID
	Seq     uint64
	Field   string
	Value   string
	By      policy.Cause // the one event that decided it
	Rule    string       // in words
	Chain   []Step       // from the root down to this session
	Change  string       // what would have to happen for another value
}

// Step is what one session on the way down held when it handed down.
type Step struct {
	Session uuid.UUID
	Label   string
	Seq     uint64 // as of which it was captured; for the last, the explained seq
	Value   string
	By      policy.Cause
	Note    string
}

// Explain tells which event gave a field its value, what each ancestor held
// when it delegated, and what would change it. Errors: ErrInvalid for an
// unknown field (with the list), and those of Policy.
func Explain(ctx context.Context, s *eventlog.Store, session uuid.UUID, field string, at uint64) (Explanation, error) {
	e, err := Policy(ctx, s, session, at)
	if err != nil {
		return Explanation{}, err
	}
	value, by, err := fieldOf(&e, field)
	if err != nil {
		return Explanation{}, err
	}
	x := Explanation{Session: session, Seq: e.Seq, Field: field, Value: value, By: by, Rule: rule(&e, field, by), Change: change(&e, field)}
	x.Chain, err = chain(ctx, s, &e, field)
	return x, err
}

// fieldOf renders one field with its cause.
func fieldOf(e *Effective, field string) (string, policy.Cause, error) {
	v := e.Sandbox.Value.Canonical()
	switch field {
	case "sandbox":
		return v.String(), e.Sandbox.Cause(), nil
	case "sandbox.mode":
		return string(v.Mode), e.Sandbox.Mode, nil
	case "sandbox.writable_roots":
		return rootsText(v), e.Sandbox.Roots, nil
	case "sandbox.network":
		return fmt.Sprint(v.Network), e.Sandbox.Network, nil
	case "sandbox.exclude_tmpdir_env_var":
		return fmt.Sprint(v.ExcludeTmpdirEnvVar), e.Sandbox.ExcludeTmpdirEnvVar, nil
	case "sandbox.exclude_slash_tmp":
		return fmt.Sprint(v.ExcludeSlashTmp), e.Sandbox.ExcludeSlashTmp, nil
	case "approvals":
		return string(e.Approvals), e.ApprovalBy, nil
	case "bound":
		return e.Bound.Value.String(), e.Bound.Cause(), nil
	case "defaults":
		return fmt.Sprintf("sandbox %s, approvals %s", e.Defaults.Sandbox, e.Defaults.Approvals), e.DefaultsBy, nil
	case "depth":
		return fmt.Sprint(e.Depth), e.DefaultsBy, nil
	case "max_depth":
		return fmt.Sprint(e.MaxDepth), e.DefaultsBy, nil
	}
	return "", policy.Cause{}, fmt.Errorf("%w: field %q: want one of %s", eventlog.ErrInvalid, field, strings.Join(Fields, ", "))
}

func rootsText(v policy.Sandbox) string {
	switch list := v.Roots.List(); {
	case v.Mode == policy.DangerFullAccess:
		return "everything"
	case list == nil:
		return "not recorded"
	case len(list) == 0:
		return "nothing"
	default:
		for i, dir := range list { // one path must not read as two
			if strings.ContainsFunc(dir, func(c rune) bool { return !strconv.IsPrint(c) || strings.ContainsRune(` ,"`, c) }) {
				list[i] = strconv.Quote(dir)
			}
		}
		return strings.Join(list, ", ")
	}
}

// rule puts a cause into words.
func rule(e *Effective, field string, by policy.Cause) string {
	where := fmt.Sprintf("seq %d of this log", by.Origin.Seq)
	if by.Origin.Session != e.Session {
		where = by.Origin.String()
	}
	switch {
	case strings.HasSuffix(field, "depth"):
		return "counted from the root at creation, " + where
	case field == "bound" && e.Kind != eventlog.KindChild && by.Source != policy.SourceNarrowing && !e.Evidence:
		return "the top: no narrowing has limited it"
	case field == "defaults" && by.Source == policy.SourceDefault && e.Kind == eventlog.KindChild:
		return "the meet of the parent's recorded default and the one in force at creation, " + where
	case field == "defaults" && by.Source == policy.SourceDefault:
		return "the deployment default in force at creation, " + where
	case by.Source == policy.SourcePin:
		return "every delegation pins approvals to never: never ask, always reject (" + where + ")"
	case by.Source == policy.SourceDelegation:
		return "captured from the parent at the delegation boundary, " + where
	case by.Source == policy.SourceNarrowing:
		return "narrowed by an operator, for ever, " + where
	case by.Source == policy.SourceSwitch:
		return "switched by the session itself within its bound, " + where
	case by.Source == policy.SourceClaimed:
		return "claimed by a parent outside the store, " + where
	case by.Source == policy.SourceImport && by.Origin.Seq == 1:
		return "assumed, since no event of the imported log states it: absence is no permission, and the log is evidence and never authority"
	case by.Source == policy.SourceImport:
		return "stated by an imported log, which is evidence and never authority, " + where
	case by.Source == policy.SourceDefault && e.Kind == eventlog.KindChild:
		return "the parent had no override, so the deployment default recorded at creation counts, " + where
	case by.Source == policy.SourceDefault:
		return "no switch, so the deployment default recorded at creation counts, " + where
	}
	return "set by " + where
}

// change says what would give another value.
func change(e *Effective, field string) string {
	switch {
	case e.Evidence:
		return "nothing: an imported log stays as it is; start a fresh delegation seeded from it"
	case strings.HasSuffix(field, "depth"):
		return "nothing: depth is fixed at creation"
	case field == "defaults":
		return "nothing: the recorded default is fixed at creation; a switch or a delegation overrides it"
	case field == "approvals" && e.Kind == eventlog.KindChild:
		return "nothing can widen it; a child's approvals stay never"
	case field == "approvals":
		return "a switch of this session"
	case field == "bound" && e.Kind == eventlog.KindChild:
		return "less: narrow, for ever; more: only a new delegation from a parent that holds more"
	case field == "bound":
		return "less: narrow, for ever; more: nothing, a narrowing is never undone"
	case e.Kind == eventlog.KindChild:
		return "less: switch within the bound, or narrow; more: only a new delegation from a parent that holds more"
	case e.Bound.Value.Equal(policy.Top()):
		return "a switch of this session, or narrow to bound it for ever"
	}
	return "less: switch or narrow; more: nothing, a narrowing is never undone"
}

// chain walks to the root and shows what each ancestor held at its delegation.
// An ancestor that can't be read ends the walk with a note: the child's own
// value does not depend on it.
func chain(ctx context.Context, s *eventlog.Store, e *Effective, field string) ([]Step, error) {
	var steps []Step
	cur, at := *e, e.Seq
	for {
		value, by, err := fieldOf(&cur, field)
		if err != nil {
			return nil, err
		}
		step := Step{Session: cur.Session, Seq: at, Value: value, By: by}
		if row, err := s.Row(cur.Session); err == nil {
			step.Label = row.Label
		}
		steps = append([]Step{step}, steps...)
		if cur.Parent == uuid.Nil || len(steps) > 1+maxChain {
			return steps, nil
		}
		parent, seq := cur.Parent, cur.ParentSeq
		if cur, err = Policy(ctx, s, parent, seq); err != nil {
			if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				return nil, err
			}
			return append([]Step{{Session: parent, Seq: seq, Note: err.Error()}}, steps...), nil
		}
		at = seq
	}
}

// maxChain is the hard ceiling of depth; a longer chain can't exist.
const maxChain = 8
