package bundle_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/note"

	"childlog/cmd/childlog/internal/audittest"
	"childlog/cmd/childlog/internal/bundle"
	"childlog/cmd/childlog/internal/codex"
	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/snapshot"
)

// withErasures is a store in which all happened that takes something away: the
// scene with evidence of codex, a child that adopted it, contents erased in
// both, a hold, a purge, and a rollback that was accepted.
func withErasures(t *testing.T) (s *eventlog.Store, adopter uuid.UUID) {
	ctx, dir := context.Background(), t.TempDir()
	place := filepath.Join(dir, "store")
	scene := audittest.Scene(t, audittest.Texts{Label: "write", Prompt: "the prompt", Argument: "the argument", Result: "the result"})
	_, err := scene.Backup(ctx, filepath.Join(dir, "backup"), eventlog.BackupOptions{})
	require.NoError(t, err)
	_, err = eventlog.Restore(ctx, filepath.Join(dir, "backup"), place, eventlog.RestoreOptions{})
	require.NoError(t, err)
	s, err = eventlog.Open(ctx, place, eventlog.Options{})
	require.NoError(t, err)

	report, err := codex.Import(ctx, s, []string{"../codex/testdata/tree/c-root.jsonl"}, importer.Options{})
	require.NoError(t, err)
	evidence := report.SessionList[0].ID
	made, err := materialize.Delegate(ctx, s, audittest.Root, snapshot.Options{}, materialize.Request{Adopt: evidence, Label: "goes on"})
	require.NoError(t, err)
	order := eventlog.Order{Code: "erasure-request", By: "dpo", Reason: "asked for"}
	page, err := s.Read(ctx, made.ID, eventlog.ReadOptions{From: 2, To: 2})
	require.NoError(t, err)
	for session, seq := range map[uuid.UUID]uint64{evidence: page.Events[0].Inherited.Seq, audittest.Root: 1} {
		out, err := s.Redact(ctx, eventlog.RedactRequest{Order: order, Session: session, Seqs: []uint64{seq}})
		require.NoError(t, err)
		if session == evidence {
			require.Equal(t, made.ID, out.Sessions[1].Session)
		}
	}
	_, err = s.Hold(ctx, eventlog.HoldRequest{Order: order, Session: audittest.Child})
	require.NoError(t, err)
	_, err = s.Purge(ctx, eventlog.PurgeRequest{Order: order, Session: audittest.Grandchild})
	require.NoError(t, err)
	require.NoError(t, s.Close())

	early, err := os.ReadFile(filepath.Join(place, "store.db"))
	require.NoError(t, err)
	s, err = eventlog.Open(ctx, place, eventlog.Options{})
	require.NoError(t, err)
	_, err = s.Hold(ctx, eventlog.HoldRequest{Order: order, Session: evidence})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, os.WriteFile(filepath.Join(place, "store.db"), early, 0o600))
	require.NoError(t, os.Remove(filepath.Join(place, "index.db")))
	_, err = eventlog.AcceptRollback(ctx, place, eventlog.AcceptOptions{By: "operator", Reason: "the disk is gone"})
	require.NoError(t, err)
	s, err = eventlog.Open(ctx, place, eventlog.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, made.ID
}

// TestWholeStoreElsewhere: whatever was taken away from a store, its bundle, a
// check of it and a check of the store that takes it in say the same: every
// digest is equal, what was erased with a marker reads as redacted and what the
// filter left out as withheld.
func TestWholeStoreElsewhere(t *testing.T) {
	ctx := context.Background()
	from, adopter := withErasures(t)
	point, err := from.Checkpoint(ctx)
	require.NoError(t, err)
	own, err := from.Check(ctx, eventlog.CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, own.Findings)
	require.Equal(t, eventlog.StatusRedacted, own.Status())
	require.EqualValues(t, 1, own.Purged)
	key, err := note.NewVerifier(from.Identity().Key)
	require.NoError(t, err)
	hide := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("the result"), []byte("[gone]")) }

	for name, filter := range map[string]func([]byte) []byte{"as it is": nil, "filtered": hide} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			wrote, err := bundle.Export(ctx, from, &b, bundle.Options{Note: point.Note, Filter: filter})
			require.NoError(t, err)
			anchors := bundle.Anchors{Key: key, Checkpoint: point.Note}
			proven, err := bundle.Verify(ctx, bytes.NewReader(b.Bytes()), anchors)
			require.NoError(t, err)
			require.Empty(t, proven.Findings)
			require.Equal(t, bundle.Redacted, proven.Status())
			require.Equal(t, own.Redacted, proven.Erased)
			require.Equal(t, own.Tombstones, proven.Purged)
			require.Equal(t, wrote.Withheld, proven.Withheld)
			require.Equal(t, filter != nil, proven.Withheld > 0)

			to := filepath.Join(t.TempDir(), "store")
			_, err = eventlog.Init(ctx, to)
			require.NoError(t, err)
			s, err := eventlog.Open(ctx, to, eventlog.Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			_, err = bundle.Import(ctx, s, bytes.NewReader(b.Bytes()), bundle.ImportOptions{Anchors: anchors, By: "tester"})
			require.NoError(t, err)
			there, err := s.Check(ctx, eventlog.CheckOptions{})
			require.NoError(t, err)
			require.Empty(t, there.Findings)
			require.Equal(t, eventlog.StatusRedacted, there.Status())
			require.Equal(t, proven.Erased, there.Redacted)
			require.Equal(t, proven.Withheld, there.Withheld)

			redacted, withheld := uint64(0), uint64(0)
			sessions := 0
			require.NoError(t, from.EachRow(ctx, func(want *eventlog.Row) (bool, error) {
				if want.Session == eventlog.StoreSession {
					return true, nil
				}
				sessions++
				got, err := s.Row(want.Session)
				require.NoError(t, err)
				require.Equal(t, []any{want.Head, want.Hash, want.Redactions, want.Holds, want.SeedLen}, []any{got.Head, got.Hash, got.Redactions, got.Holds, got.SeedLen})
				return true, s.Replay(ctx, want.Session, true, func(ev *eventlog.Event) error {
					switch {
					case ev.Redacted != nil:
						redacted++
					case ev.ContentErr != nil:
						require.ErrorIs(t, ev.ContentErr, eventlog.ErrWithheld)
						withheld++
					}
					return nil
				})
			}))
			require.Equal(t, 4, sessions, "root, child, evidence and who adopted it")
			require.Equal(t, []uint64{there.Redacted, there.Withheld}, []uint64{redacted, withheld})
			page, err := s.Read(ctx, adopter, eventlog.ReadOptions{From: 2, To: 2, Contents: true})
			require.NoError(t, err)
			require.NotNil(t, page.Events[0].Redacted)
			_, err = s.Row(audittest.Grandchild)
			require.ErrorIs(t, err, eventlog.ErrNotFound, "what was purged there never came here")
		})
	}
}
