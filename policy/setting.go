package policy

// Setting is what a caller asks for, before the workspace is known. Unlike a
// [Sandbox] it leaves things open: the roots are only the extra ones, and no
// network means the default of the mode.
type Setting struct {
	Mode          Mode
	WritableRoots []string // beyond the workspace root; absolute, see [RootsOf]
	Network       *bool    // nil: on for danger-full-access, off for the others

	// The temp directories a caller does not want; refused with
	// danger-full-access and without effect under read-only, which has none.
	ExcludeTmpdirEnvVar, ExcludeSlashTmp bool
}

// Resolve returns the complete, canonical value to record. Under
// workspace-write the roots are workspaceRoot and the extra ones, or absent if
// there is neither; the other modes ignore workspaceRoot. Wrapped [ErrInvalid]
// for a malformed root or anything [Sandbox.Validate] refuses, extra roots
// under another mode included.
func (s Setting) Resolve(workspaceRoot string) (Sandbox, error) {
	v := Sandbox{
		Mode:                s.Mode,
		Network:             s.Mode == DangerFullAccess,
		ExcludeTmpdirEnvVar: s.ExcludeTmpdirEnvVar,
		ExcludeSlashTmp:     s.ExcludeSlashTmp,
	}
	if s.Network != nil {
		v.Network = *s.Network
	}
	var paths []string
	if s.Mode == WorkspaceWrite && workspaceRoot != "" {
		paths = append(paths, workspaceRoot)
	}
	if paths = append(paths, s.WritableRoots...); len(paths) > 0 {
		roots, err := RootsOf(paths...)
		if err != nil {
			return Sandbox{}, err
		}
		v.Roots = roots
	}
	if err := v.Validate(); err != nil {
		return Sandbox{}, err
	}
	return v.Canonical(), nil
}

// Defaults is what a deployment gives a session that states nothing itself. It
// is recorded when the session is created, and only the recorded one counts:
// a reader whose own defaults are not [Defaults.Equal] has a drift to report,
// without any effect. The zero value is read-only and never ask.
type Defaults struct {
	Sandbox Sandbox

	// Approvals as recorded, foreign values included; a meet keeps only what
	// they count as.
	Approvals Approval
}

// Meet returns the most that both permit. A child's recorded defaults are the
// meet of its parent's recorded ones and those in force at its creation, so
// that a looser deployment never reaches back into an older tree.
func (d Defaults) Meet(o Defaults) Defaults {
	return Defaults{Sandbox: d.Sandbox.Meet(o.Sandbox), Approvals: d.Approvals.Meet(o.Approvals)}
}

// Equal reports whether both permit the same.
func (d Defaults) Equal(o Defaults) bool {
	return d.Sandbox.Equal(o.Sandbox) && d.Approvals.Effective() == o.Approvals.Effective()
}
