package wire

// Exported is the answer of export. A TreeSize of 0: the format has no tree.
type Exported struct {
	Format   string `json:"format"`
	Path     string `json:"path"`
	Whole    bool   `json:"whole"`
	Sessions uint64 `json:"sessions"`
	Frames   uint64 `json:"frames"`
	Events   uint64 `json:"events"`
	Contents uint64 `json:"contents"`
	Withheld uint64 `json:"withheld"`
	Absent   uint64 `json:"absent"`
	TreeSize uint64 `json:"tree_size"`
	TreeRoot string `json:"tree_root"`
	SHA256   string `json:"sha256"`
	Filtered bool   `json:"filtered"`

	Replaced map[string]uint64 `json:"replaced"` // by detector; null without a filter
}

// BundleSession is what a check of a bundle proved of one log.
type BundleSession struct {
	Session  string `json:"session"`
	Imported bool   `json:"imported"`
	Head     uint64 `json:"head"`
	Hash     string `json:"hash"`
	Complete bool   `json:"complete"`
	Covered  uint64 `json:"covered"`
	Gone     uint64 `json:"gone"`
}

// BundleCheckpoint is the signed tree head inside a bundle.
type BundleCheckpoint struct {
	Origin string `json:"origin"`
	Size   uint64 `json:"size"`
	Root   string `json:"root"`
}

// Bundle is the answer of verify --bundle. Signer is null unless a key was given
// and its signature holds.
type Bundle struct {
	OK         bool              `json:"ok"`
	Status     string            `json:"status"`
	Statement  string            `json:"statement"`
	Whole      bool              `json:"whole"`
	Filtered   bool              `json:"filtered"`
	Store      string            `json:"store"`
	Signer     *string           `json:"signer"`
	Anchored   bool              `json:"anchored"`
	Checkpoint *BundleCheckpoint `json:"checkpoint"`
	TreeSize   uint64            `json:"tree_size"`
	TreeRoot   string            `json:"tree_root"`
	Frames     uint64            `json:"frames"`
	Events     uint64            `json:"events"`
	Contents   uint64            `json:"contents"`
	Withheld   uint64            `json:"withheld"`
	Erased     uint64            `json:"erased"`
	Purged     uint64            `json:"purged"`
	Sessions   []BundleSession   `json:"sessions"`
	Findings   []Finding         `json:"findings"`
	More       uint64            `json:"more"`
}

// ImportedLog is what an import of childlog's own logs did with one. Outcome is
// new, continued or same; Was is the head before.
type ImportedLog struct {
	Session string `json:"session"`
	Head    uint64 `json:"head"`
	Hash    string `json:"hash"`
	Was     uint64 `json:"was"`
	Outcome string `json:"outcome"`
}

// ImportedLogs is the answer of import bundle and import jsonl.
type ImportedLogs struct {
	File     string        `json:"file"`
	Store    *string       `json:"store"` // null: lines do not say
	Status   string        `json:"status"`
	DryRun   bool          `json:"dry_run"`
	Events   uint64        `json:"events"`
	Withheld uint64        `json:"withheld"`
	Erased   uint64        `json:"erased"`
	Sessions []ImportedLog `json:"sessions"`
}
