package eventlog

import (
	"github.com/google/uuid"

	"childlog/policy"
)

// StoreSession is the id of the store's own session, the same in every store:
// the letters "childlog" as a UUID of version 8. Its log holds what is bound
// to the store and not to one session. It exists from the first such event on.
var StoreSession = uuid.UUID{'c', 'h', 'i', 'l', 'd', 'l', 0x8f, 'g', 0x80, 0, 0, 0, 0, 0, 0, 1}

// KindStore is the kind of the store's own session. It is no agent: nothing is
// delegated from it and it holds no policy of its own.
const KindStore = "store"

// TypeStoreRules replaces the operator rules that are bound to the store. The
// text of the rule file is its content.
const TypeStoreRules = "store/rules"

// StoreRulesFacts encodes store/rules: what the rules deny, without origins,
// since the event itself is their origin.
func StoreRulesFacts(tools, paths []string, by string) (Facts, error) {
	rules, err := policy.NewOperatorRules(policy.Origin{}, tools, paths)
	if err != nil {
		return nil, err
	}
	return storeRulesFacts(rules, by)
}

func storeRulesFacts(rules policy.OperatorRules, by string) (Facts, error) {
	denyTools, denyPaths := []string{}, []string{}
	for _, r := range rules.Entries() {
		if r.Path != "" {
			denyPaths = append(denyPaths, r.Path)
		} else {
			denyTools = append(denyTools, r.Tool)
		}
	}
	digest := rules.Digest()
	return MakeFacts(map[string]any{"digest": Hash(digest), "deny_tools": denyTools, "deny_paths": denyPaths, "by": by})
}

// ParseStoreRules reads store/rules; every rule has the event as its origin.
// Errors: ErrCorrupt with the field.
func ParseStoreRules(ev *Event) (policy.OperatorRules, error) {
	r, err := readFacts(ev)
	if err != nil {
		return policy.OperatorRules{}, err
	}
	rules, err := policy.NewOperatorRules(policy.Origin{Session: ev.Session, Seq: ev.Seq}, r.strs("deny_tools"), r.strs("deny_paths"))
	r.check("deny_tools", err)
	if r.err == nil && r.hash("digest") != rules.Digest() {
		r.fail("digest", "it is not that of the rules")
	}
	return rules, r.err
}

// StoreCreated is the first event of the store's own session.
func StoreCreated() NewEvent {
	c := Created{Kind: KindStore, Root: StoreSession, Mode: ModeContinuable,
		Defaults: policy.Defaults{Sandbox: policy.Sandbox{Mode: policy.ReadOnly}.Canonical(), Approvals: policy.Never}}
	return NewEvent{Type: TypeSessionCreated, Source: SourceStore, Facts: c.Facts()}
}
