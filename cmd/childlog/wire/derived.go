package wire

import "childlog/policy"

// Cut is one step by which a child got less than was asked for it.
type Cut struct {
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
	Rule  string `json:"rule"`
}

// CutsOf converts cuts; the list is never null.
func CutsOf(cuts []policy.Cut) []Cut {
	out := []Cut{}
	for _, c := range cuts {
		out = append(out, Cut{Field: c.Field, From: c.From, To: c.To, Rule: string(c.Rule)})
	}
	return out
}

// Choices are what a session runs as; null is the harness's default.
type Choices struct {
	Role       string  `json:"role"`
	Model      *string `json:"model"`
	Provider   *string `json:"provider"`
	Effort     *string `json:"effort"`
	Background bool    `json:"background"`
}

// Fingerprint identifies a grant: a line for people and its SHA-256.
type Fingerprint struct {
	Line   string `json:"line"`
	SHA256 string `json:"sha256"`
}

// Derived says what a child gets, and why it is less than was asked for.
type Derived struct {
	Ceiling     Authority       `json:"ceiling"`
	Requested   Authority       `json:"requested"`
	Granted     Authority       `json:"granted"`
	Cuts        []Cut           `json:"cuts"`
	Choices     Choices         `json:"choices"`
	MergePolicy *string         `json:"merge_policy"` // null: no contract
	Relied      []ExplicitGrant `json:"relied"`
	Fingerprint Fingerprint     `json:"fingerprint"`
}

// DerivedOf converts a derivation.
func DerivedOf(d policy.Derived) Derived {
	return Derived{
		Ceiling: AuthorityOf(d.Ceiling), Requested: AuthorityOf(d.Requested), Granted: AuthorityOf(d.Granted), Cuts: CutsOf(d.Cuts),
		Choices:     choicesOf(d.Choices),
		MergePolicy: optional(string(d.Merge)), Relied: ExplicitGrantsOf(d.Relied),
		Fingerprint: fingerprintOf(d.Fingerprint),
	}
}

func choicesOf(c policy.Choices) Choices {
	return Choices{Role: string(c.Role), Model: optional(c.Model), Provider: optional(c.Provider), Effort: optional(c.Effort), Background: c.Background}
}

func fingerprintOf(f policy.Fingerprint) Fingerprint {
	return Fingerprint{Line: f.Line, SHA256: f.String()}
}
