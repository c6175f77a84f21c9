package service_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/service"
	"childlog/cmd/childlog/internal/tokens"
	"childlog/eventlog"
)

// TestStoppingLosesNothing: clients append while the service stops. What was
// acknowledged is there, and all others were told, or repeat and find out.
func TestStoppingLosesNothing(t *testing.T) {
	v := serve(t, service.Options{Limits: service.Limits{Rate: -1}})
	id := v.root()
	const workers = 8
	acked := make([][]string, workers)
	var began, done sync.WaitGroup
	began.Add(workers)
	for w := range workers {
		done.Go(func() {
			once := sync.OnceFunc(began.Done)
			defer once()
			for {
				event := uuid.NewString()
				r, _ := http.NewRequest(http.MethodPost, v.url+"/v1/append", strings.NewReader(`{"session":"`+id+`","events":[{"id":"`+event+`","type":"user/message","content_text":"x"}]}`))
				r.Header.Set("Authorization", "Bearer "+v.tokens[tokens.Harness])
				r.Header.Set("Content-Type", "application/json")
				resp, err := v.client.Do(r)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					return
				}
				acked[w] = append(acked[w], event)
				if len(acked[w]) == 5 {
					once()
				}
			}
		})
	}
	began.Wait()
	require.NoError(t, v.stop())
	done.Wait()
	there := map[string]bool{}
	require.NoError(t, v.store.Replay(t.Context(), mustID(id), false, func(ev *eventlog.Event) error {
		there[ev.ID.String()] = true
		return nil
	}))
	n := 0
	for _, list := range acked {
		for _, event := range list {
			require.True(t, there[event], "an acknowledged event is gone")
			n++
		}
	}
	require.GreaterOrEqual(t, n, 5*workers)
	_, err := net.Dial("tcp", strings.TrimPrefix(v.url, "http://"))
	require.Error(t, err, "nobody listens")
}

// TestNothingIsLeft: after thousands of connections, streams and broken
// requests there are as many goroutines and descriptors as before.
func TestNothingIsLeft(t *testing.T) {
	v := serve(t, service.Options{Limits: service.Limits{Rate: -1, OpenRate: -1, Recheck: time.Millisecond, Turn: 5 * time.Millisecond}})
	id := v.root()
	v.appendText(id, 2)
	rounds := 1000
	if testing.Short() {
		rounds = 60
	}
	visit := func() {
		for _, text := range []string{
			"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
			"GET " + harness.FollowPath + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + v.tokens[tokens.Auditor] + "\r\n\r\n",
			"POST /v1/show HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{",
			"nonsense\r\n\r\n",
		} {
			conn := v.dial(t)
			_, err := io.WriteString(conn, text)
			require.NoError(t, err)
			if strings.HasPrefix(text, "GET") {
				_, err = bufio.NewReader(conn).ReadByte()
				require.NoError(t, err)
			}
			conn.Close()
		}
	}
	settled := func() (goroutines, files int) {
		v.client.CloseIdleConnections()
		require.Eventually(t, func() bool { return strings.Contains(v.oneOff("/metrics"), "childlog_connections 1\n") }, 30*time.Second, 5*time.Millisecond)
		names, _ := filepath.Glob("/proc/self/fd/*") // none where there is no /proc
		return runtime.NumGoroutine(), len(names)
	}
	visit()
	goroutines, files := settled()
	for range rounds {
		visit()
	}
	settled()
	require.Eventually(t, func() bool {
		names, _ := filepath.Glob("/proc/self/fd/*")
		return runtime.NumGoroutine() <= goroutines+2 && len(names) <= files+2
	}, 30*time.Second, 10*time.Millisecond, "goroutines and descriptors come back to what they were")
	require.Contains(t, v.oneOff("/metrics"), "childlog_streams 0\n")
}

// oneOff asks on a connection of its own.
func (v *served) oneOff(path string) string {
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequest(http.MethodGet, v.url+path, nil)
	require.NoError(v.t, err)
	r.Header.Set("Authorization", "Bearer "+v.tokens[tokens.Operator])
	resp, err := c.Do(r)
	require.NoError(v.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(v.t, err)
	return string(b)
}

// TestTheClientOfPackageHarness: it works against the service, errors included,
// and follows over a cut connection.
func TestTheClientOfPackageHarness(t *testing.T) {
	v := serve(t, service.Options{})
	c, err := harness.Dial(t.Context(), v.url, harness.Options{Token: v.tokens[tokens.Operator]})
	require.NoError(t, err)
	defer c.Close()
	root, err := c.Root(t.Context(), harness.RootRequest{Label: "r"})
	require.NoError(t, err)
	text := "hello"
	expect := uint64(1)
	w, err := c.Append(t.Context(), harness.AppendRequest{Session: root.Session, Expect: &expect, Events: []harness.Event{{Type: "user/message", ContentText: &text}}})
	require.NoError(t, err)
	_, err = c.Append(t.Context(), harness.AppendRequest{Session: root.Session, Expect: &expect, Events: []harness.Event{{Type: "user/message", ContentText: &text}}})
	ce := (*eventlog.ConflictError)(nil)
	require.ErrorAs(t, err, &ce)
	require.Equal(t, w.LastSeq, ce.Actual)
	_, err = c.Show(t.Context(), harness.SessionRequest{Session: "77777777"})
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	bad, err := harness.Dial(t.Context(), v.url, harness.Options{Token: "clt_none"})
	if err == nil {
		_, err = bad.Show(t.Context(), harness.SessionRequest{Session: root.Session})
	}
	require.ErrorIs(t, err, eventlog.ErrUnauthorized)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seqs := ""
	for f, err := range c.Follow(ctx, harness.FollowRequest{Session: root.Session}) {
		require.NoError(t, err)
		if seqs += fmt.Sprint(f.Event.Seq); f.Event.Seq == 2 {
			break
		}
	}
	require.Equal(t, "12", seqs)
}

// TestTokensAreInNoCopy: a backup has no TOKENS, and neither has what is made
// from one.
func TestTokensAreInNoCopy(t *testing.T) {
	v := serve(t, service.Options{})
	copied := filepath.Join(t.TempDir(), "copy")
	_, err := v.store.Backup(t.Context(), copied, eventlog.BackupOptions{})
	require.NoError(t, err)
	names, err := os.ReadDir(copied)
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, n := range names {
		require.NotContains(t, n.Name(), tokens.FileName)
	}
}
