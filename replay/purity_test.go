package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sort"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

// otherProcess names a store to a second run of this test binary, which then
// renders it and runs no test.
const otherProcess = "CHILDLOG_REPLAY_TEST_RENDER"

func TestMain(m *testing.M) {
	dir := os.Getenv(otherProcess)
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := eventlog.Open(context.Background(), dir, eventlog.Options{ReadOnly: true})
	if err == nil {
		err = renderStore(s, os.Stdout.WriteString)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s.Close()
}

// renderStore writes everything that is computed from the logs of a store, in
// a fixed order: policies with their provenance, as of every seq that has one,
// explanations, resumptions, notices.
func renderStore(s *eventlog.Store, write func(string) (int, error)) error {
	ctx := context.Background()
	var ids []uuid.UUID
	if err := s.EachRow(ctx, func(row *eventlog.Row) (bool, error) { ids = append(ids, row.Session); return true, nil }); err != nil {
		return err
	}
	put := func(v any) error {
		b, err := json.Marshal(v)
		if err == nil {
			_, err = write(string(b) + "\n")
		}
		return err
	}
	for _, id := range ids {
		head, err := replay.Policy(ctx, s, id, 0)
		if err != nil {
			return err
		}
		for seq := head.BornSeq; seq <= head.Seq; seq++ {
			e, err := replay.Policy(ctx, s, id, seq)
			if err != nil {
				return err
			}
			if err := put(rendered(&e)); err != nil {
				return err
			}
		}
		for _, field := range replay.Fields {
			x, err := replay.Explain(ctx, s, id, field, 0)
			if err != nil {
				return err
			}
			if err := put(x); err != nil {
				return err
			}
		}
		r, err := replay.Resume(ctx, s, replay.Request{Session: id, By: replay.AsOperator()})
		refusal := ""
		if err != nil {
			refusal = err.Error()
		}
		notices, err := replay.Notices(ctx, s, id)
		if err != nil {
			return err
		}
		if err := put(map[string]any{"refusal": refusal, "row": r.Row, "open": r.OpenCalls, "inbox": r.Inbox, "drift": r.Drift, "skipped": r.Skipped,
			"from": r.From, "context": r.Context, "notices": notices}); err != nil {
			return err
		}
	}
	return nil
}

// rendered is what an effective policy says, for comparing and printing.
func rendered(e *replay.Effective) map[string]any {
	traced := func(v policy.Traced) []any {
		return []any{v.Value.String(), v.Value.Roots.List(), v.Value.Roots.Recorded(), v.Mode.String(), v.Roots.String(), v.Network.String(), v.ExcludeTmpdirEnvVar.String(), v.ExcludeSlashTmp.String()}
	}
	return map[string]any{"session": e.Session, "seq": e.Seq, "kind": e.Kind, "evidence": e.Evidence, "parent": e.Parent, "root": e.Root, "depth": e.Depth,
		"max_depth": e.MaxDepth, "mode": e.Mode, "provider": e.Provider, "workspace": e.WorkspaceRoot, "sandbox": traced(e.Sandbox), "bound": traced(e.Bound),
		"explicit": e.Explicit, "approvals": e.Approvals, "approvals_raw": e.ApprovalRaw, "approvals_by": e.ApprovalBy.String(),
		"defaults": e.Defaults.Sandbox.String(), "defaults_approvals": e.Defaults.Approvals, "defaults_by": e.DefaultsBy.String(), "parent_seq": e.ParentSeq,
		"receipt_seq": e.ReceiptSeq, "born": e.BornSeq, "receipt": e.Receipt, "findings": e.Findings, "seqs": e.Seqs(), "context": replay.RuntimeContext(e)}
}

// family makes a small tree with something of everything in it.
func (f *fixture) family() (root uuid.UUID, all []uuid.UUID) {
	f.t.Helper()
	root = f.root(materialize.RootRequest{Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: []string{"/var/data"}}, Label: "root", External: "41", System: "codex"})
	f.say(root, 0, event(f.t, "turn/start", "turn", 1), event(f.t, "user/message"), event(f.t, "turn/end", "turn", 1))
	forked := f.childOf(root, materialize.Request{Fork: f.row(root).Head, Key: "a key", Label: "forked"}).ID
	plainRoot := f.root(materialize.RootRequest{Default: &policy.Setting{Mode: policy.WorkspaceWrite}})
	plain := f.child(plainRoot).ID
	grandchild := f.child(forked).ID
	f.switchTo(forked, policy.ReadOnly)
	f.narrow(forked, policy.WorkspaceWrite, true)
	stub := f.root(materialize.RootRequest{Claimed: true, Sandbox: &policy.Setting{Mode: policy.DangerFullAccess}})
	a := f.activate(grandchild)
	f.say(grandchild, a.Epoch, event(f.t, "tool/call", "call", "c1", "tool", "edit"), event(f.t, "plugin/state"))
	b := f.activate(plain)
	f.say(plain, b.Epoch, event(f.t, "usage/recorded", "usage", "u1", "input", 10, "output", 5))
	f.settle(plain, b.Epoch, "completed")
	_, _, err := replay.Send(f.ctx, f.Store, plain, replay.AsOperator(), "more")
	require.NoError(f.t, err)
	return root, []uuid.UUID{root, forked, plainRoot, plain, grandchild, stub}
}

// TestCase13_ThreeResumesChangeNothing: 5 events, opened and resumed three
// times: 5 events, the same digest, the same last activity, the same order of
// the sessions, and not a byte of the files is another.
func TestCase13_ThreeResumesChangeNothing(t *testing.T) {
	f := newFixture(t)
	root, ids := f.family()
	five := f.child(root).ID
	f.say(five, 0, event(t, "user/message"))
	require.Equal(t, uint64(5), f.row(five).Head)
	f.fillIndex(root) // else only the bytes of an empty one would be compared
	f.reopen(eventlog.Options{ReadOnly: true})
	files := f.files()
	order := f.order()
	before := map[uuid.UUID]eventlog.Row{}
	for _, id := range append(ids, five) {
		before[id] = f.row(id)
	}

	for range 3 {
		f.reopen(eventlog.Options{ReadOnly: true})
		r := f.resume(five, replay.AsParent(root))
		require.Equal(t, uint64(5), r.Row.Head)
		for _, id := range append(ids, five) {
			_, err := replay.Resume(f.ctx, f.Store, replay.Request{Session: id, By: replay.AsOperator()})
			require.NoError(t, err)
			_, err = replay.Notices(f.ctx, f.Store, id)
			require.NoError(t, err)
			_, err = replay.Explain(f.ctx, f.Store, id, "sandbox", 0)
			require.NoError(t, err)
			_, _, _, err = replay.Diff(f.ctx, f.Store, id, 0, 0)
			require.NoError(t, err)
			require.Equal(t, before[id], f.row(id))
		}
		require.Equal(t, order, f.order())
		require.Equal(t, files, f.files())
	}

	t.Run("opened for writing", func(t *testing.T) {
		for range 3 {
			f.reopen(eventlog.Options{})
			for _, id := range append(ids, five) {
				_, err := replay.Resume(f.ctx, f.Store, replay.Request{Session: id, By: replay.AsOperator()})
				require.NoError(t, err)
				require.Equal(t, before[id], f.row(id))
			}
			require.Equal(t, order, f.order())
		}
	})
	f.reopen(eventlog.Options{ReadOnly: true})
	require.Equal(t, files["store.db"], f.files()["store.db"], "a writer that only resumes leaves the journal alone too")
}

// order is the order of a list by last activity.
func (f *fixture) order() (out []uuid.UUID) {
	f.t.Helper()
	at := map[uuid.UUID]time.Time{}
	require.NoError(f.t, f.Store.EachRow(f.ctx, func(row *eventlog.Row) (bool, error) {
		at[row.Session] = row.LastActivity()
		out = append(out, row.Session)
		return true, nil
	}))
	sort.SliceStable(out, func(i, j int) bool { return at[out[i]].After(at[out[j]]) })
	return out
}

// TestAnotherProcessComputesTheSame: another environment, time zone, home,
// directory and process give the same bytes for everything that is computed
// from the logs.
func TestAnotherProcessComputesTheSame(t *testing.T) {
	f := newFixture(t)
	f.family()
	f.reopen(eventlog.Options{ReadOnly: true})
	var here []byte
	require.NoError(t, renderStore(f.Store, func(s string) (int, error) { here = append(here, s...); return len(s), nil }))
	require.Greater(t, len(here), 1000)

	exe, err := os.Executable()
	require.NoError(t, err)
	for _, env := range [][]string{
		{"TZ=Pacific/Kiritimati", "HOME=/nonexistent", "LANG=tr_TR.UTF-8", "CODEX_SANDBOX=danger-full-access", "CHILDLOG_STORE=/nonexistent"},
		{"TZ=America/St_Johns", "TMPDIR=/", "XDG_DATA_HOME=/nonexistent", "GOGC=1", "GOMAXPROCS=1"},
	} {
		cmd := exec.Command(exe)
		cmd.Env = append(env, otherProcess+"="+f.dir)
		cmd.Dir = t.TempDir()
		cmd.Stderr = os.Stderr
		there, err := cmd.Output()
		require.NoError(t, err)
		require.Equal(t, string(here), string(there))
	}
}
