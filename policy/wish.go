package policy

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
