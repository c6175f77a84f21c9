package policy

import "slices"

// Wish is what a request states of one half. A field that is nil, absent or
// null leaves the matter to the role and to the parent; a stated one can only
// narrow. Pointers and slices are read during [Derive] and not kept.
type Wish struct {
	// Permissions are stated together: one that is left out is not wished for.
	Permissions *Permissions

	Shell        *Shell   // of the profile; it caps the grant's
	Tools        Tools    // exact names
	DeniedTools  []string // patterns, see [DenyEntry]; added to those of the parent
	DeadlineMS   *int64   // ms since 1970 UTC, after the time of the delegation
	MaxSteps     *uint64  // 0: unbounded, as if not stated
	MaxDepth     *int     // counted from the root, 0 to 8
	MaxChildren  *int     // 0 or more
	Spawn        *bool
	Providers    NameSet
	Capabilities NameSet

	// WriteScope are places as declared, at most 16; nil is not stated, which
	// an empty list, nothing, is not.
	WriteScope *[]string
}

// Request is what a delegation asks for. Parsing it from JSON, and refusing
// unknown keys with their path, is for the layer above.
type Request struct {
	Wish // of the child's own half

	// WallMS is how long the child may live from its creation on, in ms, 1 to
	// 2^53. Derive turns it into a deadline, once.
	WallMS *int64

	// What does not narrow: the child's wish counts, else its parent's.
	Role       string // a role or an alias; "": the parent's, and general if it has none
	Model      string // up to 128 printable ASCII characters without spaces
	Provider   string // likewise; it must be on the list of providers if there is one
	Effort     string // of reasoning; likewise
	Background *bool

	MergePolicy MergePolicy // "": no contract

	// Delegable is what the child shall be able to hand on, if that is not the
	// same as its own half. What it leaves open is what the parent can hand on.
	Delegable *Wish

	// ExplicitGrants are the terms of Delegable; their Issuer is filled in by
	// Derive. Stated without Delegable they are refused: they would bind
	// nothing.
	ExplicitGrants []ExplicitGrant
}

// Choices are what a session runs as. They do not narrow from parent to child.
type Choices struct {
	Role       Role
	Model      string // "": the harness's default, as with the next two
	Provider   string
	Effort     string
	Background bool
}

// check refuses what states nothing sensible whatever the parent may do.
func (w Wish) check(nowMS int64) error {
	if w.Shell != nil {
		if err := checkLevel("shell", *w.Shell, shells); err != nil {
			return err
		}
	}
	if w.DeadlineMS != nil && (*w.DeadlineMS <= nowMS || *w.DeadlineMS < 1 || *w.DeadlineMS > MaxNumber) {
		return invalid("deadline: got %d ms, want after now, %d, and at most 2^53", *w.DeadlineMS, nowMS)
	}
	if w.MaxSteps != nil && *w.MaxSteps > MaxNumber {
		return invalid("max steps: got %d, want 0 to 2^53", *w.MaxSteps)
	}
	if err := checkCount("max children", w.MaxChildren, 0, MaxNumber); err != nil {
		return err
	}
	return checkCount("max depth", w.MaxDepth, 0, HardMaxDepth)
}

func (r Request) check(nowMS int64) error {
	if err := r.Wish.check(nowMS); err != nil {
		return err
	}
	if r.WallMS != nil && (*r.WallMS < 1 || *r.WallMS > MaxNumber) {
		return invalid("wall time: got %d ms, want 1 to 2^53", *r.WallMS)
	}
	for _, c := range []struct{ what, value string }{{"model", r.Model}, {"provider", r.Provider}, {"effort", r.Effort}} {
		if err := checkChoice(c.what, c.value); err != nil {
			return err
		}
	}
	if r.Delegable == nil {
		if len(r.ExplicitGrants) > 0 {
			return invalid("explicit grants: got %d, want none without a delegable half to grant", len(r.ExplicitGrants))
		}
		return nil
	}
	return r.Delegable.check(nowMS)
}

// choose returns what the child runs as.
func (r Request) choose(parent Choices) (Choices, error) {
	c := parent
	if r.Role != "" {
		role, err := ParseRole(r.Role)
		if err != nil {
			return Choices{}, err
		}
		c.Role = role
	}
	if c.Role == "" {
		c.Role = RoleGeneral
	}
	if !c.Role.Known() { // of the parent, from a newer version
		return Choices{}, &UnknownRoleError{Got: string(c.Role), Known: roleNames()}
	}
	c.Model, c.Provider, c.Effort = or(r.Model, c.Model), or(r.Provider, c.Provider), or(r.Effort, c.Effort)
	if r.Background != nil {
		c.Background = *r.Background
	}
	return c, nil
}

func or(wish, parents string) string {
	if wish != "" {
		return wish
	}
	return parents
}

// fill states the wish over a half that has what it leaves open. Denied tools
// are added by the caller, who knows their origin.
func (w Wish) fill(h Half, scope Scope) Half {
	if w.Permissions != nil {
		h.Profile.Permissions = *w.Permissions
		h.Grant.Files = FilesRead
		if w.Permissions.Write {
			h.Grant.Files = FilesWrite
		}
		h.Grant.Network = w.Permissions.Network
	}
	if w.Shell != nil {
		h.Profile.Shell, h.Grant.Shell = *w.Shell, w.Shell.Cap()
	}
	h.Profile.Tools = w.Tools
	if w.Spawn != nil {
		h.Grant.Spawn = *w.Spawn
	}
	h.Grant.MaxChildren = fewer(w.MaxChildren, nil)
	h.Grant.Scope = scope
	h.Profile.Providers, h.Profile.Capabilities = w.Providers, w.Capabilities
	h.Profile.Limits = Limits{}
	if w.DeadlineMS != nil {
		h.Profile.Limits.DeadlineMS = *w.DeadlineMS
	}
	if w.MaxSteps != nil {
		h.Profile.Limits.MaxSteps = *w.MaxSteps
	}
	if w.MaxDepth != nil {
		h.Profile.Limits.MaxDepth = *w.MaxDepth
	}
	return h
}

// scopeStated reports whether the wish asks to write somewhere.
func (w Wish) scopeStated() bool { return w.WriteScope != nil && len(*w.WriteScope) > 0 }

// text renders the wished scope as given, for an error.
func (w Wish) scopeText() string {
	entries := slices.Clone(*w.WriteScope)
	for i, e := range entries {
		entries[i] = quoted(e)
	}
	return list(entries)
}

// Half returns what the wish states, open in everything it does not speak of:
// a half of a root's profile, which nobody handed down, or the ceiling of a
// narrowing. The wish of a request is not read by it but by [Derive].
//
// Denied tools get the given kind and origin. Errors are wrapped [ErrInvalid],
// as of Derive; beside them a maximal depth of 0 is refused, which in a [Half]
// would read as no limit: whoever shall not delegate is not granted to spawn.
// A deadline may lie in the past.
func (w Wish) Half(kind DenyKind, at Origin) (Half, error) {
	if err := w.check(0); err != nil {
		return Half{}, err
	}
	if w.MaxDepth != nil && *w.MaxDepth == 0 {
		return Half{}, invalid("max depth: got 0, want 1 to %d, or no spawn", HardMaxDepth)
	}
	scope, err := Contract{WriteScope: w.WriteScope}.Gate(NameSet{})
	if err != nil {
		return Half{}, err
	}
	h := w.fill(TopHalf(), scope)
	if h.Profile.Denied, err = NewDenyList(kind, at, w.DeniedTools...); err != nil {
		return Half{}, err
	}
	return h.Canonical(), nil
}
