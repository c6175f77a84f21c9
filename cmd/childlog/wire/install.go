package wire

// Installation is what install or uninstall did to a settings file, or would do.
type Installation struct {
	Harness      string   `json:"harness"`
	Path         string   `json:"path"`
	Link         *string  `json:"link"`   // where path leads, if it is a symbolic link
	Action       string   `json:"action"` // installed, updated, unchanged; restored, deleted, removed, absent
	DryRun       bool     `json:"dry_run"`
	Command      *string  `json:"command"` // that the hooks run; null from uninstall
	Events       []string `json:"events"`  // that have a hook now
	Profile      *string  `json:"profile"`
	Policy       *string  `json:"policy"` // the document that counts instead of a profile
	Observe      *bool    `json:"observe"`
	Backup       *string  `json:"backup"` // of the original bytes, if they are not in the file
	Store        *string  `json:"store"`
	StoreCreated bool     `json:"store_created"`
	Diff         string   `json:"diff"` // unified, secrets masked; "" if nothing changes
	Warnings     []string `json:"warnings"`
}

// Check is one line of doctor.
type Check struct {
	Check   string  `json:"check"`
	Status  string  `json:"status"` // ok, warning or problem
	Subject string  `json:"subject"`
	Detail  string  `json:"detail"`
	Fix     *string `json:"fix"`
}
