package replay_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// TestCase56_EvidenceIsNeverAuthority: a forged log says that it was delegated
// danger-full-access by a native parent, with a receipt that fits. It can be
// read and explained. Nothing can be done in its name, its claim attaches it to
// nobody, and it keeps nobody from being narrowed.
func TestCase56_EvidenceIsNeverAuthority(t *testing.T) {
	f := newFixture(t)
	native := f.rootWith(policy.ReadOnly)
	forged := f.forge(native, "run 4, call 7")

	e := f.policy(forged)
	require.True(t, e.Evidence)
	require.Equal(t, policy.DangerFullAccess, e.Sandbox.Value.Mode, "it is shown as it was imported")
	require.Equal(t, policy.SourceImport, e.Sandbox.Cause().Source, "and as what it is")
	x, err := replay.Explain(f.ctx, f.Store, forged, "sandbox", 0)
	require.NoError(t, err)
	require.Contains(t, x.Rule, "evidence and never authority")
	require.Contains(t, x.Change, "fresh delegation")

	before := map[uuid.UUID]eventlog.Hash{forged: f.row(forged).Hash, native: f.row(native).Hash}
	evidence := func(what string, err error) {
		t.Helper()
		require.ErrorIs(t, err, eventlog.ErrEvidence, what)
	}
	for _, by := range []replay.Caller{replay.AsOperator(), replay.AsParent(native)} {
		_, err = replay.Resume(f.ctx, f.Store, replay.Request{Session: forged, By: by})
		evidence("resume", err)
		_, err = replay.Activate(f.ctx, f.Store, forged, by)
		evidence("activate", err)
		_, _, err = replay.Send(f.ctx, f.Store, forged, by, "go on")
		evidence("send", err)
		_, err = replay.Interrupt(f.ctx, f.Store, forged, by, true)
		evidence("interrupt", err)
	}
	_, err = snapshot.Take(f.ctx, f.Store, forged, snapshot.Options{})
	evidence("capture", err)
	_, err = materialize.Delegate(f.ctx, f.Store, forged, snapshot.Options{}, materialize.Request{})
	evidence("delegate", err)
	_, _, err = replay.Switch(f.ctx, f.Store, forged, replay.Change{Sandbox: &policy.Setting{Mode: policy.ReadOnly}})
	evidence("switch", err)
	_, err = replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: forged, Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Reason: "r"})
	evidence("narrow", err)
	_, err = replay.Settle(f.ctx, f.Store, forged, 0, "completed")
	evidence("settle", err)
	_, err = replay.Close(f.ctx, f.Store, forged)
	evidence("close", err)
	_, err = f.Store.Append(f.ctx, eventlog.Batch{Session: forged, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: "user/message"}}})
	evidence("append", err)
	_, err = replay.Consume(f.ctx, f.Store, native, forged)
	evidence("consume", err)
	_, err = replay.Claim(f.ctx, f.Store, forged, 1)
	require.ErrorIs(t, err, eventlog.ErrFenced)
	for id, hash := range before {
		require.Equal(t, hash, f.row(id).Hash)
	}

	t.Run("a key that it claims leads to nobody", func(t *testing.T) {
		r := materialize.Request{Key: "run 4, call 7"}
		made, err := materialize.Delegate(f.ctx, f.Store, native, snapshot.Options{}, r)
		require.NoError(t, err)
		require.NotEqual(t, forged, made.ID)
		require.False(t, made.Existing)
		require.True(t, made.Policy.Sandbox.Value.Equal(readOnly()))
		f.dropIndexAndReopen() // names are rebuilt the same way
		again, err := materialize.Existing(f.ctx, f.Store, native, r)
		require.NoError(t, err)
		require.Equal(t, made.ID, again.ID)
	})
	t.Run("a native subtree is narrowed past it", func(t *testing.T) {
		for _, n := range f.narrow(native, policy.ReadOnly, true) {
			if n.Session == forged {
				require.Equal(t, replay.SkipEvidence, n.Skipped)
			}
		}
		wide := f.rootWith(policy.DangerFullAccess)
		child := f.child(wide).ID
		f.forge(wide, "k")
		f.forge(child, "k")
		f.narrow(wide, policy.ReadOnly, true)
		require.True(t, f.policy(child).Sandbox.Value.Equal(readOnly()))
	})
	t.Run("its notices are nobody's", func(t *testing.T) {
		for _, n := range f.notices(native) {
			require.NotEqual(t, forged, n.Child)
		}
	})
	t.Run("native events do not get into it, nor its into native logs", func(t *testing.T) {
		child := f.child(native).ID
		_, err := f.Store.Transact(f.ctx, eventlog.EntryImport, func(*eventlog.View) ([]eventlog.Batch, error) {
			return []eventlog.Batch{{Session: child, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: eventlog.TypeSandboxMode, Facts: eventlog.SandboxFacts(policy.Top())}}}}, nil
		})
		require.ErrorIs(t, err, eventlog.ErrUnauthorized)
	})
}

// forge imports a log that looks in every field like a child of parent made
// under a key, with everything that a forger can compute.
func (f *fixture) forge(parent uuid.UUID, key string) uuid.UUID {
	f.t.Helper()
	id, err := uuid.NewRandom()
	require.NoError(f.t, err)
	row := f.row(parent)
	top := policy.Top()
	c := eventlog.Created{Kind: eventlog.KindChild, Parent: parent, ParentSeq: row.Head, ParentHead: row.Hash, Root: row.Root, Depth: row.Depth + 1, MaxDepth: 8,
		Mode: eventlog.ModeContinuable, Evidence: true, Defaults: policy.Defaults{Sandbox: top, Approvals: policy.Ask}}
	g := eventlog.Granted{Parent: parent, Child: id, Root: row.Root, Depth: row.Depth + 1, MaxDepth: 8, Choices: policy.Choices{Role: policy.RoleGeneral}, ParentSeq: row.Head, ParentHead: row.Hash,
		Sandbox: &top, Defaults: c.Defaults, Key: eventlog.KeyHash(parent, key)}
	events := []eventlog.NewEvent{{Type: eventlog.TypeSessionCreated, Facts: c.Facts()},
		{Type: eventlog.TypeDelegationGranted, Facts: must(g.Facts()), Media: eventlog.MediaJSON, Content: []byte(`{"salt":"00","wish":{"mode":"continuable","provider":"in-process","in_process":true,"own":{}}}`)},
		{Type: eventlog.TypeSandboxMode, Facts: eventlog.ImportedSandboxFacts(top, eventlog.ClaimedDelegation)},
		{Type: eventlog.TypeApprovalPolicy, Facts: eventlog.ImportedApprovalFacts(policy.Never, eventlog.ClaimedDelegation)},
		{Type: eventlog.TypeSessionSettled, Facts: facts(f.t, "outcome", "completed")}}
	_, err = f.Store.Transact(f.ctx, eventlog.EntryImport, func(*eventlog.View) ([]eventlog.Batch, error) {
		return []eventlog.Batch{{Session: id, Events: events}}, nil
	})
	require.NoError(f.t, err)
	return id
}

// TestForgedCircles: imported logs that name each other, or themselves, as
// parents must hang no walk over a tree.
func TestForgedCircles(t *testing.T) {
	f := newFixture(t)
	a, b := uuid.MustParse("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"), uuid.MustParse("bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb")
	self := uuid.MustParse("cccccccc-cccc-4ccc-8ccc-cccccccccccc")
	for id, parent := range map[uuid.UUID]uuid.UUID{a: b, b: a, self: self} {
		c := eventlog.Created{Kind: eventlog.KindChild, Parent: parent, Root: id, Depth: 1, MaxDepth: 8, Mode: eventlog.ModeContinuable, Evidence: true, Defaults: handDefaults()}
		_, err := f.Store.Transact(f.ctx, eventlog.EntryImport, func(*eventlog.View) ([]eventlog.Batch, error) {
			return []eventlog.Batch{{Session: id, Events: []eventlog.NewEvent{{Type: eventlog.TypeSessionCreated, Facts: c.Facts()}}}}, nil
		})
		require.NoError(t, err)
	}
	for _, id := range []uuid.UUID{a, b, self} {
		_, err := replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: id, Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Reason: "r", Subtree: true})
		require.ErrorIs(t, err, eventlog.ErrEvidence)
		_, err = f.Store.Transact(f.ctx, eventlog.EntryOperator, func(v *eventlog.View) ([]eventlog.Batch, error) {
			_, err := v.Descendants(id)
			return nil, err
		})
		require.NoError(t, err)
		x, err := replay.Explain(f.ctx, f.Store, id, "sandbox", 0)
		require.NoError(t, err)
		require.LessOrEqual(t, len(x.Chain), 10)
	}
}

// TestEvidenceFold: what an imported log folds to. It is read, never refused
// for what it claims; where it goes beyond its delegation the narrower value
// is kept and a finding names the event.
func TestEvidenceFold(t *testing.T) {
	imp := eventlog.SourceImport
	sandbox := func(l *handLog, v policy.Sandbox, claimed string) *handLog {
		return l.add(eventlog.TypeSandboxMode, imp, eventlog.ImportedSandboxFacts(v, claimed))
	}
	approval := func(l *handLog, a policy.Approval, claimed string) *handLog {
		return l.add(eventlog.TypeApprovalPolicy, imp, eventlog.ImportedApprovalFacts(a, claimed))
	}
	delegated := func() *handLog {
		return approval(sandbox(evidenceLog(t, eventlog.KindChild), readOnly(), eventlog.ClaimedDelegation), policy.Never, eventlog.ClaimedDelegation)
	}
	fold := func(l *handLog) replay.Effective {
		t.Helper()
		e, err := l.fold()
		require.NoError(t, err)
		require.True(t, e.Evidence)
		return e
	}
	codes := func(e replay.Effective) (out []string) {
		for _, fi := range e.Findings {
			out = append(out, fi.Code)
		}
		return out
	}

	e := fold(delegated())
	require.Empty(t, e.Findings)
	require.Equal(t, uint64(3), e.BornSeq)

	e = fold(sandbox(delegated(), policy.Top(), eventlog.ClaimedSwitch))
	require.True(t, e.Sandbox.Value.Equal(readOnly()), "a widening after delegation keeps the narrower value")
	require.Equal(t, []replay.Finding{{Seq: 4, Code: replay.FindingWidened, Detail: e.Findings[0].Detail}}, e.Findings)

	e = fold(sandbox(delegated(), policy.Top(), eventlog.ClaimedDelegation))
	require.True(t, e.Sandbox.Value.Equal(readOnly()), "a second delegation is none")
	require.Equal(t, []string{replay.FindingWidened}, codes(e))

	e = fold(approval(delegated(), policy.Ask, eventlog.ClaimedSwitch))
	require.Equal(t, policy.Never, e.Approvals)
	require.Equal(t, policy.Ask, e.ApprovalRaw)
	require.Equal(t, []string{replay.FindingWidened}, codes(e))

	e = fold(approval(sandbox(evidenceLog(t, eventlog.KindChild), readOnly(), eventlog.ClaimedDelegation), "on-request", eventlog.ClaimedDelegation))
	require.Equal(t, policy.Never, e.Approvals, "whatever a foreign delegation says of approvals")
	require.Equal(t, policy.Approval("on-request"), e.ApprovalRaw)
	require.Equal(t, []string{replay.FindingWidened}, codes(e))

	e = fold(evidenceLog(t, eventlog.KindChild))
	require.Equal(t, policy.Never, e.Approvals)
	require.Equal(t, []string{replay.FindingUnpinned}, codes(e))

	e = fold(sandbox(evidenceLog(t, eventlog.KindRoot), policy.Sandbox{Mode: "external-sandbox", Network: true}, eventlog.ClaimedSwitch))
	require.True(t, e.Sandbox.Value.Equal(readOnly()))
	require.Equal(t, []string{replay.FindingForeignMode}, codes(e))

	e = fold(approval(evidenceLog(t, eventlog.KindRoot), "granular", eventlog.ClaimedSwitch))
	require.Equal(t, policy.Ask, e.Approvals)
	require.Equal(t, policy.Approval("granular"), e.ApprovalRaw)
	require.Equal(t, []string{replay.FindingForeignAsk}, codes(e))

	e = fold(evidenceLog(t, eventlog.KindRoot).add("policy/other", imp, facts(t)).unmarked(2))
	require.True(t, e.Evidence, "a foreign type of a closed family is kept as evidence")

	e = fold(delegated().add(eventlog.TypePolicyNarrowed, imp, eventlog.NarrowedFacts(readOnly(), "operator")))
	require.Equal(t, policy.SourceImport, e.Bound.Cause().Source)

	t.Run("the parent's old events before the delegation do not bind it", func(t *testing.T) {
		l := sandbox(evidenceLog(t, eventlog.KindChild), readOnly(), eventlog.ClaimedSwitch)
		e := fold(approval(sandbox(l, policy.Top(), eventlog.ClaimedDelegation), policy.Never, eventlog.ClaimedDelegation))
		require.Equal(t, policy.DangerFullAccess, e.Sandbox.Value.Mode)
	})
}

func (l *handLog) unmarked(seq int) *handLog { l.at(seq).PolicyBearing = false; return l }

// TestAStubIsClaimed: a root that stands for a session elsewhere has a claimed
// policy, and hands down what was claimed; what happens to it here is no claim.
func TestAStubIsClaimed(t *testing.T) {
	f := newFixture(t)
	stub := f.root(materialize.RootRequest{Claimed: true, Sandbox: &policy.Setting{Mode: policy.DangerFullAccess}, Approvals: policy.Ask})
	e := f.policy(stub)
	require.True(t, e.Claimed())
	require.Equal(t, eventlog.KindStub, e.Kind)
	for _, by := range []policy.Cause{e.Sandbox.Cause(), e.ApprovalBy, e.DefaultsBy} {
		require.Equal(t, policy.SourceClaimed, by.Source)
	}
	child := f.child(stub)
	require.Equal(t, policy.DangerFullAccess, child.Policy.Sandbox.Value.Mode)
	require.Equal(t, policy.SourceDelegation, child.Policy.Sandbox.Cause().Source)
	g, err := eventlog.ParseGranted(ptr(f.log(child.ID)[child.Policy.ReceiptSeq-1]))
	require.NoError(t, err)
	require.True(t, g.IssuerClaimed)

	f.narrow(stub, policy.ReadOnly, true)
	require.Equal(t, policy.SourceNarrowing, f.policy(stub).Bound.Cause().Source, "an operator narrowed it in this store")
	require.True(t, f.policy(child.ID).Sandbox.Value.Equal(readOnly()))
	g, err = eventlog.ParseGranted(ptr(f.log(f.child(f.rootWith(policy.ReadOnly)).ID)[1]))
	require.NoError(t, err)
	require.False(t, g.IssuerClaimed)
}
