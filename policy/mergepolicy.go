package policy

import (
	"fmt"
	"strings"
)

// MergePolicy says how the work of a child comes back to its parent. The
// strings are recorded in logs. The zero value is no contract: nothing is
// promised, and the child is bound by its authority alone.
type MergePolicy string

// The contracts.
const (
	MergeReadOnly           MergePolicy = "read_only"           // nothing comes back but an answer
	MergeTransactionalWrite MergePolicy = "transactional_write" // changes in a declared scope, merged by the parent
)

// ParseMergePolicy returns the contract named s, compared exactly, else a
// wrapped [ErrInvalid]. A request without the field states no contract; an
// empty string is not that.
func ParseMergePolicy(s string) (MergePolicy, error) {
	if m := MergePolicy(s); m == MergeReadOnly || m == MergeTransactionalWrite {
		return m, nil
	}
	return "", invalid("merge policy: got %s, want %s or %s", quoted(s), MergeReadOnly, MergeTransactionalWrite)
}

// Contract is what one task of a delegation declares.
type Contract struct {
	Policy MergePolicy // "": no contract

	// WriteScope are the entries as given: nil if none were stated, which an
	// empty list is not.
	WriteScope *[]string
}

// Gate returns the scope that the contract declares, [Unscoped] if it states
// none, or refuses it before anything is captured or written:
//
//   - a policy that is neither known nor empty: wrapped [ErrInvalid];
//   - read_only with a scope, even an empty one: wrapped ErrInvalid;
//   - transactional_write without a scope, or with other than 1 to 16 entries
//     counted as given: wrapped ErrInvalid;
//   - transactional_write by a parent that does not hold the capability
//     "subagents": a [*RefusedError] that names it;
//   - a malformed entry, or more than 16 of them without a contract: wrapped
//     ErrInvalid. Without a contract an empty list is accepted and means that
//     nothing may be written.
//
// Held are the capabilities of the parent's own half.
func (c Contract) Gate(held NameSet) (Scope, error) {
	switch c.Policy {
	case "":
		switch {
		case c.WriteScope == nil:
			return Unscoped(), nil
		case len(*c.WriteScope) == 0:
			return Scope{}, nil
		}
	case MergeReadOnly:
		if c.WriteScope != nil {
			return Scope{}, invalid("write scope: got %d paths, want none stated with merge policy %s", len(*c.WriteScope), c.Policy)
		}
		return Unscoped(), nil
	case MergeTransactionalWrite:
		if c.WriteScope == nil {
			return Scope{}, invalid("write scope: got none stated, want 1 to %d paths with merge policy %s", MaxScopeEntries, c.Policy)
		}
	default:
		_, err := ParseMergePolicy(string(c.Policy))
		return Scope{}, err
	}
	if err := CheckEntries(*c.WriteScope); err != nil {
		return Scope{}, err
	}
	if c.Policy == MergeTransactionalWrite && !held.Admits(CapabilitySubagents) {
		return Scope{}, &RefusedError{Field: FieldCapabilities, Got: list(held.List()),
			Want: CapabilitySubagents + " for merge policy " + string(c.Policy), Rule: RuleCapability}
	}
	return ParseScope(*c.WriteScope)
}

// GateBatch gates the tasks of one call together and returns the strictest
// contract among them, the one that asks most of the parent: a single
// transactional_write makes the batch one, read_only comes before none. One
// refused task refuses them all, so that no half of a batch is ever started;
// the error names it by its place from 0.
func GateBatch(held NameSet, tasks ...Contract) (MergePolicy, error) {
	strictest := MergePolicy("")
	for i, c := range tasks {
		if _, err := c.Gate(held); err != nil {
			return "", fmt.Errorf("task %d of %d: %w", i, len(tasks), err)
		}
		// "" < read_only < transactional_write, which is also their byte order.
		if strings.Compare(string(c.Policy), string(strictest)) > 0 {
			strictest = c.Policy
		}
	}
	return strictest, nil
}

// bind applies the contract to a half: under read_only nothing is written.
func (m MergePolicy) bind(h Half) Half {
	if m == MergeReadOnly {
		h.Profile.Permissions.Write = false
		h.Grant.Files = h.Grant.Files.Meet(FilesRead)
	}
	return h
}
