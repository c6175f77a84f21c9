package logwalk

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
)

// store makes a store whose session holds its creation and n events, each a frame
// of its own, with a mark and its content.
func store(t *testing.T, marks ...string) (dir string, session uuid.UUID) {
	t.Helper()
	ctx := context.Background()
	dir = filepath.Join(t.TempDir(), "store")
	_, err := eventlog.Init(ctx, dir)
	require.NoError(t, err)
	s, err := eventlog.Open(ctx, dir, eventlog.Options{})
	require.NoError(t, err)
	root, err := materialize.Root(ctx, s, materialize.RootRequest{})
	require.NoError(t, err)
	for _, m := range marks {
		f, err := eventlog.MakeFacts(map[string]any{"mark": m})
		require.NoError(t, err)
		_, err = s.Append(ctx, eventlog.Batch{Session: root.ID, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: "a/b", Facts: f, Media: eventlog.MediaText, Content: []byte("content of " + m)}}})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	return dir, root.ID
}

// damage changes a byte behind a text, wherever it stands in the file.
func damage(t *testing.T, dir, text string) {
	t.Helper()
	path := filepath.Join(dir, "store.db")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(b), text)
	require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(b, []byte(text), bytes.ToUpper([]byte(text))), 0o600))
}

type seen struct {
	seqs     []uint64
	gaps     [][2]uint64
	contents []string
	readable int
}

func walked(t *testing.T, dir string, session uuid.UUID) (out seen) {
	t.Helper()
	ctx := context.Background()
	s, err := eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: true})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, Each(ctx, s, session, true, func(ev *eventlog.Event) error {
		out.seqs = append(out.seqs, ev.Seq)
		text := string(ev.Content)
		if ev.ContentErr != nil {
			text = "unread"
		}
		out.contents = append(out.contents, text)
		return nil
	}, func(g Gap) error {
		require.Error(t, g.Err)
		out.gaps = append(out.gaps, [2]uint64{g.From, g.To})
		if g.Readable {
			out.readable++
		}
		return nil
	}))
	return out
}

func TestWholeLog(t *testing.T) {
	dir, session := store(t, "one", "two", "three")
	got := walked(t, dir, session)
	require.Equal(t, []uint64{1, 2, 3, 4}, got.seqs)
	require.Equal(t, []string{"content of one", "content of two", "content of three"}, got.contents[1:])
	require.Empty(t, got.gaps)
}

// A hole in the middle, at the end, and several: each is told of once, in its place.
func TestPastDamage(t *testing.T) {
	for name, c := range map[string]struct {
		hurt []string
		seqs []uint64
		gaps [][2]uint64
	}{
		"middle":  {[]string{"mark-b"}, []uint64{1, 2, 4, 5}, [][2]uint64{{3, 3}}},
		"two":     {[]string{"mark-a", "mark-c"}, []uint64{1, 3, 5}, [][2]uint64{{2, 2}, {4, 4}}},
		"the end": {[]string{"mark-d"}, []uint64{1, 2, 3, 4}, [][2]uint64{{5, 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, session := store(t, "mark-a", "mark-b", "mark-c", "mark-d")
			for _, m := range c.hurt {
				damage(t, dir, m)
			}
			got := walked(t, dir, session)
			require.Equal(t, c.seqs, got.seqs)
			require.Equal(t, c.gaps, got.gaps)
			require.Zero(t, got.readable)
		})
	}
}

// A content that is damaged is no hole: its event is there and says so.
func TestDamagedContent(t *testing.T) {
	dir, session := store(t, "mark-a", "mark-b")
	damage(t, dir, "content of mark-a")
	got := walked(t, dir, session)
	require.Equal(t, []uint64{1, 2, 3}, got.seqs)
	require.Equal(t, []string{"unread", "content of mark-b"}, got.contents[1:])
	require.Empty(t, got.gaps)
}

// What the caller returns ends the walk and comes back as it is.
func TestCallerStops(t *testing.T) {
	ctx := context.Background()
	dir, session := store(t, "mark-a", "mark-b", "mark-c")
	enough := errors.New("enough")
	walk := func(at uint64, atGap bool) error {
		s, err := eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: true})
		require.NoError(t, err)
		defer s.Close()
		return Each(ctx, s, session, false, func(ev *eventlog.Event) error {
			if ev.Seq == at {
				return enough
			}
			return nil
		}, func(Gap) error {
			if atGap {
				return enough
			}
			return nil
		})
	}
	require.Equal(t, enough, walk(1, false))
	damage(t, dir, "mark-b")
	require.Equal(t, enough, walk(4, false), "behind the damage")
	require.Equal(t, enough, walk(0, true))
	require.NoError(t, walk(0, false))
}
