package guard

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"childlog/cmd/childlog/internal/importer"
	"childlog/cmd/childlog/internal/strict"
	"childlog/eventlog"
)

// MaxPayload bounds what is read of a hook's input, bytes. It holds the
// arguments or the result of one call.
const MaxPayload = 32 << 20

// maxName bounds the names and ids of a payload, bytes.
const maxName = 1024

// Event is the input of one hook. Only what a guard uses is kept apart; Raw is
// all of it. Fields that are not known are passed over: they can't widen
// anything, because nothing is granted for a field.
type Event struct {
	Name string // hook_event_name
	Kind Kind
	Raw  []byte // the whole, exact

	Session   string // of the harness; never ""
	Cwd       string
	Turn      string // Codex: turn_id
	Agent     string // "": the session itself acts
	AgentType string

	Tool     string
	Call     string         // tool_use_id as a code, see importer.Code
	Args     map[string]any // of tool_input
	ArgsJSON []byte         // tool_input, exact
	Response []byte         // tool_response, exact JSON; nil: none
	Failure  string         // error of PostToolUseFailure
	Stopped  bool           // is_interrupt: a person stopped the call

	Source string // of SessionStart
	Reason string // of SessionEnd
	Prompt string // of UserPromptSubmit
	Last   string // last_assistant_message
}

// Read reads a payload of at most [MaxPayload] bytes. Errors: ErrTooLarge and
// those of the reader.
func Read(in io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(in, MaxPayload+1))
	if err == nil && len(b) > MaxPayload {
		err = &eventlog.TooLargeError{What: "hook input in bytes", Limit: MaxPayload, Size: uint64(len(b))}
	}
	return b, err
}

// Parse reads a hook's input. It is strict in what a decision could rest on:
// malformed JSON, a key that comes twice at any depth, half a character, a field
// of another type, and an event without its session, its tool, the id of its
// call or its agent are refused. Errors: ErrInvalid, ErrTooLarge.
func Parse(doc []byte) (*Event, error) {
	v, err := strict.Parse(doc, MaxPayload)
	if err != nil {
		return nil, err
	}
	ev := &Event{Raw: doc}
	texts := map[string]*string{
		"hook_event_name": &ev.Name, "session_id": &ev.Session, "cwd": &ev.Cwd, "turn_id": &ev.Turn, "agent_id": &ev.Agent, "agent_type": &ev.AgentType,
		"tool_name": &ev.Tool, "tool_use_id": &ev.Call, "source": &ev.Source, "reason": &ev.Reason, "prompt": &ev.Prompt, "last_assistant_message": &ev.Last,
	}
	err = v.Members(func(key string, value strict.Value) error {
		if dst := texts[key]; dst != nil {
			return text(value, dst)
		}
		switch key {
		case "tool_input":
			return ev.input(value)
		case "tool_response":
			ev.Response = value.Raw()
		case "error": // an object of other events
			if value.Kind() == '"' {
				return text(value, &ev.Failure)
			}
		case "is_interrupt":
			if value.Kind() != 'n' {
				ev.Stopped, err = value.Bool()
			}
			return err
		}
		return nil
	})
	if err == nil {
		err = ev.complete()
	}
	if err != nil {
		return nil, err
	}
	return ev, nil
}

// text reads a string; null is none.
func text(v strict.Value, dst *string) (err error) {
	if v.Kind() != 'n' {
		*dst, err = v.Text()
	}
	return err
}

// input reads the arguments. A tool that takes one text is decided on as if that
// was its argument input, as [policy.CallPaths] wants it.
func (ev *Event) input(v strict.Value) error {
	ev.ArgsJSON = v.Raw()
	if v.Kind() == '{' {
		return v.Wrong(json.Unmarshal(ev.ArgsJSON, &ev.Args))
	}
	var whole any
	if err := json.Unmarshal(ev.ArgsJSON, &whole); err != nil {
		return v.Wrong(err)
	}
	ev.Args = map[string]any{"input": whole}
	return nil
}

// complete refuses an event that lacks what it is about.
func (ev *Event) complete() error {
	of := "" // the event, once it is known which
	if ev.Name != "" {
		of = " of " + ev.Name
	}
	need := func(name, value string) error {
		switch {
		case value == "":
			return fmt.Errorf("%w: hook input%s: want %s, got none", eventlog.ErrInvalid, of, name)
		case len(value) > maxName:
			return fmt.Errorf("%w: hook input: %s: want at most %d bytes, got %d", eventlog.ErrInvalid, name, maxName, len(value))
		}
		return nil
	}
	if err := need("hook_event_name", ev.Name); err != nil {
		return err
	}
	ev.Kind = KindOf(ev.Name)
	if err := need("session_id", ev.Session); err != nil {
		return err
	}
	switch ev.Kind {
	case KindCall, KindPermission, KindResult, KindFailure:
		if err := need("tool_name", ev.Tool); err != nil {
			return err
		}
	}
	switch ev.Kind {
	case KindCall, KindPermission:
		if ev.ArgsJSON == nil {
			return need("tool_input", "")
		}
	}
	switch ev.Kind {
	case KindCall, KindResult, KindFailure:
		if err := need("tool_use_id", ev.Call); err != nil {
			return err
		}
	case KindAgentStart, KindAgentStop:
		if err := need("agent_id", ev.Agent); err != nil {
			return err
		}
	}
	for name, value := range map[string]string{"agent_id": ev.Agent, "agent_type": ev.AgentType, "turn_id": ev.Turn} {
		if len(value) > maxName {
			return need(name, value)
		}
	}
	if ev.Call != "" {
		ev.Call = importer.Code(ev.Call)
	}
	return nil
}
