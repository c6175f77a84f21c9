package command

import (
	"fmt"

	"childlog/cmd/childlog/internal/gitrepo"
	"childlog/cmd/childlog/internal/inspect"
	"childlog/eventlog"
)

// classified attaches childlog's own verdict to a call, which is about the files
// of whoever runs the command. A call of another tool is judged too, and admitted
// nothing; one that brings a verdict would have two.
func (c *checkRun) classified(one *checked) error {
	if one.call == nil {
		return nil
	}
	if one.call.Verdict.By != "" {
		err := withHint(fmt.Errorf("%w: /verdict: the call brings a verdict, and --classify would attach another one", eventlog.ErrInvalid), "leave out one of them")
		if !c.batch {
			return err
		}
		one.call, one.bad = nil, err
		return nil
	}
	one.call.Verdict, one.call.Found = gitrepo.Verdict(c.files, inspect.Call(one.call.Tool, one.call.Args), ""), true
	return nil
}
