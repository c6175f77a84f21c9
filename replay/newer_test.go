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

// TestCase15_AnUnknownOpenTypeIsListed: plugin/note, ignorable, at seq 6 does
// not keep a resume from working; it is listed and kept as it is. A required
// one is listed as such, and refuses only a harness that says what it knows.
func TestCase15_AnUnknownOpenTypeIsListed(t *testing.T) {
	f := newFixture(t)
	child := f.child(f.rootWith(policy.WorkspaceWrite)).ID // seq 1 to 4
	f.say(child, 0, event(t, "user/message"))
	note := eventlog.NewEvent{Type: "plugin/note", Ignorable: true, Media: eventlog.MediaOctets, Content: []byte{0, 0xff, 7}, Facts: facts(t, "kind", "aside")}
	require.Equal(t, uint64(6), f.say(child, 0, note).FirstSeq)
	f.say(child, 0, note)

	r := f.resume(child, replay.AsOperator())
	require.Equal(t, []replay.Skipped{{Type: "plugin/note", Count: 2, FirstSeq: 6}}, r.Skipped)
	kept := f.log(child)[5]
	require.Equal(t, note.Content, kept.Content)
	require.Equal(t, note.Facts, kept.Facts)
	require.True(t, kept.Ignorable)

	f.say(child, 0, event(t, "plugin/state"))
	r = f.resume(child, replay.AsOperator())
	require.Equal(t, []replay.Skipped{{Type: "plugin/note", Count: 2, FirstSeq: 6}, {Type: "plugin/state", Required: true, Count: 1, FirstSeq: 8}}, r.Skipped)

	for _, c := range []struct {
		known []string
		ok    bool
	}{{[]string{}, false}, {[]string{"plugin/note"}, false}, {[]string{"plugin/state"}, true}} {
		_, err := replay.Resume(f.ctx, f.Store, replay.Request{Session: child, By: replay.AsOperator(), Known: c.known})
		if c.ok {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, eventlog.ErrUnknownType)
		require.ErrorContains(t, err, "plugin/state at seq 8")
	}
	require.Equal(t, policy.WorkspaceWrite, f.policy(child).Sandbox.Value.Mode, "it never blocks the policy")

	t.Run("in a seed", func(t *testing.T) {
		forked := f.childOf(child, materialize.Request{Fork: f.row(child).Head}).ID
		r := f.resume(forked, replay.AsOperator())
		require.Len(t, r.Skipped, 2, "what was copied is in this log too")
		_, err := replay.Resume(f.ctx, f.Store, replay.Request{Session: forked, By: replay.AsOperator(), Known: []string{}})
		require.ErrorIs(t, err, eventlog.ErrUnknownType)
	})
}

// TestCase15_ATypeOfANewerVersionRefuses: an event of a closed family that
// this version does not know, or a newer schema of one that it does, may
// narrow something. Resume and everything that rests on the policy refuse;
// reading and checking go on.
func TestCase15_ATypeOfANewerVersionRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		write func(f *fixture, child uuid.UUID)
		patch func([]byte) bool
	}{
		"an unknown policy type": {
			func(f *fixture, child uuid.UUID) { f.narrow(child, policy.WorkspaceWrite, false) }, retype("policy/narrowed", "policy/budgeted")},
		"a newer schema of policy/narrowed": {
			func(f *fixture, child uuid.UUID) { f.narrow(child, policy.WorkspaceWrite, false) }, reversion("policy/narrowed", 2)},
		"a newer schema of sandbox/mode": {
			func(f *fixture, child uuid.UUID) { f.switchTo(child, policy.ReadOnly) }, reversion("sandbox/mode", 9)},
		"an unknown type that bears no policy here": {
			func(f *fixture, child uuid.UUID) { f.say(child, 0, event(f.t, "polixy/budget")) }, retype("polixy/budget", "policy/budget")},
		"an unknown session type": {
			func(f *fixture, child uuid.UUID) { f.say(child, 0, event(f.t, "sessiom/paused")) }, retype("sessiom/paused", "session/paused")},
		"a newer schema of an inbox type": {
			func(f *fixture, child uuid.UUID) {
				_, _, err := replay.Send(f.ctx, f.Store, child, replay.AsOperator(), "more")
				require.NoError(f.t, err)
			}, reversion("inbox/queued", 2)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			child := f.child(f.rootWith(policy.DangerFullAccess)).ID
			c.write(f, child)
			head := f.row(child).Head
			f.patchLast(child, c.patch)
			f.dropIndex()
			f.open(eventlog.Options{})

			refused := func(err error) {
				t.Helper()
				require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
				require.ErrorIs(t, err, eventlog.ErrUnknownType)
				require.NotErrorIs(t, err, eventlog.ErrNotFound)
			}
			_, err := replay.Policy(f.ctx, f.Store, child, 0)
			refused(err)
			_, err = replay.Resume(f.ctx, f.Store, replay.Request{Session: child, By: replay.AsOperator()})
			refused(err)
			_, err = snapshot.Take(f.ctx, f.Store, child, snapshot.Options{})
			refused(err)
			_, _, err = replay.Switch(f.ctx, f.Store, child, replay.Change{Sandbox: &policy.Setting{Mode: policy.ReadOnly}})
			refused(err)
			_, err = replay.Activate(f.ctx, f.Store, child, replay.AsOperator())
			refused(err)
			_, err = replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: child, Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Reason: "r"})
			refused(err)
			_, err = replay.Explain(f.ctx, f.Store, child, "sandbox", 0)
			refused(err)

			require.Len(t, f.log(child), int(head), "the log itself is read whole")
			report, err := f.Store.Check(f.ctx, eventlog.CheckOptions{})
			require.NoError(t, err)
			require.True(t, report.OK(), "%v", report.Findings)
			require.Equal(t, head, f.row(child).Head)
		})
	}
}

// TestSubtreeNarrowingReachesANewerMember: a member whose policy only a newer
// version can read is narrowed all the same. Skipping it would leave it wide
// for the day that version comes back.
func TestSubtreeNarrowingReachesANewerMember(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	newer, plain := f.child(root).ID, f.child(root).ID
	f.say(newer, 0, event(t, "polixy/budget"))
	f.patchLast(newer, retype("polixy/budget", "policy/budget"))
	f.dropIndex()
	f.open(eventlog.Options{})

	done := map[uuid.UUID]replay.Narrowed{}
	for _, n := range f.narrow(root, policy.ReadOnly, true) {
		done[n.Session] = n
	}
	require.Len(t, done, 3)
	require.True(t, done[newer].Unread)
	require.Empty(t, done[newer].Skipped)
	require.False(t, done[plain].Unread)
	last := f.log(newer)[done[newer].Seq-1]
	require.Equal(t, eventlog.TypePolicyNarrowed, last.Type)
	require.Equal(t, eventlog.SourceOperator, last.Source)
	require.True(t, f.policy(plain).Sandbox.Value.Equal(readOnly()))

	// The version that knows the type, and finds that it limits nothing, reads on.
	var known []eventlog.Event
	for _, ev := range f.log(newer) {
		if ev.Type != "policy/budget" {
			known = append(known, ev)
		}
	}
	e, err := replay.Fold(known)
	require.NoError(t, err)
	require.True(t, e.Sandbox.Value.Equal(readOnly()))
}
