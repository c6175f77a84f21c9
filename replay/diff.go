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

// Diff compares a session's policy as of two seqs: from 0 is where its policy
// became whole, to 0 the head. Errors: those of Policy.
func Diff(ctx context.Context, s *eventlog.Store, session uuid.UUID, from, to uint64) (a, b Effective, changes []FieldChange, err error) {
	if b, err = Policy(ctx, s, session, to); err != nil {
		return a, b, nil, err
	}
	if from == 0 {
		from = b.BornSeq
	}
	if a, err = Policy(ctx, s, session, from); err != nil {
		return a, b, nil, err
	}
	changes = []FieldChange{}
	for _, field := range Fields {
		was, _, err := fieldOf(&a, field)
		if err != nil {
			return a, b, nil, err
		}
		is, by, err := fieldOf(&b, field)
		if err != nil {
			return a, b, nil, err
		}
		if was != is {
			changes = append(changes, FieldChange{Field: field, From: was, To: is, By: by})
		}
	}
	return a, b, changes, nil
}
