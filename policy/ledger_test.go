package policy_test

import (
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	created   = at(policy.SourceDefault, 1)
	delegated = at(policy.SourceDelegation, 3)
)

func switched(seq uint64) policy.Cause { return at(policy.SourceSwitch, seq) }
func narrowed(seq uint64) policy.Cause { return at(policy.SourceNarrowing, seq) }

func childOf(captured policy.Sandbox) policy.Ledger {
	return policy.ChildLedger(&captured, policy.Top(), created, delegated)
}

// same compares values, so that a failure prints both.
func same(t *testing.T, want, got policy.Sandbox, msg ...any) {
	t.Helper()
	assert.Equal(t, want.Canonical(), got.Canonical(), msg...)
}

func TestCase50_SwitchBackAfterNarrowingIsWidening(t *testing.T) {
	for name, l := range map[string]policy.Ledger{
		"child": childOf(write(t, "/w")),
		"root":  policy.RootLedger(write(t, "/w"), created),
	} {
		require.True(t, l.Narrow(readOnly(), narrowed(5)), name)
		before := l
		err := l.Switch(write(t, "/w"), switched(6))
		require.ErrorIs(t, err, policy.ErrWidening, name)

		var widening *policy.WideningError
		require.ErrorAs(t, err, &widening, name)
		same(t, write(t, "/w"), widening.Got, name)
		same(t, readOnly(), widening.Bound, name)
		assert.Equal(t, narrowed(5), widening.BoundBy, name)
		assert.EqualError(t, err, "widening: sandbox: got workspace-write /w (network off), "+
			"want within read-only (network off), set by narrowing 11111111@5")

		assert.Equal(t, before, l, name)
		same(t, readOnly(), l.Effective().Value, name)
	}
}

func TestCase50_NarrowedParentWithoutOverrideHandsDownReadOnly(t *testing.T) {
	root := policy.RootLedger(write(t, "/w"), created)
	_, ok := root.Captured()
	require.False(t, ok, "nothing stated, nothing captured")

	root.Narrow(readOnly(), narrowed(5))
	assert.False(t, root.Explicit())
	captured, ok := root.Captured()
	require.True(t, ok)
	same(t, readOnly(), captured)

	l := policy.ChildLedger(&captured, root.Default().Value, created, delegated)
	same(t, readOnly(), l.Effective().Value)
	require.ErrorIs(t, l.Switch(write(t, "/w"), switched(7)), policy.ErrWidening)
}

func TestRootLedger(t *testing.T) {
	l := policy.RootLedger(write(t, "/w"), created)
	assert.Equal(t, policy.Trace(write(t, "/w"), created), l.Effective())
	assert.Equal(t, policy.Top(), l.Bound().Value)
	assert.False(t, l.Explicit())

	require.NoError(t, l.Switch(policy.Top(), switched(5)), "a root is bounded by the top")
	assert.Equal(t, policy.Trace(policy.Top(), switched(5)), l.Effective(), "set by the switch, not by the creation")
	assert.True(t, l.Explicit())
	captured, ok := l.Captured()
	require.True(t, ok)
	assert.Equal(t, policy.Top(), captured)
	assert.Equal(t, policy.Trace(write(t, "/w"), created), l.Default())
}

func TestChildLedger(t *testing.T) {
	l := childOf(write(t, "/w"))
	assert.Equal(t, policy.Trace(write(t, "/w"), delegated), l.Effective())
	assert.Equal(t, policy.Trace(write(t, "/w"), delegated), l.Bound())
	assert.Equal(t, policy.Trace(policy.Top(), created), l.Default())
	assert.True(t, l.Explicit())

	for name, wider := range map[string]policy.Sandbox{
		"mode":    policy.Top(),
		"roots":   write(t, "/"),
		"network": online(readOnly()),
		"absent":  {Mode: policy.WorkspaceWrite},
	} {
		assert.ErrorIs(t, l.Switch(wider, switched(5)), policy.ErrWidening, name)
	}
	require.ErrorIs(t, l.Switch(policy.Sandbox{Mode: "external-sandbox"}, switched(5)), policy.ErrInvalid)
	assert.Equal(t, childOf(write(t, "/w")), l, "a refused switch changes nothing")

	// Within the bound a switch goes both ways.
	require.NoError(t, l.Switch(write(t, "/w/out"), switched(5)))
	same(t, write(t, "/w/out"), l.Effective().Value)
	require.NoError(t, l.Switch(readOnly(), switched(6)))
	require.NoError(t, l.Switch(write(t, "/w"), switched(7)))
	same(t, write(t, "/w"), l.Effective().Value)
}

// Without a captured value a child lives within the default recorded for it,
// and has nothing of its own to hand down.
func TestChildLedgerWithoutCapture(t *testing.T) {
	l := policy.ChildLedger(nil, write(t, "/w"), created, delegated)
	assert.Equal(t, policy.Trace(write(t, "/w"), created), l.Effective())
	assert.Equal(t, policy.Trace(write(t, "/w"), created), l.Bound())
	assert.False(t, l.Explicit())
	_, ok := l.Captured()
	assert.False(t, ok)
	assert.ErrorIs(t, l.Switch(policy.Top(), switched(5)), policy.ErrWidening)

	require.NoError(t, l.Switch(readOnly(), switched(5)))
	captured, ok := l.Captured()
	require.True(t, ok)
	same(t, readOnly(), captured)
}

func TestChildLedgerKeepsItsOwnCopy(t *testing.T) {
	captured := write(t, "/w")
	l := policy.ChildLedger(&captured, policy.Top(), created, delegated)
	captured = policy.Top()
	same(t, write(t, "/w"), l.Effective().Value)
	assert.Equal(t, policy.Top(), captured)
}

func TestNarrowingOutlivesSwitches(t *testing.T) {
	l := policy.RootLedger(policy.Top(), created)
	require.NoError(t, l.Switch(online(write(t, "/w")), switched(4)))
	require.True(t, l.Narrow(write(t, "/w", "/x"), narrowed(5)))
	same(t, write(t, "/w"), l.Effective().Value, "also of a switch recorded before")

	require.NoError(t, l.Switch(write(t, "/x"), switched(6)))
	same(t, write(t, "/x"), l.Effective().Value)
	require.ErrorIs(t, l.Switch(online(write(t, "/x")), switched(7)), policy.ErrWidening)

	assert.False(t, l.Narrow(write(t, "/"), narrowed(8)), "wider than the bound: no change")
	assert.False(t, l.Narrow(write(t, "/w", "/x"), narrowed(8)), "the bound itself: no change")
	require.True(t, l.Narrow(write(t, "/w"), narrowed(9)))
	same(t, write(t), l.Effective().Value, "disjoint from the switch: nothing is writable")
	require.NoError(t, l.Switch(write(t, "/w"), switched(10)))
	same(t, write(t, "/w"), l.Effective().Value)
}

// The ceiling of the whole is not narrower than an untouched root's top, so it
// leaves no trace: nothing to capture, no bound.
func TestNarrowingToTheTopIsNone(t *testing.T) {
	l := policy.RootLedger(write(t, "/w"), created)
	before := l
	assert.False(t, l.Narrow(policy.Top(), narrowed(5)))
	assert.Equal(t, before, l)
	require.NoError(t, l.Switch(policy.Top(), switched(6)))
}

func TestKeepNeverRefusesAndNeverWidens(t *testing.T) {
	l := childOf(write(t, "/w"))
	assert.True(t, l.Keep(policy.Top(), at(policy.SourceImport, 5)))
	same(t, write(t, "/w"), l.Effective().Value)
	assert.Equal(t, delegated, l.Effective().Cause())

	assert.False(t, l.Keep(write(t, "/w/a"), at(policy.SourceImport, 6)))
	same(t, write(t, "/w/a"), l.Effective().Value)

	assert.False(t, l.Keep(policy.Sandbox{Mode: "external-sandbox", Network: true}, at(policy.SourceImport, 7)))
	same(t, readOnly(), l.Effective().Value)
}

func TestWideningNamesTheComponentThatRefuses(t *testing.T) {
	l := childOf(online(write(t, "/w")))
	require.True(t, l.Narrow(online(write(t, "/w/out")), narrowed(5)))
	require.True(t, l.Narrow(write(t, "/w"), narrowed(6)))
	noTmp := write(t, "/w")
	noTmp.ExcludeTmpdirEnvVar = true
	require.True(t, l.Narrow(noTmp, narrowed(7)))
	noTmp.ExcludeTmpdirEnvVar, noTmp.ExcludeSlashTmp = false, true
	require.True(t, l.Narrow(noTmp, narrowed(8)))

	within := l.Bound().Value
	tmpdir, slashTmp := within, within
	tmpdir.ExcludeTmpdirEnvVar = false
	slashTmp.ExcludeSlashTmp = false
	for name, c := range map[string]struct {
		v  policy.Sandbox
		by policy.Cause
	}{
		"mode":    {policy.Top(), delegated},
		"roots":   {write(t, "/w"), narrowed(5)},
		"network": {online(within), narrowed(6)},
		"tmpdir":  {tmpdir, narrowed(7)},
		"/tmp":    {slashTmp, narrowed(8)},
	} {
		var widening *policy.WideningError
		require.ErrorAs(t, l.Switch(c.v, switched(9)), &widening, name)
		assert.Equal(t, c.by, widening.BoundBy, name)
	}
	require.NoError(t, l.Switch(within, switched(9)))
}

func TestZeroLedgerIsReadOnly(t *testing.T) {
	var l policy.Ledger
	same(t, readOnly(), l.Effective().Value)
	assert.ErrorIs(t, l.Switch(write(t, "/w"), switched(1)), policy.ErrWidening)
	assert.ErrorIs(t, l.Switch(online(readOnly()), switched(1)), policy.ErrWidening)
}
