package replay

import (
	"fmt"

	"childlog/eventlog"
	"childlog/policy"
)

// Manifest is what a harness launches a session with: what it runs as, which
// tools it is shown, and the fingerprint of its grant. It is a function of the
// policy alone, so a resumed session is launched as it was made.
type Manifest struct {
	Choices     policy.Choices
	Files       policy.Files
	Shell       policy.GrantShell
	Transport   string // the shell in the three words of other harnesses; output only
	Network     bool   // in effect: by sandbox, permission and grant
	Tools       policy.Tools
	Denied      []policy.DenyEntry
	WriteScope  policy.Scope
	Merge       policy.MergePolicy
	Limits      policy.Limits
	Spawn       bool
	Lockdown    []string // tools no child holds
	Palette     []policy.PaletteEntry
	Fingerprint policy.Fingerprint // of the authority as it is now
}

// ManifestOf derives the manifest of a session from its policy.
func ManifestOf(e *Effective) Manifest {
	own := e.Authority.Own
	m := Manifest{Choices: e.Choices, Files: own.Grant.Files, Shell: own.Grant.Shell, Transport: policy.Transport(own.Grant.Shell),
		Network: own.Grant.Network && own.Profile.Permissions.NetworkInEffect(e.Sandbox.Value), Tools: own.Profile.Tools,
		Denied: own.Profile.Denied.Entries(), WriteScope: own.Grant.Scope, Limits: own.Profile.Limits, Spawn: own.Grant.Spawn,
		Lockdown: e.Lockdown, Palette: e.Palette.Entries(), Fingerprint: policy.FingerprintOf(e.Choices.Role, e.Authority)}
	if e.Granted != nil {
		m.Merge = e.Granted.Merge
	}
	return m
}

// CheckLaunch refuses to launch a session under another grant than the one it
// has: sum is the fingerprint that the harness holds. Errors: ErrInvalid with
// the line of the grant that the session has now.
func CheckLaunch(e *Effective, sum eventlog.Hash) error {
	have := policy.FingerprintOf(e.Choices.Role, e.Authority)
	if sum == have.Sum {
		return nil
	}
	return fmt.Errorf("%w: fingerprint: got %x, want %s of %s", eventlog.ErrInvalid, sum[:], have, have.Line)
}
