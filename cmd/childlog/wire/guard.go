package wire

// GuardProfile is a profile that comes with guards: what a root may do that a
// guard makes.
type GuardProfile struct {
	Profile      string `json:"profile"`
	Default      bool   `json:"default"` // where no flag says which
	About        string `json:"about"`
	Sandbox      string `json:"sandbox"`
	Network      bool   `json:"network"`
	Shell        string `json:"shell"`
	Spawn        bool   `json:"spawn"`
	Approvals    string `json:"approvals"`
	UnknownTools bool   `json:"unknown_tools"` // tools of no class that is known
	Approve      bool   `json:"approve"`       // an allowed call skips the harness's own question
}
