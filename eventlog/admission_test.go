package eventlog

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/policy"
)

// forgery is a delegation whose parts a test changes before they are encoded.
// Whatever it changes, the receipt's digest in the parent's log is right
// unless the test forges that too.
type forgery struct {
	created Created
	granted Granted
	started map[string]any
	unit    []Batch
}

func (ts *testStore) forge(parent, child uuid.UUID, change func(*forgery)) []Batch {
	row, err := ts.Row(parent)
	require.NoError(ts.t, err)
	f := &forgery{unit: childBatches(&row, child, "k"), started: map[string]any{"child": child}}
	events := f.unit[0].Events
	f.created, err = ParseCreated(&Event{Version: 1, Type: TypeSessionCreated, Facts: events[0].Facts})
	require.NoError(ts.t, err)
	f.granted = plainReceipt(&row, child, "k")
	f.granted.ParentReceipt = ts.receiptOf(parent)
	change(f)
	if f.granted.SeedLen == 0 {
		f.granted.SeedLen = f.created.SeedLen
	}
	if f.unit[0].Events[0].Type == TypeSessionCreated {
		f.unit[0].Events[0].Facts = f.created.Facts()
	}
	for i := range f.unit[0].Events {
		if ev := &f.unit[0].Events[i]; ev.Type == TypeDelegationGranted {
			ev.Facts = must(f.granted.Facts())
		}
	}
	if f.started["receipt"] == nil {
		f.started["receipt"] = Digest(must(f.granted.Facts()))
	}
	if len(f.unit) > 1 && len(f.unit[1].Events) > 0 && f.unit[1].Events[0].Type == TypeDelegationStarted {
		f.unit[1].Events[0].Facts = mustFacts(f.started)
	}
	return f.unit
}

// TestForgedChildIsRefused: a unit that goes to the writer past materialize.
// Each differs from a delegation in one thing and leaves no trace.
func TestForgedChildIsRefused(t *testing.T) {
	ts := newStore(t)
	parent, other := ts.root(sid(1)), ts.root(sid(2))
	ts.child(parent, sid(3), "taken")
	_, err := ts.transact(EntryOperator, Batch{Session: parent, Expect: Any(), Events: []NewEvent{{Type: TypePolicyNarrowed, Facts: NarrowedFacts(policy.Sandbox{Mode: policy.ReadOnly}.Canonical(), "operator")}}})
	require.NoError(t, err)
	ts.say(parent, "and on")
	old, err := ts.Row(parent)
	require.NoError(t, err)
	ts.say(parent, "and on")

	insert := func(f *forgery, at int, ev ...NewEvent) {
		events := f.unit[0].Events
		f.unit[0].Events = append(append(events[:at:at], ev...), events[at:]...)
	}
	cut := func(f *forgery, at int) {
		events := f.unit[0].Events
		f.unit[0].Events = append(events[:at:at], events[at+1:]...)
	}
	place := func(f *forgery, seq uint64, head Hash) {
		f.created.ParentSeq, f.created.ParentHead, f.granted.ParentSeq, f.granted.ParentHead = seq, head, seq, head
	}
	seed := func(from uuid.UUID, seq uint64) NewEvent {
		return NewEvent{Type: TypeUserMessage, Source: SourceUser, Inherited: &Ref{Session: from, Seq: seq}}
	}
	end := NewEvent{Type: TypeSessionEndSeed}
	top := policy.Defaults{Sandbox: policy.Top(), Approvals: policy.Ask}
	sandbox := func(v policy.Sandbox) NewEvent { return NewEvent{Type: TypeSandboxMode, Facts: SandboxFacts(v)} }

	for _, c := range []struct {
		name   string
		is     error
		want   string
		change func(*forgery)
	}{
		{"without its parent's word", ErrUnauthorized, "got 1 sessions", func(f *forgery) { f.unit = f.unit[:1] }},
		{"the parent's word alone", ErrUnauthorized, "got 1 sessions", func(f *forgery) { f.unit = f.unit[1:] }},
		{"two children at once", ErrUnauthorized, "got 3 sessions", func(f *forgery) {
			f.unit = append(f.unit, Batch{Session: sid(8), Events: rootEvents(sid(8), "x")[:1]})
			f.unit[2].Events[0].Source = SourceDelegation
		}},
		{"two logs that exist", ErrUnauthorized, "one new log and one that exists", func(f *forgery) {
			f.unit[0] = Batch{Session: other, Expect: Any(), Events: f.unit[1].Events}
		}},
		{"another parent's log", ErrUnauthorized, "session/created: parent: got " + parent.String() + ", want " + other.String(), func(f *forgery) { f.unit[1].Session = other }},
		{"another parent in the receipt", ErrUnauthorized, "delegation/granted: parent", func(f *forgery) { f.granted.Parent = other }},
		{"another child in the receipt", ErrUnauthorized, "delegation/granted: child", func(f *forgery) { f.granted.Child = other }},
		{"another root", ErrUnauthorized, "session/created: root", func(f *forgery) { f.created.Root, f.granted.Root = other, other }},
		{"another root in the receipt", ErrUnauthorized, "delegation/granted: root", func(f *forgery) { f.granted.Root = other }},
		{"a root", ErrUnauthorized, `kind: got "root"`, func(f *forgery) { f.created.Kind = KindRoot }},
		{"evidence", ErrUnauthorized, "evidence true", func(f *forgery) { f.created.Evidence = true }},
		{"beside its parent", ErrUnauthorized, "depth: got 0, want 1", func(f *forgery) { f.created.Depth, f.granted.Depth = 0, 0 }},
		{"two below its parent", ErrUnauthorized, "depth: got 2, want 1", func(f *forgery) { f.created.Depth, f.granted.Depth = 2, 2 }},
		{"a higher ceiling", ErrDepth, "ceiling 4, allowed 3", func(f *forgery) { f.created.MaxDepth, f.granted.MaxDepth = 4, 4 }},
		{"below its own ceiling", ErrDepth, "depth 1 with ceiling 0", func(f *forgery) { f.created.MaxDepth, f.granted.MaxDepth = 0, 0 }},
		{"another depth in the receipt", ErrUnauthorized, "delegation/granted: depth: got 2, want 1", func(f *forgery) { f.granted.Depth = 2 }},
		{"another ceiling in the receipt", ErrUnauthorized, "delegation/granted: max_depth: got 8, want 3", func(f *forgery) { f.granted.MaxDepth = 8 }},
		{"another seq in the receipt", ErrUnauthorized, "delegation/granted: parent_seq: got 1, want 5", func(f *forgery) { f.granted.ParentSeq = 1 }},
		{"another hash in the receipt", ErrUnauthorized, "delegation/granted: parent_head", func(f *forgery) { f.granted.ParentHead = Hash{1} }},
		{"no place", ErrUnauthorized, "parent_seq: got 0, want 1 to 5", func(f *forgery) { place(f, 0, Hash{}) }},
		{"a place to come", ErrUnauthorized, "parent_seq: got 6, want 1 to 5", func(f *forgery) { place(f, 6, Hash{}) }},
		{"another hash at the head", ErrUnauthorized, "parent_head: got 01000000", func(f *forgery) { place(f, 5, Hash{1}) }},
		{"another hash further back", ErrUnauthorized, "parent_head: got 01000000", func(f *forgery) { place(f, old.Head, Hash{1}) }},
		{"started names another child", ErrUnauthorized, "delegation/started: child: got " + other.String(), func(f *forgery) { f.started["child"] = other }},
		{"started names another receipt", ErrUnauthorized, "delegation/started: receipt: got 02000000", func(f *forgery) { f.started["receipt"] = Hash{2} }},
		{"started twice", ErrUnauthorized, "got 2 events", func(f *forgery) { f.unit[1].Events = append(f.unit[1].Events, f.unit[1].Events[0]) }},
		{"something else in the parent's log", ErrUnauthorized, "beginning with sandbox/mode", func(f *forgery) {
			f.unit[1].Events = []NewEvent{sandbox(policy.Top())}
		}},
		{"no receipt", ErrUnauthorized, "event 2 of a child: got sandbox/mode, want delegation/granted", func(f *forgery) { cut(f, 1) }},
		{"two receipts", ErrUnauthorized, "event 3 of a child: got delegation/granted, want approval/policy", func(f *forgery) { insert(f, 2, f.unit[0].Events[1]) }},
		{"two sandboxes", ErrUnauthorized, "event 4 of a child: got sandbox/mode, want approval/policy", func(f *forgery) { insert(f, 3, f.unit[0].Events[2]) }},
		{"the sandbox before the receipt", ErrUnauthorized, "event 2 of a child: got sandbox/mode", func(f *forgery) {
			insert(f, 1, f.unit[0].Events[2])
			cut(f, 3)
		}},
		{"no pin", ErrUnauthorized, "event 4 of a child: got nothing more, want approval/policy", func(f *forgery) { cut(f, 3) }},
		{"two pins", ErrUnauthorized, "event 5 of a child: got approval/policy, want no more", func(f *forgery) { insert(f, 4, f.unit[0].Events[3]) }},
		{"a pin to ask", ErrWidening, `got "ask", want never`, func(f *forgery) { f.unit[0].Events[3].Facts = ApprovalFacts(policy.Ask) }},
		{"a message of its own", ErrUnauthorized, "event 2 of a child: got user/message", func(f *forgery) { insert(f, 1, NewEvent{Type: TypeUserMessage}) }},
		{"a message behind the pin", ErrUnauthorized, "event 5 of a child: got user/message", func(f *forgery) { insert(f, 4, NewEvent{Type: TypeUserMessage}) }},
		{"a message among the copies", ErrUnauthorized, "event 3 of a child: got user/message, want session/end-seed", func(f *forgery) {
			f.created.SeedLen = 2
			insert(f, 1, seed(parent, 1), NewEvent{Type: TypeUserMessage}, end)
		}},
		{"copies without an end", ErrUnauthorized, "event 3 of a child: got delegation/granted, want session/end-seed", func(f *forgery) {
			f.created.SeedLen = 1
			insert(f, 1, seed(parent, 1))
		}},
		{"an end without copies", ErrUnauthorized, "event 2 of a child: got session/end-seed", func(f *forgery) { insert(f, 1, end) }},
		{"a copy behind the end", ErrUnauthorized, "event 4 of a child: got user/message, want delegation/granted", func(f *forgery) {
			f.created.SeedLen = 1
			insert(f, 1, seed(parent, 1), end, seed(parent, 2))
		}},
		{"another number of copies", ErrUnauthorized, "seed_len: got 2, want 1", func(f *forgery) {
			f.created.SeedLen = 2
			insert(f, 1, seed(parent, 1), end)
		}},
		{"copies of another log", ErrUnauthorized, "a seed copy of session " + other.String(), func(f *forgery) {
			f.created.SeedLen = 1
			insert(f, 1, seed(other, 1), end)
		}},
		{"copies from behind the capture", ErrUnauthorized, "seq 6, want one of the parent", func(f *forgery) {
			f.created.SeedLen = 1
			insert(f, 1, seed(parent, 6), end)
		}},
		{"a receipt that is a copy", ErrUnauthorized, "got sandbox/mode, want session/end-seed", func(f *forgery) {
			f.created.SeedLen = 1
			f.unit[0].Events[1].Inherited = &Ref{Session: parent, Seq: 1}
		}},
		{"wider than its parent", ErrWidening, "danger-full-access", func(f *forgery) { f.unit[0].Events[2] = sandbox(policy.Top()) }},
		{"wider by its default", ErrWidening, "danger-full-access", func(f *forgery) {
			f.created.Defaults, f.granted.Defaults = top, top
			cut(f, 2)
		}},
		{"a sandbox that is none", ErrInvalid, "external-sandbox", func(f *forgery) { f.unit[0].Events[2] = sandbox(policy.Sandbox{Mode: "external-sandbox"}) }},
		{"a sandbox that can't be read", ErrInvalid, "sandbox/mode: facts/writable_roots: entry 0", func(f *forgery) {
			f.unit[0].Events[2].Facts = mustFacts(map[string]any{"mode": "workspace-write", "writable_roots": []any{7}})
		}},
		{"a key in use", ErrExists, "the key stands for session " + sid(3).String(), func(f *forgery) { f.granted.Key = KeyHash(parent, "taken") }},
		{"an id in use", ErrExists, sid(3).String(), func(f *forgery) { f.unit[0].Session, f.unit[0].Expect = sid(3), Any() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			unit := ts.forge(parent, sid(9), c.change)
			ts.unchanged(t, func() {
				_, err := ts.transact(EntryDelegation, unit...)
				require.ErrorIs(t, err, c.is)
				require.ErrorContains(t, err, c.want)
			})
		})
	}

	unit := ts.forge(parent, sid(9), func(f *forgery) {
		place(f, old.Head, old.Hash) // the parent went on since the capture
		f.created.SeedLen = 2
		insert(f, 1, seed(parent, 1), seed(parent, old.Head), end)
	})
	_, err = ts.transact(EntryDelegation, unit[1], unit[0])
	require.NoError(t, err, "what is left out of all of that is a delegation, in any order of its batches")
}

// TestForgedChildBelowItsCeiling: the depth is the parent's own, not what the
// unit says of it.
func TestForgedChildBelowItsCeiling(t *testing.T) {
	ts := newStore(t)
	deepest := ts.root(sid(0))
	for i := 1; i <= 3; i++ {
		deepest = ts.child(deepest, sid(i), "k")
	}
	for _, ceiling := range []int{3, 4, 8, 9} {
		_, err := ts.transact(EntryDelegation, ts.forge(deepest, sid(9), func(f *forgery) { f.created.MaxDepth, f.granted.MaxDepth = ceiling, ceiling })...)
		require.ErrorIs(t, err, ErrDepth)
		require.ErrorContains(t, err, "attempted depth 4")
	}
}

// TestForgedRootIsRefused: what a creation may make.
func TestForgedRootIsRefused(t *testing.T) {
	ts := newStore(t)
	there := ts.root(sid(1))
	external := &External{System: "codex", IDHash: ExternalHash("codex", "a")}
	create := func(id uuid.UUID, c Created, more ...NewEvent) error {
		_, err := ts.transact(EntryCreate, Batch{Session: id, Events: append([]NewEvent{{Type: TypeSessionCreated, Facts: c.Facts()}}, more...)})
		return err
	}
	root := func(id uuid.UUID) Created {
		return Created{Kind: KindRoot, Root: id, MaxDepth: 3, Mode: ModeContinuable, Defaults: readOnlyDefaults()}
	}
	c := root(sid(2))
	c.External = external
	require.NoError(t, create(sid(2), c))
	for name, bad := range map[string]struct {
		is     error
		change func(*Created)
	}{
		"a child":                 {ErrUnauthorized, func(c *Created) { c.Kind = KindChild }},
		"another kind":            {ErrUnauthorized, func(c *Created) { c.Kind = "king" }},
		"evidence":                {ErrUnauthorized, func(c *Created) { c.Evidence = true }},
		"with a parent":           {ErrUnauthorized, func(c *Created) { c.Parent = there }},
		"in another's tree":       {ErrUnauthorized, func(c *Created) { c.Root = there }},
		"not at the top":          {ErrUnauthorized, func(c *Created) { c.Depth = 1 }},
		"too deep a tree":         {ErrDepth, func(c *Created) { c.MaxDepth = 9 }},
		"an external id in use":   {ErrExists, func(c *Created) { c.External = external }},
		"a default with no value": {ErrInvalid, func(c *Created) { c.Defaults.Sandbox.Mode = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			c := root(sid(9))
			bad.change(&c)
			ts.unchanged(t, func() { require.ErrorIs(t, create(sid(9), c), bad.is) })
		})
	}
	ts.unchanged(t, func() {
		_, err := ts.transact(EntryCreate, Batch{Session: there, Expect: Any(), Events: []NewEvent{{Type: TypeSandboxMode, Facts: SandboxFacts(policy.Top())}}})
		require.ErrorIs(t, err, ErrUnauthorized, "a log that exists is changed by a switch")
		require.ErrorIs(t, create(sid(9), root(sid(9)), NewEvent{Type: TypeSandboxMode, Facts: SandboxFacts(policy.Sandbox{Mode: "x"})}), ErrInvalid)
		twice := Batch{Session: sid(8), Events: rootEvents(sid(8), "x")}
		c := root(sid(8))
		c.External = &External{System: "codex", IDHash: ExternalHash("codex", "b")}
		twice.Events[0].Facts = c.Facts()
		again := Batch{Session: sid(9), Events: rootEvents(sid(9), "x")}
		c.Root = sid(9)
		again.Events[0].Facts = c.Facts()
		_, err = ts.transact(EntryCreate, twice, again)
		require.ErrorIs(t, err, ErrExists, "nor twice in one unit")
	})
}

// TestForgedSwitchIsRefused: a switch beyond the bound is refused by the
// writer itself, whoever brings it: stored, it would make the log unreadable.
func TestForgedSwitchIsRefused(t *testing.T) {
	ts := newStore(t)
	root, narrowed := ts.root(sid(1)), ts.root(sid(2))
	child := ts.child(root, sid(3), "k")
	ts.narrow(narrowed)
	mode := func(v policy.Sandbox) NewEvent { return NewEvent{Type: TypeSandboxMode, Facts: SandboxFacts(v)} }
	approvals := func(a policy.Approval) NewEvent { return NewEvent{Type: TypeApprovalPolicy, Facts: ApprovalFacts(a)} }
	ceiling := func(m map[string]any) NewEvent {
		return NewEvent{Type: TypePolicyNarrowed, Facts: mustFacts(map[string]any{"ceiling": m, "by": "operator"})}
	}
	readOnly, top := mode(policy.Sandbox{Mode: policy.ReadOnly}.Canonical()), mode(policy.Top())
	for _, c := range []struct {
		name    string
		session uuid.UUID
		is      error
		events  []NewEvent
	}{
		{"a child to everything", child, ErrWidening, []NewEvent{top}},
		{"a child to the network", child, ErrWidening, []NewEvent{mode(policy.Sandbox{Mode: policy.ReadOnly, Network: true}.Canonical())}},
		{"a child to asking", child, ErrWidening, []NewEvent{approvals(policy.Ask)}},
		{"behind a harmless event", child, ErrWidening, []NewEvent{readOnly, approvals(policy.Never), top}},
		{"a narrowed root", narrowed, ErrWidening, []NewEvent{top}},
		{"no approval", root, ErrInvalid, []NewEvent{approvals("on-request")}},
		{"no mode", root, ErrInvalid, []NewEvent{mode(policy.Sandbox{Mode: "external-sandbox"})}},
		{"roots that can't be read", root, ErrInvalid, []NewEvent{{Type: TypeSandboxMode, Facts: mustFacts(map[string]any{"mode": "workspace-write", "writable_roots": []any{"not/absolute"}})}}},
	} {
		for via, entry := range map[string]Entry{"operator": EntryOperator, "runtime": EntryRuntime} {
			t.Run(c.name+", "+via, func(t *testing.T) {
				ts.unchanged(t, func() {
					_, err := ts.transact(entry, Batch{Session: c.session, Expect: Any(), Events: c.events})
					require.ErrorIs(t, err, c.is)
				})
			})
		}
	}
	ts.unchanged(t, func() {
		for _, unread := range []map[string]any{{"tools": "none"}, {}, {"sandbox": map[string]any{"network": true}}} {
			_, err := ts.transact(EntryOperator, Batch{Session: root, Expect: Any(), Events: []NewEvent{ceiling(unread)}})
			require.ErrorIs(t, err, ErrInvalid, "a ceiling that no reader understands")
		}
		_, err := ts.transact(EntryOperator, Batch{Session: child, Expect: Any(), Events: []NewEvent{{Type: TypePolicyProfile, Facts: must(Profile{Authority: policy.TopAuthority()}.Facts())}}})
		require.ErrorIs(t, err, ErrUnauthorized, "a child has no profile of its own")
		_, err = ts.transact(EntryOperator, Batch{Session: root, Expect: Any(), Events: []NewEvent{ceiling(map[string]any{"sandbox": sandboxFact(policy.Sandbox{Mode: policy.ReadOnly}.Canonical())}), top}})
		require.ErrorIs(t, err, ErrWidening, "against a narrowing of the same batch")
		for _, via := range []Entry{EntryOperator, EntryRuntime} {
			_, err = ts.transact(via, Batch{Session: child, Expect: Any(), Events: []NewEvent{{Type: TypeSessionEndSeed}}})
			require.ErrorIs(t, err, ErrUnauthorized, "a seed has ended where the child's own life began")
		}
	})
	_, err := ts.transact(EntryRuntime, Batch{Session: child, Expect: Any(), Events: []NewEvent{readOnly, approvals(policy.Never)}})
	require.NoError(t, err)
	_, err = ts.transact(EntryOperator, Batch{Session: root, Expect: Any(), Events: []NewEvent{top, approvals(policy.Ask), readOnly, top}})
	require.NoError(t, err, "a root that nobody narrowed is bounded by nothing")
}

// TestForgedImportIsRefused: what an importer may not make or take.
func TestForgedImportIsRefused(t *testing.T) {
	ts := newStore(t)
	external := &External{System: "codex", IDHash: ExternalHash("codex", "a")}
	c := Created{Kind: KindRoot, Root: sid(1), MaxDepth: 3, Mode: ModeContinuable, External: external, Defaults: readOnlyDefaults()}
	_, err := ts.transact(EntryCreate, Batch{Session: sid(1), Events: []NewEvent{{Type: TypeSessionCreated, Facts: c.Facts()}}})
	require.NoError(t, err)
	child := ts.child(sid(1), sid(2), "k")

	evidence := func(id uuid.UUID, change func(*Created)) Batch {
		c := Created{Kind: KindChild, Parent: sid(1), Root: sid(1), Depth: 1, MaxDepth: 8, Mode: ModeContinuable, Evidence: true, Defaults: readOnlyDefaults()}
		change(&c)
		g := Granted{Parent: sid(1), Child: id, Root: sid(1), Depth: 1, MaxDepth: 8, Choices: policy.Choices{Role: policy.RoleGeneral}, Defaults: readOnlyDefaults(), Key: KeyHash(sid(1), "k")}
		return Batch{Session: id, Events: []NewEvent{{Type: TypeSessionCreated, Facts: c.Facts()}, {Type: TypeDelegationGranted, Facts: must(g.Facts())}}}
	}
	ts.unchanged(t, func() {
		_, err := ts.transact(EntryImport, evidence(sid(9), func(c *Created) { c.Evidence = false }))
		require.ErrorIs(t, err, ErrUnauthorized, "an importer makes no native session")
		_, err = ts.transact(EntryImport, evidence(sid(9), func(c *Created) { c.External = external }))
		require.ErrorIs(t, err, ErrUnauthorized, "nor takes a native session's name")
		require.ErrorContains(t, err, "held by session "+sid(1).String())
		for _, id := range []uuid.UUID{sid(1), child} {
			_, err = ts.transact(EntryImport, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: TypePolicyNarrowed, Facts: NarrowedFacts(policy.Top(), "x")}}})
			require.ErrorIs(t, err, ErrUnauthorized, "nor a policy in a native log")
		}
	})
	own := &External{System: "codex", IDHash: ExternalHash("codex", "b")}
	_, err = ts.transact(EntryImport, evidence(sid(9), func(c *Created) { c.External = own }))
	require.NoError(t, err)
	found, err := ts.ByKey(sid(1), "k")
	require.NoError(t, err)
	require.Equal(t, child, found, "the receipt it brings names no key")
	found, err = ts.ByExternal("codex", "a")
	require.NoError(t, err)
	require.Equal(t, sid(1), found)
}

// TestForgedGrantIsRefused: a receipt that grants what the parent, by its own
// log, can't hand on. A narrowing of the authority binds like a profile.
func TestForgedGrantIsRefused(t *testing.T) {
	for _, half := range []string{"own", "delegable"} {
		ts := newStore(t)
		parent := ts.root(sid(1))
		ceiling := policy.TopHalf()
		ceiling.Grant.Shell = policy.GrantInspect
		_, err := ts.transact(EntryOperator, Batch{Session: parent, Expect: Any(), Events: []NewEvent{{Type: TypePolicyNarrowed, Facts: must(Ceiling{Half: &ceiling}.Facts("operator"))}}})
		require.NoError(t, err)
		grant := func(h policy.Half) []Batch {
			return ts.forge(parent, sid(9), func(f *forgery) {
				f.granted.Granted = policy.Authority{Own: ceiling, Delegable: ceiling}
				if half == "own" {
					f.granted.Granted.Own = h
				} else {
					f.granted.Granted.Delegable = h
				}
				f.granted.Ceiling = policy.Authority{Own: ceiling, Delegable: ceiling}
				f.granted.Fingerprint = policy.FingerprintOf(f.granted.Choices.Role, f.granted.Granted).Sum
			})
		}
		_, err = ts.transact(EntryDelegation, grant(policy.TopHalf())...)
		require.ErrorIs(t, err, ErrWidening)
		require.ErrorContains(t, err, "granted "+half+": more than session")
		_, err = ts.transact(EntryDelegation, grant(ceiling)...)
		require.NoError(t, err)
	}
}
