package objection

import "childlog/policy"

// The codes of a refusal by the sweep, beside [policy.CodeMalformed]. They are
// recorded in logs, so they are never renamed or reused.
const (
	CodeObjection policy.Code = "objection"         // an objector objects
	CodeDegraded  policy.Code = "objector_degraded" // an objector failed, and the deployment does not carry on
)

// Why says in which way an objector failed. The strings are recorded in logs,
// so they are never renamed or reused.
type Why string

// The ways.
const (
	WhyPanic       Why = "panic"
	WhyError       Why = "error"
	WhyUnknownRule Why = "unknown_rule" // it objects under a rule that it did not declare
	WhyNotJSON     Why = "not_json"     // it left a value that JSON does not have
	WhyTooDeep     Why = "too_deep"     // it left more than [MaxDepth] levels, or a value that contains itself
	WhyTooLarge    Why = "too_large"    // it left more than [MaxValues] values or [MaxBytes] bytes of text
)

// KeyUnnamed stands in an [Amendment] for all changed arguments whose name is
// not shown: added without being declared, or not a name of
// [policy.CheckToolName].
const KeyUnnamed = "*"

// Amendment is a change that one objector made to the arguments of a call.
type Amendment struct {
	Rule string   `json:"rule"`
	Keys []string `json:"keys"` // at the top, changed, added or removed; sorted, each once, never none
}

// Degraded is an objector that was skipped for a call.
type Degraded struct {
	Rule string `json:"rule"`
	Why  Why    `json:"why"`
}

// Record is what the decision record of a call keeps of its sweep. It holds
// codes and names alone, nothing of the call's values. Lists are never nil.
type Record struct {
	Checked    int         `json:"checked"`    // objectors asked, also those that failed
	Degraded   []Degraded  `json:"degraded"`   // in the order in which they were asked
	CarriedOn  bool        `json:"carried_on"` // something is degraded, and by the deployment's option that does not refuse the call
	Amendments []Amendment `json:"amendments"` // in the order in which they were made; each sees the one before
}

// Raised is an objection as it counts.
type Raised struct {
	Rule   string `json:"rule"`
	Reason string `json:"-"` // see [Objection]
}

// Outcome is what a sweep made of one call. It belongs to the caller: nothing
// else refers to its maps.
type Outcome struct {
	ID   string `json:"id"`
	Tool string `json:"tool"`

	// Args are the final arguments, which are to be authorized and run; Before
	// are the call's own. Neither is nil, unless the call is malformed: then
	// both are.
	Args   map[string]any `json:"-"`
	Before map[string]any `json:"-"`

	// Refused is why the call ends here: it is malformed, else someone objects,
	// else an objector is degraded. "" means that nothing stands against
	// deciding the call. By is the rule of the first objection or of the first
	// degraded objector.
	Refused policy.Code `json:"refused"`
	By      string      `json:"by"`

	Objections []Raised `json:"objections"` // all of them, in the order of the objectors; never nil
	Record     Record   `json:"record"`
}
