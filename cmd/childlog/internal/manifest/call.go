package manifest

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/internal/strict"
	"childlog/eventlog"
	"childlog/policy"
)

// Call is a tool call to be decided, with its final arguments.
type Call struct {
	ID   string // of the call, a code
	Tool string // as the harness sends it, whatever it is: a bad name is for the decision to refuse

	// Args are the arguments, and ArgsJSON their exact bytes, which records
	// commit to.
	Args     map[string]any
	ArgsJSON jsontext.Value

	Verdict    policy.Classified // zero: nobody classified the call
	Found      bool              // the verdict is this side's own, see replay.CallRequest
	Escalation *Escalation       // nil: none asked for
	Ask        string            // an approval of this call to make use of, a code; "": none
}

// Escalation asks for one call under a wider sandbox.
type Escalation struct {
	Sandbox       policy.Setting // resolved in the session's workspace, as the flags of a switch are
	Justification string         // for whoever is asked; free text, so it is content
}

// ParseCall reads a call. The arguments are an object of anything, but strict
// all the same: a key that comes twice, or half a character, would let the
// decision be about another call than the tool's.
func ParseCall(doc []byte) (*Call, error) {
	v, err := strict.Parse(doc, MaxCall)
	if err != nil {
		return nil, err
	}
	c := &Call{}
	err = v.Object(
		field("call", &c.ID, code),
		field("tool", &c.Tool, text),
		strict.Field{Key: "args", Read: c.args},
		field("verdict", &c.Verdict, verdict),
		optional("escalation", &c.Escalation, escalation),
		field("ask", &c.Ask, code),
	)
	if err == nil {
		err = missing(v, "call", c.ID != "")
	}
	if err == nil {
		err = missing(v, "tool", c.Tool != "")
	}
	if err == nil {
		err = missing(v, "args", c.Args != nil)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// classifier reads the name of whoever gave a verdict. Those of childlog's own are
// for what it found itself: a record that names one is held for its word.
var classifier = checked(func(s string) error {
	if strings.HasPrefix(strings.ToLower(s), "childlog-") {
		return fmt.Errorf("%w: %q: names that begin with childlog- are for what childlog found itself (check --classify)", eventlog.ErrInvalid, s)
	}
	return policy.CheckToolName(s)
})

func (c *Call) args(v strict.Value) error {
	if err := v.Want('{'); err != nil {
		return err
	}
	c.ArgsJSON = v.Raw()
	return v.Wrong(json.Unmarshal(c.ArgsJSON, &c.Args))
}

func verdict(v strict.Value) (c policy.Classified, err error) {
	err = v.Object(field("by", &c.By, classifier), field("need", &c.Need, word(policy.GrantInspect, policy.GrantVerify)))
	if err == nil && (c.By == "" || c.Need == "") {
		err = missing(v, "by and need", false)
	}
	return c, err
}

func escalation(v strict.Value) (e Escalation, err error) {
	err = v.Object(field("sandbox", &e.Sandbox, setting), field("justification", &e.Justification, checked(notEmpty)))
	if err == nil && (e.Sandbox.Mode == "" || e.Justification == "") {
		err = missing(v, "sandbox and justification", false)
	}
	return e, err
}

func setting(v strict.Value) (s policy.Setting, err error) {
	err = v.Object(
		field("mode", &s.Mode, word(policy.ReadOnly, policy.WorkspaceWrite, policy.DangerFullAccess)),
		field("writable_roots", &s.WritableRoots, listOf(checked(func(dir string) error {
			_, err := policy.RootsOf(dir)
			return err
		}))),
		optional("network", &s.Network, flag),
		field("exclude_tmpdir_env_var", &s.ExcludeTmpdirEnvVar, flag),
		field("exclude_slash_tmp", &s.ExcludeSlashTmp, flag),
	)
	if err == nil {
		err = missing(v, "mode", s.Mode != "")
	}
	return s, err
}

// Policy returns the call as policy decides it. An escalation is resolved in
// the session's workspace, "" if none is recorded; errors as of
// [policy.Setting.Resolve].
func (c *Call) Policy(workspaceRoot string) (policy.Call, error) {
	p := policy.NewCall(c.ID, c.Tool, c.Args)
	p.Verdict = c.Verdict
	if c.Escalation != nil {
		sandbox, err := c.Escalation.Sandbox.Resolve(workspaceRoot)
		if err != nil {
			return policy.Call{}, err
		}
		p.Escalation = &policy.Escalation{Sandbox: sandbox, Justification: c.Escalation.Justification}
	}
	return p, nil
}
