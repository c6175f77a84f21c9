package snapshot

import (
	"errors"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// usedGrants counts how often the explicit grants were relied on: by the
// receipts of all descendants of the sessions that issued them. Only grants
// with a limited number of uses are counted, so that a tree without any costs
// nothing.
//
// A descendant whose receipt can't be read may have relied on any of them. It
// counts as one use of each: a grant that may be spent is spent.
func usedGrants(v *eventlog.View, grants []policy.ExplicitGrant) ([]policy.GrantUse, error) {
	var out []policy.GrantUse
	relied := map[uuid.UUID][][]policy.ExplicitGrant{} // by issuer, one list a descendant; nil is unreadable
	for _, g := range grants {
		if g.Uses == 0 {
			continue
		}
		issuer := g.Issuer.Session
		if _, ok := relied[issuer]; !ok {
			below, err := v.Descendants(issuer)
			if err != nil {
				return nil, err
			}
			relied[issuer] = make([][]policy.ExplicitGrant, 0, len(below))
			for _, id := range below {
				list, err := reliedBy(v, id)
				if err != nil {
					return nil, err
				}
				relied[issuer] = append(relied[issuer], list)
			}
		}
		use := policy.GrantUse{ID: g.ID, Issuer: g.Issuer}
		for _, list := range relied[issuer] {
			if list == nil || contains(list, g) {
				use.Used++
			}
		}
		out = append(out, use)
	}
	return out, nil
}

// reliedBy lists the grants that a session's receipt cites; nil if that can't
// be told.
func reliedBy(v *eventlog.View, id uuid.UUID) ([]policy.ExplicitGrant, error) {
	_, e, err := replay.View(v, id)
	if errors.Is(err, eventlog.ErrPurged) { // what it used up stays used up
		kept, err := v.Purged(id)
		if err != nil {
			return nil, nil
		}
		if kept.Evidence {
			return []policy.ExplicitGrant{}, nil // as it did before
		}
		return append([]policy.ExplicitGrant{}, kept.Relied...), nil
	}
	switch {
	case errors.Is(err, eventlog.ErrEvidence):
		return []policy.ExplicitGrant{}, nil // an imported log relies on nothing here
	case errors.Is(err, eventlog.ErrPolicyUnreadable), errors.Is(err, eventlog.ErrCorrupt), errors.Is(err, eventlog.ErrNotFound), errors.Is(err, eventlog.ErrUnknownType):
		return nil, nil
	case err != nil:
		return nil, err
	case e.Granted == nil:
		return []policy.ExplicitGrant{}, nil
	}
	return append([]policy.ExplicitGrant{}, e.Granted.Relied...), nil
}

func contains(list []policy.ExplicitGrant, g policy.ExplicitGrant) bool {
	for _, r := range list {
		if r.ID == g.ID && r.Issuer == g.Issuer {
			return true
		}
	}
	return false
}
