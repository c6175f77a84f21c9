package eventlog

import (
	"childlog/policy"
	"context"
	"fmt"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func mk(t testing.TB, s *Store) uuid.UUID {
	id := uuid.New()
	c := Created{Kind: KindRoot, Root: id, MaxDepth: 3, Mode: ModeContinuable, Defaults: policy.Defaults{Sandbox: policy.Sandbox{Mode: policy.ReadOnly}.Canonical(), Approvals: policy.Ask}}
	_, err := s.Transact(context.Background(), EntryCreate, func(v *View) ([]Batch, error) {
		return []Batch{{Session: id, Events: []NewEvent{{Type: TypeSessionCreated, Facts: c.Facts(), Media: MediaJSON, Content: []byte(`{"label":"x"}`)}}}}, nil
	})
	require.NoError(t, err)
	return id
}
func TestSmoke(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	ctx := context.Background()
	_, err := Init(ctx, dir)
	require.NoError(t, err)
	s, err := Open(ctx, dir, Options{})
	require.NoError(t, err)
	id := mk(t, s)
	r, err := s.Append(ctx, Batch{Session: id, Expect: At(1), Events: []NewEvent{{Type: "user/message", Media: MediaText, Content: []byte("hi")}}})
	require.NoError(t, err)
	fmt.Println(r)
	require.NoError(t, s.Close())
	s, err = Open(ctx, dir, Options{ReadOnly: true})
	require.NoError(t, err)
	rep, err := s.Check(ctx, CheckOptions{})
	require.NoError(t, err)
	fmt.Printf("%+v\n", rep)
	require.True(t, rep.OK())
	ev, row, err := s.Policy(ctx, id, 0)
	fmt.Println(ev, row, err)
	s.Close()
}
func TestSpeed(t *testing.T) {
	for _, n := range []int{1, 64, 512} {
		dir := filepath.Join(t.TempDir(), "s")
		ctx := context.Background()
		_, err := Init(ctx, dir)
		require.NoError(t, err)
		s, err := Open(ctx, dir, Options{})
		require.NoError(t, err)
		ids := make([]uuid.UUID, n)
		for i := range ids {
			ids[i] = mk(t, s)
		}
		body := make([]byte, 300)
		for i := range body {
			body[i] = 'a' + byte(i%26)
		}
		f, _ := MakeFacts(map[string]any{"call": "c1", "tool": "read"})
		var wg sync.WaitGroup
		start := time.Now()
		var total int64
		var mu sync.Mutex
		for i := range ids {
			wg.Add(1)
			go func() {
				defer wg.Done()
				k := 0
				for time.Since(start) < 2*time.Second {
					_, err := s.Append(ctx, Batch{Session: ids[i], Expect: Any(), Events: []NewEvent{{Type: "tool/call", Facts: f, Media: MediaText, Content: body}}})
					if err != nil {
						panic(err)
					}
					k++
				}
				mu.Lock()
				total += int64(k)
				mu.Unlock()
			}()
		}
		wg.Wait()
		el := time.Since(start)
		fmt.Println(n, "children", float64(total)/el.Seconds(), "ev/s")
		st, _ := s.Stats()
		fmt.Printf("%+v\n", st)
		require.NoError(t, s.Close())
	}
}
