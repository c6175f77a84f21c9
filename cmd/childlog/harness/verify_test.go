package harness_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
)

// TestVerifyIsTheCommand: with what was kept elsewhere and without, of the store
// and of a session. Damage is looked at where it is told from (package ops), by
// the command's scripts.
func TestVerifyIsTheCommand(t *testing.T) {
	s := storetest.New(t)
	life(t, harness.On(s))
	kept, err := s.Checkpoint(ctx)
	require.NoError(t, err)
	row, err := s.Row(uuid.MustParse(childID))
	require.NoError(t, err)
	key, dir := s.VerifierKey(), s.Dir()
	require.NoError(t, s.Close())
	note := filepath.Join(t.TempDir(), "kept.checkpoint")
	require.NoError(t, os.WriteFile(note, kept.Note, 0o600))
	anchor := fmt.Sprintf("%s %d %x", childID, row.Head, row.Hash)
	cases := []struct {
		args []string
		r    harness.VerifyRequest
	}{
		{[]string{"verify"}, harness.VerifyRequest{}},
		{[]string{"verify", childID}, harness.VerifyRequest{Session: childID}},
		{[]string{"verify", "--key", key, "--checkpoint", note, "--anchor", anchor},
			harness.VerifyRequest{Key: key, Checkpoints: []harness.KeptCheckpoint{{Name: note, Note: string(kept.Note)}}, Anchors: []string{anchor}}},
	}
	for _, c := range cases {
		want := run(t, dir, "", c.args...)
		ro, err := eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: true})
		require.NoError(t, err)
		v, err := harness.On(ro).Verify(ctx, c.r)
		require.NoError(t, err)
		require.Equal(t, want, lines(t, v), c.args)
		require.True(t, v.OK, v.Statement)
		require.NoError(t, ro.Close())
	}
}

// TestVerifyRefuses what it can't hold the store against, and gives up with ctx.
func TestVerifyRefuses(t *testing.T) {
	h := harness.On(storetest.New(t))
	scene(t, h)
	for what, r := range map[string]harness.VerifyRequest{
		"/key":                {Key: "x"},
		"/checkpoints/0/note": {Checkpoints: []harness.KeptCheckpoint{{Name: "x", Note: "y"}}},
		"/anchors/1":          {Anchors: []string{childID + " 1 " + strings.Repeat("0", 64), "x"}},
		"checkpoints":         {Checkpoints: make([]harness.KeptCheckpoint, 101)},
		"anchors":             {Anchors: make([]string, 10_001)},
	} {
		_, err := h.Verify(ctx, r)
		require.ErrorContains(t, err, what)
	}
	_, err := h.Verify(ctx, harness.VerifyRequest{Session: "77777777"})
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = h.Verify(gone, harness.VerifyRequest{})
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, h.Close())
	_, err = h.Verify(ctx, harness.VerifyRequest{})
	require.ErrorIs(t, err, eventlog.ErrStoreClosed)
}
