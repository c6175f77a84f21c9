package failure

import (
	"errors"
	"fmt"
	"strings"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
)

// fitted fits the hints to what an error says beyond its sentinel.
func fitted(err error, f *Failure) {
	if fe := (*eventlog.FencedError)(nil); errors.As(err, &fe) {
		fenced(fe, f)
	}
	if be := (*eventlog.BackupError)(nil); errors.As(err, &be) {
		f.Hint = "nothing was written; `childlog --store NEW restore " + be.Path + "` makes a store of it"
		f.API = "nothing was written; whoever runs the store makes one of the backup"
	}
	if hint := refusedHint(err); hint != "" {
		f.Hint = hint
		f.API = strings.NewReplacer("`childlog policy`", "policy").Replace(hint)
	}
}

// refusedHint fits the ways in which a delegation is refused; "" for any other
// error. Policy is a command and an operation.
func refusedHint(err error) string {
	if re := (*policy.RefusedError)(nil); errors.As(err, &re) {
		switch re.Rule {
		case policy.RuleSpawn, policy.RuleMaxChildren:
			return "nothing was made; delegate from a session that may, `childlog policy` shows which of its limits stands in the way"
		case policy.RuleCapability:
			return "nothing was made; the parent needs the capability subagents for that contract, or leave the merge policy out"
		case policy.RuleRequest:
			return "nothing was made; the request, its role included, contradicts itself: ask for what goes together, or under another role"
		case policy.RuleProviderList:
			return "nothing was made; name a provider of the list"
		}
		return "nothing was made; ask for less, or delegate from a parent that can hand it on (`childlog policy` shows what it hands on)"
	}
	if ue := (*policy.UnknownRoleError)(nil); errors.As(err, &ue) {
		var names []string
		for _, r := range policy.Roles() {
			names = append(append(names, string(r)), r.Aliases()...)
		}
		return "nothing was written; roles and their other names: " + strings.Join(names, ", ")
	}
	if le := (*materialize.LockdownError)(nil); errors.As(err, &le) {
		return "nothing was made; a child may not hold tools that edit its own prompt: build it without them"
	}
	return ""
}

// fenced: nobody else need hold the session.
func fenced(fe *eventlog.FencedError, f *Failure) {
	switch {
	case fe.Open == 0:
		f.Hint = "leave --epoch out, or begin an activation with `childlog activate` and use its epoch"
		f.API = "leave epoch out, or begin an activation with activate and use its epoch"
	case fe.Got == fe.Open:
		f.Hint = "begin another activation with `childlog activate`, then use its epoch"
		f.API = "begin another activation with activate, then use its epoch"
	case fe.Got > fe.Open:
		f.Hint = fmt.Sprintf("use the epoch that `childlog activate` gave; `childlog show` names the last, %d", fe.Open)
		f.API = fmt.Sprintf("use the epoch that activate gave; show names the last, %d", fe.Open)
	}
}
