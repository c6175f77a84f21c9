package retention

import (
	"bytes"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/bundle"
	"childlog/eventlog"
)

// TestLogsOfOtherStores keep their contents, with the reason, in a dry run too;
// past their time they are purged like others.
func TestLogsOfOtherStores(t *testing.T) {
	from, to := newStore(t), newStore(t)
	id := from.session(uuid.Nil, 400)
	var b bytes.Buffer
	_, err := bundle.Export(ctx, from.Store, &b, bundle.Options{})
	require.NoError(t, err)
	_, err = bundle.Import(ctx, to.Store, bytes.NewReader(b.Bytes()), bundle.ImportOptions{By: "tester"})
	require.NoError(t, err)
	evidence := []string{eventlog.StatusEvidence}
	for _, dry := range []bool{true, false} {
		items := to.apply(Rule{Class: Contents, Status: evidence, DryRun: dry})
		require.Len(t, items, 1)
		require.Equal(t, Skip, items[0].Action)
		require.Contains(t, items[0].Why, "from another store")
		require.NoError(t, items[0].Err)
	}
	items := to.apply(Rule{Class: Sessions, Status: evidence})
	require.Equal(t, Purge, items[0].Action)
	_, err = to.Row(id)
	require.ErrorIs(t, err, eventlog.ErrPurged)
}
