package replay

import (
	"context"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// FieldChange is a field whose value differs between two seqs.
type FieldChange struct {
	Field    string
	From, To string
	By       policy.Cause // the event that decided the later value
}

// Diff compares a session's policy as of two seqs: from 0 is where its creation
// was whole, to 0 the head. A root is compared under the operator rules of
// either time. The fingerprint, which every change changes, is left out.
// Errors: those of Policy.
func Diff(ctx context.Context, s *eventlog.Store, session uuid.UUID, from, to uint64) (a, b Effective, changes []FieldChange, err error) {
	if b, err = policyUnder(ctx, s, session, to); err != nil {
		return a, b, nil, err
	}
	if from == 0 {
		from = b.WholeSeq
	}
	if a, err = policyUnder(ctx, s, session, from); err != nil {
		return a, b, nil, err
	}
	changes, err = fieldChanges(&a, &b)
	return a, b, changes, err
}

// fieldChanges lists the fields in which b differs from a.
func fieldChanges(a, b *Effective) ([]FieldChange, error) {
	changes := []FieldChange{}
	for _, field := range Fields {
		if field == fieldFingerprint {
			continue
		}
		was, err := fieldOf(a, field)
		if err != nil {
			return nil, err
		}
		is, err := fieldOf(b, field)
		if err != nil {
			return nil, err
		}
		if was.value != is.value {
			changes = append(changes, FieldChange{Field: field, From: was.value, To: is.value, By: is.by})
		}
	}
	return changes, nil
}
