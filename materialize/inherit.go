package materialize

import (
	"slices"
	"strings"

	"childlog/policy"
)

// fieldWorkspace names the workspace root in a refusal.
const fieldWorkspace = "workspace_root"

// inherit holds the request to what its parent's authority is stated in: the
// workspace that relative places are counted from, and the classes of tools.
// With either changed the same words would permit something else.
//
// Errors: a *policy.RefusedError: another workspace under a write scope or a
// closed place of the parent's; ErrInvalid: a tool that the parent's tree knows
// as of another class.
func (b *builder) inherit(d policy.Derived) error {
	if from := b.c.WorkspaceRoot(); b.root != from {
		want := "the parent's"
		if from != "" {
			want = from
		}
		switch {
		case d.Ceiling.Own.Grant.Scope.Stated() || d.Ceiling.Delegable.Grant.Scope.Stated():
			return &policy.RefusedError{Field: fieldWorkspace, Got: b.root, Want: want + ", from which its write scope counts", Rule: policy.RuleParent}
		case len(d.Granted.Operator.Paths().Entries()) > 0:
			return &policy.RefusedError{Field: fieldWorkspace, Got: b.root, Want: want + ", from which the operator's closed places count", Rule: policy.RuleParent}
		}
	}
	// A block-edit tool of the parent's own is none of the child's.
	locked := slices.Concat(policy.LockdownTools(), b.c.Lockdown(), b.r.Lockdown)
	entries := slices.DeleteFunc(b.c.Palette().Entries(), func(e policy.PaletteEntry) bool {
		return slices.ContainsFunc(locked, func(name string) bool { return strings.EqualFold(name, e.Name) })
	})
	var err error
	b.palette, err = policy.NewPalette(append(entries, b.r.Palette.Entries()...)...)
	return err
}
