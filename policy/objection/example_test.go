package objection_test

import (
	"fmt"
	"strings"

	"childlog/policy"
	"childlog/policy/objection"
)

// A deployment hides tokens and objects to one command. The final arguments are
// what is decided, and what the tool gets.
func ExampleSweeper_Sweep() {
	s, err := objection.New(objection.Options{},
		objection.Objector{Rules: []string{"hide-token"}, Object: func(c objection.Call) (*objection.Objection, error) {
			if _, ok := c.Args["token"]; ok {
				c.Args["token"] = "[hidden]"
			}
			return nil, nil
		}},
		objection.Objector{Rules: []string{"no-force-push"}, Tool: "bash", Object: func(c objection.Call) (*objection.Objection, error) {
			if command, _ := c.Args["command"].(string); strings.Contains(command, "push --force") {
				return &objection.Objection{Reason: "force pushes need a person"}, nil
			}
			return nil, nil
		}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range s.Sweep([]objection.Call{
		{ID: "1", Tool: "write", Args: map[string]any{"path": "src/a.go", "token": "hunter2"}},
		{ID: "2", Tool: "bash", Args: map[string]any{"command": "git push --force"}},
	}) {
		if o.Refused != "" {
			fmt.Println(o.ID, "refused:", o.Refused, "by", o.By)
			continue
		}
		call := policy.NewCall(o.ID, o.Tool, o.Args)
		fmt.Println(call.ID, "to decide:", call.Paths, o.Args["token"], o.Record.Amendments)
	}

	// Output:
	// 1 to decide: [src/a.go] [hidden] [{hide-token [token]}]
	// 2 refused: objection by no-force-push
}
