package replay_test

import (
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

var (
	handRoot   = uuid.MustParse("11111111-1111-4111-8111-111111111111")
	handParent = uuid.MustParse("22222222-2222-4222-8222-222222222222")
	handChild  = uuid.MustParse("33333333-3333-4333-8333-333333333333")
)

// policyTypes bear policy. The list is kept here as well, so that a change of
// the one in eventlog shows.
var policyTypes = map[string]bool{eventlog.TypeSessionCreated: true, eventlog.TypeDelegationGranted: true, eventlog.TypePolicyProfile: true,
	eventlog.TypePolicyNarrowed: true, eventlog.TypeSandboxMode: true, eventlog.TypeApprovalPolicy: true}

// handLog is a log written by hand, so that a test can state what no call of
// the module would write.
type handLog struct {
	t       testingT
	session uuid.UUID
	events  []eventlog.Event
}

// add appends an event with the next seq.
func (l *handLog) add(typ string, src eventlog.Source, f eventlog.Facts) *handLog {
	version := uint8(1)
	l.events = append(l.events, eventlog.Event{Session: l.session, Seq: uint64(len(l.events) + 1), ID: uuid.NewSHA1(l.session, []byte{byte(len(l.events))}),
		Type: typ, Version: version, Source: src, PolicyBearing: policyTypes[typ], Facts: f})
	return l
}

func (l *handLog) fold() (replay.Effective, error) { return replay.Fold(l.events) }

// at is the event with the seq, to be changed.
func (l *handLog) at(seq int) *eventlog.Event { return &l.events[seq-1] }

// set changes or, with a nil value, removes one top-level fact of an event.
func (l *handLog) set(seq int, name string, value any) *handLog {
	m, err := l.at(seq).Facts.Map()
	require.NoError(l.t, err)
	if m[name] = value; value == nil {
		delete(m, name)
	}
	l.at(seq).Facts, err = eventlog.MakeFacts(m)
	require.NoError(l.t, err)
	return l
}

// setIn changes or removes a fact one level down.
func (l *handLog) setIn(seq int, outer, name string, value any) *handLog {
	m, err := l.at(seq).Facts.Map()
	require.NoError(l.t, err)
	inner := m[outer].(map[string]any)
	if inner[name] = value; value == nil {
		delete(inner, name)
	}
	return l.set(seq, outer, inner)
}

// cut removes the events with the seqs, without renumbering: what a fold by
// links would be shown if they were lost.
func (l *handLog) cut(seqs ...uint64) *handLog {
	var kept []eventlog.Event
	for _, ev := range l.events {
		lost := false
		for _, seq := range seqs {
			lost = lost || ev.Seq == seq
		}
		if !lost {
			kept = append(kept, ev)
		}
	}
	l.events = kept
	return l
}

func handDefaults() policy.Defaults {
	return policy.Defaults{Sandbox: policy.Sandbox{Mode: policy.ReadOnly}.Canonical(), Approvals: policy.Ask}
}

// rootLog is a root with nothing but its creation.
func rootLog(t testingT) *handLog {
	l := &handLog{t: t, session: handRoot}
	c := eventlog.Created{Kind: eventlog.KindRoot, Root: handRoot, MaxDepth: 3, Mode: eventlog.ModeContinuable, WorkspaceRoot: workspace,
		PathStyle: "posix", Defaults: handDefaults()}
	return l.add(eventlog.TypeSessionCreated, eventlog.SourceOperator, c.Facts())
}

// childLog is a child as materialize writes it: seq 1 created, 2 receipt, then
// the sandbox if there is one, then the pin.
func childLog(t testingT, sandbox *policy.Sandbox) *handLog {
	l := &handLog{t: t, session: handChild}
	head := eventlog.Digest([]byte("the parent's head"))
	c := eventlog.Created{Kind: eventlog.KindChild, Parent: handParent, ParentSeq: 7, ParentHead: head, Root: handRoot, Depth: 2, MaxDepth: 3,
		Mode: eventlog.ModeContinuable, Provider: eventlog.Provider{Name: "in-process", InProcess: true}, WorkspaceRoot: workspace, PathStyle: "posix", Defaults: handDefaults()}
	g := eventlog.Granted{Parent: handParent, Child: handChild, Root: handRoot, Depth: 2, MaxDepth: 3, ParentSeq: 7, ParentHead: head,
		Capture: eventlog.Digest([]byte("the capture")), Sandbox: sandbox, Defaults: handDefaults(), WorkspaceRoot: workspace,
		Ceiling: policy.TopAuthority(), Requested: policy.TopAuthority(), Granted: policy.TopAuthority(), Choices: policy.Choices{Role: policy.RoleGeneral},
		Fingerprint: policy.FingerprintOf(policy.RoleGeneral, policy.TopAuthority()).Sum}
	l.add(eventlog.TypeSessionCreated, eventlog.SourceDelegation, c.Facts()).add(eventlog.TypeDelegationGranted, eventlog.SourceDelegation, must(g.Facts()))
	if sandbox != nil {
		l.add(eventlog.TypeSandboxMode, eventlog.SourceDelegation, eventlog.SandboxFacts(*sandbox))
	}
	return l.add(eventlog.TypeApprovalPolicy, eventlog.SourceDelegation, eventlog.ApprovalFacts(policy.Never))
}

// evidenceLog is an imported session with nothing but its creation.
func evidenceLog(t testingT, kind string) *handLog {
	l := &handLog{t: t, session: handChild}
	c := eventlog.Created{Kind: kind, Root: handRoot, MaxDepth: 3, Mode: eventlog.ModeContinuable, Defaults: handDefaults(), Evidence: true}
	if kind == eventlog.KindChild {
		c.Parent, c.Depth = handParent, 1
	} else {
		c.Root = handChild
	}
	return l.add(eventlog.TypeSessionCreated, eventlog.SourceImport, c.Facts())
}

func fullAccess() *policy.Sandbox { v := policy.Top(); return &v }

func readOnly() policy.Sandbox { return policy.Sandbox{Mode: policy.ReadOnly}.Canonical() }
