package eventlog

import (
	"fmt"
	"strings"
	"sync"
)

// fieldKind is what a fact's value must be.
type fieldKind uint8

const (
	anInt fieldKind = iota // integer, 0 to 2^53
	aBool                  // true or false
	aCode                  // an enum, a tool name or an opaque id: see isCode
	anID                   // 16 bytes
	aHash                  // 32 bytes
	aPath                  // a policy path: a string
	aMap                   // checked by the typed reader in corefacts.go
	aList                  // likewise
)

// IsCode reports whether s may stand in facts as an opaque id, an enum or a
// name: 1 to 256 letters, digits or _.:/@+#=-. Free text has blanks and belongs
// into the content, where it can be redacted.
func IsCode(s string) bool { return isCode(s) }

// isCode is IsCode for what is not yet a string. A regular expression took ten
// times as long, and a millisecond when a command starts.
func isCode[T string | []byte](s T) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '_', c == '.', c == ':', c == '/', c == '@', c == '+', c == '#', c == '=', c == '-':
		default:
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 256
}

type fieldSpec struct {
	kind     fieldKind
	optional bool
}

// typeSpec is the facts schema of one core type. strict types refuse facts
// they don't name; the harness types accept more, since a harness may know
// more about its turns than this table does.
type typeSpec struct {
	version uint8 // newest schema version this code knows
	policy  bool  // policy-bearing when it is the session's own
	strict  bool
	fields  map[string]fieldSpec
}

func req(kind fieldKind) fieldSpec { return fieldSpec{kind: kind} }
func opt(kind fieldKind) fieldSpec { return fieldSpec{kind: kind, optional: true} }

// coreTypes lists every type this version gives a meaning to. It is made when it is
// first asked for: a command that is handed to another process needs none of it.
var coreTypes = sync.OnceValue(func() map[string]typeSpec {
	return map[string]typeSpec{
		TypeSessionCreated: {version: 1, policy: true, strict: true, fields: map[string]fieldSpec{
			"kind": req(aCode), "parent": opt(anID), "parent_seq": opt(anInt), "parent_head": opt(aHash), "root": req(anID),
			"depth": req(anInt), "max_depth": req(anInt), "external": opt(aMap), "mode": req(aCode), "provider": opt(aMap),
			"workspace_root": opt(aPath), "path_style": opt(aCode), "seed_len": opt(anInt), "defaults": req(aMap), "evidence": opt(aBool)}},
		TypeSessionEndSeed: {version: 1, strict: true},
		TypeSessionSettled: {version: 1, strict: true, fields: map[string]fieldSpec{"outcome": req(aCode), "denials": opt(aMap), "usage": opt(aMap)}},
		TypeSessionClosed:  {version: 1, strict: true, fields: map[string]fieldSpec{"by": req(aCode)}},
		TypeSessionTitled:  {version: 1, strict: true},
		TypeDelegationGranted: {version: ReceiptVersion, policy: true, strict: true, fields: map[string]fieldSpec{
			"schema": req(anInt), "principal": opt(aMap), "issuer": req(aMap), "parent": req(anID), "child": req(anID), "root": req(anID), "depth": req(anInt),
			"max_depth": req(anInt), "parent_receipt": opt(aHash), "parent_seq": req(anInt), "parent_head": req(aHash), "capture": req(aHash),
			"tool_call": opt(aCode), "ceiling": req(aMap), "requested": req(aMap), "granted": req(aMap), "cuts": req(aList), "relied": opt(aList),
			"denied_tools": req(aList), "operator": req(aMap), "lockdown": req(aList), "inspection": opt(aCode), "merge_policy": opt(aCode),
			"sandbox": opt(aMap), "defaults": req(aMap), "approvals": req(aCode), "workspace_root": opt(aPath), "not_before": req(anInt),
			"role": req(aCode), "model": opt(aCode), "provider": opt(aCode), "effort": opt(aCode), "background": req(aBool), "palette": req(aMap),
			"class_table": req(anInt), "seed": opt(aMap), "evidence": req(aMap), "commitments": req(aMap), "fingerprint": req(aHash), "key": opt(aHash)}},
		TypeDelegationStarted: {version: 1, strict: true, fields: map[string]fieldSpec{"child": req(anID), "tool_call": opt(aCode), "receipt": req(aHash)}},
		TypePolicyProfile: {version: 1, policy: true, strict: true, fields: map[string]fieldSpec{"own": req(aMap), "delegable": req(aMap),
			"explicit": req(aList), "denied_tools": req(aList), "principal": opt(aMap), "role": opt(aPath), "model": opt(aCode), "provider": opt(aCode),
			"effort": opt(aCode), "background": req(aBool), "palette": req(aMap), "lockdown": req(aList)}},
		TypeStoreRules: {version: 1, policy: true, strict: true, fields: map[string]fieldSpec{"digest": req(aHash), "deny_tools": req(aList),
			"deny_paths": req(aList), "by": req(aCode)}},
		TypeStoreImported: {version: 1, strict: true, fields: map[string]fieldSpec{"session": req(anID), "store": opt(anID), "head": req(anInt), "hash": req(aHash),
			"tree_size": opt(anInt), "tree_root": opt(aHash), "status": req(aCode), "by": req(aCode)}},
		TypeStoreRollbackAccepted: {version: 1, strict: true, fields: map[string]fieldSpec{"evidence": req(aCode), "origin": req(aCode), "size": req(anInt),
			"root": opt(aHash), "found": req(anInt), "found_root": opt(aHash), "new_origin": req(aCode), "by": req(aCode)}},
		TypePolicyNarrowed: {version: 1, policy: true, strict: true, fields: map[string]fieldSpec{"ceiling": req(aMap), "by": req(aCode)}},
		TypeSandboxMode: {version: 1, policy: true, strict: true, fields: map[string]fieldSpec{
			"mode": req(aCode), "writable_roots": opt(aList), "network": opt(aBool), "exclude_tmpdir_env_var": opt(aBool), "exclude_slash_tmp": opt(aBool),
			"claimed": opt(aCode)}},
		TypeApprovalPolicy: {version: 1, policy: true, strict: true, fields: map[string]fieldSpec{"policy": req(aCode), "claimed": opt(aCode)}},
		TypeApprovalAsked: {version: 1, strict: true, fields: map[string]fieldSpec{"ask": req(aCode), "tool": req(aCode), "call": opt(aCode), "escalation": opt(aMap), "args": opt(aHash),
			"evaluated": opt(anInt), "turn": opt(anInt), "epoch": opt(anInt), "elsewhere": opt(aCode)}},
		TypeApprovalDecided: {version: 1, strict: true, fields: map[string]fieldSpec{"ask": req(aCode), "outcome": req(aCode), "decider": req(aCode), "ref": opt(aCode), "rule": opt(aCode), "origin": opt(aMap)}},
		TypeToolCall:        {version: 1, fields: map[string]fieldSpec{"call": req(aCode), "tool": req(aCode)}},
		TypeToolResult:      {version: 1, fields: map[string]fieldSpec{"call": req(aCode), "outcome": req(aCode)}},
		TypeToolDecision: {version: 1, strict: true, fields: map[string]fieldSpec{"schema": req(anInt), "session": req(anID), "root": req(anID), "epoch": req(anInt),
			"receipt": opt(aHash), "call": req(aCode), "ask": opt(aCode), "classified": opt(aMap), "tool": req(aCode), "canonical": req(aCode), "class": req(aCode), "known": req(aBool),
			"args": req(aMap), "targets": req(aMap), "verdict": req(aCode), "code": req(aCode), "rule": opt(aCode), "origin": req(aMap), "also_denied_by": req(aList),
			"decider": req(aMap), "evaluated_seq": req(anInt), "policy": req(aHash), "evaluated_at": req(anInt), "steps": req(anInt), "engine": req(anInt),
			"objections": req(aMap), "enforcement": req(aCode)}},
		TypeTurnStart:        {version: 1, fields: map[string]fieldSpec{"turn": req(anInt)}},
		TypeTurnEnd:          {version: 1, fields: map[string]fieldSpec{"turn": req(anInt), "reason": opt(aCode)}},
		TypeStepStart:        {version: 1, fields: map[string]fieldSpec{"turn": req(anInt), "step": req(anInt)}},
		TypeStepEnd:          {version: 1, fields: map[string]fieldSpec{"turn": req(anInt), "step": req(anInt), "reason": opt(aCode)}},
		TypeUserMessage:      {version: 1, fields: map[string]fieldSpec{"message": opt(aCode)}},
		TypeAssistantMessage: {version: 1, fields: map[string]fieldSpec{"message": opt(aCode)}},
		TypeUsageRecorded: {version: 1, fields: map[string]fieldSpec{"usage": req(aCode), "model": opt(aCode), "input": opt(anInt), "output": opt(anInt),
			"cache_read": opt(anInt), "cache_write": opt(anInt), "cost_micros": opt(anInt)}},
		TypeHistoryCompacted:  {version: 1, fields: map[string]fieldSpec{"from": req(anInt), "to": req(anInt)}},
		TypeInboxQueued:       {version: 1, strict: true, fields: map[string]fieldSpec{"message": req(anID), "from": opt(anID)}},
		TypeInboxClaimed:      {version: 1, strict: true, fields: map[string]fieldSpec{"messages": req(aList), "epoch": req(anInt)}},
		TypeControlInterrupt:  {version: 1, strict: true, fields: map[string]fieldSpec{"by": req(aCode), "keep_inbox": req(aBool)}},
		TypeActivationStarted: {version: 1, strict: true, fields: map[string]fieldSpec{"epoch": req(anInt), "boot": req(anID)}},
		TypeActivationEnded:   {version: 1, strict: true, fields: map[string]fieldSpec{"epoch": req(anInt), "reason": req(aCode)}},
		TypeNoticeConsumed:    {version: 1, strict: true, fields: map[string]fieldSpec{"child": req(anID), "settled_seq": req(anInt)}},
		TypeContentRedacted:   {version: 1, strict: true, fields: map[string]fieldSpec{"events": req(aList), "code": req(aCode), "basis": opt(aCode), "by": req(aCode), "prev": opt(anInt)}},
		TypeSessionHeld:       {version: 1, strict: true, fields: map[string]fieldSpec{"hold": req(aCode), "state": req(aCode), "code": req(aCode), "basis": opt(aCode), "by": req(aCode), "subtree": opt(aBool)}},
		TypeSessionPurged: {version: 1, strict: true, fields: map[string]fieldSpec{"session": req(anID), "top": req(anID), "kind": req(aCode), "parent": opt(anID), "root": req(anID),
			"evidence": opt(aBool), "head": req(anInt), "hash": req(aHash), "frames": req(anInt), "created": req(anInt), "last": req(anInt), "receipt": opt(aHash), "key": opt(aHash),
			"external": opt(aMap), "relied": opt(aList), "code": req(aCode), "basis": opt(aCode), "by": req(aCode)}},
		TypeImportOther: {version: 1, fields: map[string]fieldSpec{"original": req(aCode)}},
	}
})

// checkFacts validates an event's facts against its type's schema at append.
// Types of open families that this table does not know may state anything
// that is not free text: integers, booleans, codes, and lists and maps of them.
func checkFacts(typ string, facts Facts) error {
	if err := checkLimit("facts in bytes", len(facts), MaxFacts); err != nil {
		return err
	}
	spec, known := coreTypes()[typ]
	if spec.admits(facts) {
		return nil
	}
	return spec.check(typ, known, facts)
}

// check is admits with lists and maps, and with the words for what is wrong.
func (spec *typeSpec) check(typ string, known bool, facts Facts) error {
	m, err := facts.Map()
	if err != nil {
		return err
	}
	for name, f := range spec.fields {
		v, ok := m[name]
		if !ok {
			if !f.optional {
				return invalidf("%s: facts/%s: required", typ, name)
			}
			continue
		}
		if err := f.kind.check(v); err != nil {
			return invalidf("%s: facts/%s: %v", typ, name, err)
		}
	}
	if known && spec.strict {
		for name := range m {
			if _, ok := spec.fields[name]; !ok {
				return invalidf("%s: facts/%s: unknown", typ, name)
			}
		}
		return nil
	}
	for name, v := range m {
		if _, ok := spec.fields[name]; ok {
			continue
		}
		if !isCode(name) {
			return invalidf("%s: facts/%.60q: want a name of letters, digits or _.:/@+#=-", typ, name)
		}
		for field := range spec.fields {
			if strings.EqualFold(field, name) {
				return invalidf("%s: facts/%s: unknown; is it %s?", typ, name, field)
			}
		}
		if err := checkPlain(name, v); err != nil {
			return invalidf("%s: facts/%v", typ, err)
		}
	}
	return nil
}

func (k fieldKind) check(v any) error {
	switch k {
	case anInt:
		if n, ok := v.(int64); !ok || n < 0 {
			return fmt.Errorf("want an integer of 0 or more, got %T", v)
		}
	case aBool:
		if _, ok := v.(bool); !ok {
			return fmt.Errorf("want true or false, got %T", v)
		}
	case aCode:
		if s, ok := v.(string); !ok || !isCode(s) {
			return fmt.Errorf("want a code of 1 to 256 letters, digits or _.:/@+#=- (free text is content), got %.40q", fmt.Sprint(v))
		}
	case anID:
		if b, ok := v.([]byte); !ok || len(b) != 16 {
			return fmt.Errorf("want an id of 16 bytes, got %T", v)
		}
	case aHash:
		if b, ok := v.([]byte); !ok || len(b) != len(Hash{}) {
			return fmt.Errorf("want a hash of 32 bytes, got %T", v)
		}
	case aPath:
		if _, ok := v.(string); !ok {
			return fmt.Errorf("want a path, got %T", v)
		}
	case aMap:
		if _, ok := v.(map[string]any); !ok {
			return fmt.Errorf("want a map, got %T", v)
		}
	case aList:
		if _, ok := v.([]any); !ok {
			return fmt.Errorf("want a list, got %T", v)
		}
	}
	return nil
}

// checkPlain keeps free text out of a harness's own facts.
func checkPlain(path string, v any) error {
	switch v := v.(type) {
	case []byte:
		if len(v) != 16 && len(v) != len(Hash{}) {
			return fmt.Errorf("%s: want an id of 16 bytes or a hash of 32, got %d bytes", path, len(v))
		}
	case string:
		if v != "" && !isCode(v) {
			return fmt.Errorf("%s: want a code of at most 256 letters, digits or _.:/@+#=- (free text is content), got %.40q", path, v)
		}
	case []any:
		for i, e := range v {
			if err := checkPlain(fmt.Sprintf("%s/%d", path, i), e); err != nil {
				return err
			}
		}
	case map[string]any:
		for k, e := range v {
			if !isCode(k) {
				return fmt.Errorf("%s/%.60q: want a name of letters, digits or _.:/@+#=-", path, k)
			}
			if err := checkPlain(path+"/"+k, e); err != nil {
				return err
			}
		}
	}
	return nil
}
