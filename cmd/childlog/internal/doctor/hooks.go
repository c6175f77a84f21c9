package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/install"
)

// programs are what the harnesses are called on the path.
var programs = map[*install.Harness]string{install.ClaudeCode: "claude", install.Codex: "codex"}

// harness looks for a harness, and at its hooks.
func (r *report) harness(ctx context.Context, h *install.Harness) {
	path, version, err := r.o.Which(ctx, programs[h])
	switch {
	case err != nil:
		r.add(h.Name, Warning, path, "", "%v", err)
	case path != "":
		r.add(h.Name, OK, path, "", "%s", version)
	}
	states, err := install.Inspect(h, r.o.Env, r.o.Exe)
	if err != nil {
		r.add(h.Name, Problem, h.Title, "", "%v", err)
		return
	}
	var with, gone []install.State
	var foreign bool
	for _, s := range states {
		switch {
		case s.Err != nil && len(s.Hooks) > 0:
			r.add("hooks", Problem, s.Path, "mend the file as the message says", "%s may drop the file, and with it the guard: %v", h.Title, s.Err)
		case s.Err != nil:
			r.add("hooks", Warning, s.Path, "mend the file as the message says", "%v", s.Err)
		}
		if len(s.Hooks) > 0 {
			with = append(with, s)
		}
		if len(s.Foreign) > 0 {
			foreign = true
			r.add("hooks", Problem, fmt.Sprintf("%s:%d", s.Path, s.Foreign[0].Line), "take that out, and: "+again(h, r.o.Env, s),
				"hooks of %s run a guard in a way that install did not write, so nobody can say whether they block: %s", h.Title, names(s.Foreign))
		}
		if s.Noted && len(s.Hooks)+len(s.Foreign) == 0 && s.Err == nil {
			gone = append(gone, s)
		}
	}
	home, err := h.Home(r.o.Env)
	_, homeErr := os.Stat(home)
	switch {
	case len(with) > 0:
		r.age(h, path, version)
		r.installed(h, with)
	case foreign:
	case len(gone) > 0:
		r.add("hooks", Problem, gone[0].Path, again(h, r.o.Env, gone[0])+"; or childlog uninstall, if it was meant", "the guard was installed here, and its hooks are gone: sessions of %s are neither recorded nor decided", h.Title)
	case path != "" || err == nil && homeErr == nil:
		r.add("hooks", Warning, h.Title, "childlog install "+h.Name, "the guard is not installed: its sessions are neither recorded nor decided")
	default:
		r.add("hooks", OK, h.Title, "", "not here")
	}
}

// installed looks at the hooks that are there.
func (r *report) installed(h *install.Harness, states []install.State) {
	off, err := install.Off(h, r.o.Env)
	switch {
	case off != nil:
		r.add("hooks", Problem, off.Path, "change that setting, or ask who manages it", "%s does not run the hooks: %s", h.Title, off.Setting)
	case err != nil:
		r.add("hooks", Problem, h.Title, "mend the file as the message says", "%v", err)
	}
	if len(states) > 1 {
		r.add("hooks", Warning, states[0].Path, "childlog uninstall "+h.Name+", with --project or without", "the guard is in %s too: every call is decided and recorded twice", states[1].Path)
	}
	for _, s := range states {
		again := again(h, r.o.Env, s)
		before := len(r.list)
		if st, err := os.Stat(s.Path); err == nil && st.Mode().Perm()&0o002 != 0 {
			r.add("hooks", Problem, s.Path, "chmod o-w "+s.Path, "every user may change it, and take the guard out")
		}
		r.events(h, s, again)
		r.commands(s, again)
		if h == install.Codex {
			r.trust(s, again)
		}
		if bad := slices.ContainsFunc(r.list[before:], func(f Finding) bool { return f.Status != OK }); !bad && s.Err == nil && off == nil {
			r.add("hooks", OK, s.Path, "", "%s", describe(h, s))
		}
	}
}

// again is the command that puts the hooks of a file right.
func again(h *install.Harness, e install.Env, s install.State) string {
	if user, err := h.Settings(e, false); err == nil && user != s.Path {
		return "childlog install " + h.Name + " --project"
	}
	return "childlog install " + h.Name
}

// names lists the events of hooks.
func names(hooks []install.Hook) string {
	var out []string
	for _, k := range hooks {
		out = append(out, k.Event)
	}
	return strings.Join(out, ", ")
}

func describe(h *install.Harness, s install.State) string {
	c := s.Hooks[0].Command
	what := "profile " + c.Profile
	if c.Policy != "" {
		what = "policy " + c.Policy
	}
	if c.Observe {
		what += ", and blocks nothing (--observe)"
	}
	return fmt.Sprintf("%s asks the guard at %d events, %s", h.Title, len(s.Hooks), what)
}

// events looks at whether every event is there, and whether the harness waits.
func (r *report) events(h *install.Harness, s install.State, again string) {
	if missing := h.Missing(s.Hooks); len(missing) > 0 {
		st := Warning
		if slices.Contains(missing, "PreToolUse") {
			st = Problem
		}
		r.add("hooks", st, s.Path, again, "no hook for %s", strings.Join(missing, ", "))
	}
	for _, k := range s.Hooks {
		subject := fmt.Sprintf("%s:%d", s.Path, k.Line)
		if !k.MatchesAll {
			r.add("hooks", Problem, subject, again, "the hook of %s is under a matcher, and is not asked about other calls", k.Event)
		}
		if len(k.Added) > 0 {
			st := Warning
			if slices.Contains(k.Added, "async") && install.Blocks(k.Event) {
				st = Problem
			}
			r.add("hooks", st, subject, again, "the hook of %s has %s, which install did not write: %s may pass over it, or not wait for it", k.Event, strings.Join(k.Added, ", "), h.Title)
		}
		if k.FailsOpen && len(k.Added) == 0 {
			r.add("hooks", Warning, subject, again, "the hook of %s does not say onFailure: block: where it can't start or is killed, %s goes on without an answer", k.Event, h.Title)
		}
		if k.Seconds > 0 && k.Seconds <= r.o.GuardSeconds && install.Blocks(k.Event) {
			r.add("hooks", Problem, subject, again, "the hook of %s has a timeout of %d s: want more than %d, after which the guard itself blocks; %s goes on without an answer", k.Event, k.Seconds, r.o.GuardSeconds, h.Title)
		}
	}
}

// commands looks at what the hooks run. Those of one file mostly run the same,
// so each different thing is said once.
func (r *report) commands(s install.State, again string) {
	said := map[string]bool{}
	once := func(st Status, subject, fix, format string, args ...any) {
		text := subject + fmt.Sprintf(format, args...)
		if !said[text] {
			said[text] = true
			r.add("hooks", st, subject, fix, format, args...)
		}
	}
	own, ownErr := os.Stat(r.o.Exe)
	for _, k := range s.Hooks {
		subject := fmt.Sprintf("%s:%d", s.Path, k.Line)
		c := k.Command
		st, err := os.Stat(c.Exe)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			once(Problem, c.Exe, again, "the hooks of %s run it, and it is not there: the harness goes on without a guard", s.Path)
		case err != nil:
			once(Problem, c.Exe, again, "the hooks of %s run it: %v", s.Path, err)
		case !st.Mode().IsRegular() || st.Mode().Perm()&0o111 == 0:
			once(Problem, c.Exe, again, "the hooks of %s run it, and it can't be executed", s.Path)
		case st.Mode().Perm()&0o002 != 0:
			once(Problem, c.Exe, "chmod o-w "+c.Exe, "the hooks of %s run it, and every user may change it", s.Path)
		case ownErr == nil && !os.SameFile(st, own):
			once(Warning, c.Exe, again, "the hooks of %s run it, and this is %s", s.Path, r.o.Exe)
		}
		want := access.Abs(r.o.Place)
		switch {
		case c.Store == "":
			once(Warning, subject, again, "the hook names no store: the environment of a session says which")
		case c.Store != want && !access.Exists(access.Place{Dir: c.Store}):
			once(Problem, c.Store, "childlog --store "+c.Store+" init, or "+again, "the hooks of %s use this store, and it is not there: they block every call", s.Path)
		case c.Store != want:
			once(Warning, c.Store, "childlog --store "+c.Store+" doctor looks at that one; "+again+" changes it", "the hooks of %s use this store, and this is %s", s.Path, want)
		}
		if c.Policy != "" {
			if _, err := os.Stat(c.Policy); err != nil {
				once(Problem, c.Policy, "put it back, or "+again+" --profile", "the hooks of %s name it: %v", s.Path, err)
			}
		}
	}
}

// trust looks at what the person told Codex of the hooks.
func (r *report) trust(s install.State, again string) {
	if strings.HasSuffix(again, "--project") && !install.ProjectTrusted(r.o.Env) {
		r.add("hooks", Warning, s.Path, "start Codex here and trust the project", "Codex reads these hooks only in a project that you trust")
	}
	off, unasked, err := install.Untrusted(r.o.Env, s)
	switch {
	case err != nil:
		r.add("hooks", Warning, s.Path, "", "%v", err)
		return
	case len(off) > 0:
		r.add("hooks", Problem, s.Path, "open /hooks in Codex and enable them", "switched off in Codex: %s", strings.Join(off, ", "))
	}
	if len(unasked) > 0 {
		r.add("hooks", Problem, s.Path, "open /hooks in Codex, look at each and trust it", "Codex passes over hooks that you have not trusted: %s", strings.Join(unasked, ", "))
	}
}
