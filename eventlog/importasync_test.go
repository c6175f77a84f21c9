package eventlog

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/policy"
)

// TestImportAsync writes evidence in order and nothing else, asks inside the
// commit, and refuses what Transact refuses.
func TestImportAsync(t *testing.T) {
	ts := newStore(t)
	native := ts.root(sid(1))
	created := Created{Kind: KindRoot, Root: sid(9), Mode: ModeOneShot, Evidence: true,
		Defaults: policy.Defaults{Sandbox: policy.Sandbox{Mode: policy.ReadOnly}.Canonical(), Approvals: policy.Never}}
	first := Batch{Session: sid(9), Events: []NewEvent{{Type: TypeSessionCreated, Facts: created.Facts()}}}
	load := func(b Batch, admit func(*View) error) error {
		p, err := ts.ImportAsync(ctx, b, admit)
		if err != nil {
			return err
		}
		_, err = p.Wait(ctx)
		return err
	}

	reason := errors.New("not now")
	require.ErrorIs(t, load(first, func(v *View) error {
		_, err := v.Row(sid(9))
		require.ErrorIs(t, err, ErrNotFound)
		return reason
	}), reason)
	_, err := ts.Row(sid(9))
	require.ErrorIs(t, err, ErrNotFound)
	require.Error(t, load(first, func(*View) error { panic("no view of mine") }))
	require.NoError(t, load(first, nil))

	var pending []*Pending
	for i := range uint64(20) {
		p, err := ts.ImportAsync(ctx, Batch{Session: sid(9), Expect: At(1 + i), Events: []NewEvent{text("x")}}, nil)
		require.NoError(t, err)
		pending = append(pending, p)
	}
	for i, p := range pending {
		res, err := p.Wait(ctx)
		require.NoError(t, err)
		require.EqualValues(t, i+2, res.LastSeq)
	}
	page, err := ts.Read(ctx, sid(9), ReadOptions{})
	require.NoError(t, err)
	require.Len(t, page.Events, 21)
	for _, ev := range page.Events {
		require.Equal(t, SourceImport, ev.Source)
	}

	require.ErrorIs(t, load(Batch{Session: native, Expect: Any(), Events: []NewEvent{text("x")}}, nil), ErrUnauthorized)
	created.Evidence = false
	require.Error(t, load(Batch{Session: sid(8), Events: []NewEvent{{Type: TypeSessionCreated, Facts: created.Facts()}}}, nil))
	require.ErrorIs(t, load(Batch{Session: sid(9), Expect: At(3), Events: []NewEvent{text("x")}}, nil), ErrConflict)
	require.ErrorIs(t, load(Batch{Session: sid(9), Expect: Any(), Events: []NewEvent{{Type: "user/message", Media: MediaJSON, Content: []byte("{")}}}, nil), ErrInvalid)
	require.ErrorIs(t, load(Batch{Session: sid(9), Expect: Any(), Events: make([]NewEvent, MaxBatchEvents+1)}, nil), ErrTooLarge)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = ts.ImportAsync(ended, Batch{Session: sid(9), Expect: Any(), Events: []NewEvent{text("x")}}, nil)
	require.ErrorIs(t, err, context.Canceled)
}
