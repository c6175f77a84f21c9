package eventlog

import (
	"maps"
	"slices"
)

// TypeInfo describes an event type for people and programs that write events.
// It is a copy; changing it changes nothing.
type TypeInfo struct {
	Type    string
	Version int  // newest schema version this code knows; 0: the schema may still change
	Closed  bool // only childlog's own calls write it, see Writers
	Policy  bool // changes what its session may do
	Strict  bool // facts that are not listed are refused
	Facts   []FactInfo
	Writers []WriterInfo
}

// FactInfo describes one fact.
type FactInfo struct {
	Name     string
	Kind     string // integer, boolean, code, id, hash, path, map or list
	Optional bool
}

// WriterInfo says with which sources an entry point writes a type.
type WriterInfo struct {
	By      string // harness, creation, delegation, operator, runtime, importer, store or eraser
	Sources []string
}

// factNames are what fieldKinds are called.
var factNames = [...]string{anInt: "integer", aBool: "boolean", aCode: "code", anID: "id", aHash: "hash", aPath: "path", aMap: "map", aList: "list"}

// entryNames are what entry points are called, in the order of Entry.
var entryNames = [...]string{entryHarness: "harness", EntryCreate: "creation", EntryDelegation: "delegation", EntryOperator: "operator",
	EntryRuntime: "runtime", EntryImport: "importer", EntryStore: "store", EntryErase: "eraser", entryForeign: "import"}

// Types describes every type to which this version gives a meaning, in the
// order of their names. A harness may add types of open families.
func Types() []TypeInfo {
	var out []TypeInfo
	for _, typ := range slices.Sorted(maps.Keys(coreTypes())) {
		spec := coreTypes()[typ]
		t := TypeInfo{Type: typ, Version: int(spec.version), Closed: IsClosed(typ), Policy: spec.policy, Strict: spec.strict}
		for _, name := range slices.Sorted(maps.Keys(spec.fields)) {
			f := spec.fields[name]
			t.Facts = append(t.Facts, FactInfo{Name: name, Kind: factNames[f.kind], Optional: f.optional})
		}
		for e := range entryNames {
			w := WriterInfo{By: entryNames[e]}
			for src := SourceDelegation; src <= SourceRuntime; src++ {
				if Entry(e).allows(typ, src) {
					w.Sources = append(w.Sources, src.String())
				}
			}
			if len(w.Sources) > 0 {
				t.Writers = append(t.Writers, w)
			}
		}
		out = append(out, t)
	}
	return out
}

// ClosedFamilies lists the families of which a harness writes nothing.
func ClosedFamilies() []string { return slices.Clone(closedFamilies[:]) }
