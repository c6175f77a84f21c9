package policy

import (
	"cmp"
	"slices"
	"strings"
)

// Claim is what one of several siblings means to write to. A sibling that only
// reads claims nothing: leave it out or give it the scope that admits nothing.
type Claim struct {
	ID    string // of the child or the task, opaque, not empty
	Scope Scope
}

// Overlap is one pair of paths through which two siblings could meet in a file.
// An unstated scope shows as ".".
type Overlap struct {
	A     string `json:"a"` // the smaller of the two ids
	B     string `json:"b"`
	PathA string `json:"path_a"`
	PathB string `json:"path_b"`
}

// Claims holds the write scopes of siblings against each other. Two claims
// conflict if an entry of one equals or contains an entry of the other, folded
// as in [DenyPaths]: "src" and "src/a" conflict, "src" and "srcx" do not, and
// "Readme" and "README" do, since both may be one file. A claim restrains
// writers only; whoever reads is never blocked.
//
// It is an immutable value, safe for concurrent use. The zero value holds no
// claim.
type Claims struct {
	ids    []string
	claims []claimedPath // in path order of their folds, then by id
}

type claimedPath struct {
	fold, path string
	id         string
}

// NewClaims returns the claims of siblings, in any order. Wrapped [ErrInvalid]
// for an id that is empty or claims twice.
func NewClaims(claims ...Claim) (Claims, error) {
	var c Claims
	for _, claim := range claims {
		if claim.ID == "" {
			return Claims{}, invalid("claim: got an empty id, want the id of a child")
		}
		c.ids = append(c.ids, claim.ID)
		c.claims = append(c.claims, claimedPaths(claim)...)
	}
	slices.Sort(c.ids)
	for i := 1; i < len(c.ids); i++ {
		if c.ids[i] == c.ids[i-1] {
			return Claims{}, invalid("claim: got two of %s, want one for each child", quoted(c.ids[i]))
		}
	}
	slices.SortFunc(c.claims, func(a, b claimedPath) int {
		return cmp.Or(comparePaths(a.fold, b.fold), cmp.Compare(a.id, b.id), cmp.Compare(a.path, b.path))
	})
	return c, nil
}

// claimedPaths returns the folded entries of one claim. An unstated scope is
// everything, of which "" is the parent; see claimBelow.
func claimedPaths(claim Claim) []claimedPath {
	if !claim.Scope.Stated() {
		return []claimedPath{{path: ".", id: claim.ID}}
	}
	paths := make([]claimedPath, len(claim.Scope.entries))
	for i, e := range claim.Scope.entries {
		paths[i] = claimedPath{fold: fold(e), path: e, id: claim.ID}
	}
	return paths
}

// claimBelow is isBelow where "" contains every path.
func claimBelow(dir, path string) bool { return dir == "" || isBelow(dir, path) }

// Overlaps returns every conflicting pair of paths of two different siblings,
// ordered by ids, then paths, so that the same claims give the same list
// whatever order they came in. Time is linear in claims and overlaps, but for
// sorting.
func (c Claims) Overlaps() []Overlap {
	var found []Overlap
	var open []claimedPath // the ancestors of the present path, itself included
	for _, p := range c.claims {
		// In path order all below a path follow it without a gap, so one that
		// does not contain this path contains none of the later ones.
		for len(open) > 0 && !claimBelow(open[len(open)-1].fold, p.fold) {
			open = open[:len(open)-1]
		}
		for _, o := range open {
			if o.id != p.id {
				found = append(found, overlap(o, p))
			}
		}
		open = append(open, p)
	}
	slices.SortFunc(found, compareOverlaps)
	return found
}

func overlap(p, q claimedPath) Overlap {
	if q.id < p.id {
		p, q = q, p
	}
	return Overlap{A: p.id, B: q.id, PathA: p.path, PathB: q.path}
}

func compareOverlaps(a, b Overlap) int {
	return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B),
		strings.Compare(a.PathA, b.PathA), strings.Compare(a.PathB, b.PathB))
}

// Against returns the overlaps that one more claim would have with those held,
// ordered as by [Claims.Overlaps]. A claim of the same id is not an obstacle:
// it would be replaced.
func (c Claims) Against(claim Claim) []Overlap {
	var found []Overlap
	for _, p := range claimedPaths(claim) {
		for _, held := range c.claims {
			if held.id != p.id && (claimBelow(held.fold, p.fold) || claimBelow(p.fold, held.fold)) {
				found = append(found, overlap(held, p))
			}
		}
	}
	slices.SortFunc(found, compareOverlaps)
	return found
}

// Holders returns the ids of the siblings other than id whose claim a write of
// id to target, as [Target] returns it, would enter: sorted, nil if there is
// none. There is no such question for a read. A target that Target would
// refuse enters every claim.
func (c Claims) Holders(id, target string) []string {
	clean, want := cleanTarget(target)
	clean = fold(clean)
	var holders []string
	for _, p := range c.claims {
		// A write to a directory, to remove or rename it, enters the claims
		// below it as well. "." is all of the workspace.
		if p.id != id && (want != "" || clean == "." || claimBelow(p.fold, clean) || claimBelow(clean, p.fold)) {
			holders = append(holders, p.id)
		}
	}
	slices.Sort(holders)
	return slices.Compact(holders)
}
