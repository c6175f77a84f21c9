package eventlog

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// crashSessions is how many sessions the killed writer appends to.
const crashSessions = 8

func init() {
	roles["write"] = func() { // appends for ever and prints each batch after it was acknowledged
		s, err := Open(ctx, os.Getenv("STORE"), Options{})
		exitOn(err)
		out := bufio.NewWriter(os.Stdout)
		var mu sync.Mutex
		ack := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(out, format+"\n", args...)
			exitOn(out.Flush())
		}
		for i := range crashSessions {
			go func() {
				id := sid(i)
				for n := 0; ; n++ {
					size := n % 5
					events := []NewEvent{text(fmt.Sprintf("first of %d", size+1))}
					for k := range size {
						events = append(events, octets(noise(uint64(k), 100*k*k)))
					}
					res, err := s.Append(ctx, Batch{Session: id, Expect: Any(), Events: events})
					exitOn(err)
					ack("%d %d %x", i, res.LastSeq, res.Hash[:])
					if n%20 == 10 {
						child := sid(1000*(i+1) + int(res.LastSeq))
						_, err := s.Transact(ctx, EntryDelegation, func(v *View) ([]Batch, error) {
							row, err := v.Row(id)
							return childBatches(&row, child, child.String()), err
						})
						exitOn(err)
						ack("child %d %s", i, child)
					}
				}
			}()
		}
		select {}
	}
}

// TestKilledWriter: a process that is killed while it appends has lost nothing
// that it was told is durable, and what it was not told about is there as a
// whole or not at all. The same store is killed again and again.
func TestKilledWriter(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	ts := newStore(t)
	for i := range crashSessions {
		ts.root(sid(i))
	}
	heads := make([]uint64, crashSessions)
	var children []string
	for round := range rounds {
		require.NoError(t, ts.Close())
		h := startHelper(t, "write", "STORE="+ts.dir)
		hashes := map[int]string{}
		for lines := 0; h.lines.Scan(); lines++ {
			if lines == 5*round {
				_ = h.cmd.Process.Kill() // while others of its goroutines wait for a sync
			}
			f := strings.Fields(h.lines.Text())
			require.Len(t, f, 3, "a line is cut off: %q", h.lines.Text())
			if f[0] == "child" {
				children = append(children, f[2])
				continue
			}
			i, err := strconv.Atoi(f[0])
			require.NoError(t, err, h.lines.Text())
			heads[i], err = strconv.ParseUint(f[1], 10, 64)
			require.NoError(t, err)
			hashes[i] = f[2]
		}
		_ = h.cmd.Wait()

		ts.open()
		for i, head := range heads {
			row, err := ts.Row(sid(i))
			require.NoError(t, err)
			require.GreaterOrEqual(t, row.Head, head, "round %d: an acknowledged event of session %d is gone", round, i)
			if hash := hashes[i]; hash != "" {
				page, err := ts.Read(ctx, sid(i), ReadOptions{From: head, To: head})
				require.NoError(t, err)
				require.Equal(t, hash, fmt.Sprintf("%x", page.Events[0].Hash[:]))
			}
			requireWholeBatches(t, ts, i)
		}
		for _, text := range children {
			id, err := ts.Resolve(ctx, text)
			require.NoError(t, err)
			events, row, err := ts.Policy(ctx, id, 0)
			require.NoError(t, err)
			require.Equal(t, []uint64{1, 2, 3, 4}, seqsOf(events))
			found, err := ts.ByKey(row.Parent, text)
			require.NoError(t, err)
			require.Equal(t, id, found)
		}
		report, err := ts.Check(ctx, CheckOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings, "round %d", round)
	}
	require.NotContains(t, heads, uint64(0), "a session was never written")
}

// requireWholeBatches reads back what the first event of each batch says
// about its length.
func requireWholeBatches(t *testing.T, ts *testStore, i int) {
	left, seq := 0, uint64(1)
	require.NoError(t, ts.Replay(ctx, sid(i), true, func(ev *Event) error {
		require.Equal(t, seq, ev.Seq)
		seq++
		if ev.Type == TypeSessionCreated || ev.Type == TypeDelegationStarted {
			return ev.ContentErr
		}
		if left == 0 {
			_, err := fmt.Sscanf(string(ev.Content), "first of %d", &left)
			require.NoError(t, err, "seq %d", ev.Seq)
		}
		left--
		return ev.ContentErr
	}))
	require.Zero(t, left, "the last batch of session %d is not whole", i)
}
