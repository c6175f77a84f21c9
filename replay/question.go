package replay

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"childlog/eventlog"
)

// questionContent is the content of approval/asked, media json: everything of
// a question that is free text or may hold a secret. The facts commit to the
// arguments with the salt that lies here. A grant is matched with it, and a
// redaction erases it together with the arguments: what is left in the facts
// can't be tried with a dictionary any more.
type questionContent struct {
	Salt          string         `json:"salt"` // 16 bytes in hex
	Question      string         `json:"question,omitzero"`
	Justification string         `json:"justification,omitzero"`
	Args          jsontext.Value `json:"args,omitzero"` // the last member, byte for byte as given
}

// encodeQuestion writes the content. The arguments are put in by hand: an
// encoder would be free to write them in another form than the one committed to.
func encodeQuestion(salt eventlog.Salt, r *AskRequest) ([]byte, error) {
	c := questionContent{Salt: hex.EncodeToString(salt[:]), Question: r.Question}
	if r.Escalation != nil {
		c.Justification = r.Escalation.Justification
	}
	b, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("%w: question and justification: %w", eventlog.ErrInvalid, err)
	}
	if len(r.Args) == 0 {
		return b, nil
	}
	b = append(b[:len(b)-1], `,"args":`...)
	return append(append(b, r.Args...), '}'), nil
}

// askedSalt reads the salt back. It is gone where the content was redacted.
func askedSalt(ev *eventlog.Event) (salt eventlog.Salt, ok bool) {
	var c questionContent
	if ev.ContentErr != nil || json.Unmarshal(ev.Content, &c) != nil {
		return salt, false
	}
	return parseSalt(c.Salt)
}

// parseSalt reads a salt as contents hold it, in hex.
func parseSalt(text string) (salt eventlog.Salt, ok bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(salt) {
		return salt, false
	}
	return eventlog.Salt(b), true
}

// exactArgs returns the arguments as they are committed to: the bytes given,
// without the blanks around them, which are no part of a JSON value. Two calls
// have equal arguments only if these bytes are equal; another order of keys or
// another way to write a number is another call.
func exactArgs(args []byte) ([]byte, error) {
	args = bytes.Clone(bytes.Trim(args, " \t\r\n"))
	if len(args) == 0 {
		return nil, nil
	}
	if err := eventlog.CheckJSON(args); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	return args, nil
}
