package eventlog

import "fmt"

// upcasters turn the facts of an older schema version into the next one's.
// They are pure; a field that the old version lacked gets a restrictive
// value. A version that was ever released keeps its upcaster for ever, tested
// by the golden stores in testdata. Version 1 is the first of every type, so
// the table is empty now; tests fill it.
var upcasters = map[string]map[uint8]func(map[string]any) map[string]any{}

// upcast brings facts to the newest version this code knows.
func upcast(typ string, version uint8, facts Facts) (Facts, error) {
	spec, ok := coreTypes[typ]
	if !ok {
		return facts, nil
	}
	if version > spec.version {
		return nil, fmt.Errorf("schema version: newest known %d, got %d", spec.version, version)
	}
	for v := version; v < spec.version; v++ {
		up := upcasters[typ][v]
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
