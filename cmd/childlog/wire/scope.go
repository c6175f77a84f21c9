package wire

import "childlog/policy"

// Target says whether a target of a call is inside a scope. Resolved is its
// place relative to the workspace: by its text, or where it really leads if the
// file system was asked; null where it has none. Want is what would have been
// accepted, null inside.
type Target struct {
	Target   string    `json:"target"`
	Inside   bool      `json:"inside"`
	Resolved *string   `json:"resolved"`
	Want     *string   `json:"want"`
	Scope    *[]string `json:"scope"` // null: no scope limits
}

// TargetOf prepares the answer about a target.
func TargetOf(target string, scope policy.Scope) Target {
	return Target{Target: target, Scope: stated(scope.Stated(), scope.Entries())}
}

// Refuse says that the target is outside and what would have been accepted.
// resolved is where it leads, "" if that is nowhere.
func (t *Target) Refuse(resolved, want string) {
	t.Inside, t.Resolved, t.Want = false, optional(resolved), &want
}

// Accept says that the target is inside, and where.
func (t *Target) Accept(resolved string) { t.Inside, t.Resolved = true, &resolved }

// MergePlan says how a parent takes over the work of its children.
type MergePlan struct {
	Strategy            string               `json:"strategy"`
	RequiresParentMerge bool                 `json:"requires_parent_merge"`
	ReadOnlyIDs         []string             `json:"read_only_ids"`
	MutatingIDs         []string             `json:"mutating_ids"`
	WriteScopes         map[string]*[]string `json:"write_scopes"` // null: none stated, so anywhere
	ConflictIDs         []string             `json:"conflict_ids"`
	Conflicts           []policy.Overlap     `json:"conflicts"`
}

// MergePlanOf converts a plan.
func MergePlanOf(p policy.MergePlan) MergePlan {
	out := MergePlan{Strategy: p.Strategy, RequiresParentMerge: p.RequiresParentMerge, ReadOnlyIDs: p.ReadOnlyIDs, MutatingIDs: p.MutatingIDs,
		WriteScopes: map[string]*[]string{}, ConflictIDs: p.ConflictIDs, Conflicts: p.Conflicts}
	for id, entries := range p.WriteScopes {
		out.WriteScopes[id] = stated(entries != nil, entries)
	}
	return out
}
