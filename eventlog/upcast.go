package eventlog

import (
	"fmt"
	"sync"
)

// upcasters turn the facts of an older schema version into the next one's.
// They are pure; a field that the old version lacked gets a restrictive
// value. A version that was ever released keeps its upcaster for ever, tested
// by the golden stores in testdata. Version 1 is the first of every type but
// two.
var upcasters = sync.OnceValue(func() map[string]map[uint8]func(map[string]any) map[string]any {
	return map[string]map[uint8]func(map[string]any) map[string]any{
		TypeDelegationGranted: {0: receiptFrom0},
		TypePolicyProfile:     {0: func(map[string]any) map[string]any { return map[string]any{} }}, // halves that permit nothing; no call ever wrote one
	}
})

// receiptFrom0 completes a receipt of the first release, which recorded a
// sandbox and no authority. What such a child was promised beyond reading is
// not known, so it may read and nothing else: no shell, no network of its own,
// no children.
func receiptFrom0(m map[string]any) map[string]any {
	half := map[string]any{"permissions": map[string]any{"write": false, "network": false}, "shell": "none", "denied": []any{},
		"grant": map[string]any{"files": "read", "shell": "none", "network": false, "surface": "evidence", "spawn": false}}
	both := map[string]any{"own": half, "delegable": half}
	m["schema"], m["ceiling"], m["requested"], m["granted"] = int64(1), both, both, both
	m["evidence"] = map[string]any{"granted": EvidenceAbsent}
	return m
}

// upcast brings facts to the newest version this code knows.
func upcast(typ string, version uint8, facts Facts) (Facts, error) {
	spec, ok := coreTypes()[typ]
	if !ok {
		return facts, nil
	}
	if version > spec.version {
		return nil, fmt.Errorf("schema version: newest known %d, got %d", spec.version, version)
	}
	for v := version; v < spec.version; v++ {
		up := upcasters()[typ][v]
		if up == nil {
			return nil, fmt.Errorf("schema version: no way from %d to %d", v, v+1)
		}
		m, err := facts.Map()
		if err != nil {
			return nil, err
		}
		if facts, err = MakeFacts(up(m)); err != nil {
			return nil, err
		}
	}
	return facts, nil
}
