package replay_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// longChild makes a store with one child whose log has about n events.
func longChild(b *testing.B, n int) (dir string, child uuid.UUID) {
	ctx := context.Background()
	dir = filepath.Join(b.TempDir(), "store")
	_, err := eventlog.Init(ctx, dir)
	require.NoError(b, err)
	s, err := eventlog.Open(ctx, dir, eventlog.Options{})
	require.NoError(b, err)
	defer func() { require.NoError(b, s.Close()) }()
	root, err := materialize.Root(ctx, s, materialize.RootRequest{Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}, Workspace: "/srv/project"})
	require.NoError(b, err)
	made, err := materialize.Delegate(ctx, s, root.ID, snapshot.Options{}, materialize.Request{})
	require.NoError(b, err)
	body := make([]byte, 300)
	for i := range body {
		body[i] = 'a' + byte(i*7%26)
	}
	batch := make([]eventlog.NewEvent, 1000)
	for i := range batch {
		batch[i] = eventlog.NewEvent{Type: eventlog.TypeAssistantMessage, Media: eventlog.MediaText, Content: body}
	}
	for done := 0; done < n; done += len(batch) {
		_, err := s.Append(ctx, eventlog.Batch{Session: made.ID, Expect: eventlog.Any(), Events: batch})
		require.NoError(b, err)
	}
	return dir, made.ID
}

// BenchmarkPolicyOnly is the cost of the effective policy on an open store: it
// must not grow with the log.
func BenchmarkPolicyOnly(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			ctx := context.Background()
			dir, child := longChild(b, n)
			s, err := eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: true})
			require.NoError(b, err)
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				e, err := replay.Policy(ctx, s, child, 0)
				if err != nil || e.Sandbox.Value.Mode != policy.WorkspaceWrite {
					b.Fatal(e, err)
				}
			}
		})
	}
}

// BenchmarkVerifiedReplay is a full cold resume: checksums, chain and fold of
// every event.
func BenchmarkVerifiedReplay(b *testing.B) {
	const n = 100_000
	ctx := context.Background()
	dir, child := longChild(b, n)
	s, err := eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: true})
	require.NoError(b, err)
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := replay.Resume(ctx, s, replay.Request{Session: child, By: replay.AsOperator()}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
