package guard

import (
	"childlog/cmd/childlog/internal/gitrepo"
	"childlog/cmd/childlog/internal/inspect"
	"childlog/policy"
)

// counts reports whether it makes a difference what a command needs: the shell of
// the session, or a rule that denies raw commands, leaves room for less than full.
func counts(own *policy.Half, tool policy.Tool) bool {
	switch own.Grant.Shell {
	case policy.GrantInspect, policy.GrantVerify:
		return true
	}
	return own.Grant.Shell == policy.GrantFull && len(own.Profile.Denied.Match(tool, policy.GrantFull)) > 0
}

// classified is the verdict of the classifier that comes with childlog on a call of
// a shell tool. Git is held against the repository that it finds as well. In which
// directory a call of Codex runs no hook tells: it may name one beside its command,
// which the input of the hook leaves out (hook_runtime.rs), so there git has to be
// told where its repository is.
func (g *Guard) classified(ev *Event) policy.Classified {
	cwd := ""
	if g.Harness == ClaudeCode {
		cwd = ev.Cwd
	}
	return gitrepo.Verdict(g.Files, inspect.Call(ev.Tool, ev.Args), cwd)
}
