package manifest

import (
	"encoding/base64"
	"strings"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/strict"
	"childlog/eventlog"
)

// ParseEvent reads an event that is to be appended. What JSON readers disagree
// about is refused, but for half characters in a content: the bytes of a content
// are kept as they are.
func ParseEvent(line []byte) (ev eventlog.NewEvent, err error) {
	v, err := strict.Document(line)
	if err != nil {
		return ev, err
	}
	contentKey := ""
	err = v.Members(func(key string, value strict.Value) error {
		if strings.HasPrefix(key, "content") {
			if contentKey != "" {
				return value.Bad("the event has a /%s already; want at most one content", contentKey)
			}
			contentKey = key
		}
		return setField(&ev, key, value)
	})
	if err == nil && ev.Type == "" {
		err = &strict.Error{Path: "/type", Reason: "required"}
	}
	return ev, err
}

// eventKeys are the keys of an event.
var eventKeys = []string{"type", "facts", "content", "content_text", "content_base64", "id", "ignorable"}

// setField takes one member of the object.
func setField(ev *eventlog.NewEvent, key string, value strict.Value) (err error) {
	var text string
	switch key {
	case "type", "id", "content_text", "content_base64":
		if text, err = value.Text(); err != nil {
			return err
		}
	}
	switch key {
	case "type":
		ev.Type = text
		return value.Wrong(eventlog.CheckType(text))
	case "id":
		if ev.ID, err = uuid.Parse(text); err != nil || len(text) != 36 || ev.ID == uuid.Nil {
			return value.Bad("got %.60q, want a UUID", text)
		}
	case "facts":
		if err := value.Want('{'); err != nil {
			return err
		}
		ev.Facts, err = eventlog.FactsFromJSON(value.Raw())
		return value.Wrong(err)
	case "ignorable":
		ev.Ignorable, err = value.Bool()
		return err
	case "content":
		ev.Media, ev.Content = eventlog.MediaJSON, value.Raw()
		if value.MaybeSurrogates() { // the decoder could not compare its keys
			return value.Wrong(eventlog.CheckJSON(ev.Content))
		}
	case "content_text":
		ev.Media, ev.Content = eventlog.MediaText, []byte(text)
	case "content_base64":
		ev.Media = eventlog.MediaOctets
		if ev.Content, err = base64.StdEncoding.Strict().DecodeString(text); err != nil {
			return value.Bad("%v", err)
		}
	default:
		return value.Unknown(key, eventKeys)
	}
	return nil
}
