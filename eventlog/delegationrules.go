package eventlog

import (
	"fmt"

	"github.com/google/uuid"

	"childlog/policy"
)

// authorizeDelegation refuses a forged child. The unit is one new log and, in
// the log of its parent, one event that names it and its receipt: neither is
// worth anything without the other.
func (st *stage) authorizeDelegation(batches []Batch, events [][]pending, before []*entry) error {
	if len(batches) != 2 {
		return unauthorizedf("a delegation writes one new log and its parent's, got %d sessions", len(batches))
	}
	c, p := 0, 1
	if before[0] != nil {
		c, p = 1, 0
	}
	if before[c] != nil || before[p] == nil {
		return unauthorizedf("a delegation writes one new log and one that exists, got sessions %s and %s", batches[0].Session, batches[1].Session)
	}
	child, parent := batches[c].Session, before[p]
	birth, err := layoutOf(parent.row.Session, events[c])
	if err != nil {
		return err
	}
	if err := birth.names(child, &parent.row); err != nil {
		return err
	}
	origin, captured := parent, birth.created.facts.Uint("parent_seq")
	if birth.adopted.Session != uuid.Nil {
		if origin, err = st.adoptable(birth.adopted); err != nil {
			return err
		}
		captured = 0
	}
	if err := birth.startedBy(child, events[p]); err != nil {
		return err
	}
	if err := st.parentPlace(birth.created.facts, parent); err != nil {
		return err
	}
	if key := birth.granted.facts.hash("key"); !key.IsZero() {
		if id, err := st.byName(name{nameKey, key}); err != nil || id != uuid.Nil {
			return orExists(err, "the key stands for session %s", id)
		}
	}
	if holder, err := st.externalHolder(child, birth.created, map[Hash]uuid.UUID{}); err != nil || holder != uuid.Nil {
		return orExists(err, "the external id is session %s", holder)
	}
	if err := st.freshSeed(events[c], origin, captured); err != nil {
		return err
	}
	return st.within(child, events[c], parent)
}

// adoptable returns what a seed was copied from, if that is not the parent: only
// evidence may be. The conversation of another native session is its own
// parent's to hand on.
func (st *stage) adoptable(from Ref) (*entry, error) {
	e, err := st.lookup(from.Session)
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, st.absent(from.Session)
	case !e.row.Evidence:
		return nil, unauthorizedf("a seed copy of session %s, which is neither the parent nor evidence", from.Session)
	case len(e.row.Damage) > 0:
		return nil, &CorruptError{Session: from.Session, Seq: e.row.Damage[0].From, Reason: e.row.Damage[0].Reason + "; a seed is not copied from it"}
	case from.Seq > e.row.Head:
		return nil, unauthorizedf("a seed copy of session %s seq %d, its head is %d", from.Session, from.Seq, e.row.Head)
	}
	return e, nil
}

func orExists(err error, format string, args ...any) error {
	if err == nil {
		err = fmt.Errorf("%w: %s", ErrExists, fmt.Sprintf(format, args...))
	}
	return err
}

// birth is how a child's log begins.
type birth struct {
	created, granted *pending
	seeds            uint64
	adopted          Ref // evidence that the seed was copied from, with the last seq; zero: the parent
}

// layoutOf checks the order in which a child's log begins: session/created,
// seed copies and their end, the receipt, at most one sandbox, the pin. An
// event of its own among the copies would be taken for the parent's, and one
// behind the pin would be there before the child began to live.
func layoutOf(parent uuid.UUID, events []pending) (birth, error) {
	b := birth{created: &events[0]}
	misplaced := func(i int, want string) (birth, error) {
		got := "nothing more"
		if i < len(events) {
			got = events[i].typ
		}
		return b, unauthorizedf("event %d of a child: got %s, want %s", i+1, got, want)
	}
	place := b.created.facts.Uint("parent_seq")
	i := 1
	for ; i < len(events) && events[i].inherited != nil; i++ {
		ref := events[i].inherited
		switch {
		case ref.Session == parent && ref.Seq > 0 && ref.Seq <= place && b.adopted == (Ref{}):
		case ref.Session != parent && ref.Seq > b.adopted.Seq && (i == 1 || ref.Session == b.adopted.Session):
			b.adopted = *ref // what it is, authorizeDelegation looks at
		default:
			return b, unauthorizedf("event %d of a child: a seed copy of session %s seq %d, want one of the parent %s up to seq %d, or of one evidence in order", i+1, ref.Session, ref.Seq, parent, place)
		}
		b.seeds++
	}
	if b.seeds > 0 {
		if i == len(events) || !own(&events[i], TypeSessionEndSeed) {
			return misplaced(i, TypeSessionEndSeed)
		}
		i++
	}
	if got := b.created.facts.Uint("seed_len"); got != b.seeds {
		return b, unauthorizedf("seed_len: got %d, want %d, the number of seed copies", got, b.seeds)
	}
	if i == len(events) || !own(&events[i], TypeDelegationGranted) {
		return misplaced(i, TypeDelegationGranted)
	}
	b.granted = &events[i]
	if i++; i < len(events) && own(&events[i], TypeSandboxMode) {
		v, err := ParseSandbox(events[i].event(uuid.Nil, 0, 0, 0))
		if err == nil {
			err = v.Validate()
		}
		if err != nil {
			return b, badFacts(err)
		}
		i++
	}
	if i == len(events) || !own(&events[i], TypeApprovalPolicy) {
		return misplaced(i, TypeApprovalPolicy)
	}
	if got := events[i].facts.Str("policy"); got != string(policy.Never) {
		return b, fmt.Errorf("%w: approvals of a child: got %q, want %s", ErrWidening, got, policy.Never)
	}
	if i+1 < len(events) {
		return misplaced(i+1, "no more")
	}
	return b, nil
}

// names checks what the two first statements say of the family, against each
// other and against the parent's state.
func (b *birth) names(child uuid.UUID, parent *Row) error {
	c, g := b.created.facts, b.granted.facts
	if kind := c.Str("kind"); kind != KindChild || c.Bool("evidence") {
		return unauthorizedf("kind: got %q (evidence %t), want a native %s", kind, c.Bool("evidence"), KindChild)
	}
	for _, n := range []struct {
		what      string
		got, want uuid.UUID
	}{
		{TypeSessionCreated + ": parent", c.UUID("parent"), parent.Session},
		{TypeSessionCreated + ": root", c.UUID("root"), parent.Root},
		{TypeDelegationGranted + ": parent", g.UUID("parent"), parent.Session},
		{TypeDelegationGranted + ": root", g.UUID("root"), parent.Root},
		{TypeDelegationGranted + ": child", g.UUID("child"), child},
	} {
		if n.got != n.want {
			return unauthorizedf("%s: got %s, want %s", n.what, n.got, n.want)
		}
	}
	depth, max := c.Uint("depth"), c.Uint("max_depth")
	if want := uint64(parent.Depth) + 1; depth != want {
		return unauthorizedf("depth: got %d, want %d, one below the parent", depth, want)
	}
	if allowed := uint64(min(parent.MaxDepth, policy.HardMaxDepth)); depth > allowed || depth > max || max > allowed {
		return fmt.Errorf("%w: attempted depth %d with ceiling %d, allowed %d", ErrDepth, depth, max, allowed)
	}
	for _, field := range []string{"depth", "max_depth", "parent_seq"} {
		if got, want := g.Uint(field), c.Uint(field); got != want {
			return unauthorizedf("%s: %s: got %d, want %d as in %s", TypeDelegationGranted, field, got, want, TypeSessionCreated)
		}
	}
	if got, want := g.hash("parent_head"), c.hash("parent_head"); got != want {
		return unauthorizedf("%s: parent_head: got %x, want %x as in %s", TypeDelegationGranted, got[:4], want[:4], TypeSessionCreated)
	}
	return nil
}

// startedBy checks the parent's word for the child.
func (b *birth) startedBy(child uuid.UUID, events []pending) error {
	if len(events) != 1 || !own(&events[0], TypeDelegationStarted) {
		return unauthorizedf("the parent's log takes one %s, got %d events beginning with %s", TypeDelegationStarted, len(events), events[0].typ)
	}
	f := events[0].facts
	if got := f.UUID("child"); got != child {
		return unauthorizedf("%s: child: got %s, want %s", TypeDelegationStarted, got, child)
	}
	if got, want := f.hash("receipt"), Digest(b.granted.facts); got != want {
		return unauthorizedf("%s: receipt: got %x, want %x, the digest of %s", TypeDelegationStarted, got[:4], want[:4], TypeDelegationGranted)
	}
	return nil
}

// parentPlace checks that the parent's log was, at that seq, what the child
// says it was. It costs one frame if the parent went on since the capture.
func (st *stage) parentPlace(created Facts, parent *entry) error {
	seq, got, want := created.Uint("parent_seq"), created.hash("parent_head"), parent.row.Hash
	if seq == 0 || seq > parent.row.Head {
		return unauthorizedf("parent_seq: got %d, want 1 to %d", seq, parent.row.Head)
	}
	if seq < parent.row.Head {
		var err error
		if want, _, err = hashAfter(parent, st, seq); err != nil {
			return err
		}
	}
	if got != want {
		return unauthorizedf("parent_head: got %x, want %x, the hash of session %s at seq %d", got[:4], want[:4], parent.row.Session, seq)
	}
	return nil
}

// within checks that the child begins inside its parent's bound, the captured
// sandbox or, without one, the recorded default, and that both halves of its
// authority are ones that the parent can hand on; then what the receipt says
// beside them.
func (st *stage) within(child uuid.UUID, events []pending, parent *entry) error {
	born, err := foldBounds(nil, child, events, 0)
	if err != nil {
		return err
	}
	stored, err := policyChain(parent, st)
	if err != nil {
		return err
	}
	above, err := foldBounds(stored, parent.row.Session, nil, 0)
	if err != nil {
		return err
	}
	for i, got := range []policy.Half{born.authority.Own, born.authority.Delegable} {
		if !got.Within(above.authority.Ceiling()) {
			return fmt.Errorf("%w: %s: granted %s: more than session %s can hand on", ErrWidening, TypeDelegationGranted, []string{"own", "delegable"}[i], parent.row.Session)
		}
	}
	bound := above.ledger // Switch says by which event a value is too wide
	if err := bound.Switch(born.ledger.Bound().Value, born.ledger.Bound().Cause()); err != nil {
		return err
	}
	return st.receipt(born, above, &parent.row)
}
