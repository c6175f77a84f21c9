package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// Policy rebuilds a session's effective policy as of seq at, 0 meaning the
// head. Errors: eventlog.ErrNotFound, eventlog.ErrPolicyUnreadable; on the
// latter nothing may be granted.
func Policy(ctx context.Context, s *eventlog.Store, session uuid.UUID, at uint64) (Effective, error) {
	events, row, err := s.Policy(ctx, session, 0)
	if err != nil {
		return Effective{}, err
	}
	return foldRow(events, &row, at)
}

// foldRow folds what was read together with the row's warnings. An as-of seq
// is folded from a log that is whole up to its head, so that damage after the
// seq is not hidden.
func foldRow(events []eventlog.Event, row *eventlog.Row, at uint64) (Effective, error) {
	if row.UnknownSeq != 0 && (at == 0 || row.UnknownSeq <= at) && !row.Evidence {
		return Effective{}, fmt.Errorf("%w: session %s: %w: %s at seq %d was written by a newer version", eventlog.ErrPolicyUnreadable, row.Session, eventlog.ErrUnknownType, row.UnknownType, row.UnknownSeq)
	}
	e, err := Fold(events)
	if err != nil {
		return Effective{}, err
	}
	switch {
	case at == 0:
		e.Seq = row.Head
		return e, nil
	case at > row.Head:
		return Effective{}, noSeq(row.Session, at, row.Head)
	case at < e.BornSeq:
		return Effective{}, fmt.Errorf("%w: seq %d lies inside the delegation; the policy is whole from seq %d on", eventlog.ErrInvalid, at, e.BornSeq)
	}
	n := len(events)
	for events[n-1].Seq > at {
		n--
	}
	if e, err = Fold(events[:n]); err == nil {
		e.Seq = at
	}
	return e, err
}

func noSeq(session uuid.UUID, seq, head uint64) error {
	return fmt.Errorf("%w: session %s has no seq %d, its head is %d", eventlog.ErrNotFound, session, seq, head)
}

// Fold computes the effective policy from a log's policy-bearing events, in
// order and complete from session/created on. Events that bear no policy, and
// seed copies, are passed over, so that a whole log folds to the same value.
// Seq is that of the last event folded. Errors wrap
// eventlog.ErrPolicyUnreadable and say which event and field.
func Fold(events []eventlog.Event) (Effective, error) {
	var f folder
	for i := range events {
		if err := f.event(&events[i]); err != nil {
			return Effective{}, err
		}
	}
	return f.finish()
}

// folder is the fold in progress.
type folder struct {
	e        Effective
	created  eventlog.Created
	begun    bool
	granted  *eventlog.Granted
	profile  bool
	captured *policy.Sandbox
	pinned   bool
}

func (f *folder) unreadable(ev *eventlog.Event, format string, args ...any) error {
	return fmt.Errorf("%w: %w", eventlog.ErrPolicyUnreadable,
		&eventlog.CorruptError{Session: ev.Session, Seq: ev.Seq, Type: ev.Type, Reason: fmt.Sprintf(format, args...)})
}

// event folds one event. Every way to fail is a refusal.
func (f *folder) event(ev *eventlog.Event) error {
	f.e.Seq = max(f.e.Seq, ev.Seq)
	if f.begun && ev.Session != f.e.Session {
		return f.unreadable(ev, "an event of another log, of session %s", f.e.Session)
	}
	if ev.Inherited != nil {
		if ev.PolicyBearing {
			return f.unreadable(ev, "a seed copy is marked as policy")
		}
		return nil
	}
	if !eventlog.IsKnown(ev.Type, ev.Version) {
		if !ev.PolicyBearing && f.created.Evidence {
			return nil
		}
		return fmt.Errorf("%w: session %s: %w: %s version %d at seq %d was written by a newer version", eventlog.ErrPolicyUnreadable, ev.Session, eventlog.ErrUnknownType, ev.Type, ev.Version, ev.Seq)
	}
	if marked := writersOf(ev.Type) != nil; marked != ev.PolicyBearing {
		// The links lead along the marks: an event without one would be seen
		// by a full replay and not by the policy.
		return f.unreadable(ev, "policy mark: want %t, got %t", marked, ev.PolicyBearing)
	}
	if !ev.PolicyBearing {
		return nil
	}
	if !f.begun {
		if ev.Type != eventlog.TypeSessionCreated || ev.Seq != 1 {
			return f.unreadable(ev, "the log does not begin with session/created")
		}
		return f.begin(ev)
	}
	if n := len(f.e.events); ev.Seq <= f.e.events[n-1].Seq {
		return f.unreadable(ev, "policy events are out of order: seq %d after %d", ev.Seq, f.e.events[n-1].Seq)
	}
	f.e.events = append(f.e.events, *ev)
	if err := f.writer(ev); err != nil {
		return err
	}
	var err error
	switch ev.Type {
	case eventlog.TypeDelegationGranted:
		err = f.grant(ev)
	case eventlog.TypeSandboxMode:
		err = f.sandbox(ev)
	case eventlog.TypeApprovalPolicy:
		err = f.approval(ev)
	case eventlog.TypePolicyNarrowed:
		err = f.narrow(ev)
	case eventlog.TypePolicyProfile:
		err = f.stateProfile(ev)
	default:
		err = f.unreadable(ev, "a second %s", ev.Type)
	}
	return err
}

// writers lists, for each policy-bearing type, the sources that its event in a
// native log can have. An imported log has one source only.
var writers = [...]struct {
	typ     string
	sources []eventlog.Source
}{
	{eventlog.TypeSessionCreated, []eventlog.Source{eventlog.SourceOperator, eventlog.SourceDelegation}}, // by kind, see begin
	{eventlog.TypeDelegationGranted, []eventlog.Source{eventlog.SourceDelegation}},
	{eventlog.TypeSandboxMode, []eventlog.Source{eventlog.SourceDelegation, eventlog.SourceOperator, eventlog.SourceRuntime}},
	{eventlog.TypeApprovalPolicy, []eventlog.Source{eventlog.SourceDelegation, eventlog.SourceOperator, eventlog.SourceRuntime}},
	{eventlog.TypePolicyNarrowed, []eventlog.Source{eventlog.SourceOperator}},
	{eventlog.TypePolicyProfile, []eventlog.Source{eventlog.SourceOperator}},
}

// writersOf is nil for a type that bears no policy.
func writersOf(typ string) []eventlog.Source {
	for i := range writers {
		if writers[i].typ == typ {
			return writers[i].sources
		}
	}
	return nil
}

// writer refuses an event that no call of ours can have written there. The
// delegation of a child is one unit: nothing comes between its events, and a
// narrowing in there would be lost under the captured sandbox.
func (f *folder) writer(ev *eventlog.Event) error {
	inside := f.e.Kind == eventlog.KindChild && !f.pinned
	switch {
	case f.created.Evidence && ev.Source == eventlog.SourceImport:
		return nil
	case f.created.Evidence || !slices.Contains(writersOf(ev.Type), ev.Source):
		return f.unreadable(ev, "source %s does not fit the session", ev.Source)
	case inside && ev.Source != eventlog.SourceDelegation:
		return f.unreadable(ev, "source %s inside the delegation", ev.Source)
	}
	return nil
}

func (f *folder) begin(ev *eventlog.Event) error {
	c, err := eventlog.ParseCreated(ev)
	if err != nil {
		return fmt.Errorf("%w: %w", eventlog.ErrPolicyUnreadable, err)
	}
	if c.Kind == eventlog.KindStore {
		return fmt.Errorf("%w: session %s is the store's own and holds no policy", eventlog.ErrInvalid, ev.Session)
	}
	child := c.Kind == eventlog.KindChild
	if !child && c.Kind != eventlog.KindRoot && c.Kind != eventlog.KindStub {
		return f.unreadable(ev, "kind: want root, child or stub, got %q", c.Kind)
	}
	if !c.Evidence {
		if child == (c.Parent == uuid.Nil) || c.Parent == ev.Session {
			return f.unreadable(ev, "kind %s does not fit parent %s", c.Kind, c.Parent)
		}
		if child == (c.Root == ev.Session) || child == (c.Depth == 0) {
			return f.unreadable(ev, "kind %s does not fit root %s and depth %d", c.Kind, c.Root, c.Depth)
		}
	}
	want := eventlog.SourceOperator
	switch {
	case c.Evidence:
		want = eventlog.SourceImport
	case child:
		want = eventlog.SourceDelegation
	}
	if ev.Source != want {
		return f.unreadable(ev, "source: want %s, got %s", want, ev.Source)
	}
	f.begun, f.created = true, c
	by := f.cause(policy.SourceDefault, ev)
	// A log that came from another store as it is folds as it did there, so that it
	// can be explained and found out; it is evidence all the same, by its frames.
	f.e = Effective{Session: ev.Session, Seq: ev.Seq, Kind: c.Kind, Evidence: c.Evidence || ev.Imported, Parent: c.Parent, Root: c.Root, Depth: c.Depth,
		MaxDepth: c.MaxDepth, Mode: c.Mode, Provider: c.Provider, WorkspaceRoot: c.WorkspaceRoot, PathStyle: c.PathStyle, Defaults: c.Defaults, DefaultsBy: by,
		ParentSeq: c.ParentSeq, BornSeq: 1, events: []eventlog.Event{*ev}}
	if child {
		f.e.ledger = policy.ChildLedger(nil, c.Defaults.Sandbox, by, by)
		f.e.approvals = policy.ChildApprovals(by)
	} else {
		f.e.ledger = policy.RootLedger(c.Defaults.Sandbox, by)
		f.e.approvals = policy.RootApprovals(c.Defaults.Approvals, by)
		if !c.Evidence {
			f.e.authority = policy.NewAuthorityLedger(policy.TopAuthority(), nil)
		}
	}
	return nil
}

// stateProfile reads what a root may do and hand on. It is stated when the
// root is made, before anything else can rest on it.
func (f *folder) stateProfile(ev *eventlog.Event) error {
	switch {
	case f.created.Evidence:
		return nil // an imported log's word for its own rights decides nothing
	case f.e.Kind == eventlog.KindChild:
		return f.unreadable(ev, "a child has no profile of its own")
	case f.profile || len(f.e.events) != 2:
		return f.unreadable(ev, "a profile stands right after session/created, once")
	}
	p, err := eventlog.ParseProfile(ev)
	if err != nil {
		return fmt.Errorf("%w: %w", eventlog.ErrPolicyUnreadable, err)
	}
	f.profile = true
	at := policy.Origin{Session: ev.Session, Seq: ev.Seq}
	f.e.authority = policy.NewAuthorityLedger(p.Authority, policy.ProfileCauses(p.Authority, at))
	return f.equip(ev, p.Choices, p.Principal, p.Palette, p.Lockdown)
}

// equip takes over what a profile or a receipt says beside authority.
func (f *folder) equip(ev *eventlog.Event, c policy.Choices, p eventlog.Principal, entries []policy.PaletteEntry, lockdown []string) error {
	palette, err := policy.NewPalette(entries...)
	if err != nil {
		return f.unreadable(ev, "%v", err)
	}
	f.e.Choices, f.e.Principal, f.e.Palette, f.e.Lockdown = c, p, palette, lockdown
	return nil
}

// cause names an event; what a stub or an imported log says is marked so.
func (f *folder) cause(src policy.Source, ev *eventlog.Event) policy.Cause {
	switch {
	case f.created.Evidence || ev.Imported:
		src = policy.SourceImport
	case f.created.Kind == eventlog.KindStub:
		src = policy.SourceClaimed
	}
	return policy.Cause{Source: src, Origin: policy.Origin{Session: ev.Session, Seq: ev.Seq}}
}

// grant reads the receipt. It must agree with session/created: the two are
// written together, and a log in which they differ was not written by us. An
// imported receipt is kept to be shown and decides nothing.
func (f *folder) grant(ev *eventlog.Event) error {
	if f.created.Evidence {
		f.e.ReceiptSeq, f.e.Receipt = ev.Seq, eventlog.Digest(ev.Facts)
		return nil
	}
	if f.e.Kind != eventlog.KindChild || f.granted != nil || ev.Source != eventlog.SourceDelegation {
		return f.unreadable(ev, "unexpected: kind %s, source %s", f.e.Kind, ev.Source)
	}
	g, err := eventlog.ParseGranted(ev)
	if err != nil {
		return fmt.Errorf("%w: %w", eventlog.ErrPolicyUnreadable, err)
	}
	c := &f.created
	if g.Child != ev.Session || g.Parent != c.Parent || g.Root != c.Root || g.Depth != c.Depth || g.MaxDepth != c.MaxDepth ||
		g.ParentSeq != c.ParentSeq || g.ParentHead != c.ParentHead || g.WorkspaceRoot != c.WorkspaceRoot || g.SeedLen != c.SeedLen ||
		!g.Defaults.Equal(c.Defaults) {
		return f.unreadable(ev, "the receipt and session/created disagree")
	}
	// A receipt of version 0 was written before there was anything to
	// fingerprint.
	if sum := policy.FingerprintOf(g.Choices.Role, g.Granted).Sum; ev.Version > 0 && g.Fingerprint != sum {
		return f.unreadable(ev, "the fingerprint is not that of the grant")
	}
	at := policy.Origin{Session: ev.Session, Seq: ev.Seq}
	f.granted, f.e.Granted = &g, &g
	f.e.ReceiptSeq, f.e.Receipt = ev.Seq, eventlog.Digest(ev.Facts)
	f.e.authority = policy.NewAuthorityLedger(g.Granted, policy.BirthCauses(g.Granted, g.Ceiling, g.Choices.Role, g.Cuts, at))
	return f.equip(ev, g.Choices, g.Principal, g.Palette, g.Lockdown)
}

func (f *folder) sandbox(ev *eventlog.Event) error {
	v, err := eventlog.ParseSandbox(ev)
	if err != nil {
		return fmt.Errorf("%w: %w", eventlog.ErrPolicyUnreadable, err)
	}
	delegated := ev.Source == eventlog.SourceDelegation || f.created.Evidence && eventlog.ClaimsDelegation(ev)
	if !v.Mode.Known() {
		f.find(ev, FindingForeignMode, fmt.Sprintf("mode %q is not known here and counts as read-only", v.Mode))
	}
	switch {
	case delegated && f.e.Kind == eventlog.KindChild && f.captured == nil && !f.pinned:
		if !f.created.Evidence && (f.granted == nil || f.granted.Sandbox == nil || !f.granted.Sandbox.Equal(v)) {
			return f.unreadable(ev, "the receipt does not name this sandbox")
		}
		f.captured = &v
		by := f.cause(policy.SourceDelegation, ev)
		f.e.ledger = policy.ChildLedger(&v, f.created.Defaults.Sandbox, f.e.DefaultsBy, by)
	case f.created.Evidence:
		if f.e.ledger.Keep(v, f.cause(policy.SourceSwitch, ev)) {
			f.find(ev, FindingWidened, fmt.Sprintf("%s is wider than the bound %s, which is kept", v, f.e.ledger.Bound().Value))
		}
	case delegated:
		return f.unreadable(ev, "a second sandbox of source delegation, or one after the approval pin")
	default:
		if err := f.e.ledger.Switch(v, f.cause(policy.SourceSwitch, ev)); err != nil {
			return f.unreadable(ev, "%v", err)
		}
	}
	return nil
}

func (f *folder) approval(ev *eventlog.Event) error {
	a, err := eventlog.ParseApproval(ev)
	if err != nil {
		return fmt.Errorf("%w: %w", eventlog.ErrPolicyUnreadable, err)
	}
	delegated := ev.Source == eventlog.SourceDelegation || f.created.Evidence && eventlog.ClaimsDelegation(ev)
	switch {
	case delegated && f.e.Kind == eventlog.KindChild && !f.pinned:
		if !f.created.Evidence && f.granted == nil {
			return f.unreadable(ev, "the approval pin comes before the receipt")
		}
		if !f.created.Evidence && a != policy.Never {
			return f.unreadable(ev, "the delegation pins approvals to never, got %q", a)
		}
		f.pinned, f.e.BornSeq = true, ev.Seq
		f.e.approvals = policy.ChildApprovals(f.cause(policy.SourcePin, ev))
		if f.e.approvals.Keep(a, f.cause(policy.SourcePin, ev)) {
			f.find(ev, FindingWidened, fmt.Sprintf("the delegation states approvals %q; never is kept", a))
		}
	case f.created.Evidence:
		if f.e.approvals.Keep(a, f.cause(policy.SourceSwitch, ev)) {
			f.find(ev, FindingWidened, fmt.Sprintf("approvals %q after the pin; never is kept", a))
		}
		if a != policy.Never && a != policy.Ask {
			f.find(ev, FindingForeignAsk, fmt.Sprintf("approvals %q counts as ask", a))
		}
	case delegated:
		return f.unreadable(ev, "a second approval pin")
	default:
		if err := f.e.approvals.Switch(a, f.cause(policy.SourceSwitch, ev)); err != nil {
			return f.unreadable(ev, "%v", err)
		}
	}
	return nil
}

func (f *folder) narrow(ev *eventlog.Event) error {
	ceiling, err := eventlog.ParseNarrowed(ev)
	if err != nil {
		return fmt.Errorf("%w: %w", eventlog.ErrPolicyUnreadable, err)
	}
	by := f.cause(policy.SourceNarrowing, ev)
	if !f.created.Evidence { // also of a stub: the narrowing happened here and is no claim
		by.Source = policy.SourceNarrowing
	}
	if ceiling.Sandbox != nil {
		f.e.ledger.Narrow(*ceiling.Sandbox, by)
	}
	f.e.authority.Narrow(half(ceiling), ceiling.Rules, by)
	return nil
}

// half is the authority of a ceiling; a ceiling without one limits none.
func half(c eventlog.Ceiling) policy.Half {
	if c.Half == nil {
		return policy.TopHalf()
	}
	return *c.Half
}

func (f *folder) find(ev *eventlog.Event, code, detail string) {
	f.e.Findings = append(f.e.Findings, Finding{Seq: ev.Seq, Code: code, Detail: detail})
}

// finish checks that the delegation is whole. A native child has its receipt
// and its pin, and the sandbox that the receipt names; anything less is
// damage, since all of it was written in one unit.
func (f *folder) finish() (Effective, error) {
	if !f.begun {
		return Effective{}, fmt.Errorf("%w: no session/created", eventlog.ErrPolicyUnreadable)
	}
	if f.e.Kind == eventlog.KindChild {
		last := &f.e.events[len(f.e.events)-1]
		switch {
		case f.created.Evidence && !f.pinned:
			f.e.Findings = append(f.e.Findings, Finding{Seq: 1, Code: FindingUnpinned, Detail: "no approval pin was recorded; never is assumed"})
		case f.created.Evidence:
		case f.granted == nil:
			return Effective{}, f.unreadable(last, "delegation/granted is missing")
		case f.granted.Sandbox != nil && f.captured == nil:
			return Effective{}, f.unreadable(last, "the sandbox that the receipt names is missing")
		case !f.pinned:
			return Effective{}, f.unreadable(last, "the approval pin is missing")
		}
	}
	e := f.e
	e.Sandbox, e.Bound, e.Explicit = e.ledger.Effective(), e.ledger.Bound(), e.ledger.Explicit()
	e.Approvals, e.ApprovalRaw, e.ApprovalBy = e.approvals.Effective()
	e.Authority, e.Causes = e.authority.Effective(), e.authority.Causes()
	e.WholeSeq = e.BornSeq
	for i := range e.events { // what was stated with the creation of a root shares its frame
		if ev := &e.events[i]; e.Kind != eventlog.KindChild && !e.Evidence && ev.Position == e.events[0].Position {
			e.WholeSeq = ev.Seq
		}
	}
	return e, nil
}
