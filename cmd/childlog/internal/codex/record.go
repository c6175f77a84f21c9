package codex

import (
	"bytes"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/internal/importer"
)

// record is a line's object taken apart, each field found in one pass. Values
// point into the line.
type record struct {
	doc            jsontext.Value
	stamp, ordinal jsontext.Value
	meta           jsontext.Value
	typ            string // of the line: response_item, event_msg ...
	sub            string // of its payload
	p              payload
}

// payload is what the types that are understood say.
type payload struct {
	raw, turn                   jsontext.Value
	id, call, name, namespace   jsontext.Value
	role, content, passed, meta jsontext.Value
	arguments, input, output    jsontext.Value
	info, reason, newThread     jsontext.Value
	approval, sandbox, profile  jsontext.Value
	cwd, roots, model           jsontext.Value
}

// known types of a line. Their names stand for themselves, so that a line's
// need not be copied.
var lineTypes = names("session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state", "inter_agent_communication",
	"inter_agent_communication_metadata", "token_usage_record")

// itemTypes are the response items.
var itemTypes = names("message", "reasoning", "local_shell_call", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
	"tool_search_call", "tool_search_output", "web_search_call", "image_generation_call", "ghost_snapshot", "compaction", "compaction_summary", "context_compaction",
	"agent_message", "additional_tools", "other")

// msgTypes are the events that are known to be written.
var msgTypes = names("token_count", "task_started", "task_complete", "turn_started", "turn_complete", "turn_aborted", "user_message", "agent_message", "agent_reasoning",
	"agent_reasoning_raw_content", "agent_reasoning_section_break", "context_compacted", "entered_review_mode", "exited_review_mode", "thread_rolled_back",
	"undo_started", "undo_completed", "error", "warning", "stream_error", "exec_command_begin", "exec_command_end", "patch_apply_begin", "patch_apply_end",
	"mcp_tool_call_begin", "mcp_tool_call_end", "web_search_begin", "web_search_end", "image_generation_begin", "image_generation_end", "view_image_tool_call",
	"dynamic_tool_call_request", "dynamic_tool_call_response", "item_started", "item_completed", "guardian_assessment", "thread_goal_updated",
	"thread_name_updated", "thread_settings_applied", "sub_agent_activity", "collab_agent_spawn_begin", "collab_agent_spawn_end", "collab_agent_interaction_begin",
	"collab_agent_interaction_end", "collab_waiting_begin", "collab_waiting_end", "collab_close_begin", "collab_close_end", "collab_resume_begin", "collab_resume_end",
	"session_configured", "plan_update", "turn_diff", "background_event", "deprecation_notice", "model_reroute", "shutdown_complete")

// names makes a table when it is first asked for.
func names(list ...string) func() map[string]string {
	return sync.OnceValue(func() map[string]string {
		m := make(map[string]string, len(list))
		for _, n := range list {
			m[n] = n
		}
		return m
	})
}

// word is the text of a value, without copying one of the known.
func word(raw jsontext.Value, known map[string]string) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if s, ok := known[string(raw[1:len(raw)-1])]; ok {
		return s
	}
	return importer.Unquote(raw)
}

// open takes a line's object apart. ok is false if no type can be given to it.
func open(doc jsontext.Value) (rec record, ok bool) {
	rec.doc = doc
	var typ, body, old jsontext.Value
	importer.Members(doc, func(key, v jsontext.Value) bool {
		switch string(key) {
		case `"timestamp"`:
			rec.stamp = v
		case `"ordinal"`:
			rec.ordinal = v
		case `"type"`:
			typ = v
		case `"payload"`:
			body = v
		case `"metadata"`:
			rec.meta = v
		case `"record_type"`:
			old = v
		}
		return true
	})
	switch {
	case body != nil:
		if rec.typ = word(typ, lineTypes()); rec.typ == "" {
			return rec, false
		}
		rec.p.read(body, &rec.sub)
	case typ != nil: // of 2025: the item is the line
		rec.p.read(doc, &rec.sub)
		if rec.typ = "response_item"; rec.sub == "" {
			return rec, false
		}
		if _, item := itemTypes()[rec.sub]; !item {
			rec.typ, rec.sub = rec.sub, ""
		}
	case old != nil:
		if rec.sub = word(old, nil); rec.sub == "" {
			return rec, false
		}
		rec.typ = "record_type"
	default:
		return rec, false
	}
	return rec, true
}

func (p *payload) read(raw jsontext.Value, sub *string) {
	p.raw = raw
	importer.Members(raw, func(key, v jsontext.Value) bool {
		switch string(key) {
		case `"type"`:
			if *sub = word(v, itemTypes()); msgTypes()[*sub] != "" {
				*sub = msgTypes()[*sub]
			}
		case `"turn_id"`:
			p.turn = v
		case `"id"`:
			p.id = v
		case `"call_id"`:
			p.call = v
		case `"name"`:
			p.name = v
		case `"namespace"`:
			p.namespace = v
		case `"role"`:
			p.role = v
		case `"content"`:
			p.content = v
		case `"internal_chat_message_metadata_passthrough"`:
			p.passed = v
		case `"metadata"`:
			p.meta = v
		case `"arguments"`:
			p.arguments = v
		case `"input"`:
			p.input = v
		case `"output"`:
			p.output = v
		case `"info"`:
			p.info = v
		case `"reason"`:
			p.reason = v
		case `"new_thread_id"`:
			p.newThread = v
		case `"approval_policy"`:
			p.approval = v
		case `"sandbox_policy"`:
			p.sandbox = v
		case `"permission_profile"`:
			p.profile = v
		case `"cwd"`:
			p.cwd = v
		case `"workspace_roots"`:
			p.roots = v
		case `"model"`:
			p.model = v
		}
		return true
	})
}

// turnID names the turn that a line belongs to, "" if it does not say.
func (r *record) turnID() string {
	for _, v := range []jsontext.Value{r.p.turn, importer.At(r.p.passed, "turn_id"), importer.At(r.p.meta, "turn_id"), importer.At(r.meta, "turn_id")} {
		if id, ok := importer.Text(v); ok && id != "" {
			return importer.Bounded(id)
		}
	}
	return ""
}

// original names a line's type as the fact of import/other.
func (r *record) original() string {
	switch {
	case r.sub == "":
		return r.typ
	case r.typ == "record_type":
		return "record_type/" + r.sub
	}
	return r.typ + "/" + r.sub
}

// unknown reports whether the line is of a type that is not known to be written.
func (r *record) unknown() bool {
	if _, ok := lineTypes()[r.typ]; !ok {
		return r.typ != "record_type"
	}
	switch r.typ {
	case "response_item":
		_, ok := itemTypes()[r.sub]
		return !ok
	case "event_msg":
		_, ok := msgTypes()[r.sub]
		return !ok
	}
	return false
}

// holds reports whether a raw value holds a word, as it stands in JSON.
func holds(raw jsontext.Value, word string) bool { return bytes.Contains(raw, []byte(word)) }
