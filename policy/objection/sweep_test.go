package objection_test

import (
	"errors"
	"strings"
	"testing"

	"childlog/policy"
	"childlog/policy/objection"

	"github.com/stretchr/testify/require"
)

// One amendment with the rule and the key, and no value anywhere.
func TestCase49_SilentRedaction(t *testing.T) {
	given := args{"command": "login", "password": secret}
	o := one(t, given, silent("redact.password", func(a args) { a["password"] = "[redacted]" }))

	require.Equal(t, `{"id":"c1","tool":"bash","refused":"","by":"","objections":[],`+
		`"record":{"checked":1,"degraded":[],"carried_on":false,"amendments":[{"rule":"redact.password","keys":["password"]}]}}`, encoded(t, o))
	require.Equal(t, args{"command": "login", "password": "[redacted]"}, o.Args)
	require.Equal(t, args{"command": "login", "password": secret}, o.Before)
	require.Equal(t, args{"command": "login", "password": secret}, given)
}

// One that panics is named in degraded, what it had changed is undone, the
// others still run, and the call is refused.
func TestCase49_PanickingObjector(t *testing.T) {
	seen := 0
	o := one(t, args{"command": "ls", "token": secret},
		silent("first", func(a args) { a["command"] = "ls -l" }),
		silent("broken", func(a args) { a["command"] = "rm"; delete(a, "token"); panic(secret) }),
		silent("last", func(a args) {
			seen++
			require.Equal(t, args{"command": "ls -l", "token": secret}, a)
		}))

	require.Equal(t, 1, seen)
	require.Equal(t, objection.Record{Checked: 3, Degraded: degraded("broken", "panic"), Amendments: amended("first", "command")}, o.Record)
	require.Equal(t, args{"command": "ls -l", "token": secret}, o.Args)
	require.Equal(t, policy.Code("objector_degraded"), o.Refused)
	require.Equal(t, "broken", o.By)
	require.NotContains(t, encoded(t, o), secret)
}

// A deployment may carry on without a broken objector. The record says so, for
// the calls that it is about and no others.
func TestCarryOn(t *testing.T) {
	s, err := objection.New(objection.Options{CarryOn: true},
		objection.Objector{Rules: []string{"broken"}, Tool: "bash", Object: func(objection.Call) (*objection.Objection, error) {
			return &objection.Objection{Rule: "broken"}, errors.New(secret)
		}})
	require.NoError(t, err)
	o := s.Sweep([]objection.Call{{Tool: "bash"}, {Tool: "read"}})
	require.Equal(t, objection.Record{Checked: 1, Degraded: degraded("broken", "error"), CarriedOn: true, Amendments: []objection.Amendment{}}, o[0].Record)
	require.Empty(t, o[0].Refused)
	require.Empty(t, o[0].Objections, "what comes beside an error counts for nothing")
	require.Equal(t, objection.Record{Degraded: []objection.Degraded{}, Amendments: []objection.Amendment{}}, o[1].Record)
	require.Empty(t, o[1].Refused)

	// An objection stays one.
	s, err = objection.New(objection.Options{CarryOn: true},
		silent("broken", func(args) { panic(nil) }),
		named("no", func(objection.Call) (*objection.Objection, error) { return &objection.Objection{}, nil }))
	require.NoError(t, err)
	got := s.Sweep([]objection.Call{{Tool: "bash"}})[0]
	require.Equal(t, degraded("broken", "panic"), got.Record.Degraded)
	require.True(t, got.Record.CarriedOn)
	require.Equal(t, policy.Code("objection"), got.Refused)
	require.Equal(t, "no", got.By)
}

// Calls outer, objectors inner: each call is done with before the next.
func TestOrderAndScope(t *testing.T) {
	var order []string
	note := func(name, tool string) objection.Objector {
		return objection.Objector{Rules: []string{name}, Tool: tool, Object: func(c objection.Call) (*objection.Objection, error) {
			order = append(order, name+":"+c.ID)
			return nil, nil
		}}
	}
	s := sweeper(t, note("all", ""), note("shell", "bash"), note("files", "file"))
	o := s.Sweep([]objection.Call{{ID: "1", Tool: "bash"}, {ID: "2", Tool: "file"}, {ID: "3", Tool: "BASH"}, {ID: "4", Tool: "bash2"}, {ID: "5", Tool: "bash"}})
	require.Equal(t, []string{"all:1", "shell:1", "all:2", "files:2", "all:3", "shell:3", "all:4", "all:5", "shell:5"}, order)
	for i, checked := range []int{2, 2, 2, 1, 2} {
		require.Equal(t, checked, o[i].Record.Checked)
		require.Equal(t, string(rune('1'+i)), o[i].ID)
	}
	require.Empty(t, sweeper(t).Sweep(nil))
	require.Equal(t, 0, one(t, nil).Record.Checked)
}

func TestRuleNames(t *testing.T) {
	object := func(rule string) look {
		return func(c objection.Call) (*objection.Objection, error) {
			c.Args["command"] = "changed"
			return &objection.Objection{Rule: rule}, nil
		}
	}
	for name, c := range map[string]struct {
		rules  []string
		tool   string
		stated string
		want   string // of the objection
		why    objection.Why
	}{
		"the first declared":      {[]string{"a", "b"}, "bash", "", "a", ""},
		"one declared":            {[]string{"a", "b"}, "bash", "b", "b", ""},
		"none: the tool's":        {nil, "bash", "", "bash", ""},
		"none, no tool name":      {nil, "ba\u200bsh", "", "invalid_name", ""},
		"not declared":            {[]string{"a"}, "bash", "b", "a", "unknown_rule"},
		"the tool's, undeclared":  {[]string{"a"}, "bash", "bash", "a", "unknown_rule"},
		"a value":                 {nil, "bash", secret, "bash", "unknown_rule"},
		"in another letter case":  {[]string{"a"}, "bash", "A", "a", "unknown_rule"},
		"not even a name":         {[]string{"a"}, "bash", "a b\n", "a", "unknown_rule"},
		"huge":                    {[]string{"a"}, "bash", strings.Repeat("a", 1<<20), "a", "unknown_rule"},
		"huge, no rules declared": {nil, "bash", strings.Repeat("a", 1<<20), "bash", "unknown_rule"},
	} {
		o := sweeper(t, objection.Objector{Rules: c.rules, Object: object(c.stated)}).Sweep([]objection.Call{{Tool: c.tool, Args: args{"command": secret}}})[0]
		require.Equal(t, []objection.Raised{{Rule: c.want}}, o.Objections, name)
		require.Equal(t, policy.Code("objection"), o.Refused, name)
		require.Equal(t, c.want, o.By, name)
		require.NotContains(t, encoded(t, o), secret, name)
		if c.why != "" {
			require.Equal(t, degraded(c.want, c.why), o.Record.Degraded, name)
			require.Empty(t, o.Record.Amendments, name)
			require.Equal(t, args{"command": secret}, o.Args, name)
		} else {
			require.Empty(t, o.Record.Degraded, name)
			require.Equal(t, amended(c.want, "command"), o.Record.Amendments, name)
		}
	}
}

// A reason is for people: bounded, valid, in the outcome, never in its JSON.
func TestReason(t *testing.T) {
	for name, c := range map[string]struct{ reason, want string }{
		"plain":              {secret, secret},
		"as long as may be":  {strings.Repeat("x", 4096), strings.Repeat("x", 4096)},
		"longer":             {strings.Repeat("x", 1<<20), strings.Repeat("x", 4096)},
		"cut in a character": {strings.Repeat("x", 4094) + "€", strings.Repeat("x", 4094)},
		"not UTF-8":          {"a\xffb", "a\uFFFDb"},
		"only continuations": {strings.Repeat("\x80", 5000), "\uFFFD"},
	} {
		o := one(t, nil, named("r", func(objection.Call) (*objection.Objection, error) {
			return &objection.Objection{Reason: c.reason}, nil
		}))
		require.Equal(t, []objection.Raised{{Rule: "r", Reason: c.want}}, o.Objections, name)
		require.Contains(t, encoded(t, o), `"objections":[{"rule":"r"}]`, name)
	}
}

// Nothing an objector keeps has a way into what others see: not the arguments,
// not the objection, and the caller's own maps neither.
func TestNothingIsShared(t *testing.T) {
	var kept []args
	said := &objection.Objection{Rule: "keep", Reason: "as said"}
	given := args{"deep": []any{args{"x": "old"}}}
	o := one(t, given,
		named("keep", func(c objection.Call) (*objection.Objection, error) {
			kept = append(kept, c.Args)
			c.Args["added"] = args{"y": "old"}
			return said, nil
		}),
		silent("later", func(a args) {
			require.Equal(t, args{"y": "old"}, a["added"])
			kept[0]["added"].(args)["y"] = secret
			kept[0]["deep"].([]any)[0].(args)["x"] = secret
			said.Rule, said.Reason = secret, secret
			kept = append(kept, a)
		}))
	kept[1]["deep"].([]any)[0].(args)["x"] = secret
	given["deep"].([]any)[0].(args)["x"] = secret

	require.Equal(t, args{"deep": []any{args{"x": "old"}}}, o.Before)
	require.Equal(t, args{"deep": []any{args{"x": "old"}}, "added": args{"y": "old"}}, o.Args)
	require.Equal(t, []objection.Raised{{Rule: "keep", Reason: "as said"}}, o.Objections)
	o.Args["deep"].([]any)[0].(args)["x"] = "new"
	require.Equal(t, args{"deep": []any{args{"x": "old"}}}, o.Before)

	// Also if nobody changed anything.
	o = one(t, args{"deep": args{"x": "old"}}, silent("look", noop))
	o.Args["deep"].(args)["x"] = "new"
	require.Equal(t, args{"deep": args{"x": "old"}}, o.Before)
}

// Two calls that share a map are two calls, and what an objector does to the
// caller's map while it runs comes too late.
func TestCallsAreReadBeforeAnybodyRuns(t *testing.T) {
	shared := args{"n": 1.0}
	s := sweeper(t, silent("count", func(a args) {
		a["n"] = a["n"].(float64) + 1
		shared["n"] = 40.0
	}))
	o := s.Sweep([]objection.Call{{Args: shared}, {Args: shared}})
	require.Equal(t, args{"n": 2.0}, o[0].Args)
	require.Equal(t, args{"n": 2.0}, o[1].Args)
}

func TestNewRefuses(t *testing.T) {
	fine := func(objection.Call) (*objection.Objection, error) { return nil, nil }
	for name, o := range map[string]objection.Objector{
		"no function":             {Rules: []string{"a"}},
		"a rule that is no name":  {Rules: []string{"a", "b c"}, Object: fine},
		"an empty rule":           {Rules: []string{""}, Object: fine},
		"a huge rule":             {Rules: []string{strings.Repeat("a", 129)}, Object: fine},
		"a tool that is none":     {Tool: "bash ", Object: fine},
		"an argument without one": {Adds: []string{"*"}, Object: fine},
	} {
		_, err := objection.New(objection.Options{}, silent("fine", noop), o)
		require.ErrorIs(t, err, policy.ErrInvalid, name)
		require.ErrorContains(t, err, "objector 2", name)
	}

	rules := []string{"a"}
	s := sweeper(t, objection.Objector{Rules: rules, Object: func(objection.Call) (*objection.Objection, error) {
		return &objection.Objection{}, nil
	}})
	rules[0] = "b"
	require.Equal(t, "a", s.Sweep([]objection.Call{{Tool: "bash"}})[0].By)
}
