package policy

// The strategies of a [MergePlan].
const (
	// MergeStrategyReadOnly: no child wrote, there is nothing to merge.
	MergeStrategyReadOnly = "read_only"

	// MergeStrategyTransactional: the parent merges the changes of each
	// mutating child as one transaction.
	MergeStrategyTransactional = "transactional_parent_merge"
)

// MergeResult is one child whose work the parent takes over.
type MergeResult struct {
	ID       string // of the child or the task, opaque, not empty
	Mutating bool   // transactional_write; a read_only child is not
	Scope    Scope  // its write scope; of a child that only reads, none
}

// MergePlan says how a parent takes over the work of its children. Lists of ids
// keep the order of the results, which is the order to merge in; none is null
// in JSON.
type MergePlan struct {
	Strategy            string   `json:"strategy"`
	RequiresParentMerge bool     `json:"requires_parent_merge"` // some child is mutating
	ReadOnlyIDs         []string `json:"read_only_ids"`
	MutatingIDs         []string `json:"mutating_ids"`

	// WriteScopes are the entries by mutating child. The scope of a child for
	// which none was stated is null, which conflicts with everything.
	WriteScopes map[string][]string `json:"write_scopes"`

	// ConflictIDs are the mutating children whose scopes overlap with one
	// another's, and Conflicts how. They cannot be merged without looking:
	// either may have changed what the other relied on.
	ConflictIDs []string  `json:"conflict_ids"`
	Conflicts   []Overlap `json:"conflicts"`
}

// HasConflicts reports whether the scopes of two children overlap.
func (p MergePlan) HasConflicts() bool { return len(p.Conflicts) > 0 }

// PlanMerge returns the plan for the results of siblings. Conflicts are found
// by containment, as by [Claims.Overlaps], so "src" and "src/a" conflict
// although no path is in both lists. Wrapped [ErrInvalid] for an id that is
// empty or comes twice, and for a child that only reads and has a scope to
// write to: which of the two is wrong cannot be told.
func PlanMerge(results []MergeResult) (MergePlan, error) {
	plan := MergePlan{
		Strategy:    MergeStrategyReadOnly,
		ReadOnlyIDs: []string{},
		MutatingIDs: []string{},
		WriteScopes: map[string][]string{},
		ConflictIDs: []string{},
		Conflicts:   []Overlap{},
	}
	claims := make([]Claim, 0, len(results))
	for _, r := range results {
		switch {
		case r.Mutating:
			plan.MutatingIDs = append(plan.MutatingIDs, r.ID)
			plan.WriteScopes[r.ID] = r.Scope.Entries()
			claims = append(claims, Claim{ID: r.ID, Scope: r.Scope})
		case r.Scope.Stated() && !r.Scope.IsEmpty():
			return MergePlan{}, invalid("merge: got write scope %v for %s, which only reads, want none", r.Scope, quoted(r.ID))
		default:
			plan.ReadOnlyIDs = append(plan.ReadOnlyIDs, r.ID)
			claims = append(claims, Claim{ID: r.ID}) // for its id; it claims nothing
		}
	}
	held, err := NewClaims(claims...)
	if err != nil {
		return MergePlan{}, err
	}
	if len(plan.MutatingIDs) > 0 {
		plan.Strategy, plan.RequiresParentMerge = MergeStrategyTransactional, true
	}
	if overlaps := held.Overlaps(); len(overlaps) > 0 {
		plan.Conflicts = overlaps
		conflicting := map[string]bool{}
		for _, o := range overlaps {
			conflicting[o.A], conflicting[o.B] = true, true
		}
		for _, id := range plan.MutatingIDs {
			if conflicting[id] {
				plan.ConflictIDs = append(plan.ConflictIDs, id)
			}
		}
	}
	return plan, nil
}
