package eventlog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// redact orders a redaction and requires it to be carried out.
func (ts *testStore) redact(r RedactRequest) Redacted {
	if r.Code == "" {
		r.Code = "erasure-request"
	}
	out, err := ts.Redact(ctx, r)
	require.NoError(ts.t, err)
	return out
}

// TestRedact: the content is gone at once, the event says in its place when, by
// whom and why, and nothing else of the log changes.
func TestRedact(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, "one", "two", "three")
	before := must(ts.Read(ctx, id, ReadOptions{Contents: true}))
	out := ts.redact(RedactRequest{Order: Order{Code: "gdpr-17", Basis: "art-17.1a", By: "dpo:7", Reason: "asked for by the person"}, Session: id, Seqs: []uint64{3}})
	require.Equal(t, []RedactedLog{{Session: id, Markers: []uint64{5}, Erased: []ErasedContent{{Seq: 3, Type: TypeAssistantMessage, Length: 3, Why: WhyNamed}}}}, out.Sessions)
	after := must(ts.Read(ctx, id, ReadOptions{Contents: true}))
	for i, ev := range after.Events[:4] {
		if ev.Seq == 3 {
			require.Nil(t, ev.Content)
			require.NoError(t, ev.ContentErr)
			marker := after.Events[4]
			require.Equal(t, &Redaction{Seq: 5, Time: marker.Time, Code: "gdpr-17", Basis: "art-17.1a", By: "dpo:7",
				Commitment: before.Events[2].Commitment, Length: 3}, ev.Redacted)
			require.Equal(t, TypeContentRedacted, marker.Type)
			require.Equal(t, SourceOperator, marker.Source)
			require.Equal(t, "asked for by the person", string(marker.Content))
			require.Equal(t, before.Events[2].Hash, ev.Hash)
			continue
		}
		require.Equal(t, before.Events[i], ev)
	}
	again := ts.redact(RedactRequest{Session: id, Seqs: []uint64{3, 4}})
	require.Equal(t, []PassedContent{{3, WhyRedacted}}, again.Sessions[0].Passed)
	require.Len(t, again.Sessions[0].Erased, 1)
	third := ts.redact(RedactRequest{Session: id, Seqs: []uint64{3, 4}})
	require.Empty(t, third.Sessions[0].Markers, "nothing is written where nothing is left to erase")
	require.EqualValues(t, 2, must(ts.Row(id)).Redactions)
	ts.reopen()
	require.NotNil(t, must(ts.Read(ctx, id, ReadOptions{Contents: true})).Events[3].Redacted)
}

// TestRedactFollowsWhatHoldsTheSameText: the copies in forks, down to copies of
// copies; the decision and the question on a call; the receipt beside a label.
func TestRedactFollowsWhatHoldsTheSameText(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, "one", "two")
	fork := func(parent, child uuid.UUID, key string, seqs ...uint64) {
		var seed []NewEvent
		for _, seq := range seqs {
			seed = append(seed, copyOf(ts, parent, seq))
		}
		_, err := ts.transact(EntryDelegation, withSeed(ts.delegation(parent, child, key), seed...)...)
		require.NoError(t, err)
	}
	fork(id, sid(2), "a", 2, 3)
	fork(sid(2), sid(3), "b", 3)
	fork(id, sid(4), "c", 2)
	out := ts.redact(RedactRequest{Session: id, Seqs: []uint64{3}})
	require.Equal(t, []string{"3 named", "3 seed copy", "2 seed copy"}, erasedIn(&out))
	require.Equal(t, []string{"one", "", ""}, ts.texts(sid(2), 2)[:3])
	require.Equal(t, "one", ts.texts(sid(4), 2)[0])
	copied := ts.redact(RedactRequest{Session: sid(4), Seqs: []uint64{2}})
	require.Equal(t, []SameText{{id, 2, TypeAssistantMessage, "the original of the copy"}}, copied.Also)
	require.Equal(t, "one", ts.texts(id, 2)[0], "the parent's own is another order")

	call := func(typ, call string) NewEvent {
		ev := NewEvent{Type: typ, Facts: mustFacts(map[string]any{"call": call, "tool": "bash"}), Media: MediaJSON, Content: []byte(`{"a":1}`)}
		if typ == TypeToolResult {
			ev.Facts = mustFacts(map[string]any{"call": call, "outcome": "ok"})
		}
		return ev
	}
	_, err := ts.Append(ctx, Batch{Session: sid(4), Expect: Any(), Events: []NewEvent{call(TypeToolCall, "x"), call(TypeToolCall, "y"), call(TypeToolResult, "x")}})
	require.NoError(t, err)
	head := must(ts.Row(sid(4))).Head
	asked := Asked{Ask: "q", Tool: "bash", Call: "x", Args: Hash{1}}
	_, err = ts.transact(EntryRuntime, Batch{Session: sid(4), Expect: Any(), Events: []NewEvent{{Type: TypeApprovalAsked, Facts: asked.Facts(), Media: MediaJSON, Content: []byte(`{"args":1}`)}}})
	require.NoError(t, err)
	out = ts.redact(RedactRequest{Session: sid(4), Seqs: []uint64{head + 1}})
	require.Equal(t, []string{fmt.Sprint(head-2, " ", WhySame), fmt.Sprint(head+1, " named")}, erasedIn(&out))
	require.Equal(t, []SameText{{sid(4), head, TypeToolResult, "the result of the call"}}, out.Also)

	before := must(ts.Row(id)).Label
	require.Equal(t, "root", before)
	exact := ts.redact(RedactRequest{Session: id, Seqs: []uint64{1}, Exact: true})
	require.Len(t, exact.Sessions, 1)
	require.Empty(t, must(ts.Row(id)).Label)
	ts.reopen(Options{fresh: true})
	require.Empty(t, must(ts.Row(id)).Label)
}

func erasedIn(r *Redacted) (out []string) {
	for _, l := range r.Sessions {
		for _, e := range l.Erased {
			out = append(out, fmt.Sprint(e.Seq, " ", e.Why))
		}
	}
	return out
}

// TestRedactRefuses what is not there, and is no way to write.
func TestRedactRefuses(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	order := Order{Code: "x"}
	for name, c := range map[string]struct {
		r    RedactRequest
		want error
	}{
		"no code":        {RedactRequest{Session: id, Seqs: []uint64{1}}, ErrInvalid},
		"text as a code": {RedactRequest{Order: Order{Code: "a b"}, Session: id, Seqs: []uint64{1}}, ErrInvalid},
		"no seq":         {RedactRequest{Order: order, Session: id}, ErrInvalid},
		"seq 0":          {RedactRequest{Order: order, Session: id, Seqs: []uint64{0}}, ErrNotFound},
		"a seq to come":  {RedactRequest{Order: order, Session: id, Seqs: []uint64{1, 2}}, ErrNotFound},
		"no session":     {RedactRequest{Order: order, Session: sid(9), Seqs: []uint64{1}}, ErrNotFound},
	} {
		_, err := ts.Redact(ctx, c.r)
		require.ErrorIs(t, err, c.want, name)
	}
	require.Equal(t, "root", must(ts.Row(id)).Label)
	for via := entryHarness; via <= EntryErase; via++ {
		_, err := ts.transact(via, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: TypeContentRedacted, Facts: mustFacts(map[string]any{"events": []any{}, "code": "x", "by": "y"})}}})
		require.Error(t, err, "entry %d", via)
	}
}

// TestRedactManyEvents: more than one marker holds, of frames with many events
// and of contents with many chunks, and of those that are not durable yet.
func TestRedactManyEvents(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	events := make([]NewEvent, 2*maxRedacted+10)
	for i := range events {
		events[i] = text(fmt.Sprint("message ", i))
	}
	events[5] = octets(noise(1, 3*chunkSize))
	_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: events})
	require.NoError(t, err)
	out := ts.redact(RedactRequest{Session: id, Seqs: upTo(uint64(len(events)))[1:]})
	require.Len(t, out.Sessions[0].Markers, 3)
	require.Len(t, out.Sessions[0].Erased, len(events)-1)
	kept := 0
	require.NoError(t, ts.Replay(ctx, id, true, func(ev *Event) error {
		if ev.Content != nil {
			kept++
		}
		return ev.ContentErr
	}))
	require.Equal(t, 2, kept, "the first event's and the last one's")
	require.EqualValues(t, len(events)-1, must(ts.Check(ctx, CheckOptions{})).Redacted)
}

// TestRetryOfWhatWasRedacted: an append that is repeated after its content was
// erased finds its original.
func TestRetryOfWhatWasRedacted(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	b := Batch{Session: id, Expect: At(1), Events: []NewEvent{named(eid(1), "secret")}}
	first, err := ts.Append(ctx, b)
	require.NoError(t, err)
	ts.redact(RedactRequest{Session: id, Seqs: []uint64{2}})
	again, err := ts.Append(ctx, b)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, first.Hash, again.Hash)
	b.Events[0].Content = []byte("other length")
	_, err = ts.Append(ctx, b)
	require.ErrorIs(t, err, ErrDuplicate)
}

// TestSeedReadBeforeARedaction: a child is not born with what was erased while
// it was made.
func TestSeedReadBeforeARedaction(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, "one", "secret")
	unit := withSeed(ts.delegation(id, sid(2), "k"), copyOf(ts, id, 2), copyOf(ts, id, 3))
	harmless := withSeed(ts.delegation(id, sid(3), "l"), copyOf(ts, id, 2))
	ts.redact(RedactRequest{Session: id, Seqs: []uint64{3}})
	_, err := ts.transact(EntryDelegation, unit...)
	require.ErrorIs(t, err, ErrStaleCapture)
	_, err = ts.transact(EntryDelegation, harmless...)
	require.NoError(t, err)
	_, err = ts.transact(EntryDelegation, withSeed(ts.delegation(id, sid(2), "k"), copyOf(ts, id, 2))...)
	require.NoError(t, err)
}

// TestReadersBesideRedactions: a reader sees a content or why it is gone, never
// that it is missing.
func TestReadersBesideRedactions(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	const n = 60
	ts.say(id, numbers(n)...)
	done := make(chan struct{})
	var readers sync.WaitGroup
	var failed atomic.Pointer[error]
	for range 2 {
		readers.Go(func() {
			for {
				page, err := ts.Read(ctx, id, ReadOptions{Contents: true})
				for i := range page.Events {
					err = errors.Join(err, page.Events[i].ContentErr)
				}
				if err != nil {
					failed.Store(&err)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for seq := uint64(2); seq <= n+1; seq++ {
		ts.redact(RedactRequest{Session: id, Seqs: []uint64{seq}})
	}
	close(done)
	readers.Wait()
	if err := failed.Load(); err != nil {
		require.NoError(t, *err)
	}
}

// TestBackupWaitsForErasers and they for it: a backup never lacks a content
// without the event that tells of it.
func TestBackupWaitsForErasers(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, "one", "two")
	dir := aside(ts, "backup")
	erased := make(chan error, 1)
	_, err := ts.Backup(ctx, dir, BackupOptions{at: func(step string) error {
		if step == "created" { // its end is fixed, and nothing was read yet
			go func() {
				_, err := ts.Redact(ctx, RedactRequest{Order: Order{Code: "x"}, Session: id, Seqs: []uint64{2}})
				erased <- err
			}()
			short, cancel := context.WithCancel(ctx)
			cancel()
			_, err := ts.Redact(short, RedactRequest{Order: Order{Code: "x"}, Session: id, Seqs: []uint64{3}})
			require.ErrorIs(t, err, context.Canceled, "it waits, and can be told not to")
		}
		select {
		case <-erased:
			return errors.New("erased beside a backup")
		default:
			return nil
		}
	}})
	require.NoError(t, err)
	require.NoError(t, <-erased)
	b, err := Open(ctx, dir, Options{ReadOnly: true})
	require.NoError(t, err)
	defer b.Close()
	report := must(b.Check(ctx, CheckOptions{}))
	require.Empty(t, report.Findings)
	require.Zero(t, report.Redacted)
	after := must(ts.Backup(ctx, aside(ts, "after"), BackupOptions{}))
	require.EqualValues(t, 1, after.Erased)
}

// TestCheckTellsRedactedFromMissing: a content that is gone is a finding unless
// its log says so, and a log that says so while it is there is one too.
func TestCheckTellsRedactedFromMissing(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, "one", "two", "three")
	position := must(ts.Read(ctx, id, ReadOptions{From: 2, To: 2})).Events[0].Position
	var chunk []byte
	require.NoError(t, ts.journal.view(func(tx *bolt.Tx) (err error) {
		chunk, err = getCopy(tx.Bucket(bucketContents), contentKey(position, 0, 0))
		return err
	}))
	ts.redact(RedactRequest{Session: id, Seqs: []uint64{2, 3}})
	require.NoError(t, ts.Close())
	report := requireSound(t, ts.dir)
	require.EqualValues(t, 2, report.Redacted)
	ts.expectDamage()
	ts.Store = nil
	path := filepath.Join(ts.dir, journalFile)
	changeDB(t, path, func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketContents)
		return errors.Join(b.Put(contentKey(position, 0, 0), chunk), b.Delete(contentKey(position+2, 0, 0)))
	})
	report = checkStore(t, ts.dir)
	require.Len(t, report.Findings, 2)
	require.Equal(t, Finding{Kind: FindContent, Session: id, Seq: 4, Position: position + 2, Detail: "content: missing: chunk 0 of 1"}, report.Findings[0])
	require.Equal(t, FindErased, report.Findings[1].Kind)
	require.EqualValues(t, 2, report.Findings[1].Seq)
	require.EqualValues(t, 1, report.Redacted)

	rep, to := salvaged(t, ts.dir, SalvageOptions{})
	require.EqualValues(t, 1, rep.LostContents)
	require.EqualValues(t, 2, rep.Redacted, "what was put back is not taken over")
	require.Equal(t, []SeqRange{{4, 4}}, rep.Damaged[0].Contents)
	report = checkStore(t, to)
	require.Len(t, report.Findings, 1)
	require.EqualValues(t, 4, report.Findings[0].Seq)

	changeDB(t, path, func(tx *bolt.Tx) error { return buryFrame(tx, purgedFrame{position, Hash{1}}) })
	require.Contains(t, checkStore(t, ts.dir).kinds(), FindErased, "a tombstone that nothing tells of")
}

// TestSalvageKeepsRedactions: nothing that was erased on record is lost, and
// nothing of it comes back.
func TestSalvageKeepsRedactions(t *testing.T) {
	ts := familyStore(t)
	ts.redact(RedactRequest{Session: sid(1), Seqs: []uint64{5, 6, 7}})
	ts.purge(sid(2), true)
	require.NoError(t, ts.Close())
	rep, to := salvaged(t, ts.dir, SalvageOptions{})
	require.True(t, rep.Complete, "%+v", rep)
	require.EqualValues(t, 3, rep.Redacted)
	require.NotZero(t, rep.Tombstones)
	report := requireSound(t, to)
	require.EqualValues(t, 3, report.Redacted)
	require.EqualValues(t, 2, report.Purged)
}
