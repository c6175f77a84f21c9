package ops

import (
	"fmt"
	"strconv"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// Where the key came from that signatures were checked with.
const (
	KeyGiven = "given"
	KeyStore = "store" // whoever can write the store can replace it
	KeyNone  = "none"  // nothing was ever signed
)

func unsigned() wire.Signed {
	return wire.Signed{KeyFrom: KeyNone, Outside: []wire.Held{}, Heads: []string{}}
}

// signedOf says how the journal compares with what was signed.
func signedOf(s *eventlog.Store, o *VerifyOptions, r *eventlog.CheckReport) wire.Signed {
	v := unsigned()
	v.Key, v.KeyFrom, v.Positions, v.Anchored = s.VerifierKey(), KeyStore, r.Positions, r.Anchored
	switch {
	case o.Key != "":
		v.Key, v.KeyFrom = o.Key, KeyGiven
	case v.Key == "":
		v.KeyFrom = KeyNone
	}
	if r.Signed != nil {
		v.Origin, v.Size, v.Holds = r.Signed.Origin, r.Signed.Size, r.Signed.Holds
	}
	for i, h := range r.Outside {
		v.Outside = append(v.Outside, wire.Held{File: o.Names[i], Origin: h.Origin, Size: h.Size, Holds: h.Holds})
	}
	for _, a := range r.Heads {
		v.Heads = append(v.Heads, a.String())
	}
	return v
}

// statement says in words what was established. A log that was cut at its end
// and is consistent looks like one that ended there: only what was kept
// elsewhere can tell.
func statement(v *wire.Verified) string {
	s := &v.Signed
	complete := "completeness unproven: no outside anchor"
	switch {
	case s.Anchored > 0 && s.Anchored == s.Positions:
		complete = "complete, by a checkpoint that was kept elsewhere"
	case s.Anchored > 0:
		complete = fmt.Sprintf("complete up to frame %s of %s, by a checkpoint that was kept elsewhere", Grouped(s.Anchored), Grouped(s.Positions))
	case len(s.Heads) > 0:
		complete = fmt.Sprintf("complete up to the head of %s that was kept elsewhere, of the rest unproven", Plural(len(s.Heads), "session"))
	}
	switch {
	case v.Status == eventlog.StatusIncomplete:
		return "what is here is intact, and what was lost is stated"
	case !v.OK:
		return "not intact"
	}
	return "intact, " + complete
}

// Grouped writes a number with a comma between each three digits.
func Grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural counts something.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
