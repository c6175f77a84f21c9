package manifest

import (
	"childlog/cmd/childlog/internal/strict"
	"childlog/policy"
)

// wishFields are the keys of a wish. leastDepth is 0 or 1: in a request a depth
// of 0 is a depth, too little for any child; elsewhere it would be no limit.
func wishFields(w *policy.Wish, leastDepth int64) []strict.Field {
	return []strict.Field{
		optional("permissions", &w.Permissions, permissions),
		optional("shell", &w.Shell, word(policy.ShellNone, policy.ShellReadOnly, policy.ShellFull)),
		field("tools", &w.Tools, tools),
		field("denied_tools", &w.DeniedTools, listOf(pattern)),
		optional("deadline", &w.DeadlineMS, millis),
		optional("max_steps", &w.MaxSteps, integer[uint64](0, policy.MaxNumber)),
		optional("max_depth", &w.MaxDepth, integer[int](leastDepth, policy.HardMaxDepth)),
		optional("max_children", &w.MaxChildren, integer[int](0, policy.MaxNumber)),
		optional("spawn", &w.Spawn, flag),
		field("providers", &w.Providers, nameSet),
		field("capabilities", &w.Capabilities, nameSet),
		optional("write_scope", &w.WriteScope, listOf(checked(entry))),
	}
}

// permissions reads what is wished for beyond reading. They are stated
// together: of the two, one that is left out is not wished for.
func permissions(v strict.Value) (p policy.Permissions, err error) {
	err = v.Object(field("write", &p.Write, flag), field("network", &p.Network, flag))
	return p, err
}

// tools keeps null and the empty list apart; a missing key never comes here.
func tools(v strict.Value) (policy.Tools, error) {
	if v.IsNull() {
		return policy.ToolsNull(), nil
	}
	names, err := listOf(name)(v)
	if err != nil {
		return policy.Tools{}, err
	}
	t, err := policy.ToolsList(names...)
	return t, v.Wrong(err)
}

func nameSet(v strict.Value) (policy.NameSet, error) {
	names, err := listOf(name)(v)
	if err != nil {
		return policy.NameSet{}, err
	}
	s, err := policy.NameSetOf(names...)
	return s, v.Wrong(err)
}

// pattern reads a deny pattern.
var pattern = checked(func(s string) error {
	_, err := policy.NewDenyList(policy.DenyRequest, policy.Origin{}, s)
	return err
})

// entry checks a place of a write scope. How many there may be, and whether
// there may be any, is the contract's to say.
func entry(s string) error {
	_, err := policy.NormalizeEntry(s)
	return err
}

// scopeAt is where the write scope of an object is spoken of: there, or in the
// object that should have one.
func scopeAt(object, scope strict.Value, w policy.Wish) strict.Value {
	if w.WriteScope != nil {
		return scope
	}
	return object
}

// noted keeps the place of a key.
func noted(f strict.Field, at *strict.Value) strict.Field {
	return strict.Field{Key: f.Key, Read: func(v strict.Value) error {
		*at = v
		return f.Read(v)
	}}
}

// noting does so for one of several fields.
func noting(fields []strict.Field, key string, at *strict.Value) []strict.Field {
	for i, f := range fields {
		if f.Key == key {
			fields[i] = noted(f, at)
		}
	}
	return fields
}

// explicitGrants reads the terms of a delegable half. Their issuer is for the
// event that will hold them.
func explicitGrants(v strict.Value) ([]policy.ExplicitGrant, error) {
	seen := map[string]bool{}
	return listUpTo(maxExplicit, func(v strict.Value) (g policy.ExplicitGrant, err error) {
		err = v.Object(
			field("id", &g.ID, name),
			field("expires", &g.ExpiresMS, millis),
			// Not from 0, which would read as none left and mean any number.
			field("uses", &g.Uses, integer[uint64](1, policy.MaxNumber)),
		)
		switch {
		case err != nil:
		case g.ID == "":
			err = missing(v, "id", false)
		case seen[g.ID]:
			err = v.Bad("got grant %s twice, want each id once", g.ID)
		}
		seen[g.ID] = true
		return g, err
	})(v)
}
