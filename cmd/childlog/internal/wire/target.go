package wire

import "childlog/policy"

// Schema names a JSON Schema.
type Schema struct {
	Name  string `json:"name"`
	ID    string `json:"id"`
	Title string `json:"title"`
}

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
