package guard

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"

	"childlog/cmd/childlog/internal/strict"
	"childlog/eventlog"
)

// Order is what a hook's process hands to the one that holds the store: the
// event, and all that was to be read of files of its own.
type Order struct {
	Harness Harness
	Observe bool
	Profile string // a shipped profile; of a document: ""
	Policy  []byte // the document that the hook names; nil: none
	Project []Project
	Event   []byte // the hook's input, exact
}

// Project is a policy file of the project that an event is of.
type Project struct {
	Path string
	Doc  []byte
	Err  string // why it could not be read; "": it was
}

// FindProject looks for the policy files of the project that cwd lies in; see
// projectFiles. What is wrong with one counts only where a root has to be made.
func FindProject(files Files, home, cwd string) []Project { return projectFiles(files, home, cwd) }

// orderJSON is the first line of an order; the event follows it.
type orderJSON struct {
	Harness string        `json:"harness"`
	Observe bool          `json:"observe,omitempty"`
	Profile string        `json:"profile,omitempty"`
	Policy  []byte        `json:"policy,omitempty"`
	Project []projectJSON `json:"project,omitempty"`
}

type projectJSON struct {
	Path string `json:"path"`
	Doc  []byte `json:"doc,omitempty"`
	Err  []byte `json:"err,omitempty"`
}

// maxOrder bounds the first line of an order, bytes: its documents in base64.
const maxOrder = 1 << 20

// MaxOrder bounds an order, bytes.
const MaxOrder = MaxPayload + maxOrder

// Encode writes an order.
func (o *Order) Encode() ([]byte, error) {
	j := orderJSON{Harness: string(o.Harness), Observe: o.Observe, Profile: o.Profile, Policy: o.Policy}
	for _, p := range o.Project {
		j.Project = append(j.Project, projectJSON{p.Path, p.Doc, []byte(p.Err)})
	}
	b, err := json.Marshal(j)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", eventlog.ErrInvalid, err)
	}
	return append(append(b, '\n'), o.Event...), nil
}

// ParseOrder reads an order. Errors: ErrInvalid, ErrTooLarge.
func ParseOrder(b []byte) (*Order, error) {
	if len(b) > MaxOrder {
		return nil, &eventlog.TooLargeError{What: "order in bytes", Limit: MaxOrder, Size: uint64(len(b))}
	}
	line, event, ok := bytes.Cut(b, []byte{'\n'})
	if !ok {
		return nil, fmt.Errorf("%w: an order is a line and the event", eventlog.ErrInvalid)
	}
	if _, err := strict.Parse(line, maxOrder); err != nil {
		return nil, err
	}
	var j orderJSON
	if err := json.Unmarshal(line, &j, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%w: order: %w", eventlog.ErrInvalid, err)
	}
	h, err := ParseHarness(j.Harness)
	if err != nil {
		return nil, err
	}
	o := &Order{Harness: h, Observe: j.Observe, Profile: j.Profile, Policy: j.Policy, Event: event}
	for _, p := range j.Project {
		o.Project = append(o.Project, Project{p.Path, p.Doc, string(p.Err)})
	}
	return o, nil
}

// Guard is the guard that carries the order out.
func (o *Order) Guard(files Files) (*Guard, error) {
	g := &Guard{Harness: o.Harness, Observe: o.Observe, Project: o.Project, Files: files}
	var err error
	if o.Policy != nil {
		g.Policy, err = ParsePolicy(o.Policy, true)
	} else {
		g.Policy, err = Named(o.Profile)
	}
	return g, err
}

// outcomeJSON is an outcome on its way back.
type outcomeJSON struct {
	Verb    Verb   `json:"verb"`
	Reason  []byte `json:"reason,omitempty"`
	Context []byte `json:"context,omitempty"`
	Notice  []byte `json:"notice,omitempty"`
}

// Encode writes an outcome on a line.
func (o Outcome) Encode() ([]byte, error) {
	b, err := json.Marshal(outcomeJSON{o.Verb, []byte(o.Reason), []byte(o.Context), []byte(o.Notice)})
	return append(b, '\n'), err
}

// ParseOutcome reads an outcome. What is none, or not the whole of one, is an
// error and never silence, which would be leave to go on. Errors: ErrInvalid.
func ParseOutcome(b []byte) (Outcome, error) {
	var j struct {
		Verb    *Verb  `json:"verb"`
		Reason  []byte `json:"reason"`
		Context []byte `json:"context"`
		Notice  []byte `json:"notice"`
	}
	line, ok := bytes.CutSuffix(b, []byte{'\n'})
	if err := json.Unmarshal(line, &j, json.RejectUnknownMembers(true)); err != nil || !ok || j.Verb == nil || *j.Verb > Approve {
		return Outcome{}, fmt.Errorf("%w: the answer of the process that holds the store is not whole: %.80q", eventlog.ErrInvalid, b)
	}
	return Outcome{Verb: *j.Verb, Reason: string(j.Reason), Context: string(j.Context), Notice: string(j.Notice)}, nil
}
