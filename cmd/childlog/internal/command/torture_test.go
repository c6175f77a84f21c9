package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// TestTortureCommandsBesideAHolder: many short-lived append and check --record
// processes work beside one that serves the store, which is killed again and
// again. A command that was not answered, because its holder died or the store
// was held by another, is repeated as it was. In the end everything that was
// acknowledged is where it was acknowledged, nothing is there twice, and the seqs
// have no gap.
//
// Between two holders a command opens the store by itself, so takeovers of both
// kinds happen. 200 processes at once in the long form, 40 in the short one.
func TestTortureCommandsBesideAHolder(t *testing.T) {
	processes, kills := 200, 4
	if testing.Short() {
		processes, kills = 40, 2
	}
	dir := newStore(t)
	var holder *exec.Cmd
	serve := func() {
		holder = childlog(t, dir, "", "--wait", "2m", "serve")
		require.NoError(t, holder.Start())
	}
	kill := func() {
		require.NoError(t, holder.Process.Kill())
		_ = holder.Wait() // it was killed
	}
	serve()

	type acked struct {
		seq      uint64
		repeated int
	}
	answered := make(chan struct{}, processes)
	results := make([]acked, processes)
	errs := make([]error, processes)
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			results[i].seq, results[i].repeated, errs[i] = work(t, dir, i)
			answered <- struct{}{}
		})
	}
	done := 0
	for k := range kills {
		for want := (k + 1) * processes / (kills + 2); done < want; done++ {
			<-answered
		}
		kill()
		serve()
	}
	wg.Wait()
	kill() // in the end too: whether it serves by now or waits for the store
	require.NoError(t, errors.Join(errs...))

	report := storetest.RequireSound(t, dir)
	s, err := eventlog.Open(context.Background(), dir, eventlog.Options{ReadOnly: true})
	require.NoError(t, err)
	defer s.Close()
	id, err := s.Resolve(context.Background(), rootID)
	require.NoError(t, err)
	at := map[string]uint64{} // where each piece of work stands
	next := uint64(1)
	require.NoError(t, s.Replay(context.Background(), id, true, func(ev *eventlog.Event) error {
		require.Equal(t, next, ev.Seq, "gapless")
		next++
		name := ""
		switch ev.Type {
		case "user/message":
			name = string(ev.Content)
		case eventlog.TypeToolDecision:
			name = ev.Facts.Str("call")
		default:
			return nil
		}
		require.Zero(t, at[name], "%s is there twice", name)
		at[name] = ev.Seq
		return nil
	}))
	require.Len(t, at, processes, "nothing was lost")
	repeated := 0
	for i, r := range results {
		require.Equal(t, r.seq, at[fmt.Sprintf("work-%d", i)], "where it was acknowledged")
		repeated += r.repeated
	}
	t.Logf("%d processes, %d kills, %d commands repeated, %d events", processes, kills, repeated, report.Events)
}

// work has one piece of work recorded and returns where: odd ones are calls, even
// ones messages.
func work(t *testing.T, dir string, i int) (seq uint64, repeated int, err error) {
	name := fmt.Sprintf("work-%d", i)
	args, input := []string{"append", rootID, "--key", name}, fmt.Sprintf(`{"type":"user/message","content_text":%q}`, name)
	if i%2 == 1 {
		args, input = []string{"check", rootID, "--record"}, fmt.Sprintf(`{"call":%q,"tool":"read","args":{"path":"a"}}`, name)
	}
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); repeated++ {
		cmd := childlog(t, dir, input, append([]string{"--json", "--wait", "2s"}, args...)...)
		var out, msg bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &msg
		err := cmd.Run()
		switch code := cmd.ProcessState.ExitCode(); {
		case code == failure.ExitUnavailable: // locked, or nobody knows
		case code != failure.ExitOK || err != nil:
			return 0, repeated, fmt.Errorf("%s: exit code %d, %v: %s", name, code, err, msg.String())
		case i%2 == 1:
			var j wire.Judgement
			if err := json.Unmarshal(out.Bytes(), &j); err != nil || j.Recorded == nil {
				return 0, repeated, fmt.Errorf("%s: %v: %s", name, err, out.String())
			}
			return j.Recorded.DecisionSeq, repeated, nil
		default:
			var w wire.Written
			err := json.Unmarshal(out.Bytes(), &w)
			return w.LastSeq, repeated, err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return 0, repeated, fmt.Errorf("%s: never answered", name)
}

// childlog is the command as a process of its own.
func childlog(t *testing.T, dir, stdin string, args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		t.Error(err)
	}
	return &exec.Cmd{Path: exe, Args: append([]string{"childlog", "--store", dir}, args...), Stdin: strings.NewReader(stdin), Env: append(os.Environ(), "CHILDLOG_STORE=")}
}
