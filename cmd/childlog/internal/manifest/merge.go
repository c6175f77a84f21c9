package manifest

import (
	"childlog/cmd/childlog/internal/strict"
	"childlog/policy"
)

// ParseMerge reads the results of siblings, a list of {id, merge_policy,
// write_scope}. Without a merge policy a sibling counts as one that writes, and
// without a write scope as one that may write anywhere.
func ParseMerge(doc []byte) ([]policy.MergeResult, error) {
	v, err := strict.Parse(doc, MaxDocument)
	if err != nil {
		return nil, err
	}
	return listOf(mergeResult)(v)
}

func mergeResult(v strict.Value) (policy.MergeResult, error) {
	r := policy.MergeResult{Mutating: true, Scope: policy.Unscoped()}
	var contract policy.MergePolicy
	var entries *[]string
	err := v.Object(
		field("id", &r.ID, checked(notEmpty)),
		field("merge_policy", &contract, word(policy.MergeReadOnly, policy.MergeTransactionalWrite)),
		optional("write_scope", &entries, listOf(checked(entry))),
	)
	switch {
	case err != nil:
	case r.ID == "":
		err = missing(v, "id", false)
	case contract == policy.MergeReadOnly && entries != nil:
		err = v.Bad("want no write_scope with merge_policy %s", contract)
	case contract == policy.MergeReadOnly:
		r.Mutating, r.Scope = false, policy.Scope{}
	case entries != nil:
		// Not held to the sixteen of a declaration: a scope that met others
		// may have more.
		r.Scope, err = policy.ParseScope(*entries)
		err = v.Wrong(err)
	}
	return r, err
}
