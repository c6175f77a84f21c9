package retention

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/snapshot"
)

var ctx = context.Background()

// day0 is the day on which the tests look.
var day0 = time.Date(2031, 8, 31, 12, 0, 0, 0, time.UTC)

// store is a store whose clock the test sets. In the end it has to be sound.
type store struct {
	*eventlog.Store
	t   *testing.T
	now time.Time
}

func newStore(t *testing.T) *store {
	s := &store{t: t, now: day0}
	dir := filepath.Join(t.TempDir(), "store")
	_, err := eventlog.Init(ctx, dir)
	require.NoError(t, err)
	s.Store, err = eventlog.Open(ctx, dir, eventlog.Options{Clock: func() time.Time { return s.now }})
	require.NoError(t, err)
	t.Cleanup(func() {
		report, err := s.Check(ctx, eventlog.CheckOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
		require.NoError(t, s.Close())
	})
	return s
}

// session makes a session of some age in days, closed, with a text and a call.
func (s *store) session(parent uuid.UUID, days int) uuid.UUID {
	s.now = day0.AddDate(0, 0, -days)
	defer func() { s.now = day0 }()
	var made materialize.Session
	var err error
	if parent == uuid.Nil {
		made, err = materialize.Root(ctx, s.Store, materialize.RootRequest{Label: "root"})
	} else {
		made, err = materialize.Delegate(ctx, s.Store, parent, snapshot.Options{}, materialize.Request{Label: "child"})
	}
	require.NoError(s.t, err)
	_, err = s.Append(ctx, eventlog.Batch{Session: made.ID, Expect: eventlog.Any(), Events: []eventlog.NewEvent{
		{Type: eventlog.TypeUserMessage, Media: eventlog.MediaText, Content: []byte("a text")}}})
	require.NoError(s.t, err)
	return made.ID
}

func (s *store) apply(r Rule) (items []Item) {
	r.Before, r.Code = Age{6, 'm'}.Before(day0), "retention"
	if r.Status == nil {
		r.Status = []string{eventlog.StatusIdle, eventlog.StatusClosed}
	}
	require.NoError(s.t, Apply(ctx, s.Store, r, func(i Item) error { items = append(items, i); return nil }))
	return items
}

// TestParseAge reads spans, calendar months among them.
func TestParseAge(t *testing.T) {
	for text, want := range map[string]string{"12h": "2031-08-31T00:00:00Z", "90d": "2031-06-02T12:00:00Z", "2w": "2031-08-17T12:00:00Z",
		"6m": "2031-03-03T12:00:00Z", "12m": "2030-08-31T12:00:00Z", "1y": "2030-08-31T12:00:00Z", "0d": "2031-08-31T12:00:00Z"} {
		a, err := ParseAge(text)
		require.NoError(t, err, text)
		require.Equal(t, want, a.Before(day0).Format(time.RFC3339), text)
	}
	for _, text := range []string{"", "m", "6", "-6m", "6 m", "6M", "1.5y", "99999999d", "6mm"} {
		_, err := ParseAge(text)
		require.ErrorIs(t, err, eventlog.ErrInvalid, text)
	}
}

// TestWholeSubtrees: what is past its time with all below it goes as one, and a
// dry run says the same as what is done.
func TestWholeSubtrees(t *testing.T) {
	s := newStore(t)
	p := s.session(uuid.Nil, 400)
	fresh := s.session(p, 10)
	s.session(p, 300)
	lone := s.session(uuid.Nil, 300)
	s.session(lone, 250)
	s.session(uuid.Nil, 3)
	type line struct {
		action   string
		sessions int
	}
	lines := func(items []Item) map[uuid.UUID]line {
		out := map[uuid.UUID]line{}
		for _, i := range items {
			out[i.Row.Session] = line{i.Action, i.Sessions}
		}
		return out
	}
	would := s.apply(Rule{Class: Sessions, DryRun: true})
	require.Equal(t, line{Purge, 2}, lines(would)[lone])
	done := s.apply(Rule{Class: Sessions})
	require.Equal(t, lines(would), lines(done))
	require.NotContains(t, lines(done), p, "the delegation to the fresh child was activity of its own")
	_, err := s.Row(fresh)
	require.NoError(t, err)
	_, err = s.Row(lone)
	require.ErrorIs(t, err, eventlog.ErrPurged)
	require.Empty(t, s.apply(Rule{Class: Sessions}))
}

// TestCase36_OldAboveFresh: P is past its time, C below it went on. P stays, and
// is named with the child that keeps it.
func TestCase36_OldAboveFresh(t *testing.T) {
	s := newStore(t)
	p := s.session(uuid.Nil, 400)
	c := s.session(p, 390)
	_, err := s.Append(ctx, eventlog.Batch{Session: c, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: eventlog.TypeUserMessage}}})
	require.NoError(t, err)
	items := s.apply(Rule{Class: Sessions})
	require.Len(t, items, 1)
	require.Equal(t, p, items[0].Row.Session)
	require.Equal(t, Skip, items[0].Action)
	require.Contains(t, items[0].Why, c.String()+" below it stays")
	_, err = s.Row(p)
	require.NoError(t, err)
}

// TestContents: what is kept outlives the rest, a second run finds nothing left,
// and the erasure is no activity: the session goes when its own time comes.
func TestContents(t *testing.T) {
	s := newStore(t)
	p := s.session(uuid.Nil, 400)
	c := s.session(p, 399)
	would := s.apply(Rule{Class: Contents, Keep: []string{KeepReceipts}, DryRun: true})
	done := s.apply(Rule{Class: Contents, Keep: []string{KeepReceipts}})
	require.Len(t, done, 2)
	for i := range done {
		require.Equal(t, Redact, done[i].Action)
		require.Equal(t, 2, done[i].Contents, "the label and the text")
		require.Equal(t, would[i].Contents, done[i].Contents)
		require.Equal(t, would[i].Bytes, done[i].Bytes)
	}
	page, err := s.Read(ctx, c, eventlog.ReadOptions{Contents: true})
	require.NoError(t, err)
	for _, ev := range page.Events {
		if ev.Type == eventlog.TypeDelegationGranted {
			require.NotEmpty(t, ev.Content)
		} else if ev.HasContent {
			require.NotNil(t, ev.Redacted, "%s", ev.Type)
		}
	}
	for _, i := range s.apply(Rule{Class: Contents, Keep: []string{KeepReceipts}}) {
		require.Zero(t, i.Contents)
		require.Zero(t, i.Sessions)
	}
	require.Len(t, s.apply(Rule{Class: Sessions}), 1, "the tree")
	_, err = s.Row(c)
	require.ErrorIs(t, err, eventlog.ErrPurged)
}

// TestHoldsAndRunsAreKept, and named; others have their turn.
func TestHoldsAndRunsAreKept(t *testing.T) {
	s := newStore(t)
	heldOne, open, free := s.session(uuid.Nil, 400), s.session(uuid.Nil, 400), s.session(uuid.Nil, 400)
	_, err := s.Hold(ctx, eventlog.HoldRequest{Order: eventlog.Order{Code: "case"}, Session: heldOne})
	require.NoError(t, err)
	s.now = day0.AddDate(0, 0, -399)
	facts, err := eventlog.MakeFacts(map[string]any{"epoch": 1, "boot": s.Boot()})
	require.NoError(t, err)
	_, err = s.Transact(ctx, eventlog.EntryRuntime, func(*eventlog.View) ([]eventlog.Batch, error) {
		return []eventlog.Batch{{Session: open, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: eventlog.TypeActivationStarted, Facts: facts}}}}, nil
	})
	require.NoError(t, err)
	s.now = day0
	got := map[uuid.UUID]string{}
	for _, class := range []string{Contents, Sessions} {
		for _, i := range s.apply(Rule{Class: class, Status: []string{eventlog.StatusIdle, eventlog.StatusRunning}}) {
			got[i.Row.Session] += class + " " + i.Action + ", "
		}
	}
	require.Equal(t, map[uuid.UUID]string{heldOne: "contents skip, sessions skip, ", open: "contents redact, sessions skip, ", free: "contents redact, sessions purge, "}, got)
}

// TestLogOfAnotherStore: its contents can't go alone. It is listed with the
// reason, dry run or not, and counts among what was erased nowhere.
func TestLogOfAnotherStore(t *testing.T) {
	from, to := newStore(t), newStore(t)
	id := from.session(uuid.Nil, 400)
	log := eventlog.ForeignLog{Session: id, Prev: eventlog.Genesis(id), Record: eventlog.ImportRecord{Status: "unproven", By: "tester"}}
	require.NoError(t, from.EachRaw(ctx, 0, from.Durable(), nil, func(f *eventlog.RawFrame) error {
		for i := range f.Events {
			ev, err := eventlog.NewForeignEvent(id, f.Headers[i], f.Chunks[i])
			require.NoError(t, err)
			log.Events = append(log.Events, ev)
		}
		log.Record.Head, log.Record.Hash = f.Last(), f.After()
		return nil
	}))
	_, err := to.ImportLogs(ctx, log)
	require.NoError(t, err)
	for _, dry := range []bool{true, false} {
		items := to.apply(Rule{Class: Contents, Status: []string{eventlog.StatusEvidence}, DryRun: dry})
		require.Len(t, items, 1)
		require.Equal(t, Skip, items[0].Action)
		require.Contains(t, items[0].Why, "have it purged here")
		require.Zero(t, items[0].Contents)
		require.Zero(t, items[0].Bytes)
	}
	items := to.apply(Rule{Class: Sessions, Status: []string{eventlog.StatusEvidence}})
	require.Equal(t, Purge, items[0].Action)
	require.Equal(t, 1, items[0].Sessions)
}
